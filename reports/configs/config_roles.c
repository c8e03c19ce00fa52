#include "config_roles.h"
#include "autotune/base/text.h"
#include "config_format.h"
#include "python_names.h"
#include <ctype.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_CANDIDATES = 256, MAX_HOPS = 16, LISTED = 8 };

struct search {
    const struct plim_config_plan *plan;
    const char *select, *what;
    long line; /* line that is selected; 0: none */
    struct plim_error *err;
    size_t count;
    struct plim_config_found items[MAX_CANDIDATES];
};

struct plim_config_node *plim_config_node_of(const struct plim_config_place *place)
{
    return place->node->target ? place->node->target : place->node;
}

static enum plim_status refuse(const struct plim_config_place *place, struct plim_error *err,
                               const char *fmt, const char *argument)
{
    size_t at = place->node->key ? place->node->key_begin : place->node->begin;
    return plim_config_fail(place->document, at, err, fmt, argument);
}

/* --- following references --------------------------------------------------------------------- */

/* Resolves relative references: ${.x} is beside the value, ${..x} one level up. */
static void absolute_name(const struct plim_config_place *from, const char *reference, char *out,
                          size_t size)
{
    char path[512], name[128];
    size_t dots = strspn(reference, "."), used = 0;
    for (const char *at = reference + dots; *at && used + 1 < sizeof(name); at++) {
        if (*at == '[')
            name[used++] = '.';
        else if (*at != ']' && *at != '/')
            name[used++] = *at;
    }
    name[used] = '\0';
    snprintf(path, sizeof(path), "%s", dots ? from->name : "");
    for (size_t i = 0; i < dots; i++) {
        char *dot = strrchr(path, '.');
        if (dot)
            *dot = '\0';
        else
            path[0] = '\0';
    }
    snprintf(out, size, "%s%s%s", path, path[0] ? "." : "", name);
}

/* In a program names are case-sensitive, and an option is not a variable. */
static bool is_variable(const struct plim_config_place *place, const char *name)
{
    const struct plim_config_node *mapping = place->node->parent;
    return mapping && mapping->layout == PLIM_CONFIG_LINES && !strcmp(place->path, name);
}

/* True if a reference refers to this place. Of several places the deepest applies. */
static bool is_meant(const struct plim_config_place *from, const char *reference, const char *normal,
                     const struct plim_config_place *place, int *depth)
{
    *depth = 0;
    switch (from->document->format->language) {
    case PLIM_CONFIG_DATA:
    case PLIM_CONFIG_INI: return !strcmp(place->name, normal);
    case PLIM_CONFIG_PYTHON: return plim_config_python_names(from, reference, place, depth);
    default: return is_variable(place, reference);
    }
}

static bool is_on_line(const struct plim_config_place *place, long line)
{
    return line && (place->node->line == line || place->node->key_line == line);
}

/* True for a script's "BATCH=$2" while it processes its arguments: the value set elsewhere is the default. */
static bool is_given(const struct plim_config_place *place)
{
    const char *text = place->node->text;
    if (!place->node->branch || !text || text[0] != '$') return false;
    return isdigit((unsigned char)text[1 + (text[1] == '{')]);
}

/* True if a place is on the selected line, or in the branch of a script that contains the line. */
static bool is_in_selected_branch(const struct search *s, const struct plim_config_place *place)
{
    if (is_on_line(place, s->line)) return true;
    for (size_t i = 0; s->line && place->node->branch && i < s->plan->places.list.count; i++) {
        const struct plim_config_place *other = &s->plan->places.list.items[i];
        bool same = other->document == place->document && other->node->branch == place->node->branch;
        if (same && is_on_line(other, s->line)) return true;
    }
    return false;
}

/* True for NAME=${NAME:-4}, which keeps a value that was set before. */
static bool is_own_default(const struct plim_config_place *place)
{
    struct plim_config_value value = plim_config_value_of(place->document, place->node);
    return value.fallback[0] && place->node->key && !strcmp(value.fallback, place->node->key);
}

/* Returns the last place before `until` that sets the name: the one in effect. `again`: an earlier one, if it is set in
 * several branches, or twice, and none is selected. */
