/* Jobs of LLaMA-Factory's own trainers, axolotl's DPO and ms-swift's `swift rlhf` on a device that computes: the
 * host's. What they allocate is in tests/golden/preferences.jsonl, axolotl_rl.jsonl and swift_rlhf.jsonl. */
#include "devices/catalogue/catalogue.h"
#include "devices/host/host.h"
#include "devices/sim/sim.h"
#include "support/arrays.h"
#include "support/slopes.h"
#include "workloads/spec/spec.h"
#include "workloads/train/pairwise.h"
#include "workloads/train/replay.h"
#include <criterion/criterion.h>
#include <math.h>

enum { CLASSES = 97 };

static const struct plim_train_setting plain = {.micro_batch = 2,
                                                .seq = 12,
                                                .accumulation = 1,
                                                .precision = PLIM_PRECISION_FP32,
                                                .optimizer = PLIM_OPTIMIZER_ADAMW,
                                                .clip = 1};
static struct plim_replay ours;

/* Of a small llama, on a device, which is closed */
static void run_on(struct plim_device *device, const struct plim_train_setting *setting)
{
    static const char *const tiny[][2] = {
        {"model.vocab_size", "97"},       {"model.hidden_size", "32"},        {"model.intermediate_size", "64"},
        {"model.num_hidden_layers", "2"}, {"model.num_attention_heads", "4"}, {"model.num_key_value_heads", "2"},
        {"model.head_dim", "8"},          {"model.dtype", "float32"}};
    static struct plim_spec spec;
    struct plim_error err = PLIM_ERROR_INIT;
    struct plim_replayer *replayer;
    cr_assert_eq(plim_spec_load("llama-3.2-1b", &spec, &err), PLIM_OK, "%s", err.text);
    for (size_t i = 0; i < sizeof(tiny) / sizeof(tiny[0]); i++)
        cr_assert_eq(plim_spec_set(&spec, tiny[i][0], tiny[i][1], &err), PLIM_OK, "%s", err.text);
    spec.loop = plim_loop_is_reward(setting->loop) ? setting->loop : PLIM_LOOP_PLAIN; /* which makes it a classifier */
    cr_assert_eq(plim_spec_resolve(&spec, &err), PLIM_OK, "%s", err.text);
    cr_assert_eq(plim_replayer_create(device, NULL, &replayer, &err), PLIM_OK, "%s", err.text);
    cr_assert_eq(plim_replay_run(replayer, &spec.model, setting, &ours, &err), PLIM_OK, "%s", err.text);
    plim_replayer_destroy(&replayer);
    plim_device_close(&device);
}

static void run(const struct plim_train_setting *setting)
{
    struct plim_error err = PLIM_ERROR_INIT;
    struct plim_device *host;
    cr_assert_eq(plim_host_open("", &host, &err), PLIM_OK, "%s", err.text);
    run_on(host, setting);
    cr_assert_eq(ours.verdict, PLIM_OK, "%s", ours.why);
}

static struct plim_train_setting by(enum plim_loop loop)
{
    struct plim_train_setting setting = plain;
    setting.loop = loop;
    return setting;
}

/* The loss of the first step, and that every step after it has a smaller one. */
static void expect_losses(const struct plim_train_setting *setting, double first, double tolerance)
{
    run(setting);
    double whole = ours.step[0].loss * (double)setting->accumulation;
    cr_expect_float_eq(whole, first, tolerance, "loop %d: %.8g, expected %.8g", setting->loop, whole, first);
    for (int i = 1; i < PLIM_REPLAY_STEPS; i++)
        cr_expect_lt(ours.step[i].loss, ours.step[i - 1].loss, "loop %d, step %d: %.8g", setting->loop, i,
                     ours.step[i].loss);
}

static const struct plim_lora adapters = {.r = 4, .targets = "q_proj,k_proj,v_proj"};

/* As it is (a micro-batch of two), of rows of several lengths, with evaluations and accumulation, and of adapters */
static void expect_in_every_way(struct plim_train_setting setting, double first, double tolerance)
{
    expect_losses(&setting, first, tolerance);
    setting.padding = PLIM_PADDING_YES;
    setting.evaluation = (struct plim_evaluation){.batch = 3, .batches = 2, .every = 1};
    expect_losses(&setting, first, tolerance);
    setting.accumulation = 3;
    expect_losses(&setting, first, tolerance);
    setting.lora = adapters;
    expect_losses(&setting, first, tolerance);
}

/* -log sigmoid(0): the model is its own reference. */
Test(llamafactory, dpo_begins_where_its_reference_is)
{
    struct plim_train_setting setting = by(PLIM_LOOP_LLAMAFACTORY_DPO);
    expect_in_every_way(setting, log(2), 1e-5);
    setting.preference_loss = PLIM_PREFERENCE_IPO;
    expect_in_every_way(setting, log(2), 1e-5);
}

