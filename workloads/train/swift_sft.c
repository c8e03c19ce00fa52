#include "swift_sft.h"
#include "measures.h"

static bool is_swifts(const struct engine *e, const struct decoder *m)
{
    return m->setting->loop == PLIM_LOOP_SWIFT_SFT && !e->halted;
}

/* torch.nn.functional.pad() of x (1, n) or (n) by one element before it (in_front) or after it; named. */
static struct tensor *pad(struct engine *e, struct tensor *x, bool in_front, double value)
{
    int dim = x->a.ndim - 1;
    int64_t shape[PLIM_MAX_DIMS] = {0}, stride[PLIM_MAX_DIMS] = {0};
    for (int i = 0; i <= dim; i++) shape[i] = x->a.shape[i], stride[i] = 1;
    shape[dim]++;
    struct tensor *y = tensor_keep(op_full(e, (enum plim_dtype)x->a.dtype, x->a.ndim, shape, value));
    if (e->halted) return y;
    if (dim) stride[0] = shape[dim];
    struct tensor *part = tensor_keep(tensor_alias(e, y, x->a.ndim, x->a.shape, stride, in_front));
    op_copy_(e, part, x);
    tensor_drop(e, part);
    return y;
}

/* prepare_logits_to_keep() for one row: selects the tokens by a mask. */
static void select_by_mask(struct engine *e, const struct decoder *m, struct batch *b)
{
    int64_t tokens = tensor_elements(b->labels), found = decoder_labels(m);
    struct tensor *mask = tensor_keep(op_compare_scalar(e, PLIM_BINARY_NE, b->labels, PLIM_IGNORED_TARGET));
    tensor_set(e, &mask, op_view(e, mask, SHAPE(tokens)));
    struct tensor *row = op_view(e, b->labels, SHAPE(tokens));
    struct tensor *labels = tensor_keep(op_rows_where(e, row, mask, found));
    tensor_set(e, &labels, op_view(e, labels, SHAPE(1, found)));
    if (!e->halted) b->labels = pad(e, labels, true, PLIM_IGNORED_TARGET);
    tensor_drop(e, labels);
    struct tensor *later = tensor_keep(op_slice(e, mask, 0, 1, tokens - 1));
    if (!e->halted) b->kept = pad(e, later, false, 1);
    b->kept_tokens = found + 1;
    tensor_drop_all(e, later, mask);
}

/* The same for several rows: keeps the last tokens, as many as are needed by the row that needs most. */
static void select_last(struct engine *e, const struct decoder *m, struct batch *b)
{
    struct tensor *counts = op_compare_scalar(e, PLIM_BINARY_NE, b->labels, PLIM_IGNORED_TARGET);
    struct tensor *first = tensor_keep(op_argmax_last(e, op_to(e, counts, PLIM_I32)));
    struct tensor *least = e->halted ? NULL : measures_fold(e, first, PLIM_BINARY_MIN);
    tensor_drop(e, first);
    if (least) measures_read(e, least);
    b->kept_tokens = m->setting->seq - decoder_unlearned(m) + 1;
    b->labels = tensor_keep(op_slice_end(e, b->labels, 1, b->kept_tokens));
}

struct batch swift_keep(struct engine *e, const struct decoder *m, const struct batch *batch)
{
    struct batch prepared = *batch;
    bool grad = e->grad_enabled;
    e->grad_enabled = false;
    if (tensor_size(batch->labels, 0) == 1) select_by_mask(e, m, &prepared);
    else select_last(e, m, &prepared);
    e->grad_enabled = grad;
    return prepared;
}

struct batch swift_prepare(struct engine *e, const struct decoder *m, const struct batch *batch)
{
    return is_swifts(e, m) ? swift_keep(e, m, batch) : *batch;
}

void swift_prepared_drop(struct engine *e, const struct decoder *m, const struct batch *prepared)
{
    if (m->setting->loop == PLIM_LOOP_SWIFT_SFT && prepared->kept_tokens)
        tensor_drop_all(e, prepared->labels, prepared->kept);
}

/* (labels[:, 1:] != -100).sum() / items; named */
static struct tensor *share_of(struct engine *e, struct tensor *labels, struct tensor *items)
{
    struct tensor *shifted = tensor_keep(op_slice(e, labels, 1, 1, tensor_size(labels, 1) - 1));
    struct tensor *counts = tensor_keep(op_compare_scalar(e, PLIM_BINARY_NE, shifted, PLIM_IGNORED_TARGET));
    tensor_drop(e, shifted);
    struct tensor *sum = measures_count(e, counts);
    tensor_drop(e, counts);
    struct tensor *share = measures_quotient(e, sum, items);
    tensor_drop(e, sum);
    return share;
}

struct tensor *swift_weigh(struct engine *e, const struct decoder *m, const struct batch *prepared,
                           struct tensor *items, struct tensor *loss, struct tensor *logits)
{
    if (!is_swifts(e, m)) return loss;
    if (items) {
        struct tensor *share = share_of(e, prepared->labels, items);
        tensor_set(e, &loss, op_mul(e, loss, share));
        tensor_drop(e, share);
    }
    bool grad = e->grad_enabled;
    e->grad_enabled = false;
    if (logits && !e->halted) tensor_drop(e, tensor_keep(op_argmax_last(e, logits))); /* compute_acc() */
    e->grad_enabled = grad;
    return loss;
}
