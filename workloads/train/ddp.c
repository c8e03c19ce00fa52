#include "ddp.h"
#include "workloads/engine/autograd.h"
#include <stdlib.h>

static const int64_t broadcast_bytes = INT64_C(250) << 20;
static const int64_t first_bucket_bytes = INT64_C(1) << 20, bucket_bytes = INT64_C(25) << 20;
static const int64_t no_limit = INT64_MAX;

/* Trainer._build_accelerator_args(), for which a model with adapters is not a PreTrainedModel. SFTTrainer enables it if
 * the model has a vision tower, unless it uses reentrant checkpointing. */
static bool sets_find_unused(const struct plim_train_setting *s, bool has_tower)
{
    if (s->ddp.finds_unused != PLIM_FIND_UNUSED_AUTO) return s->ddp.finds_unused == PLIM_FIND_UNUSED_YES;
    bool by_sft = has_tower && s->loop == PLIM_LOOP_TRL_SFT && !s->use_reentrant;
    return plim_loop_is_trainers(s->loop) && (s->lora.r || s->checkpointing == PLIM_CHECKPOINTING_NONE || by_sft);
}

static bool finds_unused(const struct ddp *d)
{
    return sets_find_unused(d->model->setting, plim_vision_exists(&d->model->config->vision));
}

/* Returns a parameter's index in the list of trainable parameters. */
static size_t index_of(const struct tensor *parameter)
{
    return (size_t)parameter->param_index;
}

/* compute_bucket_assignment_by_size(): tensors of one type fill a bucket until it reaches its limit, which is `first`
 * bytes for the first bucket of a type and `later` for others. Buckets are numbered by their first tensor. Fills
 * `buckets` (room for one per tensor) and returns their number; sets each parameter's bucket and offset in `d` if it is
 * not NULL. */
static size_t assign(size_t count, struct tensor *const *tensors, int64_t first, int64_t later,
                     struct ddp_bucket *buckets, struct ddp *d)
{
    struct {
        size_t bucket;
        int64_t limit;
        bool open;
    } of[PLIM_DTYPE_COUNT] = {0};
    size_t bucket_count = 0;
    for (int i = 0; i < PLIM_DTYPE_COUNT; i++) of[i].limit = first;
    for (size_t i = 0; i < count; i++) {
        enum plim_dtype dtype = (enum plim_dtype)tensors[i]->a.dtype;
        if (!of[dtype].open) {
            of[dtype].bucket = bucket_count;
            buckets[bucket_count++] = (struct ddp_bucket){.dtype = dtype};
        }
        struct ddp_bucket *b = &buckets[of[dtype].bucket];
        if (d) {
            d->bucket_of[index_of(tensors[i])] = of[dtype].bucket;
            d->offset[index_of(tensors[i])] = b->elements;
        }
        b->elements += tensor_elements(tensors[i]);
        b->parameters++;
        of[dtype].open = b->elements * plim_dtype_size(dtype) < of[dtype].limit;
        if (!of[dtype].open) of[dtype].limit = later;
    }
    return bucket_count;
}

/* --- broadcasts ------------------------------------------------------------------------------- */

/* flatten_dense_tensors(): NULL for a single tensor, which is a view of itself. */
static struct tensor *flatten(struct engine *e, const struct ddp_bucket *b)
{
    if (b->parameters < 2) return NULL;
    return tensor_keep(tensor_empty(e, b->dtype, SHAPE(b->elements)));
}

/* broadcast_coalesced(); this rank already has the values of rank 0. */
static void broadcast(struct engine *e, size_t count, struct tensor *const *tensors)
{
    enum { IN_FLIGHT = 2 };
    struct tensor *flat[IN_FLIGHT] = {NULL};
    struct ddp_bucket *buckets = calloc(count ? count : 1, sizeof *buckets);
    if (!buckets) {
        engine_fail(e, PLIM_NOMEM);
        return;
    }
    size_t n = assign(count, tensors, broadcast_bytes, broadcast_bytes, buckets, NULL);
    for (size_t i = 0; i < n + IN_FLIGHT; i++) {
        tensor_drop(e, flat[i % IN_FLIGHT]);
        flat[i % IN_FLIGHT] = i < n ? flatten(e, &buckets[i]) : NULL;
    }
    free(buckets);
}

