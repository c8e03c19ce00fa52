#include "replays.h"
#include "autotune/base/text.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static const struct plim_replay *replay_of(const struct plim_trial *trial)
{
    return trial->details;
}

static int64_t allocated_bytes(const struct plim_trial *trial)
{
    return replay_of(trial)->peak_allocated_bytes;
}

static void describe_oom(const struct plim_trial *trial, char *out, size_t size)
{
    const struct plim_replay *replay = replay_of(trial);
    char asked[16];
    bool evaluates = !strncmp(replay->oom_where, "evaluation", 10);
    if (replay->oom_asked_bytes <= 0) return;
    snprintf(out, size, "out of memory when %s more were requested for %s (%s)%s",
             plim_format_bytes(replay->oom_asked_bytes, asked),
             plim_memory_class_name(replay->oom_class), replay->oom_where,
             evaluates ? ": a smaller evaluation may fit (--evaluation)" : "");
}

static int64_t guessed_bytes(const struct plim_trial *trial)
{
    return replay_of(trial)->guessed_bytes;
}

static void describe_recorded_oom(const struct plim_trial *trial, char *out, size_t size)
{
    const struct plim_replay *replay = replay_of(trial);
    char asked[16];
    if (replay->oom_asked_bytes <= 0) return;
    snprintf(out, size, "out of memory when %s more were requested (%s)",
             plim_format_bytes(replay->oom_asked_bytes, asked), replay->oom_where);
}

static void describe_model(const struct plim_trial *trial, struct plim_result *result)
{
    result->spec.parameters = replay_of(trial)->parameters;
    result->spec.trainable_parameters = replay_of(trial)->trainable_parameters;
}

static double flops_per_token(const struct plim_trial *trial)
{
    return replay_of(trial)->model_flops_per_token;
}

static void describe_sample(const struct plim_trial *trial, struct plim_result_sample *sample)
{
    sample->repeats = replay_of(trial)->repeats;
    sample->noisy = replay_of(trial)->noisy;
    plim_sdpa_engines_text(replay_of(trial)->sdpa_engines, sample->attention_engine);
}

static void add_noise(const struct plim_replay *replay, struct plim_result *result)
{
    if (replay->noisy)
        plim_result_reason(
            result,
            "Its time is not certain to 1 %%: steps differ by more, or the GPU was slowed down or "
            "computed for others meanwhile.");
}

static void add_managed(const struct plim_replay *replay, struct plim_result *result)
{
    char text[16];
    if (replay->managed_bytes)
        plim_result_reason(result,
                           "The optimizer keeps %s of states in managed memory, which is in the host if the GPU has "
                           "no room for them. They are not counted.",
                           plim_format_bytes(replay->managed_bytes, text));
}

static void add_offloaded(const struct plim_replay *replay, struct plim_result *result)
{
    char text[16];
    if (replay->host_bytes)
        plim_result_reason(result,
                           "DeepSpeed keeps %s of this rank on the host, whose processor updates the weights: the "
                           "time of that, and of copies there and back, is not modelled.",
                           plim_format_bytes(replay->host_bytes, text));
}

static void add_rank(const struct plim_replay *replay, struct plim_result *result)
{
    char text[16], most[16];
    if (!replay->rank0_reserved_bytes) return;
    if (replay->peak_reserved_bytes > replay->rank0_reserved_bytes)
        plim_result_reason(
            result, "Shown is rank %" PRId64 ", which needs the most: it reserves %s, rank 0 %s.",
            replay->rank, plim_format_bytes(replay->peak_reserved_bytes, most),
            plim_format_bytes(replay->rank0_reserved_bytes, text));
    else
        plim_result_reason(result, "Shown is rank 0: no rank that was tried needs more.");
}

static void add_experts(const struct plim_replay *replay, struct plim_result *result)
{
    if (replay->expert_ranks)
        plim_result_reason(result,
                           "FSDP2 shards the experts of a layer by whole experts: %" PRId64
                           " GPUs have one each, the others none, and a gather has room for one of each GPU. More "
                           "than %" PRId64 " GPUs save nothing; zero3 shards experts among all.",
                           replay->expert_ranks, replay->expert_ranks);
}

