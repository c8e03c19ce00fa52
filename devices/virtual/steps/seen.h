/* A table of recently seen keys (launches, addresses). It never grows: if there is no free slot for a key, the least
 * recently seen one near it is dropped. */
#ifndef PLIM_DEVICES_VIRTUAL_STEPS_SEEN_H
#define PLIM_DEVICES_VIRTUAL_STEPS_SEEN_H

#include <stdint.h>

struct plim_seen {
    uint64_t key;  /* 0: free slot */
    uint32_t when; /* time of the caller; 0 in a new entry */
    uint32_t flags; /* flags of the caller for that time */
    uint64_t first; /* what the caller saw first at that time */
};

/* Returns a table of 1.5 MiB, touched as needed, that the caller frees; NULL if out of memory. */
struct plim_seen *plim_seen_create(void);

/* Returns the entry of a key, adding one if necessary; valid until the next call. */
struct plim_seen *plim_seen_find(struct plim_seen *table, uint64_t key);

#endif