/* _assign_modules_buffers(): named_buffers() lists a tensor with two names once. Returns their number. */
static size_t assign_buffers(struct engine *e, struct ddp *d)
{
    struct tensor *now[DECODER_BUFFERS];
    size_t all = decoder_buffers(d->model, now), count = 0;
    for (size_t i = 0; i < all; i++) {
        bool is_new = true;
        for (size_t k = 0; k < count; k++) is_new = is_new && now[k] != now[i];
        if (is_new) now[count++] = tensor_ref(now[i]);
    }
    for (size_t i = 0; i < DECODER_BUFFERS; i++) {
        tensor_drop(e, d->buffers[i]);
        d->buffers[i] = i < count ? now[i] : NULL;
    }
    return count;
}

/* verify_params_across_processes(): gathers the number of parameters from every rank, then their shapes and strides. */
static void verify(struct engine *e, const struct ddp *d)
{
    const struct parameters *p = &d->model->parameters;
    int64_t extents = 0;
    for (size_t i = 0; i < p->count; i++) extents += 2 * p->list[i]->a.ndim;
    struct tensor *own = tensor_keep(tensor_empty(e, PLIM_I64, SHAPE(1)));
    struct tensor **of_rank = calloc((size_t)d->world, sizeof(struct tensor *));
    if (!of_rank) engine_fail(e, PLIM_NOMEM);
    for (int64_t i = 0; i < d->world && of_rank; i++)
        of_rank[i] = tensor_keep(tensor_empty(e, PLIM_I64, SHAPE(1)));
    tensor_drop(e, tensor_keep(tensor_empty(e, PLIM_I64, SHAPE(d->world))));
    tensor_drop(e, tensor_keep(tensor_empty(e, PLIM_I64, SHAPE(extents))));
    for (int64_t i = 0; i < d->world && of_rank; i++) tensor_drop(e, of_rank[i]);
    tensor_drop(e, own);
    free(of_rank);
}

/* --- buckets ---------------------------------------------------------------------------------- */

/* Broadcasts `count` integers from rank 0. */
static struct tensor *integers(struct engine *e, size_t count)
{
    return tensor_keep(tensor_empty(e, PLIM_I32, SHAPE((int64_t)count)));
}

/* Returns the view of a parameter's gradient in its bucket, named. */
static struct tensor *bucket_view_of(struct engine *e, const struct ddp *d,
                                     const struct tensor *parameter)
{
    size_t i = index_of(parameter);
    return tensor_keep(tensor_alias(e, d->buckets[d->bucket_of[i]].gradients, parameter->a.ndim,
                                    parameter->a.shape, parameter->a.stride, d->offset[i]));
}

/* mark_variable_ready_dense(): copies a gradient into its bucket unless it is already a view of it. */
static void copy_grad_to_bucket(struct engine *e, const struct ddp *d, const struct tensor *parameter)
{
    if (e->halted || !parameter->grad) return;
    struct tensor *view = bucket_view_of(e, d, parameter);
    if (!e->halted && parameter->grad->storage != view->storage) {
        op_copy_(e, view, parameter->grad);
        if (d->options->as_view) tensor_set_data(e, parameter->grad, tensor_ref(view));
    }
    tensor_drop(e, view);
}

/* Replaces the buckets by those for `parameters`, in this order; gradients that are views of the old ones become views
 * of them. `is_rebuild`: rank 0 broadcasts the order of the parameters to the other ranks. */
