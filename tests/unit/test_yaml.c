#include "autotune/base/yaml.h"
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static struct plim_yaml parse(const char *text)
{
    struct plim_yaml yaml;
    struct plim_error err = PLIM_ERROR_INIT;
    cr_assert(eq(int, plim_yaml_read_string("t.yaml", text, strlen(text), &yaml, &err), PLIM_OK),
              "%s", err.text);
    return yaml;
}

/* The whole message for bytes that must be refused. */
static char *refusal_of(const char *text, size_t length)
{
    static char message[1024];
    struct plim_yaml yaml;
    struct plim_error err = PLIM_ERROR_INIT;
    enum plim_status st = plim_yaml_read_string("t.yaml", text, length, &yaml, &err);
    cr_assert(eq(int, st, PLIM_SPEC), "status %d for %.60s", st, text);
    cr_expect(eq(ptr, yaml.arena, NULL));
    plim_error_format(&err, message, sizeof(message));
    return message;
}

static char *refusal(const char *text)
{
    return refusal_of(text, strlen(text));
}

/* --- the tree --------------------------------------------------------------------------------- */

Test(tree, keeps_kinds_order_and_text)
{
    struct plim_yaml yaml = parse("b: [1, two]\na: {x: 'y'}\n");
    cr_assert(eq(sz, yaml.root->count, 2));
    cr_expect(eq(str, (char *)yaml.root->keys[0]->text, "b"));
    const struct plim_yaml_node *list = plim_yaml_get(yaml.root, "b");
    cr_assert(eq(sz, list->count, 2));
    cr_expect(eq(str, (char *)list->items[1]->text, "two"));
    const struct plim_yaml_node *x = plim_yaml_get(plim_yaml_get(yaml.root, "a"), "x");
    cr_expect(eq(str, (char *)x->text, "y"));
    cr_expect(x->quoted);
    plim_yaml_finish(&yaml);
}

Test(tree, places_count_characters_from_one)
{
    struct plim_yaml yaml = parse("a: 1\n\xc3\xa9\xe2\x82\xac: {b: 22}\n");
    const struct plim_yaml_node *b = plim_yaml_get(yaml.root->items[1], "b");
    cr_expect(eq(int, b->line, 2));
    cr_expect(eq(int, b->column, 9)); /* bytes would say 12 */
    plim_yaml_finish(&yaml);
}

Test(tree, get_of_what_is_not_there_is_null)
{
    struct plim_yaml yaml = parse("a: [1]\n");
    cr_expect(eq(ptr, (void *)plim_yaml_get(yaml.root, "b"), NULL));
    cr_expect(eq(ptr, (void *)plim_yaml_get(plim_yaml_get(yaml.root, "a"), "b"), NULL));
    cr_expect(eq(ptr, (void *)plim_yaml_get(NULL, "b"), NULL));
    plim_yaml_finish(&yaml);
}

Test(tree, json_is_read_the_same_way)
{
    struct plim_yaml yaml =
        parse("{\n\t\"a\":1,\"b\":[true,null,1e-05],\n\t\"u\":\"\\u00e9\\/\"\n}\n");
    double number;
    const struct plim_yaml_node *b = plim_yaml_get(yaml.root, "b");
    cr_expect(plim_yaml_is_null(b->items[1]));
    cr_expect(eq(int, plim_yaml_number(&yaml, b->items[2], &number, NULL), PLIM_OK));
    cr_expect(eq(dbl, number, 1e-5));
    cr_expect(eq(str, (char *)plim_yaml_get(yaml.root, "u")->text, "\xc3\xa9/"));
    plim_yaml_finish(&yaml);
}

Test(tree, an_empty_document_has_no_root)
{
    static const char *const cases[] = {"", "\n\n", "# only a comment\n", "---\n", "\xef\xbb\xbf"};
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct plim_yaml yaml = parse(cases[i]);
        cr_expect(eq(ptr, yaml.root, NULL), "case %zu", i);
        plim_yaml_finish(&yaml);
    }
}

