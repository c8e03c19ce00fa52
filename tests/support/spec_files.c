#include "spec_files.h"
#include "workloads/spec/family.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char dir[64];

const char *spec_files_dir(void)
{
    if (!dir[0]) {
        strcpy(dir, "/tmp/plim_spec_XXXXXX");
        cr_assert(mkdtemp(dir) != NULL);
    }
    return dir;
}

static void remove_below(const char *folder)
{
    DIR *open_dir = opendir(folder);
    if (!open_dir) return;
    for (struct dirent *entry; (entry = readdir(open_dir)) != NULL;) {
        char path[512];
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
        snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
        if (unlink(path) != 0) remove_below(path);
    }
    closedir(open_dir);
    rmdir(folder);
}

void spec_files_remove(void)
{
    if (dir[0]) remove_below(dir);
    dir[0] = '\0';
}

const char *spec_file(const char *name, const char *text)
{
    static char path[256];
    snprintf(path, sizeof(path), "%s/%s", spec_files_dir(), name);
    FILE *file = fopen(path, "w");
    cr_assert(file != NULL);
    fputs(text, file);
    cr_assert(fclose(file) == 0);
    return path;
}

void spec_load_text(const char *name, const char *text, struct plim_spec *spec)
{
    struct plim_error err = PLIM_ERROR_INIT;
    char message[PLIM_ERROR_TEXT];
    enum plim_status st = plim_spec_load(spec_file(name, text), spec, &err);
    plim_error_format(&err, message, sizeof(message));
    cr_assert(st == PLIM_OK, "%s", message);
}

const char *spec_refusal_of(const char *source)
{
    static char message[PLIM_ERROR_TEXT];
    static const struct plim_spec empty;
    struct plim_spec spec;
    struct plim_error err = PLIM_ERROR_INIT;
    enum plim_status st = plim_spec_load(source, &spec, &err);
    plim_error_format(&err, message, sizeof(message));
    cr_assert(st == PLIM_SPEC, "status %d: %s", st, message);
    cr_assert(err.status == PLIM_SPEC);
    cr_assert(memcmp(&spec, &empty, sizeof(spec)) == 0, "a refused spec is not zeroed");
    size_t length = strlen(dir);
    return length && strncmp(message, dir, length) == 0 && message[length] == '/'
               ? message + length + 1
               : message;
}

const char *spec_refusal(const char *name, const char *text)
{
    return spec_refusal_of(spec_file(name, text));
}

static bool same(const void *a, const void *b, size_t size)
{
    return memcmp(a, b, size) == 0;
}

/* Member by member: the padding between them is undefined. */
static bool model_equal(const struct plim_model_config *a, const struct plim_model_config *b)
{
#define SAME_MEMBER(suffix, member, ...) &&same(&a->member, &b->member, sizeof(a->member))
    return a->family == b->family && a->rope == b->rope && a->dtype == b->dtype &&
           a->has_padding_idx == b->has_padding_idx &&
           same(a->layer_is_nope, b->layer_is_nope, sizeof(a->layer_is_nope)) &&
           same(a->layer_is_linear, b->layer_is_linear, sizeof(a->layer_is_linear)) &&
           same(a->layer_is_sliding, b->layer_is_sliding, sizeof(a->layer_is_sliding))
               PLIM_FIELD_MAP(SAME_MEMBER);
#undef SAME_MEMBER
}

