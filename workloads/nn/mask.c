/* create_causal_mask (transformers masking_utils.py): the mask, and all temporaries of its creation. */
#include "nn.h"

/* find_packed_sequence_indices: returns each token's document, computed from its position; named. */
static struct tensor *packed_sequence(struct engine *e, const struct mask_request *r)
{
    struct tensor *positions = tensor_keep(op_expand(e, r->positions, SHAPE(r->batch, r->seq)));
    struct tensor *first = tensor_keep(op_add_scalar(e, op_slice(e, positions, 1, 0, 1), -1));
    struct tensor *row[2] = {first, positions};
    struct tensor *ahead = tensor_keep(op_cat(e, 2, row, 1));
    struct tensor *later = tensor_keep(op_slice(e, ahead, 1, 1, r->seq));
    struct tensor *diff = tensor_keep(op_sub(e, later, op_slice(e, ahead, 1, 0, r->seq)));
    tensor_drop(e, later);
    tensor_drop(e, ahead);
    struct tensor *document =
        tensor_keep(op_cumsum_last(e, op_compare_scalar(e, PLIM_BINARY_NE, diff, 1), PLIM_I64));
    struct tensor *last =
        op_compare_scalar(e, PLIM_BINARY_EQ, op_select(e, document, 1, r->seq - 1), 0);
    struct tensor *all = tensor_keep(op_reduce(e, last, 1, false, PLIM_BINARY_MIN, 1, PLIM_BOOL));
    engine_item(e, all); /* whether every row is one document; `packed` has the answer */
    tensor_drop(e, all);
    tensor_drop(e, first);
    tensor_drop(e, diff);
    tensor_drop(e, positions);
    if (!r->packed) {
        tensor_drop(e, document);
        return NULL;
    }
    return document;
}

/* arange(count) + offset */
static struct tensor *offset_range(struct engine *e, int64_t count, int64_t offset)
{
    return tensor_keep(op_add_scalar(e, op_arange(e, PLIM_I64, count, 0, 1), (double)offset));
}

/* get_mask_sizes() (cache_utils.py): all but one of the tokens of a full window are kept. */
static int64_t keys_of(const struct mask_request *r)
{
    bool is_full = r->window && r->past >= r->window;
    return (is_full ? r->window - 1 : r->past) + (r->keys ? r->keys : r->seq);
}

static int64_t first_key(const struct mask_request *r)
{
    return r->keys ? 0 : r->past + r->seq - keys_of(r);
}

/* table[rows, columns] with broadcast index tensors: both indices are made contiguous first */
static struct tensor *gather(struct engine *e, struct tensor *table, struct tensor *rows,
                             struct tensor *columns, const int64_t shape[4])
{
    struct tensor *i = tensor_hold(op_contiguous(e, op_expand(e, rows, 4, shape)));
    struct tensor *j = tensor_hold(op_contiguous(e, op_expand(e, columns, 4, shape)));
    struct tensor *y = tensor_empty(e, (enum plim_dtype)table->a.dtype, 4, shape);
    struct plim_op op = {.kind = PLIM_OP_EMBEDDING,
                         .n_out = 1,
                         .n_in = 3,
                         .out = {&y->a},
                         .in = {&table->a, &i->a, &j->a}};
    if (!e->halted) engine_launch(e, &op);
    tensor_drop(e, j);
    tensor_drop(e, i);
    return tensor_keep(y);
}

struct indices {
    struct tensor *batch, *head, *q, *kv; /* views (B,1,1,1) (1,1,1,1) (1,1,S,1) (1,1,1,S) */
};

/* True if torch.vmap creates the mask, which is so for blocks limited by a window; a new scalar is then one per
 * query. */
static bool is_vmapped(const struct mask_request *r)
{
    return r->blocks && r->window && !r->blocks_last;
}

/* and_masks(): starts from true, and combines one mask (floating) after another; or_masks() starts from false. */
static struct tensor *start(struct engine *e, const struct mask_request *r, bool value)
{
    return tensor_keep(op_full(e, PLIM_BOOL, is_vmapped(r) ? 4 : 0, (int64_t[]){1, 1, r->seq, 1}, value));
}

static struct tensor *everything(struct engine *e, const struct mask_request *r)
{
    return start(e, r, true);
}

