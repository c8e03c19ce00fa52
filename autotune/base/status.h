/* Status codes and the one message that travels with them.
 *
 * Every function that can fail returns `enum plim_status`; its results go through
 * out-parameters. Context goes into a caller-owned `struct plim_error`, which may be
 * NULL ("don't care"). The first error wins: later calls to plim_fail() on the same
 * struct keep the first text, so that the innermost cause is what the user reads.
 *
 * Thread safety: a `struct plim_error` belongs to one thread at a time.
 */
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

enum { PLIM_ERROR_TEXT = 1024 }; /* bytes: enough to list the names of all families */

/* One failure: what, and where in a document if it came from one. `file` is "" and
 * `line`, `column` are 0 where there is no document. Lines and columns count from 1. */
struct plim_error {
    enum plim_status status;
    int line, column;
    char file[256];
    char text[PLIM_ERROR_TEXT];
};

#define PLIM_ERROR_INIT {.status = PLIM_OK}

/* A short lower-case name of the status ("out of device memory"). Never NULL. */
const char *plim_status_text(enum plim_status status);

/* Records a failure (unless one is recorded already) and returns `status`, so that
 * `return plim_fail(err, PLIM_INVALID, "...")` reads as one thought. */
enum plim_status plim_fail(struct plim_error *err, enum plim_status status, const char *fmt, ...)
    PLIM_PRINTF(3, 4);

/* Fails with PLIM_NOMEM, whose name says everything. */
enum plim_status plim_no_memory(struct plim_error *err);

/* The same as plim_fail(), with the place in a document. `file` is cut on the left if it is long. */
enum plim_status plim_fail_at(struct plim_error *err, enum plim_status status, const char *file,
                              int line, int column, const char *fmt, ...) PLIM_PRINTF(6, 7);

/* Writes "file:line:column: text" (or just the text) into `out`, always terminated. */
void plim_error_format(const struct plim_error *err, char *out, unsigned long size);

/* Evaluates `expr`; on failure stores it in the local `st` and goes to the local label `out`. */
#define PLIM_TRY(expr)                                                                             \
    do {                                                                                           \
        if ((st = (expr)) != PLIM_OK) goto out;                                                    \
    } while (0)

#endif