bool spec_equal(const struct plim_spec *a, const struct plim_spec *b)
{
    const struct plim_lora *x = &a->lora, *y = &b->lora;
    bool axes = same(&a->micro_batch, &b->micro_batch, sizeof(a->micro_batch)) &&
                same(&a->seq, &b->seq, sizeof(a->seq)) &&
                same(&a->precision, &b->precision, sizeof(a->precision)) &&
                same(&a->weights, &b->weights, sizeof(a->weights)) &&
                same(&a->optimizer, &b->optimizer, sizeof(a->optimizer)) &&
                same(&a->checkpointing, &b->checkpointing, sizeof(a->checkpointing)) &&
                same(&a->attention, &b->attention, sizeof(a->attention)) &&
                same(&a->sharding, &b->sharding, sizeof(a->sharding)) &&
                same(&a->liger, &b->liger, sizeof(a->liger)) &&
                same(&a->liger_kernels, &b->liger_kernels, sizeof(a->liger_kernels)) &&
                same(&a->images, &b->images, sizeof(a->images)) && a->target_seq == b->target_seq &&
                a->freeze_encoder == b->freeze_encoder &&
                a->cut_cross_entropy == b->cut_cross_entropy && a->upcast == b->upcast;
    bool batch =
        a->gpus_per_node == b->gpus_per_node &&
        same(&a->node_bandwidth, &b->node_bandwidth, sizeof(double)) &&
        same(&a->host_speed, &b->host_speed, sizeof(double)) &&
        a->reduction == b->reduction && a->resharding == b->resharding &&
        a->efficient_loading == b->efficient_loading &&
        a->reduce_type == b->reduce_type && a->packing == b->packing && a->padding == b->padding &&
        a->documents == b->documents &&
        a->ddp.bucket_mib == b->ddp.bucket_mib && a->ddp.as_view == b->ddp.as_view &&
        a->ddp.finds_unused == b->ddp.finds_unused && a->ddp.is_static == b->ddp.is_static &&
        a->rank == b->rank && a->zero.bucket_elements == b->zero.bucket_elements &&
        a->zero.overlap == b->zero.overlap && a->zero.contiguous == b->zero.contiguous &&
        a->zero.sub_group_elements == b->zero.sub_group_elements &&
        a->zero.prefetch_elements == b->zero.prefetch_elements &&
        a->zero.live_elements == b->zero.live_elements &&
        a->zero.reuse_elements == b->zero.reuse_elements &&
        a->zero.persistent_elements == b->zero.persistent_elements &&
        a->world == b->world && a->effective_batch == b->effective_batch &&
        same(&a->effective_batch_tolerance, &b->effective_batch_tolerance, sizeof(double)) &&
        a->accumulation == b->accumulation && a->schedule_count == b->schedule_count &&
        same(a->schedule, b->schedule, a->schedule_count * sizeof(a->schedule[0]));
    bool lora = x->r == y->r && same(&x->dropout, &y->dropout, sizeof(double)) &&
                !strcmp(x->targets, y->targets) && !strcmp(x->exclude, y->exclude) &&
                !strcmp(x->saved, y->saved) && x->ties == y->ties &&
                !strcmp(x->layers_pattern, y->layers_pattern) && same(&x->layers, &y->layers, sizeof(x->layers)) &&
                x->rank_count == y->rank_count;
    for (size_t i = 0; lora && i < x->rank_count; i++)
        lora = !strcmp(x->ranks[i].regex, y->ranks[i].regex) && x->ranks[i].r == y->ranks[i].r;
    return model_equal(&a->model, &b->model) && axes && batch && lora &&
           same(&a->clip, &b->clip, sizeof(double)) && strcmp(a->device, b->device) == 0 &&
           a->hash == b->hash;
}

/* --- parameters ------------------------------------------------------------------------------- */

/* Weights and biases of a linear layer. */
static int64_t linear(int64_t in, int64_t out, bool bias)
{
    return in * out + (bias ? out : 0);
}

/* gpt2, opt, bloom, gpt_neox: LayerNorms, a plain MLP. */
static int64_t layer_of_gpts(const struct plim_model_config *m)
{
    int64_t h = m->hidden_size, i = m->intermediate_size;
    bool opt = m->family == PLIM_FAMILY_OPT, bias = opt ? m->enable_bias : true;
    bool attention_bias = m->family == PLIM_FAMILY_GPT_NEOX ? m->attention_bias : bias;
    int64_t norms = opt && !m->layer_norm_elementwise_affine ? 0 : 2 * 2 * h;
    int64_t keys = m->kv_heads * m->head_dim; /* gpt_bigcode: of fewer heads */
    return 2 * linear(h, h, attention_bias) + 2 * linear(h, keys, attention_bias) + linear(h, i, bias) +
           linear(i, h, bias) + norms;
}

static int64_t layer_of_falcon(const struct plim_model_config *m)
{
    int64_t h = m->hidden_size, i = m->intermediate_size, all = (m->heads + 2 * m->kv_heads) * m->head_dim;
    bool bias = m->mlp_bias, has_one_norm = m->parallel_residual && m->norms_in_parallel != 2;
    return linear(h, all, bias) + linear(h, h, bias) + linear(h, i, bias) + linear(i, h, bias) +
           (has_one_norm ? 2 * h : 4 * h);
}

static int64_t experts_and_router(const struct plim_model_config *m)
{
    int64_t h = m->hidden_size;
    int64_t gate = m->shared_experts ? 0 : h; /* of the shared expert */
    int64_t biases = m->mlp_bias ? 2 * m->shared_expert_size + h : 0; /* deepseek_v2's */
    bool has_corrections = m->family == PLIM_FAMILY_ERNIE4_5_MOE || m->family == PLIM_FAMILY_AFMOE;
    int64_t corrections = has_corrections ? m->experts : 0; /* parameters there */
    return m->experts * (3 * h * m->expert_size + h) + corrections +
           (m->shared_expert_size ? 3 * h * m->shared_expert_size + gate + biases : 0);
}

