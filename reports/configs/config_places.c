#define _GNU_SOURCE /* memmem */
#include "config_places.h"
#include "config_format.h"
#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum { MAX_PLACES = 1 << 16, MAX_DEPTH = 250, PATH = 1024 };

struct walk {
    struct plim_config_places *places;
    struct plim_config_document *document;
    struct plim_error *err;
};

struct path {
    char shown[PATH], name[PATH]; /* truncated if longer: such paths match no pattern */
};

void plim_config_normalize(const char *text, char *out)
{
    while (*text == '-') text++;
    for (; *text; text++) *out++ = *text == '-' ? '_' : (char)tolower((unsigned char)*text);
    *out = '\0';
}

/* --- visiting the tree ------------------------------------------------------------------------ */

/* Appends a name after `used` characters, with a dot in between; truncates if it is too long. */
static void append(char *path, size_t used, const char *name)
{
    if (used && used + 1 < PATH) path[used++] = '.';
    size_t length = strlen(name) < PATH - 1 - used ? strlen(name) : PATH - 1 - used;
    memcpy(path + used, name, length);
    path[used + length] = '\0';
}

static void extend(struct path *path, const struct path *parent,
                   const struct plim_config_node *node)
{
    char name[PATH];
    bool in_list = node->parent && node->parent->kind == PLIM_CONFIG_SEQUENCE;
    *path = *parent;
    size_t shown = strlen(path->shown), length = strlen(path->name);
    if (!node->key) {
        if (in_list) snprintf(path->shown + shown, PATH - shown, "[%zu]", node->index);
        return;
    }
    if (strlen(node->key) >= PATH) return;
    plim_config_normalize(node->key, name);
    append(path->shown, shown, node->key);
    append(path->name, length, name);
}

static enum plim_status no_memory(const struct walk *w)
{
    return plim_fail_at(w->err, PLIM_NOMEM, w->document->source, 0, 0, "no memory for its paths");
}

static enum plim_status visit(struct walk *w, struct plim_config_node *node,
                              const struct path *path, int depth);

static enum plim_status add(struct walk *w, struct plim_config_node *node,
                            struct plim_config_node *mapping, const struct path *path, bool merged)
{
    struct plim_arena *arena = &w->document->arena;
    struct plim_config_place place = {
        .document = w->document,
        .node = node,
        .mapping = mapping,
        .path = plim_arena_text(arena, path->shown, strlen(path->shown)),
        .name = plim_arena_text(arena, path->name, strlen(path->name)),
        .merged = merged};
    if (!place.path || !place.name) return no_memory(w);
    return PLIM_ARRAY_PUSH(&w->places->list, place) == PLIM_OK ? PLIM_OK : no_memory(w);
}

static bool is_merge(const struct plim_config_node *node)
{
    return node->key && !strcmp(node->key, "<<");
}

static enum plim_status visit_member(struct walk *w, struct plim_config_node *member,
                                     struct plim_config_node *mapping, const struct path *parent,
                                     bool merged, int depth)
{
    struct path path;
    if (w->places->list.count >= MAX_PLACES || depth > MAX_DEPTH)
        return plim_config_fail(w->document, member->begin, w->err,
                                "more than %d values, those behind aliases each time, or nested deeper "
                                "than %d levels",
                                MAX_PLACES, MAX_DEPTH);
    extend(&path, parent, member);
    enum plim_status st = add(w, member, mapping, &path, merged);
    return st ? st : visit(w, member->target ? member->target : member, &path, depth + 1);
}

/* Visits the members of a merged mapping that `mapping` does not have itself. */
static enum plim_status visit_merged(struct walk *w, struct plim_config_node *from,
                                     struct plim_config_node *mapping, const struct path *path,
                                     int depth)
{
    enum plim_status st = PLIM_OK;
    if (from->target) from = from->target;
    if (depth > MAX_DEPTH) return PLIM_OK;
    for (struct plim_config_node *member = from->first; member && !st; member = member->next) {
        if (from->kind == PLIM_CONFIG_SEQUENCE || is_merge(member))
            st = visit_merged(w, member, mapping, path, depth + 1);
        else if (member->key && !plim_config_get(mapping, member->key))
            st = visit_member(w, member, mapping, path, true, depth);
    }
    return st;
}

