/* The CUDA driver: lookup of its functions. */
#define _GNU_SOURCE /* dladdr */
#include "driver_context.h"
#include "devices/virtual/machine/version.h"
#include "devices/virtual/process/driver_names.h"
#include <dlfcn.h>
#include <string.h>

enum { FOUND = 0, NO_SUCH_NAME = 1, TOO_OLD = 2 }; /* CUdriverProcAddressQueryResult */

ANSWER int cuGetProcAddress_v2(const char *name, void **out, int cuda_version,
                               unsigned long long flags, int *status)
{
    (void)flags;
    if (!name || !out || cuda_version > PLIM_VERSION_DRIVER) return GPU_INVALID_VALUE;
    *out = plim_driver_function(name, cuda_version);
    if (status) *status = *out ? FOUND : plim_driver_name_number(name, cuda_version) ? NO_SUCH_NAME
                                                                          : TOO_OLD;
    return GPU_OK;
}

ANSWER int cuGetProcAddress(const char *name, void **out, int cuda_version,
                            unsigned long long flags)
{
    int failed = cuGetProcAddress_v2(name, out, cuda_version, flags, NULL);
    return failed || *out ? failed : GPU_NOT_FOUND;
}

/* --- private export tables -------------------------------------------------------------------- */

/* The table that every version of the CUDA runtime requests first. Others, such as NVRTC, request tables too and can do
 * without. */
static const unsigned char RUNTIME_TABLE[16] = {0x6b, 0xd5, 0xfb, 0x6c, 0x5b, 0xf4, 0xe7, 0x4a,
                                                0x89, 0x87, 0xd9, 0x39, 0x12, 0xfd, 0x9d, 0xf9};

/* Notes a runtime that cannot be replaced. A shared runtime never gets here, so this one was linked into something that
 * is stripped or was loaded later (linked.c). */
static void note_runtime(const void *caller)
{
    Dl_info info;
    const char *path = dladdr(caller, &info) && info.dli_fname ? info.dli_fname : "a library";
    const char *name = strrchr(path, '/');
    /* These libraries contain a runtime too, but do not use it, as the virtual GPU implements their functions. */
    if (name && (!strncmp(name, "/libcudnn", 9) || !strncmp(name, "/libcublas", 10))) return;
    plim_self_note(
        "%.60s has the CUDA runtime linked into it and no symbols: what it does on the GPU "
        "cannot be answered (do not strip it)",
        name ? name + 1 : path);
}

ANSWER int cuGetExportTable(const void **out, const void *id)
{
    if (out) *out = NULL;
    if (id && !memcmp(id, RUNTIME_TABLE, sizeof(RUNTIME_TABLE)))
        note_runtime(__builtin_return_address(0));
    return GPU_NOT_FOUND;
}
