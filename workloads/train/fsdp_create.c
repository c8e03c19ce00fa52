/* Creating FSDP2's units and sharding the model's parameters. */
#include "fsdp_internal.h"
#include "workloads/spec/family.h"
#include <stdlib.h>

static struct fsdp_parameter parameter_of(struct tensor *unsharded)
{
    struct fsdp_parameter p = {.unsharded = unsharded, .rows = unsharded->a.shape[0], .row_elements = 1};
    for (int i = 1; i < unsharded->a.ndim; i++) p.row_elements *= unsharded->a.shape[i];
    return p;
}

/* Stores the shape of this rank's shard of a parameter. */
static void local_shape(const struct fsdp *f, const struct fsdp_parameter *p, int64_t shape[PLIM_MAX_DIMS])
{
    shape[0] = local_rows(f, p);
    for (int i = 1; i < p->unsharded->a.ndim; i++) shape[i] = p->unsharded->a.shape[i];
}

/* Sets the parameter's shard, and its compute type. */
static void set_shard(struct engine *e, const struct fsdp *f, struct fsdp_parameter *p, struct tensor *shard)
{
    struct tensor *unsharded = p->unsharded;
    p->shard = shard;
    shard->is_parameter = true;
    shard->requires_grad = unsharded->requires_grad;
    shard->odd_name = unsharded->odd_name;
    if (f->is_mixed) unsharded->a.dtype = (uint8_t)f->param_dtype;
    if (unsharded->accumulator) unsharded->accumulator->output[0].dtype = unsharded->a.dtype;
    const struct plim_array *a = &unsharded->a;
    p->all_gather_output = tensor_keep(tensor_alias(e, unsharded, a->ndim, a->shape, a->stride, 0));
}

/* Lists the trainable shards for the optimizer, in the order of the model's parameters, which is nearly that of the
 * shards. */
static void list_trained(struct fsdp *f, size_t parameters)
{
    const struct parameters *model = &f->model->parameters;
    size_t at = 0;
    for (size_t i = 0; i < model->count; i++) {
        size_t visited = 0;
        while (visited < parameters && f->parameters[at].unsharded != model->list[i])
            at = (at + 1) % parameters, visited++;
        if (visited < parameters && model->list[i]->requires_grad)
            f->sharded.list[f->sharded.count++] = f->parameters[at].shard;
    }
}

/* --- model on the meta device ----------------------------------------------------------------- */

/* Creates this rank's shard of a parameter that has no memory yet. */
static void shard(struct engine *e, struct fsdp *f, struct fsdp_parameter *p, struct tensor *unsharded)
{
    int64_t shape[PLIM_MAX_DIMS];
    *p = parameter_of(unsharded);
    local_shape(f, p, shape);
    enum plim_memory_class before = engine_set_class(e, PLIM_MEMORY_PARAMETERS);
    struct tensor *own = tensor_keep(tensor_empty(e, dtype_of(unsharded), unsharded->a.ndim, shape));
    engine_set_class(e, before);
    if (!e->halted) set_shard(e, f, p, own);
}

/* Replaces a shard's memory by that of `x` (taken). */
static void move_shard(struct engine *e, struct tensor *shard, struct tensor *x)
{
    if (e->halted) return;
    tensor_classify(e, x, PLIM_MEMORY_PARAMETERS);
    struct storage *first = shard->storage;
    shard->storage = x->storage;
    shard->a.data = x->a.data;
    x->storage = first;
    tensor_drop(e, x);
}

/* reset_sharded_param(), called when all parameters of a block, or of the model, exist: shards with fewer rows than on
 * other ranks are padded to the same size. */
static void pad_shards(struct engine *e, struct fsdp *f, size_t parameters, int32_t layer)
{
    for (size_t i = 0; i < parameters && !e->halted; i++) {
        struct fsdp_parameter *p = &f->parameters[i];
        if (p->unsharded->layer != layer || local_rows(f, p) == shard_rows(f, p)) continue;
        enum plim_dtype dtype = dtype_of(p->shard);
        move_shard(e, p->shard, tensor_keep(tensor_empty(e, dtype, SHAPE(shard_elements(f, p)))));
    }
}