static void add_kernels(const struct plim_replay *replay, struct plim_result *result)
{
    if (replay->sdpa_engines & PLIM_SDPA_BY_FALLBACK)
        plim_result_reason(result,
                           "Attention ran on this GPU's fp32 units, where PyTorch's runs on tensor cores: fitting "
                           "was proven, but the seconds are simulated.");
    if (replay->groups_one_by_one)
        plim_result_reason(result, "Experts were multiplied one by one, where PyTorch has one kernel for all: "
                                   "fitting was proven, but the seconds are simulated.");
    if (replay->delta_on_fp32)
        plim_result_reason(result,
                           "Linear attention ran on this GPU's fp32 units, where flash-linear-attention's kernels "
                           "take tensor cores: fitting was proven, but the seconds are simulated.");
}

/* Tells if loading the model takes more memory than training it. */
static void add_loading(const struct plim_replay *replay, struct plim_result *result)
{
    int64_t training = 0;
    char text[16], later[16];
    for (int i = 0; i < plim_replay_kept_steps(replay); i++)
        if (replay->step[i].peak_reserved_bytes > training)
            training = replay->step[i].peak_reserved_bytes;
    if (training && replay->loading_reserved_bytes > training)
        plim_result_reason(result, "Loading the model reserves %s, training it %s.",
                           plim_format_bytes(replay->loading_reserved_bytes, text),
                           plim_format_bytes(training, later));
}

/* Tells about evaluations between steps. */
static void add_evaluation(const struct plim_replay *replay, struct plim_result *result)
{
    int64_t steps = 0;
    char text[16], other[16];
    if (!replay->evaluation_batch) return;
    if (!replay->evaluations) {
        plim_result_reason(result,
                           "No evaluation was replayed: they come every %" PRId64 " steps, and fewer were replayed.",
                           replay->evaluation_every);
        return;
    }
    result->evaluation = (struct plim_result_evaluation){replay->evaluation_allocated_bytes,
                                                         replay->evaluation_reserved_bytes};
    for (int i = 0; i < plim_replay_kept_steps(replay); i++)
        if (replay->step[i].peak_allocated_bytes > steps) steps = replay->step[i].peak_allocated_bytes;
    plim_format_bytes(replay->evaluation_allocated_bytes, text);
    plim_format_bytes(steps, other);
    plim_result_reason(result,
                       "An evaluation (batches of %" PRId64 ", every %" PRId64 " steps) holds %s at its peak, a step "
                       "%s.",
                       replay->evaluation_batch, replay->evaluation_every, text, other);
}

static struct plim_result_breakdown breakdown_of(const int64_t *bytes, int64_t cached_bytes,
                                                 int64_t overhead_bytes)
{
    return (struct plim_result_breakdown){
        .present = true,
        .parameters_bytes = bytes[PLIM_MEMORY_PARAMETERS],
        .gradients_bytes = bytes[PLIM_MEMORY_GRADIENTS],
        .optimizer_bytes = bytes[PLIM_MEMORY_OPTIMIZER],
        .activations_bytes = bytes[PLIM_MEMORY_ACTIVATIONS],
        .logits_bytes = bytes[PLIM_MEMORY_LOGITS],
        .temporaries_bytes = bytes[PLIM_MEMORY_TEMPORARIES],
        .workspace_bytes = bytes[PLIM_MEMORY_WORKSPACE],
        .communication_bytes = bytes[PLIM_MEMORY_COMMUNICATION],
        .other_bytes = bytes[PLIM_MEMORY_OTHER],
        .cached_bytes = cached_bytes,
        .overhead_bytes = overhead_bytes};
}

static void fill_breakdown(const struct plim_replay *replay, struct plim_result *result)
{
    result->breakdown = breakdown_of(replay->class_bytes,
                                     replay->peak_reserved_bytes - replay->peak_allocated_bytes,
                                     result->limit.overhead_bytes);
}

