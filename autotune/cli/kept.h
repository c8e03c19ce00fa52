/* The use of the store by a command: a kept answer is used, and a new one is kept. If several processes have the same
 * question, one of them finds the answer, and the others wait. */
#ifndef PLIM_AUTOTUNE_CLI_KEPT_H
#define PLIM_AUTOTUNE_CLI_KEPT_H

#include "autotune/base/log.h"
#include "autotune/base/stop.h"
#include "autotune/store/store_question.h"
#include "request.h"

struct plim_kept {
    struct plim_store store;
    bool off, fresh; /* the store is neither read nor written; it is not read */
    bool explains;   /* if no answer is kept, report how the nearest ones differ */
    double wait_seconds;
    const char *version, *waterfall; /* NULL: none */
    const struct plim_log *log;
};

/* Initialises `kept` from the request. `log` must outlive it. */
void plim_kept_init(struct plim_kept *kept, const struct plim_request *request, const char *version,
                    const struct plim_log *log);

/* Returns what the answer depends on besides its subject and GPU. */
struct plim_store_asked plim_kept_asked(const struct plim_kept *kept, const char *objective,
                                        const struct plim_allowance *allowance);

enum { PLIM_STORE_PLACE = 96 };

/* A question. */
struct plim_kept_ask {
    const char *place; /* the resource that is locked, such as a GPU's UUID */
    /* Fills in the store's question, which is zeroed; `counts_others`: as in plim_store_gpu_of_target(). */
    enum plim_status (*fill_question)(void *user, bool counts_others, struct plim_store_question *question,
                                      struct plim_error *err);
    /* Finds the answer: makes a report of one result. */
    enum plim_status (*make)(void *user, struct plim_report *report, struct plim_error *err);
    void *user;
    const struct plim_stop *stop;
};

/* Gets the kept answer to the question, or a new one, which is then kept, as a report with one result. PLIM_TIMEOUT:
 * another process has locked the place for too long. */
enum plim_status plim_kept_answer(struct plim_kept *kept, const struct plim_kept_ask *ask,
                                  struct plim_report *report,
                                  struct plim_error *err) PLIM_MUST_CHECK;

/* Keeps a report with one result, if it is a proven answer. If that fails, logs a warning and turns the store off. */
void plim_kept_store(struct plim_kept *kept, const struct plim_store_question *question,
                     const struct plim_report *report);

/* Return the GPU of a simulated result, and the GPU that a URI "sim:..." names; the latter fails if there is none. */
struct plim_store_gpu plim_kept_gpu_of_result(const struct plim_result *result);
enum plim_status plim_kept_gpu_of_uri(const char *uri, const struct plim_allowance *allowance,
                                      struct plim_store_gpu *gpu,
                                      struct plim_error *err) PLIM_MUST_CHECK;

#endif
