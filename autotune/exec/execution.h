/* One run of a program on virtual GPUs: does this setting fit, and what does it take?
 *
 * A trial is over when the program ends, when it has done the steps that were asked for, when its
 * peak has not grown for so many repetitions of its pattern (devices/virtual/steps), or after the
 * time that was given. Then it is ended with everything that it started.
 *
 * The verdict is made of what happened, never of what the program wrote: memory that a GPU refused
 * and the program did not get by giving back what it cached (machine.h), and how the program ended.
 */
#ifndef PLIM_AUTOTUNE_EXEC_EXECUTION_H
#define PLIM_AUTOTUNE_EXEC_EXECUTION_H

#include "autotune/base/stop.h"
#include "autotune/search/limit.h"
#include "devices/virtual/machine/machine.h"
#include "user_program.h"
#include <stdatomic.h>

enum { PLIM_EXECUTION_REPETITIONS = 5 };

/* What all trials of a search have in common. Everything outlives them. */
struct plim_execution_options {
    const struct plim_program *program;
    /* To be preloaded: the virtual GPU, whose folder has its other names, or the observer. */
    const char *library;
    size_t given_count; /* what the user says of values that virtual GPUs do not know */
    struct plim_machine_given given[PLIM_MACHINE_GIVEN];
    const char *visible; /* the real GPU's UUID, for CUDA_VISIBLE_DEVICES; NULL: virtual GPUs */
    const struct plim_machine_gpu *gpus;
    int gpu_count;
    const char *folder; /* for the folders of trials */
    const char *logs;
    int hold; /* a descriptor that is open as long as anything of a trial lives; -1: none */
    double run_seconds;   /* a trial ends well after this; 0: no such end */
    double limit_seconds; /* a trial that takes longer has failed */
    int steps;            /* a trial ends well after so many; 0: no such end */
    int repetitions; /* a trial ends well after so many with a steady peak; 0: no such end. Usually
                             PLIM_EXECUTION_REPETITIONS */
    int epoch_steps;      /* a program's epochs end after so many steps, and `repetitions` are epochs, too; 0:
                           * whole ones */
    bool tells_accumulation; /* {accumulation} is in the command */
    bool adapts; /* the program finds its batch itself: going on with less is no failure */
    bool compiles_alone; /* what torch.compile and tuning made for other trials is not there */
    bool forgets_tuned;  /* what tuning made is not there; what this trial makes is there for others */
    const struct plim_stop *stop;
    const atomic_bool *given_up; /* the trial is not wanted any more; NULL: it always is */
};

/* A trial that takes longer is worth a word on how it might end earlier. */
enum { PLIM_LONG_TRIAL_SECONDS = 2 };

enum plim_execution_end {
    PLIM_END_EXITED, /* by itself */
    PLIM_END_STEADY,
    PLIM_END_STEPS,
    PLIM_END_REFUSED, /* it did not get what it asked for, and went on: that decides */
    PLIM_END_RESTLESS, /* PLIM_FORECAST_STEPS, and cached memory is still given back in each: a later one may fail */
    PLIM_END_TIME,
    PLIM_END_LIMIT,   /* of its time: it has failed */
    PLIM_END_INPUT,   /* it waits for what will never come */
    PLIM_END_STOPPED, /* by the user, or the search's time is over */
};

enum { PLIM_EXECUTION_NOTES = 8 }; /* of a trial, at most: the first */

struct plim_execution {
    /* PLIM_OK; PLIM_OOM; PLIM_CRASHED: it ended with an error and not for want of memory;
     * PLIM_TIMEOUT; PLIM_UNSUPPORTED: it did not use a GPU; PLIM_CANCELLED */
    enum plim_status verdict;
    enum plim_execution_end end;
    char why[256];      /* for anything but PLIM_OK: one line */
    bool went_on;       /* it got no memory, and went on all the same, with less */
    bool replanned;     /* and that was PyTorch's doing: a convolution with less workspace (out_of_memory.h) */
    bool limited;       /* what it asked for is beyond its framework's own limit, not the GPU's */
    int64_t peak_bytes; /* of the fullest GPU, without the framework's context of one process */
    int gpus_used;      /* that held any */
    int peak_contexts;  /* processes that held memory of it then */
    int64_t refusals;
    int64_t asked_bytes, free_bytes;                    /* of the last refusal */
    struct plim_machine_size sizes[PLIM_MACHINE_SIZES]; /* of the largest process, at its peak */
    int64_t processes;                                  /* that used a GPU */
    int64_t launches;    /* and allocations: 0 is a program that did not use a GPU */
    int64_t steps;       /* recognised; 0: none */
    int rule;            /* by what: enum plim_steps_rule */
    bool in_epoch;       /* the last was in a loop over a data loader of PyTorch's, */
    int64_t epochs;      /* and came after so many others that were trained from */
    int waiting_optimizers; /* PyTorch's, of one process, that had not stepped by then */
    bool short_epochs;   /* they were to end after so many steps (`epoch_steps`) */
    double step_seconds; /* host time; 0: not known */
    double leak_bytes;   /* a step; 0: none seen */
    double seconds;      /* of the whole trial */
    /* torch.compile of an earlier trial left what it made, or this one's left the first: a first launch and a
     * later one may take other amounts of memory. */
    bool finds_compiled, makes_compiled;
    /* What such a program took as a first launch, which compiles, and as a later one; 0: not both were tried
     * (plim_executor_confirm()). */
    int64_t first_launch_bytes, later_launch_bytes;
    char log[40];        /* its name in `logs` */
    uint32_t note_count;
    char notes[PLIM_EXECUTION_NOTES][PLIM_MACHINE_NOTE_BYTES]; /* the virtual GPU's, of what it does not do as a GPU */
    char unread[PLIM_QUESTION_TEXT]; /* places of --assume where nothing was asked: "a.py:3, b.py:7"; "": none */
    struct plim_machine_questions questions; /* values that it asked the virtual GPU for in vain */
};

/* Blocks until it is over. PLIM_INVALID, PLIM_IO: the program cannot be started, a template cannot
 * be read, and the like. Thread safety: several trials of an options may run at once. */
enum plim_status plim_execution_run(const struct plim_execution_options *options,
                                    const struct plim_setting *setting, int64_t number,
                                    struct plim_execution *out,
                                    struct plim_error *err) PLIM_MUST_CHECK;

/* How a program decided by a value that its virtual GPU did not know, as the rest of a sentence. So many are told;
 * files and JSON have all. */
enum { PLIM_DECISIONS_TOLD = 4, PLIM_DECISION_TEXT = 360 };
void plim_execution_describe_decision(const struct plim_machine_question *question, char *out,
                                      size_t size);

/* A folder of trials, with all that programs left there. */
void plim_execution_remove_folder(const char *path);

/* The GPUs of a machine like this one, with the limit's margin withheld. */
void plim_execution_gpus(const struct plim_gpu *gpu, const struct plim_limit *limit, int64_t count,
                         struct plim_machine_gpu *out);

#endif
