/* workloads/spec/README.md has the tables that the program's own descriptions of its keys make. */
#include "workloads/spec/hf_config.h"
#include "workloads/spec/key_doc.h"
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct text {
    char bytes[1 << 17];
    size_t length;
};

__attribute__((format(printf, 2, 3))) static void add(struct text *text, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int length = vsnprintf(text->bytes + text->length, sizeof(text->bytes) - text->length, format, args);
    va_end(args);
    text->length += (size_t)length;
    cr_assert(lt(sz, text->length, sizeof(text->bytes)));
}

/* A cell: | would end it. */
static void add_cell(struct text *text, const char *cell)
{
    for (; *cell; cell++) add(text, "%s%c", *cell == '|' ? "\\" : "", *cell);
    add(text, " |");
}

static void expect_in_page(const struct text *table, const char *what)
{
    static char page[1 << 18];
    FILE *file = fopen(PLIM_SOURCE_ROOT "/workloads/spec/README.md", "r");
    cr_assert(file != NULL);
    page[fread(page, 1, sizeof(page) - 1, file)] = '\0';
    fclose(file);
    if (strstr(page, table->bytes)) return;
    char name[64];
    snprintf(name, sizeof(name), "spec-%s.md", what);
    file = fopen(name, "w");
    cr_assert(file != NULL);
    fputs(table->bytes, file);
    fclose(file);
    cr_expect(false, "workloads/spec/README.md has an older table of %s; as it should be, it is in %s", what, name);
}

Test(spec_docs, the_page_has_every_key_of_a_spec)
{
    static struct text table;
    add(&table, "| key | value | unit | default | example | meaning |\n|---|---|---|---|---|---|\n");
    for (size_t i = 0; i < plim_key_doc_count(); i++) {
        struct plim_key_doc doc;
        plim_key_doc_at(i, &doc);
        add(&table, "| `%s` | ", doc.name);
        add_cell(&table, doc.expected);
        add(&table, " %s | %s%s%s | `%s` | ", doc.unit, doc.fallback ? "`" : "", doc.fallback ? doc.fallback : "",
            doc.fallback ? "`" : "", doc.example);
        add_cell(&table, doc.help);
        add(&table, "\n");
    }
    expect_in_page(&table, "keys");
}

Test(spec_docs, the_page_has_every_key_of_every_family)
{
    static struct text table;
    add(&table, "| family | keys and defaults |\n|---|---|\n");
    for (int f = 0; f < PLIM_FAMILY_COUNT; f++) {
        struct plim_key_doc doc;
        add(&table, "| `%s` |", plim_family_names[f]);
        for (size_t i = 0; plim_key_doc_of_family((enum plim_family)f, i, &doc); i++)
            add(&table, " `%s%s%s`", doc.name, doc.fallback ? " = " : "", doc.fallback ? doc.fallback : "");
        add(&table, " |\n");
    }
    expect_in_page(&table, "families");
}

/* --- fields ----------------------------------------------------------------------------------- */

enum { FEW = 8 }; /* families that are listed for a field's usual name */

/* What the family calls the field; NULL: it has none. */
static const char *name_in(int family, enum plim_field field)
{
    const struct plim_family_info *info = plim_family_info((enum plim_family)family);
    for (size_t i = 0; i < info->key_count; i++)
        if (info->keys[i].field == field) return info->keys[i].name;
    return NULL;
}

static bool is_named(int family, enum plim_field field, const char *name)
{
    const char *own = name_in(family, field);
    return own && strcmp(own, name) == 0;
}

static void add_families(struct text *table, enum plim_field field, const char *name)
{
    bool is_first = true;
    for (int f = 0; f < PLIM_FAMILY_COUNT; f++) {
        if (!is_named(f, field, name)) continue;
        add(table, "%s%s", is_first ? "" : ", ", plim_family_names[f]);
        is_first = false;
    }
}

/* "gptj", or "`n_embd`: gpt2, gptj; `d_model`: t5": families with the usual name if they are few, and all others */
static void add_names(struct text *table, enum plim_field field)
{
    const char *usual = plim_field_info(field)->name, *separator = "";
    int usuals = 0;
    for (int f = 0; f < PLIM_FAMILY_COUNT; f++) usuals += is_named(f, field, usual);
    if (usuals && usuals <= FEW) add_families(table, field, usual), separator = "; ";
    for (int f = 0; f < PLIM_FAMILY_COUNT; f++) {
        const char *name = name_in(f, field);
        int before = 0;
        while (name && before < f && !is_named(before, field, name)) before++;
        if (!name || before < f || strcmp(name, usual) == 0) continue;
        add(table, "%s`%s`: ", separator, name);
        add_families(table, field, name);
        separator = "; ";
    }
}

Test(spec_docs, the_page_has_every_field_of_models)
{
    static struct text table;
    add(&table, "| key | families, and their other names for it | value | unit | meaning |\n|---|---|---|---|---|\n");
    for (int f = 0; f < PLIM_FIELD_COUNT; f++) {
        struct plim_key_doc doc;
        plim_key_doc_of_field((enum plim_field)f, &doc);
        add(&table, "| `%s` | ", doc.name);
        add_names(&table, (enum plim_field)f);
        add(&table, " | ");
        add_cell(&table, f == PLIM_FIELD_TEXT ? "qwen2 or qwen3" : doc.expected);
        add(&table, " %s | ", doc.unit);
        add_cell(&table, doc.help);
        add(&table, "\n");
    }
    expect_in_page(&table, "fields");
}

/* --- keys that are no field ------------------------------------------------------------------- */

/* The index of the family's special key of this name; -1: it has none. */
static int special_of(int family, const char *wanted)
{
    const char *name, *help;
    for (int i = 0; plim_model_special_key((enum plim_family)family, (size_t)i, &name, &help); i++)
        if (strcmp(name, wanted) == 0) return i;
    return -1;
}

/* Families with the key, if they are few. */
static void add_owners(struct text *table, const char *name)
{
    int owners = 0;
    for (int f = 0; f < PLIM_FAMILY_COUNT; f++) owners += special_of(f, name) >= 0;
    for (int f = 0, left = owners; f < PLIM_FAMILY_COUNT && owners <= FEW; f++)
        if (special_of(f, name) >= 0) add(table, "%s%s", plim_family_names[f], --left ? ", " : "");
}

Test(spec_docs, the_page_has_every_other_key_of_models)
{
    static struct text table;
    add(&table, "| key | of families | value | meaning |\n|---|---|---|---|\n");
    for (int f = 0; f < PLIM_FAMILY_COUNT; f++) {
        const char *name, *help, *expected;
        for (size_t i = 0; (expected = plim_model_special_key((enum plim_family)f, i, &name, &help)); i++) {
            int before = 0;
            while (before < f && special_of(before, name) < 0) before++;
            if (before < f) continue;
            add(&table, "| `%s` | ", name);
            add_owners(&table, name);
            add(&table, " | ");
            add_cell(&table, expected);
            add(&table, " ");
            add_cell(&table, help);
            add(&table, "\n");
        }
    }
    expect_in_page(&table, "others");
}
