/* What computes matmul and attention is not here yet. */
#include "cuda_internal.h"

enum plim_status plim_cuda_matmul(struct plim_cuda *cuda, const struct plim_op *op)
{
    (void)cuda, (void)op;
    return PLIM_UNSUPPORTED;
}

enum plim_status plim_cuda_attention(struct plim_cuda *cuda, const struct plim_op *op)
{
    (void)cuda, (void)op;
    return PLIM_UNSUPPORTED;
}

void plim_cuda_libraries_close(struct plim_cuda *cuda)
{
    (void)cuda;
}
