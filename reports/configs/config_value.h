/* The meaning of a value: a number, or something to be followed or left alone. */
#ifndef PLIM_REPORTS_CONFIGS_CONFIG_VALUE_H
#define PLIM_REPORTS_CONFIGS_CONFIG_VALUE_H

#include "config_places.h"

enum plim_config_meaning {
    PLIM_CONFIG_NUMBER,      /* a number that may be replaced */
    PLIM_CONFIG_UNSET,       /* null, auto, ???, empty: may be replaced */
    PLIM_CONFIG_REFERENCE,   /* refers to another value of the document: `name` */
    PLIM_CONFIG_ENVIRONMENT, /* refers to an environment variable: `name` */
    PLIM_CONFIG_TEMPLATE,    /* filled in by another program: `name` */
    PLIM_CONFIG_COMPUTED,    /* an expression */
    PLIM_CONFIG_SCHEDULE,    /* a mapping of epochs to numbers, {0: 4, 4: 2} */
    PLIM_CONFIG_WORD,        /* any other text, mapping or sequence */
};

struct plim_config_value {
    enum plim_config_meaning meaning;
    size_t begin, end; /* the bytes to replace: the 8 of ${NAME:-8} */
    char name[128];    /* the name that it refers to */
    char fallback[64]; /* the variable whose default is at `begin` to `end`; "": none */
};

/* Returns the meaning of a node. The caller follows aliases. */
struct plim_config_value plim_config_value_of(const struct plim_config_document *document,
                                              const struct plim_config_node *node);

/* Return the first epoch of a member of a schedule (-1: its key is not an epoch) and its number of micro-steps (0: not
 * a positive integer). Aliases are followed. */
int64_t plim_config_epoch(const struct plim_config_node *member);
int64_t plim_config_steps(const struct plim_config_node *member);

/* Returns the number of micro-steps of epoch 0, which is 1 if the schedule starts later. */
int64_t plim_config_first_steps(const struct plim_config_node *schedule);

/* Returns the positive integer that a text stands for, also "4.0"; otherwise 0. */
int64_t plim_config_integer(const char *text);

/* Returns the position where a text names a batch size, as a command does; NULL if it does not. */
const char *plim_config_names_size(const char *text);

/* True if the text of a scalar mentions a value with this path (`name` of its place), or a variable with the last name
 * of the path. */
bool plim_config_mentions(const char *text, const char *path);

#endif
