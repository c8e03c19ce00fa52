/* Writes what the answer assumes besides its sizes, if the framework has a key for it: whether activations are
 * checkpointed. With the sizes alone, a job without checkpointing would run out of memory if the answer uses it. */
#include "autotune/base/yaml.h"
#include "config_format.h"
#include "config_group.h"
#include "splice.h"
#include <stdio.h>
#include <string.h>

struct wanted {
    const char *pattern;
    const struct plim_yaml_node *term;
    const char *name, *value; /* a setting and its value: "checkpointing", "full" */
    const char *word;         /* the term's word for the value: "true" */
    bool is_chosen;           /* the search had other values to choose from */
};

/* --- words of a term -------------------------------------------------------------------------- */

/* Spellings of false and true. */
static const char *const switches[][2] = {{"false", "true"}, {"False", "True"}, {"FALSE", "TRUE"},
                                          {"no", "yes"},     {"No", "Yes"},     {"off", "on"},
                                          {"Off", "On"},     {"0", "1"}};

static bool is_switch(const struct wanted *w)
{
    return !strcmp(w->word, "true") || !strcmp(w->word, "false");
}

/* Returns the word in the spelling of `text`; NULL if `text` is not one of the term's words. */
static const char *word_like(const struct wanted *w, const char *text)
{
    for (size_t i = 0; is_switch(w) && i < sizeof(switches) / sizeof(switches[0]); i++)
        if (!strcmp(text, switches[i][0]) || !strcmp(text, switches[i][1]))
            return switches[i][!strcmp(w->word, "true")];
    for (size_t i = 0; !is_switch(w) && i < w->term->count; i++)
        if (strcmp(w->term->keys[i]->text, "of") != 0 && !strcmp(text, w->term->items[i]->text))
            return w->word;
    return NULL;
}

/* --- writing ---------------------------------------------------------------------------------- */

static const char *without_stars(const char *pattern)
{
    return pattern + 3 * !strncmp(pattern, "**.", 3);
}

/* True if the job keeps its own value because the search did not choose this one: the answer does without
 * checkpointing, and checkpointing only saves memory, or the answer checkpoints in the usual way. */
static bool is_left(const struct wanted *w)
{
    return !w->is_chosen && (!strcmp(w->value, "none") || (is_switch(w) && !strcmp(w->value, "false")));
}

/* Finds where to add a section that does not exist, as for "gradient_checkpointing_kwargs.use_reentrant": the mapping
 * of
 * the sizes, if the format has nested sections. `under` becomes the name of the section. NULL if there is no such
 * place. */
static struct plim_config_node *section_beside(struct plim_config_group *g, const struct wanted *w,
                                               struct plim_config_file **file, char under[128])
{
    const char *path = without_stars(w->pattern), *dot = strchr(path, '.'), *name;
    if (!dot || strchr(dot + 1, '.') || strchr(path, '*')) return NULL;
    snprintf(under, 128, "%.*s", (int)(dot - path), path);
    char above[160];
    snprintf(above, sizeof(above), "%s%s", path == w->pattern ? "" : "**.", under);
    const char *const patterns[2] = {above, NULL};
    if (plim_config_first(&g->plan->places, patterns)) return NULL; /* it exists as a text: '{"use_reentrant":
                                                                     * false}' */
    struct plim_config_node *mapping = plim_config_section(g, above, file, &name);
    const struct plim_config_format *format = mapping ? (*file)->document.format : NULL;
    bool nests = format && (format->language == PLIM_CONFIG_PYTHON || !strcmp(format->name, "yaml") ||
                            !strncmp(format->name, "json", 4));
    return nests ? mapping : NULL;
}

static enum plim_status write_found(struct plim_config_group *g, const struct wanted *w,
                                    const struct plim_config_place *place)
{
    struct plim_config_node *node = plim_config_node_of(place);
    bool is_plain = node->kind == PLIM_CONFIG_SCALAR && node->style != PLIM_CONFIG_BLOCK &&
                    node->text && !node->conditional && !place->merged && !place->node->target;
    const char *word = is_plain ? word_like(w, node->text) : NULL;
    if (word && !strcmp(word, node->text)) return PLIM_OK;
    if (node->bare) word = NULL; /* an option without a value */
    if (word && !is_left(w))
        return plim_config_replace_word(plim_config_group_file(g, place->document), place->path,
                                        node, word, g->err);
    plim_config_note(g->plan, "%s:%d: %s is unchanged, and the answer is for %s %s",
                     place->document->source, place->node->key_line, place->path, w->name,
                     w->value);
    return PLIM_OK;
}

