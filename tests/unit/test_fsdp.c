/* FSDP2's own allocations, one by one, as PyTorch made them; what they come to in whole runs is in
 * tests/golden/fsdp.jsonl. */
#include "devices/sim/sim.h"
#include "devices/host/host.h"
#include "devices/needs/needs.h"
#include "support/rank_trace.h"
#include "workloads/train/ranks.h"
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>

static const struct plim_train_setting rank_of_two = {.micro_batch = 1,
                                                      .seq = 128,
                                                      .accumulation = 1,
                                                      .precision = PLIM_PRECISION_BF16_MIXED,
                                                      .optimizer = PLIM_OPTIMIZER_ADAMW_FUSED,
                                                      .sharding = PLIM_SHARDING_FSDP,
                                                      .world = 2,
                                                      .packing = PLIM_PACKING_NO};

/* 16002 of 32003 rows; the tied head is the embedding once more */
Test(fsdp, the_model_is_made_of_shards)
{
    rank_simulate(&rank_of_two);
    EXPECT_FROM(1, 20482560, 204800, 40960, 40960, 204800, 497920, 497920, 497280, 640, 640);
    EXPECT_FROM(29, 640, 128, 128, 20482560, 1024);
}

/* cast shards, gathered, embedding and norm, the kernel's table */
Test(fsdp, a_unit_is_gathered_before_its_forward)
{
    rank_simulate(&rank_of_two);
    EXPECT_FROM(34, 10241600, 20483200, 20482560, 640, 20088);
    EXPECT_FROM(61, 992960, 1985920, 204800);
}

/* all gradients in fp32, the kernel's table, this rank's part */
Test(fsdp, a_unit_is_reduced_behind_its_backward)
{
    rank_simulate(&rank_of_two);
    EXPECT_FROM(337, 3971840, 8232, 1985920);
    EXPECT_FROM(504, 40966400, 80136, 20483200);
}

Test(fsdp, kept_units_are_gathered_once)
{
    struct plim_train_setting kept = rank_of_two;
    rank_simulate(&rank_of_two);
    int64_t given_up = rank_trace.count;
    kept.resharding = PLIM_RESHARDING_NO;
    rank_simulate(&kept);
    /* three blocks, four steps: cast, gathered, 9 parameters, table */
    cr_expect_eq(given_up - rank_trace.count, 3 * 4 * 12, "%lld", (long long)(given_up - rank_trace.count));
}

Test(fsdp, a_world_that_divides_nothing_is_padded)
{
    struct plim_train_setting three = rank_of_two;
    three.world = 3;
    rank_simulate(&three);
    EXPECT_FROM(1, 10668 * 320 * 4, 107 * 320 * 4);
    EXPECT_FROM(34, (10668 * 320 + 107) * 2, 3 * (10668 * 320 + 107) * 2,
                3 * 10668 * 320 * 2);
}

static double waits(const struct plim_train_setting *setting, double bandwidth)
{
    const struct plim_links both = {
        .gpu_bandwidth = bandwidth, .node_bandwidth = bandwidth, .gpus_per_node = 8};
    rank_replay(rank_gpu("A100-SXM4-80GB"), setting, &both);
    return rank_trace.out.communication_seconds;
}

/* Over a slow link the step takes as long as what is sent: half of all parameters twice for forward
 * and backward in bf16, the decoder's own but once, and half of all gradients in fp32. */
/* Of 320 rows 45 ranks of 50 have 7 and one has 5; of 777 48 have 16 and one 9; of 64 32 have 2; of 32,003 49 have
 * 641 and one 594. */
Test(fsdp, ranks_are_of_as_many_kinds_as_rows_run_out)
{
    static const int64_t kinds[] = {0, 32, 45, 46, 48, 49, 0};
    struct plim_train_setting setting = rank_of_two;
    setting.world = 50;
    for (size_t i = 0; i + 1 < sizeof kinds / sizeof *kinds; i++) {
        setting.rank = kinds[i];
        rank_simulate(&setting);
        cr_expect_eq(rank_trace.out.next_rank, kinds[i + 1], "behind %lld: %lld", (long long)kinds[i],
                  (long long)rank_trace.out.next_rank);
    }
    setting.world = 2; /* 32,003 and 777 are odd */
    setting.rank = 0;
    rank_simulate(&setting);
    cr_expect_eq(rank_trace.out.next_rank, 1);
}

