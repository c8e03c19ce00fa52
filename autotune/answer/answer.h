/* Turns the result of a search into a report (reports/result.h), with its reasons.
 *
 * The search knows only a few numbers of each trial; what else the runner recorded, the trial's details, is read
 * through a table of functions: replays.h for the engine, executions.h for programs. */
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
    bool predicts;   /* trials are played from a recording of a program, and verify nothing */
    /* Returns the bytes in tensors at the peak; 0 if not known. */
    int64_t (*allocated_bytes)(const struct plim_trial *trial);
    /* Returns the size in bytes of the largest block that a prediction has to guess; 0 if none. NULL: nothing is
     * guessed. */
    int64_t (*guessed_bytes)(const struct plim_trial *trial);
    /* Describes the request that ran out of memory, in one line; leaves `out` "" if it is not known. NULL: it is never
     * known. */
    void (*describe_oom)(const struct plim_trial *trial, char *out, size_t size);
    /* Sets the size of the model, which all trials have in common. May be NULL, like all functions below. */
    void (*describe_model)(const struct plim_trial *trial, struct plim_result *result);
    /* Returns the model FLOPs (not hardware FLOPs) of one token, forward and backward; 0 if not known. */
    double (*flops_per_token)(const struct plim_trial *trial);
    /* For a sample: sets how it was timed. */
    void (*describe_sample)(const struct plim_trial *trial, struct plim_result_sample *sample);
    /* For the reported trial: sets what its memory is used for. */
    void (*describe_memory)(const struct plim_trial *trial, struct plim_result *result);
    /* For the reported trial: sets what its time is used for. */
    void (*describe_time)(const struct plim_trial *trial, struct plim_result *result);
    /* For an inspected setting: sets its optimizer steps. */
    void (*describe_steps)(const struct plim_trial *trial, struct plim_result *result);
};

/* The inputs of an answer. All pointers need to be valid only during the call. */
struct plim_answer {
    const char *name, *source; /* of the spec, or the program */
    uint64_t hash;             /* of the spec; 0: none */
    double host_speed; /* as in struct plim_result_spec */
    const char *lora, *quantization, *defaults; /* lines of the report about the spec; NULL: none */
    const char *use_reentrant; /* of checkpointing: "true", "false"; NULL or "": no checkpointing, or not known */
    const char *const *doubts; /* `doubt_count` reasons why a recording is uncertain */
    size_t doubt_count;
    const struct plim_question *question;
    const struct plim_prober *prober;
    const struct plim_device_info *device;
    const struct plim_limit *limit;
    int tdp_watts; /* of the GPU; 0: not known */
    /* The all-reduce: NCCL's version if it was measured; the reason why it is modelled if a requested measurement
     * failed; NULL or "": nothing to report. */
    const char *nccl, *why_modelled;
    /* FLOP/s of the device, indexed by the values of the axis "precision"; NULL: not known. */
    const double *peak_rate;
    const struct plim_details_reader *details;
    int64_t gpus; /* the number of GPUs on which a program's trials run; 0: not a program */
};

/* Fill in the zeroed `result`, which then depends on none of the inputs. PLIM_NOMEM is the only error. */
enum plim_status plim_answer_decision(const struct plim_answer *answer,
                                      const struct plim_decision *decision,
                                      struct plim_result *result,
                                      struct plim_error *err) PLIM_MUST_CHECK;
enum plim_status plim_answer_inspection(const struct plim_answer *answer,
                                        const struct plim_inspection *inspection,
                                        struct plim_result *result,
                                        struct plim_error *err) PLIM_MUST_CHECK;

#endif