static void materialise(struct engine *e, struct tensor *buffer)
{
    if (e->halted) return;
    storage_resize(e, buffer->storage, tensor_elements(buffer) * plim_dtype_size(dtype_of(buffer)));
    buffer->a.data = buffer->storage->address;
}

/* to_empty(), in the order of modules. A tied head is the same parameter again: its memory is allocated again, and the
 * first allocation is freed. Returns the number of parameters. */
static size_t make_shards(struct engine *e, struct fsdp *f, struct tensor **states)
{
    struct decoder *m = f->model;
    size_t parameters = 0, count = decoder_states_by_module(m, states);
    struct fsdp_parameter *embedding = NULL;
    int32_t layer = 0;
    for (size_t i = 0; i < count; i++) {
        if (!states[i]->is_parameter) {
            materialise(e, states[i]);
            continue;
        }
        if (layer && states[i]->layer != layer) pad_shards(e, f, parameters, layer);
        layer = states[i]->layer;
        if (states[i] == m->embedding) embedding = &f->parameters[parameters];
        shard(e, f, &f->parameters[parameters++], states[i]);
    }
    if (m->head == m->embedding && embedding && !e->halted) {
        struct tensor *again = tensor_empty_like(e, embedding->shard, dtype_of(embedding->shard));
        move_shard(e, embedding->shard, tensor_keep(again));
    }
    pad_shards(e, f, parameters, 0);
    return parameters;
}

/* --- model on the host ------------------------------------------------------------------------ */

/* True if it belongs to the module that get_output_embeddings() returns, which a classifier is not. */
static bool is_of_output(const struct decoder *m, const struct tensor *x)
{
    return !plim_task_classifies(m->config->task) && (x == m->head || x == m->head_bias);
}

/* True if the parameter is a unit of its own: with axolotl each matrix of an adapter is. */
static bool is_matrix_unit(const struct fsdp *f, const struct tensor *x)
{
    return f->by_axolotl && f->model->setting->lora.r && x->requires_grad;
}

/* Parameters that variables of accelerate's functions refer to until they return: the embedding, the head, the base
 * model's last parameter, and the last adapter; with axolotl: one parameter, and the last adapter. */
struct referenced {
    struct tensor *list[4];
};

static bool is_referenced(const struct referenced *referenced, const struct tensor *x)
{
    return x == referenced->list[0] || x == referenced->list[1] || x == referenced->list[2] || x == referenced->list[3];
}

/* axolotl's loop over the parameters ends at the first that has codes, or at the last one. */
static struct referenced referenced_by_axolotl(const struct fsdp *f, size_t parameters)
{
    struct referenced referenced = {{f->parameters[parameters - 1].unsharded}};
    for (size_t i = parameters; i-- > 0;)
        if (f->parameters[i].unsharded->is_codes) referenced.list[0] = f->parameters[i].unsharded;
    for (size_t i = 0; i < parameters; i++)
        if (is_matrix_unit(f, f->parameters[i].unsharded)) referenced.list[1] = f->parameters[i].unsharded;
    return referenced;
}

static struct referenced referenced_by_accelerate(const struct fsdp *f, size_t parameters)
{
    const struct decoder *m = f->model;
    if (f->by_axolotl) return referenced_by_axolotl(f, parameters);
    struct referenced referenced = {{m->embedding, is_of_output(m, m->head) ? m->head : NULL}};
    for (size_t i = 0; i < parameters; i++) {
        struct tensor *x = f->parameters[i].unsharded;
        bool adapts = m->setting->lora.r && x->requires_grad;
        if (adapts) referenced.list[3] = x;
        else if (!x->layer && x != m->head_bias && (x != m->head || x == m->embedding)) referenced.list[2] = x;
    }
    return referenced;
}

/* fully_shard() of one unit whose parameters are on the GPU: copies this rank's shard of each out of it. */
static void shard_unit(struct engine *e, struct fsdp *f, const struct fsdp_unit *u)
{
    for (size_t i = 0; i < u->count && !e->halted; i++) {
        struct fsdp_parameter *p = &u->parameters[i];
        const struct tensor *unsharded = p->unsharded;
        int64_t shape[PLIM_MAX_DIMS];
        local_shape(f, p, shape);
        struct tensor *padded =
            tensor_keep(tensor_empty(e, dtype_of(unsharded), SHAPE(shard_elements(f, p))));
        set_shard(
            e, f, p, tensor_keep(tensor_alias(e, padded, unsharded->a.ndim, shape, unsharded->a.stride, 0)));
        tensor_drop(e, padded);
        f->parameters[p->index].shard = p->shard;
    }
}

