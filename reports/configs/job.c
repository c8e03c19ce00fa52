#include "job.h"
#include "autotune/base/textfile.h"
#include "config_format.h"
#include "config_group.h"
#include "job_table.h"
#include "job_words.h"
#include "recognise.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

enum { MAX_BYTES = 8 << 20, MAX_TEXT = PLIM_CONFIG_JOB_TEXT, MAX_PASSES = 3 };

struct reader {
    struct plim_config_job *job;
    const struct plim_config_job_ask *ask;
    const struct plim_yaml_node *row;
    struct plim_config_group group; /* the config files, used to find their sizes */
    struct plim_error *err;
};

/* The value found at a path. */
struct seen {
    const struct plim_config_place *place; /* NULL if there is no value, or null */
    const char *text;                      /* the value, with references followed */
    const char *list; /* the value and the words after it on a command line as a YAML list; NULL if there are none */
    const char *regex; /* the value if it is a scalar with characters of a regular expression; otherwise NULL */
    bool foreign;     /* the value is filled in from elsewhere, such as the environment */
};

/* --- reading a value -------------------------------------------------------------------------- */

static const char *copy_text(struct reader *r, const char *text)
{
    return plim_arena_text(&r->job->arena, text, strlen(text));
}

/* Writes the items of a sequence, or the words of a command line, as a YAML list. */
static enum plim_status write_list(const struct plim_config_document *document,
                                   const struct plim_config_node *node, char out[MAX_TEXT])
{
    size_t used = (size_t)snprintf(out, MAX_TEXT, "[");
    if (node->kind == PLIM_CONFIG_SEQUENCE)
        for (const struct plim_config_node *item = node->first; item && used < MAX_TEXT;
             item = item->next)
            used += (size_t)snprintf(out + used, MAX_TEXT - used, "%s%s", item->index ? ", " : "",
                                     item->text ? item->text : "");
    else
        for (size_t at = node->begin; at < node->words_end && used < MAX_TEXT;) {
            size_t length = strcspn(document->text + at, " \t\\\r\n");
            if (length)
                used += (size_t)snprintf(out + used, MAX_TEXT - used, "%s%.*s",
                                         used > 1 ? ", " : "", (int)length, document->text + at);
            at += length + 1;
        }
    if (used + 1 >= MAX_TEXT) return PLIM_SPEC;
    snprintf(out + used, MAX_TEXT - used, "]");
    return PLIM_OK;
}

/* Writes a value: a sequence and "q_proj,v_proj" as YAML lists, a whole number without fraction and exponent. */
static enum plim_status write_value(const struct plim_config_document *document,
                                    const struct plim_config_node *node, char out[MAX_TEXT])
{
    const char *text = node->text ? node->text : "";
    int64_t whole = plim_config_integer(text);
    if (node->kind == PLIM_CONFIG_SEQUENCE) return write_list(document, node, out);
    if (whole && strpbrk(text, ".eE_"))
        snprintf(out, MAX_TEXT, "%" PRId64, whole);
    else if (strchr(text, ',') && !strpbrk(text, "[{"))
        snprintf(out, MAX_TEXT, "[%s]", text);
    else
        snprintf(out, MAX_TEXT, "%s", text);
    return strlen(text) + 2 < MAX_TEXT ? PLIM_OK : PLIM_SPEC;
}

/* Returns the place that counts among those that match a pattern, or NULL: the last match of the first document with
 * any. An argument of a command counts before a variable, and both before the files they name. Of calls (patterns with
 * @) it is the first: a script loads the model it trains before those it tries. */
