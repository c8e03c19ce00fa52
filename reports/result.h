/* The result of a run of plimsoll, as plain data in base units: the input of the writers.
 *
 * Bytes are integers, times are seconds, rates are per second. A number that is not known is 0
 * here and absent in the output (a real value is never 0 where this is used). Texts that
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
    char unplanned[256]; /* its keys that change memory but are not modelled: "torch_compile, use_unsloth" */
    char lora[640];     /* "r=16 on q_proj, v_proj"; "": all parameters are trained */
    char quantization[128]; /* "nf4 (double quantisation, computes in bf16)"; "": none */
    char use_reentrant[8]; /* "true", "false": of checkpointing; "": there is none, or it is not known */
    double host_speed; /* train.host_speed; 0: not known */
    char defaults
        [512]; /* settings that were not given, and their defaults: "optimizer adamw-fused, ..."; "": none */
};

struct plim_result_device {
    char name[64], uri[128];
    bool simulated;
    /* The GPU whose numbers, except memory, a generic simulated GPU takes; "": none */
    char based_on[64];
    int64_t total_bytes;
    int compute_capability, multiprocessors;
    int tdp_watts; /* thermal design power; 0: not known */
    int gpus;      /* how many GPUs of this kind here the result is for; 0: not counted */
};

enum { PLIM_RESULT_GPUS = 80 };

/* "NVIDIA L40S", or "4 x NVIDIA L40S". */
const char *plim_result_gpus(const struct plim_result_device *device, char text[PLIM_RESULT_GPUS]);

/* usable - overhead - margin = budget; a budget of 0 or less is a real answer. */
struct plim_result_limit {
    int64_t usable_bytes, overhead_bytes, margin_bytes, budget_bytes;
    int64_t vllm_bytes; /* part of the overhead: reserved for a vLLM in the training process; 0: there is none */
    int64_t overhead_measured_bytes; /* GPU memory that our own process took; 0: not measured */
    const char *overhead_source;     /* "estimate", "given", "measured" */
    char alloc_conf[256]; /* allocator options in force, in PyTorch's syntax; "" for its defaults */
};

/* Peaks over all steps. `device` is the memory that the GPU needs: reserved plus overhead. */
struct plim_result_peak {
    int64_t allocated_bytes, reserved_bytes, device_bytes;
};

/* The value along one axis of the search: "precision" "bf16-mixed". */
struct plim_result_value {
    char name[32], text[64];
    bool is_size; /* an axis that the user defined: JSON lists it under "sizes" */
};

/* The training settings that identify a candidate. A micro-batch or sequence of 0 is not known: the
 * user's program sets it. */
struct plim_result_setting {
    int64_t micro_batch, seq, accumulation;
    size_t value_count;
    struct plim_result_value values[PLIM_RESULT_VALUES];
};

/* Writes the other settings that an answer is for, after `separator`: "LoRA r=16 on q_proj, quantization nf4,
 * overlap_comm yes" (of ZeRO's settings those that the command line set). `spec` NULL: nothing. `said`: keys of
 * settings to leave out (NULL ends them; NULL: none). */
void plim_result_spec_fixed(const struct plim_result_spec *spec, const char *const *said, const char *separator,
                            FILE *out);
/* Writes one of them: "NAME VALUE" after *separator, which is ", " from then on. A value of "": nothing. */
void plim_result_write_fixed(const char *name, const char *value, const char **separator, FILE *out);

/* The text of a value, or "" where the setting has none of that name. */
const char *plim_result_value(const struct plim_result_setting *setting, const char *name);

/* The unit of a choice's rate: tokens, or samples where the sequence length is not known. */
const char *plim_result_rate_unit(const struct plim_result_setting *setting);

/* From `epoch` on an optimizer step has `accumulation` micro-steps and `effective_batch` samples. */
struct plim_result_phase {
    int64_t epoch, accumulation, effective_batch;
};

/* A setting with its memory and speed. Rates are those of all `world` GPUs together. */
struct plim_result_choice {
    bool present;
    struct plim_result_setting setting;
    int64_t world, effective_batch;
    int64_t effective_batch_target; /* 0: none was asked for */
    size_t phase_count;             /* 0: no accumulation schedule */
    struct plim_result_phase phases[PLIM_RESULT_PHASES];
    struct plim_result_peak peak;
    /* Tokens: a sample of unknown length counts as one. */
    double step_seconds;
    double tokens_per_second; /* 0: not known, as for a program without a sequence length */
    double samples_per_second;
    /* These are estimates that depend on the host's speed: a slow host takes longer to launch the
     * step than the GPU to run it. */
    bool host_bound;
    double mfu; /* share of the GPU's peak rate for this precision */
    /* This setting was run with all its micro-steps, and, where it can be replayed, for as many
     * steps as are needed to prove that it always fits. */
    bool verified;
    int64_t repeats_after_steps; /* steps that were replayed until everything repeated; 0: it was not seen to */
};

