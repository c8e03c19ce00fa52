/* Allocations of the driver, by address or handle, until they are freed. */
#ifndef PLIM_DEVICES_OBSERVE_TABLE_H
#define PLIM_DEVICES_OBSERVE_TABLE_H

#include <stdbool.h>
#include <stdint.h>

/* Thread safety: any thread. A key of 0 is ignored. */
void plim_table_insert(uint64_t key, int device, int64_t cost_bytes);
bool plim_table_remove(uint64_t key, int *device, int64_t *cost_bytes);

#endif
