/* Files that are one config together (mostly a single one), while their changes are planned. */
#ifndef PLIM_REPORTS_CONFIGS_CONFIG_GROUP_H
#define PLIM_REPORTS_CONFIGS_CONFIG_GROUP_H

#include "patch_plan.h"
#include "config_roles.h"

struct plim_config_group {
    struct plim_config_plan *plan; /* its places are those of the group */
    const struct plim_config_ask *ask;
    const struct plim_config_framework *framework;
    struct plim_config_found found[PLIM_CONFIG_ROLE_COUNT];
    struct plim_config_sizes sizes;
    unsigned needs; /* the set of roles that are written */
    int64_t repeats; /* samples per unit of the config's global batch; 1 for most */
    struct plim_error *err;
};

struct plim_config_file *plim_config_group_file(const struct plim_config_group *g,
                                                const struct plim_config_document *document);
const char *plim_config_role_text(enum plim_config_role role); /* "the micro-batch" */
bool plim_config_is_settable(const struct plim_config_found *found);
bool plim_config_is_size(const struct plim_config_found *found); /* a number that may be replaced */
bool plim_config_uses_dp(enum plim_config_role role);

/* May the key of a role be left out? With one micro-step, all roles but micro, step and total may. */
bool plim_config_is_default(const struct plim_config_group *g, enum plim_config_role role);

/* The size that the others are compared with; NULL: none was found. */
const struct plim_config_found *plim_config_primary(const struct plim_config_group *g);

/* The number that is written for a role; 0: it needs the number of data-parallel GPUs, which is not known. */
int64_t plim_config_number_of(const struct plim_config_group *g, enum plim_config_role role);

/* The number at the first pattern that matches; 0 where none does. */
int64_t plim_config_number_at(const struct plim_config_group *g, const char *const *patterns);

/* The new value of a number that is a multiple of the accumulation; 0: it would not be a whole number. */
int64_t plim_config_with_accumulation(const struct plim_config_group *g, int64_t number);

/* The number of data-parallel GPUs from the keys that a row of the table names; 0: the keys are missing; -1: something
 * else fills one of them in. */
int64_t plim_config_dp(const struct plim_config_group *g, const struct plim_config_framework *row);

/* Where the accumulation is computed as a batch divided by the micro-batch (and more): makes that batch, whatever its
 * name, the found global batch, or, divided by the micro-batch alone, the batch of a GPU's step. */
void plim_config_find_divided(struct plim_config_group *g);

/* The outermost mapping of a place's document. */
struct plim_config_node *plim_config_root_of(const struct plim_config_place *place);

/* Where a key of this pattern is to be added: returns the mapping, in *file, and the key's *name. NULL: there is no
 * such section. Call it only when a size was found. */
struct plim_config_node *plim_config_section(const struct plim_config_group *g, const char *pattern,
                                             struct plim_config_file **file, const char **name);

/* PLIM_SPEC at the key of a place; `fmt` has two texts. */
enum plim_status plim_config_refuse(const struct plim_config_group *g,
                                    const struct plim_config_place *place, const char *fmt,
                                    const char *a, const char *b);
enum plim_status plim_config_need_dp(const struct plim_config_group *g,
                                     const struct plim_config_place *place,
                                     enum plim_config_role role);

/* --- the parts of its plan (plan_group.h), a file each ---------------------------------------- */

/* config_checks.c: units, schedules, callbacks: PLIM_SPEC where the written sizes would not take effect. */
enum plim_status plim_config_check(struct plim_config_group *g) PLIM_MUST_CHECK;
enum plim_status plim_config_check_units(struct plim_config_group *g) PLIM_MUST_CHECK;
enum plim_status plim_config_use_tokens(struct plim_config_group *g) PLIM_MUST_CHECK;

/* write_sizes.c: makes the edits of the group's files: replaces and adds sizes. */
enum plim_status plim_config_write_sizes(struct plim_config_group *g) PLIM_MUST_CHECK;

/* add_sizes.c: adds a key where its trainer reads it: at the first of the role's paths whose section exists, else
 * beside the micro-batch. PLIM_SPEC: the key would be another trainer's, or nothing would read it. */
enum plim_status plim_config_add_size(struct plim_config_group *g, enum plim_config_role role) PLIM_MUST_CHECK;
/* plim_config_insert() of the number of a role */
enum plim_status plim_config_insert_number(struct plim_config_group *g, enum plim_config_role role,
                                           struct plim_config_file *file, struct plim_config_node *mapping,
                                           struct plim_config_node *sibling, const char *under,
                                           const char *key) PLIM_MUST_CHECK;

/* write_switches.c: writes settings of the answer that are true or false in the config (gradient checkpointing). */
enum plim_status plim_config_write_switches(struct plim_config_group *g) PLIM_MUST_CHECK;

/* write_overrides.c: the first role that something else fills in or computes; -1: none. Roles that follow
 * from those that are written do not count. */
int plim_config_foreign(const struct plim_config_group *g);

/* Adds to the plan how the environment or the command line sets the sizes; PLIM_SPEC where
 * neither can. */
enum plim_status plim_config_override(struct plim_config_group *g,
                                      enum plim_config_role foreign) PLIM_MUST_CHECK;

#endif