/* QuantState.to(), before the codes are moved; x may be any parameter. */
static void move_scales(struct engine *e, const struct decoder *m, const struct tensor *x)
{
    const struct quantized *q = decoder_quantized(m, x);
    if (!q) return;
    bool is_nested = q->scale_codes;
    struct tensor *const state[] = {q->book, is_nested ? q->scale_codes : q->scales, q->offset,
                                    is_nested ? q->scales : NULL, q->scale_book};
    for (size_t i = 0; i < sizeof(state) / sizeof(state[0]); i++)
        if (state[i]) materialise(e, state[i]);
}

/* True if the parameter is cast to fp32 before it is sharded, as trainable weights are, but not with axolotl. */
static bool widens(const struct fsdp *f, const struct tensor *x)
{
    return f->is_mixed && x->requires_grad && !f->by_axolotl;
}

/* The same for a unit on the host: its parameters are moved to the GPU, sharded, and freed. */
static void move_unit(struct engine *e, struct fsdp *f, const struct fsdp_unit *u,
                      const struct referenced *referenced, struct tensor *const *buffers, size_t buffer_count)
{
    for (size_t i = 0; i < u->count; i++) {
        struct tensor *unsharded = u->parameters[i].unsharded;
        if (widens(f, unsharded)) unsharded->a.dtype = PLIM_F32;
        move_scales(e, f->model, unsharded);
        materialise(e, unsharded);
    }
    for (size_t i = 0; i < buffer_count; i++) materialise(e, buffers[i]);
    shard_unit(e, f, u);
    for (size_t i = 0; i < u->count && !e->halted; i++)
        if (!is_referenced(referenced, u->parameters[i].unsharded))
            storage_resize(e, u->parameters[i].unsharded->storage, 0);
}

static void move_units(struct engine *e, struct fsdp *f, size_t parameters)
{
    const struct decoder *m = f->model;
    const struct referenced referenced = referenced_by_accelerate(f, parameters);
    struct tensor *buffers[DECODER_BUFFERS], *scale = m->embedding_scale;
    size_t count = 0, all = decoder_buffers(m, buffers);
    for (size_t i = 0; i < all; i++)
        if (!buffers[i]->layer && (buffers[i] != scale || f->by_axolotl)) buffers[count++] = buffers[i];
    enum plim_memory_class before = engine_set_class(e, PLIM_MEMORY_PARAMETERS);
    const struct fsdp_unit *embeddings =
        &f->units[m->head == m->embedding ? FSDP_TAIL : FSDP_EMBEDDING];
    for (size_t i = 0; i < f->unit_count; i++) {
        const struct fsdp_unit *u = f->sequence[i];
        bool is_root = u == &f->units[FSDP_ROOT], has_scale = scale && u == embeddings && !f->by_axolotl;
        int64_t block = u - f->units - FSDP_BLOCKS - m->config->vision.layers; /* of the text; a tower's come before */
        bool is_block = u >= &f->units[FSDP_BLOCKS] && u < &f->units[f->first_matrix];
        struct tensor *own[LAYER_BUFFERS] = {scale};
        size_t own_count = has_scale;
        if (is_block) own_count = block < 0 ? 0 : decoder_layer_buffers(&m->layers[block], own);
        move_unit(e, f, u, &referenced, is_root ? buffers : own, is_root ? count : own_count);
    }
    for (size_t i = 0; i < sizeof(referenced.list) / sizeof(referenced.list[0]) && !e->halted; i++)
        if (referenced.list[i]) storage_resize(e, referenced.list[i]->storage, 0);
    engine_set_class(e, before);
}

/* --- model loaded by rank 0 (cpu_ram_efficient_loading) ----------------------------------------- */

/* distribute_tensor() of a parameter, which comes from the host or from rank 0, into the variable *unsharded (named);
 * on rank 0 this drops the previous parameter first. Allocates padded copies of the shards that are shorter than
 * others, and this rank's shard, which is returned, named. */
