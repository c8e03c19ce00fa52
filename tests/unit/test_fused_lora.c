/* axolotl's functions of LoRA: they train as peft's modules do, and take less. What they allocate is in
 * tests/golden/axolotl.jsonl. */
#include "devices/host/host.h"
#include "devices/sim/sim.h"
#include "support/replay_model.h"
#include "workloads/spec/spec.h"
#include "workloads/train/replay.h"
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

static const struct plim_train_setting adapted = {
    .micro_batch = 2,
    .seq = 12,
    .accumulation = 1,
    .precision = PLIM_PRECISION_FP32,
    .optimizer = PLIM_OPTIMIZER_ADAMW,
    .lora = {.r = 4, .targets = "q_proj,k_proj,v_proj,o_proj,gate_proj,up_proj,down_proj"}};
static struct plim_replay fused, apart;

/* A small model of qwen2's, whose queries, keys and values have biases */
static void replay(struct plim_device *device, const struct plim_train_setting *setting, struct plim_replay *out)
{
    static struct plim_spec spec;
    struct plim_error err = PLIM_ERROR_INIT;
    struct plim_replayer *replayer;
    cr_assert_eq(plim_spec_load("qwen2.5-0.5b", &spec, &err), PLIM_OK, "%s", err.text);
    replay_make_small(&spec.model);
    cr_assert_eq(plim_replayer_create(device, NULL, &replayer, &err), PLIM_OK, "%s", err.text);
    cr_assert_eq(plim_replay_run(replayer, &spec.model, setting, out, &err), PLIM_OK, "%s", err.text);
    plim_replayer_destroy(&replayer);
}

static void expect_the_same(struct plim_device *host, const struct plim_train_setting *setting)
{
    replay(host, setting, &fused);
    cr_assert_eq(fused.verdict, PLIM_OK, "%s", fused.why);
    for (int i = 0; i < PLIM_REPLAY_STEPS; i++)
        cr_expect(fabs(fused.step[i].loss - apart.step[i].loss) < 1e-5, "step %d: %g and %g", i, fused.step[i].loss,
                  apart.step[i].loss);
}

/* B is initialised to zeros: only trained adapters have an effect. */
Test(fused_lora, trains_as_the_modules_do)
{
    struct plim_error err = PLIM_ERROR_INIT;
    struct plim_device *host;
    struct plim_train_setting setting = adapted;
    cr_assert_eq(plim_host_open("", &host, &err), PLIM_OK, "%s", err.text);
    replay(host, &setting, &apart);
    cr_assert_eq(apart.verdict, PLIM_OK, "%s", apart.why);
    cr_expect(apart.step[PLIM_REPLAY_STEPS - 1].loss < apart.step[0].loss);
    setting.lora.qkv_kernel = setting.lora.o_kernel = true;
    expect_the_same(host, &setting);
    setting.lora.mlp_kernel = true;
    expect_the_same(host, &setting);
    setting.lora.qkv_kernel = setting.lora.o_kernel = false;
    expect_the_same(host, &setting);
    plim_device_close(&host);
}

/* peft's gated MLP keeps gate, its activation and both products, and what dropout leaves of three inputs; axolotl's
 * gate and up and what it leaves of one. */
Test(fused_lora, keeps_less_of_a_gated_mlp)
{
    struct plim_error err = PLIM_ERROR_INIT;
    struct plim_device *device;
    struct plim_train_setting setting = adapted;
    cr_assert_eq(plim_sim_open("A100-SXM4-80GB", &device, &err), PLIM_OK, "%s", err.text);
    setting.micro_batch = 4096;
    setting.precision = PLIM_PRECISION_BF16;
    setting.lora.dropout = 0.1;
    replay(device, &setting, &apart);
    setting.lora.mlp_kernel = true;
    replay(device, &setting, &fused);
    cr_assert_eq(fused.verdict, PLIM_OK, "%s", fused.why);
    int64_t activation = setting.micro_batch * setting.seq * 48 * 2;
    cr_expect_lt(fused.peak_allocated_bytes, apart.peak_allocated_bytes - 2 * 2 * activation);
    plim_device_close(&device);
}
