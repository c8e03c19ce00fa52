/* The adapters of a spec (train.lora). */
#ifndef PLIM_WORKLOADS_SPEC_LORA_H
#define PLIM_WORKLOADS_SPEC_LORA_H

#include "axis.h"
#include <stdbool.h>

/* Modules as given to peft: by the ends of their names, "q_proj,mlp.down_proj", or by a Python regular
 * expression after PLIM_MODULES_REGEX; "": none (lora_modules.h). */
enum { PLIM_MODULES_TEXT = 1024 };
#define PLIM_MODULES_REGEX "re:"

/* The rank of modules by a regular expression for the end of their names (rank_pattern). */
enum { PLIM_LORA_RANKS = 16 };
struct plim_lora_rank {
    char regex[112];
    int64_t r;
};

/* peft's LoraConfig: result = base(x) + B(A(dropout(x))) * alpha / r. r == 0: no LoRA. */
struct plim_lora {
    int64_t r;
    double dropout;
    bool dora; /* use_dora: magnitudes in addition to the matrices */
    bool qkv_kernel, o_kernel, mlp_kernel; /* axolotl's fused functions instead of peft's modules */
    char targets[PLIM_MODULES_TEXT]; /* target_modules */
    char parameters[PLIM_MODULES_TEXT]; /* target_parameters: of experts and routers */
    char exclude[PLIM_MODULES_TEXT]; /* exclude_modules */
    char saved[PLIM_MODULES_TEXT];   /* modules_to_save: copied, and trained in full */
    bool ties;                       /* ensure_weight_tying: a head tied to the embedding is tied to its copy, too */
    struct plim_int_axis layers;     /* layers_to_transform; none: all */
    char layers_pattern[PLIM_MODULES_TEXT]; /* names before a layer's number; "": the first number counts */
    size_t rank_count;
    struct plim_lora_rank ranks[PLIM_LORA_RANKS]; /* the first that matches counts, else r */
};

#endif
