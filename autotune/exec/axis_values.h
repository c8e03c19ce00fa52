/* The values to try along one axis of a program, and the syntax in which options list them.
 *
 *     8             one value
 *     8,16,32       a list; also of words: adamw,lion
 *     1:512         every integer from the first to the last
 *     256:1024:256  from the first to the last in steps of the third
 *     1:512:x2      each value multiplied by the factor: 1, 2, 4, ..., 512 */
#ifndef PLIM_AUTOTUNE_EXEC_AXIS_VALUES_H
#define PLIM_AUTOTUNE_EXEC_AXIS_VALUES_H

#include "autotune/base/array.h"
#include <stdint.h>

struct plim_axis_values {
    bool is_range; /* every integer from first to last; `values` is empty */
    int64_t first, last;
    PLIM_ARRAY(char *) values; /* otherwise: distinct, in the order given; owned by the list */
};

enum { PLIM_LIST_VALUES = 1024 };

/* Parses `text` into `list`, which starts zeroed and must be finished in any case. `option` names the option in error
 * messages. PLIM_INVALID: a syntax error, a value given twice, or more than PLIM_LIST_VALUES values. */
enum plim_status plim_axis_values_parse(const char *option, const char *text,
                                       struct plim_axis_values *list,
                                       struct plim_error *err) PLIM_MUST_CHECK;
void plim_axis_values_finish(struct plim_axis_values *list); /* NULL or a zeroed list is allowed */

/* Turns a range into the list of its values. PLIM_INVALID: too many values. */
enum plim_status plim_axis_values_spread(struct plim_axis_values *list, const char *option,
                                        struct plim_error *err) PLIM_MUST_CHECK;

/* Stores all values as positive integers in `out`, which has room for `size`. PLIM_INVALID: a value is not a positive
 * integer, or there are more than `size`. */
enum plim_status plim_axis_values_integers(const struct plim_axis_values *list, const char *option,
                                          int64_t *out, size_t size, size_t *count,
                                          struct plim_error *err) PLIM_MUST_CHECK;

#endif
