/* flash-linear-attention and causal-conv1d: where they run, and what they save. What they allocate is in
 * tests/golden/fla.jsonl. */
#include "devices/host/host.h"
#include "devices/sim/sim.h"
#include "support/replay_model.h"
#include "workloads/spec/spec.h"
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <math.h>

static const struct plim_train_setting plain = {.micro_batch = 4,
                                                .seq = 1024,
                                                .accumulation = 1,
                                                .precision = PLIM_PRECISION_BF16,
                                                .optimizer = PLIM_OPTIMIZER_ADAMW_FUSED};

static void replay(struct plim_device *device, const char *model, struct plim_linear_attention packages,
                   struct plim_replay *out)
{
    struct plim_train_setting setting = plain;
    setting.linear_attention = packages;
    replay_model(device, model, 4, &setting, out);
}

static const struct plim_linear_attention none, rule = {.rule = PLIM_DELTA_RULE_FLA},
                                          convolution = {.causal_conv1d = true};
static struct plim_replay ours, theirs;

static struct plim_device *open_a100(void)
{
    struct plim_error err = PLIM_ERROR_INIT;
    struct plim_device *device;
    cr_assert(eq(int, plim_sim_open("A100-SXM4-80GB", &device, &err), PLIM_OK), "%s", err.text);
    return device;
}

/* What is kept for backward is in 16 bits, and states are made again. */
Test(fla, saves_memory_and_time)
{
    struct plim_device *a100 = open_a100();
    replay(a100, "qwen3.5-0.8b", none, &theirs);
    replay(a100, "qwen3.5-0.8b", rule, &ours);
    cr_expect(lt(i64, ours.step[3].after_forward_bytes, theirs.step[3].after_forward_bytes));
    double ratio = ours.step[3].seconds / theirs.step[3].seconds;
    cr_expect(ratio > 0.2 && ratio < 0.9, "%g of the time", ratio);
    replay(a100, "qwen3.5-0.8b", convolution, &ours);
    cr_expect(lt(i64, ours.step[3].after_forward_bytes, theirs.step[3].after_forward_bytes));
    cr_expect(lt(dbl, ours.step[3].seconds, theirs.step[3].seconds));
    plim_device_close(&a100);
}

Test(fla, changes_nothing_without_linear_attention)
{
    struct plim_device *a100 = open_a100();
    replay(a100, "llama-3.2-1b", none, &theirs);
    replay(a100, "llama-3.2-1b", (struct plim_linear_attention){PLIM_DELTA_RULE_FLA, true}, &ours);
    cr_expect(eq(i64, ours.peak_reserved_bytes, theirs.peak_reserved_bytes));
    plim_device_close(&a100);
}

/* --- what they compute ------------------------------------------------------------------------ */

static struct plim_spec spec;

static void make_small(void)
{
    struct plim_error err = PLIM_ERROR_INIT;
    cr_assert(eq(int, plim_spec_load("qwen3.5-0.8b", &spec, &err), PLIM_OK), "%s", err.text);
    cr_assert(eq(int, plim_spec_set(&spec, "train.auto_class", "causal-lm", &err), PLIM_OK)); /* no tower */
    cr_assert(eq(int, plim_spec_resolve(&spec, &err), PLIM_OK), "%s", err.text);
    struct plim_model_config *model = &spec.model;
    replay_make_small(model);
    model->layers = 4; /* the last of them attends to all */
    model->linear_key_heads = 2;
    model->linear_value_heads = 4;
    model->linear_key_dim = 12;
    model->linear_value_dim = 10;
}

static void train(struct plim_replayer *replayer, struct plim_train_setting setting,
                  struct plim_linear_attention packages, struct plim_replay *out)
{
    struct plim_error err = PLIM_ERROR_INIT;
    setting.linear_attention = packages;
    cr_assert(eq(int, plim_replay_run(replayer, &spec.model, &setting, out, &err), PLIM_OK), "%s", err.text);
    cr_assert(eq(int, out->verdict, PLIM_OK), "%s", out->why);
}

static double distance(const struct plim_replay *a, const struct plim_replay *b)
{
    double largest = 0;
    for (int i = 0; i < PLIM_REPLAY_STEPS; i++) largest = fmax(largest, fabs(a->step[i].loss - b->step[i].loss));
    return largest;
}

static void open_host(struct plim_device **host, struct plim_replayer **replayer)
{
    struct plim_error err = PLIM_ERROR_INIT;
    cr_assert(eq(int, plim_host_open("", host, &err), PLIM_OK), "%s", err.text);
    cr_assert(eq(int, plim_replayer_create(*host, NULL, replayer, &err), PLIM_OK), "%s", err.text);
}

