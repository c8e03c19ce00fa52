/* Status codes and error messages.
 *
 * Functions that can fail return `enum plim_status`, with their results in out-parameters. The message goes into a
 * `struct plim_error` of the caller, which may be NULL. Later calls of plim_fail() on the same struct keep the first
 * message, so that the user sees the innermost cause.
 *
 * Thread safety: a `struct plim_error` is used by one thread at a time. */
#ifndef PLIM_BASE_STATUS_H
#define PLIM_BASE_STATUS_H

#include <stdarg.h>

#define PLIM_STATUS_MAP(X)                                                                         \
    X(OK, "ok")                                                                                    \
    X(OOM, "out of device memory")                                                                 \
    X(NOMEM, "out of host memory")                                                                 \
    X(INVALID, "invalid argument")                                                                 \
    X(SPEC, "invalid spec")                                                                        \
    X(UNSUPPORTED, "not supported here")                                                           \
    X(NODEVICE, "no such device")                                                                  \
    X(NOFIT, "nothing fits")                                                                       \
    X(LOST, "device lost")                                                                         \
    X(TIMEOUT, "time limit reached")                                                               \
    X(CRASHED, "the process crashed")                                                              \
    X(UNSTABLE, "not the same twice")                                                              \
    X(IO, "input/output error")                                                                    \
    X(DIFFERS, "a file would change")                                                              \
    X(CANCELLED, "interrupted")                                                                    \
    X(BUSY, "in use by others")                                                                    \
    X(INTERNAL, "internal error")

enum plim_status {
#define PLIM_STATUS_ENUM(name, text) PLIM_##name,
    PLIM_STATUS_MAP(PLIM_STATUS_ENUM)
#undef PLIM_STATUS_ENUM
};

#define PLIM_MUST_CHECK __attribute__((warn_unused_result))
#define PLIM_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))

enum { PLIM_ERROR_TEXT = 1280 }; /* bytes: enough to list the names of all families */

/* An error, and its place in a document. Without a document `file` is "" and `line` and `column` are 0. Lines and
 * columns count from 1. */
struct plim_error {
    enum plim_status status;
    int line, column;
    char file[256];
    char text[PLIM_ERROR_TEXT];
};

#define PLIM_ERROR_INIT {.status = PLIM_OK}

/* Returns a short lower-case description of the status ("out of device memory"). Never NULL. */
const char *plim_status_text(enum plim_status status);

/* Records an error, unless one is recorded already, and returns `status`. */
enum plim_status plim_fail(struct plim_error *err, enum plim_status status, const char *fmt, ...)
    PLIM_PRINTF(3, 4);

/* Fails with PLIM_NOMEM. */
enum plim_status plim_no_memory(struct plim_error *err);

/* As plim_fail(), with a place in a document. The beginning of `file` is cut off if it is too long. */
enum plim_status plim_fail_at(struct plim_error *err, enum plim_status status, const char *file,
                              int line, int column, const char *fmt, ...) PLIM_PRINTF(6, 7);

/* Writes "file:line:column: text" (or just the text) to `out`, always terminated. */
void plim_error_format(const struct plim_error *err, char *out, unsigned long size);

/* Evaluates `expr`; on failure stores it in the local `st` and goes to the local label `out`. */
#define PLIM_TRY(expr)                                                                             \
    do {                                                                                           \
        if ((st = (expr)) != PLIM_OK) goto out;                                                    \
    } while (0)

#endif
