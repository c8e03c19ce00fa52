/* What stands in a config.json and would make the answer wrong if it were ignored. */
#ifndef PLIM_WORKLOADS_SPEC_HF_REFUSE_H
#define PLIM_WORKLOADS_SPEC_HF_REFUSE_H

#include "autotune/base/yaml.h"

/* "a mixture of experts": what a known model type is that this version does not plan. NULL: not one
 * of those. */
const char *plim_hf_other_kind(const char *model_type);

/* Refuses keys that change the model in ways that are not planned (per_layer_config, ...). */
enum plim_status plim_hf_refuse_keys(const struct plim_yaml *yaml,
                                     struct plim_error *err) PLIM_MUST_CHECK;

/* Refuses models that are not a causal language model of transformers itself: `auto_map`, and heads
 * that `architectures` names. */
enum plim_status plim_hf_refuse_other_code(const struct plim_yaml *yaml,
                                           struct plim_error *err) PLIM_MUST_CHECK;

#endif
