/* The model, sharded. */
#include "fsdp_internal.h"
#include <stdlib.h>

/* This rank's part of a parameter that has no memory yet, which gets its type for computing. */
static void shard(struct engine *e, struct fsdp *f, struct fsdp_parameter *p, struct tensor *whole)
{
    int64_t shape[PLIM_MAX_DIMS];
    *p = (struct fsdp_parameter){.whole = whole, .rows = whole->a.shape[0], .row_elements = 1};
    for (int i = 1; i < whole->a.ndim; i++) p->row_elements *= shape[i] = whole->a.shape[i];
    shape[0] = own_rows(f, p);
    enum plim_memory_class before = engine_set_class(e, PLIM_MEMORY_PARAMETERS);
    p->shard = tensor_keep(tensor_empty(e, dtype_of(whole), whole->a.ndim, shape));
    engine_set_class(e, before);
    if (e->halted) return;
    p->shard->is_parameter = true;
    p->shard->requires_grad = whole->requires_grad;
    if (f->is_mixed) whole->a.dtype = (uint8_t)f->param_dtype;
    if (whole->accumulator) whole->accumulator->output[0].dtype = whole->a.dtype;
    if (whole->requires_grad) f->sharded.list[f->sharded.count++] = p->shard;
}

/* A shard's memory is that of `x` (taken) from now on. */
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

/* reset_sharded_param(), when all parameters of a block, or of the model, are there: fewer rows than on
 * other ranks get memory for as many. */
static void pad_shards(struct engine *e, struct fsdp *f, size_t parameters, int32_t layer)
{
    for (size_t i = 0; i < parameters && !e->halted; i++) {
        struct fsdp_parameter *p = &f->parameters[i];
        if (p->whole->layer != layer || own_rows(f, p) == shard_rows(f, p)) continue;
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

/* to_empty(), in the order of modules. A tied head is the same parameter met again: its memory is
 * taken anew, and that of the first time goes. Returns how many parameters there are. */
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

/* Which parameters each unit has: those of a block follow one another, the decoder's own come to
 * stand before them. */
static void make_units(struct fsdp *f, size_t parameters)
{
    struct fsdp_parameter *sorted = f->parameters + parameters;
    size_t count = 0;
    for (size_t k = 0; k < f->unit_count; k++) {
        struct fsdp_unit *u = &f->units[k];
        *u = (struct fsdp_unit){.fsdp = f,
                                .parameters = sorted + count,
                                .is_root = k == 0,
                                .before_backward = {fsdp_unit_before_backward, u},
                                .after_backward = {fsdp_unit_after_backward, u}};
        for (size_t i = 0; i < parameters; i++)
            if ((size_t)f->parameters[i].whole->layer == k) sorted[count++] = f->parameters[i];
        u->count = (size_t)(sorted + count - u->parameters);
    }
}

static bool is_mixed(const struct plim_train_setting *setting)
{
    return setting->precision == PLIM_PRECISION_BF16_MIXED ||
           setting->precision == PLIM_PRECISION_FP16_MIXED;
}

const char *fsdp_refuses(const struct plim_device_info *info, const struct plim_model_config *config,
                         const struct plim_train_setting *setting)
{
    if (!info->simulated)
        return "fsdp is simulated only: one GPU has not the parameters of the others";
    if (config->family >= PLIM_FAMILY_BERT)
        return config->experts ? "fsdp of experts is not known here; a program runs under exec"
                               : "fsdp of encoders is not known here; a program runs under exec";
    if (setting->world < 2) return "fsdp shards over 2 GPUs or more (world)";
    if (setting->optimizer == PLIM_OPTIMIZER_ADAFACTOR)
        return "torch.optim.Adafactor fails on sharded parameters (DTensor) in torch 2.11";
    if (setting->optimizer >= PLIM_OPTIMIZER_ADAMW_8BIT) /* and its paged ones */
        return "bitsandbytes' optimizers do not take sharded parameters (DTensor)";
    if (setting->quantization.type != PLIM_QUANTIZATION_NONE)
        return "quantised weights are not sharded here; a program that does runs under exec";
    if (config->family == PLIM_FAMILY_OLMO2 && is_mixed(setting) &&
        setting->checkpointing == PLIM_CHECKPOINTING_FULL)
        return "checkpointed olmo2 fails in mixed precision: a block is recomputed from other types";
    return NULL;
}

static enum plim_status allocate(struct fsdp *f, size_t parameters)
{
    size_t n = parameters ? parameters : 1;
    f->parameters = calloc(2 * n, sizeof *f->parameters);
    f->units = calloc(f->unit_count, sizeof *f->units);
    f->order = calloc(f->unit_count, sizeof(struct fsdp_unit *));
    f->chunks = calloc(n, sizeof *f->chunks);
    f->reduction.of = calloc(n, sizeof(struct fsdp_parameter *));
    f->reduction.grads = calloc(n, sizeof(struct tensor *));
    f->scratch = calloc(n, sizeof(struct tensor *));
    f->sharded.list = calloc(n, sizeof(struct tensor *));
    bool all = f->parameters && f->units && f->order && f->chunks && f->reduction.of &&
               f->reduction.grads && f->scratch && f->sharded.list;
    return all ? PLIM_OK : PLIM_NOMEM;
}

enum plim_status fsdp_create(struct engine *e, struct decoder *model, struct link *link,
                             struct fsdp *f)
{
    const struct plim_train_setting *setting = model->setting;
    struct tensor **states = calloc(decoder_states(model, NULL), sizeof(struct tensor *));
    *f = (struct fsdp){.model = model,
                       .link = link,
                       .world = setting->world,
                       .rank = setting->rank > 0 && setting->rank < setting->world ? setting->rank : 0,
                       .reshards = setting->resharding == PLIM_RESHARDING_YES,
                       .unit_count = 1 + (size_t)model->config->layers,
                       .hooks = {.before_block = fsdp_before_block,
                                 .after_block = fsdp_after_block,
                                 .context = f}};
    enum plim_status st = states ? PLIM_OK : PLIM_NOMEM;
    f->is_mixed = is_mixed(setting);
    f->param_dtype = setting->precision == PLIM_PRECISION_FP16_MIXED ? PLIM_F16 : PLIM_BF16;
    f->reduce_dtype = setting->reduce_type == PLIM_REDUCE_TYPE_FP32 ? PLIM_F32 : f->param_dtype;
    if (st == PLIM_OK) st = allocate(f, decoder_states(model, NULL));
    if (st == PLIM_OK && !e->halted) {
        make_units(f, make_shards(e, f, states));
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
            int64_t full = p->rows / shard_rows(f, p); /* ranks that have all that a rank may */
            if (full > f->rank && full < next) next = full;
            else if (full == f->rank && p->rows % shard_rows(f, p) && full + 1 < next) next = full + 1;
        }
    return next < f->world ? next : 0;
}

void fsdp_finish(struct fsdp *f)
{
    free(f->parameters);
    free(f->units);
    free(f->order);
    free(f->chunks);
    free(f->reduction.of);
    free(f->reduction.grads);
    free(f->scratch);
    free(f->sharded.list);
    *f = (struct fsdp){0};
}
