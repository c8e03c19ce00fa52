/* Runs of transformers' Trainer on a simulated GPU. */
#include "devices/host/host.h"
#include "replay_bench.h"
#include <math.h>

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

Test(replay_trainer, running_out_of_memory_where_labels_are_smoothed_is_an_answer)
{
    struct plim_train_setting setting = by_trainer;
    setting.label_smoothing = 0.1;
    setting.evaluation = (struct plim_evaluation){.batch = 4, .batches = 2, .every = 1};
    run_out_anywhere(&setting);
}

static struct plim_train_setting by_grpo(void)
{
    struct plim_train_setting setting = by_trainer;
    setting.loop = PLIM_LOOP_TRL_GRPO;
    setting.prompt = setting.seq / 4;
    setting.grpo = (struct plim_grpo){.generations = 2,
                                      .updates = 2,
                                      .iterations = 1,
                                      .reference = true,
                                      .correction = PLIM_GRPO_CORRECTION_TOKEN_MASK};
    return setting;
}

Test(replay_trainer, running_out_of_memory_where_answers_are_scored_is_an_answer)
{
    struct plim_train_setting setting = by_grpo();
    run_out_anywhere(&setting);
}

Test(replay_trainer, what_grpo_trainer_is_not_known_with_is_refused)
{
    struct plim_train_setting sharded = by_grpo(), quantized = by_grpo(), short_rows = by_grpo(), fits = by_grpo();
    open_bench(&bench, "gpt2-124m");
    sharded.world = 2;
    sharded.sharding = PLIM_SHARDING_FSDP;
    expect_refused(&bench, sharded, "in which it gathers what it sends");
    sharded.sharding = PLIM_SHARDING_ZERO3;
    expect_refused(&bench, sharded, "in which it gathers what it sends");
    quantized.quantization.type = PLIM_QUANTIZATION_NF4;
    expect_refused(&bench, quantized, "makes the weights anew");
    short_rows.prompt = short_rows.seq;
    expect_refused(&bench, short_rows, "is not longer than its prompt");
    fits.prompt = fits.seq - 1;
    run(&bench, &fits, &first);
    cr_expect_eq(first.verdict, PLIM_OK, "%s", first.why);
    close_bench(&bench);
}

static double loss_on_host(double smoothing, int step)
{
    static const char *const tiny[][2] = {
        {"model.vocab_size", "97"},      {"model.hidden_size", "32"},         {"model.intermediate_size", "64"},
        {"model.num_hidden_layers", "2"}, {"model.num_attention_heads", "4"}, {"model.num_key_value_heads", "2"},
        {"model.head_dim", "8"},         {"model.dtype", "float32"}};
    struct plim_train_setting setting = {.micro_batch = 3,
                                         .seq = 16,
                                         .accumulation = 1,
                                         .optimizer = PLIM_OPTIMIZER_ADAMW,
                                         .loop = PLIM_LOOP_TRAINER,
                                         .label_smoothing = smoothing};
    struct plim_error err = PLIM_ERROR_INIT;
    cr_assert_eq(plim_spec_load("llama-3.2-1b", &bench.spec, &err), PLIM_OK, "%s", err.text);
    for (size_t i = 0; i < sizeof(tiny) / sizeof(tiny[0]); i++)
        cr_assert_eq(plim_spec_set(&bench.spec, tiny[i][0], tiny[i][1], &err), PLIM_OK, "%s", err.text);
    cr_assert_eq(plim_spec_resolve(&bench.spec, &err), PLIM_OK, "%s", err.text);
    cr_assert_eq(plim_host_open("", &bench.device, &err), PLIM_OK, "%s", err.text);
    cr_assert_eq(plim_replayer_create(bench.device, NULL, &bench.replayer, &err), PLIM_OK, "%s", err.text);
    run(&bench, &setting, &first);
    cr_assert_eq(first.verdict, PLIM_OK, "%s", first.why);
    close_bench(&bench);
    return first.step[step].loss;
}

