/* Our kernels on the GPU: the images in this executable, each loaded when one of its kernels is first launched. */
#ifndef PLIM_DEVICES_CUDA_KERNEL_MODULES_H
#define PLIM_DEVICES_CUDA_KERNEL_MODULES_H

#include "autotune/base/array.h"
#include "context.h"
#include "kernels.h"

struct plim_cuda_function {
    const char *name;
    CUfunction function;
    uint32_t shared_bytes; /* maximum dynamic shared memory set for it so far */
};

/* Ready for use once the two pointers are set; the rest is zeroed. */
struct plim_cuda_modules {
    struct plim_cuda_context *context;   /* lent */
    const struct plim_device_info *info; /* of its GPU, lent */
    CUmodule *loaded;                    /* one per image; NULL: not loaded */
    PLIM_ARRAY(struct plim_cuda_function) functions;
};

/* PLIM_OOM may come from loading the image that contains the kernel. */
enum plim_status plim_cuda_modules_launch(struct plim_cuda_modules *modules,
                                          const struct plim_cuda_launch *launch) PLIM_MUST_CHECK;
/* Runs all launches that kernels.h plans for an operation. */
enum plim_status plim_cuda_modules_run(struct plim_cuda_modules *modules,
                                       const struct plim_op *op) PLIM_MUST_CHECK;
void plim_cuda_modules_close(struct plim_cuda_modules *modules);

#endif