static struct tensor *distribute(struct engine *e, const struct fsdp *f, const struct fsdp_parameter *p,
                                 struct tensor **unsharded)
{
    enum plim_dtype dtype = dtype_of(p->unsharded);
    int64_t rows = shard_rows(f, p), elements = shard_elements(f, p), full = p->rows / rows;
    struct tensor *before = *unsharded, **padded = f->scratch;
    if (f->rank == 0) tensor_drop(e, before);
    *unsharded = tensor_keep(tensor_empty(e, dtype, SHAPE(p->rows * p->row_elements)));
    if (f->rank > 0) tensor_drop(e, before);
    for (int64_t rank = full; rank < f->world; rank++)
        padded[rank - full] = tensor_keep(tensor_empty(e, dtype, SHAPE(elements)));
    struct tensor *local_shard = tensor_keep(tensor_empty(e, dtype, SHAPE(elements)));
    for (int64_t rank = full; rank < f->world; rank++) tensor_drop(e, padded[rank - full]);
    if (!f->by_axolotl) return local_shard;
    /* axolotl copies a shard out of a larger buffer, and frees the unsharded parameter at once */
    int64_t local_elements = local_rows(f, p) * p->row_elements;
    if (local_rows(f, p) < rows) tensor_set(e, &local_shard, tensor_empty(e, dtype, SHAPE(local_elements)));
    tensor_drop(e, *unsharded);
    *unsharded = NULL;
    return local_shard;
}

/* fsdp2_load_full_state_dict(): loads every parameter by its name, also a tied head, whose shard is freed when it is
 * tied again. A rank with fewer rows pads its shards when all of them exist (reset_sharded_param()), and only then
 * frees the unpadded ones; with axolotl each one immediately. */
static void load_units(struct engine *e, struct fsdp *f, size_t parameters)
{
    const struct decoder *m = f->model;
    struct tensor *buffers[DECODER_BUFFERS], *unsharded = NULL, *again = NULL, **loaded = f->scratch;
    size_t count = 0;
    enum plim_memory_class before = engine_set_class(e, PLIM_MEMORY_PARAMETERS);
    for (size_t i = 0; i < parameters && !e->halted; i++) {
        struct fsdp_parameter *p = &f->parameters[i];
        int64_t shape[PLIM_MAX_DIMS];
        if (widens(f, p->unsharded)) p->unsharded->a.dtype = PLIM_F32;
        local_shape(f, p, shape);
        struct tensor *local_shard = distribute(e, f, p, &unsharded);
        if (e->halted) break;
        p->shard = tensor_keep(tensor_alias(e, local_shard, p->unsharded->a.ndim, shape, p->unsharded->a.stride, 0));
        tensor_drop(e, local_shard);
    }
    for (size_t i = 0; i < parameters && m->head == m->embedding && !e->halted; i++)
        if (f->parameters[i].unsharded == m->embedding) again = distribute(e, f, &f->parameters[i], &unsharded);
    for (size_t i = 0; i < parameters && !e->halted; i++) {
        struct fsdp_parameter *p = &f->parameters[i];
        if (local_rows(f, p) == shard_rows(f, p)) continue;
        if (!f->by_axolotl) loaded[count++] = tensor_keep(tensor_detach(e, p->shard));
        move_shard(e, p->shard, tensor_keep(tensor_empty(e, dtype_of(p->shard), SHAPE(shard_elements(f, p)))));
    }
    engine_set_class(e, before);
    for (size_t i = 0; i < count; i++) tensor_drop(e, loaded[i]);
    tensor_drop(e, unsharded);
    for (size_t k = 0; k < f->unit_count && !e->halted; k++)
        for (size_t i = 0; i < f->units[k].count; i++) {
            struct fsdp_parameter *p = &f->units[k].parameters[i];
            set_shard(e, f, p, f->parameters[p->index].shard);
        }
    size_t buffer_count = decoder_buffers(m, buffers);
    for (size_t i = 0; i < buffer_count; i++) materialise(e, buffers[i]);
    tensor_drop(e, again);
}

/* --- model on the GPU ------------------------------------------------------------------------- */

static bool is_on_gpu(const struct fsdp *f)
{
    const struct plim_quantization *how = &f->model->setting->quantization;
    return how->type != PLIM_QUANTIZATION_NONE && how->loaded_on == PLIM_MADE_ON_GPU;
}

