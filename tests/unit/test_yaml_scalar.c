#include "autotune/base/yaml.h"
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdio.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static struct plim_yaml parse(const char *text)
{
    struct plim_yaml yaml;
    struct plim_error err = PLIM_ERROR_INIT;
    cr_assert(eq(int, plim_yaml_read_string("t.yaml", text, strlen(text), &yaml, &err), PLIM_OK),
              "%s", err.text);
    return yaml;
}

/* A document with `text` as the value of its only key, and the node of that value. */
static struct plim_yaml parse_value(const char *text, const struct plim_yaml_node **node)
{
    char document[256];
    snprintf(document, sizeof(document), "k: %s\n", text);
    struct plim_yaml yaml = parse(document);
    *node = plim_yaml_get(yaml.root, "k");
    return yaml;
}

Test(scalar, integers_are_read)
{
    static const struct {
        const char *text;
        int64_t value;
    } cases[] = {
        {"0", 0},
        {"-0", 0},
        {"12", 12},
        {"+12", 12},
        {"-12", -12},
        {"1_000_000", 1000000},
        {"1000000000000000000", 1000000000000000000},
        {"9223372036854775807", INT64_MAX},
        {"-9223372036854775808", INT64_MIN},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        int64_t value = -7;
        const struct plim_yaml_node *node;
        struct plim_yaml yaml = parse_value(cases[i].text, &node);
        struct plim_error err = PLIM_ERROR_INIT;
        enum plim_status st = plim_yaml_int(&yaml, node, &value, &err);
        cr_expect(eq(int, st, PLIM_OK), "%s: %s", cases[i].text, err.text);
        cr_expect(eq(i64, value, cases[i].value), "%s", cases[i].text);
        plim_yaml_finish(&yaml);
    }
}

Test(scalar, what_is_no_integer_is_refused)
{
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"", "expected an integer, found nothing"},
        {"~", "expected an integer, found nothing"},
        {"'12'", "expected an integer, found the quoted text '12'"},
        {"[1]", "expected an integer, found a list"},
        {"{a: 1}", "expected an integer, found a mapping"},
        {"1.0", "expected an integer, found '1.0'"},
        {"1e18", "expected an integer, found '1e18'"},
        {"0x10", "expected an integer, found '0x10'"},
        {"010", "expected an integer, found '010'"},
        {"1__0", "expected an integer, found '1__0'"},
        {"_1", "expected an integer, found '_1'"},
        {"1_", "expected an integer, found '1_'"},
        {"--1", "expected an integer, found '--1'"},
        {"1:30", "expected an integer, found '1:30'"},
        {"12 13", "expected an integer, found '12 13'"},
        {".nan", "expected an integer, found '.nan'"},
        {"9223372036854775808", "expected an integer below 2^63, found '9223372036854775808'"},
        {"-9223372036854775809", "expected an integer below 2^63, found '-9223372036854775809'"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        int64_t value = -7;
        const struct plim_yaml_node *node;
        struct plim_yaml yaml = parse_value(cases[i].text, &node);
        struct plim_error err = PLIM_ERROR_INIT;
        enum plim_status st = plim_yaml_int(&yaml, node, &value, &err);
        cr_expect(eq(int, st, PLIM_SPEC), "%s", cases[i].text);
        cr_expect(eq(str, err.text, (char *)cases[i].message));
        cr_expect(eq(i64, value, 0));
        plim_yaml_finish(&yaml);
    }
}

Test(scalar, numbers_are_read)
{
    static const struct {
        const char *text;
        double value;
    } cases[] = {
        {"0.5", 0.5},   {".5", 0.5},     {"5.", 5},           {"-2", -2}, {"1e18", 1e18},
        {"1E+3", 1000}, {"1e-05", 1e-5}, {"1_000.5", 1000.5}, {"0", 0},   {"0.1", 0.1},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        double value = -7;
        const struct plim_yaml_node *node;
        struct plim_yaml yaml = parse_value(cases[i].text, &node);
        struct plim_error err = PLIM_ERROR_INIT;
        enum plim_status st = plim_yaml_number(&yaml, node, &value, &err);
        cr_expect(eq(int, st, PLIM_OK), "%s: %s", cases[i].text, err.text);
        cr_expect(eq(dbl, value, cases[i].value), "%s", cases[i].text);
        plim_yaml_finish(&yaml);
    }
}

