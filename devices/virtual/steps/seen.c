#include "seen.h"
#include <stdlib.h>

enum { SLOTS = 1 << 16, PROBES = 8 /* slots examined per key */ };

struct plim_seen *plim_seen_create(void)
{
    return calloc(SLOTS, sizeof(struct plim_seen));
}

struct plim_seen *plim_seen_find(struct plim_seen *table, uint64_t key)
{
    size_t at = (size_t)(key * 0x9e3779b97f4a7c15u >> 48) & (SLOTS - 1);
    struct plim_seen *oldest = &table[at];
    for (int i = 0; i < PROBES; i++) {
        struct plim_seen *entry = &table[(at + (size_t)i) & (SLOTS - 1)];
        if (entry->key == key) return entry;
        if (!entry->key) {
            oldest = entry;
            break;
        }
        if (entry->when < oldest->when) oldest = entry;
    }
    *oldest = (struct plim_seen){.key = key};
    return oldest;
}
