/* A trial: one run of a program, which shows whether a setting fits and how much memory it takes.
 *
 * A trial ends when the program exits, when it has done the requested number of training steps, when its peak has not
 * grown for a number of steps (devices/virtual/steps), or after a given time. The program and all processes that it
 * started are then ended.
 *
 * The verdict depends on two things, never on the program's output: whether a GPU refused memory that the program did
 * not get after releasing its cache (machine.h), and how the program ended. */
#ifndef PLIM_AUTOTUNE_EXEC_EXECUTION_H
#define PLIM_AUTOTUNE_EXEC_EXECUTION_H

#include "autotune/base/stop.h"
#include "autotune/search/limit.h"
#include "devices/virtual/machine/machine.h"
#include "user_program.h"
#include <stdatomic.h>

enum { PLIM_EXECUTION_REPETITIONS = 5 };

/* The options that all trials of a search share. All pointers must outlive the trials. */
struct plim_execution_options {
    const struct plim_program *program;
    /* The path of the library to preload: the virtual GPU, whose folder also has its other names, or the observer. */
    const char *library;
    size_t given_count; /* values of --assume, for reads whose value a virtual GPU does not know */
    struct plim_machine_given given[PLIM_MACHINE_GIVEN];
    const char *visible; /* the real GPU's UUID, for CUDA_VISIBLE_DEVICES; NULL: virtual GPUs */
    const struct plim_machine_gpu *gpus;
    int gpu_count;
    const char *folder; /* the folders of trials are created in it */
    const char *logs;   /* the folder of the trials' logs */
    int hold; /* a descriptor that stays open while any guardian of a trial lives; -1: none */
    double run_seconds;   /* a trial ends successfully after this time; 0: not used */
    double limit_seconds; /* a trial that takes longer has failed; 0: no limit */
    int steps;            /* a trial ends successfully after this many steps; 0: not used */
    int repetitions;      /* a trial ends successfully after this many steps with a steady peak; 0: not used. Usually
                           * PLIM_EXECUTION_REPETITIONS */
    int epoch_steps;      /* a program's epochs end after this many steps, and `repetitions` counts epochs too;
                           * 0: epochs run to their end */
    bool tells_accumulation; /* the program uses the placeholder {accumulation} */
    bool adapts; /* the program chooses its batch itself: continuing after refused memory is not a failure */
    bool compiles_alone; /* the trial does not see what torch.compile and Triton's tuning cached in other trials */
    bool forgets_tuned;  /* deletes earlier results of Triton's tuning; those of this trial are kept for later ones */
    const struct plim_stop *stop;
    const atomic_bool *given_up; /* set to true to cancel the trial; NULL: not used */
};

/* If a trial takes longer than this, the report says how it can be ended earlier. */
enum { PLIM_LONG_TRIAL_SECONDS = 2 };

enum plim_execution_end {
    PLIM_END_EXITED, /* the program exited */
    PLIM_END_STEADY, /* its memory has reached its final level (rest.h) */
    PLIM_END_STEPS,  /* it did the requested number of steps */
    PLIM_END_REFUSED, /* it continued after memory was refused, which decides the verdict */
    PLIM_END_RESTLESS, /* after PLIM_FORECAST_STEPS it still releases its cache in every step: a later step may fail */
    PLIM_END_TIME,    /* run_seconds have passed */
    PLIM_END_LIMIT,   /* limit_seconds have passed: it has failed */
    PLIM_END_INPUT,   /* it waits for input on stdin, which never comes */
    PLIM_END_STOPPED, /* by the user, or because the search ran out of time */
};

enum { PLIM_EXECUTION_NOTES = 8 }; /* only the first notes of a trial are kept */

