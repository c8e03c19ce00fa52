/* Models from a Hugging Face config.json, and from the `model:` section of a plimsoll spec, which
 * has the same keys. */
#ifndef PLIM_WORKLOADS_SPEC_HF_CONFIG_H
#define PLIM_WORKLOADS_SPEC_HF_CONFIG_H

#include "family.h"

/* Reads a config.json's tree into spec->model_as_given, starting from the family's defaults. Refuses what this
 * version cannot plan: other model types, quantization, per-layer overrides, other
 * heads, and custom code (auto_map), unless `family` says that transformers' own
 * class of that name is meant. `family` is NULL when none was given. */
enum plim_status plim_hf_read(const struct plim_yaml *yaml, const enum plim_family *family,
                              struct plim_spec *spec, struct plim_error *err) PLIM_MUST_CHECK;

/* Reads the keys of a `model:` section, which override spec->model_as_given. Unknown keys are
 * refused; `skip` names those that are read elsewhere (NULL-terminated). */
enum plim_status plim_model_section_read(const struct plim_yaml *yaml,
                                         const struct plim_yaml_node *section,
                                         const char *const *skip, struct plim_spec *spec,
                                         struct plim_error *err) PLIM_MUST_CHECK;

/* Reads a `quantization_config` into spec->quantization: bitsandbytes' in 4 or 8 bits, and gpt_oss's mxfp4, which is
 * dequantised. Others are refused. */
enum plim_status plim_hf_read_quantization(const struct plim_place *place, const struct plim_yaml_node *node,
                                           struct plim_spec *spec) PLIM_MUST_CHECK;

/* Reads one key of the `model:` section. */
enum plim_status plim_model_key_read(const struct plim_place *place,
                                     const struct plim_yaml_node *node,
                                     struct plim_spec *spec) PLIM_MUST_CHECK;

/* Keys of the section that are a list or a mapping, or belong to every family: what is expected of the index'th that
 * the family has, with its name and help. NULL: `index` is behind the last. */
const char *plim_model_special_key(enum plim_family family, size_t index, const char **name, const char **help);

#endif
