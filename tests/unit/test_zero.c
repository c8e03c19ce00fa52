/* ZeRO's own allocations; what they come to in whole runs is in tests/golden/zero.jsonl. */
#include "devices/host/host.h"
#include "support/rank_trace.h"
#include "workloads/train/ranks.h"
#include "workloads/train/zero.h"
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static const struct plim_train_setting rank_of_two = {
    .micro_batch = 1,
    .seq = 128,
    .accumulation = 1,
    .precision = PLIM_PRECISION_BF16_MIXED,
    .optimizer = PLIM_OPTIMIZER_ADAMW_FUSED,
    .sharding = PLIM_SHARDING_ZERO2,
    .world = 2,
    .zero = {.bucket_elements = 500000000,
             .contiguous = true,
             .sub_group_elements = 1000000000,
             .prefetch_elements = 50000000,
             .live_elements = 1000000000,
             .reuse_elements = 1000000000,
             .persistent_elements = 100000}};

/* How many of its allocations are of `bytes`. */
static int allocations(const struct plim_train_setting *setting, int64_t bytes)
{
    rank_simulate(setting);
    return (int)rank_allocations_of(bytes);
}

/* The first gradient of each backward takes it; overlap_comm takes two. Without contiguous gradients
 * there is none. */
Test(zero, a_bucket_is_taken_whatever_the_models_size)
{
    struct plim_train_setting setting = rank_of_two;
    cr_expect_eq(allocations(&setting, 1000000000), 4);
    setting.zero.overlap = PLIM_OVERLAP_YES;
    cr_expect_eq(allocations(&setting, 1000000000), 8);
    setting.accumulation = 3;
    cr_expect_eq(allocations(&setting, 1000000000), 24);
    setting.zero.contiguous = false;
    cr_expect_eq(allocations(&setting, 1000000000), 0);
    setting = rank_of_two;
    setting.precision = PLIM_PRECISION_FP32;
    cr_expect_eq(allocations(&setting, 2000000000), 4);
}

/* Stage 1 has it from the first micro-step to the end of the last. */
Test(zero, stage_1_takes_its_bucket_once_a_step)
{
    struct plim_train_setting setting = rank_of_two;
    setting.sharding = PLIM_SHARDING_ZERO1;
    setting.accumulation = 3;
    cr_expect_eq(allocations(&setting, 1000000000), 4);
}

/* Of two ranks the first owns a part of the embedding, and the second the rest and all that follows. */
Test(zero, the_rank_that_owns_the_most_weights_holds_the_most)
{
    struct plim_train_setting setting = rank_of_two;
    int64_t peak[2];
    for (int rank = 0; rank < 2; rank++) {
        setting.rank = rank;
        allocations(&setting, 0);
        peak[rank] = rank_trace.out.step[1].peak_allocated_bytes;
    }
    cr_expect_lt(peak[0], peak[1]);
    setting.rank = -1;
    allocations(&setting, 0);
    cr_expect_eq(rank_trace.out.step[1].peak_allocated_bytes, peak[1]);
}

/* And no other of them holds more. */
Test(zero, no_rank_of_eight_holds_more_than_the_one_that_is_told)
{
    struct plim_train_setting setting = rank_of_two;
    setting.world = 8;
    setting.zero.bucket_elements = 2 * RANK_EMBEDDING;
    setting.rank = -1;
    allocations(&setting, 0);
    int64_t told = rank_trace.out.step[1].peak_allocated_bytes, most = 0;
    for (setting.rank = 0; setting.rank < 8; setting.rank++) {
        allocations(&setting, 0);
        if (rank_trace.out.step[1].peak_allocated_bytes > most) most = rank_trace.out.step[1].peak_allocated_bytes;
    }
    cr_expect_eq(most, told, "%lld, told %lld", (long long)most, (long long)told);
}

