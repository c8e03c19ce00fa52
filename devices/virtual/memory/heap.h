/* The addresses that the virtual GPU gives out, and how much memory they take.
 *
 * Device memory is a range of addresses without memory behind it: a program that reads it on the host
 * faults, as with a real GPU. A part of the address space is reserved for it, so that
 * it never overlaps the host's. Sizes are those of CUDA: whole pages of 2 MiB, requests of up to 1 MiB
 * share pages (H200: tests/gpu/records, driver). Device memory lies where the driver would place it
 * (devices/address_space.h).
 *
 * All results are CUDA error codes. Every function takes the process's lock itself.
 */
#ifndef PLIM_DEVICES_VIRTUAL_MEMORY_HEAP_H
#define PLIM_DEVICES_VIRTUAL_MEMORY_HEAP_H

#include "devices/virtual/machine/self.h"

enum { HEAP_PAGE_BYTES = 2 << 20 };

/* Larger requests are refused at once, so that sums of sizes cannot overflow. */
#define HEAP_MOST_BYTES ((size_t)1 << 50)

enum heap_kind {
    HEAP_DEVICE,   /* cudaMalloc */
    HEAP_POOL,     /* cudaMallocAsync; its pool pays */
    HEAP_RESERVED, /* addresses without memory: cuMemAddressReserve */
    HEAP_MAPPED,   /* pages in a reserved range; their handle pays */
    HEAP_SYMBOL,   /* a variable of a kernel's module; the context pays */
    HEAP_IMPORTED, /* another process's, or a peer's; the owner pays */
    HEAP_MANAGED,  /* real host memory that kernels see too; not counted: it may be paged out */
    HEAP_HOST,     /* pinned or registered host memory */
};

struct heap_block {
    uintptr_t at;
    size_t bytes;
    enum heap_kind kind;
    int device;
    int64_t cost_bytes;  /* HEAP_DEVICE: what it takes of the GPU; 0 where it shares pages */
    void *owner;         /* HEAP_POOL: its pool. HEAP_MAPPED: its handle */
    unsigned flags;      /* HEAP_HOST: as given. */
    uint64_t id;         /* never given twice: CU_POINTER_ATTRIBUTE_BUFFER_ID */
};

/* Device memory of the GPU; 0 bytes give NULL. */
int plim_heap_take(int device, size_t bytes, uintptr_t *at);
/* Frees what plim_heap_take() gave; NULL is fine. GPU_INVALID_VALUE for anything else. */
int plim_heap_free(uintptr_t at);

/* Adds a range of another kind; block->at 0: finds addresses for it. */
int plim_heap_add(const struct heap_block *block, uintptr_t *at);
/* Takes the range that begins at `at` out again. False: there is none of that kind. */
bool plim_heap_remove(uintptr_t at, enum heap_kind kind, struct heap_block *out);

/* The range that an address lies in, mapped pages before the reservation around them. */
bool plim_heap_find(uintptr_t at, struct heap_block *out);

/* Is it one of our device addresses, without memory behind it? Needs no lock. */
bool plim_heap_is_device(uintptr_t at);

/* A context ends: drops all memory on its GPU. */
void plim_heap_drop(int device);

#endif
