/* flash-linear-attention and causal-conv1d: where they run, and what they save. What they allocate is in
 * tests/golden/fla.jsonl. */
#include "devices/host/host.h"
#include "devices/sim/sim.h"
#include "support/replay_model.h"
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <string.h>

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

Test(fla, is_simulated_only)
{
    struct plim_error err = PLIM_ERROR_INIT;
    struct plim_device *host;
    cr_assert(eq(int, plim_host_open("", &host, &err), PLIM_OK), "%s", err.text);
    replay(host, "qwen3.5-0.8b", rule, &ours);
    cr_expect(eq(int, ours.verdict, PLIM_UNSUPPORTED));
    cr_expect(ne(ptr, strstr(ours.why, "simulated only"), NULL), "%s", ours.why);
    replay(host, "qwen3.5-0.8b", convolution, &ours);
    cr_expect(ne(ptr, strstr(ours.why, "simulated only"), NULL), "%s", ours.why);
    plim_device_close(&host);
}
