/* Virtual memory management: addresses and memory apart from each other, as PyTorch's expandable
 * segments and NCCL use them.
 *
 * Memory is paid for when a handle is made and given back when the handle was released and nothing
 * is mapped to it any more. A handle that came from another process costs nothing here: the one
 * that made it pays. All results are CUDA error codes; sizes and addresses are multiples of
 * VMM_PAGE_BYTES, GPU_INVALID_VALUE where they are not.
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
    unsigned shareable; /* enum plim_vmm_shareable, as asked for */
    bool is_imported;
    int references;     /* the program's, and one for each mapping */
    uint64_t exported;  /* its number in what was exported; 0: it was not */
    uint8_t access[PLIM_MACHINE_GPUS]; /* CUmemAccess_flags for each GPU */
};

/* Addresses without memory; `alignment` 0 is a page. */
int plim_vmm_reserve(size_t bytes, size_t alignment, uintptr_t *at);
/* A whole reservation that nothing is mapped in. */
int plim_vmm_unreserve(uintptr_t at, size_t bytes);
/* The reservation that an address lies in; false: in none. */
bool plim_vmm_reservation(uintptr_t at, struct heap_block *out);

/* GPU_OUT_OF_MEMORY; GPU_NOT_SUPPORTED for a way to share that is not there. */
int plim_vmm_create(int device, size_t bytes, unsigned shareable, struct plim_vmm_handle **out);
int plim_vmm_release(struct plim_vmm_handle *handle);

/* Addresses of a reservation with nothing at them yet. */
int plim_vmm_map(uintptr_t at, size_t bytes, struct plim_vmm_handle *handle);
/* Any number of whole mappings, one after the other. */
int plim_vmm_unmap(uintptr_t at, size_t bytes);

/* Who may use what is mapped there; it is kept and changes nothing. */
int plim_vmm_set_access(uintptr_t at, size_t bytes, int device, uint8_t flags);
int plim_vmm_get_access(uintptr_t at, int device, uint8_t *flags);

/* The handle of what is mapped at an address, with a reference more. */
int plim_vmm_retain(uintptr_t at, struct plim_vmm_handle **out);

/* A descriptor, the caller's to close, that stands for the memory in any process of the machine.
 * In the process that made it the same handle comes back, while there still is one. */
int plim_vmm_export(struct plim_vmm_handle *handle, int *fd);
int plim_vmm_import(int fd, struct plim_vmm_handle **out);

#endif
