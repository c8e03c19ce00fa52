/* What a run of plimsoll found out, as plain data in base units: what the writers write.
 *
 * Bytes are integers, times are seconds, rates are per second. A number that is not known is 0
 * here and absent in what is written (a real value is never 0 where this is used). Texts that
 * are pointers are static names; everything else is stored inside, so a result can be kept and
 * copied.
 *
 * The tree that the JSON and YAML writers make of it is described in the README and in tree.c.
 */
#ifndef PLIM_REPORTS_RESULT_H
#define PLIM_REPORTS_RESULT_H

#include "autotune/base/array.h"
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum {
    PLIM_RESULT_STEPS = 4,
    PLIM_RESULT_PHASES = 64,
    PLIM_RESULT_REASONS = 24,
    PLIM_RESULT_LINE = 400,
    PLIM_RESULT_VALUES = 16,
    PLIM_RESULT_SEGMENTS = 24,
    PLIM_RESULT_QUESTIONS = 32
};

enum plim_result_kind {
    PLIM_RESULT_DECISION,    /* tune, plan: schema plimsoll.result/1 */
    PLIM_RESULT_EXPLANATION, /* explain: schema plimsoll.explain/1 */
};

/* A key of the spec that the command line set: "train.clip" "1.0". */
struct plim_result_option {
    char key[96];
    char *value; /* the result's own */
};

struct plim_result_spec {
    char name[64], source[256];
    uint64_t hash;
    int64_t parameters, trainable_parameters;
    PLIM_ARRAY(struct plim_result_option) options; /* in the order in which they were set */
    char config[320];    /* the trainer's config that the spec was read from: "train.yaml (axolotl)"; "": none was */
    char unplanned[256]; /* keys of it that no plan has, though they change memory: "torch_compile, use_unsloth" */
    char lora[640];     /* "r=16 on q_proj, v_proj"; "": all parameters are trained */
    char quantization[128]; /* "nf4 (double quantisation, computes in bf16)"; "": none */
    char use_reentrant[8]; /* "true", "false": of what is checkpointed; "": nothing is, or it is not known */
    double host_speed; /* as of train.host_speed; 0: not known */
    char defaults
        [512]; /* what was not asked for, and taken: "optimizer adamw-fused, ..."; "": nothing */
};

struct plim_result_device {
    char name[64], uri[128];
    bool simulated;
    /* The GPU whose numbers, but for the memory, a generic simulated one takes; "": none */
    char based_on[64];
    int64_t total_bytes;
    int compute_capability, multiprocessors;
    int tdp_watts; /* the power that its cooling is made for; 0: not known */
    int gpus;      /* of this kind here, which the result is for; 0: not counted */
};

enum { PLIM_RESULT_GPUS = 80 };

/* "NVIDIA L40S", or "4 x NVIDIA L40S". */
const char *plim_result_gpus(const struct plim_result_device *device, char text[PLIM_RESULT_GPUS]);

/* usable - overhead - margin = budget; a budget of 0 or less is a real answer. */
struct plim_result_limit {
    int64_t usable_bytes, overhead_bytes, margin_bytes, budget_bytes;
    int64_t vllm_bytes; /* of the overhead: set aside for a vLLM in the process of the training; 0: there is none */
    int64_t overhead_measured_bytes; /* what our own process took on the GPU; 0: not measured */
    const char *overhead_source;     /* "estimate", "given", "measured" */
    char alloc_conf[256]; /* allocator options in force, in PyTorch's syntax; "" for its defaults */
};

/* Peaks over all steps. `device` is what the GPU has to hold: reserved and overhead. */
struct plim_result_peak {
    int64_t allocated_bytes, reserved_bytes, device_bytes;
};

/* The value along one axis of the search: "precision" "bf16-mixed". */
struct plim_result_value {
    char name[32], text[64];
    bool is_size; /* one of a user's own axes: JSON lists it under "sizes" */
};

/* The training settings that identify a candidate. A micro-batch or sequence of 0 is not known: the
 * user's own program has it. */
struct plim_result_setting {
    int64_t micro_batch, seq, accumulation;
    size_t value_count;
    struct plim_result_value values[PLIM_RESULT_VALUES];
};

/* What else an answer holds for, behind `separator`: "LoRA r=16 on q_proj, quantization nf4, overlap_comm yes" (of
 * ZeRO's settings those that the command line set). NULL: nothing. `said`: keys of those that are left out (NULL ends
 * them; NULL: none). */
