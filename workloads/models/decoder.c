#include "model.h"
#include "devices/needs/needs_attention.h"
#include "workloads/spec/spec_vision.h"
#include <stdlib.h>

static const struct family *const families[PLIM_FAMILY_COUNT] = {
    [PLIM_FAMILY_GPT2] = &plim_family_gpt2,         [PLIM_FAMILY_LLAMA] = &plim_family_llama,
    [PLIM_FAMILY_MISTRAL] = &plim_family_llama,     [PLIM_FAMILY_QWEN2] = &plim_family_llama,
    [PLIM_FAMILY_QWEN3] = &plim_family_llama,       [PLIM_FAMILY_PHI3] = &plim_family_llama,
    [PLIM_FAMILY_GEMMA2] = &plim_family_llama,      [PLIM_FAMILY_GEMMA3_TEXT] = &plim_family_llama,
    [PLIM_FAMILY_OLMO2] = &plim_family_llama,       [PLIM_FAMILY_PHI] = &plim_family_phi,
    [PLIM_FAMILY_GEMMA] = &plim_family_llama,       [PLIM_FAMILY_STARCODER2] = &plim_family_llama,
    [PLIM_FAMILY_SMOLLM3] = &plim_family_llama,     [PLIM_FAMILY_GRANITE] = &plim_family_llama,
    [PLIM_FAMILY_OLMO] = &plim_family_llama,        [PLIM_FAMILY_OLMO3] = &plim_family_llama,
    [PLIM_FAMILY_COHERE] = &plim_family_llama,      [PLIM_FAMILY_COHERE2] = &plim_family_llama,
    [PLIM_FAMILY_GLM] = &plim_family_llama,         [PLIM_FAMILY_GLM4] = &plim_family_llama,
    [PLIM_FAMILY_STABLELM] = &plim_family_stablelm,
    [PLIM_FAMILY_GPT_NEOX] = &plim_family_gpt_neox, [PLIM_FAMILY_OPT] = &plim_family_opt,
    [PLIM_FAMILY_BLOOM] = &plim_family_bloom,       [PLIM_FAMILY_BERT] = &plim_family_bert,
    [PLIM_FAMILY_ROBERTA] = &plim_family_bert,      [PLIM_FAMILY_DISTILBERT] = &plim_family_bert,
    [PLIM_FAMILY_XLM_ROBERTA] = &plim_family_bert,  [PLIM_FAMILY_ELECTRA] = &plim_family_bert,
    [PLIM_FAMILY_MODERNBERT] = &plim_family_modernbert, [PLIM_FAMILY_MIXTRAL] = &plim_family_llama,
    [PLIM_FAMILY_QWEN2_MOE] = &plim_family_llama,   [PLIM_FAMILY_QWEN3_MOE] = &plim_family_llama,
    [PLIM_FAMILY_VIT] = &plim_family_vit,           [PLIM_FAMILY_GPT_OSS] = &plim_family_llama,
    [PLIM_FAMILY_QWEN3_5_TEXT] = &plim_family_llama, [PLIM_FAMILY_QWEN3_5_MOE_TEXT] = &plim_family_llama,
    [PLIM_FAMILY_OLMOE] = &plim_family_llama,       [PLIM_FAMILY_QWEN3_NEXT] = &plim_family_llama,
    [PLIM_FAMILY_MINISTRAL3] = &plim_family_llama,
    [PLIM_FAMILY_MINISTRAL] = &plim_family_llama,
    [PLIM_FAMILY_ARCEE] = &plim_family_llama,
    [PLIM_FAMILY_APERTUS] = &plim_family_llama,
    [PLIM_FAMILY_NEMOTRON] = &plim_family_llama,
    [PLIM_FAMILY_EXAONE4] = &plim_family_llama,
    [PLIM_FAMILY_SEED_OSS] = &plim_family_llama,
    [PLIM_FAMILY_ERNIE4_5] = &plim_family_llama,
    [PLIM_FAMILY_HUNYUAN_V1_DENSE] = &plim_family_llama,
    [PLIM_FAMILY_QWEN2_VL] = &plim_family_llama,    [PLIM_FAMILY_QWEN2_5_VL] = &plim_family_llama,
    [PLIM_FAMILY_QWEN3_VL] = &plim_family_llama,    [PLIM_FAMILY_QWEN3_5] = &plim_family_llama,
    [PLIM_FAMILY_QWEN3_VL_MOE] = &plim_family_llama, [PLIM_FAMILY_QWEN3_5_MOE] = &plim_family_llama,
    [PLIM_FAMILY_GEMMA3] = &plim_family_llama,      [PLIM_FAMILY_MISTRAL3] = &plim_family_llama,
    [PLIM_FAMILY_LLAVA] = &plim_family_llama,       [PLIM_FAMILY_INTERNVL] = &plim_family_llama,
    [PLIM_FAMILY_GEMMA4_UNIFIED] = &plim_family_gemma4,
    [PLIM_FAMILY_GEMMA4] = &plim_family_gemma4,     [PLIM_FAMILY_GEMMA4_TEXT] = &plim_family_gemma4,
    [PLIM_FAMILY_GEMMA4_UNIFIED_TEXT] = &plim_family_gemma4,
    [PLIM_FAMILY_LFM2] = &plim_family_llama,
    [PLIM_FAMILY_LFM2_MOE] = &plim_family_llama,
    [PLIM_FAMILY_FALCON] = &plim_family_falcon,
    [PLIM_FAMILY_GPT_BIGCODE] = &plim_family_gpt_bigcode,
    [PLIM_FAMILY_GRANITEMOE] = &plim_family_llama,
    [PLIM_FAMILY_GRANITEMOEHYBRID] = &plim_family_llama,
    [PLIM_FAMILY_GLM4_MOE] = &plim_family_llama,
    [PLIM_FAMILY_AFMOE] = &plim_family_llama,
    [PLIM_FAMILY_MINIMAX_M2] = &plim_family_llama,
    [PLIM_FAMILY_ERNIE4_5_MOE] = &plim_family_llama,
    [PLIM_FAMILY_DEEPSEEK_V2] = &plim_family_llama,
    [PLIM_FAMILY_DEEPSEEK_V3] = &plim_family_llama,
    [PLIM_FAMILY_GLM4_MOE_LITE] = &plim_family_llama,
    [PLIM_FAMILY_T5] = &plim_family_t5,
    [PLIM_FAMILY_MT5] = &plim_family_t5,
    [PLIM_FAMILY_DEBERTA_V2] = &plim_family_deberta_v2,
    [PLIM_FAMILY_ESM] = &plim_family_esm,
    [PLIM_FAMILY_ALBERT] = &plim_family_albert,
    [PLIM_FAMILY_MPNET] = &plim_family_mpnet,
    [PLIM_FAMILY_GPTJ] = &plim_family_gptj,
    [PLIM_FAMILY_FALCON_H1] = &plim_family_falcon_h1,
    [PLIM_FAMILY_NEMOTRON_H] = &plim_family_nemotron_h,
    [PLIM_FAMILY_WHISPER] = &plim_family_whisper,
    [PLIM_FAMILY_BART] = &plim_family_bart,
    [PLIM_FAMILY_MBART] = &plim_family_bart,
};

