/* Kinds of options: how a value is read into a field of the request.
 */
#ifndef PLIM_AUTOTUNE_CLI_OPTION_KINDS_H
#define PLIM_AUTOTUNE_CLI_OPTION_KINDS_H

#include "request.h"
#include <stddef.h>

struct plim_option;

/* Reads `value` (NULL for a switch) into the request, or into the field at the option's offset in it.
 * PLIM_INVALID, with what was expected. */
typedef enum plim_status plim_option_kind(struct plim_request *request,
                                          const struct plim_option *option, const char *value,
                                          struct plim_error *err);

/* One option, with the dashes in its name. */
struct plim_option {
    const char *name;
    const char *argument; /* NULL: a switch */
    unsigned commands;    /* a bit for each: 1 << enum plim_command_id */
    plim_option_kind *kind;
    size_t offset;    /* of the field, for the kinds that need it */
    int64_t most;     /* the largest number, or the most values of a list */
    const char *key;  /* the spec's key, for plim_option_key */
    const char *help; /* with the default and an example where they help */
};

plim_option_kind plim_option_switch, /* bool at offset */
    plim_option_text,                /* const char * at offset */
    plim_option_number,              /* int64_t at offset: 1 to most */
    plim_option_seconds,             /* double at offset: 60s, 500ms, 5m */
    plim_option_list,                /* struct plim_request_list at offset: repeatable */
    plim_option_pairs,               /* the same, of NAME=VALUE */
    plim_option_devices,             /* the same, of URIs with commas between them */
    plim_option_key,                 /* a key of the spec */
    plim_option_any_key,             /* KEY=VALUE */
    plim_option_margin, plim_option_overhead, plim_option_alloc_conf, plim_option_objective, plim_option_profile,
    plim_option_order, plim_option_price; /* GPU=AMOUNT */

/* The index'th of the option's known values; NULL after the last. It lives as
 * long as the program, or is in `scratch`. */
enum { PLIM_OPTION_VALUE = 80 };
const char *plim_option_value(const struct plim_option *option, size_t index,
                              char scratch[PLIM_OPTION_VALUE]);

#endif
