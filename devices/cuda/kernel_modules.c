#include "kernel_modules.h"
#include "images.h"

#include <stdio.h>

/* The driver reads an image when it is loaded; the code of a kernel goes to the GPU when the
 * kernel is asked for or launched first (CUDA_MODULE_LOADING=LAZY, which is the default). */
static enum plim_status load(struct plim_cuda_modules *m, size_t image, CUmodule *out)
{
    if (!m->loaded) m->loaded = calloc(plim_cuda_image_count, sizeof(CUmodule));
    if (!m->loaded) return PLIM_NOMEM;
    enum plim_status st = PLIM_OK;
    if (!m->loaded[image])
        st = PLIM_CUDA_CALL(m->context, cuModuleLoadData, &m->loaded[image],
                            plim_cuda_images[image].data);
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

static enum plim_status find(struct plim_cuda_modules *m, const char *name, CUfunction *out)
{
    *out = NULL;
    for (size_t i = 0; i < m->functions.count; i++)
        if (m->functions.items[i].name == name || !strcmp(m->functions.items[i].name, name)) {
            *out = m->functions.items[i].function;
            return PLIM_OK;
        }
    size_t image = image_of(name);
    if (image == plim_cuda_image_count) {
        snprintf(m->context->message, sizeof(m->context->message), "no image has the kernel %s",
                 name);
        return PLIM_INTERNAL;
    }
    CUmodule module;
    enum plim_status st = load(m, image, &module);
    if (st == PLIM_OK) st = PLIM_CUDA_CALL(m->context, cuModuleGetFunction, out, module, name);
    if (st != PLIM_OK) return st;
    struct plim_cuda_function found = {name, *out};
    return PLIM_ARRAY_PUSH(&m->functions, found);
}

enum plim_status plim_cuda_modules_launch(struct plim_cuda_modules *m,
                                          const struct plim_cuda_launch *launch)
{
    const uint32_t *grid = launch->grid, *block = launch->block;
    CUfunction function;
    void *parameters[] = {(void *)launch->args};
    enum plim_status st = find(m, launch->kernel, &function);
    if (st != PLIM_OK) return st;
    return PLIM_CUDA_CALL(m->context, cuLaunchKernel, function, grid[0], grid[1], grid[2], block[0],
                          block[1], block[2], launch->shared_bytes, m->context->stream, parameters,
                          NULL);
}

static enum plim_status emit(void *user, const struct plim_cuda_launch *launch)
{
    return plim_cuda_modules_launch(user, launch);
}

enum plim_status plim_cuda_modules_run(struct plim_cuda_modules *m, const struct plim_op *op)
{
    return plim_cuda_plan(m->info, op, emit, m);
}

void plim_cuda_modules_close(struct plim_cuda_modules *m)
{
    for (size_t i = 0; m->loaded && i < plim_cuda_image_count; i++)
        if (m->loaded[i]) PLIM_CUDA_RELEASE(m->context, cuModuleUnload, m->loaded[i]);
    free(m->loaded);
    m->loaded = NULL;
    PLIM_ARRAY_FINISH(&m->functions);
}
