/* The radio: packets of fixed length with a checksum at their end. */
#ifndef RADIO_H
#define RADIO_H

#define PACKET_BYTES 28
#define PREAMBLE_BYTES 5
#define CHECKSUM_POLYNOMIAL 0x1021
#define MAX_RESENDS 3

int bus_read(int address, int reg);
int radio_send_packet(const unsigned char *packet);
int radio_wait_for_ack(int milliseconds);

#endif