struct plim_execution {
    /* PLIM_OK; PLIM_OOM; PLIM_CRASHED: it ended with an error other than out of memory; PLIM_TIMEOUT;
     * PLIM_UNSUPPORTED: it did not use a GPU; PLIM_CANCELLED */
    enum plim_status verdict;
    enum plim_execution_end end;
    char why[256];      /* the reason for a verdict other than PLIM_OK: one line */
    bool went_on;       /* memory was refused, and the program continued with less */
    bool replanned;     /* PyTorch continued: a convolution chose a smaller workspace (out_of_memory.h) */
    bool limited;       /* the request exceeded its framework's own limit, not the GPU's */
    int64_t peak_bytes; /* of the fullest GPU, without the CUDA context of one process */
    int gpus_used;      /* GPUs on which it held memory */
    int peak_contexts;  /* processes that held memory on the fullest GPU at the peak */
    int64_t refusals;   /* allocations that a GPU refused */
    int64_t asked_bytes, free_bytes;                    /* of the last refusal */
    struct plim_machine_size sizes[PLIM_MACHINE_SIZES]; /* at its peak, of the process with the highest on that GPU */
    int64_t processes;                                  /* number of processes that used a GPU */
    int64_t launches;    /* launches and allocations; 0: the program did not use a GPU */
    int64_t steps;       /* recognised training steps; 0: none */
    int rule;            /* how they were recognised: enum plim_steps_rule */
    bool in_epoch;       /* the last step was inside a loop over a PyTorch data loader */
    int64_t epochs;      /* earlier loops over data loaders with training steps */
    int waiting_optimizers; /* the most PyTorch optimizers of one process that had not stepped yet */
    bool short_epochs;   /* epochs were cut off after `epoch_steps` steps */
    double step_seconds; /* host time of a step; 0: not known */
    double leak_bytes;   /* growth per step; 0: no leak seen */
    double seconds;      /* duration of the whole trial */
    /* The trial found results of torch.compile from an earlier trial, or left the first ones: the first launch of the
     * program and later ones may take different amounts of memory. */
    bool finds_compiled, makes_compiled;
    /* The peaks of the first launch of such a program, which compiles, and of a later one; 0 if not both were tried
     * (plim_executor_confirm()). */
    int64_t first_launch_bytes, later_launch_bytes;
    char log[40];        /* name of its log in the folder `logs` */
    uint32_t note_count;
    char notes[PLIM_EXECUTION_NOTES][PLIM_MACHINE_NOTE_BYTES]; /* how the virtual GPU differs from a real one */
    char unread[PLIM_QUESTION_TEXT]; /* places of --assume where no value was read: "a.py:3, b.py:7"; "": none */
    struct plim_machine_questions questions; /* values that the program read and the virtual GPU did not know */
};

/* Runs trial `number` of a setting and blocks until it is over. The result is PLIM_OK whatever the verdict;
 * PLIM_INVALID or PLIM_IO if the program cannot be started, a template cannot be read, and so on. Thread safety:
 * several trials with the same options may run at once. */
enum plim_status plim_execution_run(const struct plim_execution_options *options,
                                    const struct plim_setting *setting, int64_t number,
                                    struct plim_execution *out,
                                    struct plim_error *err) PLIM_MUST_CHECK;

/* Describes a decision that the program based on a value unknown to the virtual GPU, as a sentence without its full
 * stop. The terminal shows at most PLIM_DECISIONS_SHOWN of them; files and JSON have all. */
enum { PLIM_DECISIONS_SHOWN = 4, PLIM_DECISION_TEXT = 360 };
void plim_execution_describe_decision(const struct plim_machine_question *question, char *out,
                                      size_t size);

/* Removes a folder with its contents. Follows no symbolic links. */
void plim_execution_remove_folder(const char *path);

/* Fills in `count` identical GPUs of a machine from `gpu` and the memory limit; the limit's margin is withheld. */
void plim_execution_gpus(const struct plim_gpu *gpu, const struct plim_limit *limit, int64_t count,
                         struct plim_machine_gpu *out);

#endif
