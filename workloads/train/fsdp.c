#include "buffer.h"
#include "fsdp_internal.h"
#include "devices/needs/needs.h"

/* Streams other than the default one: for copies into all-gather buffers, and for reduce-scatters. */
enum { COPY_IN = 1, REDUCE_SCATTER };

static int64_t all_gather_bytes(const struct fsdp *f, const struct fsdp_parameter *p)
{
    return shard_elements(f, p) * f->world * plim_dtype_size(dtype_of(p->all_gather_output));
}

/* Allocates and frees the table of addresses and sizes that a kernel over lists of tensors reads. */
static void kernel_table(struct engine *e, int64_t bytes)
{
    tensor_drop(e, tensor_keep(tensor_empty_bytes(e, bytes)));
}

/* --- unsharded parameters --------------------------------------------------------------------- */

/* Returns a unit's shards in the type in which they are gathered; NULL if all have that type already. */
static struct tensor *cast_shards(struct engine *e, const struct fsdp_unit *u)
{
    int64_t elements = 0;
    enum plim_dtype from = PLIM_F32;
    for (size_t i = 0; i < u->count; i++) {
        const struct fsdp_parameter *p = &u->parameters[i];
        if (dtype_of(p->shard) == dtype_of(p->all_gather_output)) continue;
        elements += shard_elements(u->fsdp, p);
        from = dtype_of(p->shard);
    }
    if (!elements) return NULL;
    struct tensor *flat = tensor_keep(tensor_empty(e, u->fsdp->param_dtype, SHAPE(elements)));
    buffer_copy(e, elements, flat, from);
    return flat;
}

/* unshard(): starts the all-gather on `stream`, at `ready` or when the previous transfer ends. */
static void all_gather_on(struct engine *e, struct fsdp_unit *u, int stream, double ready)
{
    if (u->all_gather_buffer || u->is_unsharded || e->halted || !u->count) return;
    int64_t bytes = 0;
    for (size_t i = 0; i < u->count; i++) bytes += all_gather_bytes(u->fsdp, &u->parameters[i]);
    enum plim_memory_class before = engine_set_class(e, PLIM_MEMORY_COMMUNICATION);
    double start = link_now(u->fsdp->link);
    e->stream = stream;
    struct tensor *flat = cast_shards(e, u);
    u->all_gather_buffer = tensor_keep(tensor_empty_bytes(e, bytes));
    buffer_copy(e, bytes / u->fsdp->world, u->all_gather_buffer, PLIM_U8);
    tensor_drop(e, flat);
    e->stream = 0;
    engine_set_class(e, before);
    ready += link_now(u->fsdp->link) - start;
    u->arrival = link_send(u->fsdp->link, ready, (double)bytes, 1);
}

/* The all-gather of a unit's forward and backward. */
static void all_gather(struct engine *e, struct fsdp_unit *u, double ready)
{
    all_gather_on(e, u, COPY_IN, ready);
}

/* wait_for_unshard(): copies each parameter out of the all-gather buffer. In forward the buffer is kept until the next
 * one has been copied out, too; from PyTorch 2.15 on until the next copy begins. */
static void copy_out(struct engine *e, struct fsdp_unit *u, bool in_forward)
{
    struct fsdp *f = u->fsdp;
    if (!u->all_gather_buffer || e->halted) return;
    struct tensor *earlier = in_forward ? f->copied_out : NULL;
    if (e->torch_2_15) tensor_drop(e, earlier);
    link_wait(f->link, u->arrival);
    f->may_gather_at = f->copied_out_at;
    for (size_t i = 0; i < u->count; i++) {
        struct fsdp_parameter *p = &u->parameters[i];
        int64_t bytes = all_gather_bytes(f, p);
        struct tensor *output = p->all_gather_output;
        storage_resize(e, output->storage, bytes);
        output->a.data = output->storage->address;
        if (p->unsharded->storage == output->storage) p->unsharded->a.data = output->a.data;
        f->chunks[i] = bytes / f->world;
    }
    kernel_table(e, plim_split_copy_table_bytes(&e->device->info, u->count, f->chunks, f->world));
    buffer_copy(e, u->all_gather_buffer->a.shape[0], u->all_gather_buffer, PLIM_U8);
    u->is_unsharded = true;
    f->copied_out_at = link_now(f->link);
    if (in_forward)
        f->copied_out = u->all_gather_buffer;
    else
        tensor_drop(e, u->all_gather_buffer);
    u->all_gather_buffer = NULL;
    if (!e->torch_2_15) tensor_drop(e, earlier);
}

