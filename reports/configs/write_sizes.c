#include "accumulation_schedule.h"
#include "config_format.h"
#include "splice.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* A number under a key that is added; fairseq's update_freq is [8]. */
static const char *number_text(const struct plim_config_group *g, enum plim_config_role role,
                               const struct plim_config_file *file, int64_t number, char out[32])
{
    bool is_listed = g->framework->lists && role == PLIM_CONFIG_ACCUMULATION &&
                     file->document.format->language == PLIM_CONFIG_DATA;
    snprintf(out, 32, is_listed ? "[%" PRId64 "]" : "%" PRId64, number);
    return out;
}

static enum plim_status write_role(struct plim_config_group *g, enum plim_config_role role)
{
    const struct plim_config_found *found = &g->found[role];
    int64_t number = plim_config_number_of(g, role);
    char text[32];
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
                                  number_text(g, role, file, number, text), g->err);
    }
    if (found->end->node->conditional && !plim_config_primary(g)->end->node->conditional)
        plim_config_note(g->plan, "%s:%d: %s is set in one branch alone, and %s in all", file->path,
                         found->end->node->line, found->end->path, plim_config_primary(g)->end->path);
    if (found->value.fallback[0])
        plim_config_note(g->plan,
                         "%s:%d: the default of $%s is changed; where the environment "
                         "sets it, that counts",
                         file->path, found->end->node->line, found->value.fallback);
    return plim_config_replace(file, found->end->path, plim_config_node_of(found->end),
                               &found->value, number, g->framework->numbers, g->err);
}

static bool is_found(const struct plim_config_group *g, const struct plim_config_place *place)
{
    for (int role = 0; role < PLIM_CONFIG_ROLE_COUNT; role++)
        if (g->found[role].place && plim_config_node_of(g->found[role].end) == plim_config_node_of(place)) return true;
    return false;
}

/* An accumulation under a name that is none of this framework's. */
static const struct plim_config_place *other_accumulation(const struct plim_config_group *g)
{
    struct plim_error ignored = PLIM_ERROR_INIT;
    const struct plim_config_framework *all;
    if (plim_config_framework_find("by-names", &all, &ignored)) return NULL;
    for (const char *const *name = all->roles[PLIM_CONFIG_ACCUMULATION]; *name; name++)
        for (size_t i = 0; i < g->plan->places.list.count; i++) {
            const struct plim_config_place *place = &g->plan->places.list.items[i];
            const struct plim_config_node *node = plim_config_node_of(place);
            bool is_set = node->kind == PLIM_CONFIG_SCALAR && node->text && plim_config_whole(node->text) > 0;
            if (!place->hidden && is_set && plim_config_match(*name, place->name) && !is_found(g, place) &&
                !plim_config_is_launchers(place) && !plim_config_is_elsewhere(place->name, *name))
                return place;
        }
    return NULL;
}

/* add_argument("--name", default=4), field(default=4): it goes by a name that stands elsewhere. */
static bool is_default_of_another(const struct plim_config_place *place)
{
    const char *text = place->document->text + place->node->key_begin;
    bool is_python = place->document->format->language == PLIM_CONFIG_PYTHON;
    return is_python && place->node->key && strcmp(place->node->key, "default") && !strncmp(text, "default", 7);
}

/* What speaks against adding a key. */
static enum plim_status check_added(struct plim_config_group *g, enum plim_config_role role)
{
    const struct plim_config_found *beside = plim_config_primary(g);
    const struct plim_config_place *other = other_accumulation(g);
    if (other)
        return plim_config_refuse(g, other,
                                  "'%s' is an accumulation, and none of %s, whose file this was taken for: --framework "
                                  "NAME says whose it is",
                                  other->path, g->framework->title);
    if (is_default_of_another(beside->place))
        return plim_config_refuse(g, beside->place,
                                  "'%s' is the default of an argument, and %s would need an argument of its own",
                                  beside->place->path, plim_config_role_text(role));
    if (beside->commands > 1)
        return plim_config_refuse(g, beside->place,
                                  "several commands are given %s by one variable, and %s would have to be added to "
                                  "each",
                                  plim_config_role_text(PLIM_CONFIG_MICRO), plim_config_role_text(role));
    return PLIM_OK;
}

