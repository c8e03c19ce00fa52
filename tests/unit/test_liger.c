/* Liger's kernels: where they run, and what they save. What they allocate is in tests/golden/liger.jsonl. */
#include "devices/host/host.h"
#include "devices/sim/sim.h"
#include "support/replay_model.h"
#include <criterion/criterion.h>
#include <string.h>

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

Test(liger, is_simulated_only)
{
    struct plim_error err = PLIM_ERROR_INIT;
    struct plim_device *host;
    cr_assert_eq(plim_host_open("", &host, &err), PLIM_OK, "%s", err.text);
    replay(host, &liger, &ours);
    cr_expect_eq(ours.verdict, PLIM_UNSUPPORTED);
    cr_expect_not_null(strstr(ours.why, "simulated only"), "%s", ours.why);
    plim_device_close(&host);
}