/* True if weights of experts are misaligned: ZeRO 1 and 2 store all weights one after the other, and PyTorch multiplies
 * experts only at addresses aligned to 16 bytes ("expected data_ptr to be aligned to 16 bytes"). The sizes of other
 * parameters preserve that, but gpt_oss and linear attention have some that may not. */
static bool is_unaligned(const struct plim_model_config *config, const struct plim_train_setting *setting)
{
    bool is_flat = setting->sharding == PLIM_SHARDING_ZERO1 || setting->sharding == PLIM_SHARDING_ZERO2;
    int64_t bytes = plim_dtype_size(decoder_parameter_dtype(setting));
    if (!is_flat || setting->lora.r || !config->experts) return false;
    if (plim_precision_weights(setting->precision) == PLIM_WEIGHTS_AUTO) bytes = 2; /* DeepSpeed casts them */
    if (config->family == PLIM_FAMILY_GPT_OSS) return (config->heads * bytes) % 16 || (config->experts * bytes) % 16;
    return (config->linear_value_heads * bytes) % 16;
}

/* Returns why cut cross entropy is impossible, or NULL. cce_backward_kernel() supports only 16-bit types: "Backwards
 * requires embeddings to be bf16 or fp16". */
static const char *cut_refuses(const struct plim_device_info *info, const struct plim_train_setting *setting)
{
    if (!setting->cut_cross_entropy) return NULL;
    if (info->compute_capability && info->compute_capability < 80)
        return "cut cross entropy needs a GPU of compute capability 8.0 or later: its kernels take 96 KiB of shared "
               "memory (OutOfResources)";
    if (setting->sharding == PLIM_SHARDING_ZERO3)
        return "cut cross entropy fails under zero3: it gathers the head within backward, where DeepSpeed holds it "
               "already (Cannot free a ZeRO-3 parameter while it is still active in submodules)";
    bool is_mixed = plim_precision_weights(setting->precision) == PLIM_WEIGHTS_AUTO;
    bool is_cast = is_mixed && setting->sharding >= PLIM_SHARDING_ZERO1; /* by DeepSpeed, or by FSDP's policy */
    bool is_prepared = setting->quantization.type && setting->quantization.prepared &&
                       setting->upcast != PLIM_UPCAST_UNDONE;
    bool is_wide = is_prepared || setting->upcast == PLIM_UPCAST_KEPT;
    if (is_cast || (decoder_parameter_dtype(setting) != PLIM_F32 && !is_wide)) return NULL;
    if (setting->upcast == PLIM_UPCAST_KEPT)
        return "cut cross entropy needs the head in 16 bits, which train.upcast kept makes fp32";
    return is_prepared ? "cut cross entropy needs the head in 16 bits, which train.quantization.prepare makes fp32"
                       : "cut cross entropy needs weights in 16 bits (train.weights bf16)";
}