/* SGD goes by the size of gradients */
static void expect_twins(struct plim_linear_attention packages, struct plim_train_setting setting,
                         const struct plim_train_setting *without, double tolerance)
{
    struct plim_device *host;
    struct plim_replayer *replayer;
    make_small();
    open_host(&host, &replayer);
    train(replayer, *without, none, &theirs);
    train(replayer, setting, packages, &ours);
    cr_expect(lt(dbl, theirs.step[3].loss, theirs.step[0].loss - 2 * tolerance));
    cr_expect(lt(dbl, distance(&ours, &theirs), tolerance), "%lld tokens: %.8g and %.8g", (long long)setting.seq,
              ours.step[3].loss, theirs.step[3].loss);
    plim_replayer_destroy(&replayer);
    plim_device_close(&host);
}

static void expect_the_same(struct plim_linear_attention packages, struct plim_train_setting setting, double tolerance)
{
    expect_twins(packages, setting, &setting, tolerance);
}

/* Of losses about 4.6: some units of the last place of fp32, and what autocast rounds */
static const double FP32_TOLERANCE = 3e-6, FP16_TOLERANCE = 3e-5, BF16_TOLERANCE = 1.2e-4;

/* Rows of `seq` tokens, in each of the ways that layers are run */
static void expect_the_same_by_all(struct plim_linear_attention packages, int64_t seq)
{
    const struct plim_train_setting small = {.micro_batch = 2,
                                             .seq = seq,
                                             .accumulation = 1,
                                             .precision = PLIM_PRECISION_FP32,
                                             .optimizer = PLIM_OPTIMIZER_SGD};
    struct plim_train_setting setting = small;
    expect_the_same(packages, setting, FP32_TOLERANCE);
    setting.checkpointing = PLIM_CHECKPOINTING_FULL;
    expect_the_same(packages, setting, FP32_TOLERANCE);
    setting.use_reentrant = true;
    expect_the_same(packages, setting, FP32_TOLERANCE);
    setting = small;
    setting.precision = PLIM_PRECISION_BF16_MIXED;
    expect_the_same(packages, setting, BF16_TOLERANCE);
    setting.precision = PLIM_PRECISION_FP16_MIXED;
    expect_the_same(packages, setting, FP16_TOLERANCE);
}

Test(fla, convolves_as_transformers_does)
{
    expect_the_same_by_all(convolution, 9);
}

Test(fla, computes_what_transformers_does)
{
    expect_the_same_by_all(rule, 70);
    expect_the_same_by_all((struct plim_linear_attention){PLIM_DELTA_RULE_FLA, true}, 20);
}

/* SFTTrainer's documents of one row do not see each other, so that they train as rows do. */
Test(fla, documents_of_one_row_are_as_rows)
{
    static const int64_t lengths[] = {9, 66};
    struct plim_train_setting rows = {.micro_batch = 3,
                                      .accumulation = 1,
                                      .precision = PLIM_PRECISION_FP32,
                                      .optimizer = PLIM_OPTIMIZER_SGD,
                                      .loop = PLIM_LOOP_TRL_SFT};
    for (int i = 0; i < 2; i++) {
        rows.seq = lengths[i];
        struct plim_train_setting one_row = rows;
        one_row.packing = PLIM_PACKING_ONE_ROW;
        one_row.documents = 1;
        expect_twins((struct plim_linear_attention){PLIM_DELTA_RULE_FLA, true}, one_row, &rows, FP32_TOLERANCE);
    }
}

/* 66 and 65 tokens; 3, 3, 2 and 1: the states have a place for each chunk of theirs, or the device says so. */
Test(fla, documents_of_different_lengths_have_their_chunks)
{
    static const int64_t lengths[][2] = {{131, 2}, {9, 4}};
    struct plim_device *host;
    struct plim_replayer *replayer;
    make_small();
    open_host(&host, &replayer);
    for (int i = 0; i < 2; i++) {
        const struct plim_train_setting setting = {.micro_batch = 1,
                                                   .seq = lengths[i][0],
                                                   .documents = lengths[i][1],
                                                   .accumulation = 1,
                                                   .precision = PLIM_PRECISION_FP32,
                                                   .optimizer = PLIM_OPTIMIZER_SGD,
                                                   .loop = PLIM_LOOP_TRL_SFT,
                                                   .packing = PLIM_PACKING_ONE_ROW};
        train(replayer, setting, rule, &ours);
        cr_expect(lt(dbl, ours.step[3].loss, ours.step[0].loss));
    }
    plim_replayer_destroy(&replayer);
    plim_device_close(&host);
}