Test(fsdp, no_rank_reserves_more_than_the_one_that_is_told)
{
    struct plim_device *device = rank_gpu("A100-SXM4-80GB");
    struct plim_train_setting setting = rank_of_two;
    struct plim_error err = PLIM_ERROR_INIT;
    struct plim_replayer *replayer;
    struct plim_replay told, one;
    int64_t most = 0;
    setting.world = 50;
    setting.rank = -1;
    cr_assert_eq(plim_replayer_create(device, NULL, &replayer, &err), PLIM_OK, "%s", err.text);
    cr_assert_eq(plim_ranks_prove(replayer, rank_model(), &setting, &told, &err), PLIM_OK, "%s", err.text);
    for (setting.rank = 0; setting.rank < 50; setting.rank++) {
        cr_assert_eq(plim_replay_prove(replayer, rank_model(), &setting, &one, &err), PLIM_OK, "%s", err.text);
        if (one.peak_reserved_bytes > most) most = one.peak_reserved_bytes;
        if (setting.rank == told.rank) cr_expect_eq(one.peak_reserved_bytes, told.peak_reserved_bytes);
    }
    cr_expect_eq(most, told.peak_reserved_bytes, "%lld, told %lld of rank %lld", (long long)most,
                 (long long)told.peak_reserved_bytes, (long long)told.rank);
    plim_replayer_destroy(&replayer);
    plim_device_close(&device);
}

/* One that has had cached memory back and does not come to repeat counts, however little it reserves. */
Test(fsdp, a_rank_that_never_repeats_is_the_one_that_is_told)
{
    struct plim_error err = PLIM_ERROR_INIT;
    struct plim_device *device = NULL;
    struct plim_replayer *replayer;
    struct plim_replay told;
    struct plim_spec spec;
    struct plim_train_setting setting = {.micro_batch = 1, .seq = 512, .accumulation = 2, .world = 2, .rank = -1,
                                         .precision = PLIM_PRECISION_BF16_MIXED, .optimizer = PLIM_OPTIMIZER_SGD,
                                         .checkpointing = PLIM_CHECKPOINTING_FULL, .attention = PLIM_ATTENTION_SDPA,
                                         .sharding = PLIM_SHARDING_FSDP, .made_on = PLIM_MADE_ON_HOST};
    cr_assert_eq(plim_spec_load("gpt2-124m", &spec, &err), PLIM_OK, "%s", err.text);
    cr_assert_eq(plim_sim_open("A100-SXM4-80GB,memory=1784MiB", &device, &err), PLIM_OK, "%s", err.text);
    cr_assert_eq(plim_replayer_create(device, NULL, &replayer, &err), PLIM_OK, "%s", err.text);
    cr_assert_eq(plim_ranks_prove(replayer, &spec.model, &setting, &told, &err), PLIM_OK, "%s", err.text);
    cr_expect(plim_replay_has_unproven_retries(&told), "rank %d: %s", (int)told.rank, told.why);
    cr_expect_eq(told.rank, 1);
    plim_replayer_destroy(&replayer);
    plim_device_close(&device);
}

Test(fsdp, a_slow_link_is_all_that_counts)
{
    struct plim_train_setting kept = rank_of_two;
    const double block = 2 * 496480, own = 2 * (16002 * 320 + 160);
    double expected = ((3 * block * 2 + own) * 2 + (3 * block + own) * 4) / 2;
    kept.resharding = PLIM_RESHARDING_NO;
    cr_expect_lt(fabs(waits(&rank_of_two, 1e4) * 1e4 / expected - 1), 1e-3);
    cr_expect_lt(fabs(waits(&kept, 1e4) * 1e4 / (expected - 3 * block) - 1), 1e-3);
}

