/* Runs of transformers' Trainer on a simulated GPU. */
#include "replay_bench.h"

static struct bench bench;
static struct plim_replay first, again;

Test(replay_trainer, running_out_of_memory_under_trainer_is_an_answer)
{
    run_out_anywhere(&by_trainer);
}

Test(replay_trainer, running_out_of_memory_under_trainer_with_fsdp_is_an_answer)
{
    struct plim_train_setting setting = by_trainer;
    setting.sharding = PLIM_SHARDING_FSDP;
    setting.world = 2;
    run_out_anywhere(&setting);
}

Test(replay_trainer, running_out_of_memory_under_trainer_with_zero_is_an_answer)
{
    struct plim_train_setting setting = by_trainer;
    setting.world = 2;
    for (int stage = PLIM_SHARDING_ZERO1; stage <= PLIM_SHARDING_ZERO3; stage++) {
        setting.sharding = (enum plim_sharding)stage;
        setting.zero = (struct plim_zero){.bucket_elements = 1 << 20,
                                          .contiguous = true,
                                          .sub_group_elements = 1 << 20,
                                          .prefetch_elements = 1 << 20,
                                          .live_elements = 1 << 28,
                                          .reuse_elements = 1 << 28,
                                          .persistent_elements = 1 << 10};
        run_out_anywhere(&setting);
    }
}

static void prove_by_trainer(const struct plim_train_setting *setting, struct plim_replay *out)
{
    struct plim_error err = PLIM_ERROR_INIT;
    cr_assert_eq(plim_replay_prove(bench.replayer, &bench.spec.model, setting, out, &err), PLIM_OK, "%s", err.text);
    cr_expect_eq(out->verdict, PLIM_OK);
}

/* What it keeps for the next step, batches, a loss and a norm, comes to lie where it lay; or elsewhere in the same
 * segments of small blocks, which is enough where there is memory to spare. */
Test(replay_trainer, steps_by_trainer_come_to_repeat)
{
    struct plim_train_setting setting = by_trainer;
    open_bench(&bench, "gpt2-124m");
    setting.accumulation = 1;
    prove_by_trainer(&setting, &first);
    cr_expect_gt(first.repeats_after, 0);
    cr_expect(!first.small_blocks_move);
    setting.accumulation = 8;
    prove_by_trainer(&setting, &first);
    cr_expect(first.small_blocks_move);
    cr_expect_eq(first.repeats_after, 0);
    cr_expect_lt(first.steps_done, 2 * PLIM_REPLAY_SETTLED_STEPS);
    plim_device_limit(bench.device, first.peak_reserved_bytes + (4 << 20));
    prove_by_trainer(&setting, &again);
    cr_expect(!again.small_blocks_move);
    cr_expect_gt(again.steps_done, 2 * PLIM_REPLAY_SETTLED_STEPS);
    plim_device_limit(bench.device, (int64_t)1 << 46);
    setting.loop = PLIM_LOOP_PLAIN;
    run(&bench, &setting, &again);
    cr_expect_gt(first.step[2].end_allocated_bytes, again.step[2].end_allocated_bytes, "it keeps batches");
    close_bench(&bench);
}

Test(replay_trainer, what_trainer_would_do_otherwise_is_refused)
{
    struct plim_train_setting setting = by_trainer;
    open_bench(&bench, "llama-3.2-1b");
    setting.accumulation = INT64_C(1) << 17;
    expect_refused(&bench, setting, "65,536");
    close_bench(&bench);
}
