/* The program: streams and signals, and the only exit code. */
#include "cli.h"
#include <unistd.h>

static volatile sig_atomic_t signalled;

/* The first signal asks for the best answer so far; the second one ends at once. */
static void on_signal(int number)
{
    signalled = number;
}

int main(int argc, char **argv)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESETHAND};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    const struct plim_io io = {.out = stdout,
                               .err = stderr,
                               .out_is_terminal = isatty(STDOUT_FILENO),
                               .err_is_terminal = isatty(STDERR_FILENO),
                               .signalled = &signalled};
    return plim_cli_run(argc, argv, &io);
}
