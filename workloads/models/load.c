/* from_pretrained() with a device_map, as in transformers 5.17: the model is created without memory, and the
 * checkpoint's weights are loaded one by one, in the order of their names; with bitsandbytes each is on the GPU in full
 * before it is quantised. Also model.to(device). */
#include "experts.h"
#include "model.h"
#include "devices/allocator/allocator.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MODULES_MAX = 32 };

struct load {
    struct engine *e;
    struct decoder *m;
    struct tensor *map; /* the code map of nested scales, shared by all weights */
};

static const enum plim_quantized quantized_as[PLIM_QUANTIZATION_COUNT] = {
    [PLIM_QUANTIZATION_NF4] = PLIM_QUANTIZED_NF4,
    [PLIM_QUANTIZATION_FP4] = PLIM_QUANTIZED_FP4,
    [PLIM_QUANTIZATION_INT8] = PLIM_QUANTIZED_ROWS};

static const enum plim_dtype storage_of[PLIM_STORAGE_COUNT] = {
    [PLIM_STORAGE_UINT8] = PLIM_U8,
    [PLIM_STORAGE_BF16] = PLIM_BF16,
    [PLIM_STORAGE_FP16] = PLIM_F16,
    [PLIM_STORAGE_FP32] = PLIM_F32};

bool decoder_cast_loses_codes(const struct plim_train_setting *setting, enum plim_dtype dtype)
{
    enum plim_dtype storage = storage_of[setting->quantization.storage];
    return setting->quantization.type != PLIM_QUANTIZATION_NONE && storage != PLIM_U8 && storage != dtype;
}

/* --- one tensor ------------------------------------------------------------------------------- */

/* Returns memory for a tensor of the model that has none; named */
static struct tensor *memory_of(struct engine *e, const struct tensor *x)
{
    enum plim_memory_class before = engine_set_class(e, PLIM_MEMORY_PARAMETERS);
    struct tensor *y =
        tensor_keep(tensor_empty(e, (enum plim_dtype)x->a.dtype, x->a.ndim, x->a.shape));
    engine_set_class(e, before);
    return y;
}

/* Allocates a tensor's memory without writing it: the contents of a buffer do not matter, and on a simulated GPU none
 * do. */
static void allocate_memory(struct engine *e, struct tensor *x)
{
    struct tensor *y = memory_of(e, x);
    if (!e->halted) tensor_set_data(e, x, y);
}

static void load_tensor(struct load *load, struct tensor *x, enum parameter_init init)
{
    if (!x || load->e->halted) return;
    struct tensor *y = memory_of(load->e, x);
    nn_initialise(load->e, y, init, x->a.data);
    if (!load->e->halted) tensor_set_data(load->e, x, y);
}

/* Loads the weight of a linear and replaces it by quantised codes. A Conv1D's is transposed first. */
static void load_quantized(struct load *load, struct linear *l)
{
    struct engine *e = load->e;
    const struct plim_quantization *how = &load->m->setting->quantization;
    if (e->halted) return;
    struct tensor *stored = memory_of(e, l->weight);
    nn_initialise(e, stored, INIT_WEIGHT, l->weight->a.data);
    struct tensor *weight =
        tensor_keep(l->conv1d ? op_transpose(e, stored, 0, 1) : op_alias(e, stored));
    l->conv1d = false;
    l->quantized.type = quantized_as[how->type];
    l->quantized.compute = decoder_weights_dtype(how->compute);
    l->quantized.storage = storage_of[how->storage];
    enum plim_memory_class before = engine_set_class(e, PLIM_MEMORY_PARAMETERS);
    if (how->type == PLIM_QUANTIZATION_INT8) op_quantize_int8(e, &l->quantized, weight);
    else op_quantize_4bit(e, &l->quantized, weight, how->nested, &load->map);
    engine_set_class(e, before);
    tensor_drop(e, weight);
    tensor_drop(e, stored);
    if (e->halted) return;
    bool is_parameter = how->type != PLIM_QUANTIZATION_INT8; /* in 8 bits the layer also holds the codes (CB) */
    tensor_set_data(e, l->weight, is_parameter ? l->quantized.codes : tensor_detach(e, l->quantized.codes));
    l->weight->is_codes = true;
    if (is_parameter) l->quantized.codes = l->weight;
}

