/* How a process ended, in words. */
#ifndef PLIM_BASE_EXIT_STATUS_H
#define PLIM_BASE_EXIT_STATUS_H

#include <stddef.h>

/* Instead of a status: another thread or process has reaped the process. */
enum { PLIM_EXIT_UNSEEN = -1 };

/* Describes a status of waitpid(): "ended by signal 11 (Segmentation fault)", "ended with exit code 3". */
void plim_exit_status_text(int status, char *out, size_t size);

#endif
