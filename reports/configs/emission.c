#include "emission.h"
#include "autotune/base/text_stream.h"
#include "autotune/base/yaml.h"
#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_SIZE = 32, WORD_SIZE = 256, DEPTH = 3, SAID_OPTIONS = 8 };

/* --- forms ------------------------------------------------------------------------------------ */

/* Returns the length of a placeholder "{name}" or "{name?}" at `at`; 0 if there is none, as for braces of JSON. */
static size_t placeholder(const char *at, char name[NAME_SIZE], bool *optional)
{
    size_t length = 0;
    while (islower((unsigned char)at[1 + length]) || isdigit((unsigned char)at[1 + length]) ||
           at[1 + length] == '_')
        length++;
    *optional = at[1 + length] == '?';
    if (at[0] != '{' || !length || length >= NAME_SIZE || at[1 + length + *optional] != '}')
        return 0;
    snprintf(name, NAME_SIZE, "%.*s", (int)length, at + 1);
    return length + 2 + *optional;
}

static enum plim_status no_form(const char *name, const struct plim_config_framework *row,
                                struct plim_error *err)
{
    char list[128] = "";
    for (size_t i = 0; row->emits && i < row->emits->count; i++) {
        size_t used = strlen(list);
        snprintf(list + used, sizeof(list) - used, "%s%s.%s", used ? ", " : "", row->name,
                 row->emits->keys[i]->text);
    }
    if (!row->emits)
        return plim_fail(err, PLIM_INVALID, "'%s': nothing can be emitted for %s", name, row->title);
    return plim_fail(err, PLIM_INVALID, "there is no form '%s', expected %s", name, list);
}

enum plim_status plim_config_form_find(const char *name, struct plim_config_form *out,
                                       struct plim_error *err)
{
    char word[64];
    const char *dot = strrchr(name, '.');
    const struct plim_config_framework *row;
    snprintf(word, sizeof(word), "%.*s", dot ? (int)(dot - name) : 63, name);
    enum plim_status st = plim_config_framework_find(word, &row, err);
    if (st) return st;
    for (size_t i = 0; row->emits && i < row->emits->count; i++) {
        *out = (struct plim_config_form){row, row->emits->keys[i]->text, row->emits->items[i]->text};
        if (!dot || !strcmp(dot + 1, out->name)) return PLIM_OK;
    }
    return no_form(name, row, err);
}

enum plim_status plim_config_forms_list(FILE *out, struct plim_error *err)
{
    const struct plim_config_framework *rows;
    size_t count;
    enum plim_status st = plim_config_frameworks(&rows, &count, err);
    for (size_t i = 0; i < count && !st; i++) {
        if (!rows[i].emits) continue;
        fprintf(out, "%-16s %-24s", rows[i].name, rows[i].title);
        for (size_t k = 0; k < rows[i].emits->count; k++)
            fprintf(out, " %s", rows[i].emits->keys[k]->text);
        fputc('\n', out);
    }
    return st;
}

/* --- values of placeholders ------------------------------------------------------------------- */

struct writer {
    const struct plim_config_form *form;
    const struct plim_config_answer *answer;
    struct plim_error *err;
    unsigned roles;                 /* sizes that the text contains */
    bool said[PLIM_RESULT_VALUES];  /* values of the setting that the text contains */
    const char *said_options[SAID_OPTIONS + 1]; /* keys of the spec that the text contains; terminated by NULL */
};

/* Result of looking up a placeholder: known, value unknown, no such placeholder, failed. */
enum meaning { KNOWN, UNKNOWN, NO_NAME, FAILED };

static enum meaning write_number(int64_t number, char out[WORD_SIZE])
{
    if (number <= 0) return UNKNOWN;
    snprintf(out, WORD_SIZE, "%" PRId64, number);
    return KNOWN;
}

static enum meaning size_of(struct writer *w, const char *name, char out[WORD_SIZE])
{
    const struct plim_config_answer *a = w->answer;
    for (int role = 0; role < PLIM_CONFIG_ROLE_COUNT; role++)
        if (!strcmp(name, plim_config_role_name((enum plim_config_role)role))) {
            w->roles |= 1u << role;
            return write_number(plim_config_role_value((enum plim_config_role)role, &a->sizes), out);
        }
    return NO_NAME;
}

