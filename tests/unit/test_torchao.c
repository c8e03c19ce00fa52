/* torchao's optimizers: where they run, and what their states take. What a step allocates is in
 * tests/golden/torchao.jsonl. */
#include "devices/host/host.h"
#include "devices/sim/sim.h"
#include "support/replay_model.h"
#include "workloads/spec/spec.h"
#include <criterion/criterion.h>
#include <math.h>

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

/* --- what a step computes --------------------------------------------------------------------- */

static struct plim_replay theirs;

/* A model most of whose weights are whole blocks of at least 4096 elements; its norms are not. */
static void train(enum plim_optimizer optimizer, enum plim_precision precision, bool by_trainer,
                  struct plim_replay *out)
{
    static const char *const tiny[][2] = {
        {"model.vocab_size", "128"},      {"model.hidden_size", "64"},        {"model.intermediate_size", "128"},
        {"model.num_hidden_layers", "2"}, {"model.num_attention_heads", "4"}, {"model.num_key_value_heads", "4"},
        {"model.head_dim", "16"},         {"model.dtype", "float32"}};
    const struct plim_train_setting small = {.micro_batch = 2,
                                             .seq = 16,
                                             .accumulation = 1,
                                             .precision = precision,
                                             .optimizer = optimizer,
                                             .loop = by_trainer ? PLIM_LOOP_TRAINER : PLIM_LOOP_PLAIN};
    static struct plim_spec spec;
    struct plim_error err = PLIM_ERROR_INIT;
    struct plim_device *host;
    struct plim_replayer *replayer;
    cr_assert_eq(plim_spec_load("llama-3.2-1b", &spec, &err), PLIM_OK, "%s", err.text);
    for (size_t i = 0; i < sizeof(tiny) / sizeof(tiny[0]); i++)
        cr_assert_eq(plim_spec_set(&spec, tiny[i][0], tiny[i][1], &err), PLIM_OK, "%s", err.text);
    cr_assert_eq(plim_spec_resolve(&spec, &err), PLIM_OK, "%s", err.text);
    cr_assert_eq(plim_host_open("", &host, &err), PLIM_OK, "%s", err.text);
    cr_assert_eq(plim_replayer_create(host, NULL, &replayer, &err), PLIM_OK, "%s", err.text);
    cr_assert_eq(plim_replay_run(replayer, &spec.model, &small, out, &err), PLIM_OK, "%s", err.text);
    cr_assert_eq(out->verdict, PLIM_OK, "%s", out->why);
    plim_replayer_destroy(&replayer);
    plim_device_close(&host);
}

/* The first step's moments are whole numbers yet; of later ones a share of what they have learned is lost. */
static void expect_losses_of_adamw(enum plim_optimizer optimizer, enum plim_precision precision, bool by_trainer,
                                   double share)
{
    double exact = precision == PLIM_PRECISION_FP32 ? 1e-5 : 2e-3;
    train(PLIM_OPTIMIZER_ADAMW, precision, by_trainer, &theirs);
    train(optimizer, precision, by_trainer, &ours);
    for (int i = 0; i < PLIM_REPLAY_STEPS; i++) {
        double learned = theirs.step[0].loss - theirs.step[i].loss, off = ours.step[i].loss - theirs.step[i].loss;
        cr_expect(fabs(off) <= exact + (i > 1 ? share * learned : 0), "step %d: %g and %g", i, ours.step[i].loss,
                  theirs.step[i].loss);
        if (i) cr_expect_gt(learned, 1e-3);
    }
}

Test(torchao, steps_as_adamw_does)
{
    expect_losses_of_adamw(PLIM_OPTIMIZER_ADAMW_TORCH_8BIT, PLIM_PRECISION_FP32, false, 0.02);
    expect_losses_of_adamw(PLIM_OPTIMIZER_ADAMW_TORCH_4BIT, PLIM_PRECISION_FP32, false, 0.1);
    expect_losses_of_adamw(PLIM_OPTIMIZER_ADAMW_TORCH_4BIT, PLIM_PRECISION_FP32, true, 0.1);
    expect_losses_of_adamw(PLIM_OPTIMIZER_ADAMW_TORCH_8BIT, PLIM_PRECISION_BF16_MIXED, false, 0.02);
}
