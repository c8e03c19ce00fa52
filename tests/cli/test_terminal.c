/* On a terminal: its width, its escapes, and what is left when it is closed. */
#define _DEFAULT_SOURCE
#define _XOPEN_SOURCE 700
#include "program.h"
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int open_terminal(void)
{
    int terminal = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    cr_assert(terminal >= 0 && !grantpt(terminal) && !unlockpt(terminal));
    return terminal;
}

/* What a report looks like on a terminal of that width. The caller frees it. */
static char *shown(int columns)
{
    int terminal = open_terminal(), status;
    const struct winsize size = {.ws_row = 24, .ws_col = (unsigned short)columns};
    size_t used = 0, room = 1 << 16;
    char *text = malloc(room);
    ssize_t got;
    int fd = open(ptsname(terminal), O_RDWR | O_NOCTTY);
    cr_assert(text && fd >= 0 && !ioctl(fd, TIOCSWINSZ, &size));
    pid_t child = fork();
    cr_assert(ge(int, child, 0));
    if (!child) {
        dup2(fd, STDOUT_FILENO);
        execl(PLIM_BINARY, "plimsoll", "plan", "gpt2-124m", "--device", "sim:T4", "--seq", "64,128",
              "--batch", "1,2", "--quiet", (char *)NULL);
        _exit(99);
    }
    close(fd);
    while (used < room - 1 && (got = read(terminal, text + used, room - 1 - used)) > 0)
        used += (size_t)got;
    text[used] = '\0';
    close(terminal);
    while (waitpid(child, &status, 0) < 0) cr_assert(eq(int, errno, EINTR));
    cr_assert(eq(int, WIFEXITED(status) ? WEXITSTATUS(status) : -1, 0));
    return text;
}

/* Columns of the longest line, without escapes. */
static int longest_line(const char *text)
{
    int column = 0, longest = 0;
    for (; *text; text++) {
        if (*text == '\033') text += strcspn(text, "m");
        else if (*text == '\n') column = 0;
        else if (*text != '\r') longest = ++column > longest ? column : longest;
    }
    return longest;
}

Test(terminal, a_report_is_as_wide_as_the_terminal)
{
    static const struct { int columns, at_least, at_most; } cases[] = {
        {66, 50, 66}, {100, 81, 100}, {40, 50, 60}};
    unsetenv("COLUMNS");
    for (size_t i = 0; i < 3; i++) {
        char *text = shown(cases[i].columns);
        int longest = longest_line(text);
        cr_expect(ge(int, longest, cases[i].at_least), "%s", text);
        cr_expect(le(int, longest, cases[i].at_most), "%s", text);
        free(text);
    }
    setenv("COLUMNS", "90", 1);
    char *text = shown(66);
    cr_expect(lt(int, 70, longest_line(text)));
    free(text);
}

Test(terminal, escapes_are_only_for_a_terminal_that_wants_them)
{
    setenv("TERM", "xterm", 1);
    unsetenv("NO_COLOR");
    char *text = shown(80);
    cr_expect(strchr(text, '\033') != NULL);
    free(text);
    setenv("TERM", "dumb", 1);
    text = shown(80);
    cr_expect(strchr(text, '\033') == NULL);
    free(text);
    setenv("TERM", "xterm", 1);
    setenv("NO_COLOR", "1", 1);
    text = shown(80);
    cr_expect(strchr(text, '\033') == NULL);
    free(text);
}

/* In the child: a session of its own, on that terminal. */
static void run_on_terminal(const char *name, const char *path)
{
    setsid();
    int fd = open(name, O_RDWR); /* becomes the controlling one */
    if (fd < 0) _exit(98);
    for (int i = 0; i < 3; i++) dup2(fd, i);
    execl(PLIM_BINARY, "plimsoll", "plan", "llama-3-8b", "--device", "all", "--seq", "256:4096:256",
          "--precision", "bf16,fp16,bf16-mixed", "--out", path, (char *)NULL);
    _exit(99);
}

Test(terminal, a_closed_one_ends_the_search_with_a_partial_report)
{
    char folder[] = "/tmp/plimsoll-test-XXXXXX", path[64];
    int status, terminal = open_terminal();
    cr_assert(mkdtemp(folder) != NULL);
    snprintf(path, sizeof(path), "%s/result.json", folder);
    signal(SIGHUP, SIG_DFL); /* nohup ignores it */
    pid_t child = fork();
    cr_assert(ge(int, child, 0));
    if (!child) run_on_terminal(ptsname(terminal), path);
    program_wait_until_ready(child, SIGHUP);
    nanosleep(&(struct timespec){0, 400000000}, NULL);
    close(terminal);
    while (waitpid(child, &status, 0) < 0) cr_assert(eq(int, errno, EINTR));
    int exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    cr_expect(eq(int, exit_code, 5));
    json_t *root = json_load_file(path, 0, NULL);
    cr_expect(root != NULL);
    json_decref(root);
    unlink(path);
    rmdir(folder);
}
