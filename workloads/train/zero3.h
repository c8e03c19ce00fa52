/* DeepSpeed's ZeRO, stage 3, on one rank of several (zero.h has what the stages share): each parameter is partitioned
 * over the ranks, and full only while a module needs it. The ranks hold the same amounts, except for padding.
 *
 * Which memory is held, and when (deepspeed 0.18: runtime/zero/stage3.py, parameter_offload.py,
 * partitioned_param_coordinator.py, partition_parameters.py):
 *
 * - Always: this rank's partitions of all parameters in the compute type, and of the trainable ones in fp32, the
 *   optimizer's states of the latter, a bucket of reduce_bucket_size elements, and a gradient of each partition.
 * - A module's parameters are gathered before its forward and before its backward: a single one directly into its own
 *   memory, several through one buffer. The first forward and backward free each parameter after its module, and record
 *   the order in which modules run, the trace.
 * - From then on parameters are prefetched, in groups of stage3_prefetch_bucket_size elements, up to
 *   stage3_max_live_parameters; the buffer of a group is kept until its last parameter is used. A module's parameters
 *   stay gathered if they are used again within stage3_max_reuse_distance elements, or have at most
 *   stage3_param_persistence_threshold elements: so a small model is gathered from its forward to its step.
 * - A gradient is copied into the bucket; a full bucket is reduced through a copy, and the rank's partitions of it are
 *   copied or added into its gradients.
 * - The step frees all gathered parameters, computes norms in fp64, creates one fp32 gradient of all partitions, and
 *   gathers the parameters below the threshold again.
 *
 * Parameters whose partitions have sub_group_size elements in total form a sub-group: each sub-group has an fp32 tensor
 * of its own, for which the step creates a gradient, runs the optimizer and frees the gradient before it proceeds to
 * the next one. Each of the optimizer's groups has sub-groups of its own. With transformers' Trainer the model is
 * created by deepspeed.zero.Init, in the type of its checkpoint.
 *
 * A quantised model is loaded in full, without deepspeed.zero.Init, and partitioned afterwards, including its codes;
 * integer codes are gathered in separate buffers. Its linears are torch's; weights saved by them or by bitsandbytes'
 * linears are kept from forward to backward.
 *
 * With offload_param the partitions are on the host: each is copied to the GPU when it is gathered, and freed there
 * when all ranks' partitions have arrived.
 *
 * A block of experts is a leaf (zero_optimization.leaf_module, whose default names those of mixtral, qwen2_moe and
 * qwen3_moe): all its parameters are gathered at once, and its gradients are reduced when all of them exist.
 *
 * A parameter that is read from outside its module while it is not gathered is gathered for that, and from then on also
 * belongs to the reading module: a LoRA layer reads its A, a DoRA layer its linear's weight and bias, vit the weight of
 * its patches, and TRL's SFTTrainer the head, which from then on belongs to the model itself.
 *
 * The parameters that a module frees when it ends are determined once for each step of a trace, and this result is kept
 * even for another trace. An evaluation before the first step records a trace without a backward; it is discarded when
 * the first backward begins, and the next forward is recorded again.
 *
 * A linear is an autograd.Function there (op_linear_function()). A parameter that is freed leaves its memory to nodes
 * that saved it for backward, as in a checkpointed region that is recomputed. */
#ifndef PLIM_TRAIN_ZERO3_H
#define PLIM_TRAIN_ZERO3_H

#include "zero_state.h"

enum { ZERO3_ALL_GATHER_STREAM = 1, ZERO3_REDUCE_STREAM }; /* streams besides the default one, under overlap_comm */

enum zero3_status { ZERO3_NOT_AVAILABLE, ZERO3_INFLIGHT, ZERO3_AVAILABLE }; /* ZeroParamStatus */

struct zero3_parameter {
    struct tensor *tensor;               /* of the model; has memory while the parameter is gathered */
    int64_t elements, partition_size;    /* of the full parameter; of a rank's partition, in elements */
    enum zero3_status status;
    int active_modules;                  /* number of modules that need it now */
    int64_t fetched_for;                 /* the last step of the trace for which it was gathered; -1: none */
    bool pending;                        /* gathered, but not waited for yet */
    bool of_leaf;                        /* its gradient is reduced together with those of its module */
    struct zero3_all_gather *all_gather; /* that gathers it */
    struct zero3_parameter *next;        /* the next parameter of that all-gather */
    struct tensor *staged;               /* its partition, copied from the host, with offload_param; otherwise NULL */
};

/* An all-gather, until all of its parameters have been waited for. */
struct zero3_all_gather {
    struct zero3_parameter *first;
    /* The buffers of floating-point parameters and of integer codes; both NULL: a single parameter is gathered into its
     * own memory. */
    struct tensor *flat[2];
    struct tensor *staged; /* of a single parameter; see zero3_parameter.staged */
    size_t waiting;        /* number of parameters not waited for yet; 0: this all-gather is over and may be reused */
    struct checkpoint_frame *region; /* the checkpointed region that it began in and keeps alive; or NULL */
    double arrival;
};

