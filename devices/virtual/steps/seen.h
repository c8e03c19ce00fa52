/* A table of what was seen lately: keys of launches, addresses. It never grows; where a key finds no slot, the one that
 * was seen longest ago is given up. */
#ifndef PLIM_DEVICES_VIRTUAL_STEPS_SEEN_H
#define PLIM_DEVICES_VIRTUAL_STEPS_SEEN_H

#include <stdint.h>

struct plim_seen {
    uint64_t key;  /* 0: a free slot */
    uint32_t when; /* the caller's time; 0: a new entry */
    uint32_t flags; /* the caller's, of that time, */
    uint64_t first; /* and what it saw first */
};

/* 1.5 MiB, touched as needed. NULL: no memory. To be freed. */
struct plim_seen *plim_seen_create(void);

/* The entry of a key, or a new one; good until the next call. */
struct plim_seen *plim_seen_find(struct plim_seen *table, uint64_t key);

#endif
