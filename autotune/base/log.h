/* Messages for the user.
 *
 * Library code never prints: it passes messages to a `struct plim_log`, and the command line decides what to do with
 * them. A failure is a status with a `struct plim_error`, not a message. */
#ifndef PLIM_BASE_LOG_H
#define PLIM_BASE_LOG_H

#include "status.h"

enum plim_log_level {
    PLIM_LOG_WARNING, /* the result is valid, but the user should know this */
    PLIM_LOG_INFO,    /* progress */
    PLIM_LOG_DEBUG,   /* details for troubleshooting */
};

struct plim_log {
    enum plim_log_level level; /* messages beyond this level are dropped */
    /* Receives one line, without a newline. */
    void (*write)(void *user, enum plim_log_level level, const char *text);
    void *user;
};

/* Logs a line. Does nothing if `log` or its `write` is NULL. Lines are truncated to 1023 bytes. */
void plim_log(const struct plim_log *log, enum plim_log_level level, const char *fmt, ...)
    PLIM_PRINTF(3, 4);

/* A `write` function for logs whose `user` is a FILE: writes "plimsoll: warning: text", with the text as by
 * plim_text_show(). */
void plim_log_write_file(void *file, enum plim_log_level level, const char *text);

#endif
