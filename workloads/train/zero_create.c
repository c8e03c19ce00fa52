/* deepspeed.initialize(): the flat weights and this rank's partition of them. */
#include "buffer.h"
#include "zero.h"
#include "zero3.h"
#include "zero_internal.h"
#include <stdlib.h>

static const char *zero3_refuses_adapters(const struct plim_train_setting *setting)
{
    if (!plim_loop_is_trainers(setting->loop))
        return "adapters under ZeRO 3 are supported with --loop trainer; else zero2, fsdp (plimsoll exec runs the "
               "program)";
    if (*setting->lora.parameters)
        return "adapters of experts' stacked weights are not supported under ZeRO 3: zero2, fsdp, or exec";
    if (setting->checkpointing == PLIM_CHECKPOINTING_FULL && !setting->use_reentrant)
        return "torch.utils.checkpoint fails there: frozen weights that ZeRO 3 released have another shape when a "
               "block is recomputed (CheckpointError); use_reentrant runs";
    return NULL;
}

static bool casts_codes(const struct plim_train_setting *setting)
{
    struct plim_train_setting settled = *setting;
    zero_settle_precision(&settled);
    return decoder_cast_loses_codes(setting, decoder_parameter_dtype(&settled));
}

const char *zero_refuses(const struct plim_device_info *info, const struct plim_model_config *config,
                         const struct plim_train_setting *setting)
{
    if (!info->simulated)
        return "ZeRO is simulated only: one GPU does not have the shards of the others";
    bool is_made_partitioned = plim_loop_is_trainers(setting->loop) && setting->sharding == PLIM_SHARDING_ZERO3;
    if (config->sinusoidal_positions && is_made_partitioned)
        return "transformers fails to create distilbert's sinusoidal positions partitioned, as ZeRO 3 has them "
               "(IndexError: too many indices for tensor of dimension 1); zero2 runs";
    bool is_trainers = plim_loop_is_trainers(setting->loop) && setting->sharding != PLIM_SHARDING_ZERO3;
    if (setting->optimizer >= PLIM_OPTIMIZER_ADAMW_8BIT && !is_trainers)
        return "bitsandbytes' optimizers under ZeRO are supported with --loop trainer and zero1 or zero2 (plimsoll "
               "exec runs the program)";
    if (plim_optimizer_is_torchao(setting->optimizer) && !plim_loop_is_trainers(setting->loop))
        return "torchao's optimizers under ZeRO are supported with --loop trainer (plimsoll exec runs the program)";
    if (casts_codes(setting))
        return "DeepSpeed casts the codes of quantised weights (train.quantization.storage), which are lost: store "
               "them in the type of train.precision, or as uint8";
    if (setting->zero.parameters == PLIM_OFFLOAD_CPU && setting->sharding != PLIM_SHARDING_ZERO3)
        return "offload_param needs ZeRO 3";
    if (setting->zero.parameters == PLIM_OFFLOAD_CPU && setting->zero.optimizer == PLIM_OFFLOAD_NONE)
        return "offload_param without offload_optimizer is not supported (plimsoll exec runs the program)";
    if (setting->zero.optimizer == PLIM_OFFLOAD_CPU && setting->optimizer != PLIM_OPTIMIZER_ADAMW &&
        setting->optimizer != PLIM_OPTIMIZER_ADAMW_FUSED)
        return "an offloaded optimizer has to be AdamW (DeepSpeedCPUAdam)";
    if (setting->sharding == PLIM_SHARDING_ZERO3 && setting->lora.r) return zero3_refuses_adapters(setting);
    return NULL;
}

void zero_settle_precision(struct plim_train_setting *setting)
{
    bool is_bf16 = setting->precision == PLIM_PRECISION_BF16_MIXED;
    if (!is_bf16 && setting->precision != PLIM_PRECISION_FP16_MIXED) return;
    if (setting->weights == PLIM_WEIGHTS_AUTO) setting->weights = PLIM_WEIGHTS_FP32;
    setting->precision = is_bf16 ? PLIM_PRECISION_BF16 : PLIM_PRECISION_FP16;
}

/* module.bfloat16(), which is run on the host, and module.to(device). */
static void materialise(struct engine *e, struct decoder *m, struct tensor **states)
{
    enum plim_dtype dtype = m->parameters.dtype;
    size_t count = decoder_states_by_module(m, states);
    enum plim_memory_class before = engine_set_class(e, PLIM_MEMORY_PARAMETERS);
    for (size_t i = 0; i < count && !e->halted; i++) {
        struct tensor *x = states[i];
        if (x->a.dtype <= PLIM_F16) x->a.dtype = (uint8_t)dtype;
        if (x->accumulator) x->accumulator->output[0].dtype = x->a.dtype;
        storage_resize(e, x->storage, tensor_elements(x) * plim_dtype_size(x->a.dtype));
        x->a.data = x->storage->address;
    }
    engine_set_class(e, before);
}

