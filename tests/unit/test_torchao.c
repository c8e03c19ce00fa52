/* torchao's optimizers: where they run, and what their states take. What a step allocates is in
 * tests/golden/torchao.jsonl. */
#include "devices/host/host.h"
#include "devices/sim/sim.h"
#include "support/replay_model.h"
#include <criterion/criterion.h>
#include <string.h>

static struct plim_train_setting setting = {.micro_batch = 1,
                                            .seq = 64,
                                            .accumulation = 1,
                                            .precision = PLIM_PRECISION_BF16,
                                            .optimizer = PLIM_OPTIMIZER_ADAMW_TORCH_8BIT};

static void replay(struct plim_device *device, struct plim_replay *out)
{
    replay_model(device, "llama-3.2-1b", 2, &setting, out);
}

static struct plim_replay ours;

enum { BESIDE = 32 << 20 }; /* batches, cuBLAS's workspace, norms, tables */

static int64_t state_bytes(struct plim_device *device)
{
    replay(device, &ours);
    return ours.step[0].end_allocated_bytes - 2 * ours.parameters; /* weights in bf16 */
}

/* Two moments of 8 bits and a scale in 256; of 4 bits half as much, and in torchao's own blocks of 128 twice the
 * scales. */
Test(torchao, keeps_states_in_few_bits)
{
    struct plim_error err = PLIM_ERROR_INIT;
    struct plim_device *a100;
    cr_assert_eq(plim_sim_open("A100-SXM4-80GB", &a100, &err), PLIM_OK, "%s", err.text);
    int64_t eight = state_bytes(a100), count = ours.parameters;
    cr_expect(eight > count * 2 && eight - count * 2 - count * 2 / 64 < BESIDE, "%lld",
              (long long)eight);
    setting.optimizer = PLIM_OPTIMIZER_ADAMW_TORCH_4BIT;
    int64_t four = state_bytes(a100);
    cr_expect(four > count && four - count - count * 2 / 32 < BESIDE, "%lld", (long long)four);
    setting.loop = PLIM_LOOP_TRAINER;
    int64_t by_trainer = state_bytes(a100);
    cr_expect(by_trainer < four - count / 64, "%lld", (long long)by_trainer);
    plim_device_close(&a100);
}

Test(torchao, is_simulated_only)
{
    struct plim_error err = PLIM_ERROR_INIT;
    struct plim_device *host;
    cr_assert_eq(plim_host_open("", &host, &err), PLIM_OK, "%s", err.text);
    replay(host, &ours);
    cr_expect_eq(ours.verdict, PLIM_UNSUPPORTED);
    cr_expect_not_null(strstr(ours.why, "simulated only"), "%s", ours.why);
    plim_device_close(&host);
}
