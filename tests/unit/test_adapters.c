/* Which modules adapters and modules_to_save are about where they meet the model, and what is refused there. What they
 * allocate is in tests/golden/adapters.jsonl. */
#include "devices/sim/sim.h"
#include "workloads/train/replay.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdio.h>
#include <string.h>

#define LLAMA                                                                                                          \
    "model: {family: llama, vocab_size: 97, hidden_size: 64, intermediate_size: 128, num_hidden_layers: 2, "           \
    "num_attention_heads: 2, tie_word_embeddings: true}\n"
#define ENCODER(family)                                                                                                \
    "model: {family: " family ", task: classification, vocab_size: 97, hidden_size: 64, intermediate_size: 128, "      \
    "num_hidden_layers: 2, num_attention_heads: 2}\n"
#define LLAVA                                                                                                          \
    "model: {family: llava, vocab_size: 97, hidden_size: 64, intermediate_size: 128, num_hidden_layers: 2, "           \
    "num_attention_heads: 2, vision_hidden_size: 32, vision_intermediate_size: 64, vision_num_hidden_layers: 2, "      \
    "vision_num_attention_heads: 2, vision_image_size: 28, vision_patch_size: 14}\n"
enum { RANK = 4, HIDDEN = 64, VOCABULARY = 97, LABELS = 2, OF_QUERIES = 2 * RANK * 2 * HIDDEN };

static const struct plim_train_setting usual = {
    .micro_batch = 1, .seq = 12, .accumulation = 1, .optimizer = PLIM_OPTIMIZER_SGD, .world = 1, .lora = {.r = RANK}};

static void run(const char *model, const struct plim_train_setting *setting, struct plim_replay *out)
{
    static struct plim_spec spec;
    struct plim_error err = PLIM_ERROR_INIT;
    struct plim_replayer *replayer;
    struct plim_device *device;
    cr_assert(eq(int, plim_spec_load_text("model.yaml", model, &spec, &err), PLIM_OK), "%s", err.text);
    cr_assert(eq(int, plim_sim_open("A100-SXM4-80GB", &device, &err), PLIM_OK), "%s", err.text);
    cr_assert(eq(int, plim_replayer_create(device, NULL, &replayer, &err), PLIM_OK));
    cr_assert(eq(int, plim_replay_run(replayer, &spec.model, setting, out, &err), PLIM_OK), "%s", err.text);
    plim_replayer_destroy(&replayer);
    plim_device_close(&device);
}

static struct plim_train_setting with(const char *targets, const char *saved)
{
    struct plim_train_setting setting = usual;
    snprintf(setting.lora.targets, sizeof(setting.lora.targets), "%s", targets);
    snprintf(setting.lora.saved, sizeof(setting.lora.saved), "%s", saved);
    return setting;
}

static void expect_trained(const char *model, const struct plim_train_setting *setting, int64_t elements)
{
    static struct plim_replay out;
    run(model, setting, &out);
    cr_assert(eq(int, out.verdict, PLIM_OK), "%s", out.why);
    cr_expect(eq(i64, out.trainable_parameters, elements), "%s and %s", setting->lora.targets, setting->lora.saved);
}

static void expect_refused(const char *model, const struct plim_train_setting *setting, const char *why)
{
    static struct plim_replay out;
    run(model, setting, &out);
    cr_assert(eq(int, out.verdict, PLIM_UNSUPPORTED));
    cr_expect(eq(str, out.why, (char *)why));
}

Test(adapters, are_of_the_modules_that_are_named)
{
    struct plim_train_setting setting = with("self_attn.q_proj", "");
    expect_trained(LLAMA, &setting, OF_QUERIES);
    setting = with("re:model\\.layers\\.1\\.self_attn\\.q_proj", "");
    expect_trained(LLAMA, &setting, OF_QUERIES / 2);
    setting = with("embed_tokens,lm_head", "");
    expect_trained(LLAMA, &setting, 2 * RANK * (VOCABULARY + HIDDEN));
    setting = with("re:bert\\.(encoder\\.layer\\.0\\.attention\\.self\\.query|pooler\\.dense)", "");
    expect_trained(ENCODER("bert"), &setting, 2 * RANK * 2 * HIDDEN);
    setting = with("re:(roberta\\.encoder\\.layer\\.0\\.attention\\.self\\.query|classifier\\.dense)", "");
    expect_trained(ENCODER("roberta"), &setting, 2 * RANK * 2 * HIDDEN);
}