/* deepseek_v3: latents with norms between linears; experts */
static int64_t layer_of_latents(const struct plim_model_config *m)
{
    int64_t h = m->hidden_size, r = m->query_rank, width = m->plain_dim + m->head_dim, queries = m->heads * width;
    int64_t through_latent = linear(h, r, m->attention_bias) + r + linear(r, queries, false);
    int64_t of_queries = r ? through_latent : linear(h, queries, false);
    int64_t of_keys = linear(h, m->key_rank + m->head_dim, m->attention_bias) + m->key_rank +
                      linear(m->key_rank, m->heads * (m->plain_dim + m->value_dim), false);
    return of_queries + of_keys + linear(m->heads * m->value_dim, h, m->attention_bias) + 2 * h + experts_and_router(m);
}

/* llama and its relatives: RMSNorms, a gated MLP (phi: one LayerNorm, a plain MLP). */
static int64_t layer_of_llamas(const struct plim_model_config *m)
{
    enum plim_family f = m->text ? m->text : m->family;
    int64_t h = m->hidden_size, i = m->intermediate_size, q = m->heads * m->head_dim,
            kv = m->kv_heads * m->head_dim;
    bool phi = f == PLIM_FAMILY_PHI;
    bool qwen2 = f == PLIM_FAMILY_QWEN2 || f == PLIM_FAMILY_QWEN2_VL || f == PLIM_FAMILY_QWEN2_5_VL;
    bool in_bias = phi || qwen2 || m->attention_bias;
    if (m->key_rank) return layer_of_latents(m);
    bool out_bias = phi || (m->attention_bias && f != PLIM_FAMILY_QWEN2_MOE && f != PLIM_FAMILY_STABLELM &&
                             f != PLIM_FAMILY_GLM && f != PLIM_FAMILY_GLM4 && f != PLIM_FAMILY_SEED_OSS &&
                             f != PLIM_FAMILY_GLM4_MOE);
    int64_t attention =
        linear(h, q, in_bias) + 2 * linear(h, kv, in_bias) + linear(q, h, out_bias || m->attention_out_bias);
    if (phi)
        return attention + linear(h, i, true) + linear(i, h, true) + 2 * h +
               (m->qk_layernorm ? 4 * m->head_dim : 0);
    int64_t mlp = 2 * linear(h, i, m->mlp_bias) + linear(i, h, m->mlp_bias);
    bool ungated = f == PLIM_FAMILY_STARCODER2 || f == PLIM_FAMILY_ARCEE || f == PLIM_FAMILY_NEMOTRON ||
                   f == PLIM_FAMILY_APERTUS;
    if (ungated) mlp -= linear(h, i, m->mlp_bias);
    bool four_norms = f == PLIM_FAMILY_GEMMA2 || f == PLIM_FAMILY_GEMMA3_TEXT || f == PLIM_FAMILY_GEMMA3 ||
                      f == PLIM_FAMILY_GLM4 || f == PLIM_FAMILY_AFMOE;
    if (m->experts) mlp = experts_and_router(m);
    if (f == PLIM_FAMILY_GPT_OSS) /* biases of the router and the experts; sinks */
        mlp += m->experts * (1 + 2 * m->expert_size + h) + m->heads;
    bool gated = f == PLIM_FAMILY_QWEN3_5_TEXT || f == PLIM_FAMILY_QWEN3_5_MOE_TEXT || f == PLIM_FAMILY_QWEN3_NEXT ||
                 f == PLIM_FAMILY_QWEN3_5 || f == PLIM_FAMILY_QWEN3_5_MOE;
    if (gated) attention += linear(h, q, in_bias); /* a gate beside the queries */
    if (f == PLIM_FAMILY_AFMOE) attention += linear(h, q, false); /* of its gate */
    bool head_norms = f == PLIM_FAMILY_AFMOE || f == PLIM_FAMILY_QWEN3 || f == PLIM_FAMILY_QWEN3_VL ||
                      f == PLIM_FAMILY_QWEN3_MOE || f == PLIM_FAMILY_QWEN3_VL_MOE ||
                      f == PLIM_FAMILY_GEMMA3_TEXT || f == PLIM_FAMILY_GEMMA3 || gated || f == PLIM_FAMILY_LFM2 ||
                      f == PLIM_FAMILY_LFM2_MOE || f == PLIM_FAMILY_EXAONE4 || f == PLIM_FAMILY_APERTUS ||
                      f == PLIM_FAMILY_HUNYUAN_V1_DENSE ||
                      (f == PLIM_FAMILY_GLM4_MOE && m->qk_layernorm);
    int64_t norms = (four_norms ? 4 : 2) * h + (head_norms ? 2 * m->head_dim : 0);
    bool layer_norms = f == PLIM_FAMILY_STARCODER2 || f == PLIM_FAMILY_NEMOTRON || f == PLIM_FAMILY_STABLELM;
    if (layer_norms) norms = m->parallel_residual ? 2 * h : 4 * h;
    if (f == PLIM_FAMILY_OLMO) norms = 0;
    if (f == PLIM_FAMILY_COHERE || f == PLIM_FAMILY_COHERE2) norms = h + (m->qk_layernorm ? q + kv : 0);
    if (m->activation == PLIM_ACTIVATION_XIELU) mlp += 2;
    bool whole = f == PLIM_FAMILY_OLMO2 || f == PLIM_FAMILY_OLMO3 || f == PLIM_FAMILY_OLMOE ||
                 f == PLIM_FAMILY_MINIMAX_M2;
    return attention + mlp + norms + (whole ? q + kv : 0);
}