Test(tree, a_byte_order_mark_takes_no_column)
{
    struct plim_yaml yaml = parse("\xef\xbb\xbf"
                                  "a: 1\n");
    cr_expect(eq(str, (char *)yaml.root->keys[0]->text, "a"));
    cr_expect(eq(int, yaml.root->keys[0]->column, 1));
    cr_expect(eq(int, yaml.root->items[0]->column, 4));
    plim_yaml_finish(&yaml);
}

Test(tree, all_line_ends_count_as_one_line)
{
    static const char *const cases[] = {"a: 1\nb: 2\nc: 3", "a: 1\r\nb: 2\r\nc: 3",
                                        "a: 1\rb: 2\rc: 3"};
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct plim_yaml yaml = parse(cases[i]);
        const struct plim_yaml_node *c = plim_yaml_get(yaml.root, "c");
        cr_expect(eq(str, (char *)c->text, "3"));
        cr_expect(eq(int, c->line, 3));
        plim_yaml_finish(&yaml);
    }
}

Test(tree, nesting_of_64_is_read)
{
    char text[129] = "";
    memset(text, '[', 64);
    memset(text + 64, ']', 64);
    struct plim_yaml yaml = parse(text);
    const struct plim_yaml_node *node = yaml.root;
    int depth = 1;
    for (; node->count; node = node->items[0]) depth++;
    cr_expect(eq(int, depth, 64));
    plim_yaml_finish(&yaml);
}

Test(tree, finish_of_null_and_zeroed_is_fine)
{
    struct plim_yaml yaml = {0};
    plim_yaml_finish(NULL);
    plim_yaml_finish(&yaml);
}

/* --- refusals --------------------------------------------------------------------------------- */

Test(refuses, with_one_line_that_names_the_place)
{
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"a: 1\nb: 2\na: 3\n",
         "t.yaml:3:1: the key 'a' is in line 1 already, expected it only once"},
        {"x: {k: 1, k: 2}", "t.yaml:1:11: the key 'k' is in line 1 already, expected it only once"},
        {"b: 1\na: 2\nb: 3\na: 4",
         "t.yaml:3:1: the key 'b' is in line 1 already, expected it only once"},
        {"'a': 1\na: 2\n", "t.yaml:2:1: the key 'a' is in line 1 already, expected it only once"},
        {"a: &x 1\nb: *x\n", "t.yaml:2:4: a YAML alias ('*'), expected the value written out"},
        {"a: !!int \"3\"", "t.yaml:1:4: a YAML tag ('!'), expected a plain value"},
        {"a: !x {}", "t.yaml:1:4: a YAML tag ('!'), expected a plain value"},
        {"a: 1\n---\nb: 2\n", "t.yaml:2:1: a second document, expected only one"},
        {"%YAML 1.1\n---\na: 1", "t.yaml:1:1: a YAML directive ('%'), expected a key or a value"},
        {"? [a, b]\n: c", "t.yaml:1:3: this key is a list, expected a name"},
        {"{{a: b}: c}", "t.yaml:1:2: this key is a mapping, expected a name"},
        {"- ?\n- 3", "t.yaml:1:4: this key is empty, expected a name"},
        {"a:\n\tb: 1", "t.yaml:2:1: a tab in the indentation, expected spaces"},
        {"a: \"x\\0y\"", "t.yaml:1:4: this text has a NUL character, expected none"},
    };
    for (size_t i = 0; i < COUNT(cases); i++)
        cr_expect(eq(str, refusal(cases[i].text), (char *)cases[i].message));
}

Test(refuses, broken_yaml_with_its_place)
{
    static const struct {
        const char *text, *place;
    } cases[] = {
        {"a: [1, 2\nb: 3", "t.yaml:2:2: not valid YAML: "},
        {"a: 'x", "t.yaml:1:6: not valid YAML: "},
        {"a: b: c", "t.yaml:1:5: not valid YAML: "},
        {"a: @x", "t.yaml:1:4: not valid YAML: "},
        {"a: 1\n  b: 2", "t.yaml:2:4: not valid YAML: "},
        {"a: }", "t.yaml:1:4: not valid YAML: "},
        {"[${x}, 1]", "t.yaml:1:3: not valid YAML: "},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        const char *message = refusal(cases[i].text);
        cr_expect(eq(int, strncmp(message, cases[i].place, strlen(cases[i].place)), 0), "%s",
                  message);
    }
}

