#include "table.h"
#include "autotune/base/array.h"
#include <pthread.h>

struct entry {
    uint64_t key;
    int device;
    int64_t cost_bytes;
};

static PLIM_ARRAY(struct entry) entries;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Frameworks keep hundreds of segments, not millions: searched starting with the newest. */
void plim_table_insert(uint64_t key, int device, int64_t cost_bytes)
{
    struct entry entry = {key, device, cost_bytes};
    if (!key) return;
    pthread_mutex_lock(&lock);
    if (PLIM_ARRAY_PUSH(&entries, entry) != PLIM_OK) entry.key = 0; /* then its free is not counted */
    pthread_mutex_unlock(&lock);
}

bool plim_table_remove(uint64_t key, int *device, int64_t *cost_bytes)
{
    bool found = false;
    pthread_mutex_lock(&lock);
    for (size_t i = entries.count; i-- > 0 && !found;) {
        if (entries.items[i].key != key) continue;
        found = true;
        *device = entries.items[i].device;
        *cost_bytes = entries.items[i].cost_bytes;
        entries.items[i] = entries.items[--entries.count];
    }
    pthread_mutex_unlock(&lock);
    return found;
}
