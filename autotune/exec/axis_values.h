/* The values that may be tried along one axis of a program.
 *
 *     8             one value
 *     8,16,32       a list; words too: adamw,lion
 *     1:512         every integer from the first to the last
 *     256:1024:256  in steps of that
 *     1:512:x2      multiplied by that: 1, 2, 4, ..., 512
 */
#ifndef PLIM_AUTOTUNE_EXEC_AXIS_VALUES_H
#define PLIM_AUTOTUNE_EXEC_AXIS_VALUES_H

#include "autotune/base/array.h"
#include <stdint.h>

struct plim_axis_values {
    bool is_range; /* every integer from first to last; `values` is empty */
    int64_t first, last;
    PLIM_ARRAY(char *) values; /* otherwise: in the order given, none twice */
};

enum { PLIM_LIST_VALUES = 1024 };

/* `option` names the option in messages. PLIM_INVALID: not understood, or too many values. Finish the
 * list in any case. */
enum plim_status plim_axis_values_parse(const char *option, const char *text,
                                       struct plim_axis_values *list,
                                       struct plim_error *err) PLIM_MUST_CHECK;
void plim_axis_values_finish(struct plim_axis_values *list); /* NULL and zeroed are fine */

/* Turns a range into the list of its values. PLIM_INVALID: too many values. */
enum plim_status plim_axis_values_spread(struct plim_axis_values *list, const char *option,
                                        struct plim_error *err) PLIM_MUST_CHECK;

/* All values as positive integers, in `out` with room for `size`. PLIM_INVALID: one is not a positive integer,
 * or there are more than `size`. */
enum plim_status plim_axis_values_integers(const struct plim_axis_values *list, const char *option,
                                          int64_t *out, size_t size, size_t *count,
                                          struct plim_error *err) PLIM_MUST_CHECK;

#endif