void plim_result_spec_held(const struct plim_result_spec *spec, const char *const *said, const char *separator,
                           FILE *out);
/* One of them: "NAME VALUE" behind the separator, which is ", " from then on. "": nothing. */
void plim_result_write_held(const char *name, const char *value, const char **separator, FILE *out);

/* The text of a value, or "" where the setting has none of that name. */
const char *plim_result_value(const struct plim_result_setting *setting, const char *name);

/* Of what a choice's rate is: the tokens of a sequence, or samples, where none is known. */
const char *plim_result_rate_unit(const struct plim_result_setting *setting);

/* From `epoch` on, this many micro-steps make an optimizer step of so many samples. */
struct plim_result_phase {
    int64_t epoch, accumulation, effective_batch;
};

/* A setting with what it achieves. Rates are those of all `world` GPUs together. */
struct plim_result_choice {
    bool present;
    struct plim_result_setting setting;
    int64_t world, effective_batch;
    int64_t effective_batch_target; /* 0: none was asked for */
    size_t phase_count;             /* 0: no accumulation schedule */
    struct plim_result_phase phases[PLIM_RESULT_PHASES];
    struct plim_result_peak peak;
    /* Tokens: of samples of an unknown length each counts as one. */
    double step_seconds;
    double tokens_per_second; /* 0: not known, as of a program without a sequence length */
    double samples_per_second;
    /* These are an estimate that hangs on how fast the host is: a slow one takes longer to launch the
     * step than the GPU to run it. */
    bool host_bound;
    double mfu; /* share of the GPU's peak rate for this precision */
    /* This very setting was run with all its micro-steps, and, where it can be replayed, for as many
     * steps as it takes to know that it fits for ever. */
    bool verified;
    int64_t repeats_after_steps; /* replayed so many, then everything repeats; 0: not seen */
};

/* The micro-steps of an optimizer step in the first epoch. */
int64_t plim_result_first_accumulation(const struct plim_result_choice *choice);

/* What came of one combination of the values that were asked for. */
struct plim_result_point {
    struct plim_result_choice best; /* present: the best that fits; else only its setting is filled */
    bool chosen;                    /* the result's choice is of this point */
    const char *verdict;            /* "ok", the verdict of a sample, or "untried" */
    int64_t short_bytes;            /* missing at most: the allocator gives back what it caches; 0: not known */
    double rate_limit;              /* untried: no higher rate is possible; 0: not known */
    char why[PLIM_RESULT_LINE];     /* of any verdict but "ok" */
};

/* What the next larger micro-batch did. */
struct plim_result_next {
    int64_t micro_batch;  /* 0: nothing is known of one */
    const char *verdict;  /* "oom", "ok", "untried", or another verdict of a sample */
    char why[PLIM_RESULT_LINE];
};

/* What tensors are for, in the order in which they are shown: that of their lives. */
#define PLIM_RESULT_CLASS_MAP(X)                                                                   \
    X(parameters)                                                                                  \
    X(gradients)                                                                                   \
    X(optimizer)                                                                                   \
    X(activations)                                                                                 \
    X(logits)                                                                                      \
    X(temporaries)                                                                                 \
    X(workspace)                                                                                   \
    X(communication)                                                                               \
    X(other)

/* At the moment of the largest allocation; `cached` is held by the allocator and in no tensor. `other` is
 * what stays from step to step and is not known to be any of the rest. */
struct plim_result_breakdown {
    bool present;
    bool inferred; /* from how long blocks live: a class without bytes is not known to be none */
#define PLIM_RESULT_CLASS_FIELD(name) int64_t name##_bytes;
    PLIM_RESULT_CLASS_MAP(PLIM_RESULT_CLASS_FIELD)
#undef PLIM_RESULT_CLASS_FIELD
    int64_t cached_bytes, overhead_bytes;
    int64_t managed_bytes; /* of a paged optimizer: the GPU's only while there is room; 0: none */
    int64_t host_bytes;    /* what DeepSpeed offloads of a rank, beside the GPU's; 0: nothing */
    /* Where ranks need different amounts: the rank that is told, and what rank 0 reserves at its
     * peak; 0: they do not, or it is not known. */
    int64_t rank, rank0_reserved_bytes;
};

