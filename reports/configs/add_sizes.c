/* Adds a size whose key is missing: checks whether it may be added, and finds where its trainer reads it. */
#include "config_format.h"
#include "config_group.h"
#include "splice.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Formats a number for a key to be added; fairseq's update_freq is a list: [8]. */
static const char *number_text(const struct plim_config_group *g, enum plim_config_role role,
                               const struct plim_config_file *file, int64_t number, char out[32])
{
    bool is_listed = g->framework->lists && role == PLIM_CONFIG_ACCUMULATION &&
                     file->document.format->language == PLIM_CONFIG_DATA;
    snprintf(out, 32, is_listed ? "[%" PRId64 "]" : "%" PRId64, number);
    return out;
}

enum plim_status plim_config_insert_number(struct plim_config_group *g, enum plim_config_role role,
                                           struct plim_config_file *file, struct plim_config_node *mapping,
                                           struct plim_config_node *sibling, const char *under, const char *key)
{
    char text[32];
    file->sized = true;
    return plim_config_insert(file, mapping, sibling, under, key,
                              number_text(g, role, file, plim_config_number_of(g, role), text), g->err);
}

/* --- whether a key may be added ---------------------------------------------------------------- */

static bool is_found(const struct plim_config_group *g, const struct plim_config_place *place)
{
    for (int role = 0; role < PLIM_CONFIG_ROLE_COUNT; role++)
        if (g->found[role].place && plim_config_node_of(g->found[role].end) == plim_config_node_of(place)) return true;
    return false;
}

/* True if it is the framework's own key, in a section or command that was not selected. */
static bool is_not_selected(const struct plim_config_group *g, const struct plim_config_place *place)
{
    bool wild;
    for (const char *const *own = g->framework->roles[PLIM_CONFIG_ACCUMULATION]; g->ask->select && *own; own++)
        if (plim_config_place_matches(place, *own, &wild)) return true;
    return false;
}

/* Returns an accumulation under a name that this framework does not have, or NULL. */
static const struct plim_config_place *other_accumulation(const struct plim_config_group *g)
{
    struct plim_error ignored = PLIM_ERROR_INIT;
    const struct plim_config_framework *all;
    if (plim_config_framework_find("by-names", &all, &ignored)) return NULL;
    for (const char *const *name = all->roles[PLIM_CONFIG_ACCUMULATION]; *name; name++)
        for (size_t i = 0; i < g->plan->places.list.count; i++) {
            const struct plim_config_place *place = &g->plan->places.list.items[i];
            const struct plim_config_node *node = plim_config_node_of(place);
            bool is_set = node->kind == PLIM_CONFIG_SCALAR && node->text && plim_config_integer(node->text) > 0;
            if (!place->hidden && is_set && plim_config_match(*name, place->name) && !is_found(g, place) &&
                !is_not_selected(g, place) &&
                !plim_config_is_launchers(place) && !plim_config_is_elsewhere(place->name, *name))
                return place;
        }
    return NULL;
}

/* Fails if there is a reason not to add the key. */
static enum plim_status check_added(struct plim_config_group *g, enum plim_config_role role)
{
    const struct plim_config_found *beside = plim_config_primary(g);
    const struct plim_config_place *other = other_accumulation(g);
    const char *text = plim_config_role_text(role);
    if (other)
        return plim_config_refuse(g, other,
                                  "'%s' is an accumulation, and none of %s, whose file this was taken for: --framework "
                                  "NAME says whose it is",
                                  other->path, g->framework->title);
    if (beside->place->node->renamed)
        return plim_config_refuse(g, beside->place,
                                  "'%s' is the default of an argument, and %s would need an argument of its own",
                                  beside->place->path, text);
    if (beside->commands > 1)
        return plim_config_refuse(g, beside->place,
                                  "several commands are given %s by one variable, and %s would have to be added to "
                                  "each",
                                  plim_config_role_text(PLIM_CONFIG_MICRO), text);
    if (!plim_config_number_of(g, role) && plim_config_uses_dp(role))
        return plim_config_need_dp(g, beside->place, role);
    for (size_t i = 0; i < g->ask->set_count; i++)
        if (g->ask->sets[i].role == role)
            return plim_config_refuse(g, beside->place, "'%s' (--set) is not here, and is not added: %s",
                                      g->ask->sets[i].path, "where it belongs is not known");
    if (g->framework->guess || !g->framework->roles[role][0])
        return plim_config_refuse(g, beside->place,
                                  "%s has no key here, and under which name it belongs is "
                                  "not known: --framework NAME, or --set PATH=%s",
                                  text, plim_config_role_name(role));
    return PLIM_OK;
}