/* Over a fast one blocks are gathered while others run: only what comes first and last is waited for. */
Test(fsdp, a_fast_link_is_hidden)
{
    const double own = 2 * (16002 * 320 + 160);
    double seconds = waits(&rank_of_two, 1e12);
    cr_expect_gt(seconds, 0.999 * own * (2 + 4) / 2 / 1e12, "%g", seconds);
    cr_expect_lt(seconds, 1.2 * own * (2 + 4) / 2 / 1e12, "%g", seconds);
}

static void expect_refusal(struct plim_device *device, const struct plim_train_setting *setting,
                           const char *why)
{
    rank_replay(device, setting, NULL);
    cr_expect_eq(rank_trace.out.verdict, PLIM_UNSUPPORTED);
    cr_expect(strstr(rank_trace.out.why, why) != NULL, "%s", rank_trace.out.why);
}

Test(fsdp, ligers_loss_beside_adapters_wants_a_tied_head)
{
    struct plim_train_setting setting = rank_of_two;
    setting.loop = PLIM_LOOP_TRAINER;
    setting.liger = true;
    setting.lora = (struct plim_lora){.r = 8, .targets = "q_proj"};
    rank_replay(rank_gpu("A100-SXM4-80GB"), &setting, NULL);
    cr_expect_eq(rank_trace.out.verdict, PLIM_OK, "%s", rank_trace.out.why);
    rank_take_model("{\"model_type\": \"llama\", \"hidden_size\": 256, \"intermediate_size\": 512, "
                    "\"num_hidden_layers\": 2, \"num_attention_heads\": 4, \"tie_word_embeddings\": false}");
    expect_refusal(rank_gpu("A100-SXM4-80GB"), &setting, "an untied head");
    setting.liger = false;
    setting.cut_cross_entropy = true;
    expect_refusal(rank_gpu("A100-SXM4-80GB"), &setting, "cut cross entropy fails beside adapters");
    setting.cut_cross_entropy = false;
    setting.liger = true;
    setting.loop = PLIM_LOOP_TRL_SFT; /* whose loss is TRL's own */
    rank_replay(rank_gpu("A100-SXM4-80GB"), &setting, NULL);
    cr_expect_eq(rank_trace.out.verdict, PLIM_OK, "%s", rank_trace.out.why);
}