/* Adds a switch that is missing, and thus off. On a command line it may take no value, so a note is added instead. */
static enum plim_status write_missing(struct plim_config_group *g, const struct wanted *w)
{
    struct plim_config_file *file;
    const char *name;
    bool is_on = is_switch(w) ? !strcmp(w->word, "true") : strcmp(w->value, "none") != 0;
    if (!is_on || is_left(w)) return PLIM_OK;
    char under[128] = "";
    struct plim_config_node *mapping =
        is_switch(w) ? plim_config_section(g, w->pattern, &file, &name) : NULL;
    if (!mapping && is_switch(w)) mapping = section_beside(g, w, &file, under);
    bool is_shell = mapping && file->document.format->language == PLIM_CONFIG_SHELL;
    if (mapping && !is_shell && mapping->layout != PLIM_CONFIG_WORDS) {
        bool is_python = file->document.format->language == PLIM_CONFIG_PYTHON;
        return plim_config_insert(file, mapping, plim_config_primary(g)->place->node,
                                  *under ? under : NULL, name,
                                  switches[is_python][1], g->err);
    }
    plim_config_note(g->plan, "%s: the answer holds for %s %s, and nothing here says so: %s=%s",
                     plim_config_primary(g)->place->document->source, w->name, w->value,
                     without_stars(w->pattern), w->word);
    return PLIM_OK;
}

/* Returns the place where another key than the switch enables checkpointing; NULL if there is none. */
static const struct plim_config_place *checkpointed(const struct plim_config_group *g, const struct wanted *w)
{
    if (strcmp(w->name, "checkpointing") != 0 || strcmp(w->value, "full") != 0) return NULL;
    const struct plim_config_place *place = plim_config_first(&g->plan->places, plim_config_common()->checkpointed);
    const char *text = place ? plim_config_node_of(place)->text : NULL;
    for (size_t i = 0; text && i < sizeof(switches) / sizeof(switches[0]); i++)
        if (!strcmp(text, switches[i][1])) return place;
    return NULL;
}

static enum plim_status write_switch(struct plim_config_group *g, const struct wanted *w)
{
    const char *const patterns[2] = {w->pattern, NULL};
    const struct plim_config_place *place = plim_config_first(&g->plan->places, patterns), *other = checkpointed(g, w);
    if (!other) return place ? write_found(g, w, place) : write_missing(g, w);
    plim_config_note(g->plan, "%s:%d: %s checkpoints already, as the answer does; %s stays unchanged",
                     other->document->source, other->node->key_line, other->path,
                     without_stars(w->pattern));
    return PLIM_OK;
}

static bool is_chosen(const struct plim_config_ask *ask, const char *name)
{
    for (size_t i = 0; i < ask->setting.value_count; i++)
        if (!strcmp(ask->setting.values[i].name, name)) return ask->chose[i];
    return false;
}

enum plim_status plim_config_write_switches(struct plim_config_group *g)
{
    const struct plim_yaml_node *rows = g->framework->switches;
    enum plim_status st = PLIM_OK;
    for (size_t i = 0; rows && i < rows->count && !st; i++) {
        const struct plim_yaml_node *term = plim_config_term(g->framework, rows->items[i]->text);
        const struct plim_yaml_node *of = term ? plim_yaml_get(term, "of") : NULL;
        if (!of)
            return plim_config_framework_damaged(rows->items[i], g->err,
                                                 "expected the name of a term");
        bool reentrant = !strcmp(of->text, "use_reentrant"); /* not a setting that the search chooses */
        const char *value = reentrant ? g->ask->use_reentrant : plim_result_value(&g->ask->setting, of->text);
        const struct plim_yaml_node *word = plim_yaml_get(term, value);
        const struct wanted wanted = {.pattern = rows->keys[i]->text,
                                      .term = term,
                                      .name = of->text,
                                      .value = value,
                                      .word = word ? word->text : NULL,
                                      .is_chosen = is_chosen(g->ask, of->text)};
        if (wanted.word) st = write_switch(g, &wanted);
    }
    return st;
}
