#!/bin/sh
# Fetches what the stations have measured. Runs every hour, at minute 23.
set -eu
store=/srv/weather/raw
rsync --archive --timeout=45 gateway:/var/spool/stations/ "$store"
find "$store" -name '*.part' -mmin +180 -delete