/* Returns why latent attention is impossible with sdpa, or NULL. Values are the last part of each head of one
 * projection, and the memory-efficient kernel, if it is selected, needs them aligned to 16 bytes: "cutlassB: no kernel
 * found to launch!". */
static const char *latent_refuses(const struct plim_model_config *c, const struct plim_train_setting *s)
{
    bool in_fp32 = s->precision == PLIM_PRECISION_FP32 || s->precision == PLIM_PRECISION_TF32;
    int64_t unit = in_fp32 ? 4 : 8;
    if (!c->key_rank || s->attention != PLIM_ATTENTION_SDPA) return NULL;
    bool is_taken = (c->plain_dim + c->head_dim) % unit == 0 && c->value_dim % unit == 0;
    if (!is_taken || c->plain_dim % unit == 0) return NULL;
    return "sdpa fails for heads whose qk_nope_head_dim is not a multiple of 8 (fp32: of 4) where the others are: "
           "values do not lie at 16 bytes (cutlassB: no kernel found to launch!)";
}

const char *decoder_refuses(const struct plim_device_info *info,
                            const struct plim_model_config *config,
                            const struct plim_train_setting *setting)
{
    if (cut_refuses(info, setting)) return cut_refuses(info, setting);
    if (latent_refuses(config, setting)) return latent_refuses(config, setting);
    if (config->vision.layers && setting->seq < plim_image_shortest_row(&config->vision, &setting->images))
        return "a row (data.seq) is shorter than its images (data.images)";
    if (setting->micro_batch * setting->images.count > UINT16_MAX)
        return "a micro-batch has more than 65,535 images, which are parts of one tensor";
    bool is_packed = setting->packing == PLIM_PACKING_ONE_ROW && setting->documents > 1;
    if (is_packed && setting->prompt && !info->simulated)
        return "prompts (data.prompt) in rows of several documents (data.documents) are simulated only";
    if (config->experts && setting->lora.r && info->compute_capability && info->compute_capability < 80)
        return "adapters beside experts are not supported on a GPU before compute capability 8.0, where transformers "
               "computes the experts one by one (a program runs under exec)";
    if (is_unaligned(config, setting))
        return config->linear_value_heads
                   ? "experts beside linear attention or Mamba-2 layers need multiples of 8 linear_num_value_heads "
                     "(mamba_n_heads) under ZeRO 1 or 2: PyTorch multiplies them from aligned addresses alone"
                   : "gpt_oss under ZeRO 1 or 2 needs multiples of 8 heads and of 8 experts: PyTorch multiplies them "
                     "from aligned addresses alone";
    bool is_reentrant = setting->checkpointing == PLIM_CHECKPOINTING_FULL && setting->use_reentrant;
    if (config->patch_size && setting->lora.r && is_reentrant && plim_loop_is_trainers(setting->loop))
        return "vit's adapters get no gradient by reentrant checkpointing with Trainer, as its patches need none "
               "(element 0 of tensors does not require grad); use_reentrant false runs";
    bool is_sharded = setting->sharding == PLIM_SHARDING_FSDP || setting->sharding == PLIM_SHARDING_ZERO3;
    bool has_reference = setting->loop == PLIM_LOOP_TRL_GRPO ||
                         plim_loop_has_reference(setting->loop, setting->preference_loss);
    if (setting->lora.r && *setting->lora.saved && (is_sharded || has_reference))
        return "train.lora.modules_to_save is not supported with fsdp and zero3, and where the model without its "
               "adapters is a reference (plimsoll exec runs the program)";
    const struct plim_quantization *quantization = &setting->quantization;
    bool is_moved = setting->sharding == PLIM_SHARDING_FSDP && quantization->storage != PLIM_STORAGE_UINT8;
    if (quantization->type && quantization->loaded_on == PLIM_MADE_ON_HOST && !is_moved)
        return "a quantised base on the host (train.quantization.loaded_on) stays there, but for fsdp and codes in "
               "floats (train.quantization.storage)";
    if (setting->attention != PLIM_ATTENTION_FLASH2) return NULL;
    struct plim_attention_shape shape = {.head_size = config->head_dim,
                                         .dtype = PLIM_F16, /* or bf16, to which the same applies */
                                         .dropout = config->dropout_attention > 0,
                                         .training = true};
    if (info->compute_capability && !plim_flash2_fits(info, &shape))
        return info->compute_capability < 80
                   ? "flash_attention_2 needs a GPU of compute capability 8.0 or later"
                   : "flash_attention_2 has no backward for heads of this size on this GPU";
    return NULL;
}

