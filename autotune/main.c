/* The main program: sets up streams and signals. */
#include "cli/cli.h"
#include "version.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static volatile sig_atomic_t signalled;

/* The first signal requests the best answer so far; the second ends the process, by SA_RESETHAND. */
static void on_signal(int number)
{
    signalled = number;
}

/* Handles a signal, unless it is ignored, as by nohup and in background jobs of shells without job control. */
static void handle_signal(int number)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESETHAND}, before;
    if (sigaction(number, NULL, &before) || before.sa_handler == SIG_IGN) return;
    sigaction(number, &action, NULL);
}

/* Returns the version. The tag of a release is v0.2.0, of later commits v0.2.0-3-gc0ffee0; before the first release it
 * is only a commit. */
static const char *version(void)
{
    static const char tag[] = PLIM_VCS_TAG;
    if (tag[0] == 'v') return tag + 1;
    return tag[0] ? PLIM_VERSION "+" PLIM_VCS_TAG : PLIM_VERSION;
}

int main(int argc, char **argv)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
    for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) handle_signal(signals[i]);
    const char *terminal = getenv("TERM");
    const struct plim_io io = {.version = version(),
                               .is_dumb = terminal && !strcmp(terminal, "dumb"),
                               .out = stdout,
                               .err = stderr,
                               .out_is_terminal = isatty(STDOUT_FILENO),
                               .err_is_terminal = isatty(STDERR_FILENO),
                               .signalled = &signalled};
    return plim_cli_run(argc, argv, &io);
}