/* A smoothed loss is a mean of two, that of the labels and that of all classes, and so is its gradient. */
Test(replay_trainer, labels_are_smoothed)
{
    double labels = loss_on_host(0, 0), all = loss_on_host(1, 0);
    cr_expect_float_eq(loss_on_host(0.25, 0), 0.75 * labels + 0.25 * all, 1e-4);
    cr_expect_float_eq(all, log(97), 0.05, "all are as likely");
    cr_expect_gt(fabs(labels - all), 1e-3);
    for (int step = 1; step < PLIM_REPLAY_STEPS; step++) {
        cr_expect_float_eq(loss_on_host(1e-9, step), loss_on_host(0, step), 1e-5);
        cr_expect_lt(loss_on_host(1, step), all - 1e-4 * step, "the loss of all classes goes down");
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
    plim_device_limit(bench.device, first.peak_reserved_bytes + (28 << 20));
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

static struct plim_train_setting evaluating(int64_t batch, int64_t every)
{
    struct plim_train_setting setting = by_trainer;
    setting.evaluation = (struct plim_evaluation){.batch = batch, .batches = 2, .every = every};
    return setting;
}

Test(replay_trainer, running_out_of_memory_in_an_evaluation_is_an_answer)
{
    struct plim_train_setting setting = evaluating(2 * by_trainer.micro_batch, 2);
    setting.evaluation.keeps = PLIM_PREDICTIONS_LOGITS;
    run_out_anywhere(&setting);
    setting.evaluation.keeps = PLIM_PREDICTIONS_ARGMAX;
    run_out_anywhere(&setting);
    setting.evaluation.accumulation = 1;
    setting.world = 2;
    setting.sharding = PLIM_SHARDING_FSDP;
    run_out_anywhere(&setting);
}

/* Steps between evaluations that repeat are left out: what comes of it is what comes of all of them. */
Test(replay_trainer, evaluations_are_played_among_steps_that_repeat)
{
    enum { EVERY = 37, EVALUATIONS = 3 };
    struct plim_train_setting setting = evaluating(64, EVERY);
    struct plim_replay_step step;
    struct plim_error err = PLIM_ERROR_INIT;
    open_bench(&bench, "gpt2-124m");
    prove_by_trainer(&setting, &first);
    cr_expect_gt(first.evaluations, 1);
    cr_expect_lt(first.steps_done, first.evaluations * EVERY, "none was left out");
    cr_expect(first.repeats_after > 0 || first.small_blocks_move);
    cr_expect_gt(first.evaluation_allocated_bytes, first.step[2].peak_allocated_bytes);
    cr_expect_eq(first.peak_reserved_bytes, first.evaluation_reserved_bytes);

    FILE *trace = fopen("/dev/null", "w"); /* while one is written everything is run */
    plim_replayer_trace(bench.replayer, trace);
    plim_replay_begin(bench.replayer, &bench.spec.model, &setting);
    for (int i = 0; i < EVALUATIONS * EVERY; i++) cr_assert(plim_replay_next(bench.replayer, &step));
    cr_assert_eq(plim_replay_end(bench.replayer, &again, &err), PLIM_OK);
    plim_replayer_trace(bench.replayer, NULL);
    fclose(trace);
    cr_expect_eq(again.evaluations, EVALUATIONS);
    cr_expect_eq(again.peak_allocated_bytes, first.peak_allocated_bytes);
    cr_expect_eq(again.peak_reserved_bytes, first.peak_reserved_bytes);
    close_bench(&bench);
}

Test(replay_trainer, an_evaluation_before_the_first_step_is_played_and_named)
{
    struct plim_train_setting setting = evaluating(64, 500);
    setting.evaluation.at_start = true;
    open_bench(&bench, "gpt2-124m");
    run(&bench, &setting, &first);
    cr_expect_eq(first.verdict, PLIM_OK);
    cr_expect_gt(first.start_allocated_bytes, 0);
    cr_expect_gt(first.evaluation_allocated_bytes, first.start_allocated_bytes, "later there are states, too");
    plim_device_limit(bench.device, first.start_reserved_bytes / 2);
    run(&bench, &setting, &again);
    cr_expect_eq(again.verdict, PLIM_OOM);
    cr_expect_str_eq(again.oom_where, "evaluation before the first step");
    close_bench(&bench);
}

Test(replay_trainer, an_evaluation_that_does_not_fit_is_named)
{
    struct plim_train_setting setting = evaluating(64, 500);
    open_bench(&bench, "gpt2-124m");
    run(&bench, &by_trainer, &first);
    plim_device_limit(bench.device, first.peak_reserved_bytes + (8 << 20));
    run(&bench, &setting, &again);
    cr_expect_eq(again.verdict, PLIM_OOM);
    cr_expect_str_eq(again.oom_where, "evaluation, step 500");
    close_bench(&bench);
}