Test(refuses, what_is_not_text)
{
    static const struct {
        const char *bytes;
        size_t length;
        const char *message;
    } cases[] = {
        {"a: 1\nb: \0", 9, "t.yaml:2:4: a NUL byte, expected a text file (YAML or JSON)"},
        {"\x7f"
         "ELF\2\1",
         6, "t.yaml:1:1: a control character, expected a text file (YAML or JSON)"},
        {"a\x1b[2J", 5, "t.yaml:1:2: a control character, expected a text file (YAML or JSON)"},
        {"\xc3\xa9\r\n\r\n\xff", 7,
         "t.yaml:3:1: this byte is not UTF-8, expected a text file (YAML or JSON)"},
        {"a: \xc3", 4, "t.yaml:1:4: this byte is not UTF-8, expected a text file (YAML or JSON)"},
        {"\xc0\xaf", 2, "t.yaml:1:1: this byte is not UTF-8, expected a text file (YAML or JSON)"},
        {"\xed\xa0\x80", 3,
         "t.yaml:1:1: this byte is not UTF-8, expected a text file (YAML or JSON)"},
        {"\xf4\x90\x80\x80", 4,
         "t.yaml:1:1: this byte is not UTF-8, expected a text file (YAML or JSON)"},
        {"\xff\xfe"
         "a\0",
         4, "t.yaml:1:1: this byte is not UTF-8, expected a text file (YAML or JSON)"},
        {"\xc2\x9b", 2, "t.yaml:1:1: a control character, expected a text file (YAML or JSON)"},
    };
    for (size_t i = 0; i < COUNT(cases); i++)
        cr_expect(eq(str, refusal_of(cases[i].bytes, cases[i].length), (char *)cases[i].message));
}

Test(refuses, nesting_of_65)
{
    char text[131] = "";
    memset(text, '[', 65);
    memset(text + 65, ']', 65);
    cr_expect(eq(str, refusal(text), "t.yaml:1:65: nested too deeply, expected at most 64 levels"));
}

Test(refuses, a_yaml_bomb)
{
    const char *bomb = "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\n"
                       "c: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\n";
    cr_expect(
        eq(str, refusal(bomb), "t.yaml:2:8: a YAML alias ('*'), expected the value written out"));
}

/* Each fills 1 MiB with a pattern that is costly for a careless reader. */
Test(refuses, hostile_documents_in_bounded_time, .timeout = 60)
{
    static const char *const patterns[] = {
        "[",      "{",         "- ",     "a,",    "? ",
        "\"",     "'",         "&a ",    "[a,\n", "{a: ",
        "*a ",    "!a ",       "# c\n",  "x\n",   "%TAG !a! tag:x\n",
        "k: v\n", "- - - -\n", "a: |\n", "\t",    ": ",
        "\r",     "\\",        "---\n",  "}",
    };
    enum { SIZE = 1 << 20 };
    char *text = malloc(SIZE);
    for (size_t p = 0; p < COUNT(patterns); p++) {
        size_t length = strlen(patterns[p]);
        for (size_t i = 0; i < SIZE; i++) text[i] = patterns[p][i % length];
        struct plim_yaml yaml;
        struct plim_error err = PLIM_ERROR_INIT;
        enum plim_status st = plim_yaml_read_string("t", text, SIZE, &yaml, &err);
        cr_expect(st == PLIM_SPEC || st == PLIM_OK, "%s: %s", patterns[p], err.text);
        plim_yaml_finish(&yaml);
    }
    free(text);
}

Test(refuses, many_different_keys_are_checked_in_bounded_time, .timeout = 60)
{
    enum { KEYS = 120000 };
    char *text = malloc(KEYS * 12), *at = text;
    for (int i = 0; i < KEYS; i++) at += sprintf(at, "k%d: 1\n", i);
    struct plim_yaml yaml = parse(text);
    cr_expect(eq(sz, yaml.root->count, KEYS));
    plim_yaml_finish(&yaml);
    strcpy(at - 12, "\nk0: 1\n");
    cr_expect(ne(ptr, strstr(refusal(text), "the key 'k0' is in line 1 already"), NULL));
    free(text);
}

