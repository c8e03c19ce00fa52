/* torch.distributed.fsdp.fully_shard() (FSDP2) on each block of a decoder and on the decoder itself,
 * on rank 0 of several: the memory of shards, of whole parameters while they are needed, and of the
 * buffers of all-gathers and reduce-scatters. The other ranks are assumed to behave like this one;
 * nothing is exchanged, so only a device that computes nothing can run it. Rank 0 holds the
 * largest shard of every parameter.
 *
 * What is held, and from when to when (torch 2.11: torch/distributed/fsdp/_fully_shard/, files
 * _fsdp_param_group.py, _fsdp_collectives.py, _fsdp_param.py, _fsdp_state.py):
 *
 * - A unit is a block with its parameters, or the decoder with all others. The model is made on the
 *   meta device, sharded and materialised (to_empty()): of a parameter of n rows this rank has the
 *   first ceil(n / world), in the type of the weights. Optimizer states have the shards' shapes.
 * - Before a unit's forward its shards are cast to param_dtype (a temporary for all of them) and
 *   gathered into one buffer, both on a stream of their own; each whole parameter is then allocated
 *   again, and copied out of it. The buffer lives until the next unit is copied out. After the
 *   forward the whole parameters are freed, except the decoder's own.
 * - Before a unit's backward the same, if it is not whole; and the unit that ran before it is gathered
 *   already (prefetch), to be copied out when its turn comes.
 * - When the gradient of a unit's input is there, its whole parameters are freed, and the gradients
 *   of its parameters are copied into one buffer of reduce_dtype, padded to a multiple of the world, and
 *   freed; the reduced part of this rank is another buffer, on a third stream. The gradients of the
 *   shards are views of it, or it is added to those of an earlier micro-step. The first
 *   buffer lives until the next unit is reduced. A unit whose input needs no gradient, and the decoder's
 *   own, are reduced when backward has ended.
 * - A micro-step that does not reduce keeps its gradients whole, in reduce_dtype.
 * - PyTorch 2.15 frees the buffer of the last unit before the next one is copied out, and all gradients
 *   when they are packed; and autograd casts gradients that are to be kept, one by one, as they come.
 *
 * Mixed precision is a policy (param_dtype, reduce_dtype, inputs of blocks cast), not autocast.
 *
 * accelerate 1.15, and so transformers' Trainer, has a plan of its own (fsdp2_prepare_model(),
 * accelerate/utils/fsdp_utils.py):
 *
 * - The embedding is a unit, and the last norm and the head are one, the tail, which stays whole from forward to
 *   backward; a tied embedding belongs to the tail. All others (learned positions, norms elsewhere) are the root's.
 * - The model comes from the host: a unit's parameters are moved to the GPU, this rank's part of each is copied out
 *   of it, padded, and they are freed. References to three of them last until the whole model is sharded.
 * - With cpu_ram_efficient_loading it is on the meta device when it is sharded; then each parameter comes to the GPU
 *   in full, and its pieces go to the ranks. It does not apply to a quantised model.
 * - A quantised model is on the GPU when it is sharded, and stays whole until all of it is. Codes are sharded and
 *   gathered where they lie in floats (bnb_4bit_quant_storage); in integers every rank keeps all of them
 *   (ignored_params). Scales are no parameters: every rank has them.
 * - In mixed precision weights are fp32, gradients are reduced in the type of the computation, and the model's outputs,
 *   including the loss, are cast to it.
 *
 * axolotl 0.19 replaces that function (monkeypatch/accelerate/fsdp2.py): units are the blocks
 * and the root, which reshards like them, and weights keep their type. Each matrix of an adapter is a unit, too, which
 * its module makes whole; axolotl's fused functions call unshard() instead of that module, and then it is freed only
 * at the end of backward. */
#ifndef PLIM_TRAIN_FSDP_H
#define PLIM_TRAIN_FSDP_H

#include "link.h"
#include "workloads/engine/autograd.h"
#include "workloads/models/model.h"

struct fsdp_parameter {
    struct tensor *whole; /* the model's; has memory while its unit is whole */
    struct tensor *output; /* of all-gathers: shares whole's memory, until a module gives `whole` other data for good */
    struct tensor *shard; /* this rank's rows, for the optimizer */
    struct tensor *kept;  /* the whole gradient, in reduce_dtype, of micro-steps not reduced, or NULL */
    int64_t row_elements, rows; /* of the whole; ceil(rows / world) of them are this rank's */
    size_t place;               /* in the order of the model */
};