/* Numbers that follow from the sizes. */
static enum meaning number_of(struct writer *w, const char *name, char out[WORD_SIZE])
{
    const struct plim_config_answer *a = w->answer;
    const int64_t node = a->gpus_per_node && a->world > a->gpus_per_node ? a->gpus_per_node
                                                                         : a->world,
                  step = a->sizes.micro * a->sizes.accumulation;
    const struct {
        const char *name;
        int64_t number;
        unsigned roles;
    } numbers[] = {{"dp", a->sizes.dp, 0},
                   {"world", a->world, 0},
                   {"gpus", node, 0},
                   {"nodes", node ? a->world / node : 0, 0},
                   {"micro_tokens", a->sizes.micro * a->sizes.seq, 1u << PLIM_CONFIG_MICRO},
                   {"global_tokens", step * a->sizes.dp * a->sizes.seq,
                    1u << PLIM_CONFIG_GLOBAL | 1u << PLIM_CONFIG_ACCUMULATION}};
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        if (!strcmp(name, numbers[i].name)) {
            w->roles |= numbers[i].roles;
            return write_number(numbers[i].number, out);
        }
    if (strcmp(name, "about") != 0) return NO_NAME;
    snprintf(out, WORD_SIZE, "%s", a->about);
    return a->about[0] ? KNOWN : UNKNOWN;
}

static enum meaning expand(struct writer *w, const char *text, int depth, char out[WORD_SIZE]);

/* Returns the word of a term for use_reentrant, which is not a value of a setting but common to all that use
 * checkpointing; NULL if this one does not, or it is unknown. */
static const char *reentrant_of(struct writer *w, const struct plim_yaml_node *term)
{
    const struct plim_config_answer *a = w->answer;
    bool is_known = a->spec && a->setting && !strcmp(plim_result_value(a->setting, "checkpointing"), "full");
    const struct plim_yaml_node *word = is_known ? plim_yaml_get(term, a->spec->use_reentrant) : NULL;
    return word ? word->text : NULL;
}

/* Returns the word of a term for a key of the spec, with its value or "none". */
static const char *option_of(struct writer *w, const struct plim_yaml_node *term, const char *key)
{
    const struct plim_result_spec *spec = w->answer->spec;
    const char *value = "none";
    for (size_t i = 0; spec && i < spec->options.count; i++)
        if (!strcmp(spec->options.items[i].key, key) && spec->options.items[i].value)
            value = spec->options.items[i].value;
    const struct plim_yaml_node *word = plim_yaml_get(term, value);
    return word ? word->text : NULL;
}

static void note_said(struct writer *w, const char *key)
{
    size_t count = 0;
    while (count < SAID_OPTIONS && w->said_options[count]) count++;
    if (count < SAID_OPTIONS) w->said_options[count] = key;
}

static enum meaning term_of(struct writer *w, const char *name, int depth, char out[WORD_SIZE])
{
    const struct plim_yaml_node *term = plim_config_term(w->form->framework, name), *of;
    const struct plim_result_setting *setting = w->answer->setting;
    if (!term) return NO_NAME;
    if (term->kind != PLIM_YAML_MAPPING || !(of = plim_yaml_get(term, "of"))) {
        (void)plim_config_framework_damaged(term, w->err, "expected {of: SETTING, VALUE: WORD}");
        return FAILED;
    }
    const bool reentrant = !strcmp(of->text, "use_reentrant"), option = !strncmp(of->text, "train.", 6);
    const char *word = reentrant ? reentrant_of(w, term)
                       : option  ? option_of(w, term, of->text)
                       : setting ? plim_config_word(term, setting)
                                 : NULL;
    if (!word) return UNKNOWN;
    if (reentrant || option) note_said(w, reentrant ? "train.use_reentrant" : of->text);
    for (size_t i = 0; setting && i < setting->value_count; i++)
        w->said[i] |= !strcmp(setting->values[i].name, of->text);
    const bool is_python = !strcmp(w->form->name, "python");
    if (is_python && !strcmp(word, "true")) return snprintf(out, WORD_SIZE, "True"), KNOWN;
    if (is_python && !strcmp(word, "false")) return snprintf(out, WORD_SIZE, "False"), KNOWN;
    return expand(w, word, depth + 1, out);
}

