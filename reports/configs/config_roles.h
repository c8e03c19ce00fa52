/* Where the sizes of a framework stand in a set of places. */
#ifndef PLIM_REPORTS_CONFIGS_CONFIG_ROLES_H
#define PLIM_REPORTS_CONFIGS_CONFIG_ROLES_H

#include "config_value.h"
#include "patch_plan.h"

enum plim_config_state {
    PLIM_CONFIG_ABSENT,
    PLIM_CONFIG_SETTABLE, /* a number, or nothing yet: `value` says where */
    PLIM_CONFIG_MERGED,   /* it comes from a merged mapping: `place->mapping` takes an override */
    PLIM_CONFIG_BY_EPOCH, /* a number for every phase (accumulation_schedule.h) */
    PLIM_CONFIG_FOREIGN,  /* filled in or computed by something else: `value` says what */
};

struct plim_config_found {
    enum plim_config_state state;
    const struct plim_config_place *place; /* as the framework reads it */
    const struct plim_config_place *end;   /* where the number is, behind aliases and references */
    struct plim_config_value value;        /* of `end` */
    int64_t number; /* what is there now, by epoch the first; 0: no whole number above 0 */
    bool given;      /* an argument of the script may set it, too */
    size_t commands; /* of a script that are given it by way of one variable; 0 and 1 are one place */
};

/* Finds a role by its patterns (NULL ends them). PLIM_SPEC: it stands twice, in several sections,
 * or is no number, with the places. */
enum plim_status plim_config_find(const struct plim_config_plan *plan, const char *const *patterns,
                                  const char *select, const char *what,
                                  struct plim_config_found *out,
                                  struct plim_error *err) PLIM_MUST_CHECK;

/* What a place says, behind references, as if it were found. */
enum plim_status plim_config_find_at(const struct plim_config_plan *plan, const struct plim_config_place *place,
                                     const char *select, const char *what, struct plim_config_found *out,
                                     struct plim_error *err) PLIM_MUST_CHECK;

/* What a place refers to: of `out` only `place`, `end` and `value`, which may be any text. PLIM_SPEC: in a circle, or
 * to what is set twice. */
enum plim_status plim_config_follow(const struct plim_config_plan *plan, const struct plim_config_place *place,
                                    struct plim_config_found *out, struct plim_error *err) PLIM_MUST_CHECK;

/* The first place that matches one of the patterns and is not for evaluation; NULL: none. */
const struct plim_config_place *plim_config_first(const struct plim_config_places *places,
                                                  const char *const *patterns);

/* Does a place match one of the alternatives of a mark ("a|b")? `upper`: and is written in capitals. */
bool plim_config_has(const struct plim_config_places *places, const char *mark, bool upper);

/* A place's node behind aliases. */
struct plim_config_node *plim_config_node_of(const struct plim_config_place *place);

#endif