/* The micro-steps of an optimizer step in the first epoch. */
int64_t plim_result_first_accumulation(const struct plim_result_choice *choice);

/* The outcome of one combination of the requested values. */
struct plim_result_point {
    struct plim_result_choice best; /* present: the best that fits; else only its setting is filled */
    bool chosen;                    /* the result's choice is this point's */
    const char *verdict;            /* "ok", the verdict of a sample, or "untried" */
    int64_t short_bytes;            /* missing at most, as cached memory can be freed; 0: not known */
    double rate_limit;              /* untried: the highest possible rate; 0: not known */
    char why[PLIM_RESULT_LINE];     /* for any verdict but "ok" */
};

/* The outcome of the next larger micro-batch. */
struct plim_result_next {
    int64_t micro_batch;  /* 0: nothing is known of one */
    const char *verdict;  /* "oom", "ok", "untried", or another verdict of a sample */
    char why[PLIM_RESULT_LINE];
};

/* The classes of memory by the tensors' use, in the order in which they are shown: that of their lifetimes. */
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

/* At the moment of the largest allocation. `cached` is held by the allocator but in no tensor. `other`
 * stays from step to step and is not known to be of another class. */
struct plim_result_breakdown {
    bool present;
    bool inferred; /* from the blocks' lifetimes: a class of 0 bytes may still have some */
#define PLIM_RESULT_CLASS_FIELD(name) int64_t name##_bytes;
    PLIM_RESULT_CLASS_MAP(PLIM_RESULT_CLASS_FIELD)
#undef PLIM_RESULT_CLASS_FIELD
    int64_t cached_bytes, overhead_bytes;
    int64_t managed_bytes; /* of a paged optimizer: on the GPU only while there is room; 0: none */
    int64_t host_bytes;    /* host memory that DeepSpeed offloads a rank's state to; 0: none */
    /* Where ranks need different amounts: the rank of these numbers, and rank 0's peak of reserved
     * bytes; 0: they do not differ, or it is not known. */
    int64_t rank, rank0_reserved_bytes;
};

/* The same by index: parameters are 0, communication and other are the last two. */
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

/* How the GPU spends a step, by the clock of a simulated device; all 0: not known. `other` are all
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

/* Allocated memory at a moment of an optimizer step. A sequence of moments is its upper envelope. */
struct plim_result_moment {
    double seconds; /* since the step began, simulated */
    char phase[16]; /* "forward", "backward", "optimizer" */
    struct plim_result_breakdown memory;
};

/* A setting that was tried. If it does not fit, `peak` is the memory it would need, where
 * that is known. */
struct plim_result_sample {
    struct plim_result_setting setting;
    const char *verdict; /* ok, oom, unsupported, lost, timeout, crashed, unstable */
    struct plim_result_peak peak;
    double seconds; /* of one optimizer step */
    bool simulated;
    int repeats;    /* of the timed step; 0: not timed by repeating */
    bool noisy;     /* not known to 1 %, or the GPU was slowed down */
    char attention_engine[64]; /* the engine of attention, on a real GPU (devices/device.h) */
};

/* Allocations of one order of size at the peak of a user's program: of at least `from_bytes`. */
struct plim_result_segments {
    int64_t from_bytes, count, bytes;
};

/* A value that a user's program read and that only a real GPU knows. */
struct plim_result_question {
    char place[120], kernel[120]; /* "FILE:LINE" that read it, the kernel that wrote it; "": not known */
    const char *use; /* "shown", "kept", "checked", "given", "decides" (machine/question.h) */
    int64_t count, bytes; /* how often it was read; bytes of one read */
    int64_t answer; /* the value that the program got: 0, or the most that a mask selects */
    int64_t turned; /* how often it got another value, so that a loop ends */
};

/* A change that the user may make, replayed: the memory it would need. */
struct plim_result_advice {
    char change[128];
    struct plim_result_peak peak;
    bool fits;
};

struct plim_result_step {
    int64_t after_forward_bytes; /* 0: not known */
    int64_t peak_allocated_bytes, peak_reserved_bytes, end_allocated_bytes;
};

/* The links that gradients are reduced over between GPUs of a machine, as used for the seconds of the choice. */
struct plim_result_all_reduce {
    double bytes_per_second; /* from a GPU to the next; 0: no transfers, or not known */
    double latency_seconds;  /* of an all-reduce besides its bytes; 0: not known */
    int gpus;                /* how many it was measured with; 0: it is modelled */
    double waits_seconds;    /* time of a step spent waiting for other GPUs; 0: not known */
    char nccl[32];           /* the version that was measured: "2.28.9" */
    char why_not[200];       /* why it is modelled although it was to be measured; "": it was not to be */
};

