/* What the tables of families are written with. */
#ifndef PLIM_WORKLOADS_SPEC_FAMILY_ROWS_H
#define PLIM_WORKLOADS_SPEC_FAMILY_ROWS_H

#include "family.h"

/* Rows are in the order of the configuration classes. KEY: not null, NUL: may be null. */
#define KEY(name, field, fallback) {name, NULL, PLIM_FIELD_##field, false, fallback}
#define NUL(name, field, fallback) {name, NULL, PLIM_FIELD_##field, true, fallback}
#define TWO(name, alias, field, fallback) {name, alias, PLIM_FIELD_##field, false, fallback}

#define KEYS(table) .keys = table, .key_count = sizeof(table) / sizeof((table)[0])
#define LLAMA_LINEARS {"q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"}

/* Decoders of fewer users (family_keys_further.c); the entries of all others are empty. */
extern const struct plim_family_info plim_further_families[PLIM_FAMILY_COUNT];

#endif
