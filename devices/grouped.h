/* MATMUL_GROUPED, split into one product per group. */
#ifndef PLIM_DEVICES_GROUPED_H
#define PLIM_DEVICES_GROUPED_H

#include "autotune/base/status.h"
#include "op.h"

enum { PLIM_GROUP_OUT, PLIM_GROUP_A, PLIM_GROUP_B, PLIM_GROUP_PARTS };

/* PLIM_INVALID: the shapes do not match. */
enum plim_status plim_grouped_check(const struct plim_op *op) PLIM_MUST_CHECK;
/* Return the number of groups, and of rows of all groups. The operation must have been checked. */
int64_t plim_grouped_count(const struct plim_op *op);
int64_t plim_grouped_rows(const struct plim_op *op);
/* Returns the product of group `index`, whose rows are `from` up to but not including `to`; it refers to `parts`. */
struct plim_op plim_grouped_product(const struct plim_op *op, int64_t index, int64_t from, int64_t to,
                                    struct plim_array parts[PLIM_GROUP_PARTS]);

#endif