static void and_mask(struct engine *e, struct tensor **all, struct tensor *mask)
{
    tensor_set(e, all, op_compare(e, PLIM_BINARY_AND, *all, mask));
}

static void or_mask(struct engine *e, struct tensor **any, struct tensor *mask)
{
    tensor_set(e, any, op_compare(e, PLIM_BINARY_OR, *any, mask));
}

/* earlier tokens, within the window; floating */
static struct tensor *causal(struct engine *e, const struct mask_request *r,
                             const struct indices *i)
{
    if (!r->window) return op_compare(e, PLIM_BINARY_LE, i->kv, i->q);
    struct tensor *y = everything(e, r);
    and_mask(e, &y,
             op_compare(e, PLIM_BINARY_GT, i->kv, op_add_scalar(e, i->q, -(double)r->window)));
    and_mask(e, &y, op_compare(e, PLIM_BINARY_LE, i->kv, i->q));
    return tensor_yield(y);
}

/* blockwise_overlay(); floating */
static struct tensor *same_block(struct engine *e, const struct mask_request *r, const struct indices *i)
{
    struct tensor *q = gather(e, r->blocks, i->batch, i->q, (int64_t[]){r->batch, 1, r->seq, 1});
    struct tensor *kv = gather(e, r->blocks, i->batch, i->kv, (int64_t[]){r->batch, 1, 1, keys_of(r)});
    struct tensor *same = tensor_keep(op_compare(e, PLIM_BINARY_EQ, q, kv));
    struct tensor *y = op_compare(e, PLIM_BINARY_AND, same, op_compare_scalar(e, PLIM_BINARY_GE, q, 0));
    tensor_drop_all(e, same, q, kv);
    return y;
}

/* Earlier tokens or those of the same block, within the window (create_masks_for_vision_model()), or of the same block
 * anywhere (blocks_last); floating. */
static struct tensor *causal_or_block(struct engine *e, const struct mask_request *r, const struct indices *i)
{
    bool cuts = r->window && !r->blocks_last;
    struct tensor *all = cuts ? everything(e, r) : NULL, *any = start(e, r, false);
    or_mask(e, &any, cuts ? op_compare(e, PLIM_BINARY_LE, i->kv, i->q) : causal(e, r, i));
    or_mask(e, &any, same_block(e, r, i));
    if (!all) return tensor_yield(any);
    and_mask(e, &all, tensor_yield(any));
    and_mask(e, &all, op_compare(e, PLIM_BINARY_GT, i->kv, op_add_scalar(e, i->q, -(double)r->window)));
    return tensor_yield(all);
}

/* tokens within the window in both directions; floating */
static struct tensor *around(struct engine *e, const struct mask_request *r,
                             const struct indices *i)
{
    if (!r->window) return op_compare_scalar(e, PLIM_BINARY_GE, i->q, 0);
    struct tensor *y = everything(e, r);
    struct tensor *distance = op_unary(e, op_sub(e, i->q, i->kv), PLIM_UNARY_ABS);
    and_mask(e, &y, op_compare_scalar(e, PLIM_BINARY_LE, distance, (double)r->window));
    and_mask(e, &y, op_compare_scalar(e, PLIM_BINARY_GE, i->q, 0));
    return tensor_yield(y);
}

/* floating */
static struct tensor *same_document(struct engine *e, const struct mask_request *r,
                                    const struct indices *i, struct tensor *document)
{
    struct tensor *q = gather(e, document, i->batch, i->q, (int64_t[]){r->batch, 1, r->seq, 1});
    struct tensor *kv = gather(e, document, i->batch, i->kv, (int64_t[]){r->batch, 1, 1, keys_of(r)});
    struct tensor *y = op_compare(e, PLIM_BINARY_EQ, q, kv);
    tensor_drop(e, q);
    tensor_drop(e, kv);
    return y;
}

/* floating */
static struct tensor *not_padded(struct engine *e, const struct mask_request *r,
                                 const struct indices *i, struct tensor *padding)
{
    return tensor_yield(gather(e, padding, i->batch, i->kv, (int64_t[]){r->batch, 1, 1, keys_of(r)}));
}

typedef struct tensor *(*pattern)(struct engine *, const struct mask_request *,
                                  const struct indices *);

