/* The addresses that the virtual GPU hands out, and how much GPU memory they take.
 *
 * Device memory is a range of addresses with no memory mapped: a program that reads it on the host faults, as with a
 * real GPU. A part of the address space is reserved for it, so it never overlaps host memory. Sizes are CUDA's: whole
 * pages of 2 MiB; requests of up to 1 MiB share pages (H200: tests/gpu/records, driver). Device memory is placed where
 * the driver would place it (devices/address_space.h).
 *
 * All int results are CUDA error codes. Every function takes the process's lock itself. */
#ifndef PLIM_DEVICES_VIRTUAL_MEMORY_HEAP_H
#define PLIM_DEVICES_VIRTUAL_MEMORY_HEAP_H

#include "devices/virtual/machine/self.h"

enum { HEAP_PAGE_BYTES = 2 << 20 };

/* Larger requests are refused, so that sums of sizes cannot overflow. */
#define HEAP_MOST_BYTES ((size_t)1 << 50)

enum heap_kind {
    HEAP_DEVICE,   /* cudaMalloc */
    HEAP_POOL,     /* cudaMallocAsync; charged to its pool */
    HEAP_RESERVED, /* addresses without memory: cuMemAddressReserve */
    HEAP_MAPPED,   /* pages mapped into a reserved range; charged to their handle */
    HEAP_SYMBOL,   /* a variable of a kernel module; charged to the context */
    HEAP_IMPORTED, /* memory of another process or a peer GPU; charged to its owner */
    HEAP_MANAGED,  /* host memory that kernels can access; not counted, as it may be paged out */
    HEAP_HOST,     /* pinned or registered host memory */
};

struct heap_block {
    uintptr_t at;
    size_t bytes;
    enum heap_kind kind;
    int device;
    int64_t cost_bytes;  /* HEAP_DEVICE: bytes taken from the GPU; 0 if it shares pages */
    void *owner;         /* HEAP_POOL: the pool. HEAP_MAPPED: the handle */
    unsigned flags;      /* HEAP_HOST: as passed to the allocation */
    uint64_t id;         /* unique in the process: CU_POINTER_ATTRIBUTE_BUFFER_ID */
};

/* Allocates device memory; *at is 0 for 0 bytes. */
int plim_heap_allocate(int device, size_t bytes, uintptr_t *at);
/* Frees memory of plim_heap_allocate(); NULL is allowed. GPU_INVALID_VALUE for any other address. */
int plim_heap_free(uintptr_t at);

/* Adds a range of another kind. If block->at is 0, addresses are chosen. Stores the address in *at if `at` is not
 * NULL. */
int plim_heap_add(const struct heap_block *block, uintptr_t *at);
/* Removes the range of this kind that starts at `at` and stores it in `out` if not NULL. Returns false if there is
 * none. */
bool plim_heap_remove(uintptr_t at, enum heap_kind kind, struct heap_block *out);

/* Finds the range that contains an address; mapped pages take precedence over the reservation around them. */
bool plim_heap_find(uintptr_t at, struct heap_block *out);

/* True if it is a device address, at which the host has no memory. Needs no lock. */
bool plim_heap_is_device(uintptr_t at);

/* A context ends: frees all memory that cudaMalloc allocated on its GPU. */
void plim_heap_drop(int device);

#endif