enum plim_status zero_move(struct engine *e, struct decoder *m)
{
    struct tensor **states = calloc(decoder_states(m, NULL) + 1, sizeof(struct tensor *));
    if (!states) return PLIM_NOMEM;
    materialise(e, m, states);
    free(states);
    return PLIM_OK;
}

/* Copies the group's weights into a flat tensor, one after another, and replaces them by views of it. */
static void flatten(struct engine *e, const struct zero *z, struct zero_group *g, int64_t elements)
{
    int64_t multiple = 2 * z->world, rest = elements % multiple;
    enum plim_dtype dtype = zero_dtype(z);
    struct tensor *padding = NULL;
    plim_allocator_empty_cache(e->allocator);
    if (rest) padding = tensor_keep(op_full(e, dtype, SHAPE(multiple - rest), 0));
    int64_t padded = elements + (rest ? multiple - rest : 0);
    g->partition_size = padded / z->world;
    bool single = g->end - g->first == 1 && !rest;
    g->flat = single ? tensor_keep(tensor_detach(e, z->weights[g->first].parameter))
                     : tensor_keep(tensor_empty(e, dtype, SHAPE(padded)));
    if (!single) buffer_copy(e, padded, g->flat, dtype);
    tensor_drop(e, padding);
    for (size_t i = g->first; i < g->end && !e->halted; i++) {
        struct zero_weight *w = &z->weights[i];
        struct plim_array a = w->parameter->a;
        struct tensor *view = tensor_keep(tensor_alias(e, g->flat, a.ndim, a.shape, a.stride, w->offset));
        if (!e->halted) tensor_set_data(e, w->parameter, view);
    }
}

/* Creates this rank's partition in fp32, which may be on the host. */
static void make_master(struct engine *e, struct zero *z, struct zero_group *g)
{
    if (e->halted) return;
    enum plim_memory_class before = engine_set_class(e, PLIM_MEMORY_OPTIMIZER);
    struct tensor *clone = tensor_keep(tensor_empty(e, zero_dtype(z), SHAPE(g->partition_size)));
    buffer_copy(e, g->partition_size, clone, zero_dtype(z));
    if (!z->offloads) g->master = tensor_hold(op_to(e, clone, PLIM_F32));
    tensor_drop(e, clone);
    engine_set_class(e, before);
    if (e->halted || z->offloads) return;
    g->master->is_parameter = g->master->requires_grad = true;
    z->masters.list[z->masters.count++] = g->master;
}

/* initialize_optimizer_states(): allocates zeros of the sizes of all groups' gradients, which nothing uses. */
static void make_zeros(struct engine *e, const struct zero *z)
{
    struct tensor *zeros[ZERO_GROUPS];
    for (int i = 0; i < z->group_count; i++)
        zeros[i] = tensor_keep(op_full(e, PLIM_F32, SHAPE(z->groups[i].partition_size), 0));
    for (int i = 0; i < z->group_count; i++) tensor_drop(e, zeros[i]);
}

/* temp_grad_buffer_for_gpu_offload */
static void make_staging(struct engine *e, struct zero *z)
{
    int64_t largest = 0;
    for (size_t i = 0; i < z->count; i++) {
        int64_t n = tensor_elements(z->weights[i].parameter);
        if (n > largest) largest = n;
    }
    z->staging = tensor_keep(op_full(e, zero_dtype(z), SHAPE(largest), 0));
}

/* Returns the number of elements of the weights that are in `rank`'s partition of the group, at least in part; called
 * for one rank after another. *first: the first weight that may be in its partition. */
static int64_t elements_of_rank(const struct zero *z, const struct zero_group *g, int64_t rank, size_t *first)
{
    int64_t held = 0, begin = rank * g->partition_size, end = begin + g->partition_size;
    const struct zero_weight *w = z->weights;
    while (*first < g->end && w[*first].offset + tensor_elements(w[*first].parameter) <= begin) ++*first;
    for (size_t i = *first; i < g->end && w[i].offset < end; i++) held += tensor_elements(w[i].parameter);
    return held;
}

/* Returns the rank that owns the most. */
static int64_t largest_rank(const struct zero *z)
{
    int64_t most = 0, rank = 0;
    size_t first[ZERO_GROUPS];
    for (int i = 0; i < z->group_count; i++) first[i] = z->groups[i].first;
    for (int64_t r = 0; r < z->world; r++) {
        int64_t held = 0;
        for (int i = 0; i < z->group_count; i++) held += elements_of_rank(z, &z->groups[i], r, &first[i]);
        if (held > most) rank = r;
        if (held > most) most = held;
    }
    return rank;
}