/* remap_positions_for_packed_sequence: applies the pattern to positions instead of indices; floating. */
static struct tensor *by_position(struct engine *e, const struct mask_request *r, pattern seen,
                                  const struct indices *i)
{
    struct tensor *positions = tensor_keep(op_expand(e, r->positions, SHAPE(r->batch, r->seq)));
    struct indices of = *i;
    of.q = gather(e, positions, i->batch, i->q, (int64_t[]){r->batch, 1, r->seq, 1});
    of.kv = gather(e, positions, i->batch, i->kv, (int64_t[]){r->batch, 1, 1, keys_of(r)});
    struct tensor *y = seen(e, r, &of);
    tensor_drop(e, of.q);
    tensor_drop(e, of.kv);
    tensor_drop(e, positions);
    return y;
}

/* sdpa_mask: bool (B, 1, S, keys); named */
static struct tensor *bool_mask(struct engine *e, const struct mask_request *r, pattern seen,
                                struct tensor *document, struct tensor *padding)
{
    struct tensor *batch = tensor_keep(op_arange(e, PLIM_I64, r->batch, 0, 1)),
                  *head = tensor_keep(op_arange(e, PLIM_I64, 1, 0, 1));
    struct tensor *q = offset_range(e, r->seq, r->past), *kv = offset_range(e, keys_of(r), first_key(r));
    struct indices i = {.batch = tensor_keep(op_view(e, batch, SHAPE(r->batch, 1, 1, 1))),
                        .head = tensor_keep(op_view(e, head, SHAPE(1, 1, 1, 1))),
                        .q = tensor_keep(op_view(e, q, SHAPE(1, 1, r->seq, 1))),
                        .kv = tensor_keep(op_view(e, kv, SHAPE(1, 1, 1, keys_of(r))))};
    struct tensor *mask;
    if (document || padding) {
        mask = everything(e, r);
        and_mask(e, &mask,
                 document && r->by_position ? by_position(e, r, seen, &i) : seen(e, r, &i));
        and_mask(e, &mask,
                 document ? same_document(e, r, &i, document) : not_padded(e, r, &i, padding));
    } else {
        mask = tensor_keep(seen(e, r, &i));
    }
    tensor_set(e, &mask, op_expand(e, mask, SHAPE(r->batch, -1, r->seq, keys_of(r))));
    tensor_drop_all(e, i.batch, i.head, i.q, i.kv, batch, head, q, kv);
    return mask;
}

/* torch.finfo(dtype).min */
double nn_lowest(enum plim_dtype dtype)
{
    return dtype == PLIM_F16 ? -65504.0 : dtype == PLIM_BF16 ? -0x1.fep127 : -0x1.fffffep127;
}

/* eager_mask: 0 where attention is allowed, the type's lowest number elsewhere; named. */
static struct tensor *additive(struct engine *e, struct tensor *mask, enum plim_dtype dtype)
{
    struct tensor *zero = tensor_keep(op_full(e, dtype, 0, NULL, 0));
    struct tensor *y = tensor_keep(op_where(e, mask, zero, NULL, dtype, 0, nn_lowest(dtype)));
    tensor_drop(e, zero);
    tensor_drop(e, mask);
    return y;
}

/* Returns the part of the padding mask for the keys, named; *range, named or NULL, lives as long. */
static struct tensor *padding_of_keys(struct engine *e, const struct mask_request *r, struct tensor *padding,
                                      struct tensor **range)
{
    *range = NULL;
    if (!first_key(r)) return tensor_ref(padding);
    *range = offset_range(e, keys_of(r), first_key(r));
    struct tensor *of_keys = tensor_keep(tensor_empty(e, PLIM_BOOL, SHAPE(r->batch, keys_of(r))));
    struct tensor *window = tensor_hold(op_slice(e, padding, 1, first_key(r), keys_of(r)));
    op_copy_(e, of_keys, window);
    tensor_drop(e, window);
    return of_keys;
}

/* _ignore_causal_mask_sdpa: counts the unmasked tokens of the padding mask; the host reads whether all are unmasked. If
 * a token is masked, it checks once more those that were not seen before. A full window is not checked. */