static const struct plim_config_place *look_up_until(struct search *s, struct plim_config_found *of,
                                                     const char *reference, size_t until,
                                                     const struct plim_config_place **again)
{
    const struct plim_config_plan *plan = s->plan;
    const struct plim_config_place *from = of->end, *selected = NULL, *given = NULL;
    char name[768], normal[768];
    const struct plim_config_place *found = NULL;
    bool is_script = from->document->format->language == PLIM_CONFIG_SHELL;
    int depth, deepest = INT_MIN;
    absolute_name(from, reference, name, sizeof(name));
    plim_config_normalize(name, normal);
    *again = NULL;
    for (size_t i = 0; i < plan->places.list.count; i++) {
        const struct plim_config_place *place = &plan->places.list.items[i];
        if (place->node == from->node || place->hidden || place->node->kind != PLIM_CONFIG_SCALAR) continue;
        if (is_script && place->document == from->document && place->node->begin > until) continue;
        if (!is_meant(from, reference, normal, place, &depth) || depth < deepest) continue;
        if (is_in_selected_branch(s, place)) selected = place;
        if (is_given(place)) {
            given = place;
            continue;
        }
        if (found && !found->node->branch && is_own_default(place)) continue;
        bool replaces = is_script && !place->node->branch;
        bool same = found && found->document == place->document && depth == deepest;
        *again = same && !replaces ? found : NULL;
        found = place;
        deepest = depth;
    }
    if (selected || !found) *again = NULL;
    of->given |= found && given;
    if (selected) return selected;
    return found ? found : given;
}

/* A script sets a variable before it uses it, unless it is set in a function further up. */
static const struct plim_config_place *look_up(struct search *s, struct plim_config_found *of, const char *reference,
                                               const struct plim_config_place **again)
{
    const struct plim_config_place *found = look_up_until(s, of, reference, of->end->node->begin, again);
    return found ? found : look_up_until(s, of, reference, SIZE_MAX, again);
}

/* In an INI file a bare name refers to the same section, or to DEFAULT. */
static const struct plim_config_place *look_up_beside(const struct plim_config_plan *plan,
                                                      const struct plim_config_place *from,
                                                      const char *name)
{
    const struct plim_config_node *section = from->node->parent;
    for (size_t i = 0; i < plan->places.list.count; i++) {
        const struct plim_config_place *place = &plan->places.list.items[i];
        const struct plim_config_node *parent = place->node->parent;
        bool near =
            parent && (parent == section || (parent->key && !strcmp(parent->key, "DEFAULT")));
        if (near && place->node->key && !strcmp(place->node->key, name) && place != from)
            return place;
    }
    return NULL;
}

/* Returns the meaning of a name that the files do not set. */
static enum plim_config_meaning unresolved(const struct plim_config_place *place,
                                           const struct plim_config_value *value)
{
    enum plim_config_language language = place->document->format->language;
    bool variable = language == PLIM_CONFIG_SHELL ||
                    (language == PLIM_CONFIG_DATA && !strpbrk(value->name, ".[-"));
    return variable ? PLIM_CONFIG_ENVIRONMENT : PLIM_CONFIG_COMPUTED;
}

static enum plim_status follow(struct search *s, struct plim_config_found *found)
{
    for (int hop = 0; hop < MAX_HOPS; hop++) {
        const struct plim_config_place *again = NULL, *next;
        struct plim_config_node *node = plim_config_node_of(found->end);
        found->value = plim_config_value_of(found->end->document, node);
        if (found->value.meaning != PLIM_CONFIG_REFERENCE) return PLIM_OK;
        next = look_up(s, found, found->value.name, &again);
        if (!next && found->end->document->format->language == PLIM_CONFIG_INI)
            next = look_up_beside(s->plan, found->end, found->value.name);
        if (!next) {
            found->value.meaning = unresolved(found->end, &found->value);
            return PLIM_OK;
        }
        if (again) {
            char text[400];
            snprintf(text, sizeof(text), "'%.100s' (%s) is set twice, in line %d and in line %d",
                     found->value.name, s->what, again->node->key_line, next->node->key_line);
            return refuse(next, s->err, "%s; expected it once, or --select LINE", text);
        }
        found->end = next;
    }
    return refuse(found->place, s->err, "the reference of '%s' leads in a circle",
                  found->place->path);
}

/* --- candidates ------------------------------------------------------------------------------- */

/* Returns the line that is selected; 0 if something else is. */
static long line_of(const char *select)
{
    char *end;
    long line = select ? strtol(select, &end, 10) : 0;
    return line > 0 && !*end && end != select ? line : 0;
}

/* True if the selection is a name or path of sections around the place. Lines are handled later, among the places
 * found. */
