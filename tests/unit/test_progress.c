/* What a search shows while it runs. */
#include "autotune/cli/progress.h"
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdlib.h>
#include <string.h>

static struct plim_progress progress;
static char *shown;
static size_t size;

/* Shows twice, the second time right after the first. */
static const char *show_on(bool terminal, bool dumb, bool quiet)
{
    struct plim_request request = {.quiet = quiet};
    FILE *file = open_memstream(&shown, &size);
    const struct plim_io io = {.err = file, .err_is_terminal = terminal, .is_dumb = dumb};
    plim_progress_init(&progress, &request, &io, 3);
    plim_progress_run(&progress);
    progress.next_seconds = 0; /* it is time */
    plim_progress_run(&progress);
    plim_progress_device(&progress);
    plim_progress_run(&progress);
    plim_progress_finish(&progress);
    fclose(file);
    return shown;
}

static const char *show(bool terminal, bool quiet)
{
    return show_on(terminal, false, quiet);
}

Test(progress, a_terminal_without_escapes_is_like_a_log)
{
    cr_expect(eq(str, (char *)show_on(true, true, false),
                 "plimsoll: 0 s, 2 settings tried, 0 of 3 devices\n"));
    free(shown);
}

Test(progress, a_log_gets_whole_lines_and_not_too_many)
{
    cr_expect(eq(str, (char *)show(false, false),
                 "plimsoll: 0 s, 2 settings tried, 0 of 3 devices\n"));
    free(shown);
}

Test(progress, a_terminal_gets_a_line_that_is_cleared)
{
    cr_expect(eq(str, (char *)show(true, false),
                 "\rplimsoll: 0 s, 2 settings tried, 0 of 3 devices"
                 "\r                                               \r"));
    free(shown);
}

Test(progress, quiet_is_quiet)
{
    cr_expect(eq(str, (char *)show(false, true), ""));
    free(shown);
}
