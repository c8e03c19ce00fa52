/* Jobs of TRL's trainers on a device that computes: the host's. What they allocate is in tests/golden/trl.jsonl,
 * dpo.jsonl and grpo.jsonl. */
#include "devices/host/host.h"
#include "workloads/spec/spec.h"
#include "workloads/train/replay.h"
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { CLASSES = 97 };

static const struct plim_train_setting plain = {.micro_batch = 2,
                                                .seq = 12,
                                                .accumulation = 1,
                                                .precision = PLIM_PRECISION_FP32,
                                                .optimizer = PLIM_OPTIMIZER_ADAMW,
                                                .clip = 1,
                                                .grpo = {.generations = 2, .updates = 1, .iterations = 1}};
static struct plim_replay ours, theirs;

/* Of a small model like one of the zoo */
static void replay(const char *name, const struct plim_train_setting *setting, struct plim_replay *out)
{
    static const char *const tiny[][2] = {
        {"model.vocab_size", "97"},      {"model.hidden_size", "32"},         {"model.intermediate_size", "64"},
        {"model.num_hidden_layers", "2"}, {"model.num_attention_heads", "4"}, {"model.num_key_value_heads", "2"},
        {"model.head_dim", "8"},         {"model.dtype", "float32"}};
    static struct plim_spec spec;
    struct plim_error err = PLIM_ERROR_INIT;
    struct plim_device *host;
    struct plim_replayer *replayer;
    cr_assert_eq(plim_spec_load(name, &spec, &err), PLIM_OK, "%s", err.text);
    for (size_t i = 0; i < sizeof(tiny) / sizeof(tiny[0]); i++)
        cr_assert_eq(plim_spec_set(&spec, tiny[i][0], tiny[i][1], &err), PLIM_OK, "%s", err.text);
    bool has_own_head = setting->loop == PLIM_LOOP_TRL_REWARD;
    spec.loop = has_own_head ? setting->loop : PLIM_LOOP_PLAIN;
    cr_assert_eq(plim_spec_resolve(&spec, &err), PLIM_OK, "%s", err.text);
    cr_assert_eq(plim_host_open("", &host, &err), PLIM_OK, "%s", err.text);
    cr_assert_eq(plim_replayer_create(host, NULL, &replayer, &err), PLIM_OK, "%s", err.text);
    cr_assert_eq(plim_replay_run(replayer, &spec.model, setting, out, &err), PLIM_OK, "%s", err.text);
    plim_replayer_destroy(&replayer);
    plim_device_close(&host);
}

/* Losses are numbers. */
static void run(const char *name, const struct plim_train_setting *setting)
{
    replay(name, setting, &ours);
    cr_assert_eq(ours.verdict, PLIM_OK, "%s", ours.why);
    for (int i = 0; i < PLIM_REPLAY_STEPS; i++) cr_expect(isfinite(ours.step[i].loss), "step %d", i);
}

static struct plim_train_setting by(enum plim_loop loop)
{
    struct plim_train_setting setting = plain;
    setting.loop = loop;
    if (loop != PLIM_LOOP_TRL_SFT) setting.prompt = 5;
    return setting;
}

static const struct plim_lora adapters = {.r = 4, .targets = "q_proj,k_proj,v_proj"};

/* --- SFTTrainer ------------------------------------------------------------------------------- */

/* Its loss is the mean over all labels, as a plain loop's. */
static void expect_plain_losses(const char *name, enum plim_precision precision, double tolerance)
{
    struct plim_train_setting setting = plain;
    setting.precision = precision;
    replay(name, &setting, &theirs);
    cr_assert_eq(theirs.verdict, PLIM_OK, "%s", theirs.why);
    setting.loop = PLIM_LOOP_TRL_SFT;
    run(name, &setting);
    cr_expect_lt(theirs.step[PLIM_REPLAY_STEPS - 1].loss, theirs.step[0].loss - 0.01);
    for (int i = 0; i < PLIM_REPLAY_STEPS; i++)
        cr_expect_float_eq(ours.step[i].loss, theirs.step[i].loss, tolerance, "%s, step %d: %.8g and %.8g", name, i,
                           ours.step[i].loss, theirs.step[i].loss);
}

Test(trl, sft_trains_as_a_plain_loop_does)
{
    expect_plain_losses("llama-3.2-1b", PLIM_PRECISION_FP32, 1e-5);
    expect_plain_losses("llama-3.2-1b", PLIM_PRECISION_BF16_MIXED, 1e-2);
    expect_plain_losses("llama-3.2-1b", PLIM_PRECISION_FP16_MIXED, 1e-2);
    expect_plain_losses("gemma-2-2b", PLIM_PRECISION_FP32, 1e-5); /* which caps its logits */
}