/* --- stacked weights of experts --------------------------------------------------------------- */

/* MergeModulelist: returns the stack (experts, out, in) of the experts' matrices (out, in), which were on the GPU and
 * are dropped; named */
static struct tensor *merge(struct load *load, struct tensor **parts, int64_t out, int64_t in)
{
    struct engine *e = load->e;
    int64_t experts = load->m->config->experts;
    struct tensor *stack = tensor_keep(tensor_empty(e, load->m->parameters.dtype, SHAPE(experts, out, in)));
    for (int64_t i = experts; i-- > 0;) tensor_drop(e, parts[i]);
    return stack;
}

/* Loads a parameter (experts, 2 F, H) or (experts, H, F) from a checkpoint that has a linear for each expert: those of
 * all experts are loaded and stacked, and gate and up are concatenated. Only the allocations are reproduced; the loaded
 * values do not matter. */
static void load_stack(struct load *load, struct tensor *x, bool is_joined)
{
    struct engine *e = load->e;
    int64_t experts = x->a.shape[0], halves = is_joined ? 2 : 1, out = x->a.shape[1] / halves, in = x->a.shape[2];
    struct tensor **parts = calloc((size_t)(halves * experts), sizeof(*parts)), *stacks[2] = {NULL};
    if (!parts) {
        engine_fail(e, PLIM_NOMEM);
        return;
    }
    for (int64_t i = 0; i < halves * experts; i++)
        parts[i] = tensor_keep(tensor_empty(e, load->m->parameters.dtype, SHAPE(out, in)));
    for (int64_t i = 0; i < halves; i++) stacks[i] = merge(load, parts + i * experts, out, in);
    free(parts);
    struct tensor *weight = is_joined ? memory_of(e, x) : tensor_ref(stacks[0]);
    if (!e->halted) tensor_classify(e, weight, PLIM_MEMORY_PARAMETERS);
    nn_initialise(e, weight, INIT_WEIGHT, x->a.data);
    for (int64_t i = 0; i < halves; i++) tensor_drop(e, stacks[i]);
    if (!e->halted) tensor_set_data(e, x, weight);
}

/* True for parameters and buffers that are initialised to ones: gemma4's, and those of internvl's tower */
static bool is_scale(const struct module *module)
{
    return module->offset == offsetof(struct decoder_layer, scalar) ||
           module->offset == offsetof(struct decoder_layer, scales[0]) ||
           module->offset == offsetof(struct decoder_layer, scales[1]) ||
           module->offset == offsetof(struct decoder_layer, router_scale) ||
           module->offset == offsetof(struct decoder_layer, expert_scale);
}

static bool is_stack(const struct module *module)
{
    return module->offset == offsetof(struct decoder_layer, experts_gate_up) ||
           module->offset == offsetof(struct decoder_layer, experts_down);
}

/* --- in the order of names -------------------------------------------------------------------- */

enum { STORED_NAME = 64 };

/* True for families whose experts are stacked in checkpoints, under granitemoe's names. */
static bool has_granites_experts(enum plim_family family)
{
    return family == PLIM_FAMILY_GRANITEMOE || family == PLIM_FAMILY_GRANITEMOEHYBRID;
}

/* Writes the name of a module in a checkpoint, followed by ".weight" for MODULE_WEIGHT. The experts and routers of
 * mixtral, minimax_m2, granitemoe and granitemoehybrid have older names there. */
