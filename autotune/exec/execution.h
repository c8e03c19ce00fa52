/* One run of a program, a trial: does this setting fit, and how much memory does it take?
 *
 * A trial is over when the program ends, when it has done the requested number of steps, when its
 * peak has not grown for a number of steps (devices/virtual/steps), or after the given
 * time. Then the program is ended with everything that it started.
 *
 * The verdict depends on what happened, never on the program's output: memory that a GPU refused
 * and that the program did not get by releasing its cache (machine.h), and how the program ended.
 */
#ifndef PLIM_AUTOTUNE_EXEC_EXECUTION_H
#define PLIM_AUTOTUNE_EXEC_EXECUTION_H

#include "autotune/base/stop.h"
#include "autotune/search/limit.h"
#include "devices/virtual/machine/machine.h"
#include "user_program.h"
#include <stdatomic.h>

enum { PLIM_EXECUTION_REPETITIONS = 5 };

/* The options that all trials of a search share. Everything outlives them. */
struct plim_execution_options {
    const struct plim_program *program;
    /* The library to preload: the virtual GPU, whose folder has its other names, or the observer. */
    const char *library;
    size_t given_count; /* the user's values (--assume) for what virtual GPUs do not know */
    struct plim_machine_given given[PLIM_MACHINE_GIVEN];
    const char *visible; /* the real GPU's UUID, for CUDA_VISIBLE_DEVICES; NULL: virtual GPUs */
    const struct plim_machine_gpu *gpus;
    int gpu_count;
    const char *folder; /* for the folders of trials */
    const char *logs;
    int hold; /* a descriptor that stays open as long as any process of a trial lives; -1: none */
    double run_seconds;   /* a trial ends successfully after this time; 0: no such end */
    double limit_seconds; /* a trial that takes longer has failed */
    int steps;            /* a trial ends successfully after this many steps; 0: no such end */
    int repetitions; /* a trial ends successfully after this many steps with a steady peak; 0: no such end.
                             Usually PLIM_EXECUTION_REPETITIONS */
    int epoch_steps;      /* a program's epochs end after this many steps, and `repetitions` counts epochs too;
                           * 0: epochs run to their end */
    bool tells_accumulation; /* {accumulation} is in the command */
    bool adapts; /* the program finds its batch itself: continuing with less memory is not a failure */
    bool compiles_alone; /* results of torch.compile and of tuning from other trials are hidden */
    bool forgets_tuned;  /* earlier results of tuning are deleted; those of this trial are kept for others */
    const struct plim_stop *stop;
    const atomic_bool *given_up; /* true once the trial is no longer wanted; NULL: it always is */
};

/* For a trial that takes longer than this, the report says how it might end earlier. */
enum { PLIM_LONG_TRIAL_SECONDS = 2 };

enum plim_execution_end {
    PLIM_END_EXITED, /* the program ended by itself */
    PLIM_END_STEADY,
    PLIM_END_STEPS,
    PLIM_END_REFUSED, /* it did not get memory that it requested and continued, which decides the verdict */
    PLIM_END_RESTLESS, /* after PLIM_FORECAST_STEPS it still releases its cache in every step: a later step may fail */
    PLIM_END_TIME,
    PLIM_END_LIMIT,   /* the time limit: it has failed */
    PLIM_END_INPUT,   /* it waits for input that will never come */
    PLIM_END_STOPPED, /* by the user, or the search's time is over */
};

enum { PLIM_EXECUTION_NOTES = 8 }; /* the most notes of a trial that are kept: the first ones */

struct plim_execution {
    /* PLIM_OK; PLIM_OOM; PLIM_CRASHED: it ended with an error that is not out of memory;
     * PLIM_TIMEOUT; PLIM_UNSUPPORTED: it did not use a GPU; PLIM_CANCELLED */
    enum plim_status verdict;
    enum plim_execution_end end;
    char why[256];      /* for anything but PLIM_OK: one line */
    bool went_on;       /* memory was refused, and it continued with less */
    bool replanned;     /* that was PyTorch: a convolution with a smaller workspace (out_of_memory.h) */
    bool limited;       /* the request exceeded its framework's own limit, not the GPU's */
    int64_t peak_bytes; /* of the fullest GPU, without the framework's context of one process */
    int gpus_used;      /* GPUs on which it held memory */
    int peak_contexts;  /* processes that held memory on the fullest GPU at the peak */
    int64_t refusals;
    int64_t asked_bytes, free_bytes;                    /* of the last refusal */
    struct plim_machine_size sizes[PLIM_MACHINE_SIZES]; /* of the largest process, at its peak */
    int64_t processes;                                  /* that used a GPU */
    int64_t launches;    /* launches and allocations; 0: the program did not use a GPU */
    int64_t steps;       /* recognised training steps; 0: none */
    int rule;            /* how they were recognised: enum plim_steps_rule */
    bool in_epoch;       /* the last step was in a loop over a PyTorch data loader, */
    int64_t epochs;      /* after this many other loops with training steps */
    int waiting_optimizers; /* PyTorch optimizers of one process that had not stepped by then */
    bool short_epochs;   /* epochs were cut off after `epoch_steps` steps */
    double step_seconds; /* host time; 0: not known */
    double leak_bytes;   /* for each step; 0: none seen */
    double seconds;      /* of the whole trial */
    /* It found results of torch.compile from an earlier trial, or left the first ones: a first launch and a
     * later one may take different amounts of memory. */
    bool finds_compiled, makes_compiled;
    /* The memory that such a program took at a first launch, which compiles, and at a later one; 0: not both were tried
     * (plim_executor_confirm()). */
    int64_t first_launch_bytes, later_launch_bytes;
    char log[40];        /* its name in `logs` */
    uint32_t note_count;
    char notes[PLIM_EXECUTION_NOTES][PLIM_MACHINE_NOTE_BYTES]; /* of the virtual GPU: how it differs from a real one */
    char unread[PLIM_QUESTION_TEXT]; /* places of --assume where no value was read: "a.py:3, b.py:7"; "": none */
    struct plim_machine_questions questions; /* values that it read and the virtual GPU did not know */
};

/* Blocks until the trial is over. PLIM_INVALID, PLIM_IO: the program cannot be started, a template cannot
 * be read, and the like. Thread safety: several trials with the same options may run at once. */
enum plim_status plim_execution_run(const struct plim_execution_options *options,
                                    const struct plim_setting *setting, int64_t number,
                                    struct plim_execution *out,
                                    struct plim_error *err) PLIM_MUST_CHECK;

/* Describes, as the rest of a sentence, a decision of the program by a value that the virtual GPU did not know. At most
 * PLIM_DECISIONS_TOLD are shown; files and JSON have all. */
enum { PLIM_DECISIONS_TOLD = 4, PLIM_DECISION_TEXT = 360 };
void plim_execution_describe_decision(const struct plim_machine_question *question, char *out,
                                      size_t size);

/* Removes a folder of trials, with everything that programs left there. */
void plim_execution_remove_folder(const char *path);

/* Fills in `count` GPUs of a machine, all like `gpu`, with the limit's margin withheld. */
void plim_execution_gpus(const struct plim_gpu *gpu, const struct plim_limit *limit, int64_t count,
                         struct plim_machine_gpu *out);

#endif