enum plim_status decoder_create(struct engine *e, const struct plim_model_config *config,
                                const struct plim_train_setting *setting, struct decoder *m)
{
    *m = (struct decoder){.config = config, .setting = setting, .family = families[config->family]};
    if (!m->family) return PLIM_UNSUPPORTED;
    m->layers = calloc((size_t)config->layers, sizeof *m->layers);
    if (!m->layers) return PLIM_NOMEM;
    if (!vision_create(m)) return PLIM_NOMEM;
    if (experts_are_balanced(config, setting)) {
        m->router_logits = calloc((size_t)config->layers, sizeof(struct tensor *));
        if (!m->router_logits) return PLIM_NOMEM;
    }
    if (setting->loop == PLIM_LOOP_LLAMAFACTORY_RM || config->family == PLIM_FAMILY_DEBERTA_V2) {
        m->hidden_states = calloc((size_t)config->layers, sizeof(struct tensor *));
        if (!m->hidden_states) return PLIM_NOMEM;
    }
    m->parameters.dtype = decoder_parameter_dtype(setting);
    bool quantized = setting->quantization.type != PLIM_QUANTIZATION_NONE;
    bool sharded = setting->sharding >= PLIM_SHARDING_ZERO1;
    /* On a real GPU kernels compute the buffers, so these need memory. */
    bool moved = setting->made_on == PLIM_MADE_ON_HOST && !quantized && !sharded && e->device->info.simulated;
    bool loaded = decoder_is_loaded(setting) && !quantized && e->device->info.simulated;
    bool cast = loaded && setting->made_on == PLIM_MADE_ON_CAST;
    enum plim_dtype dtype = m->parameters.dtype;
    /* DeepSpeed casts the weights after they are loaded. */
    if (loaded && sharded && setting->weights != PLIM_WEIGHTS_AUTO)
        m->parameters.dtype = decoder_weights_dtype(setting->weights);
    if (cast) m->parameters.dtype = PLIM_BF16;
    e->meta = quantized || sharded || moved || loaded;
    m->family->build(e, m);
    if (quantized || loaded) decoder_load(e, m);
    if (config->vision.layers && setting->freeze_vision && !setting->lora.r) vision_freeze(e, m);
    if (config->mel_bins && !setting->lora.r) whisper_freeze(e, m);
    if (cast) decoder_widen(e, m); /* trained weights are fp32 */
    decoder_upcast(e, m);
    if (setting->lora.r) decoder_add_lora(e, m);
    m->parameters.dtype = dtype;
    value_head_build(e, m);
    e->meta = false;
    return moved ? decoder_move(e, m) : PLIM_OK;
}

void decoder_finish(struct decoder *m)
{
    free(m->layers);
    vision_finish(m);
    free(m->router_logits);
    free(m->hidden_states);
    free(m->output_cache.layer);
    free(m->parameters.list);
    free(m->parameters.frozen);
    *m = (struct decoder){0};
}

static struct tensor *body(struct engine *e, const void *module, struct tensor *inputs)
{
    struct decoder *const *m = module;
    return tensor_yield((*m)->family->body(e, *m, inputs));
}

