#include "autotune/base/log.h"
#include "autotune/base/status.h"
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdio.h>
#include <string.h>

static struct plim_error fail_with(const char *text)
{
    struct plim_error err = PLIM_ERROR_INIT;
    (void)plim_fail(&err, PLIM_IO, "%s", text);
    return err;
}

Test(status, every_status_has_a_text)
{
    for (int status = PLIM_OK; status <= PLIM_INTERNAL; status++)
        cr_expect(strlen(plim_status_text((enum plim_status)status)) > 1);
    cr_expect(eq(str, (char *)plim_status_text(PLIM_OOM), "out of device memory"));
}

Test(status, a_number_that_is_no_status_is_named_as_such)
{
    cr_expect(eq(str, (char *)plim_status_text((enum plim_status)999), "unknown status"));
}

Test(status, fail_returns_the_status_and_accepts_null)
{
    cr_expect(eq(int, plim_fail(NULL, PLIM_LOST, "gone"), PLIM_LOST));
}

Test(status, the_first_error_wins)
{
    struct plim_error err = fail_with("inner cause");
    cr_expect(eq(int, plim_fail_at(&err, PLIM_SPEC, "b.yaml", 1, 1, "outer"), PLIM_SPEC));
    cr_expect(eq(int, err.status, PLIM_IO));
    cr_expect(eq(str, err.text, "inner cause"));
    cr_expect(eq(str, err.file, ""));
}

Test(status, format_names_file_line_and_column)
{
    struct plim_error err = PLIM_ERROR_INIT;
    char out[64];
    (void)plim_fail_at(&err, PLIM_SPEC, "a.yaml", 3, 7, "expected %d", 5);
    plim_error_format(&err, out, sizeof(out));
    cr_expect(eq(str, out, "a.yaml:3:7: expected 5"));
}

Test(status, format_leaves_out_a_place_that_is_not_known)
{
    struct plim_error err = PLIM_ERROR_INIT;
    char out[64];
    (void)plim_fail_at(&err, PLIM_IO, "a.yaml", 0, 0, "no such file");
    plim_error_format(&err, out, sizeof(out));
    cr_expect(eq(str, out, "a.yaml: no such file"));
}

Test(status, format_without_a_text_says_the_status)
{
    struct plim_error err = {.status = PLIM_TIMEOUT};
    char out[64];
    plim_error_format(&err, out, sizeof(out));
    cr_expect(eq(str, out, "time limit reached"));
}

Test(status, format_terminates_a_text_that_is_too_long)
{
    struct plim_error err = fail_with("0123456789");
    char out[6];
    plim_error_format(&err, out, sizeof(out));
    cr_expect(eq(str, out, "01234"));
}

Test(status, a_long_path_is_cut_on_the_left)
{
    struct plim_error err = PLIM_ERROR_INIT;
    char path[600];
    memset(path, 'd', sizeof(path));
    strcpy(path + 590, "/x.yaml");
    (void)plim_fail_at(&err, PLIM_IO, path, 1, 1, "x");
    cr_expect(eq(sz, strlen(err.file), sizeof(err.file) - 1));
    cr_expect(eq(str, err.file + strlen(err.file) - 9, "dd/x.yaml"));
    cr_expect(eq(int, strncmp(err.file, "...d", 4), 0));
}

Test(status, a_cut_leaves_no_half_character)
{
    enum { FITS = PLIM_ERROR_TEXT - 1 };
    char text[FITS + 100];
    memset(text, 'a', sizeof(text));
    strcpy(text + FITS - 1, "\xc3\xa9 and more"); /* the e acute does not fit */
    struct plim_error err = fail_with(text);
    cr_expect(eq(sz, strlen(err.text), FITS - 1));
    cr_expect(eq(chr, err.text[FITS - 2], 'a'));
}

Test(status, a_whole_character_at_the_end_is_kept)
{
    enum { FITS = PLIM_ERROR_TEXT - 1 };
    char text[FITS + 100];
    memset(text, 'a', sizeof(text));
    strcpy(text + FITS - 2, "\xc3\xa9 and more");
    struct plim_error err = fail_with(text);
    cr_expect(eq(sz, strlen(err.text), FITS));
}

static enum plim_status fails_at(int step, int *steps_done)
{
    enum plim_status st = PLIM_OK;
    PLIM_TRY(step == 1 ? PLIM_OOM : PLIM_OK);
    (*steps_done)++;
    PLIM_TRY(step == 2 ? PLIM_LOST : PLIM_OK);
    (*steps_done)++;
out:
    return st;
}

Test(status, try_goes_to_out_at_the_first_failure)
{
    int steps = 0;
    cr_expect(eq(int, fails_at(1, &steps), PLIM_OOM));
    cr_expect(eq(int, steps, 0));
    cr_expect(eq(int, fails_at(2, &steps), PLIM_LOST));
    cr_expect(eq(int, steps, 1));
}

static void keep_line(void *user, enum plim_log_level level, const char *text)
{
    snprintf(user, 64, "%d %s", (int)level, text);
}

Test(log, passes_what_the_level_lets_through)
{
    char line[64] = "";
    struct plim_log log = {.level = PLIM_LOG_INFO, .write = keep_line, .user = line};
    plim_log(&log, PLIM_LOG_DEBUG, "hidden");
    cr_expect(eq(str, line, ""));
    plim_log(&log, PLIM_LOG_WARNING, "%s %d", "shown", 7);
    cr_expect(eq(str, line, "0 shown 7"));
}

Test(log, null_and_silent_logs_drop_everything)
{
    struct plim_log silent = {.level = PLIM_LOG_DEBUG};
    plim_log(NULL, PLIM_LOG_WARNING, "dropped");
    plim_log(&silent, PLIM_LOG_WARNING, "dropped");
}

Test(log, a_file_gets_the_program_name_and_the_level)
{
    char text[64] = "";
    FILE *file = fmemopen(text, sizeof(text), "w");
    plim_log_write_file(file, PLIM_LOG_WARNING, "hot");
    fclose(file);
    cr_expect(eq(str, text, "plimsoll: warning: hot\n"));
}
