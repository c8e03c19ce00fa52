/* DistributedDataParallel's own allocations, one by one, as PyTorch made them; what they come to in
 * whole runs is in tests/golden/ddp.jsonl. */
#include "devices/host/host.h"
#include "workloads/train/ddp.h"
#include "support/rank_trace.h"
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>

static const struct plim_train_setting rank_of_two = {.micro_batch = 1,
                                                      .seq = 64,
                                                      .accumulation = 1,
                                                      .precision = PLIM_PRECISION_BF16,
                                                      .sharding = PLIM_SHARDING_DDP,
                                                      .world = 2,
                                                      .packing = PLIM_PACKING_NO};

/* Without links; it fits. */
static void replay(const struct plim_train_setting *setting)
{
    rank_simulate(setting);
    cr_assert_eq(rank_trace.out.verdict, PLIM_OK, "%s", rank_trace.out.why);
}

Test(ddp, the_constructor_compares_and_broadcasts_and_makes_one_bucket)
{
    replay(&rank_of_two);
    EXPECT_FROM(44, 8, 8, 8, 2 * 8, 816, 26436480, 256, 26436480);
}

Test(ddp, buffers_are_broadcast_before_a_forward)
{
    replay(&rank_of_two);
    EXPECT_FROM(52, 64 * 8, 256); /* after the ids */
    EXPECT_FROM(941, 256);
}

Test(ddp, buckets_are_rebuilt_before_the_second_forward)
{
    replay(&rank_of_two);
    EXPECT_FROM(525, 30 * 4, 2 * 4, 1492480, 24944000, 256);
}

/* The first backward is reduced after its end; the second step's determines the order of the buckets. */
Test(ddp, a_static_graph_rebuilds_its_buckets_a_step_later)
{
    struct plim_train_setting is_static = rank_of_two;
    int64_t at[2] = {0};
    for (int i = 0; i < 2; i++) {
        is_static.ddp.is_static = i;
        replay(&is_static);
        for (int64_t k = 1; k < rank_trace.count && !at[i]; k++)
            if (rank_trace.bytes[k] == 1492480 && rank_trace.bytes[k + 1] == 24944000) at[i] = k;
    }
    cr_expect_gt(at[0], 0);
    cr_expect_gt(at[1], at[0] + 400, "at %lld, not static at %lld", (long long)at[1],
                 (long long)at[0]);
}

/* torch 2.11 fails an assertion (reducer.cpp, expect_autograd_hooks_) there. */
Test(ddp, a_static_graph_is_refused_where_its_first_backward_is_not_reduced)
{
    struct plim_train_setting is_static = rank_of_two;
    is_static.ddp.is_static = true;
    cr_expect_null(ddp_refuses(&is_static));
    is_static.accumulation = 2;
    cr_expect_not_null(ddp_refuses(&is_static));
    is_static.reduction = PLIM_REDUCTION_EACH;
    cr_expect_null(ddp_refuses(&is_static));
}

/* Its hooks then run for parameters that a block's own backward has had. */
Test(ddp, a_reentrant_backward_is_refused_where_unused_parameters_are_looked_for)
{
    struct plim_train_setting reenters = rank_of_two;
    reenters.loop = PLIM_LOOP_TRAINER;
    reenters.checkpointing = PLIM_CHECKPOINTING_FULL;
    reenters.use_reentrant = true;
    cr_expect_null(ddp_refuses(&reenters));
    reenters.lora.r = 8;
    cr_expect_not_null(ddp_refuses(&reenters));
    reenters.ddp.finds_unused = PLIM_FIND_UNUSED_NO;
    cr_expect_null(ddp_refuses(&reenters));
    reenters.ddp.finds_unused = PLIM_FIND_UNUSED_YES;
    cr_expect_not_null(ddp_refuses(&reenters));
    reenters.use_reentrant = false;
    cr_expect_null(ddp_refuses(&reenters));
}

Test(ddp, without_it_there_is_none_of_this)
{
    struct plim_train_setting alone = rank_of_two;
    alone.sharding = PLIM_SHARDING_NONE;
    replay(&alone);
    EXPECT_FROM(44, 64 * 8);
}

/* The other ranks bring what this one brings: what is learnt is the same. Gradients come back from
 * their own places of the bucket. */
Test(ddp, a_device_that_computes_learns_what_one_alone_does)
{
    static struct plim_spec spec;
    static struct plim_replay runs[2];
    for (int i = 0; i < 2; i++) {
        struct plim_error err = PLIM_ERROR_INIT;
        struct plim_device *device;
        struct plim_replayer *replayer;
        struct plim_train_setting setting = rank_of_two;
        setting.precision = PLIM_PRECISION_FP32;
        setting.accumulation = 2;
        setting.sharding = i ? PLIM_SHARDING_DDP : PLIM_SHARDING_NONE;
        cr_assert_eq(plim_spec_load("tiny-gpt2", &spec, &err), PLIM_OK, "%s", err.text);
        plim_spec_set_dropout(&spec, 0);
        cr_assert_eq(plim_host_open("", &device, &err), PLIM_OK, "%s", err.text);
        cr_assert_eq(plim_replayer_create(device, NULL, &replayer, &err), PLIM_OK);
        cr_assert_eq(plim_replay_run(replayer, &spec.model, &setting, &runs[i], &err), PLIM_OK,
                     "%s", err.text);
        plim_replayer_destroy(&replayer);
        plim_device_close(&device);
    }
    for (int i = 0; i < PLIM_REPLAY_STEPS; i++) {
        cr_expect_eq(runs[1].step[i].loss, runs[0].step[i].loss, "step %d: %.9g, alone %.9g", i + 1,
                     runs[1].step[i].loss, runs[0].step[i].loss);
        if (i) cr_expect_lt(runs[1].step[i].loss, runs[1].step[i - 1].loss);
    }
}