static bool nothing_padded(struct engine *e, const struct mask_request *r, struct tensor *padding)
{
    bool hides = r->packed || r->padded, is_full = r->window && keys_of(r) >= r->window;
    if (e->halted) return true;
    struct tensor *range, *of_keys = padding_of_keys(e, r, padding, &range);
    for (int look = 0; look < (hides && !r->past ? 2 : 1) && !is_full; look++) {
        struct tensor *count = op_reduce(e, of_keys, 3, false, PLIM_BINARY_ADD, 1, PLIM_I64);
        struct tensor *all =
            tensor_keep(op_compare_scalar(e, PLIM_BINARY_EQ, count, (double)(r->batch * keys_of(r))));
        engine_item(e, all);
        tensor_drop(e, all);
    }
    tensor_drop_all(e, range, of_keys);
    return !hides && !is_full;
}

/* _ignore_bidirectional_mask_sdpa, flash_attention_mask, create_recurrent_attention_mask: the host reads whether no
 * token is masked. */
static void ask_whether_all(struct engine *e, struct tensor *padding)
{
    struct tensor *all =
        tensor_keep(op_reduce(e, padding, 3, false, PLIM_BINARY_AND, 1, PLIM_BOOL));
    engine_item(e, all);
    tensor_drop(e, all);
}

struct tensor *nn_causal_mask(struct engine *e, const struct mask_request *r)
{
    bool grad = e->grad_enabled, autocast = e->autocast.on;
    e->grad_enabled = false;
    if (is_vmapped(r)) tensor_drop(e, tensor_keep(op_to(e, r->attention_mask, PLIM_BOOL))); /* to read its length */
    struct tensor *padding =
        r->attention_mask ? tensor_keep(op_to(e, r->attention_mask, PLIM_BOOL)) : NULL;
    bool may_be_packed = r->positions && !padding;
    struct tensor *document = may_be_packed ? packed_sequence(e, r) : NULL, *mask = NULL;
    bool beyond = r->window && keys_of(r) >= r->window; /* otherwise the kernel's own causal mask is enough */
    bool eager = r->function == ATTENTION_EAGER;
    if (r->function == ATTENTION_FLASH2) {
        if (padding) ask_whether_all(e, padding);
        if (padding && r->padded) mask = tensor_ref(padding);
    } else if (r->blocks) {
        mask = bool_mask(e, r, causal_or_block, NULL, padding);
        if (eager) mask = additive(e, mask, r->dtype);
    } else if (document || eager || r->always || (padding ? !nothing_padded(e, r, padding) : beyond)) {
        mask = bool_mask(e, r, causal, document, padding);
        if (eager) mask = additive(e, mask, r->dtype);
    }
    tensor_drop(e, document);
    tensor_drop(e, padding);
    e->grad_enabled = grad;
    e->autocast.on = autocast;
    return mask;
}

struct tensor *nn_bidirectional_mask(struct engine *e, const struct mask_request *r)
{
    bool grad = e->grad_enabled;
    e->grad_enabled = false;
    struct tensor *padding =
        r->attention_mask ? tensor_keep(op_to(e, r->attention_mask, PLIM_BOOL)) : NULL;
    struct tensor *mask = NULL;
    if (padding) ask_whether_all(e, padding);
    bool beyond = r->window && r->seq >= r->window;
    bool eager = r->function == ATTENTION_EAGER;
    if (r->function == ATTENTION_FLASH2) {
        if (padding && r->padded) mask = tensor_ref(padding);
    } else if ((padding && (r->padded || eager)) || beyond) {
        mask = bool_mask(e, r, around, NULL, padding);
        if (eager) mask = additive(e, mask, r->dtype);
    }
    tensor_drop(e, padding);
    e->grad_enabled = grad;
    return mask;
}

/* create_recurrent_attention_mask */
struct tensor *nn_recurrent_mask(struct engine *e, struct tensor *attention_mask, bool hides)
{
    if (e->halted || !attention_mask || tensor_size(attention_mask, 1) == 1) return NULL;
    struct tensor *same = tensor_keep(op_compare_scalar(e, PLIM_BINARY_EQ, attention_mask, 1));
    ask_whether_all(e, same);
    tensor_drop(e, same);
    return hides ? tensor_ref(attention_mask) : NULL;
}