/* --- lines of the text ------------------------------------------------------------------------ */

static enum meaning refuse_size(struct writer *w, const char *name)
{
    const char *option = !strcmp(name, "micro")    ? "--micro-batch N"
                         : strstr(name, "_tokens") ? "--seq N, and --dp N"
                                                   : "--dp N, the data-parallel GPUs";
    (void)plim_fail(w->err, PLIM_INVALID, "%s.%s needs %s, which is not known: say %s",
                    w->form->framework->name, w->form->name, name, option);
    return FAILED;
}

static bool is_needed(const char *name)
{
    return strcmp(name, "dp") != 0 && strcmp(name, "world") != 0 && strcmp(name, "gpus") != 0 &&
           strcmp(name, "nodes") != 0 && strcmp(name, "about") != 0 && strcmp(name, "seq") != 0;
}

static enum meaning look_up(struct writer *w, const char *name, bool optional, int depth,
                            const struct plim_yaml_node *place, char out[WORD_SIZE])
{
    enum meaning meaning = size_of(w, name, out);
    if (meaning == NO_NAME) meaning = number_of(w, name, out);
    if (meaning == UNKNOWN && !optional && is_needed(name)) return refuse_size(w, name);
    if (meaning == NO_NAME) meaning = term_of(w, name, depth, out);
    if (meaning != NO_NAME) return meaning;
    char what[NAME_SIZE + 64];
    snprintf(what, sizeof(what), "there is no term and no size '%s'", name);
    (void)plim_config_framework_damaged(place, w->err, what);
    return FAILED;
}

/* Replaces the placeholders of a text. */
static enum meaning expand(struct writer *w, const char *text, int depth, char out[WORD_SIZE])
{
    size_t used = 0;
    out[0] = '\0';
    while (*text) {
        char name[NAME_SIZE], word[WORD_SIZE] = {*text, '\0'};
        bool optional;
        size_t length = depth < DEPTH ? placeholder(text, name, &optional) : 0;
        if (length) {
            enum meaning meaning =
                look_up(w, name, optional, depth, w->form->framework->emits, word);
            if (meaning != KNOWN) return meaning;
        }
        used += (size_t)snprintf(out + used, WORD_SIZE - used, "%s", word);
        if (used >= WORD_SIZE) {
            (void)plim_config_framework_damaged(w->form->framework->emits, w->err,
                                                "a line is too long");
            return FAILED;
        }
        text += length ? length : 1;
    }
    return KNOWN;
}

static bool is_one_line(const struct plim_config_form *form)
{
    return !strcmp(form->name, "cli") || !strcmp(form->name, "tokens");
}

/* Omits lines with unknown values, and lines that become empty; lines that are empty in the template are kept. */
static enum plim_status write_lines(struct writer *w, FILE *out)
{
    bool joined = is_one_line(w->form), begun = false;
    for (const char *at = w->form->text; *at;) {
        char line[WORD_SIZE], text[WORD_SIZE];
        size_t length = strcspn(at, "\n");
        snprintf(text, sizeof(text), "%.*s", (int)length, at);
        const struct writer before = *w;
        enum meaning meaning = length < WORD_SIZE ? expand(w, text, 0, line) : FAILED;
        if (meaning == FAILED)
            return plim_fail(w->err, PLIM_INTERNAL, "the table of frameworks is damaged");
        if (meaning == UNKNOWN) *w = before; /* the line is omitted, so it expresses nothing */
        if (meaning == KNOWN && (*line || !length)) {
            fprintf(out, "%s%s%s", joined && begun ? " " : "", line, joined ? "" : "\n");
            begun = true;
        }
        at += length + (at[length] == '\n');
    }
    if (joined) fputc('\n', out);
    return PLIM_OK;
}

