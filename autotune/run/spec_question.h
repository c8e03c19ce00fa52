/* A spec as a question to the search, and a setting of the search as the engine's argument.
 *
 * Both go through one table of axes (question.c): a key of the spec that may be varied is a row there
 * and reaches the search, the workers, the report and JSON by it.
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

/* Sequence length where none was given: the model's positions, but no more than this. And the
 * longest that is searched where the model sets no limit. */
enum { PLIM_DEFAULT_SEQ_MAX = 4096, PLIM_SEQ_MAX = 1 << 20 };

/* With the values that its axes point to: do not copy or move it once it is made. */
struct plim_spec_question {
    const struct plim_spec *spec;
    const struct plim_recording *recording; /* what is played in the engine's place; NULL: nothing */
    const char *const *doubts;              /* of it, `doubt_count` of them (recording.h) */
    size_t doubt_count;
    struct plim_question question;
    int64_t values[PLIM_AXES][PLIM_MAX_CHOICES];
    char lora[640], quantization[128], defaults[512]; /* what reports say of the spec; "": nothing */
};

/* `spec` is resolved and outlives `out`. */
void plim_spec_question_make(const struct plim_spec *spec, enum plim_objective objective,
                             struct plim_spec_question *out);

/* The part of a spec that says how micro-batches make a batch. It points into the spec. */
void plim_spec_question_batch(const struct plim_spec *spec, struct plim_batch_request *out);

/* What the engine is to run. PLIM_INVALID: a value is none of its axis (of an enumeration), or not
 * positive where it has to be. */
enum plim_status plim_spec_question_setting(const struct plim_spec_question *question,
                                            const struct plim_setting *setting,
                                            struct plim_train_setting *out,
                                            struct plim_error *err) PLIM_MUST_CHECK;

/* Are there several GPUs, and is there a way of training asked for in which they talk? */
bool plim_run_communicates(const struct plim_spec *spec);
/* Does each of its ways of training keep parts of the model's state on other GPUs (ZeRO, FSDP)? One alone cannot run
 * it then. */
bool plim_run_is_sharded(const struct plim_spec *spec);
/* Groups of GPUs in which the one that is planned for talks: theirs, and with vLLM's server, which TRL sends weights
 * to */
int64_t plim_run_communicators(const struct plim_spec *spec);
/* A vLLM in the process of the training holds at most gpu_memory_utilization of a GPU of `total_bytes`: its
 * weights, its cache and what it computes with (vllm/v1/worker/gpu_worker.py, determine_available_memory()). Its
 * CUDA graphs come on top. One that stays awake takes that from the limit, also where the overhead was given,
 * which is the framework's; one that sleeps while others compute takes it in the run of a setting. */
void plim_run_limit_vllm(const struct plim_spec *spec, int64_t total_bytes, struct plim_limit *limit);
void plim_run_setting_vllm(struct plim_train_setting *setting, int64_t total_bytes);

/* How the spec's GPUs are connected, where they are of this kind (NULL: it is not known), and an all-reduce
 * among them was measured (NULL, zeroed: it was not). */
struct plim_links plim_run_links(const struct plim_spec *spec, const struct plim_gpu *gpu,
                                 const struct plim_all_reduce *measured);

#endif