/* What a layer of linear attention has more than one of attention to all. */
static int64_t linear_attention_beyond(const struct plim_model_config *m)
{
    int64_t h = m->hidden_size, q = m->heads * m->head_dim, kv = m->kv_heads * m->head_dim;
    int64_t full = linear(h, 2 * q, m->attention_bias) + 2 * linear(h, kv, m->attention_bias) +
                   linear(q, h, m->attention_bias) + 2 * m->head_dim;
    if (m->family == PLIM_FAMILY_LFM2 || m->family == PLIM_FAMILY_LFM2_MOE) /* a convolution between two projections */
        return 4 * h * h + m->linear_kernel * h - (full - linear(h, q, false));
    int64_t keys = m->linear_key_heads * m->linear_key_dim, values = m->linear_value_heads * m->linear_value_dim;
    int64_t projections = h * (2 * keys + 3 * values + 2 * m->linear_value_heads);
    int64_t own = m->linear_kernel * (2 * keys + values) + 2 * m->linear_value_heads + m->linear_value_dim;
    return projections + own - full;
}

/* ernie4_5_moe: layers before the first and behind the last that may have experts, and those between */
static int64_t ernie_dense_layers(const struct plim_model_config *m)
{
    int64_t dense = 0;
    for (int64_t i = 0; i < m->layers; i++)
        dense += i < m->dense_layers || i > m->last_sparse || (i + 1) % m->sparse_step != 0;
    return dense;
}

/* electra: as bert, with embeddings of their own width and a bias of the head's linear alone. */
static int64_t of_electra(const struct plim_model_config *m)
{
    int64_t h = m->hidden_size, f = m->intermediate_size, v = m->vocab_size, w = m->word_embed_proj_dim;
    int64_t layer = 4 * (h * h + h) + 2 * h * f + f + h + 4 * h;
    int64_t body = m->layers * layer + (v + m->positions + m->type_vocab_size) * w + 2 * w + (w == h ? 0 : w * h + h);
    if (m->task == PLIM_TASK_CLASSIFICATION) return body + h * h + h + m->labels * (h + 1);
    return body + h * w + 3 * w + v + (m->tie_word_embeddings ? 0 : v * w);
}

/* bert, roberta, distilbert: linears and LayerNorms with biases, a head of one linear and one
 * classifier, or of a linear, a norm and a bias on the tied embedding. */
static int64_t of_berts(const struct plim_model_config *m)
{
    int64_t h = m->hidden_size, f = m->intermediate_size, v = m->vocab_size;
    int64_t layer = 4 * (h * h + h) + 2 * h * f + f + h + 4 * h;
    int64_t body = m->layers * layer + (v + m->positions + m->type_vocab_size) * h + 2 * h;
    if (m->task == PLIM_TASK_CLASSIFICATION)
        return body + h * h + h + m->labels * (h + 1);
    bool two_biases = !m->tie_word_embeddings && m->family != PLIM_FAMILY_DISTILBERT;
    return body + h * h + 3 * h + v + (m->tie_word_embeddings ? 0 : v * h) + (two_biases ? v : 0);
}

/* esm: as bert with a last norm and a head of contacts, without types, and without positions where queries turn */
static int64_t of_esm(const struct plim_model_config *m)
{
    struct plim_model_config bert = *m;
    int64_t h = m->hidden_size, own = m->norms_embeddings ? 2 * h : 0;
    if (m->position_kind == PLIM_POSITIONS_ROTARY) bert.positions = 0;
    bool two_biases = !m->tie_word_embeddings && m->task == PLIM_TASK_MASKED_LM;
    return of_berts(&bert) + own + m->layers * m->heads + 1 - (two_biases ? m->vocab_size : 0);
}