static void stored_name(const struct decoder *m, const struct module *module, char name[STORED_NAME])
{
    bool has_older = m->config->family == PLIM_FAMILY_MIXTRAL || m->config->family == PLIM_FAMILY_MINIMAX_M2;
    bool is_renamed = has_older && !strncmp(module->path, "mlp.", 4);
    const char *linear = strstr(module->path, "experts.gate_up") ? "input_linear." : "output_linear.";
    if (has_granites_experts(m->config->family) && !strncmp(module->path, "block_", 6)) {
        snprintf(name, STORED_NAME, "block_sparse_moe.%s", module->kind == MODULE_WEIGHT ? "router." : linear);
        return;
    }
    if (m->config->family == PLIM_FAMILY_NEMOTRON_H && !strncmp(module->path, "model.", 6)) {
        snprintf(name, STORED_NAME, "backbone.%s.", module->path + 6);
        return;
    }
    if (m->config->family == PLIM_FAMILY_ERNIE4_5_MOE && strstr(module->path, "moe_statics")) {
        snprintf(name, STORED_NAME, "mlp.moe_statics.e_score_correction_bias");
        return;
    }
    snprintf(name, STORED_NAME, "%s%s%s", is_renamed ? "block_sparse_moe." : "", module->path + (is_renamed ? 4 : 0),
             module->kind == MODULE_WEIGHT ? ".weight" : "");
    const char *experts = m->config->family == PLIM_FAMILY_LFM2_MOE ? "feed_forward.experts."
                          : is_renamed                              ? "block_sparse_moe.experts."
                                                                    : NULL;
    if (experts && strstr(module->path, "experts.gate_up_proj")) /* experts.0.w1 is read before experts.0.w2 */
        snprintf(name, STORED_NAME, "%s", experts);
}

/* Stores the modules of a list, sorted by their names in a checkpoint, in which numbers have one digit. Returns their
 * number. */
static int sorted(const struct decoder *m, const struct module *modules, const struct module *out[MODULES_MAX])
{
    char name[STORED_NAME], before[STORED_NAME];
    int count = 0;
    for (; modules[count].path && count < MODULES_MAX; count++) {
        int at = count;
        stored_name(m, &modules[count], name);
        for (; at > 0; at--) {
            stored_name(m, out[at - 1], before);
            if (strcmp(before, name) <= 0) break;
            out[at] = out[at - 1];
        }
        out[at] = &modules[count];
    }
    return count;
}

static void load_module(struct load *load, const struct module *module, void *owner);

static void load_blocks(struct load *load, const struct module *blocks)
{
    struct decoder *m = load->m;
    const struct module *block[MODULES_MAX];
    int count = sorted(m, decoder_block_modules(m->config->family), block);
    int64_t layers[2];
    module_blocks(m, blocks, layers);
    for (int64_t i = layers[0]; i < layers[1]; i++)
        for (int k = 0; k < count; k++) load_module(load, block[k], &m->layers[i]);
}

static void load_part(struct load *load, const struct vision_part *part)
{
    const struct module *modules[MODULES_MAX];
    int count = sorted(load->m, part->parts->modules, modules);
    for (int k = 0; k < count; k++) load_module(load, modules[k], part->owner);
}

/* Loads the towers' parts of one owner. */
static void load_parts(struct load *load, enum vision_owner of)
{
    struct vision_part part;
    for (size_t i = 0; vision_part(load->m, i, &part); i++)
        if (part.parts->of == of) load_part(load, &part);
}

/* Loads the last merger and the modules that read patches, which come after the blocks of Qwen's towers and before
 * those of others. */
static void load_beside_blocks(struct load *load)
{
    const struct vision *vision = &load->m->vision;
    load_tensor(load, vision->projection, INIT_WEIGHT);
    load_parts(load, VISION_MERGER);
    if (load->m->config->vision.row_ends) load_tensor(load, vision->norm.weight, INIT_ONES); /* pixtral's ln_pre */
    load_tensor(load, vision->class_token, INIT_ZEROS);
    load_tensor(load, vision->patch_bias, INIT_ZEROS);
    load_tensor(load, vision->patch_weight, INIT_WEIGHT);
    load_tensor(load, vision->positions, INIT_WEIGHT);
}

/* Loads gemma4's audio tower and the projections to the text's width, whose names precede the text's. */
static void load_before_text(struct load *load)
{
    static const enum vision_owner order[] = {VISION_AUDIO_BLOCKS, VISION_AUDIO_BACK, VISION_AUDIO_FRONT,
                                              VISION_AUDIO_EMBEDDING, VISION_MERGER};
    for (size_t i = 0; i < sizeof(order) / sizeof(order[0]) && load->m->vision.patch.weight; i++)
        load_parts(load, order[i]);
}

