/* Kinds of options, which read a value into a field of the request. */
#ifndef PLIM_AUTOTUNE_CLI_OPTION_KINDS_H
#define PLIM_AUTOTUNE_CLI_OPTION_KINDS_H

#include "request.h"
#include <stddef.h>

struct plim_option;

/* Reads `value` (NULL for a switch) into the request, in most kinds into the field at the option's offset.
 * PLIM_INVALID: the value is invalid; the message says what was expected. */
typedef enum plim_status plim_option_kind(struct plim_request *request,
                                          const struct plim_option *option, const char *value,
                                          struct plim_error *err);

/* An option. */
struct plim_option {
    const char *name;     /* with the dashes */
    const char *argument; /* NULL: a switch */
    unsigned commands;    /* bits of the commands that take it: 1 << enum plim_command_id */
    plim_option_kind *kind;
    size_t offset;    /* of the field in the request, for kinds that use it */
    int64_t most;     /* the largest number, or the largest size of a list */
    const char *key;  /* the spec's key, for plim_option_key */
    const char *help;
};

plim_option_kind plim_option_switch, /* bool at offset */
    plim_option_text,                /* const char * at offset */
    plim_option_number,              /* int64_t at offset: 1 to most */
    plim_option_seconds,             /* double at offset: 60s, 500ms, 5m */
    plim_option_list,                /* struct plim_request_list at offset; repeatable */
    plim_option_pairs,               /* same, of NAME=VALUE */
    plim_option_devices,             /* same, of URIs separated by commas */
    plim_option_key,                 /* a key of the spec */
    plim_option_any_key,             /* KEY=VALUE */
    plim_option_margin, plim_option_overhead, plim_option_alloc_conf, plim_option_objective, plim_option_profile,
    plim_option_order, plim_option_price; /* GPU=AMOUNT */

/* Returns value number `index` of the option's known values, a constant or in `scratch`; NULL after the last. */
enum { PLIM_OPTION_VALUE = 80 };
const char *plim_option_value(const struct plim_option *option, size_t index,
                              char scratch[PLIM_OPTION_VALUE]);

#endif