/* albert: layers that run many times once, embeddings of their own width */
static int64_t of_albert(const struct plim_model_config *m)
{
    int64_t h = m->hidden_size, f = m->intermediate_size, v = m->vocab_size, w = m->word_embed_proj_dim;
    int64_t layer = 4 * (h * h + h) + 2 * h * f + f + h + 4 * h;
    int64_t body = m->layers * layer + (v + m->positions + m->type_vocab_size) * w + 2 * w + w * h + h;
    if (m->task == PLIM_TASK_CLASSIFICATION) return body + h * h + h + m->labels * (h + 1);
    return body + h * w + 3 * w + v + (m->tie_word_embeddings ? 0 : v * w + v);
}

/* deberta-v2: bert's without positions or types where there are none; an embedding of distances, and its projections */
static int64_t of_deberta(const struct plim_model_config *m)
{
    int64_t h = m->hidden_size, scores = m->position_scores == PLIM_SCORES_BOTH ? 2 : m->position_scores != 0;
    struct plim_model_config bert = *m;
    if (!m->absolute_positions) bert.positions = 0;
    int64_t all = of_berts(&bert) + (m->distance_norm ? 2 * h : 0);
    if (!m->relative_attention) return all;
    int64_t own = m->shares_projections ? 0 : scores * (h * h + h);
    return all + 2 * plim_model_distances(m) * h + m->layers * own;
}

static int64_t of_modernbert(const struct plim_model_config *m)
{
    int64_t h = m->hidden_size, f = m->intermediate_size, v = m->vocab_size;
    int64_t norm = m->norm_bias ? 2 * h : h;
    int64_t layer = 4 * h * h + 3 * h * f + 2 * norm + (m->attention_bias ? 4 * h : 0) +
                    (m->mlp_bias ? 2 * f + h : 0);
    int64_t body = m->layers * layer - norm + v * h + 2 * norm; /* the first layer has one norm */
    int64_t dense = h * h + (m->classifier_bias ? h : 0) + norm;
    if (m->task == PLIM_TASK_CLASSIFICATION) return body + dense + m->labels * (h + 1);
    return body + dense + (m->decoder_bias ? v : 0) + (m->tie_word_embeddings ? 0 : v * h);
}

/* A class token, patches with a bias, positions; pre-norm blocks; one classifier. */
static int64_t of_vit(const struct plim_model_config *m)
{
    int64_t h = m->hidden_size, f = m->intermediate_size, size = m->patch_size;
    int64_t layer = 3 * linear(h, h, m->attention_bias) + linear(h, h, true) + linear(h, f, true) +
                    linear(f, h, true) + 4 * h;
    return h + h * m->channels * size * size + h + m->positions * h + m->layers * layer + 2 * h +
           linear(h, m->labels, true);
}

/* gemma3's: a convolution, positions, pre-norm blocks, a LayerNorm; a norm and a matrix to the text's width */
static int64_t of_siglip(const struct plim_vision *v)
{
    int64_t w = v->hidden_size, f = v->intermediate_size, patch = v->channels * v->patch_size * v->patch_size;
    int64_t block = 4 * linear(w, w, true) + linear(w, f, true) + linear(f, w, true) + 4 * w;
    return linear(patch, w, true) + v->positions * w + v->layers * block + 2 * w + w + w * v->out_hidden_size;
}

/* mistral3's: patches without a bias, a norm, pre-norm gated blocks; a norm and three linears behind it */
static int64_t of_pixtral(const struct plim_vision *v)
{
    int64_t w = v->hidden_size, h = v->out_hidden_size, patch = v->channels * v->patch_size * v->patch_size;
    int64_t block = 4 * w * w + 3 * w * v->intermediate_size + 2 * w;
    return patch * w + w + v->layers * block + w + v->merge_size * v->merge_size * w * w + w * h + h * h;
}

/* llava's: a class token, a convolution without a bias, positions, pre-norm blocks between LayerNorms; two linears */
static int64_t of_clip(const struct plim_vision *v)
{
    int64_t w = v->hidden_size, f = v->intermediate_size, h = v->out_hidden_size;
    int64_t block = 4 * linear(w, w, true) + linear(w, f, true) + linear(f, w, true) + 4 * w;
    return w + v->channels * v->patch_size * v->patch_size * w + (v->positions + 1) * w + v->layers * block + 4 * w +
           linear(w, h, true) + linear(h, h, true);
}

/* internvl's: a class token, a convolution, positions, pre-norm blocks with two factors; a norm and two linears */
static int64_t of_internvit(const struct plim_vision *v)
{
    int64_t w = v->hidden_size, f = v->intermediate_size, h = v->out_hidden_size, merged = 4 * w;
    int64_t block = 3 * linear(w, w, v->attention_bias) + linear(w, w, true) + linear(w, f, true) + linear(f, w, true) +
                    6 * w;
    return w + linear(v->channels * v->patch_size * v->patch_size, w, true) + (v->positions + 1) * w +
           v->layers * block + 2 * merged + linear(merged, h, true) + linear(h, h, true);
}

