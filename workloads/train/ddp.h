/* torch.nn.parallel.DistributedDataParallel on rank 0 of several: the memory of
 * its buckets, and its copies. The other ranks are assumed to contribute the same values as this one, so
 * that an all-reduce changes no value and is not computed.
 *
 * What is held, and from when to when (torch 2.11: torch/nn/parallel/distributed.py and
 * torch/csrc/distributed/c10d/reducer.cpp, comm.cpp):
 *
 * - The constructor compares the parameters' shapes over the ranks (small temporaries) and
 *   broadcasts parameters and buffers, flattened into pieces of 250 MiB, two of which are in flight.
 * - Then one bucket holds the gradients of all parameters that train. Before the forward that follows
 *   the first reduction it is replaced by buckets in the order in which the gradients came:
 *   the first closes at 1 MiB, the others at 25 MiB (with bucket_cap_mb all at that), each with the
 *   parameter that reaches the limit.
 *   Elements lie one after the other without padding. The buckets stay, beside the gradients.
 * - A gradient is copied into its bucket once it is accumulated, and back when backward has ended.
 *   With gradient_as_bucket_view it becomes a view of the bucket, and its own memory is freed.
 * - With find_unused_parameters the constructor's buckets are kept, cut at their limits in
 *   the order of the parameters, the last ones first; and the model's outputs, the logits among them,
 *   are copied after each forward.
 * - With static_graph the first backward only accumulates; after it all gradients are copied into
 *   the constructor's bucket and back. Until then the outputs are copied as above. The reduction that
 *   follows tells the order of the buckets, so they are replaced one reduction later.
 * - Buffers are broadcast, flattened, before each forward that follows one that was to be reduced. The list of them
 *   that is made for it is kept until the next: a buffer that a forward replaces (rotary frequencies) lives on in it.
 *
 * Under no_sync() gradients are accumulated, and nothing else happens. PyTorch frees the first bucket up to
 * a tenth of a second after its reduction has ended (NCCL's watchdog looks ten times a second);
 * here it is freed when it is replaced.
 */
#ifndef PLIM_TRAIN_DDP_H
#define PLIM_TRAIN_DDP_H

#include "link.h"
#include "workloads/models/model.h"

struct ddp_bucket {
    struct tensor *gradients; /* of its parameters, one after the other */
    int64_t elements;
    size_t parameters; /* how many it holds */
    size_t ready;      /* how many of them have their gradient in this backward */
    enum plim_dtype dtype;
};

struct ddp {
    struct decoder *model; /* NULL: there is no data parallelism */
    const struct plim_ddp *options;
    int64_t world;
    /* by place in the model's list of parameters that train */
    size_t *bucket_of;
    int64_t *offset; /* in elements of the bucket */
    struct ddp_bucket *buckets;
    size_t bucket_count;
    struct tensor **ready; /* parameters in the order of their gradients, at the first reduction */
    size_t ready_count;
    bool rebuilt, reduces, broadcasts;
    bool delays; /* static_graph, before the first backward has ended */
    struct tensor **states; /* room for all parameters and buffers */
    struct tensor *buffers[DECODER_BUFFERS]; /* modules_buffers; NULL: fewer */
    struct tensor *used;    /* find_unused_parameters, static_graph: one number a parameter */
    struct link *link;      /* lent */
    size_t sent;            /* buckets, in this backward */
    double began;           /* when the first of them was sent */
};

/* Why DDP cannot train this setting, in one line; NULL: it can. */
const char *ddp_refuses(const struct plim_train_setting *setting);
/* DistributedDataParallel(model); `model` and `link` outlive it. All parameters that train have one type. */
enum plim_status ddp_create(struct engine *e, struct decoder *model, int64_t world,
                            struct link *link, struct ddp *d) PLIM_MUST_CHECK;
void ddp_finish(struct ddp *d); /* host memory; tensors go with the engine */

/* Call before a forward; `reduces`: its backward is to reduce the gradients (it is not under no_sync()). */
void ddp_before_forward(struct engine *e, struct ddp *d, bool reduces);
/* Copies the outputs of a forward, with find_unused_parameters or static_graph. A plain loop's autocast is still on
 * then, Trainer's is not. Loss or logits may be NULL, and so may an encoder's output. */
void ddp_copy_outputs(struct engine *e, const struct ddp *d, struct tensor **loss, struct tensor **logits,
                      struct tensor **encoded);
/* The same for the outputs of a model with TRL's fused head. */
void ddp_copy_scores(struct engine *e, const struct ddp *d, struct fused_output *out);
/* Call before another forward of the same micro-step, without gradients. */
void ddp_before_measuring(struct engine *e, struct ddp *d);
/* Does a bucket still wait for a gradient after a backward? A parameter without one, which DistributedDataParallel was
 * not told to look for, keeps its bucket from being reduced, and PyTorch fails. */
bool ddp_waits_for_unused(const struct ddp *d);
/* Call when the backward has run. */
void ddp_after_backward(struct engine *e, struct ddp *d);

#endif