/* All ranks (rank -1) or one, on a GPU of so much memory. */
static struct plim_replay prove(int rank, int64_t bytes)
{
    struct plim_train_setting setting = rank_of_two;
    struct plim_device *device = rank_gpu("A100-SXM4-80GB");
    struct plim_error err = PLIM_ERROR_INIT;
    struct plim_replayer *replayer;
    setting.rank = rank;
    setting.accumulation = 4;
    plim_device_limit(device, bytes);
    cr_assert_eq(plim_replayer_create(device, NULL, &replayer, &err), PLIM_OK, "%s", err.text);
    cr_assert_eq(plim_ranks_differ(&setting), rank < 0);
    cr_assert_eq(rank < 0 ? plim_ranks_prove(replayer, rank_model(), &setting, &rank_trace.out, &err)
                          : plim_replay_prove(replayer, rank_model(), &setting, &rank_trace.out, &err),
                 PLIM_OK, "%s", err.text);
    plim_replayer_destroy(&replayer);
    plim_device_close(&device);
    return rank_trace.out;
}

Test(ranks, the_one_that_reserves_the_most_is_told_beside_rank_0)
{
    const int64_t enough = INT64_C(80) << 30;
    struct plim_replay first = prove(0, enough), second = prove(1, enough),
                       told = prove(-1, enough);
    cr_assert_lt(first.peak_reserved_bytes, second.peak_reserved_bytes);
    cr_expect_eq(told.peak_reserved_bytes, second.peak_reserved_bytes);
    cr_expect_eq(told.rank, 1);
    cr_expect_eq(told.rank0_reserved_bytes, first.peak_reserved_bytes);
    cr_expect_gt(told.repeats_after, 0);
    cr_expect_eq(second.rank0_reserved_bytes, 0); /* a single rank was requested */
}

/* Between what the two need the second one runs out of memory. */
Test(ranks, one_that_does_not_fit_decides_for_all)
{
    int64_t enough = 100 << 20;
    while (prove(0, enough).verdict != PLIM_OK) enough += 2 << 20;
    cr_assert_eq(prove(1, enough).verdict, PLIM_OOM);
    struct plim_replay told = prove(-1, enough);
    cr_expect_eq(told.verdict, PLIM_OOM);
    cr_expect_eq(told.rank, 1);
    told = prove(-1, 100 << 20); /* none fits: the first one's result is reported */
    cr_expect_eq(told.verdict, PLIM_OOM);
    cr_expect_eq(told.rank, 0);
}

Test(ranks, what_does_not_differ_is_run_once)
{
    struct plim_train_setting setting = rank_of_two;
    setting.rank = -1;
    setting.sharding = PLIM_SHARDING_ZERO3;
    cr_expect_not(plim_ranks_differ(&setting));
    setting.sharding = PLIM_SHARDING_DDP;
    cr_expect_not(plim_ranks_differ(&setting));
    setting.sharding = PLIM_SHARDING_ZERO1;
    cr_expect(plim_ranks_differ(&setting));
    setting.sharding = PLIM_SHARDING_FSDP;
    cr_expect(plim_ranks_differ(&setting));
    setting.world = 1;
    cr_expect_not(plim_ranks_differ(&setting));
}

static double waits(const struct plim_train_setting *setting, double bandwidth)
{
    const struct plim_links both = {
        .gpu_bandwidth = bandwidth, .node_bandwidth = bandwidth, .gpus_per_node = 8};
    rank_replay(rank_gpu("A100-SXM4-80GB"), setting, &both);
    return rank_trace.out.communication_seconds;
}

/* Half of all gradients twice, and half of the weights, in bf16; beside backward if they may be. */
Test(zero, transfers_are_waited_for_unless_they_overlap)
{
    struct plim_train_setting setting = rank_of_two;
    const double expected = 3 * RANK_WEIGHTS * 2 / 2;
    cr_expect_lt(fabs(waits(&setting, 1e4) * 1e4 / expected - 1), 1e-3);
    double whole = waits(&setting, 1e11);
    setting.zero.overlap = PLIM_OVERLAP_YES;
    setting.zero.bucket_elements = 500000;
    cr_expect_lt(waits(&setting, 1e11), whole);
}

static void expect_refusal(struct plim_device *device, const struct plim_train_setting *setting,
                           const char *why)
{
    rank_replay(device, setting, NULL);
    cr_expect_eq(rank_trace.out.verdict, PLIM_UNSUPPORTED);
    cr_expect(strstr(rank_trace.out.why, why) != NULL, "%s", rank_trace.out.why);
}

