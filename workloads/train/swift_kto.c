#include "swift_kto.h"
#include "kto.h"
#include "measures.h"
#include "swift_tokens.h"

/* The results of forward(); named */
struct swift_kto_scores {
    struct kto_scored scored;
    struct tensor *logits[KTO_KINDS];   /* (rows): sums of their logits */
    struct tensor *places[KTO_KINDS];   /* (rows) int64, which autograd keeps for the logits */
    struct swift_tokens tokens;
};

static void drop_scores(struct engine *e, struct swift_kto_scores *s)
{
    tensor_drop_list(e, s->scored.log_probs, KTO_KINDS);
    tensor_drop_list(e, s->logits, KTO_KINDS);
    tensor_drop_list(e, s->places, KTO_KINDS);
    tensor_drop(e, s->scored.kl);
    swift_tokens_drop(e, &s->tokens);
}

/* _compute_kl_logps(), without gradients and checkpointing; named */
static struct tensor *score_kl(struct engine *e, const struct decoder *m, const struct batch *batch,
                               preference_forward *forward, void *user, bool by_reference)
{
    struct batch given = {.inputs = batch->kl[0], .mask = batch->kl[1], .labels = batch->kl[2]};
    bool grad = e->grad_enabled;
    e->grad_enabled = false;
    e->checkpointing_off = true;
    struct swift_tokens t = swift_tokens_score(e, m, &given, true, forward, user, by_reference);
    e->checkpointing_off = false;
    struct tensor *sums = NULL;
    if (!e->halted) {
        sums = tensor_keep(op_sum_dim(e, t.log_probs, 1));
        tensor_drop(e, tensor_keep(op_sum_dim(e, t.reduced, 1)));
        swift_tokens_leave(e, &t);
    }
    e->grad_enabled = grad;
    return sums;
}

/* x[list of the rows of a kind], whose indices are stored in *places; both named */
static struct tensor *rows_at(struct engine *e, struct tensor *x, int64_t rows, int kind, struct tensor **places)
{
    double first = kind == KTO_DESIRABLE ? 0 : (double)kto_rows(rows, KTO_DESIRABLE);
    *places = tensor_keep(op_arange(e, PLIM_I64, kto_rows(rows, kind), first, 1));
    return tensor_keep(op_different_rows(e, x, *places));
}

static struct swift_kto_scores score(struct engine *e, const struct decoder *m, const struct batch *batch, int kinds,
                                     preference_forward *forward, void *user, bool by_reference)
{
    struct swift_kto_scores s = {.scored.kl = score_kl(e, m, batch, forward, user, by_reference)};
    bool grad = e->grad_enabled;
    if (!e->halted) s.tokens = swift_tokens_score(e, m, batch, true, forward, user, by_reference);
    if (e->halted) return s;
    struct swift_tokens *t = &s.tokens;
    int64_t rows = t->logits->a.shape[0];
    struct tensor *logits = tensor_ref(t->logits), *sums = tensor_keep(op_sum_dim(e, t->log_probs, 1));
    struct tensor *given[2] = {t->given[0], t->given[1]}, *places;
    t->given[0] = t->given[1] = NULL;
    e->grad_enabled = false;
    struct tensor *totals = tensor_keep(op_sum_dim(e, t->reduced, 1));
    e->grad_enabled = grad;
    swift_tokens_leave(e, t);
    tensor_drop(e, t->is_label);
    t->is_label = NULL;
    for (int kind = KTO_DESIRABLE; kind < kinds; kind++) {
        s.scored.log_probs[kind] = rows_at(e, sums, rows, kind, &places);
        tensor_drop(e, places);
    }
    e->grad_enabled = false;
    for (int kind = KTO_DESIRABLE; kind < kinds; kind++)
        s.logits[kind] = rows_at(e, totals, rows, kind, &s.places[kind]);
    e->grad_enabled = grad;
    if (!grad) {
        tensor_drop_list(e, s.places, KTO_KINDS);
        s.places[KTO_DESIRABLE] = s.places[KTO_UNDESIRABLE] = NULL;
    }
    tensor_drop_list(e, given, 2);
    tensor_drop_all(e, logits, sums, totals);
    return s;
}

/* The reference's scores, of which a variable keeps the logits of the undesirable rows */
static struct swift_kto_scores score_by_reference(struct engine *e, const struct decoder *m,
                                                  const struct batch *batch, int kinds, preference_forward *forward,
                                                  void *user)
{
    bool grad = e->grad_enabled;
    e->grad_enabled = false;
    struct swift_kto_scores s = score(e, m, batch, kinds, forward, user, true);
    e->grad_enabled = grad;
    tensor_drop(e, s.logits[KTO_DESIRABLE]);
    s.logits[KTO_DESIRABLE] = NULL;
    return s;
}

static void measure(struct engine *e, struct tensor *const counts[KTO_KINDS], const struct kto_losses *l,
                    const struct swift_kto_scores *own, int64_t world)
{
    bool grad = e->grad_enabled;
    e->grad_enabled = false;
    engine_item(e, l->kl);
    for (int kind = KTO_DESIRABLE; kind < KTO_KINDS; kind++) measures_read_nansum(e, counts[kind], world);
    for (int kind = KTO_DESIRABLE; kind < l->kinds && !e->halted; kind++) {
        measures_read_nansum(e, l->rewards[kind], world);
        measures_read_nansum(e, own->scored.log_probs[kind], world);
        measures_read_nansum(e, own->logits[kind], world);
    }
    e->grad_enabled = grad;
}

struct tensor *swift_kto_loss(struct engine *e, const struct decoder *m, const struct batch *batch,
                              preference_forward *forward, void *user)
{
    int64_t rows = batch->inputs->a.shape[0];
    int kinds = kto_rows(rows, KTO_UNDESIRABLE) ? KTO_KINDS : KTO_UNDESIRABLE;
    struct tensor *counts[KTO_KINDS];
    for (int kind = KTO_DESIRABLE; kind < KTO_KINDS; kind++)
        counts[kind] = tensor_keep(op_full(e, PLIM_I64, 0, (const int64_t[]){0}, (double)kto_rows(rows, kind)));
    struct swift_kto_scores own = score(e, m, batch, kinds, forward, user, false), reference = {0};
    if (!e->halted) reference = score_by_reference(e, m, batch, kinds, forward, user);
    if (e->halted) return NULL;
    struct kto_losses l = kto_losses(e, plim_setting_ranks(m->setting), kinds, &own.scored, &reference.scored);
    kto_losses_leave(e, &l);
    measure(e, counts, &l, &own, plim_setting_ranks(m->setting));
    struct tensor *loss = tensor_keep(op_nanmean(e, l.all));
    kto_losses_drop(e, &l);
    drop_scores(e, &reference);
    drop_scores(e, &own);
    tensor_drop_list(e, counts, KTO_KINDS);
    return loss;
}