/* One reduce-scatter. */
struct fsdp_reduction {
    struct fsdp_parameter **of;
    struct tensor **grads; /* whole */
    size_t count;
    int64_t elements; /* of this rank's part, padded */
};

/* The units, in the order in which gradients that backward has left are reduced at its end. Those of the
 * embedding and of the tail have parameters only in accelerate's plan. */
enum { FSDP_ROOT, FSDP_EMBEDDING, FSDP_TAIL, FSDP_BLOCKS };

struct fsdp_unit {
    struct fsdp *fsdp;
    struct fsdp_parameter *parameters;
    size_t count;
    struct tensor *gathered; /* buffer that is not copied out yet */
    bool is_whole, reshards, in_backward, is_reduced;
    size_t modules, modules_left; /* those of the embedding and the tail; how many of them have not run yet */
    size_t place; /* in the order of forwards */
    double arrival; /* of `gathered` */
    struct node_hook before_backward, after_backward;
};

struct fsdp {
    struct decoder *model; /* NULL: nothing is sharded */
    int64_t world, rank;
    bool is_mixed, reduces, by_accelerate, by_axolotl; /* by_axolotl: and then by_accelerate, too */
    bool has_bare_norm; /* accelerate: a last norm without a weight stands with the head */
    enum plim_dtype param_dtype, reduce_dtype; /* where is_mixed */
    struct decoder_hooks hooks;
    struct module_hooks modules; /* by_accelerate */
    struct parameters sharded; /* for the optimizer: the shards that train */
    struct fsdp_parameter *parameters;
    struct fsdp_unit *units; /* FSDP_ROOT etc., one per block from FSDP_BLOCKS on, then axolotl's of matrices */
    size_t first_matrix;          /* of units; where there is none their count */
    struct fsdp_unit **sequence;  /* in the order in which they are sharded */
    bool block_recomputes;        /* the block that runs is in its backward */
    size_t unit_count;
    struct fsdp_unit **order; /* of forwards */
    size_t order_count;
    struct fsdp_unit *before_order; /* the last one of an evaluation since the last backward; NULL: there was none */
    struct fsdp_reduction reduction; /* the running one */
    int64_t *chunks;                 /* bytes a rank has of each parameter of the running collective */
    struct tensor **scratch;         /* room for a tensor of each parameter */
    struct tensor *inputs, *pixels; /* of the running forward, as the model is given them */
    struct tensor *copied_out;   /* the gathered buffer that is kept until the next one */
    struct tensor *reduce_input; /* the same of the last reduce-scatter */
    struct link *link;           /* lent */
    double may_gather;           /* when the buffers of the second last copy-out were free */
    double copied_out_at;        /* of the last copy-out */
    double reduced;              /* arrival of the last reduce-scatter */
};

/* Why FSDP2 cannot train this setting, in one line; NULL: it can. */
const char *fsdp_refuses(const struct plim_device_info *info, const struct plim_model_config *config,
                         const struct plim_train_setting *setting);
/* Shards `model`, which was made on the meta device (engine.meta). It and `link` outlive it. */
enum plim_status fsdp_create(struct engine *e, struct decoder *model, struct link *link,
                             struct fsdp *f) PLIM_MUST_CHECK;
/* The first rank after this one that has fewer rows of some parameter than the rank before it; 0: there is
 * none. Of n rows the first ranks have ceil(n / world) each, the next has the rest, and others none. */
int64_t fsdp_next_rank(const struct fsdp *f);
/* How many ranks have weights of experts, where there are more ranks than experts (stacks of experts are cut in
 * their first dimension, the experts); else 0. */
int64_t fsdp_expert_ranks(const struct fsdp *f);
void fsdp_finish(struct fsdp *f); /* host memory; tensors go with the engine */

/* Call before and after model(**given). `reduces`: its backward is to reduce the gradients. Images of `given` are cast
 * in mixed precision: the cast tensor is lent to `given` until fsdp_after_forward(). `outputs` are the floating-point
 * outputs, named or NULL, `trained` the one that backward starts from; accelerate's policy of mixed precision
 * casts them in their order. */
enum { FSDP_OUTPUTS = 5 }; /* at most */
void fsdp_before_forward(struct engine *e, struct fsdp *f, bool reduces, struct batch *given);
void fsdp_after_forward(struct engine *e, struct fsdp *f, struct tensor *trained, struct tensor **const *outputs,
                        size_t count);

#endif
