#include "kto.h"
#include "measures.h"
#include <math.h>

static const double BETA = 0.1; /* pref_beta */

static int64_t rows_of(const struct batch *batch, int kind)
{
    return kto_rows(batch->tags->a.shape[0], kind);
}

/* --- forwards --------------------------------------------------------------------------------- */

enum { BATCH_COPIES = 4 + BATCH_KL };

/* CustomKTOTrainer.forward(): copies all tensors of the batch. Returns the log-probability of each row's labels, and
 * stores the logits in *logits and the log-probability per label in *average; all named. */
static struct tensor *pass(struct engine *e, const struct batch *batch, bool of_kl, preference_forward *forward,
                           void *user, bool by_reference, struct tensor **logits, struct tensor **average)
{
    struct tensor *const parts[BATCH_COPIES] = {batch->inputs, batch->mask,  batch->labels, batch->kl[0],
                                                batch->kl[1],  batch->kl[2], batch->tags};
    struct tensor *copies[BATCH_COPIES], *count = NULL;
    for (int i = 0; i < BATCH_COPIES; i++) copies[i] = tensor_keep(op_detached_clone(e, parts[i]));
    struct tensor **own = copies + (of_kl ? BATCH_KL : 0);
    struct batch given = {.inputs = own[0], .mask = own[1]};
    *logits = forward(user, &given, by_reference);
    struct tensor *sums = preference_log_probs(e, *logits, own[2], &count);
    *average = e->halted ? NULL : tensor_keep(op_div(e, sums, count));
    tensor_drop(e, count);
    tensor_drop_list(e, copies, BATCH_COPIES);
    return sums;
}

/* The results of concatenated_forward(); named */
struct kto_scores {
    struct kto_scored scored;
    struct tensor *logits[KTO_KINDS]; /* (rows, S * V) */
    struct tensor *average;           /* of the desirable rows' labels, per label */
};

static void drop_scores(struct engine *e, struct kto_scores *s)
{
    tensor_drop_list(e, s->scored.log_probs, KTO_KINDS);
    tensor_drop_list(e, s->logits, KTO_KINDS);
    tensor_drop_all(e, s->scored.kl, s->average);
}

static struct kto_scores score(struct engine *e, const struct batch *batch, preference_forward *forward, void *user,
                               bool by_reference)
{
    struct kto_scores s = {0};
    struct tensor *logits, *average, *kl_logits, *kl_average;
    struct tensor *sums = pass(e, batch, false, forward, user, by_reference, &logits, &average);
    bool grad = e->grad_enabled;
    e->grad_enabled = false;
    s.scored.kl = e->halted ? NULL : pass(e, batch, true, forward, user, by_reference, &kl_logits, &kl_average);
    e->grad_enabled = grad;
    if (e->halted) return s;
    tensor_drop(e, kl_logits);
    int64_t rows = logits->a.shape[0], width = tensor_elements(logits) / rows;
    struct tensor *flat = tensor_keep(op_view(e, logits, SHAPE(rows, width)));
    for (int kind = KTO_DESIRABLE; kind < KTO_KINDS; kind++) {
        int64_t found = rows_of(batch, kind);
        for (int i = 0; i < 2; i++) {
            struct tensor *tags = kind == KTO_DESIRABLE ? tensor_ref(batch->tags)
                                                    : tensor_keep(op_unary(e, batch->tags, PLIM_UNARY_NOT));
            struct tensor **to = i ? &s.scored.log_probs[kind] : &s.logits[kind];
            *to = tensor_keep(op_rows_where(e, i ? sums : flat, tags, found));
            tensor_drop(e, tags);
        }
    }
    s.average = tensor_keep(op_rows_where(e, average, batch->tags, rows_of(batch, KTO_DESIRABLE)));
    tensor_drop_all(e, flat, logits, sums, average, kl_average);
    return s;
}

/* --- the loss --------------------------------------------------------------------------------- */

/* Computes a kind's log ratios, losses and rewards. */
static void fill_in(struct engine *e, struct kto_losses *l, int kind, struct tensor *own, struct tensor *reference)
{
    struct tensor *ratios = l->ratios[kind] = tensor_keep(op_sub(e, own, reference));
    struct tensor *over = kind == KTO_DESIRABLE ? op_sub(e, ratios, l->kl) : op_sub(e, l->kl, ratios);
    l->each[kind] = tensor_keep(op_rsub_scalar(e, op_sigmoid(e, op_mul_scalar(e, over, BETA)), 1));
    bool grad = e->grad_enabled;
    e->grad_enabled = false;
    l->rewards[kind] = tensor_keep(op_mul_scalar(e, ratios, BETA));
    e->grad_enabled = grad;
}