static void reshard(struct engine *e, struct fsdp_unit *u)
{
    if (!u->is_unsharded) return;
    for (size_t i = 0; i < u->count; i++) storage_resize(e, u->parameters[i].all_gather_output->storage, 0);
    u->is_unsharded = false;
}

/* --- gradients -------------------------------------------------------------------------------- */

/* True if gradients are kept in a wider type than that in which backward computes them. */
static bool accumulates_wider(const struct fsdp *f)
{
    return f->is_mixed && plim_dtype_size(f->reduce_dtype) > plim_dtype_size(f->param_dtype);
}

/* _set_unsharded_grad_dtypes(), PyTorch 2.15: autograd casts a gradient to the wider type if later micro-steps are
 * added to it; others keep their type, and may be added to a wider one. */
static void set_grad_dtypes(struct engine *e, struct fsdp_unit *u)
{
    struct fsdp *f = u->fsdp;
    if (!e->torch_2_15 || !accumulates_wider(f) || e->halted) return;
    for (size_t i = 0; i < u->count; i++) {
        struct tensor *unsharded = u->parameters[i].unsharded;
        bool is_accumulated = !f->reduces && !unsharded->grad;
        if (unsharded->accumulator)
            unsharded->accumulator->output[0].dtype =
                (uint8_t)(is_accumulated ? f->reduce_dtype : f->param_dtype);
    }
}

/* accumulate_unsharded_grad_if_needed() */
static void accumulate_unsharded_grad(struct engine *e, struct fsdp_parameter *p)
{
    if (!p->accumulated_grad || !p->unsharded->grad) return;
    op_add_(e, p->accumulated_grad, p->unsharded->grad);
    tensor_drop(e, p->unsharded->grad);
    p->unsharded->grad = NULL;
}

/* to_accumulated_grad_if_needed() */
static void to_accumulated_grad(struct engine *e, struct fsdp_parameter *p, enum plim_dtype dtype)
{
    struct tensor *grad = p->unsharded->grad;
    if (!grad || dtype_of(grad) == dtype || e->halted) return;
    p->unsharded->grad = NULL;
    p->accumulated_grad = tensor_keep(op_to(e, grad, dtype));
    tensor_classify(e, p->accumulated_grad, PLIM_MEMORY_GRADIENTS);
    tensor_drop(e, grad);
}

/* Makes the gradient of the shard a view of `reduced`, where it starts at element `offset`, or adds it to the gradient
 * of an earlier micro-step. */
static void accumulate_sharded_grad(struct engine *e, struct tensor *reduced, struct tensor *shard,
                                    int64_t offset)
{
    struct tensor *view = tensor_keep(
        tensor_alias(e, reduced, shard->a.ndim, shard->a.shape, shard->a.stride, offset));
    if (!shard->grad) {
        shard->grad = view;
        return;
    }
    op_add_(e, shard->grad, view);
    tensor_drop(e, view);
}

/* Moves the unit's gradients to `r`. */
static void collect_unsharded_grads(struct fsdp_unit *u, struct fsdp_reduction *r)
{
    r->count = 0;
    r->elements = 0;
    for (size_t i = 0; i < u->count; i++) {
        struct fsdp_parameter *p = &u->parameters[i];
        struct tensor **grad = p->accumulated_grad ? &p->accumulated_grad : &p->unsharded->grad;
        if (!*grad) continue;
        r->parameters[r->count] = p;
        r->grads[r->count++] = *grad;
        r->elements += shard_elements(u->fsdp, p);
        *grad = NULL;
    }
}

/* _pad_chunk(): there is no kernel that packs fp16 into fp32; gradients that the world size does not divide are padded
 * one by one, and all are freed together. */
