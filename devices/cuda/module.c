#include "cuda_internal.h"
#include "devices/cuda/images.h"
#include "kernels.h"

#include <stdio.h>

/* The driver reads an image when it is loaded; the code of a kernel goes to the GPU when the
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

/* The image that has the kernel; the number of images: none has. */
static size_t image_of(const char *name)
{
    for (size_t i = 0; i < plim_cuda_image_count; i++)
        for (const char *const *kernel = plim_cuda_images[i].kernels; *kernel; kernel++)
            if (!strcmp(*kernel, name)) return i;
    return plim_cuda_image_count;
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
    size_t image = image_of(name);
    if (image == plim_cuda_image_count) {
        snprintf(cuda->message, sizeof(cuda->message), "no image has the kernel %s", name);
        return PLIM_INTERNAL;
    }
    CUmodule module;
    enum plim_status st = load(cuda, image, &module);
    if (st == PLIM_OK) st = PLIM_CUDA_CALL(cuda, cuModuleGetFunction, out, module, name);
    if (st != PLIM_OK) return st;
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

static enum plim_status emit(void *user, const struct plim_cuda_launch *launch)
{
    return plim_cuda_launch_kernel(user, launch->kernel, launch->grid, launch->block,
                                   launch->shared_bytes, launch->args);
}

enum plim_status plim_cuda_launch_kernels(struct plim_cuda *cuda, const struct plim_op *op)
{
    return plim_cuda_plan(&cuda->device.info, op, emit, cuda);
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
