/* The report on a replay. */
#include "autotune/answer/replays.h"
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <string.h>

static struct plim_replay replay;
static const struct plim_trial trial = {.details = &replay};
static struct plim_result result;

static void set_up(void)
{
    replay = (struct plim_replay){.verdict = PLIM_OK, .steps_done = 2};
    for (int i = 0; i < PLIM_MEMORY_CLASS_COUNT; i++) replay.class_bytes[i] = 1 << i;
    for (int i = 0; i < PLIM_REPLAY_STEPS; i++)
        replay.step[i] = (struct plim_replay_step){.after_forward_bytes = 10 + i,
                                                   .peak_allocated_bytes = 20 + i,
                                                   .peak_reserved_bytes = (3 + i) << 20,
                                                   .end_allocated_bytes = 40 + i};
    replay.peak_allocated_bytes = 700;
    replay.peak_reserved_bytes = 1000;
}

static void tear_down(void)
{
    plim_result_finish(&result);
}

TestSuite(replays, .init = set_up, .fini = tear_down);

static void describe(void)
{
    plim_result_finish(&result);
    result = (struct plim_result){.limit.overhead_bytes = 77};
    plim_details_replay.describe_memory(&trial, &result);
}

static void expect_only(const char *sentence)
{
    describe();
    cr_assert(eq(sz, result.reason_count, sentence ? 1 : 0));
    if (sentence) cr_expect(eq(str, result.reasons[0], (char *)sentence));
}

Test(replays, every_class_of_memory_is_told)
{
    replay.managed_bytes = 5;
    replay.host_bytes = 6;
    describe();
    const struct plim_result_breakdown *b = &result.breakdown;
    cr_expect(b->present);
    cr_expect(eq(i64, b->parameters_bytes, 1 << PLIM_MEMORY_PARAMETERS));
    cr_expect(eq(i64, b->gradients_bytes, 1 << PLIM_MEMORY_GRADIENTS));
    cr_expect(eq(i64, b->optimizer_bytes, 1 << PLIM_MEMORY_OPTIMIZER));
    cr_expect(eq(i64, b->activations_bytes, 1 << PLIM_MEMORY_ACTIVATIONS));
    cr_expect(eq(i64, b->logits_bytes, 1 << PLIM_MEMORY_LOGITS));
    cr_expect(eq(i64, b->temporaries_bytes, 1 << PLIM_MEMORY_TEMPORARIES));
    cr_expect(eq(i64, b->workspace_bytes, 1 << PLIM_MEMORY_WORKSPACE));
    cr_expect(eq(i64, b->communication_bytes, 1 << PLIM_MEMORY_COMMUNICATION));
    cr_expect(eq(i64, b->cached_bytes, 300));
    cr_expect(eq(i64, b->overhead_bytes, 77));
    cr_expect(eq(i64, b->managed_bytes, 5));
    cr_expect(eq(i64, b->host_bytes, 6));
}

Test(replays, what_is_odd_is_said_and_nothing_else)
{
    expect_only(NULL);
    replay.sdpa_engines = PLIM_SDPA_BY_CUDNN;
    expect_only(NULL);
    replay.sdpa_engines = PLIM_SDPA_BY_CUDNN | PLIM_SDPA_BY_FALLBACK;
    expect_only("Attention ran on this GPU's fp32 units, where PyTorch's runs on tensor cores: fitting was proven, "
                "but the seconds are simulated.");
    replay.sdpa_engines = 0;
    replay.managed_bytes = 3 << 20;
    expect_only("The optimizer keeps 3.00 MiB of states in managed memory, which is in the host if the GPU has no "
                "room for them. They are not counted.");
    replay.managed_bytes = 0;
    replay.host_bytes = 3 << 20;
    expect_only("DeepSpeed keeps 3.00 MiB of this rank on the host, whose processor updates the weights: the time of "
                "that, and of copies there and back, is not modelled.");
    replay.host_bytes = 0;
    replay.expert_ranks = 8;
    expect_only("FSDP2 shards the experts of a layer by whole experts: 8 GPUs have one each, the others none, and a "
                "gather has room for one of each GPU. More than 8 GPUs save nothing; zero3 shards experts among "
                "all.");
    replay.expert_ranks = 0;
    replay.rank0_reserved_bytes = replay.peak_reserved_bytes;
    expect_only("Shown is rank 0: no rank that was tried needs more.");
    replay.rank0_reserved_bytes -= 1;
    replay.rank = 2;
    describe();
    cr_expect(strstr(result.reasons[0], "Shown is rank 2, which needs the most: ") != NULL);
    cr_expect(eq(i64, result.breakdown.rank, 2));
}

/* The largest step is the last that was done: 4 MiB. */
Test(replays, a_model_that_takes_more_to_load_than_to_train_is_told)
{
    replay.loading_reserved_bytes = 4 << 20;
    expect_only(NULL);
    replay.loading_reserved_bytes = 5 << 20;
    expect_only("Loading the model reserves 5.00 MiB, training it 4.00 MiB.");
    replay.steps_done = 0;
    expect_only(NULL);
}

Test(replays, memory_that_ran_out_says_for_what)
{
    char out[160] = "";
    plim_details_replay.describe_oom(&trial, out, sizeof(out));
    plim_details_recording.describe_oom(&trial, out, sizeof(out));
    cr_expect(eq(str, out, (char *)""));
    replay.oom_asked_bytes = 1 << 20;
    replay.oom_class = PLIM_MEMORY_GRADIENTS;
    strcpy(replay.oom_where, "backward, step 1");
    plim_details_replay.describe_oom(&trial, out, sizeof(out));
    cr_expect(eq(str, out,
                 (char *)"out of memory when 1.00 MiB more were requested for gradients "
                         "(backward, step 1)"));
    plim_details_recording.describe_oom(&trial, out, sizeof(out));
    cr_expect(eq(str, out,
                 (char *)"out of memory when 1.00 MiB more were requested (backward, step 1)"));
}

Test(replays, the_steps_that_were_done_are_told)
{
    plim_details_replay.describe_steps(&trial, &result);
    cr_assert(eq(sz, result.step_count, 2));
    cr_expect(eq(i64, result.steps[1].after_forward_bytes, 11));
    cr_expect(eq(i64, result.steps[1].peak_allocated_bytes, 21));
    cr_expect(eq(i64, result.steps[1].peak_reserved_bytes, 4 << 20));
    cr_expect(eq(i64, result.steps[1].end_allocated_bytes, 41));
}

Test(replays, a_timeline_has_every_moment)
{
    static struct plim_timeline timeline;
    timeline.count = 2;
    timeline.moments[0] = (struct plim_moment){
        .seconds = 1, .reserved_bytes = 9, .allocated_bytes = 4, .phase = "forward"};
    timeline.moments[1] = (struct plim_moment){.seconds = 2, .phase = ""};
    cr_assert(eq(int, plim_replays_timeline(&timeline, 3, &result), PLIM_OK));
    cr_expect(eq(i64, result.timeline_micro_steps, 3));
    cr_assert(eq(sz, result.timeline.count, 2));
    cr_expect(eq(str, result.timeline.items[0].phase, (char *)"forward"));
    cr_expect(eq(i64, result.timeline.items[0].memory.cached_bytes, 5));
    cr_expect(ieee_ulp_eq(dbl, result.timeline.items[1].seconds, 2, 4));
}
