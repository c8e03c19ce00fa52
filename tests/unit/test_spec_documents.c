/* Documents that are no specs, and files that are none: one clear line each, in bounded time and memory. */
#include "support/spec_files.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

TestSuite(spec_documents, .fini = spec_files_remove);

Test(spec_documents, documents_must_be_specs)
{
    cr_expect(eq(str, (char *)spec_refusal("s.yaml", ""),
                 "s.yaml:1:1: the document is empty, expected a plimsoll spec or a config.json"));
    cr_expect(eq(str, (char *)spec_refusal("s.yaml", "# nothing\n"),
                 "s.yaml:1:1: the document is empty, expected a plimsoll spec or a config.json"));
    cr_expect(eq(str, (char *)spec_refusal("s.yaml", "[1, 2]\n"),
                 "s.yaml:1:1: the document is no mapping of keys to values, "
                 "expected a plimsoll spec or a config.json"));
}

/* The texts are those of the YAML reader; this tests that they are reported with their position. */
static void expect_begins(const char *line, const char *begin)
{
    cr_expect(eq(int, strncmp(line, begin, strlen(begin)), 0), "%s", line);
    cr_expect(eq(ptr, strchr(line, '\n'), NULL));
}

Test(spec_documents, what_is_no_good_yaml_is_refused_in_its_place)
{
    expect_begins(spec_refusal("s.yaml", "model: {family: gpt2, family: opt}\n"), "s.yaml:1:23: ");
    expect_begins(spec_refusal("s.yaml", "model: {family: gpt2\n"), "s.yaml:2:1: ");
    expect_begins(spec_refusal("s.yaml", "model: &a {family: gpt2}\ntrain: *a\n"), "s.yaml:2:8: ");
    expect_begins(spec_refusal("s.yaml", "model:\n\tfamily: gpt2\n"), "s.yaml:2:1: ");
    expect_begins(spec_refusal("s.yaml", "--- {}\n--- {}\n"), "s.yaml:2:");
    expect_begins(spec_refusal("s.yaml", "\x7f"
                                         "ELF\x02\x01\x01\n"),
                  "s.yaml:1:1: ");
}

Test(spec_documents, a_yaml_bomb_does_not_go_off)
{
    char bomb[2048] = "a: &a [x, x, x, x, x, x, x, x, x]\n";
    for (char c = 'b'; c <= 'i'; c++)
        snprintf(bomb + strlen(bomb), sizeof(bomb) - strlen(bomb),
                 "%c: &%c [*%c, *%c, *%c, *%c, *%c, *%c, *%c]\n", c, c, c - 1, c - 1, c - 1, c - 1,
                 c - 1, c - 1, c - 1);
    expect_begins(spec_refusal("s.yaml", bomb), "s.yaml:2:");
}

Test(spec_documents, deep_nesting_ends_early)
{
    static char deep[200001];
    memset(deep, '[', 200000);
    expect_begins(spec_refusal("s.yaml", deep), "s.yaml:1:");
}

Test(spec_documents, long_values_do_not_fill_the_screen)
{
    static char text[100064];
    int head = snprintf(text, sizeof(text), "model: {family: gpt2, n_layer: ");
    memset(text + head, '9', 100000);
    strcpy(text + head + 100000, "}\n");
    cr_expect(eq(str, (char *)spec_refusal("s.yaml", text),
                 "s.yaml:1:32: model.n_layer is '9999999999999999999999999999999999999999'..., "
                 "expected an integer from 1 to 1024"));
}

Test(spec_documents, files_that_are_none)
{
    char path[256], line[512];
    snprintf(path, sizeof(path), "%s/none.yaml", spec_files_dir());
    cr_expect(eq(str, (char *)spec_refusal_of(path),
                 "none.yaml: no such file, expected a spec, a model's config.json (hf download "
                 "OWNER/MODEL config.json gets it), a directory with one, or a name that plimsoll "
                 "models lists"));
    cr_expect(eq(str, (char *)spec_refusal_of("gpt2-124"),
                 "gpt2-124: no such file and no such model, did you mean gpt2-124m? (plimsoll "
                 "models lists them)"));
    snprintf(line, sizeof(line),
             "%s: this directory has no config.json, expected a spec or a directory with one",
             spec_files_dir());
    cr_expect(eq(str, (char *)spec_refusal_of(spec_files_dir()), line));
    expect_begins(spec_refusal_of("/dev/null"), "/dev/null: ");
    snprintf(path, sizeof(path), "%s/pipe", spec_files_dir());
    cr_assert(eq(int, mkfifo(path, 0600), 0));
    expect_begins(spec_refusal_of(path), "pipe: ");
}

Test(spec_documents, references_to_files_that_are_none)
{
    char line[512];
    snprintf(line, sizeof(line),
             "gone.json: no such file, expected a spec, a model's config.json (hf download "
             "OWNER/MODEL config.json gets it), a directory with one, or a name that plimsoll "
             "models lists");
    cr_expect(eq(str, (char *)spec_refusal("s.yaml", "model: {hf: gone.json}\n"), line));
    cr_expect(eq(str, (char *)spec_refusal("s.yaml", "model: {zoo: gpt2-124}\n"),
                 "s.yaml:1:14: the zoo has no 'gpt2-124', expected the nearest name gpt2-124m"));
    cr_expect(eq(str, (char *)spec_refusal("s.yaml", "model: {hf: [a]}\n"),
                 "s.yaml:1:13: model.hf is a list, expected the path of a config.json"));
}

/* Of a processor: what else runs here does not count. */
static double seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

Test(spec_documents, a_gigabyte_is_refused_at_once)
{
    const char *path = spec_file("huge.yaml", "model: {family: gpt2}\n");
    cr_assert(eq(int, truncate(path, (off_t)1 << 30), 0));
    struct rusage before, after;
    getrusage(RUSAGE_SELF, &before);
    double start = seconds_now();
    expect_begins(spec_refusal_of(path), "huge.yaml: ");
    getrusage(RUSAGE_SELF, &after);
    cr_expect(lt(dbl, seconds_now() - start, 1.0));
    cr_expect(lt(i64, after.ru_maxrss - before.ru_maxrss, 16 * 1024)); /* KiB */
}

Test(spec_documents, the_largest_file_that_is_read_takes_bounded_time)
{
    enum { SIZE = 4 << 20 };
    char *text = malloc(SIZE), *at = text;
    cr_assert(text != NULL);
    at += sprintf(at, "model: {family: gpt2}\ntrain:\n");
    for (int i = 0; at - text < SIZE - 64; i++) at += sprintf(at, "  k%d: 1\n", i);
    double start = seconds_now();
    expect_begins(spec_refusal("s.yaml", text), "s.yaml:");
    cr_expect(lt(dbl, seconds_now() - start, 10.0));
    free(text);
}
