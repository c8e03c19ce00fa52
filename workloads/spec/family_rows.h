/* What the tables of families are written with. */
#ifndef PLIM_WORKLOADS_SPEC_FAMILY_ROWS_H
#define PLIM_WORKLOADS_SPEC_FAMILY_ROWS_H

#include "family.h"

/* Rows are in the order of the configuration classes. KEY: not null, NUL: may be null. */
#define KEY(name, field, fallback) {name, NULL, PLIM_FIELD_##field, false, fallback}
#define NUL(name, field, fallback) {name, NULL, PLIM_FIELD_##field, true, fallback}
#define TWO(name, alias, field, fallback) {name, alias, PLIM_FIELD_##field, false, fallback}

/* What a decoder's class learns: the next token, or labels of rows. */
#define TASKS_OF_DECODER KEY("task", TASK, "causal-lm"), KEY("num_labels", LABELS, "2")

#define KEYS(table) .keys = table, .key_count = sizeof(table) / sizeof((table)[0])
#define LLAMA_LINEARS {"q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"}

/* What Liger has for most of its decoders; other norms and kernels follow it. */
#define LIGER_DECODER(how, glu) \
    .norms = PLIM_LIGER_NORM_##how, .last_norm = PLIM_LIGER_NORM_##how, .rope = true, .mlp = PLIM_LIGER_MLP_##glu, \
    .loss = PLIM_LIGER_LOSS_FUSED
#define LIGER_LLAMA {LIGER_DECODER(IN_PLACE, SWIGLU)}
#define LIGER_OLMO2 \
    {.norms = PLIM_LIGER_NORM_APART, .last_norm = PLIM_LIGER_NORM_IN_PLACE, .rope = true, \
     .mlp = PLIM_LIGER_MLP_SWIGLU, .loss = PLIM_LIGER_LOSS_FUSED}

/* Decoders of fewer users (family_keys_further.c); the entries of all others are empty. */
extern const struct plim_family_info plim_further_families[PLIM_FAMILY_COUNT];

/* Models of images and text (family_keys_vision.c), likewise. */
extern const struct plim_family_info plim_vision_families[PLIM_FAMILY_COUNT];

/* An encoder and a decoder (family_keys_seq2seq.c), likewise. */
extern const struct plim_family_info plim_seq2seq_families[PLIM_FAMILY_COUNT];

#endif
