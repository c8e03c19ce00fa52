/* The FLOPs a token that MFU is computed from, against the matrix products that a step launches. */
#include "replay_bench.h"

enum { SEQ = 64 }; /* so short that attention, which is not counted here, is below one per cent */

static double launched; /* FLOPs of matrix products */
static const struct plim_device_ops *simulated;

/* A product of two matrices, or of each group of rows (or of summed rows) with a matrix of its own */
static double product_flops(const struct plim_op *op)
{
    const struct plim_array *a = op->in[0], *b = op->in[1], *y = op->out[0];
    bool sums_rows = op->kind == PLIM_OP_MATMUL_GROUPED && y->ndim == 3;
    if (sums_rows) return 2 * (double)plim_array_elements(a) * (double)b->shape[b->ndim - 1];
    return 2 * (double)plim_array_elements(y) * (double)a->shape[a->ndim - 1];
}

static enum plim_status count_and_launch(struct plim_device *device, const struct plim_op *op)
{
    if (op->kind == PLIM_OP_MATMUL || op->kind == PLIM_OP_MATMUL_GROUPED) launched += product_flops(op);
    return simulated->launch(device, op);
}

/* Every launch of every layer and micro-step reaches the device: none is a repetition of another. */
static struct plim_device_ops counting_ops(const struct plim_device *device)
{
    struct plim_device_ops ops = *device->ops;
    ops.launch = count_and_launch;
    ops.begin_round = NULL;
    ops.end_round = NULL;
    ops.repeat = NULL;
    return ops;
}

/* Returns the FLOPs that a step launches for each token, as a share of those that are said. `vocabulary`: NULL: the
 * model's own */
static double share(const char *model, const char *vocabulary, const struct plim_train_setting *setting)
{
    static struct bench bench;
    static struct plim_replay replay;
    struct plim_replay_step step;
    struct plim_error err = PLIM_ERROR_INIT;
    open_bench(&bench, model);
    if (vocabulary)
        cr_assert_eq(plim_spec_set(&bench.spec, "model.vocab_size", vocabulary, &err), PLIM_OK, "%s", err.text);
    cr_assert_eq(plim_spec_resolve(&bench.spec, &err), PLIM_OK, "%s", err.text);
    simulated = bench.device->ops;
    struct plim_device_ops counting = counting_ops(bench.device);
    bench.device->ops = &counting;
    plim_replay_begin(bench.replayer, &bench.spec.model, setting);
    cr_assert(plim_replay_next(bench.replayer, &step)); /* the first makes optimizer states, too */
    launched = 0;
    cr_assert(plim_replay_next(bench.replayer, &step));
    double tokens = (double)(setting->micro_batch * setting->accumulation * SEQ * plim_loop_rows(setting->loop));
    double per_token = launched / tokens;
    cr_assert_eq(plim_replay_end(bench.replayer, &replay, &err), PLIM_OK, "%s", err.text);
    cr_assert_eq(replay.verdict, PLIM_OK, "%s", replay.why);
    bench.device->ops = simulated;
    close_bench(&bench);
    return per_token / replay.model_flops_per_token;
}

static struct plim_train_setting by(enum plim_loop loop)
{
    return (struct plim_train_setting){
        .micro_batch = 4, .seq = SEQ, .accumulation = 2, .precision = PLIM_PRECISION_BF16, .loop = loop};
}

static void expect_all(const char *what, const char *model, const char *vocabulary,
                       const struct plim_train_setting *setting)
{
    double s = share(model, vocabulary, setting);
    cr_expect(s > 0.98 && s < 1.005, "%s of %s: %.4f of the FLOPs that are said", what, model, s);
}

/* With embeddings of their own for each layer, experts, latent attention, towers that rows of text do not use, layers
 * that run again, and heads for rows */
Test(flops, are_those_of_a_step)
{
    static const char *const models[] = {
        "gpt2-124m",   "llama-3.2-1b",     "qwen3-0.6b",   "gemma-2-2b", "gemma-4-e2b",  "qwen3-30b-a3b",
        "gpt-oss-20b", "deepseek-v2-lite", "qwen3.5-0.8b", "gemma-3-4b", "internvl3-1b", "bert-base-uncased",
        "albert-base"};
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        struct plim_train_setting setting = by(PLIM_LOOP_TRAINER);
        expect_all("Trainer", models[i], NULL, &setting);
    }
}

Test(flops, leave_out_gradients_of_frozen_weights)
{
    struct plim_train_setting setting = by(PLIM_LOOP_TRAINER);
    setting.lora = (struct plim_lora){.r = 8, .targets = "q_proj,v_proj"};
    expect_all("LoRA", "llama-3.2-1b", NULL, &setting);
}

/* With few classes, as TRL's DPOTrainer and KTOTrainer compute logits again in the backward, which is not counted. */
Test(flops, are_those_of_references_and_of_the_kl_divergence_too)
{
    static const enum plim_loop loops[] = {PLIM_LOOP_TRL_DPO,   PLIM_LOOP_TRL_KTO,           PLIM_LOOP_TRL_ORPO,
                                           PLIM_LOOP_SWIFT_KTO, PLIM_LOOP_LLAMAFACTORY_KTO, PLIM_LOOP_LLAMAFACTORY_DPO};
    for (size_t i = 0; i < sizeof loops / sizeof *loops; i++) {
        struct plim_train_setting setting = by(loops[i]);
        expect_all(plim_loop_names[loops[i]], "qwen3-0.6b", "640", &setting);
        if (loops[i] != PLIM_LOOP_TRL_DPO && loops[i] != PLIM_LOOP_TRL_KTO) continue;
        setting.precomputed_reference = true;
        expect_all("precomputed_reference", "qwen3-0.6b", "640", &setting);
    }
}
