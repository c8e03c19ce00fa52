/* From what the search found to what the report says (reports/result.h), with its reasons.
 *
 * The search knows its trials by seven numbers; what else the runner recorded of each (its details)
 * is read through a table of functions: replays.h for the engine, executions.h for programs.
 */
#ifndef PLIM_AUTOTUNE_ANSWER_ANSWER_H
#define PLIM_AUTOTUNE_ANSWER_ANSWER_H

#include "autotune/search/decide.h"
#include "autotune/search/inspect.h"
#include "autotune/search/limit.h"
#include "devices/device.h"
#include "reports/result.h"

/* How the details of one kind of runner are read. `trial->details` is never NULL. */
struct plim_details_reader {
    bool is_program; /* trials are runs of a user's program */
    bool predicts;   /* trials are played from a recording of one: they verify nothing */
    /* In tensors at the peak; 0: not known. */
    int64_t (*allocated_bytes)(const struct plim_trial *trial);
    /* Of the largest block that a prediction has to guess; 0: none. NULL: of none. */
    int64_t (*guessed_bytes)(const struct plim_trial *trial);
    /* What was asked for when memory ran out, in one line; `out` comes as "", which is: not known.
     * NULL: it never is. */
    void (*describe_oom)(const struct plim_trial *trial, char *out, size_t size);
    /* What is the same of all trials: how large the model is. May be NULL, as those below. */
    void (*describe_model)(const struct plim_trial *trial, struct plim_result *result);
    /* Model FLOPs (not hardware FLOPs) of a token, forward and backward; 0: not known. */
    double (*flops_per_token)(const struct plim_trial *trial);
    /* Of one sample: how it was timed. */
    void (*describe_sample)(const struct plim_trial *trial, struct plim_result_sample *sample);
    /* Of the trial that is reported: where its bytes are. */
    void (*describe_memory)(const struct plim_trial *trial, struct plim_result *result);
    /* Of the same: what its seconds go by. */
    void (*describe_time)(const struct plim_trial *trial, struct plim_result *result);
    /* Of an inspected setting: its optimizer steps. */
    void (*describe_steps)(const struct plim_trial *trial, struct plim_result *result);
};

/* What an answer is made from. Everything outlives the call only. */
struct plim_answer {
    const char *name, *source; /* of the spec, or the program */
    uint64_t hash;             /* of the spec; 0: none */
    double host_speed; /* as of struct plim_result_spec */
    const char *lora, *quantization, *defaults; /* what is said of the spec in a line each; NULL: nothing */
    const char *use_reentrant; /* "true", "false": of what is checkpointed; NULL, "": nothing is, or it is not known */
    const char *const *doubts; /* of a recording: what makes it uncertain, `doubt_count` of them */
    size_t doubt_count;
    const struct plim_question *question;
    const struct plim_asker *asker;
    const struct plim_device_info *device;
    const struct plim_limit *limit;
    int tdp_watts; /* of the GPU; 0: not known */
    /* Of the all-reduce: NCCL's version where it was measured, and why it is modelled where it was to be
     * measured; NULL, "": there is nothing to say. */
    const char *nccl, *why_modelled;
    /* FLOP/s of the device by the values of the axis "precision"; NULL: not known. */
    const double *peak_rate;
    const struct plim_details_reader *details;
    int64_t gpus; /* that a program's trials run on; 0: of no program */
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