static void pad(struct engine *e, const struct fsdp *f, struct fsdp_reduction *r)
{
    struct tensor **padded = f->scratch;
    for (size_t i = 0; i < r->count; i++) {
        const struct fsdp_parameter *p = r->parameters[i];
        int64_t elements = shard_elements(f, p) * f->world;
        bool even = p->rows % f->world == 0;
        padded[i] = even ? NULL : tensor_keep(tensor_empty(e, PLIM_F16, SHAPE(elements)));
        if (!even) buffer_copy(e, elements, padded[i], PLIM_F16);
    }
    for (size_t i = 0; i < r->count; i++) tensor_drop(e, padded[i]);
}

/* foreach_reduce_scatter_copy_in(): consumes all gradients; before PyTorch 2.15 all but the last, which a Python
 * variable holds until the end of the function. */
static struct tensor *copy_in(struct engine *e, struct fsdp *f, struct fsdp_reduction *r,
                              enum plim_dtype dtype)
{
    for (size_t i = 0; i < r->count; i++)
        f->chunks[i] = shard_elements(f, r->parameters[i]) * plim_dtype_size(dtype);
    struct tensor *input = tensor_keep(tensor_empty(e, dtype, SHAPE(r->elements * f->world)));
    enum plim_dtype from = e->halted ? dtype : dtype_of(r->grads[0]);
    if (from == PLIM_F16 && dtype != from)
        pad(e, f, r);
    else
        kernel_table(e, plim_chunk_cat_table_bytes(r->count, f->chunks));
    buffer_copy(e, r->elements * f->world, input, from);
    for (size_t i = r->count - (e->torch_2_15 ? 0 : 1); i-- > 0;) tensor_drop(e, r->grads[i]);
    return input;
}

/* foreach_reduce() */
static void reduce(struct engine *e, struct fsdp *f, struct fsdp_reduction *r)
{
    enum plim_dtype shard_dtype = dtype_of(r->parameters[0]->shard),
                    dtype = f->is_mixed ? f->reduce_dtype : dtype_of(r->grads[0]);
    enum plim_memory_class before = engine_set_class(e, PLIM_MEMORY_COMMUNICATION);
    tensor_drop(e, f->reduce_scatter_input);
    link_wait(f->link, f->reduced_at);
    f->reduce_scatter_input = copy_in(e, f, r, dtype);
    f->reduced_at = link_send(f->link, link_now(f->link),
                              (double)(r->elements * f->world * plim_dtype_size(dtype)), 1);
    engine_set_class(e, PLIM_MEMORY_GRADIENTS);
    e->stream = REDUCE_SCATTER;
    struct tensor *reduced = tensor_keep(tensor_empty(e, dtype, SHAPE(r->elements)));
    tensor_set(e, &reduced, op_to(e, reduced, shard_dtype));
    e->stream = 0;
    engine_set_class(e, before);
    int64_t offset = 0;
    for (size_t i = 0; i < r->count && !e->halted; i++) {
        accumulate_sharded_grad(e, reduced, r->parameters[i]->shard, offset);
        offset += shard_elements(f, r->parameters[i]);
    }
    tensor_drop(e, reduced);
    if (!e->torch_2_15) tensor_drop(e, r->grads[r->count - 1]);
}

/* post_backward() */
void fsdp_unit_after_backward(struct engine *e, void *context)
{
    struct fsdp_unit *u = context;
    struct fsdp *f = u->fsdp;
    u->is_reduced = true;
    for (size_t i = 0; i < u->count; i++) accumulate_unsharded_grad(e, &u->parameters[i]);
    if (f->reduces) collect_unsharded_grads(u, &f->reduction);
    reshard(e, u);
    if (f->reduces && f->reduction.count) reduce(e, f, &f->reduction);
    for (size_t i = 0; i < u->count && !f->reduces && accumulates_wider(f) && !e->torch_2_15; i++)
        to_accumulated_grad(e, &u->parameters[i], f->reduce_dtype);
}

/* --- hooks of blocks and of the root ---------------------------------------------------------- */

/* pre_backward(): unshards the unit and prefetches the one that ran before it. */
void fsdp_unit_before_backward(struct engine *e, void *context)
{
    struct fsdp_unit *u = context;
    if (u->in_backward) return;
    u->in_backward = true;
    all_gather(e, u, link_now(u->fsdp->link));
    copy_out(e, u, false);
    set_grad_dtypes(e, u);
    size_t index = u->post_forward_index;
    struct fsdp_unit *next = index > 0 ? u->fsdp->post_forward_order[index - 1] : u->fsdp->last_evaluated;
    if (next) all_gather(e, next, u->fsdp->copied_out_at);
}