static bool is_selected(const struct plim_config_place *place, const char *select)
{
    char normal[512], inside[600], pattern[600];
    if (!select || strchr(select, '=') || strlen(select) >= sizeof(normal) || line_of(select)) return true;
    if (strchr(select, '[')) return !strncmp(place->path, select, strlen(select));
    plim_config_normalize(select, normal);
    snprintf(pattern, sizeof(pattern), "**.%s.**", normal);
    snprintf(inside, sizeof(inside), "%s", place->name);
    return plim_config_match(pattern, inside);
}

/* A list with one number counts as that number; its item is a place of its own. */
static bool is_list_of_one(const struct plim_config_node *node)
{
    return node->kind == PLIM_CONFIG_SEQUENCE && node->first && node->first == node->last &&
           node->first->kind == PLIM_CONFIG_SCALAR;
}

static bool is_item_of_many(const struct plim_config_node *node)
{
    const struct plim_config_node *parent = node->parent;
    return parent && parent->kind == PLIM_CONFIG_SEQUENCE && !node->key &&
           parent->first != parent->last;
}

/* True for merge keys, and for unnamed arguments of a call. */
static bool is_unnamed(const struct plim_config_node *node)
{
    if (node->key) return !strcmp(node->key, "<<");
    return node->parent && node->parent->kind == PLIM_CONFIG_MAPPING;
}

static enum plim_status collect(struct search *s, const char *pattern, bool *wild)
{
    *wild = false;
    for (size_t i = 0; i < s->plan->places.list.count; i++) {
        const struct plim_config_place *place = &s->plan->places.list.items[i];
        bool wild_here;
        if (place->hidden || !plim_config_place_matches(place, pattern, &wild_here)) continue;
        if (!is_selected(place, s->select)) continue;
        *wild |= wild_here;
        if (wild_here && plim_config_is_elsewhere(place->name, pattern)) continue;
        if (is_list_of_one(plim_config_node_of(place)) || is_item_of_many(place->node)) continue;
        if (is_unnamed(place->node) || place->node->bare) continue;
        if (*s->what && plim_config_is_launchers(place)) continue; /* a launcher sets the number of processes, no
                                                                    * size */
        if (s->count == MAX_CANDIDATES) break;
        struct plim_config_found found = {.place = place, .end = place};
        enum plim_status st = follow(s, &found);
        if (st) return st;
        s->items[s->count++] = found;
    }
    return PLIM_OK;
}

static void filter(struct search *s, bool (*wanted)(const struct plim_config_found *))
{
    size_t kept = 0;
    for (size_t i = 0; i < s->count; i++) kept += wanted(&s->items[i]);
    if (!kept || kept == s->count) return;
    for (size_t i = kept = 0; i < s->count; i++)
        if (wanted(&s->items[i])) s->items[kept++] = s->items[i];
    s->count = kept;
}

static bool is_no_template(const struct plim_config_found *found)
{
    return !found->place->template;
}

static bool is_set(const struct plim_config_found *found)
{
    return found->value.meaning != PLIM_CONFIG_UNSET;
}

static bool is_no_word(const struct plim_config_found *found)
{
    return found->value.meaning != PLIM_CONFIG_WORD;
}

static bool is_in_training(const struct plim_config_found *found)
{
    return plim_config_is_training(found->place->name);
}

/* False for "batch_size = len(rows)", which measures a batch rather than setting it. */
static bool is_no_measure(const struct plim_config_found *found)
{
    static const char *const words[] = {"len(", ".shape", ".size("};
    const struct plim_config_document *document = found->end->document;
    const struct plim_config_node *node = found->end->node;
    char text[256];
    if (document->format->language != PLIM_CONFIG_PYTHON || found->value.meaning != PLIM_CONFIG_COMPUTED) return true;
    if (node->end - node->key_begin >= sizeof(text) || node->end < node->key_begin) return true;
    snprintf(text, sizeof(text), "%.*s", (int)(node->end - node->key_begin), document->text + node->key_begin);
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (strstr(text, words[i])) return false;
    return true;
}

/* In a script arguments of the program count, not a variable that is not passed on. */
static bool is_argument(const struct plim_config_found *found)
{
    return found->place->mapping && found->place->mapping->layout == PLIM_CONFIG_WORDS;
}

/* True if the mapping that contains the candidate has something on the selected line. */
static bool is_around_line(const struct search *s, const struct plim_config_found *found)
{
    for (size_t i = 0; i < s->plan->places.list.count; i++) {
        const struct plim_config_place *place = &s->plan->places.list.items[i];
        const struct plim_config_node *node = place->node;
        if (place->document != found->place->document || !is_on_line(place, s->line)) continue;
        while (node && node != found->place->mapping) node = node->parent;
        if (node) return true;
    }
    return false;
}