/* The same by number: parameters are 0, other and communication are the last. */
#define PLIM_RESULT_CLASS_ONE(name) +1
enum {
    PLIM_RESULT_CLASSES = 0 PLIM_RESULT_CLASS_MAP(PLIM_RESULT_CLASS_ONE),
    PLIM_RESULT_COMMUNICATION = PLIM_RESULT_CLASSES - 2,
    PLIM_RESULT_OTHER
};
#undef PLIM_RESULT_CLASS_ONE
const char *plim_result_class_name(int index);
int64_t *plim_result_class(struct plim_result_breakdown *breakdown, int index);
int64_t plim_result_class_bytes(const struct plim_result_breakdown *breakdown, int index);

/* What the GPU does in a step, as the clock of a simulated device has it; all 0: that is not known. `other` are all
 * other kernels, `copies` those between host and GPU; it `waits` for other GPUs, and is `idle` where the host is
 * slower. */
#define PLIM_RESULT_TIME_MAP(X)                                                                    \
    X(matmul, "matmul")                                                                            \
    X(attention, "attention")                                                                      \
    X(other, "other kernels")                                                                      \
    X(copies, "host copies")                                                                       \
    X(waits, "other GPUs")                                                                         \
    X(idle, "idle")

struct plim_result_time {
#define PLIM_RESULT_TIME_FIELD(name, words) double name##_seconds;
    PLIM_RESULT_TIME_MAP(PLIM_RESULT_TIME_FIELD)
#undef PLIM_RESULT_TIME_FIELD
};

double plim_result_time_all(const struct plim_result_time *time);

/* During an optimizer step: what is allocated. In a row they are the upper edge of it. */
struct plim_result_moment {
    double seconds; /* since the step began, simulated */
    char phase[16]; /* "forward", "backward", "optimizer" */
    struct plim_result_breakdown memory;
};

/* A setting that was tried. The `peak` of one that does not fit is what it would need, where
 * that is known. */
struct plim_result_sample {
    struct plim_result_setting setting;
    const char *verdict; /* ok, oom, unsupported, lost, timeout, crashed, unstable */
    struct plim_result_peak peak;
    double seconds; /* of one optimizer step */
    bool simulated;
    int repeats;    /* of the timed step; 0: not timed by repeating */
    bool noisy;     /* not known to 1 %, or the GPU was slowed down */
    char attention_engine[64]; /* what computed attention, on a real GPU (devices/device.h) */
};

/* Allocations of one order of size at the peak of a user's program: of `from_bytes` and more. */
struct plim_result_segments {
    int64_t from_bytes, count, bytes;
};

/* A value that a user's program read and that only a real GPU knows. */
struct plim_result_question {
    char place[120], kernel[120]; /* "FILE:LINE" that read it, what wrote it; "": not known */
    const char *use; /* "shown", "kept", "checked", "given", "decides" (machine/question.h) */
    int64_t count, bytes; /* how often; bytes of one */
    int64_t answer; /* what it was told: 0, or the most that a mask selects */
    int64_t turned; /* so often something else, so that a loop ends */
};

/* Something the user may change, replayed: what it would need. */
struct plim_result_advice {
    char change[128];
    struct plim_result_peak peak;
    bool fits;
};

struct plim_result_step {
    int64_t after_forward_bytes; /* 0: not known */
    int64_t peak_allocated_bytes, peak_reserved_bytes, end_allocated_bytes;
};

/* What gradients go over between GPUs of a machine, as the seconds of the choice count it. */
struct plim_result_all_reduce {
    double bytes_per_second; /* of a GPU to the next; 0: nothing goes, or it is not known */
    double latency_seconds;  /* of an all-reduce besides its bytes; 0: not known */
    int gpus;                /* among which it was measured; 0: it is modelled */
    double waits_seconds;    /* of a step, for what the others have; 0: not known */
    char nccl[32];           /* by which version: "2.28.9" */
    char why_not[200];       /* was to be measured, and is modelled: why; "": it was not to be */
};