static void make_buckets(struct engine *e, struct ddp *d, struct tensor *const *parameters,
                         int64_t first, int64_t later, bool is_rebuild)
{
    size_t count = d->model->parameters.count;
    struct ddp_bucket *buckets = calloc(count ? count : 1, sizeof *buckets);
    if (!buckets) {
        engine_fail(e, PLIM_NOMEM);
        return;
    }
    size_t n = assign(count, parameters, first, later, buckets, d);
    if (is_rebuild) {
        struct tensor *indices = integers(e, count + 1), *sizes = integers(e, n);
        tensor_drop(e, sizes);
        tensor_drop(e, indices);
    }
    for (size_t i = 0; i < d->bucket_count; i++) tensor_drop(e, d->buckets[i].gradients);
    free(d->buckets);
    d->buckets = buckets;
    d->bucket_count = n;
    enum plim_memory_class before = engine_set_class(e, PLIM_MEMORY_COMMUNICATION);
    for (size_t k = 0; k < n; k++) {
        size_t i = is_rebuild ? k : n - 1 - k; /* the constructor's buckets are in reverse order */
        buckets[i].gradients =
            tensor_keep(tensor_empty(e, buckets[i].dtype, SHAPE(buckets[i].elements)));
        for (size_t j = 0; j < count && d->options->as_view; j++)
            if (d->bucket_of[index_of(parameters[j])] == i) copy_grad_to_bucket(e, d, parameters[j]);
    }
    engine_set_class(e, before);
}

static void copy_bucket_to_grad(struct engine *e, const struct ddp *d, const struct tensor *parameter)
{
    if (e->halted || !parameter->grad || d->options->as_view) return;
    struct tensor *view = bucket_view_of(e, d, parameter);
    op_copy_(e, parameter->grad, view);
    tensor_drop(e, view);
}

static void make_limited_buckets(struct engine *e, struct ddp *d, struct tensor *const *parameters,
                                 bool is_rebuild)
{
    int64_t cap = d->options->bucket_mib << 20;
    make_buckets(e, d, parameters, cap ? cap : first_bucket_bytes, cap ? cap : bucket_bytes, is_rebuild);
}

static void send_bucket(const struct ddp *d, const struct ddp_bucket *b, double at)
{
    link_send(d->link, at, (double)(b->elements * plim_dtype_size(b->dtype)), 2);
}

/* autograd_hook(): a gradient has been accumulated */
static void accumulated(struct engine *e, void *context, struct tensor *variable)
{
    struct ddp *d = context;
    if (!d->reduces || !variable->is_parameter || d->delays) return;
    if (!d->rebuilt && d->ready_count < d->model->parameters.count)
        d->ready[d->ready_count++] = variable;
    copy_grad_to_bucket(e, d, variable);
    struct ddp_bucket *b = &d->buckets[d->bucket_of[index_of(variable)]];
    if (++b->ready < b->parameters) return;
    if (!d->sent++) d->began_at = link_now(d->link);
    /* Querying the time of a device that computes synchronises with it, so only for the first and the last bucket. */
    bool reads_clock = e->device->info.simulated || d->sent == d->bucket_count;
    send_bucket(d, b, reads_clock ? link_now(d->link) : d->began_at);
}

/* delay_all_reduce(): reduces all gradients after the first backward of a static graph. */
static void delayed_all_reduce(struct engine *e, struct ddp *d)
{
    const struct parameters *p = &d->model->parameters;
    for (size_t i = 0; i < p->count; i++) copy_grad_to_bucket(e, d, p->list[i]);
    for (size_t i = 0; i < d->bucket_count; i++)
        send_bucket(d, &d->buckets[i], link_now(d->link));
    d->delays = false;
}

/* --- find_unused_parameters, static_graph ----------------------------------------------------- */

static bool copies_outputs(const struct engine *e, const struct ddp *d)
{
    if (!d->model || e->halted) return false;
    return d->options->is_static ? d->delays : finds_unused(d);
}