/* Keeps what is on the selected line, directly or by reference; otherwise what is in a section around the line. */
static void filter_line(struct search *s)
{
    size_t kept = 0;
    bool exact = false;
    for (size_t i = 0; i < s->count; i++)
        exact |= is_on_line(s->items[i].place, s->line) || is_in_selected_branch(s, s->items[i].end);
    for (size_t i = 0; i < s->count; i++) {
        bool here = is_on_line(s->items[i].place, s->line) || is_in_selected_branch(s, s->items[i].end);
        if (exact ? here : is_around_line(s, &s->items[i])) s->items[kept++] = s->items[i];
    }
    s->count = kept;
}

/* Merges candidates that lead to the same number. */
static void unite(struct search *s)
{
    size_t kept = 0;
    for (size_t i = 0; i < s->count; i++) {
        bool known = false;
        const struct plim_config_node *mapping = s->items[i].place->mapping;
        bool is_command = mapping && mapping->layout == PLIM_CONFIG_WORDS;
        for (size_t k = 0; k < kept && !known; k++) {
            known = plim_config_node_of(s->items[k].end) == plim_config_node_of(s->items[i].end) &&
                    s->items[k].place->merged == s->items[i].place->merged &&
                    (!s->items[k].place->merged ||
                     s->items[k].place->mapping == s->items[i].place->mapping);
            s->items[k].commands += known && is_command && s->items[k].place->mapping != mapping;
        }
        s->items[i].commands = is_command;
        if (!known) s->items[kept++] = s->items[i];
    }
    s->count = kept;
}

/* Fails if a key occurs twice in one mapping; but NPROC=$nproc is one value with two names. */
static enum plim_status check_twice(struct search *s)
{
    for (size_t i = 0; i < s->count; i++)
        for (size_t k = i + 1; k < s->count; k++) {
            const struct plim_config_place *a = s->items[i].place, *b = s->items[k].place;
            char text[400];
            if (!a->mapping || a->mapping != b->mapping || strcmp(a->name, b->name) != 0) continue;
            if (plim_config_node_of(s->items[i].end) == plim_config_node_of(s->items[k].end)) continue;
            snprintf(text, sizeof(text), "'%.200s' occurs twice, in line %d and in line %d",
                     a->path, a->node->key_line, b->node->key_line);
            return refuse(b, s->err, "%s; expected it once", text);
        }
    return PLIM_OK;
}

static enum plim_status ambiguous(struct search *s)
{
    char list[380] = "";
    size_t used = 0;
    for (size_t i = 0; i < s->count && i < LISTED && used + 1 < sizeof(list); i++)
        used +=
            (size_t)snprintf(list + used, sizeof(list) - used, "%s%.60s (line %d)", i ? ", " : "",
                             s->items[i].place->path, s->items[i].place->node->key_line);
    char text[460];
    snprintf(text, sizeof(text), "%s could be %.380s%s", s->what, list,
             s->count > LISTED ? ", ..." : "");
    return refuse(s->items[0].place, s->err, "%s: say which with --select", text);
}

/* --- results ---------------------------------------------------------------------------------- */

static enum plim_status no_number(struct search *s, const struct plim_config_found *found)
{
    const struct plim_config_node *node = plim_config_node_of(found->end);
    char text[300];
    if (node->kind != PLIM_CONFIG_SCALAR)
        snprintf(text, sizeof(text), "'%.100s' is a schedule (several values), expected one number",
                 found->end->path);
    else if (node->style == PLIM_CONFIG_BLOCK)
        snprintf(text, sizeof(text), "'%.100s' is a text of several lines, expected one number",
                 found->end->path);
    else
        snprintf(text, sizeof(text), "'%.100s' is '%.60s', expected a number", found->end->path,
                 node->text ? node->text : "");
    return refuse(found->end, s->err, "%s", text);
}

/* Returns the number in the bytes that would be replaced: the 8 of ${NAME:-8}. */
static int64_t number_in(const struct plim_config_found *found)
{
    char text[64];
    const struct plim_config_value *value = &found->value;
    if (value->meaning != PLIM_CONFIG_NUMBER || value->end - value->begin >= sizeof(text)) return 0;
    snprintf(text, sizeof(text), "%.*s", (int)(value->end - value->begin),
             found->end->document->text + value->begin);
    return plim_config_integer(text);
}

