/* How the GPUs of a job share the work and the model's state: DistributedDataParallel, DeepSpeed's ZeRO, FSDP2. */
#ifndef PLIM_WORKLOADS_SPEC_SHARDING_H
#define PLIM_WORKLOADS_SPEC_SHARDING_H

#include <stdbool.h>
#include <stdint.h>

/* AUTO, only in a spec (plim_spec_sharding()): DDP if there are several GPUs, otherwise NONE. NONE: independent
 * processes. DDP: torch.nn.parallel.DistributedDataParallel; every GPU holds everything. ZERO1 to ZERO3: DeepSpeed's
 * stages, whose ranks shard the optimizer's states, its gradients, and (ZERO3) the parameters. FSDP: fully_shard()
 * (FSDP2) on each block and on the model. From ZERO1 on a model is sharded while it is made. */
enum plim_sharding { PLIM_SHARDING_AUTO, PLIM_SHARDING_NONE, PLIM_SHARDING_DDP, PLIM_SHARDING_ZERO1,
                     PLIM_SHARDING_ZERO2, PLIM_SHARDING_ZERO3, PLIM_SHARDING_FSDP,
                     PLIM_SHARDING_COUNT };
/* Which micro-steps of an accumulation reduce the gradients over the GPUs. LAST: the others run under
 * no_sync(), as accelerate and transformers' Trainer do. */
enum plim_reduction { PLIM_REDUCTION_LAST, PLIM_REDUCTION_EACH, PLIM_REDUCTION_COUNT };

/* Names as on the command line, in the order of the enums. */
extern const char *const plim_sharding_names[PLIM_SHARDING_COUNT];
extern const char *const plim_reduction_names[PLIM_REDUCTION_COUNT];

/* --- DistributedDataParallel -------------------------------------------------------------------- */

/* AUTO: as the loop does. transformers' Trainer sets it, except for a checkpointed model without adapters; a plain
 * loop does not. */
enum plim_find_unused { PLIM_FIND_UNUSED_AUTO, PLIM_FIND_UNUSED_NO, PLIM_FIND_UNUSED_YES, PLIM_FIND_UNUSED_COUNT };
extern const char *const plim_find_unused_names[PLIM_FIND_UNUSED_COUNT];

/* Arguments of DistributedDataParallel() */
struct plim_ddp {
    int64_t bucket_mib; /* bucket_cap_mb; 0: None */
    bool as_view;       /* gradient_as_bucket_view */
    enum plim_find_unused finds_unused; /* find_unused_parameters */
    bool is_static;     /* static_graph */
};

/* --- FSDP2 -------------------------------------------------------------------------------------- */

/* FSDP: are the whole parameters of a block freed between its forward and its backward? */
enum plim_resharding { PLIM_RESHARDING_YES, PLIM_RESHARDING_NO, PLIM_RESHARDING_COUNT };

/* FSDP in mixed precision: the type that gradients are reduced in: fp32, or LOW, the type of the computation. */
enum plim_reduce_type { PLIM_REDUCE_TYPE_AUTO, PLIM_REDUCE_TYPE_FP32, PLIM_REDUCE_TYPE_LOW, PLIM_REDUCE_TYPE_COUNT };

/* The library whose fsdp2_prepare_model() shards a model under Trainer (train/fsdp.h) */
enum plim_fsdp_plan { PLIM_FSDP_PLAN_ACCELERATE, PLIM_FSDP_PLAN_AXOLOTL, PLIM_FSDP_PLAN_COUNT };
/* The blocks that accelerate shards as units of their own: all, or those of a vision-language model's text alone, if
 * fsdp_transformer_layer_cls_to_wrap names only their class; the tower then belongs to the root. */
enum plim_fsdp_wrap { PLIM_FSDP_WRAP_ALL, PLIM_FSDP_WRAP_TEXT, PLIM_FSDP_WRAP_COUNT };

extern const char *const plim_resharding_names[PLIM_RESHARDING_COUNT];
extern const char *const plim_reduce_type_names[PLIM_REDUCE_TYPE_COUNT];
extern const char *const plim_fsdp_plan_names[PLIM_FSDP_PLAN_COUNT];
extern const char *const plim_fsdp_wrap_names[PLIM_FSDP_WRAP_COUNT];

/* --- DeepSpeed ---------------------------------------------------------------------------------- */

/* In three keys of struct plim_zero: the value that transformers and accelerate fill in for "auto" */
enum { PLIM_ZERO_AUTO = -1 };

/* overlap_comm of DeepSpeed; AUTO: its default, no in stages 1 and 2, yes in stage 3. */
enum plim_overlap { PLIM_OVERLAP_AUTO, PLIM_OVERLAP_NO, PLIM_OVERLAP_YES, PLIM_OVERLAP_COUNT };
extern const char *const plim_overlap_names[PLIM_OVERLAP_COUNT];

/* Where DeepSpeed keeps something ("offload_optimizer": {"device": "cpu"}). */
enum plim_offload { PLIM_OFFLOAD_NONE, PLIM_OFFLOAD_CPU, PLIM_OFFLOAD_COUNT };
extern const char *const plim_offload_names[PLIM_OFFLOAD_COUNT];

/* DeepSpeed's section zero_optimization, as far as memory depends on it */
struct plim_zero {
    int64_t bucket_elements;   /* reduce_bucket_size */
    enum plim_offload optimizer, parameters; /* offload_optimizer; offload_param, of stage 3 */
    enum plim_overlap overlap; /* overlap_comm */
    bool contiguous;           /* contiguous_gradients */
    /* stage 3's, in elements */
    int64_t sub_group_elements; /* sub_group_size */
    int64_t prefetch_elements;  /* stage3_prefetch_bucket_size */
    int64_t live_elements;      /* stage3_max_live_parameters */
    int64_t reuse_elements;     /* stage3_max_reuse_distance */
    int64_t persistent_elements; /* stage3_param_persistence_threshold */
};

#endif
