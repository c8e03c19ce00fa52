/* The CUDA driver: virtual memory management. Multicast objects, fabric handles and DMA buffers are not supported, as
 * on most GPUs. */
#include "driver_context.h"
#include "devices/virtual/memory/vmm.h"
#include <string.h>

enum { LOCATION_DEVICE = 1, PINNED = 1 }; /* CUmemLocationType, CUmemAllocationType */

struct location { /* CUmemLocation */
    int type, id;
};

struct properties { /* CUmemAllocationProp; flags that follow are hints */
    int type;
    unsigned shareable;
    struct location location;
    void *metadata;
    uint64_t flags;
};

struct access { /* CUmemAccessDesc */
    struct location location;
    unsigned flags;
};

ANSWER int cuMemAddressReserve(uintptr_t *out, size_t bytes, size_t alignment, uintptr_t wish,
                               unsigned long long flags)
{
    int failed = plim_driver_ready();
    (void)wish;
    (void)flags;
    return failed ? failed : plim_vmm_reserve(bytes, alignment, out);
}

ANSWER int cuMemAddressFree(uintptr_t at, size_t bytes)
{
    int failed = plim_driver_ready();
    return failed ? failed : plim_vmm_unreserve(at, bytes);
}

/* Host memory cannot be managed this way here (attribute 141 is 0). */
static int check(const struct properties *properties)
{
    int failed = plim_driver_ready();
    if (failed) return failed;
    if (!properties || properties->type != PINNED) return GPU_INVALID_VALUE;
    if (properties->location.type != LOCATION_DEVICE) return GPU_NOT_SUPPORTED;
    return plim_self_gpu(properties->location.id) ? GPU_OK : GPU_INVALID_DEVICE;
}

ANSWER int cuMemGetAllocationGranularity(size_t *bytes, const struct properties *properties,
                                         int option)
{
    int failed = check(properties);
    (void)option;
    if (!failed) *bytes = VMM_PAGE_BYTES;
    return failed;
}

ANSWER int cuMemCreate(struct plim_vmm_handle **out, size_t bytes,
                       const struct properties *properties, unsigned long long flags)
{
    int failed = check(properties);
    if (!failed && flags) failed = GPU_INVALID_VALUE;
    return failed ? failed
                  : plim_vmm_create(properties->location.id, bytes, properties->shareable, out);
}

ANSWER int cuMemRelease(struct plim_vmm_handle *handle)
{
    int failed = plim_driver_ready();
    return failed ? failed : plim_vmm_release(handle);
}

ANSWER int cuMemMap(uintptr_t at, size_t bytes, size_t offset, struct plim_vmm_handle *handle,
                    unsigned long long flags)
{
    int failed = plim_driver_ready();
    if (!failed && (offset || flags)) failed = GPU_INVALID_VALUE;
    return failed ? failed : plim_vmm_map(at, bytes, handle);
}

ANSWER int cuMemUnmap(uintptr_t at, size_t bytes)
{
    int failed = plim_driver_ready();
    return failed ? failed : plim_vmm_unmap(at, bytes);
}

ANSWER int cuMemSetAccess(uintptr_t at, size_t bytes, const struct access *access, size_t count)
{
    int failed = plim_driver_ready();
    for (size_t i = 0; i < count && !failed; i++)
        if (access[i].location.type != LOCATION_DEVICE) failed = GPU_NOT_SUPPORTED;
        else failed = plim_vmm_set_access(at, bytes, access[i].location.id,
                                          (uint8_t)access[i].flags);
    return failed;
}

ANSWER int cuMemGetAccess(unsigned long long *flags, const struct location *location, uintptr_t at)
{
    uint8_t access = 0;
    int failed = plim_driver_ready();
    if (!failed && location->type != LOCATION_DEVICE) failed = GPU_NOT_SUPPORTED;
    if (!failed) failed = plim_vmm_get_access(at, location->id, &access);
    *flags = access;
    return failed;
}

ANSWER int cuMemRetainAllocationHandle(struct plim_vmm_handle **out, uintptr_t at)
{
    int failed = plim_driver_ready();
    return failed ? failed : plim_vmm_retain(at, out);
}

ANSWER int cuMemGetAllocationPropertiesFromHandle(struct properties *out,
                                                  const struct plim_vmm_handle *handle)
{
    int failed = plim_driver_ready();
    if (!failed && !handle) failed = GPU_INVALID_VALUE;
    if (failed) return failed;
    *out = (struct properties){.type = PINNED, .shareable = handle->shareable,
                               .location = {LOCATION_DEVICE, handle->device}};
    return GPU_OK;
}

ANSWER int cuMemExportToShareableHandle(void *out, struct plim_vmm_handle *handle, int type,
                                        unsigned long long flags)
{
    int fd, failed = plim_driver_ready();
    (void)flags;
    if (!failed && type != VMM_SHARE_DESCRIPTOR) failed = GPU_NOT_SUPPORTED;
    if (!failed) failed = plim_vmm_export(handle, &fd);
    if (!failed) memcpy(out, &fd, sizeof(fd));
    return failed;
}

/* The descriptor is passed as the value of a pointer. */
ANSWER int cuMemImportFromShareableHandle(struct plim_vmm_handle **out, void *descriptor, int type)
{
    int failed = plim_driver_ready();
    if (!failed && type != VMM_SHARE_DESCRIPTOR) failed = GPU_NOT_SUPPORTED;
    return failed ? failed : plim_vmm_import((int)(uintptr_t)descriptor, out);
}