static const struct plim_config_place *find_place(const struct reader *r, const char *pattern)
{
    const struct plim_config_place *found = NULL;
    const struct plim_config_node *load = NULL; /* the call that loads the model to train */
    bool found_argument = false, is_option = !strncmp(pattern, "--", 2);
    for (size_t i = 0; i < r->job->plan.places.list.count; i++) {
        const struct plim_config_place *place = &r->job->plan.places.list.items[i];
        const struct plim_config_node *node = plim_config_node_of(place);
        bool wild, argument = place->mapping && place->mapping->layout == PLIM_CONFIG_WORDS;
        const struct plim_config_node *parent = place->node->parent;
        bool is_item = parent && parent->kind == PLIM_CONFIG_SEQUENCE; /* only the whole list counts */
        if (found && place->document != found->document) break;
        if (plim_config_place_matches(place, "@from_pretrained.*", &wild)) {
            if (!load) load = parent;
            if (parent != load) continue;
        }
        if (place->hidden || place->template || node->kind == PLIM_CONFIG_MAPPING || is_item) continue;
        if (!plim_config_place_matches(place, pattern, &wild)) continue;
        if ((wild && plim_config_is_elsewhere(place->name, pattern)) ||
            ((found_argument || is_option) && !argument) || (found && *pattern == '@'))
            continue;
        found = place;
        found_argument |= argument;
    }
    return found;
}

static enum plim_status read_place(struct reader *r, const struct plim_config_place *place,
                                   struct seen *out)
{
    char text[MAX_TEXT];
    struct plim_config_found found = {.place = place, .end = place};
    const struct plim_config_node *node = plim_config_node_of(place);
    const struct plim_config_document *document = place->document;
    bool type = node->text && !strncmp(node->text, "torch.", 6);
    if (node->kind == PLIM_CONFIG_SCALAR && !type) {
        struct plim_error ignored = PLIM_ERROR_INIT;
        enum plim_status st = plim_config_follow(&r->job->plan, place, &found, &ignored);
        if (st == PLIM_NOMEM) return plim_no_memory(r->err);
        enum plim_config_meaning meaning = found.value.meaning;
        out->foreign = st || meaning == PLIM_CONFIG_ENVIRONMENT || meaning == PLIM_CONFIG_TEMPLATE ||
                       meaning == PLIM_CONFIG_COMPUTED;
        if (!st) node = plim_config_node_of(found.end);
        if (!st) document = found.end->document;
    }
    if (node->words_end && !write_list(document, node, text)) out->list = copy_text(r, text);
    bool is_regex = node->kind == PLIM_CONFIG_SCALAR && node->text && strpbrk(node->text, "\\()*?|^$");
    if (is_regex) out->regex = copy_text(r, node->text);
    if (write_value(document, node, text))
        return plim_config_refuse(&r->group, place, "'%.200s' is too long%s", place->path, "");
    if (plim_config_word_is_null(text)) return PLIM_OK;
    out->place = place;
    out->text = copy_text(r, text);
    return out->text ? PLIM_OK : plim_no_memory(r->err);
}

/* Finds the first of the paths that is set. `paths` is a text with alternatives separated by |, or a list of texts. */
static enum plim_status find_value(struct reader *r, const struct plim_yaml_node *paths, struct seen *out)
{
    *out = (struct seen){0};
    for (size_t i = 0; i < plim_config_job_texts(paths) && !out->place; i++) {
        const struct plim_config_place *place = find_place(r, plim_config_job_text(paths, i));
        enum plim_status st = place ? read_place(r, place, out) : PLIM_OK;
        if (st) return st;
    }
    return PLIM_OK;
}

/* --- rules of the job table ------------------------------------------------------------------- */

/* Sets *has if the value at one of the paths "a|b" is one of the words. */
static enum plim_status has_word(struct reader *r, const char *paths,
                                 const struct plim_yaml_node *words, bool *has)
{
    char pattern[200];
    *has = false;
    for (; *paths && !*has; paths += strcspn(paths, "|"), paths += *paths == '|') {
        struct seen seen = {0};
        snprintf(pattern, sizeof(pattern), "%.*s", (int)strcspn(paths, "|"), paths);
        const struct plim_config_place *place = find_place(r, pattern);
        enum plim_status st = place ? read_place(r, place, &seen) : PLIM_OK;
        if (st) return st;
        size_t count;
        *has = plim_config_words_among(words, seen.place ? seen.text : "", &count) > 0;
    }
    return PLIM_OK;
}

/* True if the caller gave the key, or the section that contains it. */
static bool is_given(const struct reader *r, const char *key)
{
    for (size_t i = 0; i < r->ask->given_count; i++) {
        size_t length = strlen(r->ask->given[i]);
        if (!strncmp(key, r->ask->given[i], length) && (!key[length] || key[length] == '.'))
            return true;
    }
    return false;
}

