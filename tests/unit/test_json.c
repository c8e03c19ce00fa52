#include "autotune/base/json.h"
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static char *written(struct plim_json *json)
{
    char *text = NULL;
    struct plim_error err = PLIM_ERROR_INIT;
    cr_assert(eq(int, plim_json_write(json, &text, &err), PLIM_OK));
    return text;
}

static void expect_text(struct plim_json *json, const char *expected)
{
    char *text = written(json);
    cr_expect(eq(str, text, (char *)expected));
    free(text);
    plim_json_finish(json);
}

Test(json, keys_stay_in_the_order_they_came)
{
    struct plim_json json = {0};
    json_t *root = plim_json_object(&json, NULL, NULL);
    plim_json_text(&json, root, "z", "last \"letter\"");
    plim_json_bool(&json, root, "a", true);
    plim_json_null(&json, root, "m");
    expect_text(&json, "{\n  \"z\": \"last \\\"letter\\\"\",\n  \"a\": true,\n  \"m\": null\n}\n");
}

Test(json, integers_stay_integers)
{
    struct plim_json json = {0};
    json_t *root = plim_json_array(&json, NULL, NULL);
    plim_json_int(&json, root, NULL, 0);
    plim_json_int(&json, root, NULL, 9007199254740993); /* not a double */
    plim_json_int(&json, root, NULL, INT64_MAX);
    plim_json_int(&json, root, NULL, -1);
    expect_text(&json, "[\n  0,\n  9007199254740993,\n  9223372036854775807,\n  -1\n]\n");
}

Test(json, numbers_are_short_and_stay_numbers)
{
    struct plim_json json = {0};
    json_t *root = plim_json_array(&json, NULL, NULL);
    plim_json_number(&json, root, NULL, 0.1);
    plim_json_number(&json, root, NULL, 2.0);
    plim_json_number(&json, root, NULL, 1.0 / 3.0);
    expect_text(&json, "[\n  0.1,\n  2.0,\n  0.333333333333\n]\n");
}

Test(json, what_is_not_known_is_absent)
{
    struct plim_json json = {0};
    json_t *root = plim_json_object(&json, NULL, NULL);
    plim_json_int(&json, root, "int", PLIM_JSON_ABSENT);
    plim_json_number(&json, root, "nan", NAN);
    plim_json_number(&json, root, "infinity", INFINITY);
    plim_json_text(&json, root, "text", NULL);
    expect_text(&json, "{}\n");
}

Test(json, objects_and_arrays_nest)
{
    struct plim_json json = {0};
    json_t *root = plim_json_object(&json, NULL, NULL);
    json_t *list = plim_json_array(&json, root, "samples");
    json_t *item = plim_json_object(&json, list, NULL);
    plim_json_int(&json, item, "batch", 8);
    expect_text(&json, "{\n  \"samples\": [\n    {\n      \"batch\": 8\n    }\n  ]\n}\n");
}

Test(json, the_same_document_gives_the_same_bytes)
{
    char *texts[2];
    for (int i = 0; i < 2; i++) {
        struct plim_json json = {0};
        json_t *root = plim_json_object(&json, NULL, NULL);
        for (int k = 0; k < 100; k++) {
            char key[8];
            snprintf(key, sizeof(key), "k%d", k * 37 % 100);
            plim_json_number(&json, root, key, sqrt(k));
        }
        texts[i] = written(&json);
        plim_json_finish(&json);
    }
    cr_expect(eq(str, texts[0], texts[1]));
    free(texts[0]);
    free(texts[1]);
}

Test(json, bytes_that_are_no_characters_are_escaped)
{
    struct plim_json json = {0};
    json_t *root = plim_json_array(&json, NULL, NULL);
    plim_json_text(&json, root, NULL, "caf\xc3\xa9");
    plim_json_text(&json, root, NULL, "caf\xe9 latin");
    plim_json_text(&json, root, NULL, "cut \xe2\x82");
    plim_json_text(&json, root, NULL, "\xff\xc0\x80\xed\xa0\x80");
    plim_json_text(&json, root, NULL, "");
    expect_text(&json, "[\n  \"caf\xc3\xa9\",\n  \"caf\\\\xe9 latin\",\n"
                       "  \"cut \\\\xe2\\\\x82\",\n"
                       "  \"\\\\xff\\\\xc0\\\\x80\\\\xed\\\\xa0\\\\x80\",\n  \"\"\n]\n");
}

Test(json, a_failure_is_remembered_and_what_follows_is_safe)
{
    struct plim_json json = {0};
    json_t *root = plim_json_object(&json, NULL, NULL);
    plim_json_bool(&json, root, "fine", true);
    json_t *child = plim_json_object(&json, NULL, NULL); /* a second root */
    cr_expect(eq(ptr, child, NULL));
    plim_json_int(&json, child, "x", 1);
    char *text = (char *)&json;
    cr_expect(ne(int, plim_json_write(&json, &text, NULL), PLIM_OK));
    cr_expect(eq(ptr, text, NULL));
    plim_json_finish(&json);
}

Test(json, an_empty_document_is_not_written)
{
    struct plim_json json = {0};
    char *text;
    cr_expect(ne(int, plim_json_write(&json, &text, NULL), PLIM_OK));
    plim_json_finish(&json);
    plim_json_finish(NULL);
}
