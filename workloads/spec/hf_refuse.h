/* Refuses contents of a config.json that would make the answer wrong if they were ignored. */
#ifndef PLIM_WORKLOADS_SPEC_HF_REFUSE_H
#define PLIM_WORKLOADS_SPEC_HF_REFUSE_H

#include "autotune/base/yaml.h"
#include "spec.h"

/* "a mixture of experts": the kind of a known model type that this version does not plan. NULL: not one
 * of those. */
const char *plim_hf_other_kind(const char *model_type);

/* Refuses keys that change a model of this family in unsupported ways
 * (per_layer_config, ...). */
enum plim_status plim_hf_refuse_keys(const struct plim_yaml *yaml, enum plim_family family,
                                     struct plim_error *err) PLIM_MUST_CHECK;

/* Refuses models that are not transformers' own: `auto_map`. */
enum plim_status plim_hf_refuse_other_code(const struct plim_yaml *yaml,
                                           struct plim_error *err) PLIM_MUST_CHECK;

/* The task of the head that `architectures` names. `*task` is unchanged for a model without a head or without that key,
 * and, if the user names the family, for a head that is not supported, which is
 * refused otherwise. */
enum plim_status plim_hf_read_task(const struct plim_yaml *yaml, enum plim_family family,
                                   bool user_names_family, enum plim_task *task,
                                   struct plim_error *err) PLIM_MUST_CHECK;

/* Refuses a ministral3 text model whose rotary embedding does not specify the scaling of queries. */
enum plim_status plim_hf_refuse_unscaled(const struct plim_yaml *yaml, enum plim_family family,
                                         struct plim_error *err) PLIM_MUST_CHECK;

/* Rebinds *family, of images and text, to that of its text_config, if the family's text may be of several; others are
 * refused, and ministral3 without a scaling. */
enum plim_status plim_hf_read_text_class(const struct plim_yaml *text, enum plim_family *family,
                                         struct plim_error *err) PLIM_MUST_CHECK;

#endif