static int64_t of_tower(const struct plim_vision *v)
{
    if (v->has_tiles) return of_internvit(v);
    if (v->has_class) return of_clip(v);
    if (v->row_ends) return of_pixtral(v);
    if (v->image_size) return of_siglip(v);
    bool gated = v->window_size > 0; /* qwen2_5_vl, whose norms have no biases */
    int64_t w = v->hidden_size, merged = w * v->merge_size * v->merge_size, f = v->intermediate_size;
    int64_t block = linear(w, 3 * w, true) + linear(w, w, true) + (gated ? 2 : 1) * linear(w, f, true) +
                    linear(f, w, true) + (gated ? 2 : 4) * w;
    int64_t patch = v->channels * v->frames * v->patch_size * v->patch_size;
    int64_t merger = linear(merged, merged, true) + linear(merged, v->out_hidden_size, true);
    return linear(patch, w, v->positions > 0) + v->positions * w + v->layers * block +
           (v->deep_count + 1) * merger + (gated ? 1 : 2) * w +
           v->deep_count * 2 * merged;
}

/* Attention without biases, the decoder's twice; a norm in front of each layer and behind the blocks; two biases on
 * positions. */
static int64_t of_t5(const struct plim_model_config *m)
{
    int64_t h = m->hidden_size, attention = 4 * h * m->heads * m->head_dim + h,
            mlp = (m->gated_mlp ? 3 : 2) * h * m->intermediate_size + h;
    int64_t encoder = m->encoder_layers * (attention + mlp), decoder = m->decoder_layers * (2 * attention + mlp);
    return encoder + decoder + 2 * (m->relative_buckets * m->heads + h) +
           m->vocab_size * h * (m->tie_word_embeddings ? 1 : 2);
}

/* Attention whose keys have no bias, the decoder's twice; a norm in front of each layer and behind the blocks; two
 * convolutions and the positions of both stacks. */
static int64_t of_whisper(const struct plim_model_config *m)
{
    int64_t h = m->hidden_size, attention = 4 * h * h + 3 * h + 2 * h;
    int64_t mlps[] = {h * (2 * m->intermediate_size + 3) + m->intermediate_size,
                      h * (2 * m->decoder_intermediate + 3) + m->decoder_intermediate};
    return m->encoder_layers * (attention + mlps[0]) + m->decoder_layers * (2 * attention + mlps[1]) + 4 * h +
           h * (3 * m->mel_bins + 3 * h + 2) + h * (m->source_positions + m->positions) +
           m->vocab_size * h * (m->tie_word_embeddings ? 1 : 2);
}

/* Attention with biases, the decoder's twice; a norm in each layer, of both embeddings and, of mbart, behind the
 * blocks. */
static int64_t of_bart(const struct plim_model_config *m)
{
    int64_t h = m->hidden_size, attention = 4 * h * h + 4 * h + 2 * h;
    int64_t mlps[] = {h * (2 * m->intermediate_size + 3) + m->intermediate_size,
                      h * (2 * m->decoder_intermediate + 3) + m->decoder_intermediate};
    int64_t norms = m->family == PLIM_FAMILY_MBART ? 4 : 2;
    return m->encoder_layers * (attention + mlps[0]) + m->decoder_layers * (2 * attention + mlps[1]) + norms * 2 * h +
           2 * h * (m->positions + 2) + m->vocab_size * h;
}

/* Norms of queries and keys, which layers that share them have not, and four of the block's; embeddings for each
 * layer; experts beside the MLP, with a router and three norms. */
static int64_t of_gemma4(const struct plim_model_config *m)
{
    int64_t h = m->hidden_size, p = m->per_layer_size, all = m->vocab_size * h * (m->tie_word_embeddings ? 1 : 2) + h;
    bool bias = m->attention_bias;
    if (p) all += m->layers * p * (m->per_layer_vocab + h) + p;
    for (int64_t i = 0; i < m->layers; i++) {
        bool slides = m->layer_is_sliding[i], shares = i >= m->layers - m->shared_kv_layers;
        int64_t width = slides ? m->head_dim : m->global_head_dim, q = m->heads * width,
                kv = (slides ? m->kv_heads : m->global_kv_heads) * width;
        all += linear(h, q, bias) + width + linear(q, h, bias) + 4 * h;
        if (!shares) all += (slides || !m->keys_are_values ? 2 : 1) * linear(h, kv, bias) + width;
        all += 3 * h * m->intermediate_size * (shares && m->double_wide ? 2 : 1);
        if (p) all += 2 * h * p + h;
        if (m->experts) all += experts_and_router(m) + h + m->experts + 3 * h;
    }
    return all;
}

