/* Virtual memory management: addresses and memory are allocated separately, as PyTorch's expandable
 * segments and NCCL do.
 *
 * Memory is taken from the GPU when a handle is created and given back when the handle was released and is no
 * longer mapped. A handle imported from another process takes nothing here: the process that created it is
 * charged. All results are CUDA error codes; sizes and addresses must be multiples of
 * VMM_PAGE_BYTES, else GPU_INVALID_VALUE.
 */
#ifndef PLIM_DEVICES_VIRTUAL_MEMORY_VMM_H
#define PLIM_DEVICES_VIRTUAL_MEMORY_VMM_H

#include "heap.h"

enum { VMM_PAGE_BYTES = HEAP_PAGE_BYTES };

/* CUmemAllocationHandleType: how memory may leave the process. Others are not supported. */
enum plim_vmm_shareable { VMM_SHARE_NONE = 0, VMM_SHARE_DESCRIPTOR = 1 };

/* A piece of a GPU's memory. */
struct plim_vmm_handle {
    int device;
    size_t bytes;
    unsigned shareable; /* enum plim_vmm_shareable, as requested */
    bool is_imported;
    int references;     /* the program's, and one for each mapping */
    uint64_t exported;  /* its number in the exported descriptor; 0: not exported */
    uint8_t access[PLIM_MACHINE_GPUS]; /* CUmemAccess_flags for each GPU */
};

/* Reserves addresses without memory; `alignment` 0: a page. */
int plim_vmm_reserve(size_t bytes, size_t alignment, uintptr_t *at);
/* Frees a whole reservation, in which nothing may be mapped. */
int plim_vmm_unreserve(uintptr_t at, size_t bytes);
/* The reservation that contains an address; false: none does. */
bool plim_vmm_reservation(uintptr_t at, struct heap_block *out);

/* GPU_OUT_OF_MEMORY; GPU_NOT_SUPPORTED for a way of sharing that is not implemented. */
int plim_vmm_create(int device, size_t bytes, unsigned shareable, struct plim_vmm_handle **out);
int plim_vmm_release(struct plim_vmm_handle *handle);

/* Maps a handle at addresses of a reservation where nothing is mapped yet. */
int plim_vmm_map(uintptr_t at, size_t bytes, struct plim_vmm_handle *handle);
/* Unmaps any number of adjacent whole mappings. */
int plim_vmm_unmap(uintptr_t at, size_t bytes);

/* Sets which GPU may access what is mapped there; it is stored and has no effect. */
int plim_vmm_set_access(uintptr_t at, size_t bytes, int device, uint8_t flags);
int plim_vmm_get_access(uintptr_t at, int device, uint8_t *flags);

/* The handle of what is mapped at an address, with one more reference. */
int plim_vmm_retain(uintptr_t at, struct plim_vmm_handle **out);

/* A file descriptor, which the caller closes, that stands for the memory in any process of the machine.
 * In the process that created it, importing returns the same handle while that exists. */
int plim_vmm_export(struct plim_vmm_handle *handle, int *fd);
int plim_vmm_import(int fd, struct plim_vmm_handle **out);

#endif