static bool has_key(const struct reader *r, const char *key)
{
    for (size_t i = 0; i < r->job->key_count; i++)
        if (!strcmp(r->job->keys[i].key, key)) return true;
    return (r->job->world && !strcmp(key, "train.world")) || is_given(r, key);
}

static const struct plim_config_document *first_document(const struct reader *r)
{
    return &r->job->plan.files[0].document;
}

static enum plim_status holds(struct reader *r, const struct plim_yaml_node *rule, bool *out)
{
    const struct plim_yaml_node *where = plim_yaml_get(rule, "where"), *beside = plim_yaml_get(rule, "beside"),
                                *unless = plim_yaml_get(rule, "unless"), *names = plim_yaml_get(rule, "names");
    enum plim_status st = PLIM_OK;
    *out = (!beside || has_key(r, beside->text)) && (!unless || !has_key(r, unless->text)) &&
           (!names || plim_config_job_program(names, first_document(r)).length);
    for (size_t i = 0; where && i < where->count && *out && !st; i++)
        st = has_word(r, where->keys[i]->text, where->items[i], out);
    return st;
}

static enum plim_status add_key(struct reader *r, const struct plim_yaml_node *rule,
                                const char *key, const char *value,
                                const struct plim_config_place *place)
{
    char text[512];
    if (r->job->key_count == PLIM_CONFIG_JOB_KEYS)
        return plim_config_job_damaged(rule, "too many keys", r->err);
    const char *source = r->job->plan.files[0].path;
    if (place)
        snprintf(text, sizeof(text), "%s:%d: %s", place->document->source, place->node->key_line,
                 place->path);
    else
        snprintf(text, sizeof(text), "%s", source);
    struct plim_config_job_key added = {.key = key,
                                        .value = copy_text(r, value),
                                        .place = copy_text(r, text),
                                        .mild = plim_yaml_get(rule, "mild") != NULL};
    if (!added.value || !added.place) return plim_no_memory(r->err);
    r->job->keys[r->job->key_count++] = added;
    return PLIM_OK;
}

static enum plim_status refuse_word(struct reader *r, const struct plim_yaml_node *words,
                                    const struct seen *seen, const char *key)
{
    char list[300] = "", text[700];
    size_t used = 0;
    for (size_t i = 0; i < words->count && used < sizeof(list); i++)
        if (*words->keys[i]->text)
            used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%s", used ? ", " : "",
                                     words->keys[i]->text);
    snprintf(text, sizeof(text), "'%.100s', which cannot be planned, expected %s", seen->text,
             list);
    return plim_config_refuse(&r->group, seen->place, "it is %s; --set %s=VALUE plans another",
                              text, key);
}

/* Applies "plus" or "over" of a rule: adds a number to the value, or divides it by one. The number is written in the
 * rule or found at one of its paths; a divisor that is not found is 1. *value becomes NULL if the rule does not
 * apply. */
static enum plim_status calculate(struct reader *r, const struct plim_yaml_node *rule, const struct seen *seen,
                                  const char **value)
{
    const struct plim_yaml_node *plus = plim_yaml_get(rule, "plus"), *over = plim_yaml_get(rule, "over"),
                                *paths = plus ? plus : over;
    struct seen other = {0};
    char text[24], why[400];
    if (!paths) return PLIM_OK;
    enum plim_status st = find_value(r, paths, &other);
    if (st) return st;
    const char *counted = other.place ? other.text : over ? "1" : plim_config_job_text(paths, 0);
    int64_t number = plim_config_integer(seen->text), by = plim_config_integer(counted);
    *value = NULL;
    if (!number || !by) return PLIM_OK;
    if (over && number % by) {
        const char *said = plim_config_job_text(plim_yaml_get(rule, "say"), 0);
        snprintf(why, sizeof(why), "%s: %.200s", other.place->path, said);
        return plim_config_refuse(&r->group, seen->place, "'%.100s' is not a multiple of %s", seen->place->path, why);
    }
    snprintf(text, sizeof(text), "%" PRId64, plus ? number + by : number / by);
    *value = copy_text(r, text);
    return *value ? PLIM_OK : plim_no_memory(r->err);
}