/* To a new model all classes are nearly alike, whatever the labels are: if another number of them counted, the loss
 * would be another. */
static void expect_loss_of_chance(const struct plim_train_setting *setting)
{
    run("llama-3.2-1b", setting);
    double whole = ours.step[0].loss * (double)setting->accumulation; /* of labels as many as a step has */
    cr_expect_float_eq(whole, log(CLASSES), 0.1, "%g", whole);
    cr_expect_lt(ours.step[PLIM_REPLAY_STEPS - 1].loss, ours.step[0].loss);
}

Test(trl, what_is_no_label_has_no_loss)
{
    struct plim_train_setting setting = by(PLIM_LOOP_TRL_SFT);
    setting.prompt = 5;
    expect_loss_of_chance(&setting);
    setting.accumulation = 3;
    setting.lora = adapters;
    expect_loss_of_chance(&setting);
    setting.padding = PLIM_PADDING_YES;
    expect_loss_of_chance(&setting);
    setting = by(PLIM_LOOP_TRL_SFT);
    setting.packing = PLIM_PACKING_ONE_ROW;
    setting.documents = 3;
    expect_loss_of_chance(&setting);
    setting.documents = 5; /* not all of one length */
    expect_loss_of_chance(&setting);
}

Test(trl, sft_is_evaluated_and_smoothed)
{
    struct plim_train_setting setting = by(PLIM_LOOP_TRL_SFT);
    setting.evaluation = (struct plim_evaluation){.batch = 3, .batches = 2, .every = 1};
    expect_loss_of_chance(&setting);
    setting.label_smoothing = 0.1;
    expect_loss_of_chance(&setting);
}

Test(trl, prompts_of_several_documents_in_a_row_are_refused)
{
    struct plim_train_setting setting = by(PLIM_LOOP_TRL_SFT);
    setting.packing = PLIM_PACKING_ONE_ROW;
    setting.documents = 3;
    setting.prompt = 2;
    replay("llama-3.2-1b", &setting, &ours);
    cr_expect_eq(ours.verdict, PLIM_UNSUPPORTED);
    cr_expect_not_null(strstr(ours.why, "several documents"), "%s", ours.why);
    setting.documents = 1;
    expect_loss_of_chance(&setting);
}

/* --- DPOTrainer ------------------------------------------------------------------------------- */

/* -log sigmoid(0) where the model is its own reference */
static void expect_begins_as_reference(const struct plim_train_setting *setting)
{
    run("llama-3.2-1b", setting);
    cr_expect_float_eq(ours.step[0].loss, log(2), 1e-6, "%.8g", ours.step[0].loss);
    for (int i = 1; i < PLIM_REPLAY_STEPS; i++) cr_expect_lt(ours.step[i].loss, ours.step[i - 1].loss - 1e-4);
}

Test(trl, dpo_begins_where_its_reference_is)
{
    struct plim_train_setting setting = by(PLIM_LOOP_TRL_DPO);
    expect_begins_as_reference(&setting);
    setting.padding = PLIM_PADDING_LONGEST;
    expect_begins_as_reference(&setting);
    setting.evaluation = (struct plim_evaluation){.batch = 3, .batches = 2, .every = 1};
    setting.precision = PLIM_PRECISION_BF16_MIXED;
    expect_begins_as_reference(&setting);
}

/* B begins as zeros, and so the adapters change nothing. */
Test(trl, dpo_judges_adapters_by_the_model_below)
{
    struct plim_train_setting setting = by(PLIM_LOOP_TRL_DPO);
    setting.lora = adapters;
    setting.optimizer = PLIM_OPTIMIZER_ADAMW;
    run("llama-3.2-1b", &setting);
    cr_expect_float_eq(ours.step[0].loss, log(2), 1e-6, "%.8g", ours.step[0].loss);
    cr_expect_lt(ours.step[PLIM_REPLAY_STEPS - 1].loss, ours.step[0].loss);
}

Test(trl, dpo_knows_its_reference_before)
{
    struct plim_train_setting setting = by(PLIM_LOOP_TRL_DPO);
    setting.precomputed_reference = true;
    run("llama-3.2-1b", &setting);
    cr_expect_float_eq(ours.step[0].loss, log(2), 0.05, "%.8g", ours.step[0].loss);
    cr_expect_lt(ours.step[PLIM_REPLAY_STEPS - 1].loss, ours.step[0].loss);
}