/* Frees the buffer of the last all-gather, at the end of the root's forward. */
static void drop_copied_out(struct engine *e, struct fsdp *f)
{
    tensor_drop(e, f->copied_out);
    f->copied_out = NULL;
}

/* is_bw(): true when a block is recomputed by reentrant checkpointing, before its pre_backward(). */
static bool recomputes(const struct engine *e)
{
    return e->thread == THREAD_AUTOGRAD;
}

/* post_forward(); `y` is the output. */
static void after_forward(struct engine *e, struct fsdp_unit *u, struct tensor *y)
{
    struct fsdp *f = u->fsdp;
    if (!u->count) return;
    if (u->reshards_after_forward && !recomputes(e)) reshard(e, u);
    if (e->evaluates) {
        f->last_evaluated = u;
        return; /* no backward follows */
    }
    if (!recomputes(e)) {
        u->post_forward_index = f->post_forward_count;
        f->post_forward_order[f->post_forward_count++] = u;
    }
    struct node *n = y->grad_fn ? y->grad_fn : y->accumulator;
    if (!e->halted && n) n->hook = &u->before_backward;
}

/* Returns the unit of a block. A vision tower's blocks come first. */
static struct fsdp_unit *unit_of(struct fsdp *f, const struct block_call *c)
{
    const struct vision *vision = &c->m->vision;
    struct fsdp_unit *blocks = f->units + FSDP_BLOCKS;
    int64_t of_tower = c->m->config->vision.layers;
    for (int64_t i = 0; i < of_tower; i++)
        if (c->layer == &vision->layers[i]) return &blocks[i];
    return &blocks[of_tower + (c->layer - c->m->layers)];
}

/* cast_forward_inputs */
static void cast_input(struct engine *e, const struct fsdp *f, struct tensor **x)
{
    if (f->is_mixed && *x && !e->halted && dtype_of(*x) == PLIM_F32)
        *x = tensor_keep(op_to(e, *x, f->param_dtype));
    else if (*x)
        tensor_ref(*x);
}

struct tensor *fsdp_before_block(struct engine *e, void *context, struct block_call *c,
                                 struct tensor *x)
{
    struct fsdp_unit *u = unit_of(context, c);
    u->fsdp->block_recomputes = u->in_backward;
    if (!u->count) return x; /* a part of the root */
    if (u->in_backward) { /* recomputed: fsdp_unit_before_backward() has unsharded the unit */
        all_gather(e, u, link_now(u->fsdp->link));
        copy_out(e, u, false);
        return x;
    }
    if (c->m->rotary.is_complex) tensor_ref(c->cos); /* cast_forward_inputs does not cast complex numbers */
    else cast_input(e, context, &c->cos);
    cast_input(e, context, &c->sin);
    all_gather(e, u, u->fsdp->may_gather_at);
    copy_out(e, u, true);
    return autograd_mark(e, x, &u->after_backward);
}

void fsdp_after_block(struct engine *e, void *context, struct block_call *c, struct tensor *y)
{
    struct fsdp_unit *u = unit_of(context, c);
    if (u->in_backward || !u->count) return;
    tensor_drop(e, c->cos);
    tensor_drop(e, c->sin);
    after_forward(e, u, y);
    if (recomputes(e)) drop_copied_out(e, context); /* the block was the root of this forward */
}

void fsdp_before_forward(struct engine *e, struct fsdp *f, bool reduces, struct batch *given)
{
    if (!f->model) return;
    f->inputs = given->inputs;
    f->pixels = given->pixels;
    cast_input(e, f, &f->inputs);
    cast_input(e, f, &f->pixels);
    given->inputs = f->inputs;
    given->pixels = f->pixels;
    f->reduces = reduces;
    f->block_recomputes = false;
    f->may_gather_at = f->copied_out_at = link_now(f->link);
    all_gather(e, &f->units[FSDP_ROOT], f->may_gather_at);
    copy_out(e, &f->units[FSDP_ROOT], true);
}

