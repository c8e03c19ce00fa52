/* torch.distributed.fsdp.fully_shard() (FSDP2) of each block of a decoder and of the decoder itself, on one rank of
 * several: the memory of the shards, of unsharded parameters while they are needed, and of the buffers of all-gathers
 * and reduce-scatters. The other ranks are assumed to behave like this one; nothing is exchanged, so this runs only on
 * a device that computes nothing. Rank 0 holds the largest shard of every parameter.
 *
 * Which memory is held, and when (torch 2.11: torch/distributed/fsdp/_fully_shard/, files _fsdp_param_group.py,
 * _fsdp_collectives.py, _fsdp_param.py, _fsdp_state.py):
 *
 * - A unit is a block with its parameters, or the decoder with all other parameters. The model is created on the meta
 *   device, sharded and materialised (to_empty()): of a parameter with n rows this rank holds ceil(n / world), in the
 *   type of the weights. Optimizer states have the shapes of the shards.
 * - Before a unit's forward its shards are cast to param_dtype (one temporary for all of them) and gathered into one
 *   buffer, both on a separate stream; then each unsharded parameter is allocated again and copied out of the buffer.
 *   The buffer lives until the next unit is copied out. After the forward the unsharded parameters are freed, except
 *   those of the decoder itself.
 * - Before a unit's backward the same happens unless it is still unsharded, and the unit that ran before it is already
 *   gathered (prefetch), to be copied out when its turn comes.
 * - When the gradient of a unit's input is complete, its unsharded parameters are freed, and the gradients of its
 *   parameters are copied into one buffer of reduce_dtype, padded to a multiple of the world size, and freed. The
 *   reduce-scatter's output, this rank's part, is another buffer, on a third stream. The gradients of the shards are
 *   views of it, or it is added to those of an earlier micro-step. The input buffer lives until the next unit is
 *   reduced. A unit whose input needs no gradient, and the decoder itself, are reduced at the end of backward.
 * - A micro-step without gradient synchronisation keeps its gradients unsharded, in reduce_dtype.
 * - PyTorch 2.15 frees the buffer of the last unit before the next one is copied out, and all gradients when they are
 *   packed; gradients that are kept are cast by autograd, one by one, as they are computed.
 *
 * Mixed precision is a policy (param_dtype, reduce_dtype, casts of the blocks' inputs), not autocast.
 *
 * accelerate 1.15, and therefore transformers' Trainer, wraps the model in another way (fsdp2_prepare_model(),
 * accelerate/utils/fsdp_utils.py):
 *
 * - The embedding is a unit, and the last norm and the head together are one, the tail, which stays unsharded from
 *   forward to backward; a tied embedding belongs to the tail. All other parameters (learned positions, norms
 *   elsewhere) belong to the root, as do a vision tower's blocks if fsdp_transformer_layer_cls_to_wrap names only the
 *   class of the text's blocks.
 * - The model is loaded on the host: a unit's parameters are moved to the GPU, this rank's shard of each is copied out,
 *   padded, and they are freed. References to three of them remain until the whole model is sharded.
 * - With cpu_ram_efficient_loading the model is on the meta device when it is sharded; then each parameter is moved to
 *   the GPU in full, and its shards are sent to the ranks. This does not apply to a quantised model.
 * - A quantised model is on the GPU when it is sharded, and stays unsharded until all of it is sharded. Codes stored as
 *   floats (bnb_4bit_quant_storage) are sharded and gathered; codes stored as integers are kept in full by every rank
 *   (ignored_params). Scales are not parameters: every rank has them.
 * - In mixed precision, weights are fp32, gradients are reduced in the compute type, and the model's outputs, including
 *   the loss, are cast to it.
 *
 * axolotl 0.19 replaces that function (monkeypatch/accelerate/fsdp2.py): the units are the blocks and the root, which
 * is resharded after forward like them, and weights keep their type. Each matrix of an adapter is a unit, too, which
 * its module unshards; axolotl's fused functions call unshard() instead of that module, and then it is resharded only
 * at the end of backward. */
#ifndef PLIM_TRAIN_FSDP_H
#define PLIM_TRAIN_FSDP_H

#include "link.h"
#include "workloads/engine/autograd.h"
#include "workloads/models/model.h"

struct fsdp_parameter {
    struct tensor *unsharded; /* what the model uses; has memory while its unit is unsharded */
    /* Shares the memory of `unsharded`, until a module replaces the latter's data for good. */
    struct tensor *all_gather_output;
    struct tensor *shard;            /* this rank's rows, for the optimizer */
    struct tensor *accumulated_grad; /* unsharded, in reduce_dtype, of micro-steps without reduction, or NULL */
    int64_t row_elements, rows;      /* of the unsharded parameter; this rank has at most ceil(rows / world) */
    size_t index;                    /* in the order of the model */
};