/* Patches, two tables of positions, gated blocks with norms on both sides and of heads, a matrix to the text's width;
 * two convolutions, blocks of two MLPs, attention and a convolution, and two matrices of sound */
static int64_t of_gemma4_towers(const struct plim_model_config *m)
{
    const struct plim_vision *v = &m->vision;
    const struct plim_audio *a = &m->audio;
    int64_t w = v->hidden_size, s = a->hidden_size, h = m->hidden_size;
    int64_t block = 2 * w * v->head_dim * (v->heads + v->kv_heads) + 3 * w * v->intermediate_size + 2 * v->head_dim +
                    4 * w;
    int64_t sees = 3 * w * v->patch_size * v->patch_size + 2 * w * v->positions + v->layers * block + w * h;
    if (!a->layers) return sees;
    int64_t mlp = 8 * s * s + 2 * s, attention = 5 * s * s + s / a->heads,
            conv = 3 * s * s + s * a->kernel_size + 2 * s;
    int64_t front = 9 * a->channels[0] * (a->channels[1] + 1) + a->channels[0] + a->channels[1] +
                    a->channels[0] / 4 * a->channels[1] * s;
    return sees + front + a->layers * (2 * mlp + attention + conv + 3 * s) + linear(s, a->out_size, true) +
           a->out_size * h;
}

/* A linear of patches between norms, positions and a norm; two matrices to the text's width */
static int64_t of_gemma4_embedders(const struct plim_model_config *m)
{
    const struct plim_vision *v = &m->vision;
    int64_t w = v->hidden_size, patch = 3 * v->patch_size * v->patch_size * v->merge_size * v->merge_size;
    return 2 * patch + linear(patch, w, true) + 4 * w + 2 * v->positions * w +
           (v->intermediate_size + m->audio.out_size) * m->hidden_size;
}

/* Two projections, a convolution of channels, three numbers of each head, a norm but of falcon_h1's */
static int64_t of_mamba(const struct plim_model_config *m)
{
    int64_t h = m->hidden_size, heads = m->linear_value_heads, width = heads * m->linear_value_dim,
            channels = width + 2 * m->linear_key_heads * m->linear_key_dim;
    bool has_norm = m->family != PLIM_FAMILY_FALCON_H1;
    return linear(h, width + channels + heads, m->mamba_proj_bias) + channels * m->linear_kernel +
           (m->mamba_conv_bias ? channels : 0) + 3 * heads + (has_norm ? width : 0) +
           linear(width, h, has_norm ? m->mamba_proj_bias : m->mamba_out_bias);
}

/* Attention or a Mamba-2 layer, of falcon_h1 both; a gated MLP, beside it experts; two norms */
static int64_t of_hybrids(const struct plim_model_config *m)
{
    int64_t h = m->hidden_size, q = m->heads * m->head_dim, kv = m->kv_heads * m->head_dim, all = m->vocab_size * h + h;
    bool b = m->attention_bias, has_both = m->family == PLIM_FAMILY_FALCON_H1;
    int64_t attention = linear(h, q, b) + 2 * linear(h, kv, b) + linear(q, h, b);
    int64_t rest = 2 * linear(h, m->intermediate_size, m->mlp_bias) + linear(m->intermediate_size, h, m->mlp_bias) +
                   m->experts * (3 * h * m->expert_size + h) + 2 * h;
    for (int64_t i = 0; i < m->layers; i++)
        all += rest + (has_both ? of_mamba(m) + attention : m->layer_is_linear[i] ? of_mamba(m) : attention);
    return all + (m->tie_word_embeddings ? 0 : m->vocab_size * h);
}

/* Of each layer a norm, and attention, a Mamba-2 layer, an MLP or experts */
static int64_t of_nemotron_h(const struct plim_model_config *m)
{
    int64_t h = m->hidden_size, f = m->intermediate_size, s = m->shared_expert_size, all = 2 * m->vocab_size * h + h;
    int64_t attention = 2 * h * (m->heads + m->kv_heads) * m->head_dim, mlp = 2 * h * f + m->mlp_bias * (h + f);
    int64_t sparse = 2 * h * s + m->mlp_bias * (h + s) + m->experts * h * (2 * m->expert_size + 1);
    for (const char *k = m->layer_pattern; *k; k++)
        all += h + (*k == 'M' ? of_mamba(m) : *k == '-' ? mlp : *k == 'E' ? sparse : attention);
    return all;
}