Test(zero, says_what_it_cannot_train)
{
    struct plim_error err = PLIM_ERROR_INIT;
    struct plim_device *device;
    struct plim_train_setting setting = rank_of_two;
    cr_assert_eq(plim_host_open("", &device, &err), PLIM_OK, "%s", err.text);
    expect_refusal(device, &setting, "simulated");
    setting.optimizer = PLIM_OPTIMIZER_ADAMW_8BIT;
    expect_refusal(rank_gpu("A100-SXM4-80GB"), &setting, "--loop trainer");
    setting.loop = PLIM_LOOP_TRAINER;
    setting.sharding = PLIM_SHARDING_ZERO3;
    expect_refusal(rank_gpu("A100-SXM4-80GB"), &setting, "zero1 or zero2");
    setting.sharding = rank_of_two.sharding;
    rank_replay(rank_gpu("A100-SXM4-80GB"), &setting, NULL);
    cr_expect_eq(rank_trace.out.verdict, PLIM_OK, "%s", rank_trace.out.why);
    setting.liger = true;
    rank_replay(rank_gpu("A100-SXM4-80GB"), &setting, NULL);
    cr_expect_eq(rank_trace.out.verdict, PLIM_OK, "%s", rank_trace.out.why);
    setting.sharding = PLIM_SHARDING_ZERO3;
    setting.optimizer = PLIM_OPTIMIZER_ADAMW;
    rank_replay(rank_gpu("A100-SXM4-80GB"), &setting, NULL);
    cr_expect_eq(rank_trace.out.verdict, PLIM_OK, "%s", rank_trace.out.why);
    setting.loop = PLIM_LOOP_TRL_SFT;
    rank_replay(rank_gpu("A100-SXM4-80GB"), &setting, NULL);
    cr_expect_eq(rank_trace.out.verdict, PLIM_OK, "%s", rank_trace.out.why);
    setting.loop = PLIM_LOOP_TRAINER;
    setting.sharding = rank_of_two.sharding;
    setting.liger = false;
    setting.optimizer = PLIM_OPTIMIZER_ADAMW_TORCH_8BIT;
    rank_replay(rank_gpu("A100-SXM4-80GB"), &setting, NULL);
    cr_expect_eq(rank_trace.out.verdict, PLIM_OK, "%s", rank_trace.out.why);
    setting.loop = rank_of_two.loop;
    expect_refusal(rank_gpu("A100-SXM4-80GB"), &setting, "--loop trainer");
    setting.optimizer = PLIM_OPTIMIZER_SGD;
    setting.zero.optimizer = PLIM_OFFLOAD_CPU;
    expect_refusal(rank_gpu("A100-SXM4-80GB"), &setting, "DeepSpeedCPUAdam");
    setting.optimizer = PLIM_OPTIMIZER_ADAMW;
    setting.zero.parameters = PLIM_OFFLOAD_CPU;
    expect_refusal(rank_gpu("A100-SXM4-80GB"), &setting, "needs ZeRO 3");
    setting.sharding = PLIM_SHARDING_ZERO3;
    setting.zero.optimizer = PLIM_OFFLOAD_NONE;
    expect_refusal(rank_gpu("A100-SXM4-80GB"), &setting, "without offload_optimizer");
    setting.zero.parameters = PLIM_OFFLOAD_NONE;
    setting.lora = (struct plim_lora){.r = 8, .targets = "q_proj"};
    expect_refusal(rank_gpu("A100-SXM4-80GB"), &setting, "adapters");
    setting.loop = PLIM_LOOP_TRAINER;
    rank_replay(rank_gpu("A100-SXM4-80GB"), &setting, NULL);
    cr_expect_eq(rank_trace.out.verdict, PLIM_OK, "%s", rank_trace.out.why);
    setting.checkpointing = PLIM_CHECKPOINTING_FULL;
    expect_refusal(rank_gpu("A100-SXM4-80GB"), &setting, "CheckpointError");
    setting.use_reentrant = true;
    rank_replay(rank_gpu("A100-SXM4-80GB"), &setting, NULL);
    cr_expect_eq(rank_trace.out.verdict, PLIM_OK, "%s", rank_trace.out.why);
    setting.lora.dora = true;
    rank_replay(rank_gpu("A100-SXM4-80GB"), &setting, NULL);
    cr_expect_eq(rank_trace.out.verdict, PLIM_OK, "%s", rank_trace.out.why);
}

