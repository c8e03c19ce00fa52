/* The decision about a user's program: the search of tune with trials of the program as its runs.
 *
 * Virtual GPUs know memory but not time, so there the largest micro-batch is chosen and no speed is reported. On a real
 * GPU the time from step to step is measured, if steps are recognised, and the fastest setting wins. */
#ifndef PLIM_AUTOTUNE_DECIDE_BLACK_BOX_H
#define PLIM_AUTOTUNE_DECIDE_BLACK_BOX_H

#include "autotune/base/log.h"
#include "autotune/base/stop.h"
#include "autotune/exec/executor.h"
#include "autotune/exec/program_question.h"
#include "autotune/run/run_device.h"
#include "reports/result.h"

struct plim_black_box {
    const struct plim_program *program;
    struct plim_program_question *question; /* its objective may be replaced by one without times */
    const struct plim_run_device *device;   /* open, simulated or real */
    const struct plim_stop *stop;
    const struct plim_log *log;            /* for failed trials */
    struct plim_execution_options options; /* GPUs, program and stop are filled in here */
    int64_t gpus, jobs; /* number of GPUs of a trial; of trials at a time */
    void (*on_run)(void *user); /* called before each trial; may be NULL */
    void *user;
    struct plim_execution *chosen; /* receives a copy of the choice's trial; may be NULL */
};

/* Fills in the zeroed result. PLIM_INVALID: the program cannot be started, or does not use its batch. That it does not
 * fit or fails is a result. */
enum plim_status plim_black_box_tune(const struct plim_black_box *box, struct plim_result *result,
                                     struct plim_error *err) PLIM_MUST_CHECK;

/* Logs the last lines of a trial's output as warnings. */
void plim_black_box_show_log(const struct plim_log *log, const char *folder, const char *name);

/* If a trial failed for a reason other than memory, logs the reason with these lines and returns true. `execution` may
 * be NULL. */
bool plim_black_box_show_failure(const struct plim_log *log, const char *folder,
                                 const struct plim_execution *execution);

#endif
