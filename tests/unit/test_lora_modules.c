/* Which modules get adapters: data/regex.tsv is what Python's re says of patterns, data/lora_modules.jsonl what
 * peft says of modules. */
#include "autotune/base/regex.h"
#include "support/case_file.h"
#include "workloads/spec/lora_modules.h"
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdio.h>
#include <string.h>

enum { LINE = 1 << 14 };

static FILE *open_data(const char *path)
{
    FILE *file = fopen(path, "r");
    cr_assert(file != NULL, "cannot open %s", path);
    return file;
}

Test(regex, matches_what_python_matches)
{
    static char line[LINE];
    FILE *file = open_data(PLIM_TEST_DATA "/regex.tsv");
    int matched = 0, unmatched = 0;
    while (fgets(line, sizeof(line), file)) {
        char *text = strchr(line, '\t'), *answer = text ? strchr(text + 1, '\t') : NULL;
        cr_assert(answer != NULL);
        *text++ = *answer++ = '\0';
        bool is_refused = plim_regex_refuses(line) != NULL, found = plim_regex_matches(line, text);
        if (*answer == 'E') cr_expect(is_refused, "%s: Python refuses it", line);
        else if (!is_refused) cr_expect(found == (*answer == '1'), "%s on %s", line, text);
        cr_expect(found <= !is_refused, "%s", line);
        matched += !is_refused && *answer == '1';
        unmatched += !is_refused && *answer == '0';
    }
    fclose(file);
    cr_expect(matched > 500 && unmatched > 700, "%d and %d are read", matched, unmatched);
}

Test(regex, patterns_of_published_configs_are_read)
{
    static const char *const patterns[] = {
        "model.language_model.layers.[\\d]+.(mlp|cross_attn|self_attn).(up|down|gate|q|k|v|o)_proj",
        "^(?!.*(?:lm_head|visual)).*(?:q_proj|k_proj|v_proj)$", ".*(?<!visual)\\.fc[12]", "a{2,3}?b{,4}"};
    for (size_t i = 0; i < sizeof(patterns) / sizeof(patterns[0]); i++)
        cr_expect(eq(ptr, (void *)plim_regex_refuses(patterns[i]), NULL), "%s", patterns[i]);
}

/* What would take long is refused, and a text that is too long is matched by nothing. */
Test(regex, work_has_bounds)
{
    char text[PLIM_REGEX_TEXT + 2], deep[200] = "";
    memset(text, 'a', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    cr_expect(plim_regex_matches("(a*)*", text + 1) && !plim_regex_matches("a*", text));
    cr_expect(plim_regex_refuses("(((a*)*)*)*") != NULL);
    cr_expect(plim_regex_refuses("a{256}") != NULL && plim_regex_refuses("a{255}") == NULL);
    for (int i = 0; i < 40; i++) strcat(deep, "(");
    cr_expect(plim_regex_refuses(deep) != NULL);
    cr_expect(plim_regex_refuses("caf\xc3\xa9") != NULL);
}

Test(lora_modules, modules_are_those_of_peft)
{
    static char line[LINE];
    FILE *file = open_data(PLIM_TEST_DATA "/lora_modules.jsonl");
    size_t targets = 0;
    cr_assert(fgets(line, sizeof(line), file) != NULL);
    json_t *first = json_loads(line, 0, NULL), *modules = json_object_get(first, "modules");
    while (fgets(line, sizeof(line), file)) {
        json_t *c = json_loads(line, 0, NULL), *ranks = json_object_get(c, "ranks");
        struct plim_lora lora = {0};
        cr_assert_not_null(ranks);
        case_lora(json_object_get(c, "lora"), &lora);
        for (size_t i = 0; i < json_array_size(modules); i++) {
            const char *name = json_string_value(json_array_get(modules, i));
            cr_expect(eq(i64, plim_lora_rank(&lora, name), case_integer(ranks, name, 0)), "%s of %s", name, line);
        }
        targets += json_object_size(ranks);
        json_decref(c);
    }
    json_decref(first);
    fclose(file);
    cr_expect(lt(sz, 900, targets));
}

Test(lora_modules, lists_hold_what_fits)
{
    char modules[PLIM_MODULES_TEXT] = "", name[PLIM_MODULE_NAME];
    int count = 0;
    memset(name, 'n', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    while (plim_modules_add(modules, name)) count++;
    cr_expect(eq(int, count, 16)); /* of 63 characters, and commas */
    for (const char *at = modules; plim_modules_next(&at, name);) count--;
    cr_expect(eq(int, count, 0));
    cr_expect(plim_modules_has(modules, name));
    cr_expect(eq(int, plim_modules_add(modules, name) || plim_modules_has(modules, "n"), 0));
    modules[0] = '\0';
    const char *longer = "a_name.longer_than.any_that_a_module.of_a_model.has_had.up_to.now.xx";
    cr_expect(eq(int, plim_modules_add(modules, longer), 0));
}
