/* The reason for a trial's failure, from its output. */
#include "autotune/exec/last_lines.h"
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/plimsoll-test-XXXXXX";

static void open_folder(void) { cr_assert(mkdtemp(folder) != NULL); }

static void close_folder(void)
{
    char path[64];
    snprintf(path, sizeof(path), "%s/log", folder);
    unlink(path);
    rmdir(folder);
}

TestSuite(last_lines, .init = open_folder, .fini = close_folder);

static void write_log(const char *text, size_t length)
{
    char path[64];
    snprintf(path, sizeof(path), "%s/log", folder);
    FILE *file = fopen(path, "w");
    cr_assert(file != NULL);
    cr_assert(eq(sz, fwrite(text, 1, length, file), length));
    fclose(file);
}

static void expect_error(const char *text, const char *expected)
{
    char error[160];
    write_log(text, strlen(text));
    plim_last_error(folder, "log", error, sizeof(error));
    cr_expect(eq(str, error, (char *)expected));
}

Test(last_lines, the_error_is_an_exception_or_else_the_last_words)
{
    expect_error("", "");
    expect_error("-----\n\n", "");
    expect_error("one\ntwo\n=====\n", "two");
    expect_error("Traceback (most recent call last):\n  File \"a.py\", line 1\nValueError: no such file: data.bin.\n",
                 "ValueError: no such file: data.bin");
    expect_error("[rank0]: torch.cuda.OutOfMemoryError: full\nChildFailedError:\n  see the docs\n",
                 "[rank0]: torch.cuda.OutOfMemoryError: full");
    expect_error("FileNotFoundError: no data\ntorch.distributed.elastic.ChildFailedError: \n====\n  see the docs\n",
                 "FileNotFoundError: no data");
    expect_error("RuntimeError: no trainer because of (see above):\n\n  No module named 'x'.\nbye\n",
                 "RuntimeError: no trainer because of (see above): No module named 'x'");
    expect_error("RuntimeError: no trainer because of:\nValueError: none.\nbye\n", "ValueError: none");
    expect_error("RuntimeError: cannot load:\n", "RuntimeError: cannot load");
    expect_error("step 3\rstep 4\rstep 5\n", "step 5");
    expect_error("the loss had Error: bars\nlast words\n", "last words");
    expect_error("\033[31mred\033[0m\n", "\\x1b[31mred\\x1b[0m");
}

Test(last_lines, of_a_long_output_the_end_counts)
{
    enum { BYTES = 20000 };
    char *text = malloc(BYTES), error[16];
    cr_assert(text != NULL);
    memset(text, 'x', BYTES);
    write_log(text, BYTES);
    plim_last_error(folder, "log", error, sizeof(error));
    cr_expect(eq(str, error, "xxxxxxxxxxxx..."));
    memcpy(text + BYTES - 10, "\nthe end\n", 9);
    write_log(text, BYTES - 1);
    plim_last_error(folder, "log", error, sizeof(error));
    cr_expect(eq(str, error, "the end"));
    write_log("a line of \u20ac\u20ac\u20ac", 19);
    plim_last_error(folder, "log", error, sizeof(error));
    cr_expect(eq(str, error, "a line of ..."));
    free(text);
}

Test(last_lines, of_what_is_no_file_there_are_none)
{
    char path[64], error[16] = "before";
    snprintf(path, sizeof(path), "%s/log", folder);
    plim_last_error(folder, "log", error, sizeof(error));
    cr_expect(eq(str, error, ""));
    cr_assert(eq(int, mkfifo(path, 0600), 0));
    plim_last_error(folder, "log", error, sizeof(error));
    cr_expect(eq(str, error, ""));
    unlink(path);
    cr_assert(eq(int, symlink("/etc/passwd", path), 0));
    plim_last_error(folder, "log", error, sizeof(error));
    cr_expect(eq(str, error, ""));
}
