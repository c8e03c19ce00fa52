/* The readers behind plim_value_read() that value.c and value_list.c share. */
#ifndef PLIM_WORKLOADS_SPEC_VALUE_LIST_H
#define PLIM_WORKLOADS_SPEC_VALUE_LIST_H

#include "value.h"

/* Reads a node that is not null; on failure `out` is unchanged. */
typedef enum plim_status plim_value_read_fn(const struct plim_value *value,
                                            const struct plim_place *place,
                                            const struct plim_yaml_node *node, void *out);

plim_value_read_fn plim_value_read_int;
plim_value_read_fn plim_value_read_int_axis;
plim_value_read_fn plim_value_read_enum_axis;
plim_value_read_fn plim_value_read_schedule;
plim_value_read_fn plim_value_read_modules;
plim_value_read_fn plim_value_read_ranks;

/* Fails with "KEY is 'x', expected ...", which ends with plim_value_describe()'s text. */
enum plim_status plim_value_mismatch(const struct plim_value *value, const struct plim_place *place,
                                     const struct plim_yaml_node *node);

/* The index of `text` among the names, or -1. */
int plim_value_name_index(const struct plim_value *value, const char *text);

#endif