/* Loads the vision tower, whose names come after the text's. */
static void load_vision(struct load *load)
{
    const struct vision *vision = &load->m->vision;
    const struct plim_vision *v = &load->m->config->vision;
    struct vision_part part;
    if (!plim_vision_exists(v)) return;
    if (vision->patch.weight) { /* gemma4's */
        load_parts(load, VISION_BLOCKS);
        load_parts(load, VISION_TOWER);
        if (v->layers) load_tensor(load, vision->positions, INIT_ONES);
        for (int i = 0; i < 2; i++) load_tensor(load, vision->standard[i], INIT_ONES);
        return;
    }
    bool is_qwens = !vision->projection && !v->row_ends && !v->has_class;
    if (!is_qwens) load_beside_blocks(load);
    for (size_t i = 0; vision_part(load->m, i, &part); i++)
        if (part.parts->of != VISION_MERGER) load_part(load, &part);
    load_tensor(load, vision->last_norm.bias, INIT_ZEROS);
    load_tensor(load, vision->last_norm.weight, INIT_ONES);
    load_tensor(load, vision->norm.bias, INIT_ZEROS);
    if (!v->row_ends) load_tensor(load, vision->norm.weight, INIT_ONES);
    if (is_qwens) load_beside_blocks(load);
}

static void load_module(struct load *load, const struct module *module, void *owner)
{
    struct decoder *m = load->m;
    void *place = (char *)owner + module->offset;
    struct linear *linear = place;
    struct norm *norm = place;
    struct convolution *convolution = place;
    struct tensor **weight = place;
    enum plim_family family = m->config->family;
    bool is_stacked_there = family == PLIM_FAMILY_GPT_OSS || has_granites_experts(family) ||
                            m->config->global_head_dim;
    switch (module->kind) {
    case MODULE_WEIGHT:
    case MODULE_PARAMETER:
        if (!*weight || load->e->halted) break;
        if (!is_stack(module) || is_stacked_there)
            load_tensor(load, *weight, is_scale(module) ? INIT_ONES : INIT_WEIGHT);
        else load_stack(load, *weight, module->offset == offsetof(struct decoder_layer, experts_gate_up) &&
                                           !experts_traits_of(load->m)->is_plain);
        break;
    case MODULE_CONVOLUTION:
        load_tensor(load, convolution->bias, INIT_ZEROS);
        load_tensor(load, convolution->weight, INIT_WEIGHT);
        break;
    case MODULE_NORM:
        load_tensor(load, norm->bias, INIT_ZEROS);
        load_tensor(load, norm->weight, norm->kind == NORM_RMS_GEMMA ? INIT_ZEROS : INIT_ONES);
        break;
    case MODULE_LINEAR:
        if (!linear->weight) break;
        load_tensor(load, linear->bounds[1], INIT_ONES);
        load_tensor(load, linear->bounds[0], INIT_ONES);
        load_tensor(load, linear->bias, INIT_ZEROS);
        if (load->m->setting->quantization.type && !linear->in_steps) load_quantized(load, linear);
        else load_tensor(load, linear->weight, INIT_WEIGHT);
        load_tensor(load, linear->bounds[3], INIT_ONES);
        load_tensor(load, linear->bounds[2], INIT_ONES);
        break;
    case MODULE_BLOCKS: load_blocks(load, module); break;
    case MODULE_CLASSIFIER:
    case MODULE_HEAD:
        if (!module_exists(m, module, m)) break;
        load_tensor(load, m->head_bias, INIT_ZEROS);
        if (*weight != m->embedding) load_tensor(load, *weight, INIT_WEIGHT);
        break;
    }
}

/* --- before and after ------------------------------------------------------------------------- */

/* Returns the number by which get_total_byte_count() divides the sizes of parameters in the family's tensor-parallel
 * plan (base_model_tp_plan, _tp_plan), although they are not split: the number of ranks, or 1. */
static int64_t ranks_of_plan(const struct decoder *m)
{
    enum plim_family family = m->config->family;
    bool has_plan = family != PLIM_FAMILY_GPT2 && family != PLIM_FAMILY_OPT && family != PLIM_FAMILY_BLOOM &&
                    family != PLIM_FAMILY_NEMOTRON_H && !plim_vision_exists(&m->config->vision);
    return has_plan && plim_loop_is_trainers(m->setting->loop) && m->setting->world > 1 ? m->setting->world : 1;
}

