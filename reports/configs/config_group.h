/* Files that are one config together (mostly one), while it is found out what becomes of them. */
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
    unsigned needs; /* the set of roles that is written */
    int64_t repeats; /* samples that a number of the global batch stands for; 1 for most */
    struct plim_error *err;
};

struct plim_config_file *plim_config_group_file(const struct plim_config_group *g,
                                                const struct plim_config_document *document);
const char *plim_config_role_text(enum plim_config_role role); /* "the micro-batch" */
bool plim_config_is_settable(const struct plim_config_found *found);
bool plim_config_is_size(const struct plim_config_found *found); /* a number that may be replaced */
bool plim_config_uses_dp(enum plim_config_role role);

/* Without the key one micro-step is made, and every batch of all GPUs follows. */
bool plim_config_is_default(const struct plim_config_group *g, enum plim_config_role role);

/* The size that the others are measured by; NULL: none was found. */
const struct plim_config_found *plim_config_primary(const struct plim_config_group *g);

/* The number that is written for a role; 0: it needs the data-parallel GPUs, which are not known. */
int64_t plim_config_number_of(const struct plim_config_group *g, enum plim_config_role role);

/* The number at the first of the patterns, 0 where there is none. */
int64_t plim_config_number_at(const struct plim_config_group *g, const char *const *patterns);

/* What a number that is a multiple of the accumulation becomes with the new one; 0: it would be no whole number. */
int64_t plim_config_with_accumulation(const struct plim_config_group *g, int64_t number);

/* The data-parallel GPUs by the keys that a row of the table names; 0: they are not there; -1: something else fills one
 * of them in. */
int64_t plim_config_dp(const struct plim_config_group *g, const struct plim_config_framework *row);

/* An accumulation that divides a batch by the micro-batch: that batch is the global one, or the one of a GPU's step, by
 * whatever name: its place among what was found, where the others are. */
void plim_config_find_divided(struct plim_config_group *g);

/* The outermost mapping of a place's document. */
struct plim_config_node *plim_config_root_of(const struct plim_config_place *place);

/* Where a key is added that belongs to this pattern: the mapping, which is `file`'s, and the key's `name`. NULL: no
 * such section is there. A size was found. */
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

/* config_checks.c: units, schedules, callbacks: PLIM_SPEC where what is written would not hold. */
enum plim_status plim_config_check(struct plim_config_group *g) PLIM_MUST_CHECK;
enum plim_status plim_config_check_units(struct plim_config_group *g) PLIM_MUST_CHECK;
enum plim_status plim_config_use_tokens(struct plim_config_group *g) PLIM_MUST_CHECK;

/* write_sizes.c: replaces and adds: the edits of the group's files. */
enum plim_status plim_config_write_sizes(struct plim_config_group *g) PLIM_MUST_CHECK;

/* add_sizes.c: adds a key where its trainer reads it: at the first of the role's paths whose section is there, else
 * beside the micro-batch. PLIM_SPEC: that would be another trainer's, or be read by nothing. */
enum plim_status plim_config_add_size(struct plim_config_group *g, enum plim_config_role role) PLIM_MUST_CHECK;
/* plim_config_insert() of the number of a role */
enum plim_status plim_config_insert_number(struct plim_config_group *g, enum plim_config_role role,
                                           struct plim_config_file *file, struct plim_config_node *mapping,
                                           struct plim_config_node *sibling, const char *under,
                                           const char *key) PLIM_MUST_CHECK;

/* write_switches.c: what the answer holds for and is true or false there (gradient checkpointing). */
enum plim_status plim_config_write_switches(struct plim_config_group *g) PLIM_MUST_CHECK;

/* write_overrides.c: the first role that something else fills in or computes; -1: none. What follows
 * from the roles that are written is none. */
int plim_config_foreign(const struct plim_config_group *g);

/* The sizes as the environment or the command line gives them, into the plan; PLIM_SPEC where
 * nothing can. */
enum plim_status plim_config_override(struct plim_config_group *g,
                                      enum plim_config_role foreign) PLIM_MUST_CHECK;

#endif