Test(refuses, too_many_values)
{
    enum { ITEMS = 1 << 19 };
    char *text = malloc(2 * ITEMS + 2);
    for (size_t i = 0; i < ITEMS; i++) memcpy(text + 1 + 2 * i, "1,", 2);
    text[0] = '[';
    text[2 * ITEMS] = ']';
    text[2 * ITEMS + 1] = '\0';
    cr_expect(ne(ptr, strstr(refusal(text), "expected at most 524288"), NULL));
    free(text);
}

/* --- files ------------------------------------------------------------------------------------ */

static char folder[] = "/tmp/plim_yaml_XXXXXX";
static char path[64];

static void make_folder(void)
{
    cr_assert(ne(ptr, mkdtemp(folder), NULL));
    snprintf(path, sizeof(path), "%s/f", folder);
}

static void remove_folder(void)
{
    unlink(path);
    rmdir(folder);
}

static void write_file(const char *text, off_t size)
{
    FILE *file = fopen(path, "w");
    fputs(text, file);
    fclose(file);
    if (size) cr_assert(eq(int, truncate(path, size), 0));
}

static struct plim_error read_failure(const char *name, enum plim_status expected)
{
    struct plim_yaml yaml;
    struct plim_error err = PLIM_ERROR_INIT;
    cr_expect(eq(int, plim_yaml_read_file(name, &yaml, &err), expected), "%s", err.text);
    cr_expect(eq(ptr, yaml.arena, NULL));
    return err;
}

Test(file, is_read_and_named, .init = make_folder, .fini = remove_folder)
{
    write_file("a: 12\n", 0);
    struct plim_yaml yaml;
    int64_t value;
    cr_assert(eq(int, plim_yaml_read_file(path, &yaml, NULL), PLIM_OK));
    cr_expect(eq(str, yaml.source, path));
    cr_expect(eq(int, plim_yaml_int(&yaml, plim_yaml_get(yaml.root, "a"), &value, NULL), PLIM_OK));
    cr_expect(eq(i64, value, 12));
    plim_yaml_finish(&yaml);
}

Test(file, of_four_mebibytes_is_read, .init = make_folder, .fini = remove_folder)
{
    FILE *file = fopen(path, "w");
    for (int i = 0; i < 4 << 20; i += 64) fprintf(file, "#%62s\n", "");
    fclose(file);
    struct plim_yaml yaml;
    cr_expect(eq(int, plim_yaml_read_file(path, &yaml, NULL), PLIM_OK));
    plim_yaml_finish(&yaml);
}

Test(file, of_a_gigabyte_is_refused_unread, .init = make_folder, .fini = remove_folder,
     .timeout = 30)
{
    write_file("a: 1\n", 1LL << 30);
    struct plim_error err = read_failure(path, PLIM_SPEC);
    cr_expect(eq(str, err.text, "the file has 1073741824 bytes, expected at most 4194304"));
}

Test(file, that_is_a_directory_is_refused, .init = make_folder, .fini = remove_folder)
{
    struct plim_error err = read_failure(folder, PLIM_SPEC);
    cr_expect(eq(str, err.text, "this is a directory, expected a text file"));
}

Test(file, that_is_a_pipe_is_refused_without_waiting, .init = make_folder, .fini = remove_folder,
     .timeout = 30)
{
    cr_assert(eq(int, mkfifo(path, 0600), 0));
    struct plim_error err = read_failure(path, PLIM_SPEC);
    cr_expect(eq(str, err.text, "this is a pipe, expected a text file"));
}

Test(file, that_is_a_device_is_refused, .timeout = 30)
{
    struct plim_error err = read_failure("/dev/zero", PLIM_SPEC);
    cr_expect(eq(str, err.text, "this is a device, expected a text file"));
}

Test(file, that_is_not_there_is_an_io_error)
{
    struct plim_error err = read_failure("/nowhere/at/all.yaml", PLIM_IO);
    cr_expect(eq(str, err.file, "/nowhere/at/all.yaml"));
    cr_expect(eq(str, err.text, "No such file or directory"));
}

Test(file, that_is_a_program_is_refused)
{
    struct plim_error err = read_failure("/bin/true", PLIM_SPEC);
    cr_expect(ne(ptr, strstr(err.text, "expected a text file"), NULL), "%s", err.text);
}
