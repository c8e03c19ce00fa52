/* Matrix products on cuBLASLt, loaded at run time. */
#ifndef PLIM_DEVICES_CUDA_CUBLASLT_H
#define PLIM_DEVICES_CUDA_CUBLASLT_H

#include "lib_host.h"

struct plim_blaslt;

/* Needs a current CUDA context. PLIM_NODEVICE: no library, with what helps in `err`; PLIM_OOM: the
 * GPU is so full that not even a handle fits. `host` is used until the close. */
enum plim_status plim_blaslt_open(const struct plim_lib_host *host, struct plim_blaslt **out,
                                  struct plim_error *err) PLIM_MUST_CHECK;
void plim_blaslt_close(struct plim_blaslt *blaslt); /* NULL is fine */

/* PLIM_OP_MATMUL, enqueued on the host's stream. fp32 (TF32 where the operation allows it), bf16
 * and fp16, sums in fp32; a 16-bit product may be fp32. Works in op->scratch[0] and nowhere else.
 * The algorithm is cuBLASLt's first choice for this layout, alignment and workspace, and is remembered.
 * Where it cannot read c as it lies, c is copied into the result first; an empty sum (k = 0) is a
 * fill or a copy. PLIM_UNSUPPORTED: neither dimension of a matrix has stride 1, mixed types, or
 * cuBLASLt has no algorithm. */
enum plim_status plim_blaslt_matmul(struct plim_blaslt *blaslt, const struct plim_op *op,
                                    struct plim_error *err) PLIM_MUST_CHECK;

/* PLIM_OP_MATMUL_INT8, in the same way; cuBLASLt requires k and n to be multiples of 4. */
enum plim_status plim_blaslt_matmul_int8(struct plim_blaslt *blaslt, const struct plim_op *op,
                                         struct plim_error *err) PLIM_MUST_CHECK;

#endif