/* True if the family's plan contains the norm: some contain those of queries and keys. */
static bool plans_norm(const struct decoder *m, const struct module *module)
{
    enum plim_family family = m->config->family;
    bool plans = family == PLIM_FAMILY_QWEN3 || family == PLIM_FAMILY_QWEN3_MOE || family == PLIM_FAMILY_GEMMA3_TEXT ||
                 family == PLIM_FAMILY_QWEN3_5_TEXT || family == PLIM_FAMILY_QWEN3_5_MOE_TEXT ||
                 family == PLIM_FAMILY_QWEN3_NEXT || family == PLIM_FAMILY_APERTUS || m->config->global_head_dim;
    return plans && (strstr(module->path, "q_norm") || strstr(module->path, "k_norm"));
}

/* Families whose plans contain only the head */
static const bool plans_head_alone[PLIM_FAMILY_COUNT] = {
    [PLIM_FAMILY_GPT_OSS] = true, [PLIM_FAMILY_LFM2] = true, [PLIM_FAMILY_LFM2_MOE] = true,
    [PLIM_FAMILY_GRANITEMOE] = true, [PLIM_FAMILY_GRANITEMOEHYBRID] = true, [PLIM_FAMILY_AFMOE] = true,
};

/* True if the family's plan contains the linear. deepseek_v3's plan has no attention; of the query projections
 * glm4_moe_lite's has only q_b_proj, and deepseek_v2's all except q_a_proj. The plans of qwen3_5_moe, qwen3_next,
 * glm4_moe, deepseek_v2, deepseek_v3 and ernie4_5_moe contain the shared expert, but not its gate. */
static bool plans_linear(const struct decoder *m, const struct decoder_layer *l, const struct module *module)
{
    enum plim_family family = m->config->family;
    bool plans_shared = family == PLIM_FAMILY_QWEN3_5_MOE_TEXT || family == PLIM_FAMILY_QWEN3_NEXT ||
                        family == PLIM_FAMILY_GLM4_MOE || family == PLIM_FAMILY_DEEPSEEK_V2 ||
                        family == PLIM_FAMILY_DEEPSEEK_V3 || family == PLIM_FAMILY_ERNIE4_5_MOE;
    bool is_attention = !strncmp(module->path, "self_attn.", 10), is_query = !strncmp(module->path, "self_attn.q_", 12);
    if (is_attention && family == PLIM_FAMILY_DEEPSEEK_V3) return false;
    if (is_query && family == PLIM_FAMILY_DEEPSEEK_V2) return !strstr(module->path, "q_a");
    if (is_attention && family == PLIM_FAMILY_GLM4_MOE_LITE && is_query) return strstr(module->path, "q_b") != NULL;
    if (l->scalar && !is_attention && strncmp(module->path, "mlp.", 4)) return false; /* gemma4 */
    bool is_shared = l->router && strstr(module->path, plans_shared ? "shared_expert_gate" : "shared_expert");
    return !plans_head_alone[family] && !is_shared;
}

static bool plans_stack(const struct decoder *m, const struct module *module)
{
    enum plim_family family = m->config->family;
    return is_stack(module) && (family == PLIM_FAMILY_MIXTRAL || family == PLIM_FAMILY_QWEN3_MOE ||
                                family == PLIM_FAMILY_QWEN3_5_MOE_TEXT || family == PLIM_FAMILY_QWEN3_NEXT ||
                                family == PLIM_FAMILY_GEMMA4_TEXT || family == PLIM_FAMILY_OLMOE ||
                                family == PLIM_FAMILY_GLM4_MOE || family == PLIM_FAMILY_DEEPSEEK_V2 ||
                                family == PLIM_FAMILY_DEEPSEEK_V3 || family == PLIM_FAMILY_GLM4_MOE_LITE ||
                                family == PLIM_FAMILY_ERNIE4_5_MOE || family == PLIM_FAMILY_MINIMAX_M2);
}