/* Memory may run out in any of its allocations: that is a verdict. */
Test(ddp, is_an_answer_whatever_the_memory)
{
    int verdicts[2] = {0};
    for (int mib = 2; mib <= 256; mib += 2) {
        char uri[64];
        snprintf(uri, sizeof uri, "A100-SXM4-80GB,memory=%dMiB", mib);
        rank_replay(rank_gpu(uri), &rank_of_two, NULL);
        cr_assert(rank_trace.out.verdict == PLIM_OK || rank_trace.out.verdict == PLIM_OOM, "%s", rank_trace.out.why);
        verdicts[rank_trace.out.verdict == PLIM_OK]++;
    }
    cr_expect_gt(verdicts[0], 0);
    cr_expect_gt(verdicts[1], 0);
}

static void expect_near(double value, double expected)
{
    cr_expect_lt(fabs(value / expected - 1), 1e-3, "%g, not %g", value, expected);
}

/* What the last step waits for, over such links. */
static double waits(const struct plim_train_setting *setting, const struct plim_links *between)
{
    rank_replay(rank_gpu("A100-SXM4-80GB"), setting, between);
    return rank_trace.out.communication_seconds;
}

/* Each of N GPUs sends each byte 2 (N - 1) / N times; a slow link is all that counts. The buckets are
 * those of the test above. */
Test(ddp, a_ring_sends_every_bucket)
{
    const struct plim_links slow = {.gpu_bandwidth = 1e4, .node_bandwidth = 1, .gpus_per_node = 8};
    const double buckets = 1492480 + 24944000;
    struct plim_train_setting setting = rank_of_two;
    setting.accumulation = 3;
    expect_near(waits(&setting, &slow), buckets / 1e4);
    setting.world = 8;
    setting.reduction = PLIM_REDUCTION_EACH;
    expect_near(waits(&setting, &slow), 3 * 1.75 * buckets / 1e4);
    setting.world = 16;
    setting.reduction = PLIM_REDUCTION_LAST;
    expect_near(waits(&setting, &slow), 1.875 * buckets); /* what two machines send */
    setting.sharding = PLIM_SHARDING_NONE;
    cr_expect_eq(waits(&setting, &slow), 0);
}

/* The last bucket is ready when backward has ended; of the one before it the rest is left. */
Test(ddp, backward_hides_all_buckets_but_the_last)
{
    const struct plim_links fast = {.gpu_bandwidth = 1e12, .gpus_per_node = 8};
    expect_near(waits(&rank_of_two, &fast), 24944000 / 1e12);
    cr_expect_eq(waits(&rank_of_two, &(struct plim_links){.gpus_per_node = 8}), 0);
}

/* Of a link that is all latency a bucket takes no more than that, of a ring that leaves the machine too. */
Test(ddp, an_all_reduce_has_a_latency)
{
    const struct plim_links late = {.gpu_bandwidth = 1e30, .node_bandwidth = 1e30, .gpus_per_node = 8,
                                    .gpu_latency = 1e3, .measured_gpus = 4};
    struct plim_train_setting setting = rank_of_two;
    expect_near(waits(&setting, &late), 2 * 1e3);
    cr_expect_eq(rank_trace.out.link_gpus, 4);
    cr_expect_eq(rank_trace.out.link_bytes_per_second, 1e30);
    cr_expect_eq(rank_trace.out.link_latency_seconds, 1e3);
    setting.world = 16;
    expect_near(waits(&setting, &late), 2 * 1e3);
    cr_expect_eq(rank_trace.out.link_gpus, 0, "between machines nothing was measured");
    setting.sharding = PLIM_SHARDING_NONE;
    cr_expect_eq(waits(&setting, &late), 0);
    cr_expect_eq(rank_trace.out.link_bytes_per_second, 0);
}

/* Only the last micro-step reduces: the second forward keeps the first bucket, and the buffers. */
Test(ddp, no_sync_reduces_nothing)
{
    struct plim_train_setting accumulating = rank_of_two;
    accumulating.accumulation = 2;
    int64_t at[PLIM_REDUCTION_COUNT] = {0}, allocations[PLIM_REDUCTION_COUNT];
    for (int reduction = 0; reduction < PLIM_REDUCTION_COUNT; reduction++) {
        accumulating.reduction = (enum plim_reduction)reduction;
        replay(&accumulating);
        allocations[reduction] = rank_trace.count;
        for (int64_t i = 1; i < rank_trace.count && !at[reduction]; i++)
            if (rank_trace.bytes[i] == 1492480 && rank_trace.bytes[i + 1] == 24944000) at[reduction] = i;
    }
    cr_expect_gt(at[PLIM_REDUCTION_EACH], 0);
    cr_expect_gt(at[PLIM_REDUCTION_LAST], at[PLIM_REDUCTION_EACH]);
    cr_expect_eq(allocations[PLIM_REDUCTION_EACH] - allocations[PLIM_REDUCTION_LAST],
                 PLIM_REPLAY_STEPS);
}
