/* create_causal_mask (transformers masking_utils.py): the mask, and every temporary on the way. */
#include "nn.h"

/* find_packed_sequence_indices: which document each token belongs to, from its position; named */
static struct tensor *packed_sequence(struct graph *g, const struct mask_request *r)
{
    struct tensor *positions = tensor_keep(op_expand(g, r->positions, SHAPE(r->batch, r->seq)));
    struct tensor *first = tensor_keep(op_add_scalar(g, op_slice(g, positions, 1, 0, 1), -1));
    struct tensor *row[2] = {first, positions};
    struct tensor *ahead = tensor_keep(op_cat(g, 2, row, 1));
    struct tensor *later = tensor_keep(op_slice(g, ahead, 1, 1, r->seq));
    struct tensor *diff = tensor_keep(op_sub(g, later, op_slice(g, ahead, 1, 0, r->seq)));
    tensor_drop(g, later);
    tensor_drop(g, ahead);
    struct tensor *document =
        tensor_keep(op_cumsum_last(g, op_compare_scalar(g, PLIM_BINARY_NE, diff, 1)));
    struct tensor *last =
        op_compare_scalar(g, PLIM_BINARY_EQ, op_select(g, document, 1, r->seq - 1), 0);
    struct tensor *all = tensor_keep(op_reduce(g, last, 1, false, PLIM_BINARY_MIN, 1, PLIM_BOOL));
    graph_item(g, all); /* is every row one document? `packed` answers */
    tensor_drop(g, all);
    tensor_drop(g, first);
    tensor_drop(g, diff);
    tensor_drop(g, positions);
    if (!r->packed) {
        tensor_drop(g, document);
        return NULL;
    }
    return document;
}

/* arange(count) + 0 */
static struct tensor *offset_range(struct graph *g, int64_t count)
{
    return tensor_keep(op_add_scalar(g, op_arange(g, PLIM_I64, count, 0, 1), 0));
}

/* table[rows, columns] with broadcast index tensors: both indices are made contiguous first */
static struct tensor *gather(struct graph *g, struct tensor *table, struct tensor *rows,
                             struct tensor *columns, const int64_t shape[4])
{
    struct tensor *i = tensor_hold(op_contiguous(g, op_expand(g, rows, 4, shape)));
    struct tensor *j = tensor_hold(op_contiguous(g, op_expand(g, columns, 4, shape)));
    struct tensor *y = tensor_empty(g, (enum plim_dtype)table->a.dtype, 4, shape);
    struct plim_op op = {.kind = PLIM_OP_EMBEDDING,
                         .n_out = 1,
                         .n_in = 3,
                         .out = {&y->a},
                         .in = {&table->a, &i->a, &j->a}};
    if (!g->halted) graph_launch(g, &op);
    tensor_drop(g, j);
    tensor_drop(g, i);
    return tensor_keep(y);
}

struct indices {
    struct tensor *batch, *head, *q, *kv; /* views (B,1,1,1) (1,1,1,1) (1,1,S,1) (1,1,1,S) */
};

/* and_masks(): starts from true, and takes one mask (floating) after the other */
static struct tensor *everything(struct graph *g)
{
    return tensor_keep(op_full(g, PLIM_BOOL, 0, NULL, 1));
}

static void and_mask(struct graph *g, struct tensor **all, struct tensor *mask)
{
    tensor_set(g, all, op_compare(g, PLIM_BINARY_AND, *all, mask));
}

/* what lies behind, no further than the window; floating */
static struct tensor *causal(struct graph *g, const struct mask_request *r, const struct indices *i)
{
    if (!r->window) return op_compare(g, PLIM_BINARY_LE, i->kv, i->q);
    struct tensor *y = everything(g);
    and_mask(g, &y,
             op_compare(g, PLIM_BINARY_GT, i->kv, op_add_scalar(g, i->q, -(double)r->window)));
    and_mask(g, &y, op_compare(g, PLIM_BINARY_LE, i->kv, i->q));
    return tensor_yield(y);
}

/* floating */
static struct tensor *same_document(struct graph *g, const struct mask_request *r,
                                    const struct indices *i, struct tensor *document)
{
    struct tensor *q = gather(g, document, i->batch, i->q, (int64_t[]){r->batch, 1, r->seq, 1});
    struct tensor *kv = gather(g, document, i->batch, i->kv, (int64_t[]){r->batch, 1, 1, r->seq});
    struct tensor *y = op_compare(g, PLIM_BINARY_EQ, q, kv);
    tensor_drop(g, q);
    tensor_drop(g, kv);
    return y;
}