/* _DDPSink: copies each output. */
void ddp_copy_outputs(struct engine *e, const struct ddp *d, struct tensor **loss, struct tensor **logits,
                      struct tensor **encoded)
{
    bool grad_enabled = e->grad_enabled;
    if (!copies_outputs(e, d)) return;
    struct tensor **trained = *loss ? loss : logits; /* the output that backward starts from */
    struct tensor *copy = autograd_mark(e, *trained, NULL);
    tensor_keep(copy);
    e->grad_enabled = false;
    struct tensor *memory = tensor_keep(op_clone(e, *trained));
    struct tensor *logits_copy = *loss && *logits ? tensor_keep(op_clone(e, *logits)) : NULL;
    struct tensor *states = *encoded ? tensor_keep(op_clone(e, *encoded)) : NULL;
    struct tensor *deltas = d->model->vision.deltas; /* rope_deltas, without a gradient: its copy is freed at once */
    if (deltas) tensor_drop(e, tensor_keep(op_clone(e, deltas)));
    e->grad_enabled = grad_enabled;
    if (!e->halted) tensor_set_data(e, copy, memory);
    if (*loss) tensor_drop(e, *logits);
    tensor_drop_all(e, *trained, *encoded);
    if (*loss) *logits = logits_copy;
    *trained = copy;
    *encoded = states;
}

void ddp_copy_scores(struct engine *e, const struct ddp *d, struct fused_output *out)
{
    bool grad_enabled = e->grad_enabled;
    if (!copies_outputs(e, d)) return;
    struct tensor *marked = tensor_keep(autograd_mark(e, out->log_probs, NULL)), *aux = NULL, *aux_memory = NULL;
    if (out->aux_loss) aux = tensor_keep(autograd_mark(e, out->aux_loss, NULL));
    if (!e->halted) node_save(e, marked->grad_fn, 0, out->count); /* keeps the loss's node until then */
    e->grad_enabled = false;
    struct tensor *loss = tensor_keep(op_clone(e, out->loss)), *memory = tensor_keep(op_clone(e, out->log_probs));
    struct tensor *entropy = tensor_keep(op_clone(e, out->entropy));
    struct tensor *logits = out->mean_logits ? tensor_keep(op_clone(e, out->mean_logits)) : NULL;
    struct tensor *is_top1 = out->is_top1 ? tensor_keep(op_clone(e, out->is_top1)) : NULL;
    struct tensor *mask = tensor_keep(op_clone(e, out->label_mask));
    if (aux) aux_memory = tensor_keep(op_clone(e, out->aux_loss));
    e->grad_enabled = grad_enabled;
    tensor_drop_all(e, logits, is_top1, mask); /* they need no gradient: the output keeps the model's own */
    if (!e->halted) tensor_set_data(e, marked, memory);
    if (!e->halted && aux) tensor_set_data(e, aux, aux_memory);
    tensor_drop_all(e, out->loss, out->log_probs, out->entropy, out->aux_loss, out->count);
    *out = (struct fused_output){loss, marked, entropy, out->mean_logits, out->is_top1, out->label_mask, aux, NULL};
}

/* initialize_local_used_map(): replaces an existing one. */
static void make_used_map(struct engine *e, struct ddp *d)
{
    struct tensor *used = integers(e, d->model->parameters.count);
    tensor_drop(e, d->used);
    d->used = used;
}

static void make_first_buckets(struct engine *e, struct ddp *d)
{
    struct tensor *const *parameters = d->model->parameters.list;
    bool limited = finds_unused(d) && !d->options->is_static;
    if (limited) make_limited_buckets(e, d, parameters, false);
    else make_buckets(e, d, parameters, no_limit, no_limit, false);
    if (finds_unused(d)) make_used_map(e, d);
    if (d->options->is_static) make_used_map(e, d); /* with both options: allocated twice */
    d->delays = d->options->is_static;
}

/* --- the model, wrapped ----------------------------------------------------------------------- */

const char *ddp_refuses(const struct plim_train_setting *setting)
{
    bool is_first_under_no_sync =
        setting->accumulation > 1 && setting->reduction == PLIM_REDUCTION_LAST;
    if (setting->ddp.is_static && is_first_under_no_sync)
        return "static_graph fails in torch 2.11 when the first backward is under no_sync(): "
               "accumulate with --reduction each, or without static_graph";
    bool reenters = setting->checkpointing == PLIM_CHECKPOINTING_FULL && setting->use_reentrant;
    if (reenters && sets_find_unused(setting, false) && !setting->ddp.is_static)
        return "DistributedDataParallel with find_unused_parameters, which Trainer asks for with adapters, fails with "
               "a reentrant backward (\"Expected to mark a variable ready only once\"): set "
               "ddp.find_unused_parameters to false";
    return NULL;
}

