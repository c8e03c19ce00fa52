/* A spec as a question to the search, and a setting of the search as the engine's argument.
 *
 * Both go through one table of axes (spec_question.c): a key of the spec that may be varied is a row there,
 * by which it reaches the search, the workers, the report and JSON.
 */
#ifndef PLIM_AUTOTUNE_RUN_SPEC_QUESTION_H
#define PLIM_AUTOTUNE_RUN_SPEC_QUESTION_H

#include "autotune/search/limit.h"
#include "autotune/search/question.h"
#include "devices/all_reduce.h"
#include "devices/catalogue/catalogue.h"
#include "workloads/spec/spec.h"
#include "workloads/train/replay.h"

struct plim_recording; /* workloads/recording/recording.h; recording_question.h makes a question of it */

/* The sequence length where none was given: the model's positions, but at most PLIM_DEFAULT_SEQ_MAX. The
 * longest that is searched if the model sets no limit: PLIM_SEQ_MAX. */
enum { PLIM_DEFAULT_SEQ_MAX = 4096, PLIM_SEQ_MAX = 1 << 20 };

/* Contains the values that its axes point to: do not copy or move it once it is made. */
struct plim_spec_question {
    const struct plim_spec *spec;
    const struct plim_recording *recording; /* played instead of running the engine; NULL: none */
    const char *const *doubts;              /* of the recording, `doubt_count` of them (recording.h) */
    size_t doubt_count;
    struct plim_question question;
    int64_t values[PLIM_AXES][PLIM_MAX_CHOICES];
    char lora[640], quantization[128], defaults[512]; /* lines about the spec for reports; "": none */
};

/* `spec` is resolved and outlives `out`. */
void plim_spec_question_make(const struct plim_spec *spec, enum plim_objective objective,
                             struct plim_spec_question *out);

/* Reads from a spec how micro-batches make a batch. `out` points into the spec. */
void plim_spec_question_batch(const struct plim_spec *spec, struct plim_batch_request *out);

/* What the engine is to run. PLIM_INVALID: a value is not one of its axis (an enumeration), or not
 * positive where it must be. */
enum plim_status plim_spec_question_setting(const struct plim_spec_question *question,
                                            const struct plim_setting *setting,
                                            struct plim_train_setting *out,
                                            struct plim_error *err) PLIM_MUST_CHECK;

/* Are there several GPUs, and do they communicate in at least one of the requested ways of training? */
bool plim_run_communicates(const struct plim_spec *spec);
/* Do all requested ways of training keep parts of the model's state on other GPUs (ZeRO, FSDP)? Then a single GPU
 * cannot run them. */
bool plim_run_is_sharded(const struct plim_spec *spec);
/* The number of communicators in which the planned GPU takes part: that of the training GPUs, and one with vLLM's
 * server, to which TRL sends weights. */
int64_t plim_run_communicators(const struct plim_spec *spec);
/* A vLLM in the training process holds at most gpu_memory_utilization of a GPU of `total_bytes`: its
 * weights, its cache and its workspace (vllm/v1/worker/gpu_worker.py, determine_available_memory()). Its
 * CUDA graphs come on top. If it stays awake, this is subtracted from the limit, even if the overhead was given, which
 * is only the framework's; if it sleeps outside of generation, it is counted in the run of a setting. */
void plim_run_limit_vllm(const struct plim_spec *spec, int64_t total_bytes, struct plim_limit *limit);
void plim_run_setting_vllm(struct plim_train_setting *setting, int64_t total_bytes);

/* How the spec's GPUs are connected, if they are of this kind (NULL: not known); `measured`: the all-reduce among
 * them (NULL, zeroed: not measured). */
struct plim_links plim_run_links(const struct plim_spec *spec, const struct plim_gpu *gpu,
                                 const struct plim_all_reduce *measured);

#endif