/* floating */
static struct tensor *not_padded(struct graph *g, const struct mask_request *r,
                                 const struct indices *i, struct tensor *padding)
{
    return tensor_yield(gather(g, padding, i->batch, i->kv, (int64_t[]){r->batch, 1, 1, r->seq}));
}

/* sdpa_mask: bool (B, 1, S, S); named */
static struct tensor *bool_mask(struct graph *g, const struct mask_request *r,
                                struct tensor *document, struct tensor *padding)
{
    struct tensor *batch = tensor_keep(op_arange(g, PLIM_I64, r->batch, 0, 1)),
                  *head = tensor_keep(op_arange(g, PLIM_I64, 1, 0, 1));
    struct tensor *q = offset_range(g, r->seq), *kv = offset_range(g, r->seq);
    struct indices i = {.batch = tensor_keep(op_view(g, batch, SHAPE(r->batch, 1, 1, 1))),
                        .head = tensor_keep(op_view(g, head, SHAPE(1, 1, 1, 1))),
                        .q = tensor_keep(op_view(g, q, SHAPE(1, 1, r->seq, 1))),
                        .kv = tensor_keep(op_view(g, kv, SHAPE(1, 1, 1, r->seq)))};
    struct tensor *mask;
    if (document || padding) {
        mask = everything(g);
        and_mask(g, &mask, causal(g, r, &i));
        and_mask(g, &mask,
                 document ? same_document(g, r, &i, document) : not_padded(g, r, &i, padding));
    } else {
        mask = tensor_keep(causal(g, r, &i));
    }
    tensor_set(g, &mask, op_expand(g, mask, SHAPE(r->batch, -1, r->seq, r->seq)));
    struct tensor *done[] = {i.batch, i.head, i.q, i.kv, batch, head, q, kv};
    for (size_t k = 0; k < sizeof done / sizeof *done; k++) tensor_drop(g, done[k]);
    return mask;
}

/* torch.finfo(dtype).min */
static double lowest(enum plim_dtype dtype)
{
    return dtype == PLIM_F16 ? -65504.0 : dtype == PLIM_BF16 ? -0x1.fep127 : -0x1.fffffep127;
}

/* eager_mask: 0 where attended, the type's lowest number elsewhere; named */
static struct tensor *additive(struct graph *g, struct tensor *mask, enum plim_dtype dtype)
{
    struct tensor *zero = tensor_keep(op_full(g, dtype, 0, NULL, 0));
    struct tensor *y = tensor_keep(op_where(g, mask, zero, NULL, dtype, 0, lowest(dtype)));
    tensor_drop(g, zero);
    tensor_drop(g, mask);
    return y;
}

/* _ignore_causal_mask_sdpa: counts the tokens of the padding mask that are not masked; the host
 * reads whether all are. Where it finds one that is, it looks once more. */
static bool nothing_padded(struct graph *g, const struct mask_request *r, struct tensor *padding)
{
    for (int look = 0; look < (r->packed ? 2 : 1); look++) {
        struct tensor *count = op_reduce(g, padding, 3, false, PLIM_BINARY_ADD, 1, PLIM_I64);
        struct tensor *all =
            tensor_keep(op_compare_scalar(g, PLIM_BINARY_EQ, count, (double)(r->batch * r->seq)));
        graph_item(g, all);
        tensor_drop(g, all);
    }
    return !r->packed;
}

struct tensor *nn_causal_mask(struct graph *g, const struct mask_request *r)
{
    bool grad = g->grad_enabled, autocast = g->autocast;
    g->grad_enabled = false;
    struct tensor *padding =
        r->attention_mask ? tensor_keep(op_to(g, r->attention_mask, PLIM_BOOL)) : NULL;
    struct tensor *document = padding ? NULL : packed_sequence(g, r), *mask = NULL;
    bool beyond = r->window && r->seq >= r->window; /* else the kernel's own causal mask does */
    if (document || r->eager || beyond || (padding && !nothing_padded(g, r, padding))) {
        mask = bool_mask(g, r, document, padding);
        if (r->eager) mask = additive(g, mask, r->dtype);
    }
    tensor_drop(g, document);
    tensor_drop(g, padding);
    g->grad_enabled = grad;
    g->autocast = autocast;
    return mask;
}
