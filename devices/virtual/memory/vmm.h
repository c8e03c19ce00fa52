/* Virtual memory management: addresses and memory are allocated separately, as PyTorch's expandable segments and NCCL
 * do.
 *
 * Memory is taken from the GPU when a handle is created and given back once the handle is released and no longer
 * mapped. A handle imported from another process takes nothing here: it is charged to the process that created it. All
 * int results are CUDA error codes; sizes and addresses must be multiples of VMM_PAGE_BYTES, otherwise
 * GPU_INVALID_VALUE. */
#ifndef PLIM_DEVICES_VIRTUAL_MEMORY_VMM_H
#define PLIM_DEVICES_VIRTUAL_MEMORY_VMM_H

#include "heap.h"

enum { VMM_PAGE_BYTES = HEAP_PAGE_BYTES };

/* CUmemAllocationHandleType: how memory may be shared with other processes. Other types are not supported. */
enum plim_vmm_shareable { VMM_SHARE_NONE = 0, VMM_SHARE_DESCRIPTOR = 1 };

/* An allocation of GPU memory without addresses. */
struct plim_vmm_handle {
    int device;
    size_t bytes;
    unsigned shareable; /* enum plim_vmm_shareable, as requested */
    bool is_imported;
    int references;     /* one for the program, and one per mapping */
    uint64_t exported;  /* number in the exported descriptor; 0: not exported */
    uint8_t access[PLIM_MACHINE_GPUS]; /* CUmemAccess_flags for each GPU */
};

/* Reserves addresses without memory. `alignment` is a power of two, or 0 for a page. */
int plim_vmm_reserve(size_t bytes, size_t alignment, uintptr_t *at);
/* Frees a whole reservation. Nothing may be mapped in it. */
int plim_vmm_unreserve(uintptr_t at, size_t bytes);
/* Finds the reservation that contains an address. Returns false if there is none. */
bool plim_vmm_reservation(uintptr_t at, struct heap_block *out);

/* Allocates memory. GPU_OUT_OF_MEMORY, or GPU_NOT_SUPPORTED for an unsupported way of sharing. */
int plim_vmm_create(int device, size_t bytes, unsigned shareable, struct plim_vmm_handle **out);
int plim_vmm_release(struct plim_vmm_handle *handle);

/* Maps the memory of a handle into a reservation, at addresses where nothing is mapped. */
int plim_vmm_map(uintptr_t at, size_t bytes, struct plim_vmm_handle *handle);
/* Unmaps any number of adjacent mappings, each as a whole. */
int plim_vmm_unmap(uintptr_t at, size_t bytes);

/* Sets which access a GPU has to mapped memory. Only stored; it has no effect. */
int plim_vmm_set_access(uintptr_t at, size_t bytes, int device, uint8_t flags);
int plim_vmm_get_access(uintptr_t at, int device, uint8_t *flags);

/* Returns the handle mapped at an address, with a reference that the caller must release. */
int plim_vmm_retain(uintptr_t at, struct plim_vmm_handle **out);

/* plim_vmm_export() returns a file descriptor, which the caller closes, that any process of the machine can import. In
 * the process that created it, importing returns the same handle as long as that exists. */
int plim_vmm_export(struct plim_vmm_handle *handle, int *fd);
int plim_vmm_import(int fd, struct plim_vmm_handle **out);

#endif
