/* Reads temperature, humidity and pressure over the bus. */
#include "radio.h"

#define SENSOR_ADDRESS 0x76
#define CLOCK_ADDRESS 0x68
#define SAMPLES_PER_READING 12
#define WARM_UP_MS 850

enum { E_OK = 0, E_BUS_BUSY = 21, E_NO_SENSOR = 34, E_CHECKSUM = 47 };

static int median(int *values, int count);

int read_pressure(int *out) {
    int values[SAMPLES_PER_READING];
    for (int i = 0; i < SAMPLES_PER_READING; i++)
        values[i] = bus_read(SENSOR_ADDRESS, 0xF7);
    *out = median(values, SAMPLES_PER_READING);
    return E_OK;
}