struct plim_result {
    enum plim_result_kind kind;
    bool is_doubtful; /* whatever its questions: the recording says so, or no training step was seen */
    bool is_program; /* of a user's own program: only what its process shows is known */
    const char *objective; /* DECISION: a name of search/objective.h */
    const char *profile;   /* DECISION: a name of run/profile.h; NULL: none was asked for */
    const char *tier;      /* DECISION: name of one of several answers with different margins; NULL: the only one */
    char waterfall[128];   /* DECISION: the axes that were relaxed in turn: "precision,seq"; "": none. If there
                            * are any, the points are in that order */
    struct plim_result_spec spec;
    struct plim_result_device device;
    struct plim_result_limit limit;
    struct plim_result_choice choice;      /* EXPLANATION: the setting explained, fitting or not */
    struct plim_result_choice largest_fit; /* DECISION; not searched for a program with an exact effective batch,
                                            * because trials are costly */
    struct plim_result_next next;          /* after largest_fit */
    struct plim_result_breakdown breakdown;
    struct plim_result_time time;
    struct plim_result_all_reduce all_reduce;
    struct plim_result_evaluation { /* between steps, of train.evaluation; 0: there is none */
        int64_t allocated_bytes, reserved_bytes; /* peaks */
    } evaluation;
    size_t reason_count;                   /* why: one sentence each */
    char reasons[PLIM_RESULT_REASONS][PLIM_RESULT_LINE];
    PLIM_ARRAY(struct plim_result_point) points; /* DECISION: one for each combination */
    PLIM_ARRAY(struct plim_result_sample) samples;
    PLIM_ARRAY(struct plim_result_advice) advice;
    size_t segment_count;
    struct plim_result_segments segments[PLIM_RESULT_SEGMENTS]; /* programs only */
    size_t question_count; /* programs only, of the trial of the choice */
    struct plim_result_question questions[PLIM_RESULT_QUESTIONS];
    char assumptions[224]; /* the assumptions behind values: "learned numbers are finite; ..."; "": none */
    /* DECISION on a real GPU: the simulated twin's prediction for the choice; 0: not known */
    struct plim_result_prediction {
        double step_seconds;
        int64_t reserved_bytes, largest_micro_batch;
    } prediction;
    int64_t short_bytes;   /* how much memory is missing, at most, when nothing fits */
    bool unsupported;      /* no setting can be planned (see the reasons); for a program: it did not use a GPU */
    bool interrupted;      /* the search was cut short, or came to nothing: the best answer so far */
    enum plim_status ended; /* why it was cut short, or PLIM_OK */
    double seconds;        /* of the whole run */
    /* A step of the choice, or of the explained setting, for a chart: recorded where one is wanted, with
     * this many micro-steps; if the setting does not fit, on a device without a limit. */
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

/* The rate by which choices are compared, in plim_result_rate_unit(): tokens or samples per second. */
double plim_result_rate(const struct plim_result_choice *choice);

enum plim_result_order {
    PLIM_ORDER_DEFAULT, /* points by speed; a waterfall's points and devices in the given order */
    PLIM_ORDER_SPEED,   /* tokens per second, the most first */
    PLIM_ORDER_MEMORY,  /* the peak on the GPU, the least first */
    PLIM_ORDER_BATCH,   /* the micro-batch, the largest first */
    PLIM_ORDER_GIVEN,
};

/* Orders the points of every result, and the results of a table. Those that do not fit come last, and
 * equal ones keep their order. PLIM_NOMEM is the only failure. */
enum plim_status plim_report_sort(struct plim_report *report,
                                  enum plim_result_order order) PLIM_MUST_CHECK;

/* Appends a copy of a setting to the spec's options. PLIM_NOMEM is the only failure. */
enum plim_status plim_result_option(struct plim_result *result, const char *key,
                                    const char *value) PLIM_MUST_CHECK;

/* Does the program decide by a value that was not known? Then it may need other amounts of memory. */
bool plim_result_is_uncertain(const struct plim_result *result);

/* Appends a sentence to `reasons`; it is dropped when there is no more room. */
void plim_result_reason(struct plim_result *result, const char *fmt, ...) PLIM_PRINTF(2, 3);

void plim_result_finish(struct plim_result *result); /* NULL and zeroed are fine */
/* Moves the results of `from` to the end of `report`; a table stays one. PLIM_NOMEM: some may be left in `from`. */
enum plim_status plim_report_append(struct plim_report *report, struct plim_report *from,
                                    struct plim_error *err) PLIM_MUST_CHECK;
void plim_report_finish(struct plim_report *report); /* NULL and zeroed are fine */

#endif