/* Runs the model without its head; named */
static struct tensor *run_body(struct engine *e, struct decoder *m, struct tensor *inputs)
{
    struct tensor *const looked_at[] = {m->patch_weight, NULL};
    if (m->patch_weight) return tensor_keep(nn_run(e, looked_at, NN_MODEL, body, &m, inputs));
    nn_begin(e);
    return tensor_keep(nn_end(e, body(e, &m, inputs)));
}

static void lend(struct decoder *m, const struct batch *batch)
{
    m->inputs = batch->inputs;
    m->attention_mask = batch->mask;
    m->positions = batch->positions;
    m->ends = batch->ends[0];
    m->document = batch->document;
    m->pixels = batch->pixels;
    m->token_types = batch->token_types;
    m->labels = batch->labels;
    m->answer_ends = batch->answer_ends;
    m->decoder_inputs = batch->decoder_inputs;
    m->kept = batch->kept;
    m->kept_tokens = batch->kept_tokens;
}

void decoder_drop_output(struct engine *e, struct decoder *m)
{
    tensor_drop(e, m->encoded);
    m->encoded = NULL;
    if (!m->config->encoder_layers) return;
    decoder_cache_drop(e, &m->output_cache);
    m->cache = NULL;
}

struct tensor *decoder_loss(struct engine *e, struct decoder *m, const struct batch *batch, struct tensor **logits)
{
    lend(m, batch);
    struct tensor *x = run_body(e, m, batch->inputs);
    struct tensor *labels = m->setting->label_smoothing > 0 ? NULL : batch->labels;
    struct tensor *loss = head_loss(e, m, x, labels, logits);
    tensor_drop_all(e, x, m->shifted);
    m->shifted = NULL;
    return loss;
}

struct tensor *decoder_values(struct engine *e, struct decoder *m, const struct batch *batch, struct tensor **loss,
                              struct tensor **logits)
{
    lend(m, batch);
    struct tensor *x = run_body(e, m, batch->inputs);
    *loss = head_loss(e, m, x, batch->labels, logits);
    struct tensor *values = value_head_run(e, m, x);
    tensor_set(e, logits, op_to(e, *logits, PLIM_F32));
    for (int64_t i = 0; i < m->config->layers; i++) {
        tensor_drop(e, m->hidden_states[i]);
        m->hidden_states[i] = NULL;
    }
    tensor_drop(e, x);
    return values;
}

/* Adds the experts' load-balancing loss to the model's own loss. */
static void balance(struct engine *e, const struct decoder *m, struct tensor *mask, struct fused_output *out)
{
    out->aux_loss = experts_balance(e, m, mask);
    if (!out->aux_loss) return;
    struct tensor *weighted = tensor_keep(op_mul_scalar(e, out->aux_loss, m->config->aux_loss_coef));
    tensor_set(e, &out->loss, op_add(e, out->loss, weighted));
    tensor_drop(e, weighted);
}

/* Returns the transform that add_fused_lm_head() reads from the model's configuration. */
static struct logit_transform transform_of(const struct plim_model_config *c)
{
    double scale = c->logit_scale > 0 ? c->logit_scale : c->logits_scaling > 0 ? 1 / c->logits_scaling : 1;
    return (struct logit_transform){.scale = scale, .cap = c->final_logit_softcapping};
}

struct fused_output decoder_fused(struct engine *e, struct decoder *m, const struct batch *batch, unsigned wanted)
{
    lend(m, batch);
    bool is_scored = m->setting->loop == PLIM_LOOP_TRL_GRPO && !e->grad_enabled; /* without router logits */
    bool balances = m->router_logits && !is_scored;
    m->returns_router_logits = balances;
    struct tensor *x = run_body(e, m, batch->inputs);
    m->returns_router_logits = false;
    const struct linear head = head_linear(m);
    struct tensor *lent[2];
    struct fused_output out = nn_fused_head(e, &head, transform_of(m->config), x, batch->labels, decoder_labels(m),
                                            wanted, lent);
    if (balances) balance(e, m, batch->mask, &out);
    tensor_drop_all(e, lent[0], lent[1]);
    for (int64_t i = 0; i < m->config->layers && balances; i++) {
        tensor_drop(e, m->router_logits[i]);
        m->router_logits[i] = NULL;
    }
    tensor_drop(e, x);
    return out;
}

