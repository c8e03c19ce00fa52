/* A table of recently seen keys: launches, addresses. It never grows; where a key finds no slot, the least recently
 * seen one is dropped. */
#ifndef PLIM_DEVICES_VIRTUAL_STEPS_SEEN_H
#define PLIM_DEVICES_VIRTUAL_STEPS_SEEN_H

#include <stdint.h>

struct plim_seen {
    uint64_t key;  /* 0: a free slot */
    uint32_t when; /* the caller's time; 0: a new entry */
    uint32_t flags; /* the caller's flags for that time, */
    uint64_t first; /* and what it saw first */
};

/* 1.5 MiB, touched as needed. NULL: no memory. The caller frees it. */
struct plim_seen *plim_seen_create(void);

/* The entry of a key, or a new one; valid until the next call. */
struct plim_seen *plim_seen_find(struct plim_seen *table, uint64_t key);

#endif