Test(fsdp, says_what_it_cannot_train)
{
    struct plim_error err = PLIM_ERROR_INIT;
    struct plim_device *device;
    struct plim_train_setting setting = rank_of_two;
    cr_assert_eq(plim_host_open("", &device, &err), PLIM_OK, "%s", err.text);
    expect_refusal(device, &setting, "simulated");
    setting.optimizer = PLIM_OPTIMIZER_ADAFACTOR;
    expect_refusal(rank_gpu("A100-SXM4-80GB"), &setting, "torch.optim's Adafactor");
    setting.loop = PLIM_LOOP_TRAINER;
    expect_refusal(rank_gpu("A100-SXM4-80GB"), &setting, "transformers' Adafactor");
    setting.loop = rank_of_two.loop;
    setting.optimizer = PLIM_OPTIMIZER_ADAMW_8BIT;
    expect_refusal(rank_gpu("A100-SXM4-80GB"), &setting, "bitsandbytes");
    setting.optimizer = PLIM_OPTIMIZER_ADAMW_TORCH_4BIT;
    expect_refusal(rank_gpu("A100-SXM4-80GB"), &setting, "--loop trainer");
    setting.loop = PLIM_LOOP_TRAINER;
    setting.precision = PLIM_PRECISION_BF16;
    setting.optimizer = PLIM_OPTIMIZER_ADAMW_TORCH_8BIT;
    expect_refusal(rank_gpu("A100-SXM4-80GB"), &setting, "in 16 bits");
    for (int precision = PLIM_PRECISION_FP32; precision <= PLIM_PRECISION_BF16_MIXED; precision++) {
        setting.precision = (enum plim_precision)precision;
        rank_replay(rank_gpu("A100-SXM4-80GB"), &setting, NULL);
        cr_expect_eq(rank_trace.out.verdict, PLIM_OK, "%s", rank_trace.out.why);
    }
    setting.precision = rank_of_two.precision;
    setting.liger = true;
    rank_replay(rank_gpu("A100-SXM4-80GB"), &setting, NULL);
    cr_expect_eq(rank_trace.out.verdict, PLIM_OK, "%s", rank_trace.out.why);
    setting.evaluation = (struct plim_evaluation){.batch = 2, .batches = 2, .every = 1};
    expect_refusal(rank_gpu("A100-SXM4-80GB"), &setting, "leave the head");
    setting.liger_kernels.loss = PLIM_LIGER_CHOICE_NONE;
    setting.cut_cross_entropy = true;
    expect_refusal(rank_gpu("A100-SXM4-80GB"), &setting, "leave the head");
    setting.cut_cross_entropy = false;
    rank_replay(rank_gpu("A100-SXM4-80GB"), &setting, NULL);
    cr_expect_eq(rank_trace.out.verdict, PLIM_OK, "%s", rank_trace.out.why);
    setting.liger_kernels = rank_of_two.liger_kernels;
    setting.evaluation = rank_of_two.evaluation;
    setting.liger = false;
    setting.loop = rank_of_two.loop;
    setting.optimizer = PLIM_OPTIMIZER_SGD;
    setting.quantization = (struct plim_quantization){.type = PLIM_QUANTIZATION_NF4};
    expect_refusal(rank_gpu("A100-SXM4-80GB"), &setting, "--loop trainer");
    setting.quantization.storage = PLIM_STORAGE_FP16;
    setting.precision = PLIM_PRECISION_BF16_MIXED;
    expect_refusal(rank_gpu("A100-SXM4-80GB"), &setting, "which are lost");
    setting.quantization.storage = PLIM_STORAGE_UINT8;
    setting.quantization.loaded_on = PLIM_MADE_ON_HOST;
    setting.loop = PLIM_LOOP_TRAINER;
    expect_refusal(rank_gpu("A100-SXM4-80GB"), &setting, "stays there");
    setting.loop = rank_of_two.loop;
    setting.quantization.type = PLIM_QUANTIZATION_INT8;
    expect_refusal(rank_gpu("A100-SXM4-80GB"), &setting, "8 bits");
    setting.quantization.type = PLIM_QUANTIZATION_NONE;
    setting.world = 1;
    expect_refusal(rank_gpu("A100-SXM4-80GB"), &setting, "2 GPUs");
    setting.world = 2;
    setting.checkpointing = PLIM_CHECKPOINTING_FULL;
    setting.use_reentrant = true;
    expect_refusal(rank_gpu("A100-SXM4-80GB"), &setting, "--loop trainer");
    setting.loop = PLIM_LOOP_TRAINER;
    rank_replay(rank_gpu("A100-SXM4-80GB"), &setting, NULL);
    cr_expect_eq(rank_trace.out.verdict, PLIM_OK, "%s", rank_trace.out.why);
}

/* Whatever the memory, the end is a verdict. */
Test(fsdp, is_an_answer_whatever_the_memory)
{
    for (int mib = 100; mib < 400; mib += 7) {
        char uri[64];
        snprintf(uri, sizeof uri, "A100-SXM4-80GB,memory=%dMiB", mib);
        rank_replay(rank_gpu(uri), &rank_of_two,
                  NULL);
        cr_expect(rank_trace.out.verdict == PLIM_OK || rank_trace.out.verdict == PLIM_OOM, "%d MiB: %s", mib,
                  rank_trace.out.why);
    }
    cr_expect_eq(rank_trace.out.verdict, PLIM_OK);
}

/* Few tensors are read by as many blocks as they have tiles; many, by more than the GPU holds, in
 * several rounds. As PyTorch asked for on an A100. */
Test(fsdp, tables_of_the_packing_kernels)
{
    struct plim_device_info a100 = {.multiprocessors = 108, .threads_per_multiprocessor = 2048};
    const int64_t block[] = {102400, 20480, 20480, 102400, 248960, 248960, 248640, 320, 320},
                  root[] = {10241280, 320};
    cr_expect_eq(plim_split_copy_table_bytes(&a100, 9, block, 2), 4200);
    cr_expect_eq(plim_split_copy_table_bytes(&a100, 2, root, 2), 20088);
    cr_expect_eq(plim_chunk_cat_table_bytes(2, (int64_t[]){20482560, 640}), 80136);
}
