/* The store between a command and its answer: a kept answer is used, and a new one is
 * kept; of several processes with the same question one computes the answer, and the others wait. */
#ifndef PLIM_AUTOTUNE_CLI_KEPT_H
#define PLIM_AUTOTUNE_CLI_KEPT_H

#include "autotune/base/log.h"
#include "autotune/base/stop.h"
#include "autotune/store/store_question.h"
#include "request.h"

struct plim_kept {
    struct plim_store store;
    bool off, fresh; /* neither read nor written; not read */
    bool explains;   /* where no answer is kept: report how the nearest ones differ */
    double wait_seconds;
    const char *version, *waterfall; /* NULL: none */
    const struct plim_log *log;
};

/* `log` outlives `kept`. */
void plim_kept_init(struct plim_kept *kept, const struct plim_request *request, const char *version,
                    const struct plim_log *log);

/* What the request's answer depends on besides its subject. */
struct plim_store_asked plim_kept_asked(const struct plim_kept *kept, const char *objective,
                                        const struct plim_allowance *allowance);

enum { PLIM_STORE_PLACE = 96 };

/* A question that one process asks. */
struct plim_kept_ask {
    const char *place; /* the resource in use, such as a GPU's UUID */
    /* The store's question, into a zeroed one: about the GPU itself, or with the memory that others hold
     * on it now. */
    enum plim_status (*put)(void *user, bool counts_others, struct plim_store_question *question,
                            struct plim_error *err);
    /* Makes a report of one result. */
    enum plim_status (*make)(void *user, struct plim_report *report, struct plim_error *err);
    void *user;
    const struct plim_stop *stop;
};

/* The kept answer to the question, or a new one, which is then kept: in both cases a report with one
 * result. PLIM_TIMEOUT: another process uses the place for too long. */
enum plim_status plim_kept_answer(struct plim_kept *kept, const struct plim_kept_ask *ask,
                                  struct plim_report *report,
                                  struct plim_error *err) PLIM_MUST_CHECK;

/* Keeps a report with one result, if it is a proven answer. A failure to keep it is a
 * warning, and nothing more is kept afterwards. */
void plim_kept_keep(struct plim_kept *kept, const struct plim_store_question *question,
                    const struct plim_report *report);

/* The GPU of a simulated result, and the GPU that "sim:..." names; fails where it names none. */
struct plim_store_gpu plim_kept_gpu_of_result(const struct plim_result *result);
enum plim_status plim_kept_gpu_of_uri(const char *uri, const struct plim_allowance *allowance,
                                      struct plim_store_gpu *gpu,
                                      struct plim_error *err) PLIM_MUST_CHECK;

#endif