enum plim_status ddp_create(struct engine *e, struct decoder *model, int64_t world,
                            struct link *link, struct ddp *d)
{
    const struct parameters *p = &model->parameters;
    size_t n = p->count ? p->count : 1, states = decoder_states(model, NULL);
    *d = (struct ddp){.model = model,
                      .options = &model->setting->ddp,
                      .world = world,
                      .link = link,
                      .broadcasts = true};
    d->bucket_of = calloc(n, sizeof *d->bucket_of);
    d->offset = calloc(n, sizeof *d->offset);
    d->ready = calloc(n, sizeof(struct tensor *));
    d->states = calloc(states ? states : 1, sizeof(struct tensor *));
    if (!d->bucket_of || !d->offset || !d->ready || !d->states) return PLIM_NOMEM;
    if (e->halted) return PLIM_OK;
    for (size_t i = 0; i < p->count; i++) p->list[i]->param_index = (int32_t)i;
    verify(e, d);
    broadcast(e, decoder_states(model, d->states), d->states);
    assign_buffers(e, d);
    make_first_buckets(e, d);
    e->autograd.accumulated = accumulated;
    e->autograd.accumulated_context = d;
    return PLIM_OK;
}

void ddp_finish(struct ddp *d)
{
    free(d->bucket_of);
    free(d->offset);
    free(d->ready);
    free(d->states);
    free(d->buckets);
    *d = (struct ddp){0};
}

void ddp_before_forward(struct engine *e, struct ddp *d, bool reduces)
{
    if (!d->model || e->halted) return;
    d->reduces = reduces;
    bool rebuilds = !d->rebuilt && (d->options->is_static || !finds_unused(d));
    if (rebuilds && d->ready_count == d->model->parameters.count) {
        make_limited_buckets(e, d, d->ready, true);
        d->rebuilt = true;
    }
    if (d->broadcasts) broadcast(e, assign_buffers(e, d), d->buffers);
    d->broadcasts = reduces;
}

void ddp_before_measuring(struct engine *e, struct ddp *d)
{
    if (!d->model || e->halted) return;
    if (d->broadcasts) broadcast(e, assign_buffers(e, d), d->buffers);
    d->broadcasts = false;
}

static bool is_ready(const struct ddp *d, const struct tensor *parameter)
{
    size_t i = 0;
    while (i < d->ready_count && d->ready[i] != parameter) i++;
    return i < d->ready_count;
}

/* With static_graph, parameters without a gradient are marked ready after all others. */
static void mark_unused_ready(struct ddp *d)
{
    const struct parameters *p = &d->model->parameters;
    size_t used = d->ready_count;
    for (size_t i = 0; used && used < p->count && i < p->count; i++)
        if (!is_ready(d, p->list[i])) d->ready[d->ready_count++] = p->list[i];
}

bool ddp_waits_for_unused(const struct ddp *d)
{
    bool waits = false;
    if (!d->model || !d->reduces || d->delays || finds_unused(d) || d->options->is_static) return false;
    for (size_t i = 0; i < d->bucket_count; i++) waits = waits || d->buckets[i].ready < d->buckets[i].parameters;
    return waits;
}

void ddp_after_backward(struct engine *e, struct ddp *d)
{
    if (!d->model || !d->reduces) return;
    if (d->options->is_static && !d->delays && !d->rebuilt) mark_unused_ready(d);
    if (d->delays) delayed_all_reduce(e, d);
    const struct parameters *p = &d->model->parameters;
    link_wait(d->link, d->link->free_at);
    d->sent = 0;
    for (size_t i = 0; i < d->bucket_count; i++) d->buckets[i].ready = 0;
    for (size_t i = 0; i < p->count; i++) copy_bucket_to_grad(e, d, p->list[i]);
}
