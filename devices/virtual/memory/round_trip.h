/* Values that are copied to the host and back.
 *
 * Unknown values read as 0 on the host; a mask that passes through numpy or pinned memory, or offloaded activations,
 * would come back as known zeros. So copies on the host are remembered as long as they are unchanged. */
#ifndef PLIM_DEVICES_VIRTUAL_MEMORY_ROUND_TRIP_H
#define PLIM_DEVICES_VIRTUAL_MEMORY_ROUND_TRIP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* `bytes` of device memory were copied to the host at `to`; `known` comes from the shadow (shadow.h). */
void plim_round_trip_leave(uintptr_t from, const void *to, size_t bytes, unsigned known);

/* The host writes `bytes` to device memory. False: they are not remembered values, and nothing is done. */
bool plim_round_trip_return(uintptr_t to, const void *from, size_t bytes);

#endif
