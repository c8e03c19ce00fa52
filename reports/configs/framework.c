#include "framework.h"
#include "autotune/base/embed.h"
#include "autotune/base/text.h"
#include "autotune/base/yaml.h"
#include "reports/result.h"
#include <ctype.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern const struct plim_embedded_file plim_frameworks_data[];

enum { MAX_ROWS = 160 };

static struct {
    pthread_once_t once;
    struct plim_config_framework rows[MAX_ROWS], common;
    size_t count;
    struct plim_yaml yaml; /* owns the texts of the rows; kept for the life of the process */
    struct plim_error err;
} table = {.once = PTHREAD_ONCE_INIT};

static const char *const role_names[] = {
#define NAME(id, name) #name,
    PLIM_CONFIG_ROLE_MAP(NAME)
#undef NAME
};

const char *plim_config_role_name(enum plim_config_role role)
{
    return role_names[role];
}

int64_t plim_config_role_value(enum plim_config_role role, const struct plim_config_sizes *sizes)
{
    const int64_t micro = sizes->micro, accumulation = sizes->accumulation, dp = sizes->dp;
    const int64_t values[] = {[PLIM_CONFIG_MICRO] = micro,
                              [PLIM_CONFIG_ACCUMULATION] = accumulation,
                              [PLIM_CONFIG_GLOBAL] = micro * accumulation * dp,
                              [PLIM_CONFIG_STEP] = micro * accumulation,
                              [PLIM_CONFIG_TOTAL] = micro * dp,
                              [PLIM_CONFIG_ROUNDS] = accumulation * dp,
                              [PLIM_CONFIG_SEQ] = sizes->seq};
    return values[role];
}

/* --- reading the table ------------------------------------------------------------------------ */

static const struct field {
    const char *key;
    enum { TEXT, LIST, FLAG, NEEDS, NODE } kind;
    size_t offset;
} fields[] = {
#define AT(member) offsetof(struct plim_config_framework, member)
    {"name", TEXT, AT(name)},
    {"title", TEXT, AT(title)},
    {"aka", LIST, AT(aka)},
    {"marks", LIST, AT(marks)},
    {"only", FLAG, AT(only)},
    {"formats", LIST, AT(formats)},
#define ROLE(id, name) {#name, LIST, AT(roles[PLIM_CONFIG_##id])},
    PLIM_CONFIG_ROLE_MAP(ROLE)
#undef ROLE
        {"needs", NEEDS, AT(needs)},
    {"tokens", LIST, AT(tokens)},
    {"by_epoch", LIST, AT(by_epoch)},
    {"schedules", LIST, AT(schedules)},
    {"dp", LIST, AT(dp)},
    {"devices", LIST, AT(devices)},
    {"nodes", LIST, AT(nodes)},
    {"parallel", LIST, AT(parallel)},
    {"multiple_of", LIST, AT(multiple_of)},
    {"with_accumulation", LIST, AT(with_accumulation)},
    {"rates", LIST, AT(rates)},
    {"outputs", LIST, AT(outputs)},
    {"single", LIST, AT(single)},
    {"repeats", LIST, AT(repeats)},
    {"checkpointed", LIST, AT(checkpointed)},
    {"outside", TEXT, AT(outside)},
    {"arguments", TEXT, AT(arguments)},
    {"no_accumulation", TEXT, AT(no_accumulation)},
    {"warning", TEXT, AT(warning)},
    {"hydra", FLAG, AT(hydra)},
    {"upper", FLAG, AT(upper)},
    {"numbers", FLAG, AT(numbers)},
    {"lists", FLAG, AT(lists)},
    {"guess", FLAG, AT(guess)},
    {"terms", NODE, AT(terms)},
    {"emits", NODE, AT(emits)},
    {"switches", NODE, AT(switches)},
#undef AT
};

static enum plim_status read_list(const struct plim_yaml_node *node, const char **out,
                                  struct plim_error *err)
{
    if (node->kind == PLIM_YAML_SCALAR) {
        out[0] = node->text;
        return PLIM_OK;
    }
    if (node->kind != PLIM_YAML_SEQUENCE || node->count >= PLIM_CONFIG_LIST)
        return plim_yaml_fail(&table.yaml, node, err, "expected a list of at most %d",
                              PLIM_CONFIG_LIST - 1);
    for (size_t i = 0; i < node->count; i++) out[i] = node->items[i]->text;
    return PLIM_OK;
}

/* Reads sets of roles such as "micro accumulation". */
static enum plim_status read_needs(const struct plim_yaml_node *node, unsigned *out,
                                   struct plim_error *err)
{
    const char *sets[PLIM_CONFIG_LIST] = {NULL};
    enum plim_status st = read_list(node, sets, err);
    for (size_t i = 0; !st && sets[i]; i++) {
        if (i + 1 == PLIM_CONFIG_NEEDS) return plim_yaml_fail(&table.yaml, node, err, "too many");
        for (const char *at = sets[i]; *at; at += strspn(at, " ")) {
            size_t length = strcspn(at, " ");
            unsigned role = 0;
            while (role < PLIM_CONFIG_ROLE_COUNT && (strlen(role_names[role]) != length ||
                                                     strncmp(role_names[role], at, length) != 0))
                role++;
            if (role == PLIM_CONFIG_ROLE_COUNT)
                return plim_yaml_fail(&table.yaml, node, err, "expected names of sizes");
            out[i] |= 1u << role;
            at += length;
        }
    }
    return st;
}