/* --- parts of the answer that the text does not express --------------------------------------- */

/* True if the sizes in the text determine all sizes. A size for all GPUs determines its parts. */
static bool says_sizes(const struct writer *w)
{
    const unsigned *needs = w->form->framework->needs;
    const unsigned all = 1u << PLIM_CONFIG_MICRO | 1u << PLIM_CONFIG_ACCUMULATION;
    if ((w->roles & all) == all) return true;
    for (size_t i = 0; i < PLIM_CONFIG_NEEDS && needs[i]; i++)
        if ((w->roles & needs[i]) == needs[i] && needs[i] & ~(1u << PLIM_CONFIG_ACCUMULATION))
            return true;
    return false;
}

static void write_unsaid(const struct writer *w, FILE *out)
{
    const struct plim_config_answer *a = w->answer;
    const struct plim_result_setting *setting = a->setting;
    const char *comma = "";
    if (!says_sizes(w)) {
        if (!(w->roles >> PLIM_CONFIG_MICRO & 1))
            fprintf(out, "micro-batch %" PRId64, a->sizes.micro), comma = ", ";
        if (!(w->roles >> PLIM_CONFIG_ACCUMULATION & 1))
            fprintf(out, "%saccumulation %" PRId64, comma, a->sizes.accumulation), comma = ", ";
    }
    if (a->sizes.seq && setting && !(w->roles >> PLIM_CONFIG_SEQ & 1))
        fprintf(out, "%ssequence %" PRId64, comma, a->sizes.seq), comma = ", ";
    for (size_t i = 0; setting && i < setting->value_count; i++)
        if (!w->said[i] && strcmp(setting->values[i].text, "none") != 0)
            plim_result_write_fixed(setting->values[i].name, setting->values[i].text, &comma, out);
    plim_result_spec_fixed(a->spec, w->said_options, comma, out);
}

/* --- the whole text --------------------------------------------------------------------------- */

static enum plim_status check(const struct plim_config_form *form,
                              const struct plim_config_answer *answer, struct plim_error *err)
{
    const struct plim_config_framework *row = form->framework;
    if (answer->sizes.micro <= 0 || answer->sizes.accumulation <= 0)
        return plim_fail(err, PLIM_INVALID,
                         "the answer has no micro-batch: say it with --micro-batch N");
    if (row->no_accumulation && answer->sizes.accumulation > 1)
        return plim_fail(err, PLIM_INVALID, "an accumulation of %" PRId64 " cannot be given to %s: %s",
                         answer->sizes.accumulation, row->title, row->no_accumulation);
    if (answer->gpus_per_node && answer->world > answer->gpus_per_node &&
        answer->world % answer->gpus_per_node)
        return plim_fail(err, PLIM_INVALID,
                         "%" PRId64 " GPUs are no whole number of nodes of %" PRId64
                         ": say --gpus-per-node N",
                         answer->world, answer->gpus_per_node);
    return PLIM_OK;
}

enum plim_status plim_config_emit(const struct plim_config_form *form,
                                  const struct plim_config_answer *answer, char **text,
                                  char **unsaid, struct plim_error *err)
{
    struct plim_error own = PLIM_ERROR_INIT; /* so that the failure of a placeholder is always stored */
    struct writer w = {.form = form, .answer = answer, .err = err ? err : &own};
    struct plim_text_stream stream, rest;
    *text = *unsaid = NULL;
    enum plim_status st = check(form, answer, w.err);
    if (st) return st;
    FILE *out = plim_text_stream_open(&stream);
    if (out) st = write_lines(&w, out);
    if (plim_text_stream_close(&stream, text) && !st) st = PLIM_NOMEM;
    if (!st) {
        out = plim_text_stream_open(&rest);
        if (out) write_unsaid(&w, out);
        st = plim_text_stream_close(&rest, unsaid);
    }
    if (!st) return PLIM_OK;
    free(*text);
    free(*unsaid);
    *text = *unsaid = NULL;
    return w.err->status ? w.err->status : plim_no_memory(err);
}
