#include "pool.h"
#include "heap.h"
#include "autotune/base/round.h"
#include "devices/virtual/steps/watch.h"
#include <stdlib.h>
#include <string.h>

struct plim_memory_pool {
    int device;
    int64_t reserved_bytes, used_bytes, reserved_high, used_high;
    uint64_t threshold_bytes;
    int reuse[3]; /* reuse attributes, which have no effect here */
    struct plim_memory_pool *next;
};

static struct plim_memory_pool *pools; /* list of all pools */
static struct plim_memory_pool *plain[PLIM_MACHINE_GPUS], *current[PLIM_MACHINE_GPUS];

/* The caller holds the lock. */
static struct plim_memory_pool *create(int device)
{
    struct plim_memory_pool *pool = calloc(1, sizeof(*pool));
    if (!pool) return NULL;
    *pool = (struct plim_memory_pool){.device = device, .reuse = {1, 1, 1}, .next = pools};
    pools = pool;
    return pool;
}

struct plim_memory_pool *plim_pool_create(int device)
{
    plim_self_lock();
    struct plim_memory_pool *pool = create(device);
    plim_self_unlock();
    return pool;
}

struct plim_memory_pool *plim_pool_default(int device)
{
    if (!plim_self_gpu(device)) return NULL;
    plim_self_lock();
    if (!plain[device]) plain[device] = create(device);
    struct plim_memory_pool *pool = plain[device];
    plim_self_unlock();
    return pool;
}

struct plim_memory_pool *plim_pool_current(int device)
{
    if (!plim_self_gpu(device)) return NULL;
    return current[device] ? current[device] : plim_pool_default(device);
}

int plim_pool_set_current(int device, struct plim_memory_pool *pool)
{
    if (!plim_self_gpu(device)) return GPU_INVALID_DEVICE;
    if (!pool || pool->device != device) return GPU_INVALID_VALUE;
    current[device] = pool;
    return GPU_OK;
}

/* Changes how much memory the pool holds of the GPU. */
static bool resize(struct plim_memory_pool *pool, int64_t bytes)
{
    int64_t more = bytes - pool->reserved_bytes;
    if (more > 0 && !plim_self_allocate(pool->device, more)) return false;
    if (more < 0) plim_self_free(pool->device, -more);
    pool->reserved_bytes = bytes;
    if (bytes > pool->reserved_high) pool->reserved_high = bytes;
    return true;
}

static bool grow_for(struct plim_memory_pool *pool, int64_t used)
{
    if (used <= pool->reserved_bytes) return true;
    int64_t missing = used - pool->reserved_bytes;
    int64_t step = pool->reserved_bytes + plim_round_up(missing, POOL_STEP_BYTES);
    int64_t exact = pool->reserved_bytes + plim_round_up(missing, HEAP_PAGE_BYTES);
    return resize(pool, step) || (exact < step && resize(pool, exact));
}

static void give_back(struct plim_memory_pool *pool, int64_t cost)
{
    plim_self_lock();
    pool->used_bytes -= cost;
    plim_self_unlock();
}

int plim_pool_allocate(struct plim_memory_pool *pool, size_t bytes, uintptr_t *at)
{
    *at = 0;
    if (!pool) return GPU_INVALID_VALUE;
    int failed = plim_self_use(pool->device);
    if (failed || !bytes) return failed;
    if (bytes > HEAP_MOST_BYTES) return GPU_OUT_OF_MEMORY;
    int64_t cost = plim_round_up((int64_t)bytes, 512);
    plim_self_lock();
    if (!grow_for(pool, pool->used_bytes + cost)) failed = GPU_OUT_OF_MEMORY;
    else pool->used_bytes += cost;
    if (pool->used_bytes > pool->used_high) pool->used_high = pool->used_bytes;
    plim_self_unlock();
    if (failed) return failed;
    struct heap_block block = {.bytes = bytes,
                               .kind = HEAP_POOL,
                               .device = pool->device,
                               .cost_bytes = cost,
                               .owner = pool};
    failed = plim_heap_add(&block, at);
    if (failed)
        give_back(pool, cost);
    else
        plim_watch_allocation(block.device, *at, (int64_t)bytes, 0);
    return failed;
}

