/* Turns a spec into a question to the search, and a setting of the search into the engine's argument.
 *
 * Both use one table of axes (spec_question.c): each key of the spec that may be varied is a row there, through which
 * it reaches the search, the workers, the report and JSON. */
#ifndef PLIM_AUTOTUNE_RUN_SPEC_QUESTION_H
#define PLIM_AUTOTUNE_RUN_SPEC_QUESTION_H

#include "autotune/search/limit.h"
#include "autotune/search/question.h"
#include "devices/all_reduce.h"
#include "devices/catalogue/catalogue.h"
#include "workloads/spec/spec.h"
#include "workloads/train/replay.h"

struct plim_recording; /* workloads/recording/recording.h; see recording_question.h */

/* Sequence lengths in tokens. Default: the model's number of positions, at most PLIM_DEFAULT_SEQ_MAX. Longest that is
 * searched if the model sets no limit: PLIM_SEQ_MAX. */
enum { PLIM_DEFAULT_SEQ_MAX = 4096, PLIM_SEQ_MAX = 1 << 20 };

/* Contains the values that its axes point to; must not be copied or moved. */
struct plim_spec_question {
    const struct plim_spec *spec;
    const struct plim_recording *recording; /* played instead of running the engine; NULL: none */
    const char *const *doubts;              /* `doubt_count` texts of the recording (recording.h) */
    size_t doubt_count;
    struct plim_question question;
    int64_t values[PLIM_AXES][PLIM_MAX_CHOICES];
    char lora[640], quantization[128], defaults[512]; /* lines of the report about the spec; "": none */
};

/* Makes the question of a spec, which must be resolved and outlive `out`. */
void plim_spec_question_make(const struct plim_spec *spec, enum plim_objective objective,
                             struct plim_spec_question *out);

/* Reads the spec's micro-batches, batch, accumulation and number of GPUs. `out` points into the spec. */
void plim_spec_question_batch(const struct plim_spec *spec, struct plim_batch_request *out);

/* Fills in the engine's argument for a setting. PLIM_INVALID: a value is no enumerator of its axis, or not positive
 * although it must be. */
enum plim_status plim_spec_question_setting(const struct plim_spec_question *question,
                                            const struct plim_setting *setting,
                                            struct plim_train_setting *out,
                                            struct plim_error *err) PLIM_MUST_CHECK;

/* True if the job has several GPUs that communicate with at least one of the spec's values of train.sharding. */
bool plim_run_communicates(const struct plim_spec *spec);
/* True if all of the spec's values of train.sharding keep parts of the model's state on other GPUs (ZeRO, FSDP), so
 * that a single GPU cannot run them. */
bool plim_run_is_sharded(const struct plim_spec *spec);
/* Returns the number of NCCL communicators of a GPU: that of the training GPUs, and one with a vLLM server, to which
 * TRL sends weights. */
int64_t plim_run_communicators(const struct plim_spec *spec);
/* A vLLM in the training process holds at most the share gpu_memory_utilization of a GPU of `total_bytes`: its weights,
 * its cache and its workspace (vllm/v1/worker/gpu_worker.py, determine_available_memory()). CUDA graphs are extra. If
 * it stays awake, this is subtracted from the limit, even if the overhead was given, which covers only the framework;
 * if it sleeps outside of generation, it is part of a setting's run. */
void plim_run_limit_vllm(const struct plim_spec *spec, int64_t total_bytes, struct plim_limit *limit);
void plim_run_setting_vllm(struct plim_train_setting *setting, int64_t total_bytes);

/* Returns the links between the spec's GPUs. `gpu`: their kind (NULL: not known); `measured`: the all-reduce among them
 * (NULL or zeroed: not measured). */
struct plim_links plim_run_links(const struct plim_spec *spec, const struct plim_gpu *gpu,
                                 const struct plim_all_reduce *measured);

#endif