static void find_owned(struct zero *z)
{
    for (size_t i = 0; i < z->count; i++) {
        int64_t from;
        struct zero_weight *w = &z->weights[i];
        w->is_owned = zero_owned(z, w, &from) > 0;
        if (w->is_owned) z->owned_elements += tensor_elements(w->parameter);
    }
}

/* Collects the weights of the optimizer's group `which`, of `count`. Returns their number of elements. */
static int64_t collect_group(struct zero *z, struct zero_group *g, int which, int count)
{
    const struct parameters *p = &z->model->parameters;
    int64_t elements = 0;
    g->first = z->count;
    for (size_t i = 0; i < p->count; i++) {
        struct tensor *x = p->list[i];
        if (!x->requires_grad || (count > 1 && zero_group_of(z, x) != which)) continue;
        x->param_index = (int32_t)z->count;
        z->weights[z->count++] = (struct zero_weight){.parameter = x, .group = g, .offset = elements};
        elements += tensor_elements(x);
    }
    g->end = z->count;
    return elements;
}

/* Stages 1 and 2: all weights on every rank, and this rank's partition of them. A group without weights is not
 * created. */
static void shard_states(struct engine *e, struct zero *z, struct tensor **states)
{
    int count = zero_group_count(z);
    enum plim_memory_class before = engine_set_class(e, PLIM_MEMORY_PARAMETERS);
    if (!e->halted && zero_is_loaded(z)) decoder_cast_loaded(e, z->model, states);
    else if (!e->halted) materialise(e, z->model, states);
    for (int i = 0; i < count && !e->halted; i++) {
        struct zero_group *g = &z->groups[z->group_count];
        int64_t elements = collect_group(z, g, i, count);
        if (!elements) continue;
        z->group_count++;
        flatten(e, z, g, elements);
        make_master(e, z, g);
    }
    engine_set_class(e, PLIM_MEMORY_OPTIMIZER);
    if (z->offloads) make_staging(e, z);
    else make_zeros(e, z);
    engine_set_class(e, before);
}

enum plim_status zero_create(struct engine *e, struct decoder *model, struct link *link,
                             struct zero *z)
{
    const struct plim_train_setting *setting = model->setting;
    const struct parameters *p = &model->parameters;
    size_t n = p->count ? p->count : 1;
    *z = (struct zero){.model = model,
                       .options = &setting->zero,
                       .stage = 1 + (int)(setting->sharding - PLIM_SHARDING_ZERO1),
                       .world = setting->world,
                       .offloads = setting->zero.optimizer == PLIM_OFFLOAD_CPU,
                       .contiguous = setting->zero.contiguous || setting->zero.optimizer == PLIM_OFFLOAD_CPU,
                       .hooks = {.logits = zero_hook_logits, .context = z},
                       .link = link};
    /* overlap_comm is true by default only in stage 3 */
    z->overlaps = setting->zero.overlap == PLIM_OVERLAP_YES ||
                  (z->stage == 3 && setting->zero.overlap == PLIM_OVERLAP_AUTO);
    struct tensor **states = calloc(decoder_states(model, NULL) + 1, sizeof(struct tensor *));
    z->weights = calloc(n, sizeof *z->weights);
    z->bucket.weights = calloc(n, sizeof *z->bucket.weights);
    z->norms = calloc(n, sizeof(struct tensor *));
    z->masters.list = calloc(n, sizeof(struct tensor *));
    if (!states || !z->weights || !z->bucket.weights || !z->norms || !z->masters.list) {
        free(states);
        return PLIM_NOMEM;
    }
    enum plim_status st = PLIM_OK;
    if (z->stage == 3) st = zero3_create(e, z, states);
    else shard_states(e, z, states);
    free(states);
    z->rank = z->stage == 3 ? 0
              : setting->rank >= 0 && setting->rank < z->world ? setting->rank
                                                               : largest_rank(z);
    if (z->stage < 3) find_owned(z);
    if (z->stage < 3 && zero_divides(z)) model->hooks = &z->hooks;
    e->autograd.accumulated = zero_accumulated;
    e->autograd.accumulated_context = z;
    return st;
}

const char *zero_fails(const struct zero *z)
{
    return z->stage == 3 && zero3_mixes_persistent(z->stage3)
               ? "DeepSpeed fails (TypeError) on codes in uint8 beside other weights below "
                 "stage3_param_persistence_threshold: train.quantization.storage bf16 runs"
               : NULL;
}

void zero_finish(struct zero *z)
{
    zero3_finish(z);
    free(z->weights);
    free(z->bucket.weights);
    free(z->norms);
    free(z->masters.list);
    *z = (struct zero){0};
}