struct tensor *decoder_next_logits(struct engine *e, struct decoder *m, const struct batch *batch,
                                   struct decoder_cache *cache)
{
    struct tensor *logits = NULL;
    lend(m, batch);
    m->cache = cache;
    struct tensor *x = run_body(e, m, batch->inputs);
    m->cache = NULL;
    int64_t tokens = e->halted ? 1 : tensor_size(x, 1);
    struct tensor *last = tensor_hold(op_slice(e, x, 1, tokens - 1, 1));
    head_loss(e, m, last, NULL, &logits);
    tensor_drop_all(e, last, x);
    cache->tokens += tokens;
    return logits;
}

static double attention_flops_per_token(const struct plim_model_config *c, int64_t seq)
{
    double width = c->key_rank ? (double)(c->head_dim + c->plain_dim + c->value_dim) / 2 : (double)c->head_dim;
    double full = 12.0 * (double)c->heads * width * (double)seq;
    double linear = 18.0 * (double)c->linear_value_heads * (double)(c->linear_key_dim * c->linear_value_dim), sum = 0;
    bool has_both = plim_model_has_parallel_mamba(c);
    for (int64_t i = 0; i < c->layers; i++)
        sum += has_both                     ? linear + full
               : c->layer_is_linear[i]      ? linear
               : plim_model_layer_feeds(c, i) ? 0
                                            : full;
    return c->passes ? sum / (double)c->layers * (double)c->passes : sum;
}

/* Returns the number of elements of those parameters in a list that belong to blocks. */
static double weights_in_layers(const struct decoder *m, struct tensor *const *list, size_t count)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        if (decoder_layer_of(m, list[i])) sum += (double)tensor_elements(list[i]);
    return sum;
}

/* albert: returns the number of weights of layers that run repeatedly, counted once for each run after the first. */
static double repeated_weights(const struct decoder *m)
{
    const struct parameters *p = &m->parameters;
    const struct plim_model_config *c = m->config;
    if (!c->passes) return 0;
    double once = weights_in_layers(m, p->list, p->count) + weights_in_layers(m, p->frozen, p->frozen_count);
    return once / (double)c->layers * (double)(c->passes - c->layers);
}

/* Returns the number of forwards without gradients per trained sample, one of which may be the generation, token by
 * token. */
static double forwards_without_gradients(const struct plim_train_setting *s)
{
    const struct plim_grpo *grpo = &s->grpo;
    if (s->loop != PLIM_LOOP_TRL_GRPO) {
        bool has_kl = plim_loop_has_kl(s->loop); /* one more row per sample */
        bool has_reference = plim_loop_has_reference(s->loop, s->preference_loss) && !s->precomputed_reference;
        return has_kl + (1 + has_kl) * has_reference;
    }
    if (grpo->updates * grpo->iterations > 1) return 0; /* the timed step has none of them */
    return (grpo->vllm == PLIM_VLLM_NONE) + (plim_grpo_corrects(grpo) > 0) + grpo->reference;
}

/* Returns the number of weights that a token is not multiplied by: of tables, of a row's own head and of esm's head of
 * contacts, which no training uses. */
static double unmultiplied_weights(const struct decoder *m)
{
    const struct tensor *tables[] = {m->head != m->embedding ? m->embedding : NULL, m->type_embedding,
                                     m->per_layer_embedding, m->distance_embedding};
    double sum = (double)head_weights_a_row(m);
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        if (tables[i]) sum += (double)tensor_elements(tables[i]);
    if (m->position_embedding) sum += (double)(m->config->positions * m->config->hidden_size);
    return m->contacts.weight ? sum + (double)(m->contacts.in + 1) : sum;
}

double decoder_flops_per_token(const struct decoder *m)
{
    const struct plim_model_config *c = m->config;
    const struct parameters *p = &m->parameters;
    if (c->encoder_layers) return seq2seq_flops_per_token(m);
    double idle = (double)experts_idle_weights(m) + (double)m->replaced_elements + (double)vision_elements(m);
    double weights = (double)p->elements + repeated_weights(m) - unmultiplied_weights(m) - idle, frozen = 0;
    bool is_looked_up = m->embedding && m->head != m->embedding && m->embedding->requires_grad;
    double trained = (double)p->trainable_elements - (is_looked_up ? (double)tensor_elements(m->embedding) : 0);
    if (m->setting->lora.r) frozen = weights - trained;
    double attention = attention_flops_per_token(c, m->setting->seq);
    double forward = 2 * weights + attention / 3, images = vision_flops_per_row(m) / (double)m->setting->seq;
    return 6 * weights - 2 * frozen + attention + images + forward * forwards_without_gradients(m->setting);
}