/* True for integer codes, which are among ignored_params: every rank keeps all of them. */
static bool is_ignored(const struct tensor *x)
{
    return x->is_codes && dtype_of(x) == PLIM_U8;
}

/* Allocates the tensors that accelerate holds in addition to the model while it is sharded: one element for each
 * trainable parameter, in the optimizer's list, and the copies of QuantState.as_dict() for the model's state_dict().
 * Returns their number. */
static size_t allocate_extra_tensors(struct engine *e, struct fsdp *f, struct tensor **out)
{
    const struct parameters *all = &f->model->parameters;
    size_t count = 0;
    for (size_t i = 0; i < all->count && !e->halted; i++)
        out[count++] = tensor_keep(tensor_empty(e, dtype_of(all->list[i]), SHAPE(1)));
    for (size_t i = 0; i < all->frozen_count && !e->halted; i++) {
        const struct quantized *q = decoder_quantized(f->model, all->frozen[i]);
        if (q && q->scale_book) out[count++] = tensor_keep(tensor_empty_like(e, q->scale_book, PLIM_F32));
    }
    return count;
}

/* Unsharded parameters are freed only after all have been sharded, because the state_dict() refers to them. */
static void shard_loaded_units(struct engine *e, struct fsdp *f)
{
    size_t count = allocate_extra_tensors(e, f, f->scratch);
    enum plim_memory_class before = engine_set_class(e, PLIM_MEMORY_PARAMETERS);
    for (size_t i = 0; i < f->unit_count; i++) shard_unit(e, f, f->sequence[i]);
    engine_set_class(e, before);
    for (size_t k = 0; k < f->unit_count && !e->halted; k++)
        for (size_t i = 0; i < f->units[k].count; i++)
            storage_resize(e, f->units[k].parameters[i].unsharded->storage, 0);
    for (size_t i = 0; i < count; i++) tensor_drop(e, f->scratch[i]);
}

/* --- units ------------------------------------------------------------------------------------ */

static bool is_final_norm(const struct decoder *m, const struct tensor *x)
{
    return x == m->final_norm.weight || x == m->final_norm.bias;
}

/* True if accelerate finds the last norm, which it looks for among the children of the module named by
 * base_model_prefix. OPT's norm is deeper, as is that of a text model next to a vision tower; and in a model with
 * adapters "model" is the name of the whole model, while "transformer" and "gpt_neox" are names of the base. */
static bool finds_final_norm(const struct decoder *m)
{
    enum plim_family family = m->config->family;
    bool names_base = family == PLIM_FAMILY_GPT2 || family == PLIM_FAMILY_BLOOM || family == PLIM_FAMILY_GPT_NEOX;
    bool is_deeper = family == PLIM_FAMILY_OPT || m->config->vision.layers;
    return !is_deeper && (!m->setting->lora.r || names_base);
}

/* Is the parameter's block a unit? accelerate wraps the classes in _no_split_modules, or those it is given. */
static bool is_of_unit_block(const struct fsdp *f, const struct tensor *x)
{
    const struct decoder *m = f->model;
    bool is_of_tower = x->layer <= m->config->vision.layers; /* the tower's blocks come first */
    bool is_left_out = is_of_tower && m->setting->fsdp_wrap == PLIM_FSDP_WRAP_TEXT;
    bool is_wrapped = m->config->family != PLIM_FAMILY_DISTILBERT && !is_left_out;
    return x->layer && (is_wrapped || !f->by_accelerate);
}

static size_t unit_of_parameter(const struct fsdp *f, const struct tensor *x)
{
    const struct decoder *m = f->model;
    if (is_matrix_unit(f, x)) return f->unit_count; /* none of the units before those of matrices */
    if (is_of_unit_block(f, x)) return FSDP_BLOCKS + (size_t)x->layer - 1;
    if (!f->by_accelerate || f->by_axolotl) return FSDP_ROOT;
    if (is_of_output(m, x)) return FSDP_TAIL;
    if (is_final_norm(m, x)) return finds_final_norm(m) ? FSDP_TAIL : FSDP_ROOT;
    return x == m->embedding ? FSDP_EMBEDDING : FSDP_ROOT;
}

