/* What a value says: a number, or something that has to be followed or left alone. */
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
    PLIM_CONFIG_SCHEDULE,    /* no scalar: a number from each epoch on, {0: 4, 4: 2} */
    PLIM_CONFIG_WORD,        /* any other text, or no scalar at all */
};

struct plim_config_value {
    enum plim_config_meaning meaning;
    size_t begin, end; /* the bytes to replace: of ${NAME:-8} the 8 */
    char name[128];    /* of what it refers to */
    char fallback[64]; /* the variable that comes before a default in place; "": none */
};

/* Of a node without target (aliases are followed before). */
struct plim_config_value plim_config_value_of(const struct plim_config_document *document,
                                              const struct plim_config_node *node);

/* Of a member of a schedule, behind an alias too: the epoch that it is from (-1: its key is none),
 * and its number; 0: no whole number above 0. */
int64_t plim_config_epoch(const struct plim_config_node *member);
int64_t plim_config_steps(const struct plim_config_node *member);

/* The number of epoch 0, which is 1 where the schedule begins later. */
int64_t plim_config_first_steps(const struct plim_config_node *schedule);

/* A whole number above 0 that a text is, also as "4.0"; else 0. */
int64_t plim_config_whole(const char *text);

/* Where a text names a batch size, as a command does; NULL: nowhere. */
const char *plim_config_names_size(const char *text);

/* Does the text of a scalar mention a value of this path (`name` of its place), or a variable of
 * its last name? */
bool plim_config_mentions(const char *text, const char *path);

#endif