static enum plim_status apply_rule(struct reader *r, const struct plim_yaml_node *rule)
{
    const struct plim_yaml_node *key = plim_yaml_get(rule, "key"), *is = plim_yaml_get(rule, "is"),
                                *words = plim_yaml_get(rule, "words"), *regex = plim_yaml_get(rule, "regex"),
                                *besides = plim_yaml_get(rule, "besides");
    struct seen seen;
    char text[MAX_TEXT];
    bool here;
    if (!key) return plim_config_job_damaged(rule, "a rule without a key", r->err);
    if (has_key(r, key->text)) return PLIM_OK;
    enum plim_status st = holds(r, rule, &here);
    if (st || !here) return st;
    if (is) return add_key(r, rule, key->text, is->text, NULL);
    st = find_value(r, plim_yaml_get(rule, "at"), &seen);
    if (st || !seen.place) return st;
    if (plim_yaml_get(rule, "whole") && !seen.foreign && !plim_config_integer(seen.text)) return PLIM_OK;
    bool is_list = seen.list && plim_yaml_get(rule, "list");
    const char *value = words ? plim_config_word_value(words, seen.text) : is_list ? seen.list : seen.text;
    if (seen.regex && regex) value = copy_text(r, plim_config_word_quote(regex->text, seen.regex, text));
    if (besides) value = copy_text(r, plim_config_word_besides(besides->text, value, text));
    if (!seen.foreign && (st = calculate(r, rule, &seen, &value))) return st;
    if (!value && !words) return PLIM_OK;
    bool known = words && value && plim_config_word_value(words, "") != value && !plim_config_word_is_same(value, "*");
    if (seen.foreign && !known)
        return plim_config_refuse(
            &r->group, seen.place,
            "'%.100s' is filled in from elsewhere, expected its value; --set %s=VALUE gives it",
            seen.place->path, key->text);
    if (!value) return refuse_word(r, words, &seen, key->text);
    return *value ? add_key(r, rule, key->text, value, seen.place) : PLIM_OK;
}

static enum plim_status add_note(struct reader *r, const char *name, const char *sentence)
{
    struct plim_config_job *job = r->job;
    const char *kept = copy_text(r, sentence);
    if (!kept) return plim_no_memory(r->err);
    if (job->note_count == PLIM_CONFIG_JOB_NOTES) return PLIM_OK;
    job->notes[job->note_count++] = kept;
    size_t used = strlen(job->unplanned);
    snprintf(job->unplanned + used, sizeof(job->unplanned) - used, "%s%s", used ? ", " : "", name);
    return PLIM_OK;
}

static enum plim_status add_place_note(struct reader *r, const struct plim_config_place *place, const char *say)
{
    char text[600];
    snprintf(text, sizeof(text), "%.120s (%.200s:%d) is not in the plan: %s", place->path, place->document->source,
             place->node->key_line, say);
    return add_note(r, place->path + strspn(place->path, "-"), text);
}

/* Finds the value for a rule that only reports. `out->place` is NULL if the rule does not apply or the value is off. */
static enum plim_status find_reported(struct reader *r, const struct plim_yaml_node *rule, struct seen *out)
{
    bool here;
    *out = (struct seen){0};
    if (!plim_yaml_get(rule, "say")) return plim_config_job_damaged(rule, "nothing to say", r->err);
    enum plim_status st = holds(r, rule, &here);
    if (!st && here) st = find_value(r, plim_yaml_get(rule, "at"), out);
    if (st || !out->place) return st;
    bool is_off = plim_config_word_is_same(out->text, "false") || !plim_config_word_is_set(out->text);
    bool is_alone = plim_yaml_get(rule, "several") && !strchr(out->text, ',');
    size_t count;
    if (is_off || is_alone || plim_config_words_among(plim_yaml_get(rule, "words"), out->text, &count) == count)
        out->place = NULL;
    return PLIM_OK;
}

