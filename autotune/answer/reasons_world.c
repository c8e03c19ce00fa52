/* Reasons for several GPUs: how they train, and how long a step waits for communication. */
#include "reasons_parts.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* What each sharding means, and which rank's memory is reported. */
static const struct {
    const char *name, *text;
} shardings[] = {
    {"none", "are counted each as if it trained alone."},
    {"ddp", "train as DistributedDataParallel (sharding ddp, the default for several): its buckets "
            "are counted. All hold the same."},
    {"zero1", "share optimizer states (DeepSpeed's ZeRO 1); each rank owns different ones and needs a different "
              "amount (train.zero.rank selects one)."},
    {"zero2", "share gradients and optimizer states (DeepSpeed's ZeRO 2); each rank owns different ones and needs a "
              "different amount (train.zero.rank selects one)."},
    {"zero3", "share parameters, gradients and optimizer states (DeepSpeed's ZeRO 3, with the limits "
              "of train.zero). All hold the same."},
    {"fsdp", "share parameters, gradients and optimizer states (sharding fsdp: fully_shard on every "
             "block and on the model). Rank 0 has the largest shards, the last the smallest."},
};

/* Tells how long a step waits for the other GPUs, and how that is known. */
static void add_links(int64_t world, const struct plim_trial *trial, struct plim_result *result)
{
    bool is_long = trial->link_latency_seconds >= 1e-3;
    char how[112] = "an estimate from the GPU's links", waits[64] = "does not wait";
    double gigabytes = trial->link_bytes_per_second / 1e9;
    if (trial->link_bytes_per_second <= 0) {
        plim_result_reason(
            result, "Rates are %" PRId64 " times those of one GPU; communication is not counted.",
            world);
        return;
    }
    if (trial->link_gpus)
        snprintf(how, sizeof(how), "all-reduce measured: %.3g GB/s over %d GPUs, latency %.3g %s",
                 gigabytes, trial->link_gpus, (is_long ? 1e3 : 1e6) * trial->link_latency_seconds,
                 is_long ? "ms" : "us");
    else
        snprintf(how, sizeof(how), "an estimate from the GPU's links (all-reduce modelled: %.3g GB/s)",
                 gigabytes);
    if (trial->communication_seconds > 0)
        snprintf(waits, sizeof(waits), "waits %.3g s", trial->communication_seconds);
    plim_result_reason(result,
                       "Rates are %" PRId64 " times those of one GPU; a step %s for gradients of the "
                       "others, %s.",
                       world, waits, how);
}

void plim_reasons_world(const struct plim_answer *a, const struct plim_setting *setting,
                        const struct plim_trial *trial, struct plim_result *result)
{
    const struct plim_axes *axes = &a->question->axes;
    int64_t world = a->question->batch.world;
    char room[PLIM_AXIS_TEXT];
    int axis = plim_axes_find(axes, "sharding");
    if (world <= 1) return;
    const char *sharding = axis >= 0 ? plim_axes_text(axes, setting, (size_t)axis, room) : "";
    for (size_t i = 0; i < sizeof(shardings) / sizeof(*shardings); i++)
        if (!strcmp(sharding, shardings[i].name))
            plim_result_reason(result, "%" PRId64 " GPUs %s", world, shardings[i].text);
    if (a->gpus && a->gpus < world)
        plim_result_reason(result,
                           "The program ran on %" PRId64 " of the job's %" PRId64 " GPUs: memory for the others "
                                                                                  "(NCCL, DistributedDataParallel's "
                                                                                  "buckets) is not included; --gpus "
                                                                                  "runs it on more.",
                           a->gpus, world);
    if (trial->seconds > 0) add_links(world, trial, result);
    bool is_modelled = trial->link_bytes_per_second > 0 && !trial->link_gpus;
    if (is_modelled && a->why_modelled && a->why_modelled[0])
        plim_result_reason(result, "The all-reduce is modelled, not measured: %s.", a->why_modelled);
}
