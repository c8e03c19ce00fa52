/* Values on their way over the host and back.
 *
 * What is not known reads as 0 on the host; a mask that goes through numpy or pinned memory, or activations that are
 * offloaded, would come back as known zeros. What the host was given is remembered, as long as it stays as it was. */
#ifndef PLIM_DEVICES_VIRTUAL_MEMORY_ROUND_TRIP_H
#define PLIM_DEVICES_VIRTUAL_MEMORY_ROUND_TRIP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The host was given `bytes` of device memory, which are there now; `known` is the shadow's (shadow.h). */
void plim_round_trip_leave(uintptr_t from, const void *to, size_t bytes, unsigned known);

/* The host writes `bytes` to device memory. False: they are no such values, and nothing is done. */
bool plim_round_trip_return(uintptr_t to, const void *from, size_t bytes);

#endif
