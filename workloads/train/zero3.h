/* DeepSpeed's ZeRO, stage 3, on one rank of several (zero.h has what the stages share): each parameter
 * is cut into one piece per rank, and whole only while a module needs it. The ranks hold the same amounts, except
 * for padding.
 *
 * What is held, and from when to when (deepspeed 0.18: runtime/zero/stage3.py, parameter_offload.py,
 * partitioned_param_coordinator.py, partition_parameters.py):
 *
 * - Always: the pieces of all parameters in the type of the computation, the same in fp32, the
 *   optimizer's states of these, a bucket of reduce_bucket_size elements, and a gradient of each piece.
 * - A module's parameters are gathered before its forward and before its backward: a single one into its own
 *   memory, several through one buffer. The first forward and backward free each after its module,
 *   and record the order in which modules run, the trace.
 * - From then on parameters are gathered ahead, in groups of stage3_prefetch_bucket_size elements,
 *   up to stage3_max_live_parameters; the buffer of a group stays until its last parameter is used. A module's
 *   parameters stay whole if they are used again within stage3_max_reuse_distance elements, or have at most
 *   stage3_param_persistence_threshold: so a small model is whole from its forward to its step.
 * - A gradient is copied into the bucket; a full bucket is reduced through a copy, and the rank's pieces of
 *   it are copied or added into its gradients.
 * - The step frees all whole parameters, takes norms in fp64, makes one fp32 gradient of all pieces, and
 *   gathers the parameters below the threshold again.
 *
 * Parameters whose pieces have sub_group_size elements together are a sub-group: each sub-group has an fp32 tensor
 * of its own, for which the step makes a gradient, runs the optimizer and frees the gradient before the
 * next one's. Each of the optimizer's groups has sub-groups of its own. With transformers' Trainer the model is made by
 * deepspeed.zero.Init, in the type of its checkpoint.
 *
 * A quantised model is loaded whole, without deepspeed.zero.Init, and cut afterwards, codes too; integer codes
 * are gathered in buffers of their own. Its linears are torch's; weights that they or bitsandbytes' linears
 * save stay from forward to backward.
 *
 * With offload_param the pieces are on the host: each is copied to the GPU when it is gathered, and freed there when
 * all ranks' pieces are there.
 *
 * A block of experts is a leaf (zero_optimization.leaf_module, whose default names those of mixtral, qwen2_moe and
 * qwen3_moe): all its parameters are gathered at once, and its gradients are reduced when all of them exist.
 *
 * A parameter that is read from outside its module while it is not gathered is gathered for that, and belongs to the
 * reading module, too, from then on: a LoRA layer reads its A, a DoRA layer its linear's weight and bias,
 * vit the weight of its patches, and TRL's SFTTrainer the head, which belongs to the model itself from then on.
 *
 * The parameters that a module frees when it ends are determined once for each step of a trace, and this result is
 * kept even for another trace. An evaluation before the first step makes a trace without a backward; it is
 * dropped when the first backward begins, and the first forward after that is recorded anew.
 *
 * A linear is an autograd.Function there (op_linear_function()). A parameter that is freed leaves its
 * memory to those who saved it for backward, as a checkpointed region does when it runs again. */
#ifndef PLIM_TRAIN_ZERO3_H
#define PLIM_TRAIN_ZERO3_H

#include "zero_state.h"

enum { ZERO3_GATHERING = 1, ZERO3_REDUCING }; /* streams besides the default one, under overlap_comm */

enum zero3_state { ZERO3_AWAY, ZERO3_COMING, ZERO3_HERE };

struct zero3_parameter {
    struct tensor *whole;
    int64_t elements, piece; /* all; a rank's */
    enum zero3_state state;
    int active;    /* modules that need it now */
    int64_t until; /* the last step of the trace for which it was gathered; -1: none */
    bool awaited;  /* gathered, and not waited for yet */
    bool of_leaf;  /* its gradient is reduced with those of its module */
    struct zero3_gathering *from;  /* its all-gather, */
    struct zero3_parameter *next;  /* and the next parameter of that */
    struct tensor *staged; /* its piece, copied from the host, with offload_param; NULL: there is none */
};

/* One all-gather, until all of its parameters were waited for. */
struct zero3_gathering {
    struct zero3_parameter *first;
    /* The buffers: of floating-point parameters, and of integer codes; both NULL: a single one, into its own memory */
    struct tensor *flat[2];
    struct tensor *staged; /* of a single parameter, as above */
    size_t waiting;        /* how many are awaited; 0: this all-gather is over */
    double arrival;
};

