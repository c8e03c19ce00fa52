/* Turns the result of a search into a report (reports/result.h), with its reasons.
 *
 * The search knows only a few numbers of each trial; whatever else the runner recorded (its details)
 * is read through a table of functions: replays.h for the engine, executions.h for programs.
 */
#ifndef PLIM_AUTOTUNE_ANSWER_ANSWER_H
#define PLIM_AUTOTUNE_ANSWER_ANSWER_H

#include "autotune/search/decide.h"
#include "autotune/search/inspect.h"
#include "autotune/search/limit.h"
#include "devices/device.h"
#include "reports/result.h"

/* Functions that read the details of one kind of runner. `trial->details` is never NULL. */
struct plim_details_reader {
    bool is_program; /* trials are runs of a user's program */
    bool predicts;   /* trials are played from a recording of a program: they verify nothing */
    /* The bytes in tensors at the peak; 0: not known. */
    int64_t (*allocated_bytes)(const struct plim_trial *trial);
    /* The size of the largest block that a prediction has to guess; 0: none. NULL: nothing is guessed. */
    int64_t (*guessed_bytes)(const struct plim_trial *trial);
    /* The request that ran out of memory, in one line; `out` is "" before, which means not known.
     * NULL: it is never known. */
    void (*describe_oom)(const struct plim_trial *trial, char *out, size_t size);
    /* What all trials have in common: the size of the model. May be NULL, as all below. */
    void (*describe_model)(const struct plim_trial *trial, struct plim_result *result);
    /* Model FLOPs (not hardware FLOPs) for one token, forward and backward; 0: not known. */
    double (*flops_per_token)(const struct plim_trial *trial);
    /* For one sample: how it was timed. */
    void (*describe_sample)(const struct plim_trial *trial, struct plim_result_sample *sample);
    /* For the trial that is reported: where its bytes are. */
    void (*describe_memory)(const struct plim_trial *trial, struct plim_result *result);
    /* For the same trial: what its seconds depend on. */
    void (*describe_time)(const struct plim_trial *trial, struct plim_result *result);
    /* For an inspected setting: its optimizer steps. */
    void (*describe_steps)(const struct plim_trial *trial, struct plim_result *result);
};

/* The inputs of an answer. Everything needs to live only during the call. */
struct plim_answer {
    const char *name, *source; /* of the spec, or the program */
    uint64_t hash;             /* of the spec; 0: none */
    double host_speed; /* as in struct plim_result_spec */
    const char *lora, *quantization, *defaults; /* lines about the spec for the report; NULL: none */
    const char *use_reentrant; /* of checkpointing: "true", "false"; NULL, "": not checkpointed, or not known */
    const char *const *doubts; /* of a recording: `doubt_count` reasons why it is uncertain */
    size_t doubt_count;
    const struct plim_question *question;
    const struct plim_asker *asker;
    const struct plim_device_info *device;
    const struct plim_limit *limit;
    int tdp_watts; /* of the GPU; 0: not known */
    /* The all-reduce: NCCL's version if it was measured; why it is modelled if a measurement was requested and
     * failed; NULL, "": nothing to report. */
    const char *nccl, *why_modelled;
    /* FLOP/s of the device, indexed by the values of the axis "precision"; NULL: not known. */
    const double *peak_rate;
    const struct plim_details_reader *details;
    int64_t gpus; /* the number of GPUs on which a program's trials run; 0: not a program */
};

/* Fill the zeroed `result`, which then stands on its own. PLIM_NOMEM is the only failure. */
enum plim_status plim_answer_decision(const struct plim_answer *answer,
                                      const struct plim_decision *decision,
                                      struct plim_result *result,
                                      struct plim_error *err) PLIM_MUST_CHECK;
enum plim_status plim_answer_inspection(const struct plim_answer *answer,
                                        const struct plim_inspection *inspection,
                                        struct plim_result *result,
                                        struct plim_error *err) PLIM_MUST_CHECK;

#endif