/* --- KTOTrainer ------------------------------------------------------------------------------- */

/* 1 - sigmoid(0) where the model is its own reference, or with its log-probabilities known before */
static void expect_kto_learns(const struct plim_train_setting *setting, double tolerance)
{
    run("llama-3.2-1b", setting);
    double whole = ours.step[0].loss * (double)setting->accumulation;
    cr_expect_float_eq(whole, 0.5, tolerance, "%.8g", whole);
    cr_expect_lt(ours.step[PLIM_REPLAY_STEPS - 1].loss, ours.step[0].loss);
}

Test(trl, kto_begins_where_its_reference_is)
{
    struct plim_train_setting setting = by(PLIM_LOOP_TRL_KTO);
    setting.micro_batch = 3; /* two desirable rows, and one that is not */
    expect_kto_learns(&setting, 1e-6);
    setting.padding = PLIM_PADDING_LONGEST;
    setting.evaluation = (struct plim_evaluation){.batch = 2, .batches = 2, .every = 1};
    setting.precision = PLIM_PRECISION_BF16_MIXED;
    expect_kto_learns(&setting, 1e-6);
    setting.accumulation = 2;
    expect_kto_learns(&setting, 1e-6);
}

Test(trl, kto_judges_adapters_by_the_model_below)
{
    struct plim_train_setting setting = by(PLIM_LOOP_TRL_KTO);
    setting.lora = adapters;
    setting.optimizer = PLIM_OPTIMIZER_ADAMW;
    expect_kto_learns(&setting, 1e-6);
}

Test(trl, kto_knows_its_reference_before)
{
    struct plim_train_setting setting = by(PLIM_LOOP_TRL_KTO);
    setting.precomputed_reference = true;
    expect_kto_learns(&setting, 0.05);
}

Test(trl, kto_needs_more_than_a_row)
{
    struct plim_train_setting setting = by(PLIM_LOOP_TRL_KTO);
    setting.micro_batch = 1;
    replay("llama-3.2-1b", &setting, &ours);
    cr_expect_neq(ours.verdict, PLIM_OK);
    cr_expect(strstr(ours.why, "a micro-batch of one row"), "%s", ours.why);
}

/* --- RewardTrainer ---------------------------------------------------------------------------- */

/* To a new model all rows are nearly alike, and their rewards too: -log sigmoid(0). */
static void expect_rewards_to_part(const struct plim_train_setting *setting, double tolerance)
{
    run("llama-3.2-1b", setting);
    double whole = ours.step[0].loss * (double)setting->accumulation;
    cr_expect_float_eq(whole, log(2), 0.05, "%.8g", whole);
    for (int i = 1; i < PLIM_REPLAY_STEPS; i++) cr_expect_lt(ours.step[i].loss, ours.step[i - 1].loss - tolerance);
}

Test(trl, rewards_part_from_one_another)
{
    struct plim_train_setting setting = by(PLIM_LOOP_TRL_REWARD);
    setting.prompt = 0;
    expect_rewards_to_part(&setting, 1e-3);
    setting.padding = PLIM_PADDING_YES;
    setting.evaluation = (struct plim_evaluation){.batch = 3, .batches = 2, .every = 1};
    expect_rewards_to_part(&setting, 1e-3);
    setting.accumulation = 3;
    expect_rewards_to_part(&setting, 1e-4);
    setting.accumulation = 1;
    setting.center_rewards = 0.01; /* of rewards around 0 it is next to nothing */
    expect_rewards_to_part(&setting, 1e-3);
    double near = ours.step[0].loss;
    setting.center_rewards = 100;
    run("llama-3.2-1b", &setting);
    cr_expect_gt(ours.step[0].loss, near + 0.01);
}

/* A score that is not trained has adapters below it learn what it rewards. */
Test(trl, rewards_are_learned_by_adapters)
{
    struct plim_train_setting setting = by(PLIM_LOOP_TRL_REWARD);
    setting.prompt = 0;
    setting.lora = adapters;
    expect_rewards_to_part(&setting, 0);
    double frozen = ours.step[PLIM_REPLAY_STEPS - 1].loss;
    snprintf(setting.lora.saved, sizeof(setting.lora.saved), "score");
    expect_rewards_to_part(&setting, 0);
    cr_expect_lt(ours.step[PLIM_REPLAY_STEPS - 1].loss, frozen);
}

/* --- GRPOTrainer ------------------------------------------------------------------------------ */

