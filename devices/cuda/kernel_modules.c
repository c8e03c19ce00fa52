#include "kernel_modules.h"
#include "images.h"

#include <stdio.h>

enum { PLAIN_SHARED_BYTES = 48 << 10 };

/* The driver reads an image when it is loaded; a kernel's code is copied to the GPU when the kernel is first looked up
 * or launched (CUDA_MODULE_LOADING=LAZY, which is the default). */
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

/* Returns the image that contains the kernel; the number of images if none does. */
static size_t image_of(const char *name)
{
    for (size_t i = 0; i < plim_cuda_image_count; i++)
        for (const char *const *kernel = plim_cuda_images[i].kernels; *kernel; kernel++)
            if (!strcmp(*kernel, name)) return i;
    return plim_cuda_image_count;
}

/* `out` is valid until the next call. */
static enum plim_status find(struct plim_cuda_modules *m, const char *name,
                             struct plim_cuda_function **out)
{
    for (size_t i = 0; i < m->functions.count; i++) {
        *out = &m->functions.items[i];
        if ((*out)->name == name || !strcmp((*out)->name, name)) return PLIM_OK;
    }
    size_t image = image_of(name);
    if (image == plim_cuda_image_count) {
        snprintf(m->context->message, sizeof(m->context->message), "no image has the kernel %s",
                 name);
        return PLIM_INTERNAL;
    }
    CUmodule module;
    struct plim_cuda_function found = {.name = name, .shared_bytes = PLAIN_SHARED_BYTES};
    enum plim_status st = load(m, image, &module);
    if (st == PLIM_OK)
        st = PLIM_CUDA_CALL(m->context, cuModuleGetFunction, &found.function, module, name);
    if (st == PLIM_OK) st = PLIM_ARRAY_PUSH(&m->functions, found);
    if (st == PLIM_OK) *out = &m->functions.items[m->functions.count - 1];
    return st;
}

/* More shared memory than the default has to be requested once per kernel. */
static enum plim_status allow_shared(struct plim_cuda_modules *m, struct plim_cuda_function *f,
                                     uint32_t bytes)
{
    if (bytes <= f->shared_bytes) return PLIM_OK;
    enum plim_status st =
        PLIM_CUDA_CALL(m->context, cuFuncSetAttribute, f->function,
                       CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, (int)bytes);
    if (st == PLIM_OK) f->shared_bytes = bytes;
    return st;
}

enum plim_status plim_cuda_modules_launch(struct plim_cuda_modules *m,
                                          const struct plim_cuda_launch *launch)
{
    const uint32_t *grid = launch->grid, *block = launch->block;
    struct plim_cuda_function *f;
    void *parameters[] = {(void *)launch->args};
    enum plim_status st = find(m, launch->kernel, &f);
    if (st == PLIM_OK) st = allow_shared(m, f, launch->shared_bytes);
    if (st != PLIM_OK) return st;
    return PLIM_CUDA_CALL(m->context, cuLaunchKernel, f->function, grid[0], grid[1], grid[2],
                          block[0], block[1], block[2], launch->shared_bytes, m->context->stream,
                          parameters, NULL);
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