static int64_t other_ranks_share(const struct tensor *x, int64_t bytes_of_two, int64_t ranks)
{
    int64_t bytes = x ? tensor_elements(x) * bytes_of_two / 2 : 0;
    return bytes - bytes / ranks;
}

/* Returns the bytes that are not counted because of that division. `size`: bytes of an element; `code_size`: bytes of
 * two elements of a linear's weight, which may be quantised */
static int64_t bytes_left_out(const struct decoder *m, int64_t size, int64_t code_size)
{
    int64_t ranks = ranks_of_plan(m), bytes = other_ranks_share(m->head_bias, 2 * size, ranks);
    if (m->config->task == PLIM_TASK_CAUSAL_LM)
        bytes += other_ranks_share(m->head, 2 * size, ranks); /* a tied head is counted under its own name */
    else if (m->config->tie_word_embeddings) /* a configuration that ties them adds the embedding to the plan */
        bytes += other_ranks_share(m->embedding, 2 * size, ranks);
    const struct module *modules = decoder_block_modules(m->config->family);
    for (int64_t i = 0; i < m->config->layers; i++)
        for (const struct module *module = modules; module->path; module++) {
            const void *place = (const char *)&m->layers[i] + module->offset;
            if (module->kind == MODULE_LINEAR && plans_linear(m, &m->layers[i], module)) {
                const struct linear *linear = place;
                bytes += other_ranks_share(linear->weight, code_size, ranks);
                bytes += other_ranks_share(linear->bias, 2 * size, ranks);
            } else if (plans_stack(m, module)) {
                bytes += other_ranks_share(*(struct tensor *const *)place, 2 * size, ranks);
            } else if (plans_norm(m, module)) {
                bytes += other_ranks_share(((const struct norm *)place)->weight, 2 * size, ranks);
            }
        }
    return bytes;
}

/* Returns how many of `bytes` the warm-up requests: those beyond the cached ones. If the allocator would serve that
 * from its cache, it requests one byte more than the cache has, provided that the rest is large and fits; otherwise
 * nothing. */
static int64_t not_cached(const struct engine *e, int64_t bytes)
{
    const struct plim_allocator_stats *stats = plim_allocator_statistics(e->allocator);
    int64_t unused = stats->reserved - stats->allocated, more = bytes - unused;
    if (more > unused) return more;
    bool is_much = (double)more > 1.5 * 0x1p30, has_room = unused + 1 <= plim_device_free_bytes(e->device);
    return is_much && has_room ? unused + 1 : 0;
}

/* Returns the additional bytes of fp32 routers and their frozen parameters, compared with `size` bytes per element. */
static int64_t bytes_of_routers(const struct decoder *m, int64_t size)
{
    int64_t bytes = 0;
    for (int64_t i = 0; i < m->config->layers; i++) {
        const struct tensor *own[] = {m->layers[i].router, m->layers[i].router_correction};
        for (int k = 0; k < 2; k++)
            if (own[k] && own[k]->is_parameter)
                bytes += tensor_elements(own[k]) * (plim_dtype_size((enum plim_dtype)own[k]->a.dtype) - size);
    }
    return bytes;
}

/* True if a buffer is in checkpoints: those of blocks are, except falcon_h1's factors. */
static bool is_stored(const struct decoder *m, const struct tensor *buffer)
{
    const struct decoder_layer *l = decoder_layer_of(m, buffer);
    return buffer->layer && !(l && l->mup == buffer);
}

/* caching_allocator_warmup(): allocates one block of the model's size without what is cached, at most the GPU's memory
 * less 1.2 GiB, and frees it at once. A quantised linear weight counts half a byte or one byte per element. */