static enum plim_status refuse_job(struct reader *r, const struct plim_yaml_node *rule)
{
    const struct plim_yaml_node *names = plim_yaml_get(rule, "names");
    const struct plim_config_document *document = first_document(r);
    struct seen seen;
    bool here = false;
    enum plim_status st = find_reported(r, rule, &seen);
    if (!st && names) st = holds(r, rule, &here);
    if (here) {
        struct plim_config_program program = plim_config_job_program(names, document);
        return plim_config_fail(document, program.begin, r->err, "a job with '%.*s' cannot be planned: %s",
                                (int)program.length, document->text + program.begin, plim_yaml_get(rule, "say")->text);
    }
    if (st || !seen.place) return st;
    return plim_config_refuse(&r->group, seen.place, "a job with '%.100s' cannot be planned: %s", seen.place->path,
                              plim_yaml_get(rule, "say")->text);
}

/* Adds a note on a key that affects memory but is not part of the plan. */
static enum plim_status note_unplanned(struct reader *r, const struct plim_yaml_node *rule)
{
    const struct plim_yaml_node *say = plim_yaml_get(rule, "say"), *name = plim_yaml_get(rule, "name");
    struct seen seen;
    char text[600];
    bool here;
    enum plim_status st = find_reported(r, rule, &seen);
    if (!st && name) st = holds(r, rule, &here);
    if (st || (name ? !here : !seen.place)) return st;
    snprintf(text, sizeof(text), "%s: not in the plan: %s", name ? name->text : "", say->text);
    if (name) return add_note(r, name->text, text);
    return add_place_note(r, seen.place, say->text);
}

typedef enum plim_status rule_use(struct reader *, const struct plim_yaml_node *);

/* Applies a function to every rule of a list. `depth` is the nesting depth of lists that include one another. */
static enum plim_status each_of(struct reader *r, const struct plim_yaml_node *rules, rule_use *apply, int depth)
{
    enum { DEEPEST = 4 };
    enum plim_status st = PLIM_OK;
    for (size_t i = 0; rules && i < rules->count && !st; i++) {
        const struct plim_yaml_node *list = plim_config_job_list(rules->items[i]);
        if (list && depth == DEEPEST) st = plim_config_job_damaged(rules->items[i], "lists too deep", r->err);
        else st = list ? each_of(r, list, apply, depth + 1) : apply(r, rules->items[i]);
    }
    return st;
}

static enum plim_status each_rule(struct reader *r, const char *field, rule_use *apply)
{
    return each_of(r, plim_yaml_get(r->row, field), apply, 0);
}

/* --- files named by the config ---------------------------------------------------------------- */

static enum plim_status read_file(struct reader *r, const char *path, const char *package)
{
    struct plim_config_plan *plan = &r->job->plan;
    char *text = NULL;
    size_t length;
    enum plim_status st = plim_textfile_read(path, MAX_BYTES, &text, &length, r->err);
    if (st) return st;
    struct plim_config_file *file = &plan->files[plan->count];
    file->path = path;
    st = plim_config_read(path, text, length, NULL, &file->document, r->err);
    free(text);
    if (st) return st;
    plan->count++;
    return plim_config_places_add(&plan->places, &file->document, package, r->err);
}

/* Finds a file in the folder of `source`, or in one above it, as programs are started at the top of their trees. */
static const char *find_above(struct reader *r, const char *source, const char *name)
{
    char path[MAX_TEXT];
    for (size_t length = strlen(source); length;) {
        while (length && source[length - 1] != '/') length--;
        snprintf(path, sizeof(path), "%.*s%s", (int)length, source, name);
        if (!access(path, R_OK)) return copy_text(r, path);
        if (length) length--;
    }
    return NULL;
}

/* Finds a file relative to the file that names it, the first file, or the working directory. NULL: there is none. */
static const char *find_file(struct reader *r, const struct plim_config_place *place,
                             const char *name)
{
    const char *found = *name == '/' ? NULL : find_above(r, place->document->source, name);
    if (!found && *name != '/') found = find_above(r, first_document(r)->source, name);
    if (!found && !access(name, R_OK)) found = copy_text(r, name);
    return found;
}

