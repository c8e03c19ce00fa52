#include "cuda_internal.h"
#include "devices/cuda/images.h"

#include <stdio.h>

/* The driver reads an image when it is loaded; the code of a kernel goes to the card when the
 * kernel is asked for or launched first (CUDA_MODULE_LOADING=LAZY, which is the default). */
static enum plim_status load(struct plim_cuda *cuda, size_t image, CUmodule *out)
{
    struct plim_cuda_modules *m = &cuda->modules;
    if (!m->loaded) m->loaded = calloc(plim_cuda_image_count, sizeof(CUmodule));
    if (!m->loaded) return PLIM_NOMEM;
    enum plim_status st = PLIM_OK;
    if (!m->loaded[image])
        st =
            PLIM_CUDA_CALL(cuda, cuModuleLoadData, &m->loaded[image], plim_cuda_images[image].data);
    *out = m->loaded[image];
    return st;
}

/* In an image that is loaded already, or that is not; PLIM_OK with *out NULL: in none. */
static enum plim_status search(struct plim_cuda *cuda, const char *name, bool loaded,
                               CUfunction *out)
{
    for (size_t i = 0; i < plim_cuda_image_count; i++) {
        CUmodule module;
        if ((cuda->modules.loaded && cuda->modules.loaded[i]) != loaded) continue;
        enum plim_status st = load(cuda, i, &module);
        if (st != PLIM_OK) return st;
        CUresult result = cuda->driver->cuModuleGetFunction(out, module, name);
        if (result == CUDA_SUCCESS) return PLIM_OK;
        *out = NULL;
        if (result != CUDA_ERROR_NOT_FOUND)
            return plim_cuda_settle(cuda, "cuModuleGetFunction", result);
    }
    return PLIM_OK;
}

static enum plim_status find(struct plim_cuda *cuda, const char *name, CUfunction *out)
{
    struct plim_cuda_modules *m = &cuda->modules;
    *out = NULL;
    for (size_t i = 0; i < m->functions.count; i++)
        if (m->functions.items[i].name == name || !strcmp(m->functions.items[i].name, name)) {
            *out = m->functions.items[i].function;
            return PLIM_OK;
        }
    enum plim_status st = search(cuda, name, true, out);
    if (st == PLIM_OK && !*out) st = search(cuda, name, false, out);
    if (st != PLIM_OK) return st;
    if (!*out) {
        snprintf(cuda->message, sizeof(cuda->message), "no image has the kernel %s", name);
        return PLIM_INTERNAL;
    }
    struct plim_cuda_function found = {name, *out};
    return PLIM_ARRAY_PUSH(&m->functions, found);
}

enum plim_status plim_cuda_launch_kernel(struct plim_cuda *cuda, const char *name,
                                         const uint32_t grid[3], const uint32_t block[3],
                                         uint32_t shared_bytes, const void *args)
{
    CUfunction function;
    void *parameters[] = {(void *)args};
    enum plim_status st = find(cuda, name, &function);
    if (st != PLIM_OK) return st;
    return PLIM_CUDA_CALL(cuda, cuLaunchKernel, function, grid[0], grid[1], grid[2], block[0],
                          block[1], block[2], shared_bytes, cuda->stream, parameters, NULL);
}

void plim_cuda_modules_close(struct plim_cuda *cuda)
{
    struct plim_cuda_modules *m = &cuda->modules;
    for (size_t i = 0; m->loaded && i < plim_cuda_image_count; i++)
        if (m->loaded[i]) PLIM_CUDA_CALL_QUIETLY(cuda, cuModuleUnload, m->loaded[i]);
    free(m->loaded);
    m->loaded = NULL;
    PLIM_ARRAY_FINISH(&m->functions);
}