Test(scalar, what_is_no_finite_number_is_refused)
{
    static const char *const cases[] = {
        "",      ".",
        "e5",    "1e",
        "1e+",   ".nan",
        "nan",   "NaN",
        "inf",   ".inf",
        "-.inf", "Infinity",
        "1e999", "-1e999",
        "0x1p3", "1.2.3",
        "'1.5'", "1,5",
        "[1]",   "0.00000000000000000000000000000000000000000000000000000000000000000001",
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        double value = -7;
        const struct plim_yaml_node *node;
        struct plim_yaml yaml = parse_value(cases[i], &node);
        struct plim_error err = PLIM_ERROR_INIT;
        enum plim_status st = plim_yaml_number(&yaml, node, &value, &err);
        cr_expect(eq(int, st, PLIM_SPEC), "%s", cases[i]);
        cr_expect(eq(int, strncmp(err.text, "expected a number", 17), 0), "%s", err.text);
        cr_expect(eq(dbl, value, 0.0));
        plim_yaml_finish(&yaml);
    }
}

Test(scalar, booleans_are_words_and_not_quoted)
{
    static const struct {
        const char *text;
        enum plim_status status;
        bool value;
    } cases[] = {
        {"true", PLIM_OK, true},      {"Yes", PLIM_OK, true},       {"ON", PLIM_OK, true},
        {"false", PLIM_OK, false},    {"no", PLIM_OK, false},       {"Off", PLIM_OK, false},
        {"'true'", PLIM_SPEC, false}, {"1", PLIM_SPEC, false},      {"", PLIM_SPEC, false},
        {"y", PLIM_SPEC, false},      {"[true]", PLIM_SPEC, false},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        bool value = true;
        const struct plim_yaml_node *node;
        struct plim_yaml yaml = parse_value(cases[i].text, &node);
        struct plim_error err = PLIM_ERROR_INIT;
        enum plim_status st = plim_yaml_bool(&yaml, node, &value, &err);
        cr_expect(eq(int, st, cases[i].status), "%s", cases[i].text);
        cr_expect(eq(int, value, cases[i].value), "%s", cases[i].text);
        plim_yaml_finish(&yaml);
    }
}

Test(scalar, a_text_is_any_scalar_that_is_not_null)
{
    static const struct {
        const char *text;
        enum plim_status status;
    } cases[] = {
        {"abc", PLIM_OK},    {"12", PLIM_OK},  {"''", PLIM_OK}, {"'null'", PLIM_OK},
        {"null", PLIM_SPEC}, {"~", PLIM_SPEC}, {"", PLIM_SPEC}, {"[a]", PLIM_SPEC},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        const char *value;
        const struct plim_yaml_node *node;
        struct plim_yaml yaml = parse_value(cases[i].text, &node);
        struct plim_error err = PLIM_ERROR_INIT;
        enum plim_status st = plim_yaml_text(&yaml, node, &value, &err);
        cr_expect(eq(int, st, cases[i].status), "%s", cases[i].text);
        plim_yaml_finish(&yaml);
    }
}

Test(scalar, null_is_null_only_when_plain)
{
    struct plim_yaml yaml = parse("[~, null, NULL, '', 'null', 0, []]");
    static const bool expected[] = {true, true, true, false, false, false, false};
    for (size_t i = 0; i < COUNT(expected); i++)
        cr_expect(eq(int, plim_yaml_is_null(yaml.root->items[i]), expected[i]), "item %zu", i);
    cr_expect(plim_yaml_is_null(NULL));
    plim_yaml_finish(&yaml);
}

Test(scalar, a_missing_node_fails_without_a_crash)
{
    struct plim_yaml yaml = parse("a: 1");
    struct plim_error err = PLIM_ERROR_INIT;
    int64_t value;
    cr_expect(eq(int, plim_yaml_int(&yaml, NULL, &value, &err), PLIM_SPEC));
    cr_expect(eq(str, err.text, "expected an integer, found nothing"));
    plim_yaml_finish(&yaml);
}

Test(scalar, fail_names_the_place_of_the_node)
{
    struct plim_yaml yaml = parse("a:\n  b: 1\n");
    struct plim_error err = PLIM_ERROR_INIT;
    const struct plim_yaml_node *b = plim_yaml_get(plim_yaml_get(yaml.root, "a"), "b");
    cr_expect(eq(int, plim_yaml_fail(&yaml, b, &err, "expected %d", 3), PLIM_SPEC));
    char message[600];
    plim_error_format(&err, message, sizeof(message));
    cr_expect(eq(str, message, "t.yaml:2:6: expected 3"));
    plim_yaml_finish(&yaml);
}