/* Reads the file named by the value at a path. The value is a file name if it has a dot and is not a number. */
static enum plim_status read_named(struct reader *r, const char *pattern)
{
    struct plim_config_plan *plan = &r->job->plan;
    const struct plim_config_place *place = find_place(r, pattern);
    struct seen seen = {0};
    enum plim_status st = place ? read_place(r, place, &seen) : PLIM_OK;
    bool named = seen.place && strchr(seen.text, '.') && !plim_config_integer(seen.text);
    if (st || !named) return st;
    const char *path = seen.foreign ? NULL : find_file(r, seen.place, seen.text),
               *dot = strrchr(pattern, '.');
    for (size_t i = 0; path && i < plan->count; i++)
        if (!strcmp(plan->files[i].path, path)) return PLIM_OK;
    if (!path && is_given(r, "train.sharding")) return PLIM_OK;
    if (!path)
        return plim_config_refuse(&r->group, seen.place, "'%.200s' is %s, expected that file, or --sharding",
                                  seen.foreign ? seen.place->path : seen.text,
                                  seen.foreign ? "filled in by something else" : "not here");
    if (plan->count == PLIM_CONFIG_FILES) return PLIM_OK;
    return read_file(r, path, dot ? dot + 1 : pattern);
}

static enum plim_status read_others(struct reader *r)
{
    const struct plim_yaml_node *files = plim_yaml_get(r->row, "files");
    enum plim_status st = PLIM_OK;
    for (int pass = 0; pass < MAX_PASSES; pass++)
        for (size_t i = 0; i < plim_config_job_texts(files) && !st; i++)
            st = read_named(r, plim_config_job_text(files, i));
    return st;
}

/* --- whole job -------------------------------------------------------------------------------- */

static enum plim_status read_model(struct reader *r)
{
    struct seen seen;
    if (r->ask->model_given) return PLIM_OK;
    enum plim_status st = find_value(r, plim_yaml_get(r->row, "model"), &seen);
    if (st) return st;
    const char *source = r->job->plan.files[0].path;
    if (!seen.place)
        return plim_fail_at(r->err, PLIM_SPEC, source, 0, 0,
                            "a config of %s that names no model, expected --model SPEC",
                            r->job->title);
    if (seen.foreign)
        return plim_config_refuse(&r->group, seen.place,
                                  "something else fills in '%.100s', expected --model SPEC%s",
                                  seen.place->path, "");
    r->job->model = seen.text;
    r->job->model_file = copy_text(r, seen.place->document->source);
    return r->job->model_file ? PLIM_OK : plim_no_memory(r->err);
}

/* Finds the places of the batch sizes and their values. */
static enum plim_status find_sizes(struct reader *r)
{
    static const enum plim_config_role roles[] = {PLIM_CONFIG_MICRO, PLIM_CONFIG_ACCUMULATION, PLIM_CONFIG_STEP,
                                                  PLIM_CONFIG_GLOBAL};
    enum plim_status st = PLIM_OK;
    for (size_t i = 0; i < sizeof(roles) / sizeof(roles[0]) && !st; i++)
        st = plim_config_find(&r->job->plan, r->job->framework->roles[roles[i]], NULL, plim_config_role_text(roles[i]),
                              &r->group.found[roles[i]], r->err);
    if (!st) plim_config_find_divided(&r->group);
    return st;
}

/* Sets *out to a size: 0 if the files do not have it, -1 if it is filled in from elsewhere, which adds a note. */
static enum plim_status read_size(struct reader *r, enum plim_config_role role, int64_t *out)
{
    const struct plim_config_found *found = &r->group.found[role];
    *out = found->number;
    if (!found->place || found->number || found->value.meaning == PLIM_CONFIG_UNSET) return PLIM_OK;
    *out = -1;
    if (is_given(r, "train.effective_batch")) return PLIM_OK;
    return add_place_note(r, found->place,
                          "something else fills it in, and no effective batch is kept (--effective-batch N)");
}

/* Returns the global batch if the script derives the accumulation from it by division; otherwise 0. */
static int64_t divided_batch(const struct reader *r)
{
    const struct plim_config_found *found = r->group.found;
    bool is_quotient = found[PLIM_CONFIG_ACCUMULATION].place && !found[PLIM_CONFIG_ACCUMULATION].number;
    return is_quotient ? found[PLIM_CONFIG_GLOBAL].number : 0;
}