/* Advantages of a group add up to nothing, and so does the first loss of its samples, which the model has not left. */
Test(trl, grpo_improves_on_its_samples)
{
    struct plim_train_setting setting = by(PLIM_LOOP_TRL_GRPO);
    setting.grpo.updates = 2;
    for (int how = PLIM_GRPO_LOSS_DAPO; how < PLIM_GRPO_LOSS_COUNT; how++) {
        setting.grpo.loss = (enum plim_grpo_loss)how;
        setting.grpo.reference = how == PLIM_GRPO_LOSS_BNPO;
        run("llama-3.2-1b", &setting);
        cr_expect_float_eq(ours.step[0].loss, 0, 1e-6, "%g", ours.step[0].loss);
        cr_expect_lt(ours.step[1].loss, -1e-3, "%g", ours.step[1].loss);
        cr_expect_float_eq(ours.step[2].loss, 0, 2e-3, "new samples: %g", ours.step[2].loss);
    }
}

/* All answers are as long, so that a mean over tokens is one over rows and over what fits. */
Test(trl, losses_of_grpo_differ_by_lengths_alone)
{
    struct plim_train_setting setting = by(PLIM_LOOP_TRL_GRPO);
    setting.grpo.correction = PLIM_GRPO_CORRECTION_TOKEN_TRUNCATE;
    run("llama-3.2-1b", &setting);
    theirs = ours;
    for (int how = PLIM_GRPO_LOSS_DAPO + 1; how < PLIM_GRPO_LOSS_COUNT; how++) {
        setting.grpo.loss = (enum plim_grpo_loss)how;
        run("llama-3.2-1b", &setting);
        for (int i = 0; i < PLIM_REPLAY_STEPS; i++)
            cr_expect_float_eq(ours.step[i].loss, theirs.step[i].loss, 1e-6);
    }
}

Test(trl, grpo_corrects_for_the_server_in_every_way)
{
    struct plim_train_setting setting = by(PLIM_LOOP_TRL_GRPO);
    setting.micro_batch = 4;
    setting.accumulation = 2;
    setting.grpo.iterations = 2;
    for (int how = PLIM_GRPO_CORRECTION_NONE; how < PLIM_GRPO_CORRECTION_COUNT; how++) {
        setting.grpo.correction = (enum plim_grpo_correction)how;
        setting.lora = how % 2 ? adapters : (struct plim_lora){0};
        setting.grpo.reference = how > 2;
        setting.padding = how > 1 ? PLIM_PADDING_YES : PLIM_PADDING_NO;
        run("llama-3.2-1b", &setting);
    }
}

Test(trl, grpo_generates_its_own_answers)
{
    struct plim_train_setting setting = by(PLIM_LOOP_TRL_GRPO);
    setting.grpo.vllm = PLIM_VLLM_NONE;
    for (int i = 0; i < 4; i++) {
        setting.lora = i % 2 ? adapters : (struct plim_lora){0};
        setting.precision = i > 1 ? PLIM_PRECISION_BF16_MIXED : PLIM_PRECISION_FP32;
        setting.padding = i % 2 ? PLIM_PADDING_YES : PLIM_PADDING_NO;
        setting.grpo.updates = 1 + i / 2;
        setting.grpo.reference = i > 1;
        run("llama-3.2-1b", &setting);
        if (!setting.padding) cr_expect_float_eq(ours.step[0].loss, 0, 1e-3, "%g", ours.step[0].loss);
    }
}

/* --- several ranks ---------------------------------------------------------------------------- */

/* All of them are taken to have the same, so that each has the loss of one alone. */
Test(trl, ranks_that_are_alike_have_one_loss)
{
    for (int loop = PLIM_LOOP_TRL_SFT; loop <= PLIM_LOOP_TRL_GRPO; loop++) {
        struct plim_train_setting setting = by((enum plim_loop)loop);
        setting.grpo.correction = PLIM_GRPO_CORRECTION_TOKEN_MASK;
        run("llama-3.2-1b", &setting);
        theirs = ours;
        setting.sharding = PLIM_SHARDING_DDP;
        setting.world = 2;
        run("llama-3.2-1b", &setting);
        for (int i = 0; i < (loop == PLIM_LOOP_TRL_GRPO ? 1 : PLIM_REPLAY_STEPS); i++)
            cr_expect_float_eq(ours.step[i].loss, theirs.step[i].loss, 1e-4, "loop %d, step %d: %g and %g", loop, i,
                               ours.step[i].loss, theirs.step[i].loss);
    }
}