int64_t spec_parameters(const struct plim_model_config *m)
{
    int64_t h = m->hidden_size, v = m->vocab_size, head = m->tie_word_embeddings ? 0 : h * v;
    switch (m->family) {
    case PLIM_FAMILY_GPT2:
    case PLIM_FAMILY_GPT_BIGCODE:
        return m->layers * layer_of_gpts(m) + v * h + m->positions * h + 2 * h + head;
    case PLIM_FAMILY_GPT_NEOX: return m->layers * layer_of_gpts(m) + v * h + 2 * h + head;
    case PLIM_FAMILY_NEMOTRON_H: return of_nemotron_h(m);
    case PLIM_FAMILY_GRANITEMOEHYBRID:
    case PLIM_FAMILY_FALCON_H1: return of_hybrids(m);
    case PLIM_FAMILY_FALCON:
        return m->layers * layer_of_falcon(m) + v * h + 2 * h + head;
    case PLIM_FAMILY_BLOOM: /* a LayerNorm behind the embedding, too */
        return m->layers * layer_of_gpts(m) + v * h + 4 * h + head;
    case PLIM_FAMILY_OPT: {
        int64_t w = m->word_embed_proj_dim, projections = w == h ? 0 : 2 * w * h;
        bool final_norm = m->do_layer_norm_before && !m->remove_final_layer_norm &&
                          m->layer_norm_elementwise_affine;
        return m->layers * layer_of_gpts(m) + v * w * (m->tie_word_embeddings ? 1 : 2) +
               (m->positions + 2) * h + projections + (final_norm ? 2 * h : 0);
    }
    case PLIM_FAMILY_PHI: /* the head has a bias */
        return m->layers * layer_of_llamas(m) + v * h + 2 * h + head + v;
    case PLIM_FAMILY_BERT:
    case PLIM_FAMILY_ROBERTA:
    case PLIM_FAMILY_XLM_ROBERTA:
    case PLIM_FAMILY_DISTILBERT:
        return of_berts(m);
    case PLIM_FAMILY_ELECTRA:
        return of_electra(m);
    case PLIM_FAMILY_MODERNBERT:
        return of_modernbert(m);
    case PLIM_FAMILY_ALBERT:
        return of_albert(m);
    case PLIM_FAMILY_MPNET: /* a bias on positions */
        return of_berts(m) + m->relative_buckets * m->heads;
    case PLIM_FAMILY_GPTJ: /* no biases in attention, one in the head */
        return m->layers * (4 * h * h + (2 * h + 1) * m->intermediate_size + 3 * h) + v * h + 2 * h + head +
               (m->task == PLIM_TASK_CAUSAL_LM ? v : 0);
    case PLIM_FAMILY_ESM:
        return of_esm(m);
    case PLIM_FAMILY_DEBERTA_V2:
        return of_deberta(m);
    case PLIM_FAMILY_VIT:
        return of_vit(m);
    case PLIM_FAMILY_GEMMA4:
        return of_gemma4(m) + of_gemma4_towers(m);
    case PLIM_FAMILY_GEMMA4_UNIFIED:
        return of_gemma4(m) + of_gemma4_embedders(m);
    case PLIM_FAMILY_GEMMA4_TEXT:
    case PLIM_FAMILY_GEMMA4_UNIFIED_TEXT:
        return of_gemma4(m);
    case PLIM_FAMILY_T5:
    case PLIM_FAMILY_MT5:
        return of_t5(m);
    case PLIM_FAMILY_WHISPER:
        return of_whisper(m);
    case PLIM_FAMILY_BART:
    case PLIM_FAMILY_MBART:
        return of_bart(m);
    case PLIM_FAMILY_STARCODER2:
    case PLIM_FAMILY_NEMOTRON:
    case PLIM_FAMILY_STABLELM: /* a LayerNorm with a bias at the end */
        return m->layers * layer_of_llamas(m) + v * h + 2 * h + head;
    case PLIM_FAMILY_OLMO: /* norms without weights */
        return m->layers * layer_of_llamas(m) + v * h + head;
    default: {
        int64_t linear_layers = 0, dense_layers = m->experts ? m->layers - m->layers / m->sparse_step : 0;
        int64_t width = m->intermediate_size, biases = m->mlp_bias ? 2 * width + h : 0;
        if (m->dense_layers) dense_layers = m->dense_layers < m->layers ? m->dense_layers : m->layers;
        bool ernie = m->family == PLIM_FAMILY_ERNIE4_5_MOE;
        if (ernie) dense_layers = ernie_dense_layers(m);
        if (ernie && m->attention_bias) head += v;
        for (int64_t i = 0; i < m->layers; i++) linear_layers += m->layer_is_linear[i];
        int64_t layers = m->layers * layer_of_llamas(m) + linear_layers * linear_attention_beyond(m);
        if (m->vision.layers)
            layers += of_tower(&m->vision);
        return layers + dense_layers * (3 * h * width + biases - experts_and_router(m)) + v * h + h + head;
    }
    }
}