static enum plim_status answer(struct search *s, struct plim_config_found *out)
{
    *out = s->items[0];
    out->number = number_in(out);
    switch (out->value.meaning) {
    case PLIM_CONFIG_NUMBER:
    case PLIM_CONFIG_UNSET:
        out->state = out->place->merged && out->place == out->end ? PLIM_CONFIG_MERGED
                                                                  : PLIM_CONFIG_SETTABLE;
        return PLIM_OK;
    case PLIM_CONFIG_REFERENCE:
    case PLIM_CONFIG_WORD:
        return no_number(s, out);
    case PLIM_CONFIG_SCHEDULE:
        out->state = PLIM_CONFIG_BY_EPOCH;
        out->number = plim_config_first_steps(plim_config_node_of(out->end));
        return PLIM_OK;
    default:
        out->state = PLIM_CONFIG_FOREIGN;
        return PLIM_OK;
    }
}

enum plim_status plim_config_find(const struct plim_config_plan *plan, const char *const *patterns,
                                  const char *select, const char *what,
                                  struct plim_config_found *out, struct plim_error *err)
{
    struct search *s = calloc(1, sizeof(*s));
    enum plim_status st = s ? PLIM_OK : plim_no_memory(err);
    *out = (struct plim_config_found){0};
    if (st) return st;
    *s = (struct search){.plan = plan, .select = select, .what = what, .err = err, .line = line_of(select)};
    for (; *patterns && !s->count; patterns++) {
        bool wild;
        PLIM_TRY(collect(s, *patterns, &wild));
        if (s->line) filter_line(s);
        filter(s, is_no_template);
        if (wild) filter(s, is_no_word);
        if (wild) filter(s, is_set);
        if (wild) filter(s, is_no_measure);
        if (wild) filter(s, is_argument);
        PLIM_TRY(check_twice(s));
        unite(s);
        if (wild && s->count > 1) filter(s, is_in_training);
    }
    if (s->count > 1)
        st = ambiguous(s);
    else if (s->count)
        st = answer(s, out);
out:
    free(s);
    return st;
}

/* Returns a search that only follows the references of one place. */
static struct search *search_at(const struct plim_config_plan *plan, const struct plim_config_place *place,
                                const char *select, const char *what, struct plim_error *err)
{
    struct search *s = calloc(1, sizeof(*s));
    if (!s) return NULL;
    *s = (struct search){.plan = plan, .select = select, .what = what, .err = err, .line = line_of(select), .count = 1};
    s->items[0] = (struct plim_config_found){.place = place, .end = place};
    return s;
}

enum plim_status plim_config_find_at(const struct plim_config_plan *plan, const struct plim_config_place *place,
                                     const char *select, const char *what, struct plim_config_found *out,
                                     struct plim_error *err)
{
    struct search *s = search_at(plan, place, select, what, err);
    *out = (struct plim_config_found){0};
    if (!s) return plim_no_memory(err);
    enum plim_status st = follow(s, &s->items[0]);
    if (!st) st = answer(s, out);
    free(s);
    return st;
}

enum plim_status plim_config_follow(const struct plim_config_plan *plan, const struct plim_config_place *place,
                                    struct plim_config_found *out, struct plim_error *err)
{
    struct search *s = search_at(plan, place, NULL, place->path, err);
    if (!s) return plim_no_memory(err);
    enum plim_status st = follow(s, &s->items[0]);
    *out = s->items[0];
    free(s);
    return st;
}

const struct plim_config_place *plim_config_first(const struct plim_config_places *places,
                                                  const char *const *patterns)
{
    for (; *patterns; patterns++)
        for (size_t i = 0; i < places->list.count; i++) {
            const struct plim_config_place *place = &places->list.items[i];
            bool wild;
            if (!place->hidden && plim_config_place_matches(place, *patterns, &wild) &&
                !plim_config_is_elsewhere(place->name, *patterns))
                return place;
        }
    return NULL;
}

static bool has_small_letters(const char *text)
{
    while (*text && !islower((unsigned char)*text)) text++;
    return *text != '\0';
}

bool plim_config_has(const struct plim_config_places *places, const char *mark, bool upper)
{
    char pattern[160];
    for (; *mark; mark += strcspn(mark, "|"), mark += *mark == '|') {
        snprintf(pattern, sizeof(pattern), "%.*s", (int)strcspn(mark, "|"), mark);
        bool wild;
        for (size_t i = 0; i < places->list.count; i++)
            if (plim_config_place_matches(&places->list.items[i], pattern, &wild) &&
                !(upper && has_small_letters(places->list.items[i].path)))
                return true;
    }
    return false;
}
