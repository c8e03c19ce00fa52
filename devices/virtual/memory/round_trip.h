/* Values that are copied to the host and back.
 *
 * Unknown values read as 0 on the host. A mask that passes through numpy or pinned memory, or offloaded activations,
 * would come back as known zeros. Therefore the states of such copies are remembered while the host memory is
 * unchanged. */
#ifndef PLIM_DEVICES_VIRTUAL_MEMORY_ROUND_TRIP_H
#define PLIM_DEVICES_VIRTUAL_MEMORY_ROUND_TRIP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Remembers the states of `bytes` bytes of device memory that were copied to the host at `to`; `known` is the result of
 * plim_shadow_load(). */
void plim_round_trip_record(uintptr_t from, const void *to, size_t bytes, unsigned known);

/* Restores the states when the host copies `bytes` bytes to device memory. Returns false, having done nothing, if
 * `from` does not hold remembered values. */
bool plim_round_trip_return(uintptr_t to, const void *from, size_t bytes);

#endif
