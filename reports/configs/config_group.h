/* A group: the files (often one) that form one config, while their changes are planned. */
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
    unsigned needs; /* bit mask of the roles that are written */
    int64_t repeats; /* samples per unit of the config's global batch; usually 1 */
    struct plim_error *err;
};

struct plim_config_file *plim_config_group_file(const struct plim_config_group *g,
                                                const struct plim_config_document *document);
const char *plim_config_role_text(enum plim_config_role role); /* "the micro-batch" */
bool plim_config_is_settable(const struct plim_config_found *found);
bool plim_config_is_size(const struct plim_config_found *found); /* a number that may be replaced */
bool plim_config_uses_dp(enum plim_config_role role);

/* True if the key of a role may be omitted: with one micro-step, for all roles except micro, step and total. */
bool plim_config_is_default(const struct plim_config_group *g, enum plim_config_role role);

/* Returns the size with which the others are compared, or NULL if none was found. */
const struct plim_config_found *plim_config_primary(const struct plim_config_group *g);

/* Returns the number to be written for a role; 0 if that needs the number of data-parallel GPUs, which is not known. */
int64_t plim_config_number_of(const struct plim_config_group *g, enum plim_config_role role);

/* Returns the number at the first pattern that matches; 0 if none does. */
int64_t plim_config_number_at(const struct plim_config_group *g, const char *const *patterns);

/* Returns the new value of a number that is a multiple of the accumulation; 0 if it would not be whole. */
int64_t plim_config_with_accumulation(const struct plim_config_group *g, int64_t number);

/* Returns the number of data-parallel GPUs, computed from the keys that a row of the table names; 0 if keys are
 * missing; -1 if something else fills in one of them. */
int64_t plim_config_dp(const struct plim_config_group *g, const struct plim_config_framework *row);

/* If the accumulation is computed as a batch divided by the micro-batch (and other factors): treats that batch,
 * whatever its name, as the global batch; or, if divided by the micro-batch alone, as the batch of a GPU's step. */
void plim_config_find_divided(struct plim_config_group *g);

/* Returns the outermost mapping of a place's document. */
struct plim_config_node *plim_config_root_of(const struct plim_config_place *place);

/* Finds where a key of this pattern is to be added: returns the mapping and stores its *file and the key's *name.
 * Returns NULL if there is no such section. Requires that a size was found. */
struct plim_config_node *plim_config_section(const struct plim_config_group *g, const char *pattern,
                                             struct plim_config_file **file, const char **name);

/* Fails with PLIM_SPEC at the key of a place; `fmt` takes two strings. */
enum plim_status plim_config_refuse(const struct plim_config_group *g,
                                    const struct plim_config_place *place, const char *fmt,
                                    const char *a, const char *b);
enum plim_status plim_config_need_dp(const struct plim_config_group *g,
                                     const struct plim_config_place *place,
                                     enum plim_config_role role);

/* --- parts of the plan of a group (plan_group.h), one file each ------------------------------- */

/* config_checks.c: units, schedules, callbacks. PLIM_SPEC if the written sizes would not take effect. */
enum plim_status plim_config_check(struct plim_config_group *g) PLIM_MUST_CHECK;
enum plim_status plim_config_check_units(struct plim_config_group *g) PLIM_MUST_CHECK;
enum plim_status plim_config_use_tokens(struct plim_config_group *g) PLIM_MUST_CHECK;

/* write_sizes.c: edits the group's files: replaces and adds sizes. */
enum plim_status plim_config_write_sizes(struct plim_config_group *g) PLIM_MUST_CHECK;

/* add_sizes.c: adds a key where its trainer reads it: at the first of the role's paths whose section exists, otherwise
 * beside the micro-batch. PLIM_SPEC if the key would belong to another trainer, or nothing would read it. */
enum plim_status plim_config_add_size(struct plim_config_group *g, enum plim_config_role role) PLIM_MUST_CHECK;
/* Calls plim_config_insert() with the number of a role. */
enum plim_status plim_config_insert_number(struct plim_config_group *g, enum plim_config_role role,
                                           struct plim_config_file *file, struct plim_config_node *mapping,
                                           struct plim_config_node *sibling, const char *under,
                                           const char *key) PLIM_MUST_CHECK;

/* write_switches.c: writes settings of the answer that are true or false in the config (gradient checkpointing). */
enum plim_status plim_config_write_switches(struct plim_config_group *g) PLIM_MUST_CHECK;

/* write_overrides.c: returns the first role that something else fills in or computes; -1 if there is none. Roles that
 * follow from the written ones do not count. */
int plim_config_foreign(const struct plim_config_group *g);

/* Adds to the plan how to set the sizes through the environment or the command line; PLIM_SPEC if neither is
 * possible. */
enum plim_status plim_config_override(struct plim_config_group *g,
                                      enum plim_config_role foreign) PLIM_MUST_CHECK;

#endif
