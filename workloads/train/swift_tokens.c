#include "swift_tokens.h"
#include "selective.h"
#include "swift_sft.h"

/* torch.roll(x, -1, dims=1) of x (rows, n), lent; named */
static struct tensor *roll(struct engine *e, struct tensor *x)
{
    struct tensor *dense = tensor_hold(op_contiguous(e, x)), *y = tensor_keep(tensor_empty_like(e, dense, PLIM_I64));
    if (!e->halted) {
        int64_t rows = x->a.shape[0], n = x->a.shape[1];
        const int64_t later[] = {rows, n - 1}, first[] = {rows, 1};
        struct tensor *from = tensor_keep(tensor_alias(e, dense, 2, later, dense->a.stride, 1));
        struct tensor *to = tensor_keep(tensor_alias(e, y, 2, later, y->a.stride, 0));
        op_copy_(e, to, from);
        tensor_drop_all(e, from, to);
        from = tensor_keep(tensor_alias(e, dense, 2, first, dense->a.stride, 0));
        to = tensor_keep(tensor_alias(e, y, 2, first, y->a.stride, n - 1));
        op_copy_(e, to, from);
        tensor_drop_all(e, from, to);
    }
    tensor_drop(e, dense);
    return y;
}

/* get_per_token_logps() of t->logits and t->labels; fills in the rest. */
static void reduce(struct engine *e, struct swift_tokens *t, bool sums)
{
    bool grad = e->grad_enabled;
    e->grad_enabled = false;
    t->is_label = tensor_keep(op_compare_scalar(e, PLIM_BINARY_NE, t->labels, PLIM_IGNORED_TARGET));
    struct tensor *targets = tensor_keep(op_clone(e, t->labels));
    struct tensor *is_hidden = tensor_keep(op_unary(e, t->is_label, PLIM_UNARY_NOT));
    tensor_set(e, &targets, op_masked_fill_(e, targets, is_hidden, 0));
    tensor_drop(e, is_hidden);
    double share = e->halted || sums ? 1 : 1 / (double)t->logits->a.shape[2];
    t->reduced = tensor_keep(op_reduce(e, t->logits, 1u << 2, false, PLIM_BINARY_ADD, share, PLIM_F32));
    e->grad_enabled = grad;
    struct tensor *each = selective_log_probs(e, t->logits, targets);
    is_hidden = tensor_keep(op_unary(e, t->is_label, PLIM_UNARY_NOT));
    t->log_probs = tensor_keep(op_zero_where_(e, each, is_hidden));
    tensor_drop_all(e, each, is_hidden);
    e->grad_enabled = false;
    t->is_hidden = tensor_keep(op_unary(e, t->is_label, PLIM_UNARY_NOT));
    tensor_set(e, &t->reduced, op_masked_fill_(e, t->reduced, t->is_hidden, 0));
    tensor_drop(e, targets);
    e->grad_enabled = grad;
}

struct swift_tokens swift_tokens_score(struct engine *e, const struct decoder *m, const struct batch *batch, bool sums,
                                       preference_forward *forward, void *user, bool by_reference)
{
    struct swift_tokens t = {0};
    struct batch given = swift_keep(e, m, batch);
    t.logits = forward(user, &given, by_reference);
    if (e->halted) return (struct swift_tokens){0};
    t.labels = roll(e, given.labels);
    t.given[0] = given.labels, t.given[1] = given.kept;
    reduce(e, &t, sums);
    return e->halted ? (struct swift_tokens){0} : t;
}

void swift_tokens_leave(struct engine *e, struct swift_tokens *t)
{
    tensor_drop_all(e, t->logits, t->labels, t->log_probs, t->reduced);
    tensor_drop_list(e, t->given, 2);
    if (!e->grad_enabled) tensor_drop_all(e, t->is_label, t->is_hidden);
    *t = (struct swift_tokens){.is_label = e->grad_enabled ? t->is_label : NULL,
                               .is_hidden = e->grad_enabled ? t->is_hidden : NULL};
}

void swift_tokens_drop(struct engine *e, struct swift_tokens *t)
{
    tensor_drop_all(e, t->is_label, t->is_hidden);
    *t = (struct swift_tokens){0};
}