/* What fails in transformers itself */
Test(zero, says_which_models_fail)
{
    struct plim_device *gpu = rank_gpu("A100-SXM4-80GB");
    const struct plim_device_info *info = &gpu->info;
    const struct plim_model_config sinusoidal = {.sinusoidal_positions = true}, images = {.patch_size = 16};
    struct plim_train_setting setting = rank_of_two;
    setting.loop = PLIM_LOOP_TRAINER;
    cr_expect_null(zero_refuses(info, &sinusoidal, &setting));
    setting.sharding = PLIM_SHARDING_ZERO3;
    cr_expect_not_null(zero_refuses(info, &sinusoidal, &setting));
    setting.checkpointing = PLIM_CHECKPOINTING_FULL;
    setting.use_reentrant = true;
    cr_expect_null(decoder_refuses(info, &images, &setting));
    setting.lora.r = 8;
    cr_expect_not_null(decoder_refuses(info, &images, &setting));
    setting.loop = PLIM_LOOP_PLAIN;
    cr_expect_null(decoder_refuses(info, &images, &setting));
    plim_device_close(&gpu);
}

/* "expected data_ptr to be aligned to 16 bytes": PyTorch's error for such experts in flat weights */
Test(zero, says_which_experts_are_unaligned)
{
    struct plim_device *gpu = rank_gpu("A100-SXM4-80GB");
    struct plim_model_config model = {.family = PLIM_FAMILY_GPT_OSS, .heads = 8, .experts = 8};
    struct plim_train_setting setting = rank_of_two;
    setting.precision = PLIM_PRECISION_BF16;
    setting.sharding = PLIM_SHARDING_ZERO2;
    cr_expect_null(decoder_refuses(&gpu->info, &model, &setting));
    model.experts = 12;
    cr_expect_not_null(decoder_refuses(&gpu->info, &model, &setting));
    setting.precision = PLIM_PRECISION_FP32;
    cr_expect_null(decoder_refuses(&gpu->info, &model, &setting));
    setting.precision = PLIM_PRECISION_BF16;
    setting.sharding = PLIM_SHARDING_ZERO3;
    cr_expect_null(decoder_refuses(&gpu->info, &model, &setting));
    model.experts = 8, model.heads = 4;
    setting.sharding = PLIM_SHARDING_ZERO1;
    cr_expect_not_null(decoder_refuses(&gpu->info, &model, &setting));
    plim_device_close(&gpu);
}

static const struct plim_lora small_adapters = {.r = 8, .targets = "q_proj"};

/* DeepSpeed casts all that floats, and gathers what persists as if it were of one type. */
Test(zero, quantised_weights_that_it_would_lose_are_refused)
{
    struct plim_train_setting setting = rank_of_two;
    setting.loop = PLIM_LOOP_TRAINER;
    setting.lora = small_adapters;
    setting.precision = PLIM_PRECISION_BF16_MIXED;
    setting.quantization = (struct plim_quantization){.type = PLIM_QUANTIZATION_NF4};
    for (int stage = 0; stage < 3; stage++) {
        setting.sharding = (enum plim_sharding)(PLIM_SHARDING_ZERO1 + stage);
        setting.quantization.storage = PLIM_STORAGE_FP16;
        expect_refusal(rank_gpu("A100-SXM4-80GB"), &setting, "which are lost");
        setting.quantization.storage = PLIM_STORAGE_BF16;
        rank_replay(rank_gpu("A100-SXM4-80GB"), &setting, NULL);
        cr_expect_eq(rank_trace.out.verdict, PLIM_OK, "%s", rank_trace.out.why);
    }
    setting.quantization.storage = PLIM_STORAGE_UINT8;
    setting.zero.persistent_elements = 100000;
    expect_refusal(rank_gpu("A100-SXM4-80GB"), &setting, "stage3_param_persistence_threshold");
    setting.zero.persistent_elements = 0;
    rank_replay(rank_gpu("A100-SXM4-80GB"), &setting, NULL);
    cr_expect_eq(rank_trace.out.verdict, PLIM_OK, "%s", rank_trace.out.why);
}

/* The embedding, which is the head too, is made twice and gathered once before there is a step. The
 * first backward and its forward gather it for each of the two; from then on it is gathered ahead, once
 * a step. Each backward makes two gradients of its size. */