int plim_pool_free(uintptr_t at)
{
    struct heap_block block;
    if (!at) return GPU_OK;
    if (!plim_heap_remove(at, HEAP_POOL, &block)) return plim_heap_free(at);
    struct plim_memory_pool *pool = block.owner;
    give_back(pool, block.cost_bytes);
    plim_watch_free(block.device, at, (int64_t)block.bytes);
    return GPU_OK;
}

int plim_pool_trim(struct plim_memory_pool *pool, size_t keep_bytes)
{
    if (!pool) return GPU_INVALID_VALUE;
    plim_self_lock();
    int64_t keep = pool->used_bytes > (int64_t)keep_bytes ? pool->used_bytes : (int64_t)keep_bytes;
    keep = plim_round_up(keep, HEAP_PAGE_BYTES);
    if (keep < pool->reserved_bytes) resize(pool, keep);
    plim_self_unlock();
    return GPU_OK;
}

void plim_pool_release_unused(int device)
{
    for (struct plim_memory_pool *pool = pools; pool; pool = pool->next)
        if (pool->device == device && pool->threshold_bytes < (uint64_t)pool->reserved_bytes)
            plim_pool_trim(pool, (size_t)pool->threshold_bytes);
}

void plim_pool_drop(int device)
{
    for (struct plim_memory_pool *pool = pools; pool; pool = pool->next) {
        if (pool->device != device) continue;
        pool->used_bytes = 0;
        plim_pool_trim(pool, 0);
    }
}

int plim_pool_destroy(struct plim_memory_pool *pool)
{
    if (!pool || pool == plain[pool->device]) return GPU_INVALID_VALUE;
    if (current[pool->device] == pool) current[pool->device] = NULL;
    /* Memory still in use remains allocated until the program frees it, so the pool object is kept. */
    pool->threshold_bytes = 0;
    return plim_pool_trim(pool, 0);
}

int plim_pool_get(const struct plim_memory_pool *pool, enum gpu_pool_attribute attribute,
                  void *value)
{
    if (!pool) return GPU_INVALID_VALUE;
    uint64_t bytes = 0;
    switch (attribute) {
    case GPU_POOL_REUSE_FOLLOW_EVENT_DEPENDENCIES:
    case GPU_POOL_REUSE_ALLOW_OPPORTUNISTIC:
    case GPU_POOL_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
        memcpy(value, &pool->reuse[attribute - 1], sizeof(int));
        return GPU_OK;
    case GPU_POOL_RELEASE_THRESHOLD: bytes = pool->threshold_bytes; break;
    case GPU_POOL_RESERVED_CURRENT: bytes = (uint64_t)pool->reserved_bytes; break;
    case GPU_POOL_RESERVED_HIGH: bytes = (uint64_t)pool->reserved_high; break;
    case GPU_POOL_USED_CURRENT: bytes = (uint64_t)pool->used_bytes; break;
    case GPU_POOL_USED_HIGH: bytes = (uint64_t)pool->used_high; break;
    default: return GPU_INVALID_VALUE;
    }
    memcpy(value, &bytes, sizeof(bytes));
    return GPU_OK;
}

int plim_pool_set(struct plim_memory_pool *pool, enum gpu_pool_attribute attribute,
                  const void *value)
{
    if (!pool) return GPU_INVALID_VALUE;
    uint64_t bytes = 0;
    switch (attribute) {
    case GPU_POOL_REUSE_FOLLOW_EVENT_DEPENDENCIES:
    case GPU_POOL_REUSE_ALLOW_OPPORTUNISTIC:
    case GPU_POOL_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
        memcpy(&pool->reuse[attribute - 1], value, sizeof(int));
        return GPU_OK;
    case GPU_POOL_RELEASE_THRESHOLD:
        memcpy(&pool->threshold_bytes, value, sizeof(bytes));
        return GPU_OK;
    case GPU_POOL_RESERVED_HIGH:
    case GPU_POOL_USED_HIGH:
        memcpy(&bytes, value, sizeof(bytes));
        if (bytes) return GPU_INVALID_VALUE; /* the high-water mark can only be reset */
        if (attribute == GPU_POOL_USED_HIGH) pool->used_high = pool->used_bytes;
        else pool->reserved_high = pool->reserved_bytes;
        return GPU_OK;
    default: return GPU_INVALID_VALUE;
    }
}
