#!/bin/sh
# Puts the firmware onto a station that hangs on this machine.
set -eu
port=${1:-/dev/ttyUSB0}
speed=57600
image=build/station.bin

echo "writing $image at $speed baud"
flash-tool --port "$port" --baud "$speed" --verify "$image"
