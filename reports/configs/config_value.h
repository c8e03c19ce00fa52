/* The meaning of a value: a number, or something that has to be followed or left alone. */
#ifndef PLIM_REPORTS_CONFIGS_CONFIG_VALUE_H
#define PLIM_REPORTS_CONFIGS_CONFIG_VALUE_H

#include "config_places.h"

enum plim_config_meaning {
    PLIM_CONFIG_NUMBER,      /* a number that may be replaced */
    PLIM_CONFIG_UNSET,       /* null, auto, ???, nothing: may be replaced */
    PLIM_CONFIG_REFERENCE,   /* another value of the document: `name` */
    PLIM_CONFIG_ENVIRONMENT, /* a variable of the environment: `name` */
    PLIM_CONFIG_TEMPLATE,    /* filled in by another program: `name` */
    PLIM_CONFIG_COMPUTED,    /* an expression */
    PLIM_CONFIG_SCHEDULE,    /* a mapping from epochs to numbers, {0: 4, 4: 2} */
    PLIM_CONFIG_WORD,        /* any other text, or any other mapping or sequence */
};

struct plim_config_value {
    enum plim_config_meaning meaning;
    size_t begin, end; /* the bytes to replace: in ${NAME:-8} the 8 */
    char name[128];    /* the name that it refers to */
    char fallback[64]; /* the variable of which `begin` to `end` is the default; "": none */
};

/* The meaning of a node without a target (the caller follows aliases). */
struct plim_config_value plim_config_value_of(const struct plim_config_document *document,
                                              const struct plim_config_node *node);

/* The first epoch of a member of a schedule (-1: its key is no epoch), and its number of micro-steps (0: no
 * whole number above 0). Aliases are followed. */
int64_t plim_config_epoch(const struct plim_config_node *member);
int64_t plim_config_steps(const struct plim_config_node *member);

/* The number of epoch 0, which is 1 where the schedule begins later. */
int64_t plim_config_first_steps(const struct plim_config_node *schedule);

/* The whole number above 0 that a text stands for, also "4.0"; else 0. */
int64_t plim_config_whole(const char *text);

/* The position where a text names a batch size, as a command does; NULL: it does not. */
const char *plim_config_names_size(const char *text);

/* Does the text of a scalar mention a value with this path (`name` of its place), or a variable with
 * the path's last name? */
bool plim_config_mentions(const char *text, const char *path);

#endif