static void warm_up(struct engine *e, const struct decoder *m)
{
    const struct parameters *p = &m->parameters;
    enum plim_quantization_type type = m->setting->quantization.type;
    int64_t size = plim_dtype_size(p->dtype),
            code_size = !type ? 2 * size : type == PLIM_QUANTIZATION_INT8 ? 2 : 1,
            bytes = (p->elements - p->linear_elements) * size + p->linear_elements * code_size / 2 -
                    bytes_left_out(m, size, code_size) + bytes_of_routers(m, size),
            most = (int64_t)((double)e->device->info.total_bytes - 1.2 * 0x1p30);
    struct tensor *buffers[DECODER_BUFFERS];
    size_t buffer_count = decoder_buffers(m, buffers);
    for (size_t i = 0; i < buffer_count; i++)
        if (is_stored(m, buffers[i])) bytes += plim_array_bytes(&buffers[i]->a); /* buffers in the checkpoint */
    bytes = not_cached(e, bytes);
    if (bytes > most) bytes = most;
    if (bytes < 2) return;
    tensor_drop(e, tensor_keep(tensor_empty_bytes(e, bytes / 2 * 2)));
}

bool decoder_is_loaded(const struct plim_train_setting *setting)
{
    bool is_whole = setting->sharding != PLIM_SHARDING_FSDP && setting->sharding != PLIM_SHARDING_ZERO3;
    return setting->quantization.type != PLIM_QUANTIZATION_NONE || (plim_is_loaded(setting->made_on) && is_whole);
}

/* from_pretrained() makes every parameter of a checkpoint require a gradient, also the routers' corrections, which
 * never receive one: counts them as trainable. */
static void unfreeze_corrections(struct decoder *m)
{
    for (int64_t i = 0; i < m->config->layers && !m->setting->lora.r; i++) {
        const struct tensor *x = m->layers[i].router_correction;
        if (x && x->is_parameter) m->parameters.trainable_elements += tensor_elements(x);
    }
}

void decoder_load(struct engine *e, struct decoder *m)
{
    struct load load = {.e = e, .m = m};
    const struct module *top[MODULES_MAX];
    struct tensor *buffers[DECODER_BUFFERS];
    int count = sorted(m, decoder_modules(m->config->family), top);
    e->meta = m->setting->quantization.loaded_on == PLIM_MADE_ON_HOST;
    warm_up(e, m);
    for (int i = 0; i < count; i++) {
        bool is_text = strncmp(top[i]->path, "model.", 6) == 0, was = i && strncmp(top[i - 1]->path, "model.", 6) == 0;
        if (is_text && !was) load_before_text(&load);
        load_module(&load, top[i], m);
    }
    load_vision(&load);
    size_t buffer_count = decoder_buffers(m, buffers);
    for (size_t i = 0; i < buffer_count; i++)
        if (!is_stored(m, buffers[i]) && buffers[i] != m->logits_bias)
            allocate_memory(e, buffers[i]);
    if (!e->halted) unfreeze_corrections(m);
}

static const struct quantized *quantized_among(const struct module *module, const void *owner,
                                               const struct tensor *codes)
{
    for (; module->path; module++) {
        const struct linear *linear = (const void *)((const char *)owner + module->offset);
        if (module->kind == MODULE_LINEAR && linear->quantized.codes == codes) return &linear->quantized;
    }
    return NULL;
}

const struct quantized *decoder_quantized(const struct decoder *m, const struct tensor *codes)
{
    const struct decoder_layer *layer = decoder_layer_of(m, codes);
    struct vision_part part;
    const struct quantized *found = NULL;
    if (!codes->is_codes) return NULL;
    if (layer) found = quantized_among(decoder_block_modules(m->config->family), layer, codes);
    for (size_t i = 0; !layer && !found && vision_part(m, i, &part); i++)
        found = quantized_among(part.parts->modules, part.owner, codes);
    return found;
}

size_t decoder_cast_loaded(struct engine *e, const struct decoder *m, struct tensor **states)
{
    size_t count = decoder_states_by_module(m, states);
    for (size_t i = 0; i < count && !e->halted; i++)
        if (states[i]->a.dtype <= PLIM_F16) nn_cast(e, states[i], m->parameters.dtype);
    return count;
}

enum plim_status decoder_move(struct engine *e, struct decoder *m)
{
    struct tensor **states = calloc(decoder_states(m, NULL), sizeof(*states));
    if (!states) return PLIM_NOMEM;
    size_t count = decoder_states_by_module(m, states);
    for (size_t i = 0; i < count; i++) allocate_memory(e, states[i]);
    free(states);
    return PLIM_OK;
}