static enum plim_status read_sizes(struct reader *r)
{
    struct plim_config_job *job = r->job;
    int64_t step = 0, dp;
    enum plim_status st;
    PLIM_TRY(find_sizes(r));
    dp = plim_config_dp(&r->group, job->framework);
    if (!dp) dp = plim_config_dp(&r->group, plim_config_common());
    job->world = dp > 0 ? dp : 0;
    PLIM_TRY(read_size(r, PLIM_CONFIG_MICRO, &job->micro));
    job->effective = divided_batch(r);
    if (!job->effective) PLIM_TRY(read_size(r, PLIM_CONFIG_ACCUMULATION, &job->accumulation));
    PLIM_TRY(read_size(r, PLIM_CONFIG_STEP, &step));
    if (job->micro > 0 && !job->accumulation && !job->effective)
        job->accumulation = step > 0 ? step / job->micro : step < 0 ? 0 : 1;
    if (job->micro < 0) job->micro = 0;
    if (job->accumulation < 0) job->accumulation = 0;
out:
    return st;
}

static enum plim_status read_job(struct reader *r)
{
    enum plim_status st;
    const struct plim_yaml_node *refuse = plim_yaml_get(r->row, "refuse");
    if (refuse) return plim_fail_at(r->err, PLIM_SPEC, r->job->plan.files[0].path, 0, 0, "%s", refuse->text);
    PLIM_TRY(read_others(r));
    PLIM_TRY(each_rule(r, "refused", refuse_job));
    PLIM_TRY(read_model(r));
    PLIM_TRY(each_rule(r, "spec", apply_rule));
    PLIM_TRY(read_sizes(r));
    PLIM_TRY(each_rule(r, "unplanned", note_unplanned));
out:
    return st;
}

static bool is_script(const struct plim_config_format *format)
{
    return format->language == PLIM_CONFIG_SHELL || format->language == PLIM_CONFIG_PYTHON;
}

enum plim_status plim_config_job_read(const char *path, const struct plim_config_job_ask *ask,
                                      struct plim_config_job *out, struct plim_error *err)
{
    static const struct plim_config_ask nothing = {0};
    struct plim_error ignored = PLIM_ERROR_INIT;
    struct reader r = {.job = out, .ask = ask, .err = &ignored};
    const struct plim_config_framework *framework = NULL;
    *out = (struct plim_config_job){0};
    enum plim_status st = read_file(&r, path, "");
    if (st == PLIM_SPEC && is_script(plim_config_format_of(path, "", 0))) {
        *err = ignored;
        return st;
    }
    if (!st) st = plim_config_recognise(&out->plan.places, NULL, &framework, &ignored);
    if (st == PLIM_NOMEM) return plim_no_memory(err);
    if (!out->plan.count) return PLIM_OK;
    out->is_script = is_script(out->plan.files[0].document.format);
    /* A plimsoll spec or a model's config.json may share keys with a trainer's config. */
    if (!out->is_script && plim_config_has(&out->plan.places, "model.family|model.hf|model.zoo|architectures", false))
        return PLIM_OK;
    out->is_jobless = out->is_script || plim_config_has(&out->plan.places, "model_name_or_path", false);
    if (st || !framework) return PLIM_OK;
    st = plim_config_job_row(framework, &out->plan.files[0].document, &out->plan.places, &r.row, err);
    if (!r.row && !framework->guess) out->other = framework;
    if (st || !r.row) return st;
    out->is_jobless = false;
    const struct plim_yaml_node *title = plim_yaml_get(r.row, "title");
    out->framework = framework;
    out->title = title ? title->text : framework->title;
    r.err = err;
    r.group = (struct plim_config_group){
        .plan = &out->plan, .ask = &nothing, .framework = framework, .repeats = 1, .err = err};
    return read_job(&r);
}

void plim_config_job_finish(struct plim_config_job *job)
{
    if (!job) return;
    plim_config_plan_finish(&job->plan);
    plim_arena_finish(&job->arena);
}