void fsdp_after_forward(struct engine *e, struct fsdp *f, struct tensor *trained, struct tensor **const *outputs,
                        size_t count)
{
    struct tensor *fp32[FSDP_OUTPUTS] = {0};
    if (!f->model) return;
    after_forward(e, &f->units[FSDP_ROOT], trained);
    for (size_t i = 0; i < count && f->by_accelerate && f->is_mixed && !e->halted; i++) {
        if (!*outputs[i] || dtype_of(*outputs[i]) == f->param_dtype) continue;
        fp32[i] = *outputs[i];
        *outputs[i] = tensor_keep(op_to(e, fp32[i], f->param_dtype));
    }
    drop_copied_out(e, f);
    tensor_drop_all(e, f->inputs, f->pixels);
    f->inputs = f->pixels = NULL;
    for (size_t i = 0; i < count; i++) tensor_drop(e, fp32[i]);
}

/* --- modules of the embedding, of the tail and of adapters ------------------------------------ */

/* True if it is one of axolotl's units, for an adapter's matrix. */
static bool is_of_matrix(const struct fsdp_unit *u)
{
    return u >= u->fsdp->units + u->fsdp->first_matrix;
}

/* Returns the unit whose module has this weight; NULL if it belongs to a block or to the root. */
static struct fsdp_unit *unit_of_module(struct fsdp *f, const struct tensor *weight)
{
    for (int k = FSDP_EMBEDDING; k <= FSDP_TAIL; k++)
        for (size_t i = 0; i < f->units[k].count; i++)
            if (f->units[k].parameters[i].unsharded == weight) return &f->units[k];
    for (size_t k = f->first_matrix; k < f->unit_count; k++)
        if (f->units[k].parameters->unsharded == weight) return &f->units[k];
    return NULL;
}

/* The same for a running module: a LoRA layer is identified by its first matrix, which is another module's weight. */
static struct fsdp_unit *unit_that_runs(struct fsdp *f, const struct tensor *weight, int kind)
{
    struct fsdp_unit *u = unit_of_module(f, weight);
    return u && is_of_matrix(u) && kind != NN_LINEAR ? NULL : u;
}

/* The first of a unit's modules unshards it. Token ids need no gradient, so no hook is called at the end of an
 * embedding's backward. */
static struct tensor *before_module_of(struct engine *e, struct fsdp_unit *u, struct tensor *x)
{
    if (!u || u->modules_left || u->in_backward) return x; /* in_backward: recomputed, and unsharded already */
    struct tensor *input = x;
    u->modules_left = u->modules;
    if (is_of_matrix(u)) cast_input(e, u->fsdp, &input);
    all_gather(e, u, u->fsdp->may_gather_at);
    copy_out(e, u, true);
    if (!is_of_matrix(u)) return autograd_mark(e, x, &u->after_backward);
    struct tensor *marked = tensor_hold(autograd_mark(e, input, &u->after_backward));
    tensor_drop(e, input);
    return tensor_yield(marked);
}

static void after_module_of(struct engine *e, struct fsdp_unit *u, struct tensor *y)
{
    if (!u || u->in_backward || --u->modules_left) return;
    after_forward(e, u, y);
    if (u->fsdp->block_recomputes) drop_copied_out(e, u->fsdp); /* the module was the root of this forward */
}

struct tensor *fsdp_before_module(struct engine *e, void *context, struct tensor *const *weights, int kind,
                                  struct tensor *x)
{
    return before_module_of(e, unit_that_runs(context, weights[0], kind), x);
}

struct tensor *fsdp_after_module(struct engine *e, void *context, struct tensor *const *weights, int kind,
                                 struct tensor *y)
{
    after_module_of(e, unit_that_runs(context, weights[0], kind), y);
    return y;
}

void fsdp_access_weight(struct engine *e, void *context, struct tensor *first, int kind, struct tensor *weight)
{
    (void)e, (void)context, (void)first, (void)kind, (void)weight;
}

enum plim_dtype fsdp_type_of(struct engine *e, void *context, struct tensor *weight)
{
    (void)e;
    const struct fsdp_unit *u = unit_of_module(context, weight);
    return u && is_of_matrix(u) && !u->is_unsharded ? dtype_of(u->parameters->shard) : dtype_of(weight);
}

