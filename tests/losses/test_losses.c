/* Small models trained for 20 steps on a device that computes, beside the losses of PyTorch on the
 * CPU (losses.jsonl, make_losses.py): the same weights, tokens and hyperparameters. */
#include "config.h"
#if PLIM_WITH_CUDA
#include "devices/cuda/cuda.h"
#endif
#include "devices/host/host.h"
#include "devices/sim/sim.h"
#include "support/case_file.h"
#include "support/spec_files.h"
#include "workloads/spec/family.h"
#include "workloads/train/replay.h"
#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Bounds on the difference of a loss of about 4.6, by precision. fp32: what sums in another order
 * differ by. Mixed: PyTorch's autocast on a CPU rounds in other places than on a GPU (its own lists of
 * operations). bf16: all of it, weights too, in 8 bits of fraction, 0.4 % of each. */
/* A case may have a bound of its own, where rounding in 16 bits shows more. */
static double bound_of(const json_t *c, enum plim_precision precision)
{
    const json_t *own = json_object_get(c, "bound");
    if (own) return json_number_value(own);
    return precision == PLIM_PRECISION_FP32 ? 1e-5 : precision == PLIM_PRECISION_BF16 ? 2e-3 : 2e-4;
}

static void load(const json_t *c, struct plim_spec *spec)
{
    char *config = json_dumps(json_object_get(c, "hf"), 0);
    spec_load_text("config.json", config, spec);
    spec_files_remove();
    free(config);
    plim_spec_set_dropout(spec, 0);
}

/* PLIM_LOSSES_LIGER: by liger-kernel's kernels, where it has some for the family, but for its experts and its relu2.
 * Losses are the same: they compute what the family's own modules do. false: the case says nothing of them */
static bool take_liger(const struct plim_spec *spec, struct plim_train_setting *setting)
{
    const struct plim_liger_patches *all = &plim_family_info(spec->model.family)->liger;
    if (!getenv("PLIM_LOSSES_LIGER")) return true;
    setting->liger = PLIM_LIGER_TRUE;
    if (all->mlp >= PLIM_LIGER_MLP_RELU2) setting->liger_kernels.glu = PLIM_LIGER_KERNEL_LEFT;
    /* LigerForCausalLMLoss reads the head's weight, and not what an adapter adds to it. */
    return all->loss != PLIM_LIGER_LOSS_NONE && !strstr(setting->lora.targets, "lm_head");
}

/* PLIM_LOSSES_FLA: by flash-linear-attention and causal-conv1d, which compute what transformers' own code does. false:
 * the model has no linear attention. */
static bool take_packages(const struct plim_spec *spec, struct plim_train_setting *setting)
{
    if (!getenv("PLIM_LOSSES_FLA")) return true;
    setting->linear_attention = (struct plim_linear_attention){PLIM_DELTA_RULE_FLA, .causal_conv1d = true};
    return plim_family_info(spec->model.family)->linear;
}

/* What is computed takes the memory that the simulated GPU says, step by step. */
static void expect_planned_bytes(const struct plim_replay *ran, const struct plim_spec *spec,
                                 const struct plim_train_setting *setting)
{
    static struct plim_replay planned;
    struct plim_error err = PLIM_ERROR_INIT;
    struct plim_device *device;
    struct plim_replayer *replayer;
    cr_assert_eq(plim_sim_open("A100-SXM4-80GB", &device, &err), PLIM_OK, "%s", err.text);
    cr_assert_eq(plim_replayer_create(device, NULL, &replayer, &err), PLIM_OK, "%s", err.text);
    cr_assert_eq(plim_replay_run(replayer, &spec->model, setting, &planned, &err), PLIM_OK);
    for (int i = 0; i < PLIM_REPLAY_STEPS; i++) {
        cr_expect_eq(ran->step[i].after_forward_bytes, planned.step[i].after_forward_bytes);
        cr_expect_eq(ran->step[i].peak_allocated_bytes, planned.step[i].peak_allocated_bytes);
        cr_expect_eq(ran->step[i].peak_reserved_bytes, planned.step[i].peak_reserved_bytes);
        cr_expect_eq(ran->step[i].end_allocated_bytes, planned.step[i].end_allocated_bytes);
    }
    plim_replayer_destroy(&replayer);
    plim_device_close(&device);
}

static void train(struct plim_replayer *replayer, const json_t *c)
{
    static struct plim_spec spec;
    static struct plim_replay replay;
    struct plim_train_setting setting;
    struct plim_replay_step step;
    struct plim_error err = PLIM_ERROR_INIT;
    const json_t *losses = json_object_get(c, "losses");
    load(c, &spec);
    case_setting(c, &setting);
    case_resolve_lora(&spec, &setting);
    if (!take_liger(&spec, &setting) || !take_packages(&spec, &setting)) return;
    double bound = bound_of(c, setting.precision);
    plim_replay_begin(replayer, &spec.model, &setting);
    for (size_t i = 0; i < json_array_size(losses); i++) {
        double theirs = json_real_value(json_array_get(losses, i));
        if (!plim_replay_next(replayer, &step)) break;
        cr_expect(fabs(step.loss - theirs) <= bound,
                  "%s: step %zu: loss %.7f, PyTorch %.7f (%+.1e)", case_text(c, "id", "?"), i + 1,
                  step.loss, theirs, step.loss - theirs);
    }
    cr_expect_eq(plim_replay_end(replayer, &replay, &err), PLIM_OK, "%s", err.text);
    cr_expect_eq(replay.verdict, PLIM_OK, "%s", replay.why);
    expect_planned_bytes(&replay, &spec, &setting);
}

ParameterizedTestParameters(losses, are_those_of_pytorch)
{
    size_t count;
    struct case_line *cases = case_lines(getenv("PLIM_LOSSES"), &count);
    return cr_make_param_array(struct case_line, cases, count);
}

/* The device that the test is about: PLIM_LOSSES_DEVICE. */
static struct plim_device *open_device(void)
{
    struct plim_error err = PLIM_ERROR_INIT;
    struct plim_device *device = NULL;
#if PLIM_WITH_CUDA
    if (!strcmp(getenv("PLIM_LOSSES_DEVICE"), "cuda")) {
        cr_assert_eq(plim_cuda_open("", &device, &err), PLIM_OK, "%s", err.text);
        return device;
    }
#endif
    cr_assert_eq(plim_host_open("", &device, &err), PLIM_OK, "%s", err.text);
    return device;
}

ParameterizedTest(struct case_line *given, losses, are_those_of_pytorch)
{
    struct plim_error err = PLIM_ERROR_INIT;
    struct plim_device *device = open_device();
    struct plim_replayer *replayer;
    json_t *c = json_loads(given->line, 0, NULL);
    cr_assert_not_null(c);
    cr_assert_eq(plim_replayer_create(device, NULL, &replayer, &err), PLIM_OK, "%s", err.text);
    train(replayer, c);
    plim_replayer_destroy(&replayer);
    plim_device_close(&device);
    json_decref(c);
}