/* And its answers' difference, of which it is 1 / (2 * beta) away: 25 */
Test(llamafactory, dpo_of_axolotls_begins_there_too)
{
    struct plim_train_setting setting = by(PLIM_LOOP_AXOLOTL_DPO);
    expect_in_every_way(setting, log(2), 1e-5);
    setting.preference_loss = PLIM_PREFERENCE_IPO;
    expect_in_every_way(setting, 25, 1e-3);
}

/* To a new model all answers are nearly alike, and each token as likely as any. */
Test(llamafactory, what_has_no_reference_begins_by_chance)
{
    struct plim_train_setting setting = by(PLIM_LOOP_LLAMAFACTORY_DPO);
    setting.preference_loss = PLIM_PREFERENCE_ORPO;
    expect_in_every_way(setting, log(CLASSES) + 0.1 * log(2), 0.1);
    setting.preference_loss = PLIM_PREFERENCE_SIMPO; /* -log sigmoid(0.1 * (0 - 0.5 / 0.1)) */
    expect_in_every_way(setting, log(1 + exp(0.5)), 0.02);
}

/* ms-swift's, of which the logits of a prompt are not computed */
Test(llamafactory, dpo_of_swifts_begins_there_too)
{
    struct plim_train_setting setting = by(PLIM_LOOP_SWIFT_DPO);
    expect_in_every_way(setting, log(2), 1e-5);
    setting.prompt = 5;
    expect_in_every_way(setting, log(2), 1e-5);
    setting.rpo_alpha = 0.1;
    expect_in_every_way(setting, log(2) + 0.1 * log(CLASSES), 0.02);
    setting.rpo_alpha = 0;
    setting.preference_loss = PLIM_PREFERENCE_IPO;
    expect_in_every_way(setting, 25, 1e-3);
}

/* The cross entropy of the chosen answers is a part of these losses. */
Test(llamafactory, what_has_no_reference_of_swifts_begins_by_chance)
{
    struct plim_train_setting setting = by(PLIM_LOOP_SWIFT_ORPO);
    expect_in_every_way(setting, log(CLASSES) + 0.1 * log(2), 0.1);
    setting.loop = PLIM_LOOP_SWIFT_CPO;
    expect_in_every_way(setting, log(CLASSES) + log(2), 0.3); /* sums over the tokens of an answer differ more */
    setting.preference_loss = PLIM_PREFERENCE_SIMPO; /* -log sigmoid(0.1 * (0 - 1 / 0.1)) */
    expect_in_every_way(setting, log(CLASSES) + log(1 + exp(1)), 0.1);
}

/* TRL's own, whose margin is -log sigmoid(0.1 * (0 - 0.5 / 0.1)) */
Test(llamafactory, what_has_no_reference_of_trls_begins_by_chance)
{
    struct plim_train_setting setting = by(PLIM_LOOP_TRL_ORPO);
    setting.prompt = 5;
    expect_in_every_way(setting, log(CLASSES) + 0.1 * log(2), 0.1);
    setting.loop = PLIM_LOOP_TRL_CPO;
    expect_in_every_way(setting, log(CLASSES) + log(2), 0.3);
    setting.preference_loss = PLIM_PREFERENCE_SIMPO;
    expect_in_every_way(setting, log(CLASSES) + log(1 + exp(0.5)), 0.1);
}

Test(llamafactory, rewards_of_swifts_begin_alike)
{
    struct plim_train_setting setting = by(PLIM_LOOP_SWIFT_RM);
    expect_in_every_way(setting, log(2), 0.1);
    setting.center_rewards = 0.01;
    expect_losses(&setting, log(2), 0.1);
}

/* To a new model all answers are nearly alike. What the value head drops makes the loss jump. */
Test(llamafactory, rewards_begin_alike)
{
    struct plim_train_setting setting = by(PLIM_LOOP_LLAMAFACTORY_RM);
    for (int i = 0; i < 3; i++) {
        if (i) setting.evaluation = (struct plim_evaluation){.batch = 3, .batches = 2, .every = 1};
        if (i) setting.padding = PLIM_PADDING_YES;
        if (i == 2) setting.lora = adapters;
        run(&setting);
        cr_expect_float_eq(ours.step[0].loss, log(2), 0.1, "%d: %.8g", i, ours.step[0].loss);
    }
}

/* Of two pairs of rows of three tokens, the last of which has a token less: rewards are those of the last tokens. */
Test(llamafactory, a_reward_is_that_of_the_last_token)
{
    static const double values[] = {9, 9, 2, 9, 9, -1, 9, 9, 0.5, 9, 1, 9};
    struct engine *e = slopes_open();
    struct pair scores;
    struct tensor *x = tensor_keep(tensor_empty(e, PLIM_F32, SHAPE(4, 3)));
    struct tensor *mask = tensor_keep(op_full(e, PLIM_I64, SHAPE(4, 3), 1));
    for (int i = 0; i < 12; i++) array_put(&x->a, i, values[i]);
    array_put(&mask->a, 11, 0);
    struct tensor *loss = pairwise_loss(e, x, mask, &scores);
    cr_expect_float_eq(array_at(&loss->a, 0), (log(1 + exp(-1.5)) + log(1 + exp(2))) / 2, 1e-6);
    cr_expect_eq(array_at(&scores.chosen->a, 1), -1);
    cr_expect_eq(array_at(&scores.rejected->a, 1), 1);
    tensor_drop_all(e, loss, x, mask);
    pair_drop(e, scores);
    slopes_close();
}