Test(adapters, copies_are_of_the_modules_that_are_named)
{
    int64_t embedding = (int64_t)VOCABULARY * HIDDEN;
    struct plim_train_setting setting = with("q_proj", "embed_tokens,lm_head");
    expect_trained(LLAMA, &setting, OF_QUERIES + 2 * embedding);
    setting.lora.ties = true;
    expect_trained(LLAMA, &setting, OF_QUERIES + embedding);
    setting = with("q_proj", "model.norm");
    expect_trained(LLAMA, &setting, OF_QUERIES + HIDDEN);
    setting = with("q_proj,lm_head", "lm_head,nothing"); /* what is saved has no adapters */
    expect_trained(LLAMA, &setting, OF_QUERIES + embedding);
    setting = with("query", "classifier");
    expect_trained(ENCODER("bert"), &setting, OF_QUERIES + LABELS * HIDDEN + LABELS);
    setting = with("q_proj,linear_1", "multi_modal_projector,lm_head"); /* all linears of a projector */
    snprintf(setting.lora.exclude, sizeof(setting.lora.exclude), "re:.*vision_tower.*");
    expect_trained(LLAVA, &setting, OF_QUERIES + embedding + (32 + 1) * HIDDEN + (HIDDEN + 1) * HIDDEN);
}

Test(adapters, of_modules_that_have_none_are_refused)
{
    struct plim_train_setting setting = with("re:.*cross_attn.*", "");
    expect_refused(LLAMA, &setting,
                   "train.lora.targets matches no module of this model, such as model.layers.0.self_attn.q_proj");
    setting = with("re:.*self_attn.*", "");
    expect_refused(LLAMA, &setting,
                   "train.lora.targets matches model.layers.0.self_attn, which consists of modules: peft fails then");
    setting = with("re:.*norm", "");
    expect_refused(LLAMA, &setting,
                   "train.lora.targets matches model.layers.0.input_layernorm, for which there are no adapters here");
    setting = with("q_proj,lm_head", "");
    setting.loop = PLIM_LOOP_TRL_SFT;
    expect_refused(LLAMA, &setting, "train.lora.targets matches lm_head, for which there are no adapters here");
    setting = with("q_proj,embed_tokens", "");
    setting.lora.dora = true;
    expect_refused(LLAMA, &setting,
                   "train.lora.targets matches model.embed_tokens, for which there are no adapters here");
}

Test(adapters, copies_of_what_is_not_known_are_refused)
{
    struct plim_train_setting setting = with("q_proj", "norm");
    expect_refused(LLAMA, &setting,
                   "train.lora.modules_to_save has model.layers.0.post_attention_layernorm, which is not supported");
    setting = with("q_proj", "mlp");
    expect_refused(LLAMA, &setting, "train.lora.modules_to_save has model.layers.0.mlp, which is not supported");
    setting = with("query", "embeddings"); /* a module of several */
    expect_refused(ENCODER("roberta"), &setting,
                   "train.lora.modules_to_save has roberta.embeddings, which is not supported");
    setting = with("q_proj", "vision_tower");
    expect_refused(LLAVA, &setting, "train.lora.modules_to_save has model.vision_tower, which is not supported");
    setting = with("q_proj", "linear_1");
    expect_refused(LLAVA, &setting,
                   "train.lora.modules_to_save has model.multi_modal_projector.linear_1, which is not supported");
    setting = with("q_proj", "patch_embedding");
    expect_refused(LLAVA, &setting, "train.lora.modules_to_save has patch_embedding, which is not supported");
    setting = with("q_proj", "lm_head");
    setting.loop = PLIM_LOOP_TRAINER;
    setting.sharding = PLIM_SHARDING_FSDP;
    setting.world = 2;
    expect_refused(LLAMA, &setting,
                   "train.lora.modules_to_save is not supported with fsdp and zero3, and where the model without its "
                   "adapters is a reference (plimsoll exec runs the program)");
}

/* peft asks modules alone, of which sinks and the router's bias are none. */
Test(adapters, are_not_of_parameters)
{
    const char *model = "model: {family: gpt_oss, vocab_size: 97, hidden_size: 64, intermediate_size: 128, "
                        "num_hidden_layers: 2, num_attention_heads: 2, num_key_value_heads: 2, head_dim: 32, "
                        "num_local_experts: 8}\n";
    struct plim_train_setting setting = with("re:.*(q_proj|sinks|bias)", "");
    setting.attention = PLIM_ATTENTION_EAGER;
    expect_trained(model, &setting, OF_QUERIES);
}