/* --- where a key is added --------------------------------------------------------------------- */

/* True if a place is given on a command line by its whole path ("data.batch_size=64"). */
static bool is_override(const struct plim_config_place *place)
{
    const char *key = place->node->key;
    return place->mapping && place->mapping->layout == PLIM_CONFIG_WORDS && key && strchr(key + strspn(key, "-+"), '.');
}

/* Adds a key by its whole path too; if its pattern starts with "**.", in the section of the primary size. */
static enum plim_status add_override(struct plim_config_group *g, enum plim_config_role role)
{
    const struct plim_config_place *beside = plim_config_primary(g)->place;
    const char *pattern = g->framework->roles[role][0], *key = beside->node->key;
    char path[512];
    bool is_anywhere = !strncmp(pattern, "**.", 3);
    key += strspn(key, "-+");
    int section = is_anywhere ? (int)(strrchr(key, '.') + 1 - key) : 0;
    snprintf(path, sizeof(path), "%s%.*s%s", g->framework->hydra && beside->node->key == key ? "++" : "", section, key,
             pattern + 3 * is_anywhere);
    return plim_config_insert_number(g, role, plim_config_group_file(g, beside->document), beside->mapping,
                                     beside->node, NULL, path);
}

/* No section of the role's paths exists: creates the first, unless that would be a statement of a program. */
static enum plim_status add_section(struct plim_config_group *g, enum plim_config_role role)
{
    const struct plim_config_place *beside = plim_config_primary(g)->place;
    const char *first = g->framework->roles[role][0], *dot = strrchr(first, '.');
    char section[256];
    snprintf(section, sizeof(section), "%.*s", dot ? (int)(dot - first) : 0, first);
    if (strpbrk(section, ".*") || (*section && plim_config_is_program(beside->document)))
        return plim_config_refuse(g, beside,
                                  "%s belongs into the section '%s', which is not here",
                                  plim_config_role_text(role), section);
    return plim_config_insert_number(g, role, plim_config_group_file(g, beside->document), plim_config_root_of(beside),
                                     NULL, section, dot ? dot + 1 : first);
}

enum plim_status plim_config_add_size(struct plim_config_group *g, enum plim_config_role role)
{
    const struct plim_config_found *beside = plim_config_primary(g);
    const char *const *patterns = g->framework->roles[role];
    struct plim_config_file *file;
    const char *name;
    enum plim_status st = check_added(g, role);
    if (st) return st;
    if (is_override(beside->place)) return add_override(g, role);
    bool has_section = strchr(patterns[0], '.') && strncmp(patterns[0], "**.", 3);
    for (; *patterns; patterns++) {
        struct plim_config_node *mapping = plim_config_section(g, *patterns, &file, &name);
        if (!mapping) continue;
        /* A key with a section of its own does not belong beside the micro-batch. */
        bool is_beside = !strncmp(*patterns, "**.", 3) && !strchr(*patterns + 3, '.');
        if (has_section && is_beside && mapping->parent) continue;
        if (mapping->layout == PLIM_CONFIG_LINES && file->document.format->language == PLIM_CONFIG_SHELL)
            return plim_config_refuse(g, beside->place,
                                      "'%s' cannot be added here: as a variable of the script nothing would read it%s",
                                      name, "");
        return plim_config_insert_number(g, role, file, mapping, beside->place->node, NULL, name);
    }
    return add_section(g, role);
}