static void describe_memory(const struct plim_trial *trial, struct plim_result *result)
{
    const struct plim_replay *replay = replay_of(trial);
    fill_breakdown(replay, result);
    result->breakdown.managed_bytes = replay->managed_bytes;
    result->breakdown.host_bytes = replay->host_bytes;
    result->breakdown.rank = replay->rank;
    result->breakdown.rank0_reserved_bytes = replay->rank0_reserved_bytes;
    add_noise(replay, result);
    add_managed(replay, result);
    add_offloaded(replay, result);
    add_rank(replay, result);
    add_experts(replay, result);
    add_loading(replay, result);
    add_evaluation(replay, result);
    add_kernels(replay, result);
}

/* Sets what the time of a step is used for. If fewer micro-steps were run than the step has, the others are assumed to
 * be the same. The idle time is a difference of long sums: it is rounded to nanoseconds, since the rounding error
 * differs between a step that was run and one that was played back from a tape. */
static void describe_time(const struct plim_trial *trial, struct plim_result *result)
{
    const double *running = replay_of(trial)->running_seconds;
    double times = trial->seconds > 0 ? result->choice.step_seconds / trial->seconds : 0;
    struct plim_result_time time = {.matmul_seconds = times * running[PLIM_DEVICE_MATMUL],
                                    .attention_seconds = times * running[PLIM_DEVICE_ATTENTION],
                                    .other_seconds = times * running[PLIM_DEVICE_OTHER],
                                    .copies_seconds = times * running[PLIM_DEVICE_LINK],
                                    .waits_seconds = times * trial->communication_seconds};
    double busy = plim_result_time_all(&time);
    if (busy <= time.waits_seconds) return;
    time.idle_seconds = fmax(0, round(1e9 * (result->choice.step_seconds - busy)) / 1e9);
    result->time = time;
}

enum plim_status plim_replays_timeline(const struct plim_timeline *timeline, int64_t micro_steps,
                                       struct plim_result *result)
{
    enum plim_status st = PLIM_OK;
    result->timeline_micro_steps = micro_steps;
    for (size_t i = 0; i < timeline->count && !st; i++) {
        const struct plim_moment *from = &timeline->moments[i];
        struct plim_result_moment moment = {
            .seconds = from->seconds,
            .memory = breakdown_of(from->class_bytes,
                                   from->reserved_bytes - from->allocated_bytes,
                                   result->limit.overhead_bytes)};
        snprintf(moment.phase, sizeof(moment.phase), "%s", from->phase);
        st = PLIM_ARRAY_PUSH(&result->timeline, moment);
    }
    return st;
}

static void describe_steps(const struct plim_trial *trial, struct plim_result *result)
{
    const struct plim_replay *replay = replay_of(trial);
    result->step_count = (size_t)plim_replay_kept_steps(replay);
    for (size_t i = 0; i < result->step_count; i++) {
        const struct plim_replay_step *step = &replay->step[i];
        result->steps[i] =
            (struct plim_result_step){.after_forward_bytes = step->after_forward_bytes,
                                      .peak_allocated_bytes = step->peak_allocated_bytes,
                                      .peak_reserved_bytes = step->peak_reserved_bytes,
                                      .end_allocated_bytes = step->end_allocated_bytes};
    }
}

static void describe_recorded_memory(const struct plim_trial *trial, struct plim_result *result)
{
    const struct plim_replay *replay = replay_of(trial);
    int64_t known = 0;
    for (int i = 0; i < PLIM_MEMORY_CLASS_COUNT; i++) known += replay->class_bytes[i];
    if (!known) return;
    fill_breakdown(replay, result);
    result->breakdown.inferred = true;
}

const struct plim_details_reader plim_details_replay = {.allocated_bytes = allocated_bytes,
                                                        .describe_oom = describe_oom,
                                                        .describe_model = describe_model,
                                                        .flops_per_token = flops_per_token,
                                                        .describe_sample = describe_sample,
                                                        .describe_memory = describe_memory,
                                                        .describe_time = describe_time,
                                                        .describe_steps = describe_steps};

const struct plim_details_reader plim_details_recording = {.predicts = true,
                                                           .allocated_bytes = allocated_bytes,
                                                           .guessed_bytes = guessed_bytes,
                                                           .describe_oom = describe_recorded_oom,
                                                           .describe_memory = describe_recorded_memory,
                                                           .describe_time = describe_time,
                                                           .describe_steps = describe_steps};