static enum plim_status read_row(const struct plim_yaml_node *node,
                                 struct plim_config_framework *row, struct plim_error *err)
{
    for (size_t i = 0; i < node->count; i++) {
        const struct field *field = fields, *end = fields + sizeof(fields) / sizeof(fields[0]);
        const struct plim_yaml_node *value = node->items[i];
        while (field < end && strcmp(field->key, node->keys[i]->text) != 0) field++;
        if (field == end)
            return plim_yaml_fail(&table.yaml, node->keys[i], err, "unknown field of a framework");
        void *at = (char *)row + field->offset;
        enum plim_status st = PLIM_OK;
        switch (field->kind) {
        case TEXT:
            *(const char **)at = value->text;
            break;
        case LIST:
            st = read_list(value, at, err);
            break;
        case FLAG:
            st = plim_yaml_bool(&table.yaml, value, at, err);
            break;
        case NEEDS:
            st = read_needs(value, at, err);
            break;
        case NODE:
            *(const struct plim_yaml_node **)at = value;
            break;
        }
        if (st) return st;
    }
    if (!row->needs[0])
        row->needs[0] =
            1u << PLIM_CONFIG_MICRO | (row->no_accumulation ? 0u : 1u << PLIM_CONFIG_ACCUMULATION);
    return PLIM_OK;
}

static void read_table(void)
{
    const struct plim_embedded_file *file = &plim_frameworks_data[0];
    struct plim_error *err = &table.err;
    if (plim_yaml_read_string(file->name, file->text, file->size, &table.yaml, err)) return;
    const struct plim_yaml_node *common = plim_yaml_get(table.yaml.root, "common");
    const struct plim_yaml_node *rows = plim_yaml_get(table.yaml.root, "frameworks");
    if (!common || !rows || rows->count > MAX_ROWS) {
        (void)plim_fail(err, PLIM_INTERNAL, "the table of frameworks is damaged");
        return;
    }
    if (read_row(common, &table.common, err)) return;
    for (size_t i = 0; i < rows->count; i++)
        if (read_row(rows->items[i], &table.rows[i], err)) return;
    table.count = rows->count;
}

const struct plim_yaml_node *plim_config_term(const struct plim_config_framework *framework,
                                              const char *name)
{
    const struct plim_yaml_node *own = framework->terms, *common = plim_config_common()->terms,
                                *term = own ? plim_yaml_get(own, name) : NULL;
    return term || !common ? term : plim_yaml_get(common, name);
}

const char *plim_config_word(const struct plim_yaml_node *term,
                             const struct plim_result_setting *setting)
{
    const struct plim_yaml_node *of = plim_yaml_get(term, "of"),
                                *word = plim_yaml_get(term, plim_result_value(setting, of->text));
    return word ? word->text : NULL;
}

enum plim_status plim_config_framework_damaged(const struct plim_yaml_node *node,
                                               struct plim_error *err, const char *what)
{
    return plim_fail_at(err, PLIM_INTERNAL, plim_frameworks_data[0].name, node->line, node->column,
                        "%s", what);
}

/* --- access to the table ---------------------------------------------------------------------- */

enum plim_status plim_config_frameworks(const struct plim_config_framework **rows, size_t *count,
                                        struct plim_error *err)
{
    (void)pthread_once(&table.once, read_table);
    *rows = table.rows;
    *count = table.count;
    if (!table.err.status) return PLIM_OK;
    return plim_fail_at(err, PLIM_INTERNAL, table.err.file, table.err.line, table.err.column, "%s",
                        table.err.text);
}

const struct plim_config_framework *plim_config_common(void)
{
    (void)pthread_once(&table.once, read_table);
    return &table.common;
}

/* Compares only letters and digits: "LLaMA-Factory", "llama factory". */
static bool is_same_name(const char *a, const char *b)
{
    for (;; a++, b++) {
        while (*a && !isalnum((unsigned char)*a)) a++;
        while (*b && !isalnum((unsigned char)*b)) b++;
        if (!*a || !*b) return *a == *b;
        if (tolower((unsigned char)*a) != tolower((unsigned char)*b)) return false;
    }
}

static bool is_named(const struct plim_config_framework *row, const char *name)
{
    bool same = is_same_name(row->name, name) || (row->title && is_same_name(row->title, name));
    for (size_t i = 0; row->aka[i] && !same; i++) same = is_same_name(row->aka[i], name);
    return same;
}

enum plim_status plim_config_framework_find(const char *name,
                                            const struct plim_config_framework **out,
                                            struct plim_error *err)
{
    const char *names[MAX_ROWS];
    const struct plim_config_framework *rows;
    size_t count;
    char word[64];
    enum plim_status st = plim_config_frameworks(&rows, &count, err);
    if (st) return st;
    /* Text in parentheses is a remark: "Hydra + Lightning (safari)". */
    snprintf(word, sizeof(word), "%.*s", (int)strcspn(name, "("), name);
    for (size_t i = 0; i < count; i++) {
        *out = &rows[i];
        names[i] = rows[i].name;
        if (is_named(&rows[i], name) || is_named(&rows[i], word)) return PLIM_OK;
    }
    int near = plim_nearest(name, names, count);
    if (near >= 0)
        return plim_fail(err, PLIM_INVALID, "no framework '%s' is known, did you mean %s?", name,
                         names[near]);
    return plim_fail(err, PLIM_INVALID,
                     "no framework '%s' is known (plimsoll emit --list has the names); for apply "
                     "--set PATH=micro_batch names the keys of any other",
                     name);
}
