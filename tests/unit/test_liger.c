/* Liger's kernels: what they save, and that models train with them as without. What they allocate is in
 * tests/golden/liger.jsonl. */
#include "devices/host/host.h"
#include "devices/sim/sim.h"
#include "support/replay_model.h"
#include "workloads/spec/spec.h"
#include <criterion/criterion.h>
#include <math.h>

static const struct plim_train_setting liger = {.micro_batch = 4,
                                                .seq = 1024,
                                                .accumulation = 1,
                                                .precision = PLIM_PRECISION_BF16,
                                                .optimizer = PLIM_OPTIMIZER_ADAMW_FUSED,
                                                .liger = true};

static void replay(struct plim_device *device, const struct plim_train_setting *setting,
                   struct plim_replay *out)
{
    replay_model(device, "llama-3.2-1b", 2, setting, out);
}

static struct plim_replay ours, theirs;

/* The logits of 4096 tokens and what is computed of them in fp32 are most of the memory otherwise. */
Test(liger, saves_memory_at_little_cost)
{
    struct plim_error err = PLIM_ERROR_INIT;
    struct plim_device *a100;
    struct plim_train_setting plain = liger;
    plain.liger = false;
    cr_assert_eq(plim_sim_open("A100-SXM4-80GB", &a100, &err), PLIM_OK, "%s", err.text);
    replay(a100, &liger, &ours);
    replay(a100, &plain, &theirs);
    int64_t logits_bytes = 4 * 1024 * (int64_t)128256 * 2;
    cr_expect_lt(ours.peak_allocated_bytes, theirs.peak_allocated_bytes - 3 * logits_bytes);
    double ratio = ours.step[3].seconds / theirs.step[3].seconds;
    /* the products remain, and each chunk of rows reads the head's weight and adds to its gradient */
    cr_expect(ratio > 0.8 && ratio < 1.2, "%g of the time", ratio);
    plim_device_close(&a100);
}

/* --- what they compute ------------------------------------------------------------------------ */

static struct plim_spec spec;

static void make_small(const char *name)
{
    struct plim_error err = PLIM_ERROR_INIT;
    cr_assert_eq(plim_spec_load(name, &spec, &err), PLIM_OK, "%s", err.text);
    struct plim_model_config *model = &spec.model;
    replay_make_small(model);
    /* caps that change something */
    if (model->attn_logit_softcapping > 0) model->attn_logit_softcapping = 0.5;
    if (model->final_logit_softcapping > 0) model->final_logit_softcapping = 0.25;
}

static void train(struct plim_replayer *replayer, const struct plim_train_setting *setting, struct plim_replay *out)
{
    struct plim_error err = PLIM_ERROR_INIT;
    cr_assert_eq(plim_replay_run(replayer, &spec.model, setting, out, &err), PLIM_OK, "%s", err.text);
    cr_assert_eq(out->verdict, PLIM_OK, "%s", out->why);
}

/* Of losses about 4.6: four units of the last place of fp32, and what autocast rounds */
static const double FP32_TOLERANCE = 2e-6, FP16_TOLERANCE = 5e-5, BF16_TOLERANCE = 3e-4;

/* SGD goes by the size of gradients; what it changes in three steps is many tolerances. */
static void expect_the_same(const char *name, struct plim_train_setting setting, double tolerance)
{
    struct plim_error err = PLIM_ERROR_INIT;
    struct plim_device *host;
    struct plim_replayer *replayer;
    make_small(name);
    cr_assert_eq(plim_host_open("", &host, &err), PLIM_OK, "%s", err.text);
    cr_assert_eq(plim_replayer_create(host, NULL, &replayer, &err), PLIM_OK, "%s", err.text);
    setting.liger = false;
    train(replayer, &setting, &theirs);
    setting.liger = true;
    train(replayer, &setting, &ours);
    cr_expect(theirs.step[3].loss < theirs.step[0].loss - 10 * tolerance, "%s: from %.8g to %.8g", name,
              theirs.step[0].loss, theirs.step[3].loss);
    for (int i = 0; i < PLIM_REPLAY_STEPS; i++)
        cr_expect(fabs(ours.step[i].loss - theirs.step[i].loss) < tolerance, "%s, step %d: %.8g and %.8g", name, i,
                  ours.step[i].loss, theirs.step[i].loss);
    plim_replayer_destroy(&replayer);
    plim_device_close(&host);
}

static const struct plim_train_setting small = {.micro_batch = 2,
                                                .seq = 12,
                                                .accumulation = 1,
                                                .precision = PLIM_PRECISION_FP32,
                                                .optimizer = PLIM_OPTIMIZER_SGD};

/* What Liger has for them differs: norms by their offset, and by whether a gradient takes another's place; gates by
 * their function; logits by a cap. All families are in tests/losses. */
Test(liger, trains_as_the_familys_own_do)
{
    const char *const names[] = {"llama-3.2-1b", "gemma-2-2b", "qwen3-0.6b", "phi-3-mini"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) expect_the_same(names[i], small, FP32_TOLERANCE);
}

/* Half of the loss, the sum over Trainer's number of labels, and the loss times 65536: gradients that were made in
 * forward are multiplied by the gradient of the loss, where that is not 1. */
Test(liger, scales_the_gradients_that_forward_made)
{
    struct plim_train_setting setting = small;
    for (int i = 0; i < 2; i++) {
        setting.liger_kernels.loss = i ? PLIM_LIGER_CHOICE_OF_LOGITS : PLIM_LIGER_CHOICE_AUTO;
        setting.accumulation = 2;
        expect_the_same("llama-3.2-1b", setting, FP32_TOLERANCE);
        setting.accumulation = 1;
        setting.loop = PLIM_LOOP_TRAINER;
        expect_the_same("llama-3.2-1b", setting, FP32_TOLERANCE);
        setting.loop = PLIM_LOOP_PLAIN;
        setting.precision = PLIM_PRECISION_FP16_MIXED;
        expect_the_same("llama-3.2-1b", setting, FP16_TOLERANCE);
        setting.precision = PLIM_PRECISION_FP32;
    }
}

Test(liger, trains_in_16_bits_as_the_familys_own_do)
{
    struct plim_train_setting setting = small;
    setting.precision = PLIM_PRECISION_BF16_MIXED;
    expect_the_same("gemma-2-2b", setting, BF16_TOLERANCE);
}
