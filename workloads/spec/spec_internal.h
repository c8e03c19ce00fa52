/* What the files of this folder share about a whole spec. */
#ifndef PLIM_WORKLOADS_SPEC_INTERNAL_H
#define PLIM_WORKLOADS_SPEC_INTERNAL_H

#include "spec.h"
#include <stdio.h>

/* PyTorch's names of the types, as config.json has them, by enum plim_weights. */
extern const char *const plim_dtype_names[PLIM_WEIGHTS_COUNT];

/* plim_spec_resolve(), which also names the key at fault ("model.num_attention_heads") in
 * `culprit`. */
enum plim_status plim_spec_resolve_at(struct plim_spec *spec, char *culprit, size_t size,
                                      struct plim_error *err) PLIM_MUST_CHECK;

/* A check that refuses resolved specs, and the key at fault. */
struct spec_check {
    enum plim_status (*check)(const struct plim_spec *, struct plim_error *);
    const char *culprit;
};
enum { PLIM_SPEC_LOOP_CHECKS = 17 };
extern const struct spec_check plim_spec_loop_checks[PLIM_SPEC_LOOP_CHECKS]; /* of keys against train.loop */

/* Is one of the shardings of an axis DeepSpeed's ZeRO? */
static inline bool plim_enum_axis_has_zero(const struct plim_enum_axis *sharding)
{
    for (size_t i = 0; i < sharding->count; i++)
        if (plim_sharding_is_zero((enum plim_sharding)sharding->values[i])) return true;
    return false;
}

static inline bool plim_enum_axis_has(const struct plim_enum_axis *axis, int value)
{
    for (size_t i = 0; i < axis->count; i++)
        if (axis->values[i] == value) return true;
    return false;
}

/* Fills in the precision and the type of weights where they are not given (null, auto), and refuses pairs
 * that PyTorch refuses or that contradict each other. The culprit is train.weights. */
enum plim_status plim_spec_resolve_types(struct plim_spec *spec,
                                         struct plim_error *err) PLIM_MUST_CHECK;

/* Expands the targets of train.lora to module names, or takes the family's; refuses those that peft refuses or that are
 * not known here. The culprit is train.lora.targets. */
enum plim_status plim_spec_resolve_lora(struct plim_spec *spec, struct plim_error *err) PLIM_MUST_CHECK;

/* Refuses settings that were not compared with PyTorch for the family. */
enum plim_status plim_spec_check_uncompared(const struct plim_spec *spec, struct plim_error *err) PLIM_MUST_CHECK;

/* Refuses settings that axolotl's fused LoRA functions (train.lora.qkv_kernel and the others) do not go with. */
enum plim_status plim_spec_check_lora_kernels(const struct plim_spec *spec, struct plim_error *err);

#endif