/* The losses of all kinds of rows that occur, weighted by 1 and concatenated; named */
static struct tensor *join(struct engine *e, const struct kto_losses *l)
{
    struct tensor *weighted[KTO_KINDS];
    for (int kind = KTO_DESIRABLE; kind < l->kinds; kind++)
        weighted[kind] = tensor_keep(op_mul_scalar(e, l->each[kind], 1));
    struct tensor *all = tensor_keep(op_cat(e, l->kinds, weighted, 0));
    tensor_drop_list(e, weighted, l->kinds);
    return all;
}

/* accelerator.gather_for_metrics((policy - reference).mean().detach()).mean().clamp(min=0); named */
static struct tensor *divergence(struct engine *e, int64_t world, struct tensor *own, struct tensor *reference)
{
    bool grad = e->grad_enabled;
    e->grad_enabled = false;
    struct tensor *each = tensor_keep(op_sub(e, own, reference)), *mean = measures_mean(e, each);
    tensor_drop(e, each);
    struct tensor *gathered = measures_gather(e, mean, world), *of_ranks = measures_mean(e, gathered);
    tensor_drop(e, gathered);
    struct tensor *kl = tensor_keep(op_clamp(e, of_ranks, 0, INFINITY));
    tensor_drop_all(e, of_ranks, mean);
    e->grad_enabled = grad;
    return kl;
}

struct kto_losses kto_losses(struct engine *e, int64_t world, int kinds, const struct kto_scored *own,
                             const struct kto_scored *reference)
{
    struct kto_losses l = {.kinds = kinds};
    l.kl = divergence(e, world, own->kl, reference->kl);
    for (int kind = KTO_DESIRABLE; kind < kinds; kind++)
        fill_in(e, &l, kind, own->log_probs[kind], reference->log_probs[kind]);
    l.all = join(e, &l);
    return l;
}

void kto_losses_leave(struct engine *e, struct kto_losses *l)
{
    for (int kind = KTO_DESIRABLE; kind < KTO_KINDS; kind++) {
        tensor_drop_all(e, l->each[kind], l->ratios[kind]);
        l->each[kind] = l->ratios[kind] = NULL;
    }
}

void kto_losses_drop(struct engine *e, struct kto_losses *l)
{
    kto_losses_leave(e, l);
    tensor_drop_list(e, l->rewards, KTO_KINDS);
    tensor_drop_all(e, l->all, l->kl);
    *l = (struct kto_losses){0};
}

static void read_sum(struct engine *e, struct tensor *x)
{
    measures_read(e, tensor_keep(op_nansum(e, x)));
}

/* Computes the reference's scores; those of the rows and of the KL divergence are kept. */
static struct kto_scores score_by_reference(struct engine *e, const struct batch *batch, preference_forward *forward,
                                            void *user)
{
    bool grad = e->grad_enabled;
    e->grad_enabled = false;
    struct kto_scores s = score(e, batch, forward, user, true);
    e->grad_enabled = grad;
    tensor_drop_list(e, s.logits, KTO_KINDS);
    tensor_drop(e, s.average);
    s.logits[KTO_DESIRABLE] = s.logits[KTO_UNDESIRABLE] = s.average = NULL;
    return s;
}

static void measure(struct engine *e, const struct kto_losses *l, const struct kto_scores *own)
{
    bool grad = e->grad_enabled;
    e->grad_enabled = false;
    for (int kind = KTO_DESIRABLE; kind < l->kinds && !e->halted; kind++) {
        read_sum(e, l->rewards[kind]);
        read_sum(e, own->scored.log_probs[kind]);
        read_sum(e, own->logits[kind]);
    }
    e->grad_enabled = grad;
}

struct tensor *kto_loss(struct engine *e, const struct batch *batch, preference_forward *forward, void *user)
{
    struct kto_scores own = score(e, batch, forward, user, false), reference = {0};
    if (!e->halted) reference = score_by_reference(e, batch, forward, user);
    if (e->halted) return NULL;
    int kinds = rows_of(batch, KTO_UNDESIRABLE) ? KTO_KINDS : KTO_UNDESIRABLE;
    struct kto_losses l = kto_losses(e, 1, kinds, &own.scored, &reference.scored);
    kto_losses_leave(e, &l);
    struct tensor *loss = tensor_keep(op_nanmean(e, l.all));
    tensor_drop(e, l.all);
    l.all = NULL;
    measure(e, &l, &own);
    kto_losses_drop(e, &l);
    drop_scores(e, &reference);
    drop_scores(e, &own);
    return loss;
}
