#define _GNU_SOURCE /* strsignal */
#include "exit_status.h"
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

void plim_exit_status_text(int status, char *out, size_t size)
{
    if (status == PLIM_EXIT_UNSEEN)
        snprintf(out, size, "ended, and its exit status was not seen");
    else if (WIFSIGNALED(status))
        snprintf(out, size, "ended by signal %d (%s)", WTERMSIG(status),
                 strsignal(WTERMSIG(status)));
    else
        snprintf(out, size, "ended with exit code %d", WEXITSTATUS(status));
}
