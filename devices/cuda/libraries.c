#include "libraries.h"
#include "cublaslt.h"
#include "fused_attention.h"
#include <stdio.h>
#include <string.h>

/* --- what the libraries need from the device -------------------------------------------------- */

static enum plim_status launch_ours(void *user, const struct plim_op *op)
{
    const struct plim_cuda_libraries *l = user;
    return plim_cuda_modules_run(l->modules, op);
}

static enum plim_status driver_view(void *user)
{
    const struct plim_cuda_libraries *l = user;
    if (PLIM_CUDA_CALL(l->context, cuCtxSynchronize) != PLIM_OK) return PLIM_LOST;
    if (plim_cuda_context_free_bytes(l->context) >= PLIM_CUDA_NEARLY_FULL_BYTES) return PLIM_OK;
    l->context->suspect = true;
    return PLIM_OOM;
}

void plim_cuda_libraries_init(struct plim_cuda_libraries *l, struct plim_cuda_context *context,
                              struct plim_cuda_modules *modules)
{
    *l = (struct plim_cuda_libraries){.context = context, .modules = modules};
    l->host = (struct plim_lib_host){
        .stream = context->stream, .launch = launch_ours, .driver_view = driver_view, .user = l};
}

void plim_cuda_libraries_remember(struct plim_cuda_libraries *l, int fd)
{
    const struct plim_device_info *info = l->modules->info;
    memset(&l->memo, 0, sizeof(l->memo));
    l->memo.fd = fd;
    snprintf(l->memo.gpu, sizeof(l->memo.gpu), "%s, %d, %d SMs, driver %d", info->name,
             info->compute_capability, info->multiprocessors, l->context->driver->version);
    l->host.memo = &l->memo;
}

/* Makes the message of a library's failure that of the device. */
static enum plim_status set_message(struct plim_cuda_context *c, enum plim_status st,
                                    const struct plim_error *err)
{
    if (st && *err->text) snprintf(c->message, sizeof(c->message), "%s", err->text);
    return st;
}

/* --- operations ------------------------------------------------------------------------------- */

enum plim_status plim_cuda_matmul(struct plim_cuda_libraries *l, const struct plim_op *op)
{
    struct plim_error err = PLIM_ERROR_INIT;
    enum plim_status st = l->blaslt ? PLIM_OK : plim_blaslt_open(&l->host, &l->blaslt, &err);
    if (!st)
        st = op->kind == PLIM_OP_MATMUL_INT8 ? plim_blaslt_matmul_int8(l->blaslt, op, &err)
                                             : plim_blaslt_matmul(l->blaslt, op, &err);
    return set_message(l->context, st, &err);
}

static enum plim_status fused_attention(struct plim_cuda_libraries *l, const struct plim_op *op)
{
    struct plim_error err = PLIM_ERROR_INIT;
    enum plim_status st = PLIM_OK;
    if (l->fused_is_missing) return PLIM_UNSUPPORTED;
    if (!l->fused) {
        st = plim_fused_open(&l->host, &l->fused, &err);
        l->fused_is_missing = st == PLIM_NODEVICE;
        if (st == PLIM_NODEVICE) st = PLIM_UNSUPPORTED;
    }
    if (!st) st = plim_fused_attention(l->fused, op, &err);
    return set_message(l->context, st, &err);
}

/* PyTorch's kernels use tensor cores for 16-bit types if the GPU has them, and for fp32 from 8.0 on (as TF32, with
 * three products). */
static bool pytorch_has_tensor_cores(const struct plim_device_info *info, const struct plim_op *op)
{
    return info->compute_capability >= (op->in[0]->dtype == PLIM_F32 ? 80 : 70);
}

/* Returns the engine that our kernels would use. */
static enum plim_sdpa_engine own_engine(const struct plim_device_info *info,
                                        const struct plim_op *op)
{
    if (plim_cuda_attention_has_tensor_cores(info, op)) return PLIM_SDPA_BY_TENSOR_CORES;
    return pytorch_has_tensor_cores(info, op) ? PLIM_SDPA_BY_FALLBACK : PLIM_SDPA_BY_FP32;
}

/* Our kernels use the same operands and the same scratch, so what fits does not change. cuDNN is preferred if PyTorch
 * uses it, and to our fall-back kernels. */
enum plim_status plim_cuda_attention(struct plim_cuda_libraries *l, const struct plim_op *op,
                                     unsigned *engines)
{
    enum plim_sdpa_engine engine = own_engine(l->modules->info, op);
    enum plim_status st = PLIM_UNSUPPORTED;
    if (op->sdpa == PLIM_SDPA_CUDNN || engine == PLIM_SDPA_BY_FALLBACK) {
        st = fused_attention(l, op);
        if (!st) engine = PLIM_SDPA_BY_CUDNN;
    }
    if (st == PLIM_UNSUPPORTED) st = plim_cuda_modules_run(l->modules, op);
    if (!st) *engines |= engine;
    return st;
}

void plim_cuda_libraries_close(struct plim_cuda_libraries *l)
{
    plim_fused_close(l->fused);
    plim_blaslt_close(l->blaslt);
    l->fused = NULL;
    l->blaslt = NULL;
}
