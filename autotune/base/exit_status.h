/* Describes how a process ended. */
#ifndef PLIM_BASE_EXIT_STATUS_H
#define PLIM_BASE_EXIT_STATUS_H

#include <stddef.h>

/* Used instead of a wait status if the process was reaped elsewhere. */
enum { PLIM_EXIT_UNSEEN = -1 };

/* Describes a wait status: "ended by signal 11 (Segmentation fault)", "ended with exit code 3". */
void plim_exit_status_text(int status, char *out, size_t size);

#endif
