/* Stream-ordered memory: cudaMallocAsync and its pools.
 *
 * A pool takes memory from the GPU in steps of POOL_STEP_BYTES, or in pages if that fails. Freed memory stays in the
 * pool until a synchronisation finds more unused memory than the release threshold. Fragmentation is not modelled: a
 * pool is assumed to leave no holes. */
#ifndef PLIM_DEVICES_VIRTUAL_MEMORY_POOL_H
#define PLIM_DEVICES_VIRTUAL_MEMORY_POOL_H

#include "devices/virtual/machine/self.h"

enum { POOL_STEP_BYTES = 32 << 20 };

struct plim_memory_pool;

struct plim_memory_pool *plim_pool_default(int device);
struct plim_memory_pool *plim_pool_current(int device);
int plim_pool_set_current(int device, struct plim_memory_pool *pool);
struct plim_memory_pool *plim_pool_create(int device);
int plim_pool_destroy(struct plim_memory_pool *pool);

int plim_pool_allocate(struct plim_memory_pool *pool, size_t bytes, uintptr_t *at);
/* Also frees memory of cudaMalloc. */
int plim_pool_free(uintptr_t at);

int plim_pool_get(const struct plim_memory_pool *pool, enum gpu_pool_attribute attribute,
                  void *value);
int plim_pool_set(struct plim_memory_pool *pool, enum gpu_pool_attribute attribute,
                  const void *value);
int plim_pool_trim(struct plim_memory_pool *pool, size_t keep_bytes);

/* The context of the GPU ends: empties its pools, even if they are in use. */
void plim_pool_drop(int device);

/* Called at a synchronisation: releases unused memory of the GPU's pools above their thresholds. */
void plim_pool_release_unused(int device);

#endif
