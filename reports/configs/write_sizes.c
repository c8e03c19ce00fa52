#include "accumulation_schedule.h"
#include "splice.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static enum plim_status write_role(struct plim_config_group *g, enum plim_config_role role)
{
    const struct plim_config_found *found = &g->found[role];
    int64_t number = plim_config_role_value(role, &g->sizes);
    bool needed = g->needs >> role & 1;
    bool unset = found->value.meaning == PLIM_CONFIG_UNSET;
    bool number_wanted = needed || g->framework->numbers; /* "auto" beside numbers is read by few */
    if (unset && (!number_wanted || (number == 0 && plim_config_uses_dp(role)))) return PLIM_OK;
    if (!number && plim_config_uses_dp(role)) return plim_config_need_dp(g, found->place, role);
    struct plim_config_file *file = plim_config_group_file(g, found->end->document);
    file->sized = true;
    if (found->state == PLIM_CONFIG_MERGED) {
        if (found->number == number) return PLIM_OK;
        plim_config_note(g->plan,
                         "%s:%d: %s comes from a merged mapping, which stays: it is set "
                         "beside it",
                         file->path, found->place->mapping->line, found->place->path);
        return plim_config_insert(file, found->place->mapping, NULL, NULL, found->place->node->key,
                                  number, g->err);
    }
    if (found->value.fallback[0])
        plim_config_note(g->plan,
                         "%s:%d: the default of $%s is changed; where the environment "
                         "sets it, that counts",
                         file->path, found->end->node->line, found->value.fallback);
    return plim_config_replace(file, found->end->path, plim_config_node_of(found->end),
                               &found->value, number, g->framework->numbers, g->err);
}

/* A pattern without its last name: "trainer" of "trainer.accumulate_grad_batches". */
static void split_pattern(const char *pattern, char *parent, size_t size, const char **name)
{
    const char *dot = strrchr(pattern, '.');
    snprintf(parent, size, "%.*s", dot ? (int)(dot - pattern) : 0, pattern);
    *name = dot ? dot + 1 : pattern;
}

static const struct plim_config_place *mapping_place(const struct plim_config_group *g,
                                                     const char *pattern)
{
    const struct plim_config_place *found = NULL;
    for (size_t i = 0; i < g->plan->places.list.count; i++) {
        const struct plim_config_place *place = &g->plan->places.list.items[i];
        bool wild;
        if (!plim_config_place_matches(place, pattern, &wild) ||
            plim_config_is_elsewhere(place->name, pattern))
            continue;
        if (plim_config_node_of(place)->kind == PLIM_CONFIG_MAPPING && !place->merged)
            found = place; /* of several the last: Hydra's last file counts */
    }
    return found;
}

static struct plim_config_node *root_of(const struct plim_config_place *place)
{
    struct plim_config_node *root = place->document->root, *node = place->node;
    if (root->kind == PLIM_CONFIG_MAPPING) return root;
    while (node->parent && node->parent != root) node = node->parent;
    return node;
}

/* Adds a key at the first of the role's paths whose section is there, else beside the micro-batch. */
static enum plim_status add_role(struct plim_config_group *g, enum plim_config_role role)
{
    const struct plim_config_found *beside = plim_config_primary(g);
    const char *const *patterns = g->framework->roles[role];
    int64_t number = plim_config_role_value(role, &g->sizes);
    char parent[256];
    const char *name;
    if (!number && plim_config_uses_dp(role)) return plim_config_need_dp(g, beside->place, role);
    if (g->framework->guess || !patterns[0])
        return plim_config_refuse(g, beside->place,
                                  "%s has no key here, and under which name it belongs is "
                                  "not known: --framework NAME, or --set PATH=%s",
                                  plim_config_role_text(role), plim_config_role_name(role));
    struct plim_config_node *sibling = beside->place->node;
    for (; *patterns; patterns++) {
        split_pattern(*patterns, parent, sizeof(parent), &name);
        if (strchr(name, '*')) continue;
        const struct plim_config_place *at =
            parent[0] && strcmp(parent, "**") != 0 ? mapping_place(g, parent) : NULL;
        struct plim_config_node *mapping = at                      ? plim_config_node_of(at)
                                           : !strcmp(parent, "**") ? beside->place->mapping
                                           : !parent[0]            ? root_of(beside->place)
                                                                   : NULL;
        if (!mapping) continue;
        struct plim_config_file *file =
            plim_config_group_file(g, at ? at->document : beside->place->document);
        file->sized = true;
        return plim_config_insert(file, mapping, sibling, NULL, name, number, g->err);
    }
    /* No section of these is there: the first becomes a new one. */
    split_pattern(g->framework->roles[role][0], parent, sizeof(parent), &name);
    if (strpbrk(parent, ".*"))
        return plim_config_refuse(g, beside->place,
                                  "%s belongs into the section '%s', which is not here",
                                  plim_config_role_text(role), parent);
    struct plim_config_file *file = plim_config_group_file(g, beside->place->document);
    file->sized = true;
    return plim_config_insert(file, root_of(beside->place), NULL, parent, name, number, g->err);
}

enum plim_status plim_config_write_sizes(struct plim_config_group *g)
{
    enum plim_status st = PLIM_OK;
    for (int role = 0; role < PLIM_CONFIG_ROLE_COUNT && !st; role++) {
        bool needed = g->needs >> role & 1;
        if (role == PLIM_CONFIG_SEQ && !g->sizes.seq) continue;
        if (g->found[role].state == PLIM_CONFIG_BY_EPOCH)
            st = plim_config_schedule_write(g);
        else if (plim_config_is_settable(&g->found[role]))
            st = write_role(g, (enum plim_config_role)role);
        else if (needed && g->found[role].state == PLIM_CONFIG_ABSENT &&
                 !plim_config_is_default(g, (enum plim_config_role)role))
            st = add_role(g, (enum plim_config_role)role);
    }
    return st;
}