/* Of logits (2, 3, 2) without their last tokens: the mask's elements are those of (2, 2). */
Test(llamafactory, rows_that_lie_apart_are_chosen_by_a_mask)
{
    struct engine *e = slopes_open();
    struct tensor *x = tensor_keep(tensor_empty(e, PLIM_F32, SHAPE(2, 3, 2)));
    struct tensor *part = tensor_keep(op_slice(e, x, 1, 0, 2));
    struct tensor *mask = tensor_keep(op_full(e, PLIM_BOOL, SHAPE(2, 2), 1));
    for (int i = 0; i < 12; i++) array_put(&x->a, i, i);
    array_put(&mask->a, 0, 0);
    struct tensor *rows = tensor_keep(op_apart_where(e, part, mask, 3));
    static const double expected[] = {2, 3, 6, 7, 8, 9};
    for (int i = 0; i < 6; i++) cr_expect_eq(array_at(&rows->a, i), expected[i], "%d", i);
    tensor_drop_all(e, rows, part, mask, x);
    slopes_close();
}

/* 1 - sigmoid(0), of rows of both kinds, or, of a micro-batch of one, of desirable ones alone */
Test(llamafactory, kto_begins_where_its_reference_is)
{
    struct plim_train_setting setting = by(PLIM_LOOP_LLAMAFACTORY_KTO);
    setting.micro_batch = 1;
    expect_losses(&setting, 0.5, 1e-6);
    setting.micro_batch = 4;
    expect_in_every_way(setting, 0.5, 1e-5);
    setting.loop = PLIM_LOOP_SWIFT_KTO;
    expect_in_every_way(setting, 0.5, 1e-5);
    setting.prompt = 5;
    expect_in_every_way(setting, 0.5, 1e-5);
    setting.micro_batch = 1;
    expect_losses(&setting, 0.5, 1e-6);
}

/* All ranks are taken to have the same, so that each has the loss of one alone. */
Test(llamafactory, ranks_that_are_alike_have_one_loss)
{
    for (int loop = PLIM_LOOP_TRL_ORPO; loop < PLIM_LOOP_COUNT; loop++) {
        struct plim_train_setting setting = by((enum plim_loop)loop);
        setting.lora = adapters;
        run(&setting);
        struct plim_replay alone = ours;
        setting.sharding = PLIM_SHARDING_DDP;
        setting.world = 2;
        run(&setting);
        for (int i = 0; i < PLIM_REPLAY_STEPS; i++)
            cr_expect_float_eq(ours.step[i].loss, alone.step[i].loss, 1e-4, "loop %d, step %d: %g and %g", loop, i,
                               ours.step[i].loss, alone.step[i].loss);
    }
}

/* Wherever memory runs out, in steps and evaluations, of a model and of adapters, it is an answer. */
Test(llamafactory, memory_may_run_out_anywhere)
{
    enum { MIB = 1 << 20, LEAST = 20, MOST = 260, STEP = 2 };
    const struct plim_gpu *gpu;
    struct plim_error err = PLIM_ERROR_INIT;
    struct plim_device *device;
    cr_assert_eq(plim_catalogue_find("A100-SXM4-80GB", &gpu, &err), PLIM_OK, "%s", err.text);
    for (int loop = PLIM_LOOP_AXOLOTL_DPO; loop < PLIM_LOOP_COUNT; loop++) {
        struct plim_train_setting setting = by((enum plim_loop)loop);
        setting.checkpointing = PLIM_CHECKPOINTING_FULL;
        setting.micro_batch = 16;
        setting.seq = 256;
        setting.evaluation = (struct plim_evaluation){.batch = 40, .batches = 2, .every = 1};
        int fits = 0, fails = 0;
        for (int mib = LEAST; mib <= MOST; mib += STEP) {
            setting.lora = mib / STEP % 2 ? adapters : (struct plim_lora){0};
            cr_assert_eq(plim_sim_open_gpu(gpu, (int64_t)mib * MIB, &device, &err), PLIM_OK, "%s", err.text);
            run_on(device, &setting);
            fits += ours.verdict == PLIM_OK;
            fails += ours.verdict == PLIM_OOM;
        }
        cr_expect_gt(fails, 3, "loop %d", loop);
        cr_expect_eq(fits + fails, (MOST - LEAST) / STEP + 1, "loop %d: %d fit and %d do not", loop, fits, fails);
    }
}
