/* Cut cross entropy: where it runs, and what it saves. What it allocates is in tests/golden/cut_cross_entropy.jsonl. */
#include "devices/cuda/kernels.h"
#include "devices/host/host.h"
#include "devices/sim/sim.h"
#include "doubles/emulator.h"
#include "support/replay_model.h"
#include <criterion/criterion.h>
#include <math.h>
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

/* --- what it computes ------------------------------------------------------------------------- */

static const struct plim_train_setting small = {.micro_batch = 3,
                                                .seq = 14,
                                                .accumulation = 2,
                                                .precision = PLIM_PRECISION_BF16,
                                                .optimizer = PLIM_OPTIMIZER_ADAMW};

/* The kernels of a GPU, emulated; products are the host's. */
static const struct plim_device_ops *host_ops;
static int launches_of_losses;

static enum plim_status emulate(void *user, const struct plim_cuda_launch *launch)
{
    const struct emulated_kernel *kernel = emulated_kernel_find(launch->kernel);
    (void)user;
    cr_assert_not_null(kernel, "%s", launch->kernel);
    emulated_kernel_run(kernel, launch->grid, launch->block, launch->shared_bytes, launch->args);
    launches_of_losses += strncmp(launch->kernel, "linear_lse_", strlen("linear_lse_")) == 0;
    return PLIM_OK;
}

static enum plim_status launch_emulated(struct plim_device *device, const struct plim_op *op)
{
    static const struct plim_device_info info = {
        .compute_capability = 90, .multiprocessors = 2, .threads_per_multiprocessor = 2048};
    enum plim_status st = plim_cuda_plan(&info, op, emulate, NULL);
    return st == PLIM_UNSUPPORTED ? host_ops->launch(device, op) : st;
}

static void emulate_kernels(struct plim_device *device)
{
    static struct plim_device_ops ops;
    host_ops = device->ops;
    ops = *host_ops;
    ops.launch = launch_emulated;
    device->ops = &ops;
}

static void replay_small(const char *family, bool tied, bool emulated, const struct plim_train_setting *setting,
                         struct plim_replay *out)
{
    static struct plim_spec spec;
    struct plim_error err = PLIM_ERROR_INIT;
    struct plim_device *host;
    struct plim_replayer *replayer;
    char text[100];
    snprintf(text, sizeof(text), "model: {family: %s}\n", family);
    cr_assert_eq(plim_spec_load_text("s.yaml", text, &spec, &err), PLIM_OK, "%s", err.text);
    spec.model.vocab_size = 150;
    spec.model.hidden_size = 36;
    spec.model.intermediate_size = 48;
    spec.model.layers = 2;
    spec.model.heads = 4;
    spec.model.kv_heads = 2;
    spec.model.head_dim = 8;
    spec.model.tie_word_embeddings = tied;
    if (spec.model.final_logit_softcapping > 0) spec.model.final_logit_softcapping = 0.5; /* where it bends */
    cr_assert_eq(plim_host_open("", &host, &err), PLIM_OK, "%s", err.text);
    if (emulated) emulate_kernels(host);
    cr_assert_eq(plim_replayer_create(host, NULL, &replayer, &err), PLIM_OK, "%s", err.text);
    cr_assert_eq(plim_replay_run(replayer, &spec.model, setting, out, &err), PLIM_OK, "%s", err.text);
    cr_assert_eq(out->verdict, PLIM_OK, "%s: %s", family, out->why);
    plim_replayer_destroy(&replayer);
    plim_device_close(&host);
}

/* Logits in bf16, or logits that are never rounded: the losses of steps that train differ by that. */
static void expect_the_same(const char *family, bool tied, bool emulated, struct plim_train_setting setting)
{
    replay_small(family, tied, false, &setting, &theirs);
    setting.cut_cross_entropy = true;
    replay_small(family, tied, emulated, &setting, &ours);
    for (int i = 0; i < PLIM_REPLAY_STEPS; i++) {
        double mine = ours.step[i].loss, other = theirs.step[i].loss, roundings = emulated ? 1e-4 : 5e-5;
        cr_expect(fabs(mine - other) < roundings * other, "%s, step %d: %g and %g", family, i, mine, other);
    }
}

Test(cut, trains_as_the_logits_do)
{
    struct plim_train_setting setting = small;
    expect_the_same("llama", true, false, setting);
    expect_the_same("llama", false, false, setting);
    expect_the_same("gemma2", true, false, setting);
    expect_the_same("phi", false, false, setting);
    setting.lora = (struct plim_lora){.r = 16, .targets = "q_proj,v_proj,o_proj,up_proj,down_proj"};
    expect_the_same("llama", true, false, setting);
    setting.lora.r = 0;
    setting.loop = PLIM_LOOP_TRAINER;
    expect_the_same("llama", true, false, setting);
    setting.padding = PLIM_PADDING_YES;
    expect_the_same("llama", true, false, setting);
}

/* In each step twice forward and backward. */
Test(cut, trains_the_same_by_the_kernels_of_a_gpu)
{
    expect_the_same("llama", true, true, small);
    cr_expect_eq(launches_of_losses, PLIM_REPLAY_STEPS * 2 * 2);
    expect_the_same("gemma2", true, true, small);
    expect_the_same("phi", false, true, small);
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
                "train.loop is trl-sft, which is not supported, expected trainer or plain");
    expect_spec("llama", ", liger: [false, true]",
                "axolotl refuses one, expected train.liger_kernels.loss none");
    expect_spec("llama", ", sharding: [ddp, zero1]",
                "train.sharding is zero1, which is supported with train.loop trainer");
    expect_spec("llama", ", sharding: ddp, world: 2", NULL);
    expect_spec("llama", beside_liger, NULL);
    expect_spec("starcoder2", ", liger: true", NULL); /* of which Liger has nothing */
}
