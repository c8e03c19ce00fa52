/* Cut cross entropy: where it runs, and what it saves. What it allocates is in tests/golden/cut_cross_entropy.jsonl. */
#include "devices/host/host.h"
#include "devices/sim/sim.h"
#include "support/replay_model.h"
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

static const struct plim_train_setting cut = {.micro_batch = 4,
                                              .seq = 1024,
                                              .accumulation = 1,
                                              .precision = PLIM_PRECISION_BF16,
                                              .optimizer = PLIM_OPTIMIZER_ADAMW_FUSED,
                                              .cut_cross_entropy = true};

static void replay(struct plim_device *device, const struct plim_train_setting *setting,
                   struct plim_replay *out)
{
    replay_model(device, "llama-3.2-1b", 2, setting, out);
}

static struct plim_replay ours, theirs;

static struct plim_device *gpu(const char *name)
{
    struct plim_error err = PLIM_ERROR_INIT;
    struct plim_device *device;
    cr_assert_eq(plim_sim_open(name, &device, &err), PLIM_OK, "%s", err.text);
    return device;
}

/* No logits, of which there are most of the memory otherwise, for a fourth product beside the three of a linear layer;
 * what goes over the logits in fp32 takes longer than that. */
Test(cut, saves_memory_for_a_product_more)
{
    struct plim_device *device = gpu("A100-SXM4-80GB");
    struct plim_train_setting plain = cut;
    plain.cut_cross_entropy = false;
    replay(device, &cut, &ours);
    replay(device, &plain, &theirs);
    int64_t logits_bytes = 4 * 1024 * (int64_t)128256 * 2;
    cr_expect_lt(ours.peak_allocated_bytes, theirs.peak_allocated_bytes - 4 * logits_bytes);
    double ratio = ours.step[3].seconds / theirs.step[3].seconds;
    cr_expect(ratio > 0.9 && ratio < 1.2, "%g of the time", ratio);
    plim_device_close(&device);
}

static void expect_refusal(struct plim_device *device, const struct plim_train_setting *setting,
                           const char *why)
{
    replay(device, setting, &ours);
    cr_expect_eq(ours.verdict, PLIM_UNSUPPORTED);
    cr_expect_not_null(strstr(ours.why, why), "%s", ours.why);
}

Test(cut, is_simulated_only)
{
    struct plim_error err = PLIM_ERROR_INIT;
    struct plim_device *host;
    cr_assert_eq(plim_host_open("", &host, &err), PLIM_OK, "%s", err.text);
    expect_refusal(host, &cut, "simulated only");
    plim_device_close(&host);
}

Test(cut, wants_a_gpu_with_room_for_its_tiles)
{
    struct plim_device *t4 = gpu("T4");
    struct plim_train_setting setting = cut;
    setting.precision = PLIM_PRECISION_FP16;
    expect_refusal(t4, &setting, "compute capability 8.0 or later");
    plim_device_close(&t4);
}

Test(cut, wants_the_head_in_16_bits)
{
    struct plim_device *device = gpu("A100-SXM4-80GB");
    struct plim_train_setting setting = cut;
    setting.precision = PLIM_PRECISION_FP32;
    expect_refusal(device, &setting, "needs weights in 16 bits");
    setting.precision = PLIM_PRECISION_BF16_MIXED;
    expect_refusal(device, &setting, "needs weights in 16 bits");
    setting.weights = PLIM_WEIGHTS_BF16;
    replay(device, &setting, &ours);
    cr_expect_eq(ours.verdict, PLIM_OK);
    setting.sharding = PLIM_SHARDING_ZERO3;
    setting.world = 2;
    expect_refusal(device, &setting, "fails under zero3");
    setting.sharding = PLIM_SHARDING_NONE;
    setting.quantization =
        (struct plim_quantization){.type = PLIM_QUANTIZATION_NF4, .prepared = true};
    expect_refusal(device, &setting, "train.quantization.prepare");
    setting.quantization.type = PLIM_QUANTIZATION_NONE;
    setting.upcast = PLIM_UPCAST_KEPT;
    expect_refusal(device, &setting, "train.upcast kept");
    setting.upcast = PLIM_UPCAST_UNDONE;
    replay(device, &setting, &ours);
    cr_expect_eq(ours.verdict, PLIM_OK);
    plim_device_close(&device);
}

/* --- what a spec may say ---------------------------------------------------------------------- */

static void expect_spec(const char *family, const char *train, const char *why)
{
    static struct plim_spec spec;
    struct plim_error err = PLIM_ERROR_INIT;
    char text[300];
    snprintf(text, sizeof(text), "model: {family: %s}\ntrain: {cut_cross_entropy: true%s}\n",
             family, train);
    cr_expect_eq(plim_spec_load_text("s.yaml", text, &spec, &err), why ? PLIM_SPEC : PLIM_OK,
                 "%s%s", text, err.text);
    if (why) cr_expect_not_null(strstr(err.text, why), "%s", err.text);
}

Test(cut, is_known_for_causal_models_with_a_head_of_the_usual_name)
{
    expect_spec("gpt2", "",
                "train.cut_cross_entropy is true, whose forward fails for gpt2 as a "
                "causal-lm");
    expect_spec("gpt_neox", "", "fails for gpt_neox");
    expect_spec("bloom", "", "fails for bloom");
    expect_spec("bert", "", "fails for bert as a masked-lm, expected false");
    expect_spec("opt", "", NULL);
}

Test(cut, is_one_loss_of_trainer_and_of_plain_loops)
{
    static const char beside_liger[] =
        ", liger: true, liger_kernels: {loss: none}, loop: trainer, world: 2, sharding: zero1, "
        "precision: bf16-mixed";
    expect_spec("llama", ", loop: trl-sft",
                "train.loop is trl-sft, which is not in this version, expected trainer or plain");
    expect_spec("llama", ", liger: [false, true]",
                "axolotl refuses one, expected train.liger_kernels.loss none");
    expect_spec("llama", ", sharding: [ddp, zero1]",
                "train.sharding is zero1, which is in this version with train.loop trainer");
    expect_spec("llama", ", sharding: ddp, world: 2", NULL);
    expect_spec("llama", beside_liger, NULL);
    expect_spec("starcoder2", ", liger: true", NULL); /* of which Liger has nothing */
}
