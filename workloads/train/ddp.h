/* torch.nn.parallel.DistributedDataParallel on one rank (rank 0): the memory of its buckets, and its copies. The other
 * ranks are assumed to contribute the same values as this one, so an all-reduce changes no value and is not computed.
 *
 * Which memory is held, and when (torch 2.11: torch/nn/parallel/distributed.py and
 * torch/csrc/distributed/c10d/reducer.cpp, comm.cpp):
 *
 * - The constructor compares the parameters' shapes across the ranks (small temporaries) and broadcasts parameters and
 *   buffers, flattened into chunks of 250 MiB, two of which are in flight.
 * - After that, one bucket holds the gradients of all trainable parameters. Before the first forward after the first
 *   reduction it is replaced by buckets in the order in which the gradients became ready: the first bucket is closed at
 *   1 MiB, the others at 25 MiB (with bucket_cap_mb all at that size), each by the parameter that reaches the limit.
 *   Elements are adjacent, without padding. The buckets are kept, in addition to the gradients.
 * - A gradient is copied into its bucket when it has been accumulated, and copied back at the end of backward. With
 *   gradient_as_bucket_view it becomes a view of the bucket, and its own memory is freed.
 * - With find_unused_parameters the constructor's buckets are kept; they are filled up to their limits in reverse order
 *   of the parameters. The model's outputs, including the logits, are copied after each forward.
 * - With static_graph the first backward only accumulates; after it all gradients are copied into the constructor's
 *   bucket and back. Until then the outputs are copied as above. The following reduction determines the order of the
 *   buckets, so they are replaced one reduction later.
 * - Buffers are broadcast, flattened, before each forward that follows one whose gradients are reduced. The list of
 *   buffers made for a broadcast is kept until the next one: a buffer that a forward replaces (rotary frequencies)
 *   stays alive in it.
 *
 * Under no_sync() gradients are only accumulated. PyTorch frees the first bucket up to a tenth of a second after its
 * reduction has ended (NCCL's watchdog polls ten times a second); here it is freed when it is replaced. */
#ifndef PLIM_TRAIN_DDP_H
#define PLIM_TRAIN_DDP_H

#include "link.h"
#include "workloads/models/model.h"

struct ddp_bucket {
    struct tensor *gradients; /* gradients of its parameters, adjacent */
    int64_t elements;
    size_t parameters; /* number of parameters in it */
    size_t ready;      /* how many of them have received their gradient in this backward */
    enum plim_dtype dtype;
};

struct ddp {
    struct decoder *model; /* NULL: no data parallelism */
    const struct plim_ddp *options;
    int64_t world;
    /* indexed by a parameter's position in the model's list of trainable parameters */
    size_t *bucket_of;
    int64_t *offset; /* in elements of the bucket */
    struct ddp_bucket *buckets;
    size_t bucket_count;
    struct tensor **ready; /* parameters in the order in which their gradients were ready in the first reduction */
    size_t ready_count;
    bool rebuilt, reduces, broadcasts;
    bool delays; /* static_graph, until the first backward has ended */
    struct tensor **states; /* room for all parameters and buffers */
    struct tensor *buffers[DECODER_BUFFERS]; /* modules_buffers; NULL after the last one */
    struct tensor *used;    /* find_unused_parameters, static_graph: one number per parameter */
    struct link *link;      /* lent */
    size_t sent;            /* buckets sent in this backward */
    double began_at;        /* when the first of them was sent */
};

/* Returns why DDP cannot train with this setting, in one line; NULL if it can. */
const char *ddp_refuses(const struct plim_train_setting *setting);
/* DistributedDataParallel(model). `model` and `link` must outlive `d`. All trainable parameters have the same type. */
enum plim_status ddp_create(struct engine *e, struct decoder *model, int64_t world,
                            struct link *link, struct ddp *d) PLIM_MUST_CHECK;
void ddp_finish(struct ddp *d); /* frees host memory; the engine frees the tensors */

/* Call before a forward. `reduces`: the gradients of its backward are reduced (it is not under no_sync()). */
void ddp_before_forward(struct engine *e, struct ddp *d, bool reduces);
/* Copies the outputs of a forward, with find_unused_parameters or static_graph. In a plain loop autocast is still
 * enabled at that point, with Trainer it is not. The loss, the logits and an encoder's output may each be NULL. */
void ddp_copy_outputs(struct engine *e, const struct ddp *d, struct tensor **loss, struct tensor **logits,
                      struct tensor **encoded);
/* Copies the outputs of a model with TRL's fused head, likewise. */
void ddp_copy_scores(struct engine *e, const struct ddp *d, struct fused_output *out);
/* Call before a further forward without gradients in the same micro-step. */
void ddp_before_measuring(struct engine *e, struct ddp *d);
/* True if a bucket still lacks a gradient after a backward. Without find_unused_parameters, a parameter without a
 * gradient prevents its bucket from being reduced, and PyTorch fails. */
bool ddp_waits_for_unused(const struct ddp *d);
/* Call after the backward. */
void ddp_after_backward(struct engine *e, struct ddp *d);

#endif