static enum plim_status visit(struct walk *w, struct plim_config_node *node,
                              const struct path *path, int depth)
{
    enum plim_status st = PLIM_OK;
    bool mapping = node->kind == PLIM_CONFIG_MAPPING;
    for (struct plim_config_node *member = node->first; member && !st; member = member->next)
        st = mapping && is_merge(member)
                 ? visit_merged(w, member, node, path, depth + 1)
                 : visit_member(w, member, mapping ? node : NULL, path, false, depth);
    return st;
}

/* A mapping that another one merges is a template: nothing reads it where it is defined, unless there is nothing
 * else. */
static void mark_templates(struct plim_config_places *places, size_t from)
{
    for (size_t i = from; i < places->list.count; i++) {
        if (!places->list.items[i].merged) continue;
        const struct plim_config_node *source = places->list.items[i].node->parent;
        for (size_t k = from; source && k < places->list.count; k++) {
            struct plim_config_place *place = &places->list.items[k];
            if (!place->merged && place->node->parent == source) place->template = true;
        }
    }
}

enum plim_status plim_config_places_add(struct plim_config_places *places,
                                        struct plim_config_document *document, const char *package,
                                        struct plim_error *err)
{
    struct walk w = {places, document, err};
    struct path root = {0};
    size_t from = places->list.count;
    snprintf(root.shown, PATH, "%s", package);
    if (strlen(package) < PATH) plim_config_normalize(package, root.name);
    enum plim_status st = *package ? add(&w, document->root, NULL, &root, false) : PLIM_OK;
    if (!st) st = visit(&w, document->root, &root, 0);
    if (!st && places->list.count - from < 4096) mark_templates(places, from);
    return st;
}

void plim_config_places_finish(struct plim_config_places *places)
{
    PLIM_ARRAY_FINISH(&places->list);
}

/* --- matching --------------------------------------------------------------------------------- */

static bool segment_matches(const char *pattern, size_t pattern_length, const char *name,
                            size_t length)
{
    if (pattern_length == 1 && *pattern == '*') return true;
    while (pattern_length && *pattern == '-') pattern++, pattern_length--;
    if (pattern_length != length) return false;
    for (size_t i = 0; i < length; i++) {
        char c = pattern[i] == '-' ? '_' : (char)tolower((unsigned char)pattern[i]);
        if (c != name[i]) return false;
    }
    return true;
}

/* Quick check: most names differ in their last letters. */
static bool may_match(const char *pattern, const char *name)
{
    size_t length = strlen(pattern), size = strlen(name);
    for (size_t i = 1; i <= 4 && i <= length && i <= size; i++) {
        char c = pattern[length - i];
        if (c == '*' || c == '.' || name[size - i] == '.') return true;
        c = c == '-' ? '_' : (char)tolower((unsigned char)c);
        if (c != name[size - i]) return false;
    }
    return true;
}

bool plim_config_match(const char *pattern, const char *name)
{
    if (!*pattern) return !*name;
    size_t length = strcspn(pattern, "."), left = strcspn(name, ".");
    const char *rest = pattern + length + (pattern[length] == '.');
    if (length == 2 && !strncmp(pattern, "**", 2)) {
        for (;; name += strcspn(name, "."), name += *name == '.') {
            if (plim_config_match(rest, name)) return true;
            if (!*name) return false;
        }
    }
    if (!*name || !segment_matches(pattern, length, name, left)) return false;
    if (!pattern[length] || !name[left]) return !pattern[length] && !name[left];
    return plim_config_match(rest, name + left + 1);
}

/* True if the call whose arguments start at `open` loads something other than a model, such as
 * "AutoTokenizer.from_pretrained". */
static bool loads_no_model(const char *text, size_t open)
{
    static const char *const words[] = {"Tokenizer", "Process", "Config", "Extractor"};
    size_t begin = open;
    while (begin && (isalnum((unsigned char)text[begin - 1]) || strchr("_.", text[begin - 1]))) begin--;
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (memmem(text + begin, open - begin, words[i], strlen(words[i]))) return true;
    return false;
}

/* "NAME.KEY": true if the place is an argument of a call of NAME with this keyword ("*": any) or at this position.
 * from_pretrained must be that of a model. */