/* Is it given on a command line by its whole path ("data.batch_size=64")? */
static bool is_override(const struct plim_config_place *place)
{
    const char *key = place->node->key;
    return place->mapping && place->mapping->layout == PLIM_CONFIG_WORDS && key && strchr(key + strspn(key, "-+"), '.');
}

/* By its whole path, too; where that begins anywhere, in the section of the one beside it. */
static enum plim_status add_override(struct plim_config_group *g, enum plim_config_role role, int64_t number)
{
    const struct plim_config_place *beside = plim_config_primary(g)->place;
    const char *pattern = g->framework->roles[role][0], *key = beside->node->key;
    struct plim_config_file *file = plim_config_group_file(g, beside->document);
    char path[512], text[32];
    bool is_anywhere = !strncmp(pattern, "**.", 3);
    key += strspn(key, "-+");
    int section = is_anywhere ? (int)(strrchr(key, '.') + 1 - key) : 0;
    snprintf(path, sizeof(path), "%s%.*s%s", g->framework->hydra && beside->node->key == key ? "++" : "", section, key,
             pattern + 3 * is_anywhere);
    file->sized = true;
    return plim_config_insert(file, beside->mapping, beside->node, NULL, path, number_text(g, role, file, number, text),
                              g->err);
}

/* Adds a key at the first of the role's paths whose section is there, else beside the micro-batch. */
static enum plim_status add_role(struct plim_config_group *g, enum plim_config_role role)
{
    const struct plim_config_found *beside = plim_config_primary(g);
    const char *const *patterns = g->framework->roles[role];
    int64_t number = plim_config_number_of(g, role);
    char section[256], text[32];
    struct plim_config_file *file;
    const char *name;
    enum plim_status st = check_added(g, role);
    if (st) return st;
    if (!number && plim_config_uses_dp(role)) return plim_config_need_dp(g, beside->place, role);
    for (size_t i = 0; i < g->ask->set_count; i++)
        if (g->ask->sets[i].role == role)
            return plim_config_refuse(g, beside->place, "'%s' (--set) is not here, and is not added: %s",
                                      g->ask->sets[i].path,
                                      "where it belongs is not known");
    if (g->framework->guess || !patterns[0])
        return plim_config_refuse(g, beside->place,
                                  "%s has no key here, and under which name it belongs is "
                                  "not known: --framework NAME, or --set PATH=%s",
                                  plim_config_role_text(role), plim_config_role_name(role));
    if (is_override(beside->place)) return add_override(g, role, number);
    bool has_section = strchr(patterns[0], '.') && strncmp(patterns[0], "**.", 3);
    for (; *patterns; patterns++) {
        struct plim_config_node *mapping = plim_config_section(g, *patterns, &file, &name);
        if (!mapping) continue;
        /* Beside the micro-batch is no place for what has a section of its own. */
        bool is_beside = !strncmp(*patterns, "**.", 3) && !strchr(*patterns + 3, '.');
        if (has_section && is_beside && mapping->parent) continue;
        if (mapping->layout == PLIM_CONFIG_LINES && file->document.format->language == PLIM_CONFIG_SHELL)
            return plim_config_refuse(g, beside->place,
                                      "'%s' cannot be added here: as a variable of the script nothing would read it%s",
                                      name, "");
        file->sized = true;
        return plim_config_insert(file, mapping, beside->place->node, NULL, name,
                                  number_text(g, role, file, number, text), g->err);
    }
    /* No section of these is there: the first becomes a new one. */
    const char *first = g->framework->roles[role][0], *dot = strrchr(first, '.');
    snprintf(section, sizeof(section), "%.*s", dot ? (int)(dot - first) : 0, first);
    enum plim_config_language language = beside->place->document->format->language;
    bool is_program = language == PLIM_CONFIG_PYTHON && strstr(beside->place->document->text, "import ");
    if (strpbrk(section, ".*") || (*section && is_program))
        return plim_config_refuse(g, beside->place,
                                  "%s belongs into the section '%s', which is not here",
                                  plim_config_role_text(role), section);
    file = plim_config_group_file(g, beside->place->document);
    file->sized = true;
    return plim_config_insert(file, plim_config_root_of(beside->place), NULL, section,
                              dot ? dot + 1 : first, number_text(g, role, file, number, text),
                              g->err);
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
