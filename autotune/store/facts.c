#include "facts.h"
#include "autotune/base/utf8.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Copies a string, with bytes that are not UTF-8 as "\\xNN", so that reading the file gives the same value. Returns
 * NULL if host memory ran out. */
static char *copy_text(const char *text)
{
    size_t left = strlen(text), used = 0;
    char *copy = malloc(4 * left + 1);
    while (copy && left > 0) {
        uint32_t code;
        size_t bytes = plim_utf8_decode((const unsigned char *)text, left, &code);
        if (bytes)
            memcpy(copy + used, text, bytes);
        else
            snprintf(copy + used, 5, "\\x%02x", (unsigned char)*text);
        used += bytes ? bytes : 4;
        text += bytes ? bytes : 1;
        left -= bytes ? bytes : 1;
    }
    if (copy) copy[used] = '\0';
    return copy;
}

void plim_facts_add(struct plim_facts *facts, const char *name, const char *value)
{
    struct plim_fact fact = {.value = copy_text(value ? value : "")};
    snprintf(fact.name, sizeof(fact.name), "%s", name);
    if (fact.value && PLIM_ARRAY_PUSH(&facts->list, fact) == PLIM_OK) return;
    free(fact.value);
    facts->failed = true;
}

void plim_facts_format(struct plim_facts *facts, const char *name, const char *format, ...)
{
    char text[256];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    plim_facts_add(facts, name, text);
}

void plim_facts_finish(struct plim_facts *facts)
{
    if (!facts) return;
    for (size_t i = 0; i < facts->list.count; i++) free(facts->list.items[i].value);
    PLIM_ARRAY_FINISH(&facts->list);
    facts->failed = false;
}

const char *plim_facts_get(const struct plim_facts *facts, const char *name)
{
    for (size_t i = 0; i < facts->list.count; i++)
        if (!strcmp(facts->list.items[i].name, name)) return facts->list.items[i].value;
    return "";
}

/* Compares the facts of `a` with those of `b`. */
static enum plim_facts_state compare_with(const struct plim_facts *a, const struct plim_facts *b,
                                          enum plim_facts_state state, const char **culprit)
{
    for (size_t i = 0; i < a->list.count; i++) {
        const struct plim_fact *fact = &a->list.items[i];
        const char *other = plim_facts_get(b, fact->name);
        enum plim_facts_state one = !*fact->value || !*other     ? PLIM_FACTS_UNKNOWN
                                    : strcmp(fact->value, other) ? PLIM_FACTS_MISMATCH
                                                                 : PLIM_FACTS_MATCH;
        if (one <= state) continue;
        state = one;
        *culprit = fact->name;
    }
    return state;
}

enum plim_facts_state plim_facts_compare(const struct plim_facts *kept,
                                         const struct plim_facts *now, const char **culprit)
{
    *culprit = "";
    enum plim_facts_state state = compare_with(kept, now, PLIM_FACTS_MATCH, culprit);
    return compare_with(now, kept, state, culprit);
}

bool plim_facts_equal(const struct plim_facts *a, const struct plim_facts *b)
{
    if (a->list.count != b->list.count) return false;
    for (size_t i = 0; i < a->list.count; i++) {
        const struct plim_fact *x = &a->list.items[i], *y = &b->list.items[i];
        if (strcmp(x->name, y->name) != 0 || strcmp(x->value, y->value) != 0) return false;
    }
    return true;
}

static void add_counted(struct plim_sha256 *hash, const char *text)
{
    char length[24];
    int digits = snprintf(length, sizeof(length), "%zu:", strlen(text));
    plim_sha256_add(hash, length, (size_t)digits);
    plim_sha256_add(hash, text, strlen(text));
}

void plim_facts_hash(const struct plim_facts *facts, char out[PLIM_SHA256_TEXT])
{
    struct plim_sha256 hash;
    plim_sha256_init(&hash);
    for (size_t i = 0; i < facts->list.count; i++) {
        add_counted(&hash, facts->list.items[i].name);
        add_counted(&hash, facts->list.items[i].value);
    }
    plim_sha256_finish(&hash, out);
}

void plim_facts_write(const struct plim_facts *facts, struct plim_json *json, json_t *parent,
                      const char *key)
{
    json_t *node = plim_json_object(json, parent, key);
    for (size_t i = 0; i < facts->list.count; i++)
        plim_json_text(json, node, facts->list.items[i].name, facts->list.items[i].value);
}

enum plim_status plim_facts_read(const struct plim_yaml *yaml, const struct plim_yaml_node *node,
                                 struct plim_facts *facts, struct plim_error *err)
{
    const char *text;
    if (!node || node->kind != PLIM_YAML_MAPPING)
        return plim_fail(err, PLIM_SPEC, "%s: expected a mapping of facts", yaml->source);
    for (size_t i = 0; i < node->count; i++) {
        enum plim_status st = plim_yaml_text(yaml, node->items[i], &text, err);
        if (st) return st;
        plim_facts_add(facts, node->keys[i]->text, text);
    }
    return facts->failed ? plim_no_memory(err) : PLIM_OK;
}