Test(zero, stage_3_gathers_a_small_model_once_a_step)
{
    struct plim_train_setting setting = rank_of_two;
    setting.sharding = PLIM_SHARDING_ZERO3;
    int made = 3 + 4 + (PLIM_REPLAY_STEPS - 1);
    cr_expect_eq(allocations(&setting, 2 * RANK_EMBEDDING), made + 2 * PLIM_REPLAY_STEPS);
    setting.accumulation = 2; /* the second micro-step finds it whole */
    cr_expect_eq(allocations(&setting, 2 * RANK_EMBEDDING), made + 4 * PLIM_REPLAY_STEPS);
}

/* One gradient of all partitions, and an fp32 copy of it, whatever runs in between. */
Test(zero, stage_3_keeps_a_piece_of_everything)
{
    struct plim_train_setting setting = rank_of_two;
    setting.sharding = PLIM_SHARDING_ZERO3;
    setting.zero.bucket_elements = 1000000;
    allocations(&setting, 0);
    int64_t pieces = RANK_WEIGHTS / 2, end = rank_trace.out.step[PLIM_REPLAY_STEPS - 1].end_allocated_bytes;
    cr_expect_geq(end, pieces * (2 + 2 + 4 + 8) + 2 * 1000000);
    cr_expect_leq(end, pieces * (2 + 2 + 4 + 8) + 2 * 1000000 + (24 << 20));
}

/* Each sub-group has its fp32 weights (made by way of a copy), two states, and a gradient in each step;
 * none has all of them. */
Test(zero, stage_3_updates_a_sub_group_after_the_other)
{
    struct plim_train_setting setting = rank_of_two;
    setting.sharding = PLIM_SHARDING_ZERO3;
    setting.zero.bucket_elements = 1000000;
    int whole = allocations(&setting, 4 * RANK_WEIGHTS / 2);
    int64_t peak = rank_trace.out.peak_allocated_bytes;
    cr_expect_eq(whole, 2 + 1 + 2 + PLIM_REPLAY_STEPS); /* and the zeros like its gradient */
    setting.zero.sub_group_elements = 5000000; /* the embedding's piece has as many, the rest has not */
    cr_expect_eq(allocations(&setting, 4 * RANK_WEIGHTS / 2), 0);
    cr_expect_eq(allocations(&setting, 4 * (RANK_WEIGHTS - RANK_EMBEDDING) / 2), 2 + 2 + PLIM_REPLAY_STEPS);
    cr_expect_lt(rank_trace.out.peak_allocated_bytes, peak);
}

/* Parameters that stay whole are gathered anew at the end of a step, the others where they are used. */
Test(zero, stage_3_gives_up_what_is_not_used_soon)
{
    struct plim_train_setting setting = rank_of_two;
    setting.sharding = PLIM_SHARDING_ZERO3;
    setting.zero.bucket_elements = 1000000;
    int once = allocations(&setting, 2 * RANK_EMBEDDING);
    setting.zero.reuse_elements = setting.zero.live_elements = 0;
    int each = allocations(&setting, 2 * RANK_EMBEDDING);
    cr_expect_gt(each, once);
    setting.zero.persistent_elements = RANK_EMBEDDING;
    cr_expect_lt(allocations(&setting, 2 * RANK_EMBEDDING), each);
}

/* As DeepSpeed's third step begins with peft's adapters, where little is gathered ahead: PeftModel, LoraModel,
 * LlamaModel and the embedding gather one parameter each, q_proj's layer the A that it looked at once. */
Test(zero, stage_3_gathers_adapters_with_the_layers_that_look_at_them)
{
    static const int64_t expected[] = {2 * RANK_EMBEDDING, 640, 5120, 204800, 81920, 1024, 1024, 8, 1032, 1024,
                                       128, 1024, 1024, 1279, 1, 1, 5120, 128, 512, 16384};
    struct plim_train_setting setting = rank_of_two;
    setting.sharding = PLIM_SHARDING_ZERO3;
    setting.loop = PLIM_LOOP_TRAINER;
    setting.lora = (struct plim_lora){.r = 8, .targets = "q_proj,v_proj"};
    setting.zero.prefetch_elements = 1;
    setting.zero.persistent_elements = setting.zero.reuse_elements = 0;
    rank_simulate(&setting);
    int64_t at = rank_trace.count - 1;
    while (at > 0 && (rank_trace.bytes[at] != expected[0] || rank_trace.bytes[at + 1] != expected[1])) at--;
    rank_expect_from(at, sizeof expected / sizeof *expected, expected);
}

