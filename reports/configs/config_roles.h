/* Finds the sizes of a framework in a set of places. */
#ifndef PLIM_REPORTS_CONFIGS_CONFIG_ROLES_H
#define PLIM_REPORTS_CONFIGS_CONFIG_ROLES_H

#include "config_value.h"
#include "patch_plan.h"

enum plim_config_state {
    PLIM_CONFIG_ABSENT,
    PLIM_CONFIG_SETTABLE, /* a number, or nothing yet; `value` says where */
    PLIM_CONFIG_MERGED,   /* from a merged mapping; `place->mapping` takes an override */
    PLIM_CONFIG_BY_EPOCH, /* a number per range of epochs (accumulation_schedule.h) */
    PLIM_CONFIG_FOREIGN,  /* filled in or computed by something else; `value` says by what */
};

struct plim_config_found {
    enum plim_config_state state;
    const struct plim_config_place *place; /* the place that the framework reads */
    const struct plim_config_place *end;   /* the place of the number, after following aliases and references */
    struct plim_config_value value;        /* of `end` */
    int64_t number; /* present number, of a schedule the first; 0: not a positive integer */
    bool given;      /* an argument of the script may set it too */
    size_t commands; /* number of a script's commands that get it through one variable; 0 and 1: one place */
};

/* Finds a role by its patterns, terminated by NULL. PLIM_SPEC, naming the places, if it is set twice, in several
 * sections, or is not a number. */
enum plim_status plim_config_find(const struct plim_config_plan *plan, const char *const *patterns,
                                  const char *select, const char *what,
                                  struct plim_config_found *out,
                                  struct plim_error *err) PLIM_MUST_CHECK;

/* Reads the value of a place, following references, as if it had been found as a role. */
enum plim_status plim_config_find_at(const struct plim_config_plan *plan, const struct plim_config_place *place,
                                     const char *select, const char *what, struct plim_config_found *out,
                                     struct plim_error *err) PLIM_MUST_CHECK;

/* Follows the references of a place; sets only `place`, `end` and `value` of `out`. The value may be any text.
 * PLIM_SPEC if they are circular, or lead to a name that is set twice. */
enum plim_status plim_config_follow(const struct plim_config_plan *plan, const struct plim_config_place *place,
                                    struct plim_config_found *out, struct plim_error *err) PLIM_MUST_CHECK;

/* Returns the first place that matches one of the patterns and is not for evaluation, or NULL. */
const struct plim_config_place *plim_config_first(const struct plim_config_places *places,
                                                  const char *const *patterns);

/* True if a place matches one of the alternatives of a mark ("a|b"); with `upper`, its path must also have no
 * lower-case letters. */
bool plim_config_has(const struct plim_config_places *places, const char *mark, bool upper);

/* Returns the node of a place, after following an alias. */
struct plim_config_node *plim_config_node_of(const struct plim_config_place *place);

#endif
