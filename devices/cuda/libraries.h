/* Operations of the `cuda` device that NVIDIA's libraries compute; each library is opened at its first use. */
#ifndef PLIM_DEVICES_CUDA_LIBRARIES_H
#define PLIM_DEVICES_CUDA_LIBRARIES_H

#include "lib_host.h"
#include "kernel_modules.h"

struct plim_blaslt;
struct plim_fused;

struct plim_cuda_libraries {
    struct plim_cuda_context *context; /* lent, like the modules */
    struct plim_cuda_modules *modules;
    struct plim_lib_host host;
    struct plim_memo memo;
    struct plim_blaslt *blaslt; /* NULL until it is needed, like the next */
    struct plim_fused *fused;
    bool fused_is_missing; /* cuDNN was not found: our kernels compute attention */
};

/* Opens nothing yet. `libraries` must not move until it is closed. */
void plim_cuda_libraries_init(struct plim_cuda_libraries *libraries,
                              struct plim_cuda_context *context, struct plim_cuda_modules *modules);
/* From now on the libraries' choices and plans are stored in the file, and looked up there first (memo.h). */
void plim_cuda_libraries_remember(struct plim_cuda_libraries *libraries, int fd);
void plim_cuda_libraries_close(struct plim_cuda_libraries *libraries);

enum plim_status plim_cuda_matmul(struct plim_cuda_libraries *libraries,
                                  const struct plim_op *op) PLIM_MUST_CHECK;
/* ATTENTION and ATTENTION_BACKWARD, by cuDNN or by our kernels. Sets the bit of the engine that was used in `engines`
 * (enum plim_sdpa_engine). */
enum plim_status plim_cuda_attention(struct plim_cuda_libraries *libraries,
                                     const struct plim_op *op, unsigned *engines) PLIM_MUST_CHECK;

#endif