void fsdp_unshard(struct engine *e, void *context, struct tensor *weight)
{
    struct fsdp_unit *u = unit_of_module(context, weight);
    if (!u) return;
    all_gather_on(e, u, 0, link_now(u->fsdp->link)); /* get_all_gather_streams(): current one, as called explicitly */
    copy_out(e, u, false);
}

struct tensor *fsdp_before_bare_norm(struct engine *e, void *context, struct tensor *x)
{
    struct fsdp *f = context;
    return f->has_bare_norm ? before_module_of(e, &f->units[FSDP_TAIL], x) : x;
}

void fsdp_after_bare_norm(struct engine *e, void *context, struct tensor *y)
{
    struct fsdp *f = context;
    if (f->has_bare_norm) after_module_of(e, &f->units[FSDP_TAIL], y);
}

static struct fsdp_parameter *parameter_of(const struct fsdp_unit *u, const struct tensor *unsharded)
{
    for (size_t i = 0; u && i < u->count; i++)
        if (u->parameters[i].unsharded == unsharded) return &u->parameters[i];
    return NULL;
}

/* DTensor.full_tensor() of a weight whose unit is sharded: gathers the ranks' shards, each padded to the longest. */
static struct tensor *full_tensor(struct engine *e, const struct fsdp *f, const struct fsdp_parameter *p)
{
    enum plim_dtype dtype = dtype_of(p->shard);
    int64_t elements = shard_elements(f, p);
    enum plim_memory_class before = engine_set_class(e, PLIM_MEMORY_PARAMETERS);
    bool is_short = local_rows(f, p) < shard_rows(f, p);
    struct tensor *padded = is_short ? tensor_keep(tensor_empty(e, dtype, SHAPE(elements))) : NULL;
    struct tensor *all_gather_buffer = tensor_keep(tensor_empty(e, dtype, SHAPE(elements * f->world)));
    engine_set_class(e, before);
    buffer_copy(e, elements, all_gather_buffer, dtype);
    double bytes = (double)(elements * f->world * plim_dtype_size(dtype));
    link_wait(f->link, link_send(f->link, link_now(f->link), bytes, 1));
    const struct plim_array *a = &p->unsharded->a;
    struct tensor *full =
        e->halted ? NULL : tensor_keep(tensor_alias(e, all_gather_buffer, a->ndim, a->shape, a->stride, 0));
    tensor_drop_all(e, padded, all_gather_buffer);
    return full;
}

struct tensor *fsdp_full_weight(struct engine *e, void *context, struct tensor *weight)
{
    struct fsdp *f = context;
    const struct fsdp_unit *u = unit_of_module(f, weight);
    const struct fsdp_parameter *p = parameter_of(u, weight);
    return !p || u->is_unsharded ? tensor_ref(weight) : full_tensor(e, f, p);
}

/* Returns the `i`-th unit in the order of modules: a vision tower's blocks come between the root and the embedding. */
static struct fsdp_unit *unit_at_end(const struct fsdp *f, size_t i)
{
    size_t of_tower = (size_t)f->model->config->vision.layers;
    if (i > FSDP_ROOT && i <= of_tower) return &f->units[FSDP_BLOCKS + i - 1];
    return &f->units[i > of_tower && i < of_tower + FSDP_BLOCKS ? i - of_tower : i];
}

/* _root_post_backward_final_callback() */
void fsdp_end_backward(struct engine *e, void *context)
{
    struct fsdp *f = context;
    for (size_t i = 0; i < f->unit_count; i++) {
        struct fsdp_unit *u = unit_at_end(f, i);
        if (!u->is_reduced) fsdp_unit_after_backward(e, u);
        u->is_reduced = u->in_backward = false;
        u->modules_left = 0; /* _finalize_backward(): of a head whose product TRL's model computes without calling it */
        tensor_drop(e, u->all_gather_buffer);
        u->all_gather_buffer = NULL;
    }
    f->post_forward_count = 0;
    f->last_evaluated = NULL;
    link_wait(f->link, f->reduced_at);
    tensor_drop(e, f->reduce_scatter_input);
    f->reduce_scatter_input = NULL;
}