/* Weights, gradients and states in fp32 are the host's; of stage 3 the pieces too. What comes back to the GPU to be
 * added to, and in which type a gradient leaves it, is in tests/golden/trainer_zero.jsonl. */
Test(zero, what_is_offloaded_is_the_hosts)
{
    const int64_t mib = 1 << 20, part = RANK_WEIGHTS / 2;
    int64_t end[2][PLIM_OFFLOAD_COUNT];
    struct plim_train_setting setting = rank_of_two;
    setting.zero.bucket_elements = 1000000;
    for (int stage = 0; stage < 2; stage++)
        for (int offload = 0; offload < PLIM_OFFLOAD_COUNT; offload++) {
            setting.sharding = stage ? PLIM_SHARDING_ZERO3 : PLIM_SHARDING_ZERO2;
            setting.zero.optimizer = (enum plim_offload)offload;
            rank_simulate(&setting);
            end[stage][offload] = rank_trace.out.step[PLIM_REPLAY_STEPS - 1].end_allocated_bytes;
            int64_t host = rank_trace.out.host_bytes;
            cr_expect(offload ? host >= 18 * part && host < 18 * part + mib : host == 0, "%lld", (long long)host);
        }
    int64_t staging = 2 * RANK_EMBEDDING;
    cr_expect_float_eq((double)(end[0][0] - end[0][1] + staging) / (double)(12 * part), 1, 0.02);
    cr_expect_float_eq((double)(end[1][0] - end[1][1]) / (double)(14 * part), 1, 0.05);
    setting.zero.parameters = PLIM_OFFLOAD_CPU;
    setting.zero.persistent_elements = 0;
    rank_simulate(&setting);
    int64_t pieces = rank_trace.out.step[PLIM_REPLAY_STEPS - 1].end_allocated_bytes;
    cr_expect_float_eq((double)(end[1][1] - pieces) / (double)(2 * part), 1, 0.1);
    cr_expect_geq(rank_trace.out.host_bytes, 20 * part);
}

/* Whatever the memory, the end is a verdict. */
Test(zero, is_an_answer_whatever_the_memory)
{
    struct plim_train_setting setting = rank_of_two;
    setting.zero.bucket_elements = 1000000;
    setting.precision = PLIM_PRECISION_FP16_MIXED;
    setting.clip = 1;
    for (int mib = 40; mib < 400; mib += 7) {
        char uri[64];
        setting.accumulation = 1 + mib % 2;
        setting.sharding = (enum plim_sharding)(PLIM_SHARDING_ZERO1 + mib % 3);
        setting.zero.contiguous = mib % 5 > 0;
        setting.zero.overlap = mib % 4 ? PLIM_OVERLAP_NO : PLIM_OVERLAP_YES;
        setting.zero.sub_group_elements = mib % 2 ? 100000 : 1000000000;
        snprintf(uri, sizeof uri, "A100-SXM4-80GB,memory=%dMiB", mib);
        rank_replay(rank_gpu(uri), &setting, NULL);
        cr_expect(rank_trace.out.verdict == PLIM_OK || rank_trace.out.verdict == PLIM_OOM, "%d MiB: %s", mib,
                  rank_trace.out.why);
    }
    cr_expect_eq(rank_trace.out.verdict, PLIM_OK);
}

