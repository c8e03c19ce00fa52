/* The terminal is closed while a search runs: what it found out so far is in the file. */
#define _XOPEN_SOURCE 700
#include "program.h"
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

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
    int status, terminal = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    cr_assert(mkdtemp(folder) != NULL);
    snprintf(path, sizeof(path), "%s/result.json", folder);
    cr_assert(terminal >= 0 && !grantpt(terminal) && !unlockpt(terminal));
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