static struct fsdp_unit *begin_unit(struct fsdp *f, size_t k, struct fsdp_parameter *parameters)
{
    struct fsdp_unit *u = &f->units[k];
    bool may_reshard = k >= FSDP_BLOCKS || k == FSDP_EMBEDDING || f->by_axolotl;
    *u = (struct fsdp_unit){.fsdp = f,
                            .parameters = parameters,
                            .modules = 1,
                            .reshards_after_forward =
                                may_reshard && f->model->setting->resharding == PLIM_RESHARDING_YES,
                            .before_backward = {fsdp_unit_before_backward, u},
                            .after_backward = {fsdp_unit_after_backward, u}};
    return u;
}

/* Sets the order in which units are sharded: a block after the matrices of its adapters, the root last. */
static void order_units(struct fsdp *f)
{
    size_t count = 0, matrix = f->first_matrix;
    for (size_t k = FSDP_BLOCKS; k < f->first_matrix; k++) {
        int32_t layer = (int32_t)(k - FSDP_BLOCKS + 1);
        while (matrix < f->unit_count && f->units[matrix].parameters->unsharded->layer == layer)
            f->sequence[count++] = &f->units[matrix++];
        f->sequence[count++] = &f->units[k];
    }
    for (int k = FSDP_EMBEDDING; k <= FSDP_TAIL; k++) f->sequence[count++] = &f->units[k];
    f->sequence[count] = &f->units[FSDP_ROOT];
}

/* Lists the parameters of each unit, in the model's order; in the tail the norm comes before a tied embedding. */
static void make_units(struct fsdp *f, size_t parameters)
{
    const struct decoder *m = f->model;
    struct fsdp_parameter *sorted = f->parameters + parameters;
    size_t count = 0, matrix = f->first_matrix;
    for (size_t k = 0; k < f->first_matrix; k++) {
        struct fsdp_unit *u = begin_unit(f, k, sorted + count);
        for (int pass = 0; pass < 2; pass++)
            for (size_t i = 0; i < parameters; i++) {
                const struct tensor *x = f->parameters[i].unsharded;
                bool is_first = k != FSDP_TAIL || is_final_norm(m, x);
                if (unit_of_parameter(f, x) == k && is_first == !pass)
                    sorted[count++] = f->parameters[i];
            }
        u->count = (size_t)(sorted + count - u->parameters);
    }
    for (size_t i = 0; i < parameters && matrix < f->unit_count; i++) {
        if (!is_matrix_unit(f, f->parameters[i].unsharded)) continue;
        begin_unit(f, matrix++, sorted + count)->count = 1;
        sorted[count++] = f->parameters[i];
    }
    order_units(f);
    bool has_norm =
        f->units[FSDP_TAIL].count && is_final_norm(m, f->units[FSDP_TAIL].parameters[0].unsharded);
    f->has_bare_norm = f->by_accelerate && !f->by_axolotl && !m->final_norm.weight && finds_final_norm(m);
    f->units[FSDP_TAIL].modules = 1 + (has_norm || f->has_bare_norm) + (m->head == m->embedding);
}

/* With accelerate: creates the units first, then their shards. */
static size_t make_units_and_shards(struct engine *e, struct fsdp *f, struct tensor **states)
{
    size_t parameters = 0, count = decoder_states_by_module(f->model, states);
    for (size_t i = 0; i < count; i++)
        if (states[i]->is_parameter && !is_ignored(states[i])) f->parameters[parameters++] = parameter_of(states[i]);
    for (size_t i = 0; i < parameters; i++) f->parameters[i].index = i;
    make_units(f, parameters);
    const struct plim_train_setting *setting = f->model->setting;
    if (is_on_gpu(f)) shard_loaded_units(e, f);
    else if (setting->efficient_loading && !setting->quantization.type) load_units(e, f, parameters);
    else move_units(e, f, parameters);
    return parameters;
}