Test(zero, is_an_answer_whatever_the_memory_with_what_is_offloaded_and_with_adapters)
{
    struct plim_train_setting setting = rank_of_two;
    setting.zero.bucket_elements = 1000000;
    setting.optimizer = PLIM_OPTIMIZER_ADAMW;
    setting.loop = PLIM_LOOP_TRAINER;
    setting.checkpointing = PLIM_CHECKPOINTING_FULL;
    setting.use_reentrant = true;
    setting.zero.optimizer = PLIM_OFFLOAD_CPU;
    for (int mib = 20; mib < 300; mib += 3) {
        char uri[64];
        setting.accumulation = 1 + mib % 2;
        setting.world = 1 + mib % 4 / 2;
        setting.sharding = (enum plim_sharding)(PLIM_SHARDING_ZERO1 + mib / 3 % 3);
        bool is_stage_3 = setting.sharding == PLIM_SHARDING_ZERO3;
        setting.zero.parameters = is_stage_3 && mib % 4 ? PLIM_OFFLOAD_CPU : PLIM_OFFLOAD_NONE;
        setting.zero.persistent_elements = mib % 5 ? 100000 : 0;
        setting.lora = (struct plim_lora){.r = mib % 7 ? 8 : 0, .targets = "q_proj"};
        snprintf(uri, sizeof uri, "A100-SXM4-80GB,memory=%dMiB", mib);
        rank_replay(rank_gpu(uri), &setting, NULL);
        cr_expect(rank_trace.out.verdict == PLIM_OK || rank_trace.out.verdict == PLIM_OOM, "%d MiB: %s", mib,
                  rank_trace.out.why);
    }
    cr_expect_eq(rank_trace.out.verdict, PLIM_OK);
}

Test(zero, is_an_answer_whatever_the_memory_with_a_quantised_base)
{
    struct plim_train_setting setting = rank_of_two;
    setting.zero.bucket_elements = 1000000;
    setting.zero.persistent_elements = 0;
    setting.precision = PLIM_PRECISION_BF16_MIXED;
    setting.loop = PLIM_LOOP_TRAINER;
    setting.lora = small_adapters;
    for (int mib = 4; mib < 300; mib += 3) {
        char uri[64];
        setting.sharding = mib % 2 ? PLIM_SHARDING_ZERO3 : PLIM_SHARDING_FSDP;
        setting.quantization = (struct plim_quantization){.type = PLIM_QUANTIZATION_NF4,
                                                          .nested = mib % 3 == 0,
                                                          .storage = mib % 4 / 2 ? PLIM_STORAGE_BF16 : 0,
                                                          .prepared = mib % 5 > 0};
        bool may_be_on_host = mib % 2 == 0 && mib % 4 / 2;
        setting.quantization.loaded_on = may_be_on_host && mib % 7 > 3 ? PLIM_MADE_ON_HOST : PLIM_MADE_ON_GPU;
        if (mib % 2 && mib % 11 > 5) setting.quantization.type = PLIM_QUANTIZATION_INT8;
        setting.checkpointing = mib % 2 && mib % 13 > 6 ? PLIM_CHECKPOINTING_FULL : PLIM_CHECKPOINTING_NONE;
        setting.use_reentrant = true;
        snprintf(uri, sizeof uri, "A100-SXM4-80GB,memory=%dMiB", mib);
        rank_replay(rank_gpu(uri), &setting, NULL);
        cr_expect(rank_trace.out.verdict == PLIM_OK || rank_trace.out.verdict == PLIM_OOM, "%d MiB: %s", mib,
                  rank_trace.out.why);
    }
    cr_expect_eq(rank_trace.out.verdict, PLIM_OK);
}

/* Behind the first forward and backward the ranks compare how many modules these began, 8 bytes each: 100 of
 * tests/golden/configs/x-bert.json, as in PyTorch (bf16-mixed, transformers' Trainer). No other tensor has as many. */
Test(zero, modules_of_stage_3_are_counted_with_those_that_have_no_parameters)
{
    struct plim_train_setting setting = rank_of_two;
    setting.sharding = PLIM_SHARDING_ZERO3;
    setting.loop = PLIM_LOOP_TRAINER;
    setting.precision = PLIM_PRECISION_BF16;
    setting.weights = PLIM_WEIGHTS_FP32;
    rank_take_model("{\"model_type\": \"bert\", \"vocab_size\": 1003, \"hidden_size\": 96, \"num_hidden_layers\": 2, "
                    "\"num_attention_heads\": 4, \"intermediate_size\": 208, \"max_position_embeddings\": 128, "
                    "\"architectures\": [\"BertForMaskedLM\"]}");
    rank_simulate(&setting);
    cr_assert_eq(rank_trace.out.verdict, PLIM_OK, "%s", rank_trace.out.why);
    int64_t compared = 0; /* how many numbers there are, and they */
    for (int64_t i = 2; i <= rank_trace.count; i++)
        compared += rank_trace.bytes[i - 1] == 8 && rank_trace.bytes[i] == 100 * 8;
    cr_expect_eq(compared, 1, "%lld", (long long)compared);
}
