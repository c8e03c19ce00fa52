/* Attention by cuDNN's fused engines, loaded at run time. */
#ifndef PLIM_DEVICES_CUDA_FUSED_ATTENTION_H
#define PLIM_DEVICES_CUDA_FUSED_ATTENTION_H

#include "lib_host.h"

struct plim_fused;

/* Needs a current CUDA context. PLIM_NODEVICE: the library is missing; `err` tells what helps; PLIM_OOM: the GPU is too
 * full even for a handle. `host` must outlive the handle. */
enum plim_status plim_fused_open(const struct plim_lib_host *host, struct plim_fused **out,
                                 struct plim_error *err) PLIM_MUST_CHECK;
void plim_fused_close(struct plim_fused *fused); /* NULL is allowed */

/* PLIM_OP_ATTENTION, PLIM_OP_ATTENTION_BACKWARD, enqueued on the host's stream. Uses no memory other than the operands
 * and the scratch blocks: backward stores its row sums and fp32 sums of dQ there, and the engine its workspace. The
 * first call of a shape compiles a plan, later ones reuse it.
 *
 * Dropout uses cuDNN's own random numbers, the same in forward and backward for one seed. It is computed only if
 * PyTorch uses cuDNN (`op->sdpa`), because both directions have an engine and scratch then.
 *
 * PLIM_UNSUPPORTED, with the reason in `err`, if another kernel has to compute it: fp32; other dropout; head sizes that
 * are not multiples of 8 or too large for the GPU; layouts without a last stride of 1; a GPU without an engine; scratch
 * that is too small. Refusals are cached too, so repeated calls are cheap. */
enum plim_status plim_fused_attention(struct plim_fused *fused, const struct plim_op *op,
                                      struct plim_error *err) PLIM_MUST_CHECK;

#endif
