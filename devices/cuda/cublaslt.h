/* Matrix products on cuBLASLt, loaded at run time. */
#ifndef PLIM_DEVICES_CUDA_CUBLASLT_H
#define PLIM_DEVICES_CUDA_CUBLASLT_H

#include "lib_host.h"

struct plim_blaslt;

/* Needs a current CUDA context. PLIM_NODEVICE: the library is missing; `err` tells what helps; PLIM_OOM: the GPU is too
 * full even for a handle. `host` must outlive the handle. */
enum plim_status plim_blaslt_open(const struct plim_lib_host *host, struct plim_blaslt **out,
                                  struct plim_error *err) PLIM_MUST_CHECK;
void plim_blaslt_close(struct plim_blaslt *blaslt); /* NULL is allowed */

/* PLIM_OP_MATMUL, enqueued on the host's stream. fp32 (TF32 if the operation allows it), bf16 and fp16, accumulated in
 * fp32; a 16-bit product may be fp32. Its workspace is op->scratch[0] only. The algorithm is cuBLASLt's first choice
 * for this layout, alignment and workspace, and is cached. If cuBLASLt cannot read c in its layout, c is copied into
 * the result first; an empty sum (k = 0) is a fill or a copy. PLIM_UNSUPPORTED: neither dimension of a matrix has
 * stride 1, mixed types, or cuBLASLt has no algorithm. */
enum plim_status plim_blaslt_matmul(struct plim_blaslt *blaslt, const struct plim_op *op,
                                    struct plim_error *err) PLIM_MUST_CHECK;

/* PLIM_OP_MATMUL_INT8, likewise; cuBLASLt requires k and n to be multiples of 4. */
enum plim_status plim_blaslt_matmul_int8(struct plim_blaslt *blaslt, const struct plim_op *op,
                                         struct plim_error *err) PLIM_MUST_CHECK;

#endif