struct zero3_module {
    struct zero3 *z;
    struct zero3_parameter *parameter[EXPERTS_WEIGHTS]; /* in the order of the model; at most EXPERTS_WEIGHTS */
    size_t count;
    bool active[EXPERTS_WEIGHTS]; /* for each parameter: the module is running and needs it */
    struct node_hook before_backward, after_backward, reduce;
    size_t last_release; /* 1 + the index in zero3.releases of the module's latest release; 0: none yet */
};

/* The parameters that a module freed when it ended at a step of the trace. */
struct zero3_release {
    int64_t step;
    uint32_t released; /* one bit for each of its parameters */
    size_t before;     /* 1 + the index of the module's previous release; 0: none */
};

/* Parameters that are updated together: a sub-group. */
struct zero3_sub_group {
    size_t first, end; /* indices in `updated` */
    int64_t offset, elements; /* of their partitions in `flat` */
};

/* One parameter's use in the trace. */
struct zero3_use {
    struct zero3_parameter *parameter;
    int64_t step;
};

struct zero3 {
    struct zero *zero;
    struct zero3_parameter *parameters; /* indexed by the tensors' `param_index`: frozen ones, then trainable ones */
    size_t count, frozen;
    struct tensor *flat; /* this rank's partitions of the trainable parameters */
    int64_t partition_elements; /* its number of elements */
    struct zero3_parameter **updated; /* in the optimizer's order, group by group */
    struct zero3_sub_group *sub_groups; /* room for one per parameter */
    struct tensor **norms; /* of the sub-groups */
    size_t sub_group_count;
    struct zero3_module *modules; /* NN_KINDS for each parameter, followed by `model` and `caller` */
    struct zero3_module *model; /* stands for any module without parameters of its own */
    struct zero3_module *caller; /* the model, or the caller of its forward(), which reads TRL's head */
    struct module_hooks hooks, inside; /* of modules; of modules inside a leaf */
    /* The trace: modules in the order in which they run, and the uses of their parameters. */
    struct zero3_module **order;
    struct zero3_use *uses;
    size_t order_count, order_capacity, use_count;
    bool records, is_complete;
    int outputs;     /* number of the model's outputs that backward starts from */
    int64_t step;    /* number of modules entered in this forward and backward */
    size_t next_use; /* the first use that has not been prefetched yet */
    int64_t live;    /* number of gathered elements */
    struct zero3_parameter **chosen; /* room for all parameters */
    struct zero3_all_gather *all_gathers; /* one per parameter */
    size_t next_all_gather;               /* where the search for an unused one starts */
    struct zero3_parameter **persistent; /* in the order of the modules */
    size_t persistent_count;
    struct zero3_release *releases;
    size_t release_count, release_capacity;
};

/* zero3_gather.c. `states`: room for all parameters and buffers of the model. `reduce_leaf` reduces the gradients of a
 * leaf; its context is a struct zero3_module. */
enum plim_status zero3_trace_create(struct engine *e, struct zero *zero, struct zero3 *z, struct tensor **states,
                                    void (*reduce_leaf)(struct engine *e, void *context)) PLIM_MUST_CHECK;
void zero3_trace_finish(struct zero3 *z);
/* Call at the start of a forward. */
void zero3_begin_forward(struct engine *e, struct zero3 *z);
/* Call when the model has returned. `outputs`: the number of its outputs that backward starts from. */
void zero3_leave_model(struct engine *e, struct zero3 *z, int outputs);
/* Call at the start of its backward: the model's hook is registered at each of these outputs. */
void zero3_begin_backward(struct engine *e, struct zero3 *z);
/* Frees all gathered parameters, whether they are needed or not. */
void zero3_partition_all(struct engine *e, struct zero3 *z);
/* Returns the type of a parameter's partitions: the compute type; codes of quantised weights keep theirs. */
enum plim_dtype zero3_dtype(const struct zero *z, const struct zero3_parameter *p);
/* param.data = torch.empty(0). A tensor that a checkpointed region has saved keeps the memory until its backward, which
 * then uses it instead of the parameter that is gathered again. */
void zero3_free_param(struct engine *e, struct zero3_parameter *p);
/* Allocates a partition on the GPU if it comes from the host (offload_param). Returns it, named, or NULL if the
 * partition is on the GPU anyway. */
struct tensor *zero3_copy_from_host(struct engine *e, const struct zero *z, const struct zero3_parameter *p);
/* True if both integer codes and other parameters are below the threshold. */
bool zero3_mixes_persistent(const struct zero3 *z);
/* Gathers the parameters below the threshold, which then stay gathered. */
void zero3_gather_persistent(struct engine *e, struct zero3 *z);

/* zero3.c: zero.h's functions at stage 3. `states`: room for all parameters and buffers of the model. */
enum plim_status zero3_create(struct engine *e, struct zero *z, struct tensor **states)
    PLIM_MUST_CHECK;
void zero3_finish(struct zero *z);
void zero3_accumulated(struct engine *e, struct zero *z, struct tensor *variable);
void zero3_after_backward(struct engine *e, struct zero *z);
/* zero3_step.c */
void zero3_step(struct engine *e, struct zero *z, struct optimizer *o);

#endif
