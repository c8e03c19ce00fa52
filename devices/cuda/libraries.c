/* What NVIDIA's libraries compute for the `cuda` device, each opened at its first use. */
#include "attention.h"
#include "cublaslt.h"
#include "cuda_internal.h"
#include <stdio.h>
#include <stdlib.h>

struct plim_cuda_libraries {
    struct plim_lib_host host;
    struct plim_blaslt *blaslt;
    struct plim_fused *fused;
    bool fused_is_missing; /* looked for and not found: our kernels do it */
};

/* --- what they need of the device ------------------------------------------------------------- */

static enum plim_status launch_ours(void *user, const struct plim_op *op)
{
    return plim_cuda_launch_kernels(user, op);
}

static enum plim_status driver_view(void *user)
{
    struct plim_cuda *cuda = user;
    if (PLIM_CUDA_CALL(cuda, cuCtxSynchronize) != PLIM_OK) return PLIM_LOST;
    if (plim_cuda_driver_free_bytes(cuda) >= PLIM_CUDA_NEARLY_FULL_BYTES) return PLIM_OK;
    cuda->suspect = true;
    return PLIM_OOM;
}

static struct plim_cuda_libraries *libraries_of(struct plim_cuda *cuda)
{
    struct plim_cuda_libraries *l = cuda->libraries;
    if (l) return l;
    l = cuda->libraries = calloc(1, sizeof(*l));
    if (l)
        l->host = (struct plim_lib_host){.stream = cuda->stream,
                                         .launch = launch_ours,
                                         .driver_view = driver_view,
                                         .user = cuda};
    return l;
}

/* The message of a library's failure is the device's last failure. */
static enum plim_status keep_message(struct plim_cuda *cuda, enum plim_status st,
                                     const struct plim_error *err)
{
    if (st && *err->text) snprintf(cuda->message, sizeof(cuda->message), "%s", err->text);
    return st;
}

/* --- operations ------------------------------------------------------------------------------- */

enum plim_status plim_cuda_matmul(struct plim_cuda *cuda, const struct plim_op *op)
{
    struct plim_cuda_libraries *l = libraries_of(cuda);
    struct plim_error err = PLIM_ERROR_INIT;
    enum plim_status st = l ? PLIM_OK : PLIM_NOMEM;
    if (!st && !l->blaslt) st = plim_blaslt_open(&l->host, &l->blaslt, &err);
    if (!st) st = plim_blaslt_matmul(l->blaslt, op, &err);
    return keep_message(cuda, st, &err);
}

static enum plim_status fused_attention(struct plim_cuda *cuda, const struct plim_op *op)
{
    struct plim_cuda_libraries *l = libraries_of(cuda);
    struct plim_error err = PLIM_ERROR_INIT;
    enum plim_status st = l ? PLIM_OK : PLIM_NOMEM;
    if (!st && l->fused_is_missing) return PLIM_UNSUPPORTED;
    if (!st && !l->fused) {
        st = plim_fused_open(&l->host, &l->fused, &err);
        l->fused_is_missing = st == PLIM_NODEVICE;
        if (st == PLIM_NODEVICE) st = PLIM_UNSUPPORTED;
    }
    if (!st) st = plim_fused_attention(l->fused, op, &err);
    return keep_message(cuda, st, &err);
}

/* Ours take the same operands and the same scratch, so what fits does not change. */
enum plim_status plim_cuda_attention(struct plim_cuda *cuda, const struct plim_op *op)
{
    enum plim_status st = fused_attention(cuda, op);
    return st == PLIM_UNSUPPORTED ? plim_cuda_launch_kernels(cuda, op) : st;
}

void plim_cuda_libraries_close(struct plim_cuda *cuda)
{
    struct plim_cuda_libraries *l = cuda->libraries;
    if (!l) return;
    plim_fused_close(l->fused);
    plim_blaslt_close(l->blaslt);
    free(l);
    cuda->libraries = NULL;
}