static enum plim_status allocate(struct fsdp *f, size_t parameters)
{
    size_t n = parameters ? parameters : 1;
    f->parameters = calloc(2 * n, sizeof *f->parameters);
    f->units = calloc(f->unit_count, sizeof *f->units);
    f->sequence = calloc(f->unit_count, sizeof *f->sequence);
    /* SFTTrainer may run a forward twice */
    f->post_forward_order = calloc(2 * f->unit_count, sizeof(struct fsdp_unit *));
    f->chunks = calloc(n, sizeof *f->chunks);
    f->reduction.parameters = calloc(n, sizeof(struct fsdp_parameter *));
    f->reduction.grads = calloc(n, sizeof(struct tensor *));
    f->scratch = calloc(n > (size_t)f->world ? n : (size_t)f->world, sizeof(struct tensor *));
    f->sharded.list = calloc(n, sizeof(struct tensor *));
    bool all = f->parameters && f->units && f->sequence && f->post_forward_order && f->chunks &&
               f->reduction.parameters && f->reduction.grads && f->scratch && f->sharded.list;
    return all ? PLIM_OK : PLIM_NOMEM;
}

enum plim_status fsdp_create(struct engine *e, struct decoder *model, struct link *link,
                             struct fsdp *f)
{
    const struct plim_train_setting *setting = model->setting;
    struct tensor **states = calloc(decoder_states(model, NULL), sizeof(struct tensor *));
    *f = (struct fsdp){
        .model = model,
        .link = link,
        .world = setting->world,
        .rank = setting->rank > 0 && setting->rank < setting->world ? setting->rank : 0,
        .by_accelerate = plim_loop_is_trainers(setting->loop),
        .by_axolotl = setting->fsdp_plan == PLIM_FSDP_PLAN_AXOLOTL,
        .first_matrix = FSDP_BLOCKS + (size_t)(model->config->vision.layers + model->config->layers),
        .hooks = {.before_block = fsdp_before_block, .after_block = fsdp_after_block,
                  .before_bare_norm = fsdp_before_bare_norm, .after_bare_norm = fsdp_after_bare_norm, .context = f},
        .modules = {.before = fsdp_before_module, .after = fsdp_after_module, .full_weight = fsdp_full_weight,
                    .context = f}};
    enum plim_status st = states ? PLIM_OK : PLIM_NOMEM;
    bool has_matrices = f->by_axolotl && setting->lora.r;
    f->unit_count = f->first_matrix + (has_matrices ? model->parameters.count : 0);
    if (has_matrices) {
        f->modules.access = fsdp_access_weight;
        f->modules.type_of = fsdp_type_of;
        f->modules.unshard = fsdp_unshard;
    }
    f->is_mixed = fsdp_is_mixed(setting);
    f->param_dtype = fsdp_policy_dtype(setting);
    bool reduces_fp32 = setting->reduce_type == PLIM_REDUCE_TYPE_AUTO
                            ? !f->by_accelerate
                            : setting->reduce_type == PLIM_REDUCE_TYPE_FP32;
    f->reduce_dtype = reduces_fp32 ? PLIM_F32 : f->param_dtype;
    if (st == PLIM_OK) st = allocate(f, decoder_states(model, NULL));
    if (st == PLIM_OK && !e->halted) {
        size_t parameters =
            f->by_accelerate ? make_units_and_shards(e, f, states) : make_shards(e, f, states);
        if (!f->by_accelerate) make_units(f, parameters);
        if (!e->halted) list_trained(f, parameters);
        if (f->by_accelerate) e->modules = &f->modules;
        model->hooks = &f->hooks;
        e->autograd.ended = (struct node_hook){fsdp_end_backward, f};
    }
    free(states);
    return st;
}

int64_t fsdp_next_rank(const struct fsdp *f)
{
    int64_t next = f->world;
    for (size_t k = 0; k < f->unit_count; k++)
        for (size_t i = 0; i < f->units[k].count; i++) {
            const struct fsdp_parameter *p = &f->units[k].parameters[i];
            int64_t full = p->rows / shard_rows(f, p); /* ranks with the maximum number of rows */
            if (full > f->rank && full < next)
                next = full;
            else if (full == f->rank && p->rows % shard_rows(f, p) && full + 1 < next)
                next = full + 1;
        }
    return next < f->world ? next : 0;
}

int64_t fsdp_expert_ranks(const struct fsdp *f)
{
    int64_t experts = f->model->config->experts;
    return experts < f->world ? experts : 0;
}

void fsdp_finish(struct fsdp *f)
{
    free(f->parameters);
    free(f->units);
    free(f->sequence);
    free(f->post_forward_order);
    free(f->chunks);
    free(f->reduction.parameters);
    free(f->reduction.grads);
    free(f->scratch);
    free(f->sharded.list);
    *f = (struct fsdp){0};
}