struct plim_result {
    enum plim_result_kind kind;
    bool is_doubtful; /* whatever it asked: of a recording that says so, or no training step was seen */
    bool is_program; /* of a user's own program: only what its process shows is known */
    const char *objective; /* DECISION: a name of search/objective.h */
    const char *profile;   /* DECISION: a name of run/profile.h; NULL: none was asked for */
    const char *tier;      /* DECISION: of several answers to one question, by their margins; NULL: the only one */
    char waterfall[128];   /* DECISION: the axes that were given up in turn: "precision,seq"; "": none;
                            * then the points stand in that order */
    struct plim_result_spec spec;
    struct plim_result_device device;
    struct plim_result_limit limit;
    struct plim_result_choice choice;      /* EXPLANATION: the setting explained, fitting or not */
    struct plim_result_choice largest_fit; /* DECISION; of a program with an exact effective batch it is not
                                            * looked for, as trials are costly */
    struct plim_result_next next;          /* after largest_fit */
    struct plim_result_breakdown breakdown;
    struct plim_result_time time;
    struct plim_result_all_reduce all_reduce;
    struct plim_result_evaluation { /* between steps, of train.evaluation; 0: there is none */
        int64_t allocated_bytes, reserved_bytes; /* peaks */
    } evaluation;
    size_t reason_count;                   /* why: one sentence each */
    char reasons[PLIM_RESULT_REASONS][PLIM_RESULT_LINE];
    PLIM_ARRAY(struct plim_result_point) points; /* DECISION: of every combination */
    PLIM_ARRAY(struct plim_result_sample) samples;
    PLIM_ARRAY(struct plim_result_advice) advice;
    size_t segment_count;
    struct plim_result_segments segments[PLIM_RESULT_SEGMENTS]; /* programs only */
    size_t question_count; /* programs only, of the trial of the choice */
    struct plim_result_question questions[PLIM_RESULT_QUESTIONS];
    char assumptions[224]; /* what values rest on: "learned numbers are finite; ..."; "": nothing */
    /* DECISION on a real GPU: what the simulated twin had said of the choice; 0: not known */
    struct plim_result_prediction {
        double step_seconds;
        int64_t reserved_bytes, largest_micro_batch;
    } prediction;
    int64_t short_bytes;   /* how much memory is missing, at most, when nothing fits */
    bool unsupported;      /* no setting can be planned, as the reasons say; of a program: it did not use a GPU */
    bool interrupted;      /* the search was cut short, or came to nothing: the best answer so far */
    enum plim_status ended; /* why, or PLIM_OK */
    double seconds;        /* of the whole run */
    /* A step of the choice, or of the setting that is explained, for a chart: recorded where one is
     * wanted. Of its micro-steps, so many were run; where it does not fit, without a limit. */
    int64_t timeline_micro_steps;
    PLIM_ARRAY(struct plim_result_moment) timeline;
    /* EXPLANATION only */
    bool fits;
    size_t step_count;
    struct plim_result_step steps[PLIM_RESULT_STEPS];
};

/* What one command reports: one result, or (plan on several devices) a table of them. */
struct plim_report {
    const char *version; /* of plimsoll; NULL: not said */
    bool is_table;
    PLIM_ARRAY(struct plim_result) results;
};

/* What a choice is compared by, in plim_result_rate_unit(): tokens a second, or samples. */
double plim_result_rate(const struct plim_result_choice *choice);

enum plim_result_order {
    PLIM_ORDER_DEFAULT, /* points by speed, those of a waterfall and devices as given */
    PLIM_ORDER_SPEED,   /* tokens per second, the most first */
    PLIM_ORDER_MEMORY,  /* the peak on the GPU, the least first */
    PLIM_ORDER_BATCH,   /* the micro-batch, the largest first */
    PLIM_ORDER_GIVEN,
};

/* Orders the points of every result, and the results of a table. What does not fit comes last, and
 * equals stay as they are. PLIM_NOMEM is the only failure. */
enum plim_status plim_report_sort(struct plim_report *report,
                                  enum plim_result_order order) PLIM_MUST_CHECK;

/* Appends a copy of a setting to the spec's options. PLIM_NOMEM is the only failure. */
enum plim_status plim_result_option(struct plim_result *result, const char *key,
                                    const char *value) PLIM_MUST_CHECK;

/* Does the program decide by a value that was not known? Then its memory may be another. */
bool plim_result_is_uncertain(const struct plim_result *result);

/* Appends a sentence to `reasons`, dropping it when there is no more room. */
void plim_result_reason(struct plim_result *result, const char *fmt, ...) PLIM_PRINTF(2, 3);

void plim_result_finish(struct plim_result *result); /* NULL and zeroed are fine */
/* Appends the results of `from`, which loses them; a table stays one. PLIM_NOMEM: some may be left. */
enum plim_status plim_report_take(struct plim_report *report, struct plim_report *from,
                                  struct plim_error *err) PLIM_MUST_CHECK;
void plim_report_finish(struct plim_report *report); /* NULL and zeroed are fine */

#endif