static bool is_argument_of(const struct plim_config_place *place, const char *pattern)
{
    const struct plim_config_node *node = place->node, *call = node->parent;
    const char *dot = strchr(pattern, '.'), *function = call ? call->function : NULL;
    char index[24];
    if (!dot || !function || strlen(function) != (size_t)(dot - pattern)) return false;
    if (strncmp(function, pattern, strlen(function)) != 0) return false;
    if (!strcmp(function, "from_pretrained") && loads_no_model(place->document->text, call->begin)) return false;
    snprintf(index, sizeof(index), "%zu", node->index);
    return !strcmp(dot + 1, "*") || !strcmp(dot + 1, node->key ? node->key : index);
}

bool plim_config_place_matches(const struct plim_config_place *place, const char *pattern,
                               bool *wild)
{
    enum plim_config_language language = place->document->format->language;
    *wild = true;
    if (*pattern == '@') return is_argument_of(place, pattern + 1);
    bool script = language == PLIM_CONFIG_SHELL || language == PLIM_CONFIG_PYTHON;
    *wild = script || strstr(pattern, "**") != NULL;
    if (!may_match(pattern, place->name)) return false;
    if (plim_config_match(pattern, place->name)) return true;
    for (const char *name = place->name; script && (name = strchr(name, '.')); name++)
        if (plim_config_match(pattern, name + 1)) return true;
    return false;
}

static bool has_word(const char *name, const char *const *words, bool prefix)
{
    while (*name) {
        size_t length = strcspn(name, "._/");
        for (const char *const *word = words; *word; word++) {
            size_t size = strlen(*word);
            if ((prefix ? length >= size : length == size) && !strncmp(name, *word, size))
                return true;
        }
        name += length;
        name += *name != '\0';
    }
    return false;
}

bool plim_config_is_evaluation(const char *name)
{
    static const char *const words[] = {
        "val",          "valid",      "validation", "eval",       "evaluation", "evaluate",
        "evaluator",    "validate",   "test",       "testing",    "tests",      "infer",
        "inference",    "inferencer", "predict",    "prediction", "generate",   "generation",
        "sample",       "sampling",   "dev",        "benchmark",  "export",     "calibration",
        "decode",       "decoding",   "cache",      "caching",    "testset",    "valset",
        "rollout",      "ref",        "reward",     "teacher",    "visualize",  "profiler",
        "quantization", NULL};
    static const char all[] = "actor_rollout_ref."; /* verl's section of the model that is trained, and of the others */
    size_t skip = strncmp(name, all, sizeof(all) - 1) ? 0 : sizeof(all) - 1;
    return has_word(name + skip, words, false);
}

bool plim_config_is_elsewhere(const char *name, const char *pattern)
{
    char front[PATH];
    size_t parts = 1, length = strlen(name);
    if (!strncmp(pattern, "**.", 3)) pattern += 3;
    if (strstr(pattern, "**")) return plim_config_is_evaluation(name);
    for (; *pattern; pattern++) parts += *pattern == '.';
    for (; length && parts; length--) parts -= name[length - 1] == '.';
    if (length >= PATH) return false;
    memcpy(front, name, length);
    front[length] = '\0';
    return plim_config_is_evaluation(front);
}

bool plim_config_is_training(const char *name)
{
    static const char *const words[] = {"train", NULL};
    return has_word(name, words, true);
}

bool plim_config_is_program(const struct plim_config_document *document)
{
    return document->format->language == PLIM_CONFIG_PYTHON && strstr(document->text, "import ");
}

/* True if the word occurs in these bytes. */
static bool has_between(const char *text, size_t begin, size_t end, const char *word)
{
    const char *at = begin < end ? strstr(text + begin, word) : NULL;
    return at && at + strlen(word) <= text + end;
}

bool plim_config_is_launchers(const struct plim_config_place *place)
{
    const struct plim_config_node *command = place->mapping;
    if (!command || command->layout != PLIM_CONFIG_WORDS || !command->first || !command->last) return false;
    const char *text = place->document->text;
    size_t begin = plim_config_line_begin(place->document, command->first->key_begin), at = place->node->key_begin;
    static const char *const launchers[] = {"accelerate launch", "torchrun", "torch.distributed", "deepspeed "};
    bool launches = false;
    for (size_t i = 0; i < sizeof(launchers) / sizeof(launchers[0]) && !launches; i++)
        launches = has_between(text, begin, at, launchers[i]);
    return launches && !has_between(text, begin, at, ".py") && has_between(text, at, command->last->end, ".py ");
}