/* One reduce-scatter. */
struct fsdp_reduction {
    struct fsdp_parameter **parameters;
    struct tensor **grads; /* unsharded */
    size_t count;
    int64_t elements; /* of this rank's part, padded */
};

/* The units, in the order in which gradients that are not yet reduced are reduced at the end of backward. The units of
 * the embedding and of the tail have parameters only with accelerate. */
enum { FSDP_ROOT, FSDP_EMBEDDING, FSDP_TAIL, FSDP_BLOCKS };

struct fsdp_unit {
    struct fsdp *fsdp;
    struct fsdp_parameter *parameters;
    size_t count;
    struct tensor *all_gather_buffer; /* output of an all-gather that has not been copied out yet */
    bool is_unsharded, reshards_after_forward, in_backward, is_reduced;
    size_t modules, modules_left; /* of the embedding or the tail: all, and those that have not run yet */
    size_t post_forward_index; /* in fsdp.post_forward_order */
    double arrival; /* when `all_gather_buffer` is complete */
    struct node_hook before_backward, after_backward;
};

struct fsdp {
    struct decoder *model; /* NULL: nothing is sharded */
    int64_t world, rank;
    bool is_mixed, reduces, by_accelerate, by_axolotl; /* by_axolotl implies by_accelerate */
    bool has_bare_norm; /* accelerate: a last norm without a weight belongs to the tail */
    enum plim_dtype param_dtype, reduce_dtype; /* if is_mixed */
    struct decoder_hooks hooks;
    struct module_hooks modules; /* by_accelerate */
    struct parameters sharded; /* for the optimizer: the trainable shards */
    struct fsdp_parameter *parameters;
    struct fsdp_unit *units; /* FSDP_ROOT etc., one per block from FSDP_BLOCKS on, then axolotl's of matrices */
    size_t first_matrix;          /* index of the first adapter matrix in `units`; their count if there are none */
    struct fsdp_unit **sequence;  /* units in the order in which they are sharded */
    bool block_recomputes;        /* the running block is in its backward (recomputed) */
    size_t unit_count;
    struct fsdp_unit **post_forward_order; /* units in the order in which their forwards ended */
    size_t post_forward_count;
    struct fsdp_unit *last_evaluated; /* the last unit of an evaluation since the last backward; NULL: none */
    struct fsdp_reduction reduction; /* in progress */
    int64_t *chunks;                 /* bytes per rank of each parameter of the running collective */
    struct tensor **scratch;         /* room for one tensor per parameter */
    struct tensor *inputs, *pixels; /* the arguments of the running forward */
    struct tensor *copied_out;   /* all-gather buffer that is kept until the next copy-out */
    struct tensor *reduce_scatter_input; /* of the last reduce-scatter, likewise */
    struct link *link;           /* lent */
    double may_gather_at;        /* when the buffers of the copy-out before the last were free */
    double copied_out_at;        /* time of the last copy-out */
    double reduced_at;           /* when the last reduce-scatter is complete */
};

/* Returns why FSDP2 cannot train with this setting, in one line; NULL if it can. */
const char *fsdp_refuses(const struct plim_device_info *info, const struct plim_model_config *config,
                         const struct plim_train_setting *setting);
/* Shards `model`, which was created on the meta device (engine.meta). `model` and `link` must outlive `f`. */
enum plim_status fsdp_create(struct engine *e, struct decoder *model, struct link *link,
                             struct fsdp *f) PLIM_MUST_CHECK;
/* Returns the first rank after this one that has fewer rows of some parameter than the rank before it; 0 if there is
 * none. Of n rows the first ranks have ceil(n / world) each, the next rank has the rest, and the others have none. */
int64_t fsdp_next_rank(const struct fsdp *f);
/* Returns how many ranks have weights of experts if there are more ranks than experts (stacks of experts are sharded in
 * their first dimension, the experts); otherwise 0. */
int64_t fsdp_expert_ranks(const struct fsdp *f);
void fsdp_finish(struct fsdp *f); /* frees host memory; the engine frees the tensors */

/* Call before and after model(**given). `reduces`: its backward reduces the gradients. Images of `given` are cast in
 * mixed precision: the cast tensor is in `given` until fsdp_after_forward(), which frees it. `outputs` are the
 * floating-point outputs, named or NULL, and `trained` is the one that backward starts from; accelerate's
 * mixed-precision policy casts them in their order. */
enum { FSDP_OUTPUTS = 5 }; /* at most */
void fsdp_before_forward(struct engine *e, struct fsdp *f, bool reduces, struct batch *given);
void fsdp_after_forward(struct engine *e, struct fsdp *f, struct tensor *trained, struct tensor **const *outputs,
                        size_t count);

#endif
