/* Finds the sizes of a framework in a set of places. */
#ifndef PLIM_REPORTS_CONFIGS_CONFIG_ROLES_H
#define PLIM_REPORTS_CONFIGS_CONFIG_ROLES_H

#include "config_value.h"
#include "patch_plan.h"

enum plim_config_state {
    PLIM_CONFIG_ABSENT,
    PLIM_CONFIG_SETTABLE, /* a number, or nothing yet: `value` says where */
    PLIM_CONFIG_MERGED,   /* it comes from a merged mapping: `place->mapping` takes an override */
    PLIM_CONFIG_BY_EPOCH, /* a number for each range of epochs (accumulation_schedule.h) */
    PLIM_CONFIG_FOREIGN,  /* filled in or computed by something else: `value` says by what */
};

struct plim_config_found {
    enum plim_config_state state;
    const struct plim_config_place *place; /* as the framework reads it */
    const struct plim_config_place *end;   /* where the number is, behind aliases and references */
    struct plim_config_value value;        /* of `end` */
    int64_t number; /* the present number, of a schedule the first; 0: no whole number above 0 */
    bool given;      /* an argument of the script may set it, too */
    size_t commands; /* how many commands of a script get it through one variable; 0 and 1: one place */
};

/* Finds a role by its patterns (NULL ends them). PLIM_SPEC, with the places: it is set twice, in several
 * sections, or is no number. */
enum plim_status plim_config_find(const struct plim_config_plan *plan, const char *const *patterns,
                                  const char *select, const char *what,
                                  struct plim_config_found *out,
                                  struct plim_error *err) PLIM_MUST_CHECK;

/* The value of a place, references followed, as if a role had been found there. */
enum plim_status plim_config_find_at(const struct plim_config_plan *plan, const struct plim_config_place *place,
                                     const char *select, const char *what, struct plim_config_found *out,
                                     struct plim_error *err) PLIM_MUST_CHECK;

/* Follows the references of a place: sets only `place`, `end` and `value` of `out`; the value may be any text.
 * PLIM_SPEC: they are circular, or lead to a name that is set twice. */
enum plim_status plim_config_follow(const struct plim_config_plan *plan, const struct plim_config_place *place,
                                    struct plim_config_found *out, struct plim_error *err) PLIM_MUST_CHECK;

/* The first place that matches one of the patterns and is not for evaluation; NULL: none. */
const struct plim_config_place *plim_config_first(const struct plim_config_places *places,
                                                  const char *const *patterns);

/* Does a place match one of the alternatives of a mark ("a|b")? With `upper` it has to be in capitals, too. */
bool plim_config_has(const struct plim_config_places *places, const char *mark, bool upper);

/* A place's node, aliases followed. */
struct plim_config_node *plim_config_node_of(const struct plim_config_place *place);

#endif