struct zero3_module {
    struct zero3 *z;
    struct zero3_parameter *parameter[EXPERTS_WEIGHTS]; /* in the order of the model; no module has more */
    size_t count;
    bool holds[EXPERTS_WEIGHTS]; /* for each parameter: the module runs, and needs it */
    struct node_hook before_backward, after_backward, reduce;
    size_t last_release; /* the module's last one in zero3.releases, counted from 1; 0: none yet */
};

/* The parameters that a module freed when it ended at a step of the trace. */
struct zero3_release {
    int64_t step;
    uint32_t released; /* a bit for each of its parameters */
    size_t before;     /* the module's release before this one */
};

/* Parameters that are updated together. */
struct zero3_group {
    size_t first, end; /* of `updated` */
    int64_t offset, elements; /* where their pieces lie */
};

/* One parameter's use in the trace. */
struct zero3_use {
    struct zero3_parameter *parameter;
    int64_t step;
};

struct zero3 {
    struct zero *zero;
    struct zero3_parameter *parameters; /* by their tensors' places: the frozen ones, then the trained ones */
    size_t count, frozen;
    struct tensor *flat; /* this rank's pieces of the trained ones, */
    int64_t part;        /* elements in all */
    struct zero3_parameter **updated; /* in the optimizer's order, group by group */
    struct zero3_group *groups; /* room for one per parameter */
    struct tensor **norms; /* of the groups */
    size_t group_count;
    struct zero3_module *modules; /* NN_KINDS for each parameter, and after them: */
    struct zero3_module *model; /* any module without parameters of its own, and */
    struct zero3_module *caller; /* the model, or the caller of its forward(), which reads TRL's head */
    struct module_hooks hooks, inside; /* of modules; of modules inside a leaf */
    /* the trace: modules in the order in which they run, and the uses of their parameters */
    struct zero3_module **order;
    struct zero3_use *uses;
    size_t order_count, order_capacity, use_count;
    bool records, is_complete;
    int outputs;     /* of the model: how many backward starts from */
    int64_t step;    /* modules entered in this forward and backward */
    size_t next_use; /* the first use that is not gathered ahead yet */
    int64_t live;    /* elements gathered */
    struct zero3_parameter **chosen; /* room for all */
    struct zero3_gathering *gatherings; /* one for each parameter */
    size_t next_gathering;              /* where to look for one that is over */
    struct zero3_parameter **persistent; /* in the order of the modules */
    size_t persistent_count;
    struct zero3_release *releases;
    size_t release_count, release_capacity;
};

/* zero3_gather.c. `states`: room for all parameters and buffers of the model. `reduce_leaf`: takes the gradients of a
 * leaf; its context is a struct zero3_module. */
enum plim_status zero3_trace_create(struct engine *e, struct zero *zero, struct zero3 *z, struct tensor **states,
                                    void (*reduce_leaf)(struct engine *e, void *context)) PLIM_MUST_CHECK;
void zero3_trace_finish(struct zero3 *z);
/* A forward begins. */
void zero3_begin(struct engine *e, struct zero3 *z);
/* The model has returned; `outputs`: how many of its outputs backward starts from. */
void zero3_leave_model(struct engine *e, struct zero3 *z, int outputs);
/* Its backward begins: the model's hook is at each of these outputs. */
void zero3_turn(struct engine *e, struct zero3 *z);
/* Frees all whole parameters, whether they are needed or not. */
void zero3_partition(struct engine *e, struct zero3 *z);
/* The type of a parameter's pieces: that of the computation; codes of quantised weights keep theirs. */
enum plim_dtype zero3_dtype(const struct zero *z, const struct zero3_parameter *p);
/* param.data = torch.empty(0): a tensor that a checkpointed region has saved keeps the memory until its backward, which
 * then uses it and not the parameter that is gathered anew. */
void zero3_let_go(struct engine *e, struct zero3_parameter *p);
/* Allocates a piece on the GPU, where it comes from the host (offload_param); named, or NULL: it is on the GPU. */
struct tensor *zero3_fetch(struct engine *e, const struct zero *z, const struct zero3_parameter *p);
/* Are there both integer codes and other parameters below the threshold? */
bool zero3_mixes_persistent(const struct zero3 *z);
/* Gathers the parameters below the threshold, which stay whole. */
void zero3_gather_persistent(struct engine *e, struct zero3 *z);

/* zero3.c: zero.h's functions at this stage. `states`: room for all parameters and buffers of the model */
enum plim_status zero3_create(struct engine *e, struct zero *z, struct tensor **states)
    PLIM_MUST_CHECK;
void zero3_finish(struct zero *z);
void zero3_accumulated(struct engine *e, struct zero *z, struct tensor *variable);
void zero3_after_backward(struct engine *e, struct zero *z);
/* zero3_step.c */
void zero3_step(struct engine *e, struct zero *z, struct optimizer *o);

#endif
