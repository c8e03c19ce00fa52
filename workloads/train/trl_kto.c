#include "trl_kto.h"
#include "dpo.h"
#include "kto.h"
#include "measures.h"

/* --- scores ----------------------------------------------------------------------------------- */

/* _compute_kl_logps(), without gradients; named */
static struct tensor *score_kl(struct engine *e, const struct batch *batch, trl_kto_forward *forward, void *user,
                               bool by_reference)
{
    struct batch given = {.inputs = batch->kl[0], .mask = batch->kl[1], .completions = batch->kl[2]};
    bool grad = e->grad_enabled;
    e->grad_enabled = false;
    given.labels = dpo_labels(e, &given);
    struct fused_output out = forward(user, &given, by_reference), kept = {0};
    struct tensor *sums = NULL;
    if (!e->halted) {
        kept.log_probs = tensor_ref(out.log_probs);
        nn_fused_output_drop(e, &out);
        sums = dpo_log_probs(e, &kept);
        nn_fused_output_drop(e, &kept);
    }
    tensor_drop(e, given.labels);
    e->grad_enabled = grad;
    return sums;
}

/* x.index_select(0, ..) of the rows of each kind; named */
static void select_kinds(struct engine *e, struct tensor *x, struct tensor *const places[KTO_KINDS],
                         struct tensor *out[KTO_KINDS])
{
    for (int kind = KTO_DESIRABLE; kind < KTO_KINDS; kind++)
        out[kind] = tensor_keep(op_select_rows(e, x, places[kind]));
}

/* Variables of a forward; named */
struct scores {
    struct kto_scored scored;
    struct fused_output out;
    struct tensor *sums;
};

static void drop_scores(struct engine *e, struct scores *s)
{
    tensor_drop_list(e, s->scored.log_probs, KTO_KINDS);
    tensor_drop_all(e, s->scored.kl, s->sums);
    nn_fused_output_drop(e, &s->out);
}

/* The scores that come with the batch, or the reference's, without gradients. `labelled`: the batch with labels */
static struct scores score_by_reference(struct engine *e, const struct batch *labelled,
                                        struct tensor *const places[KTO_KINDS], trl_kto_forward *forward, void *user)
{
    struct scores s = {0};
    bool grad = e->grad_enabled;
    e->grad_enabled = false;
    if (labelled->known[0]) {
        select_kinds(e, labelled->known[0], places, s.scored.log_probs);
        s.scored.kl = tensor_ref(labelled->known[1]);
    } else {
        s.scored.kl = score_kl(e, labelled, forward, user, true);
        s.out = forward(user, labelled, true);
        s.sums = dpo_log_probs(e, &s.out);
        if (!e->halted) select_kinds(e, s.sums, places, s.scored.log_probs);
    }
    e->grad_enabled = grad;
    return s;
}

/* --- metrics ---------------------------------------------------------------------------------- */

/* Metrics of the logits of each token, whose variables are stored in `kept`, named */
static void measure_logits(struct engine *e, const struct decoder *m, struct tensor *logits, struct tensor *mask,
                           struct tensor *const places[KTO_KINDS], struct tensor *kept[2 * KTO_KINDS])
{
    int64_t answer = m->setting->seq - decoder_unlearned(m);
    int64_t desirable = kto_rows(m->setting->micro_batch, KTO_DESIRABLE) * answer;
    select_kinds(e, logits, places, kept);
    select_kinds(e, mask, places, kept + KTO_KINDS);
    dpo_measure_logits_of(e, (struct pair){kept[0], kept[1]}, (struct pair){kept[2], kept[3]},
                          (const int64_t[]){desirable, decoder_labels(m) - desirable}, plim_setting_ranks(m->setting));
}

/* Python variables of the metrics, which live until the function returns; named */
struct measured {
    struct tensor *kept[2 * KTO_KINDS], *mask, *entropy, *total;
};

static struct measured measure(struct engine *e, const struct decoder *m, const struct batch *batch,
                               const struct scores *own, const struct kto_losses *l,
                               struct tensor *const places[KTO_KINDS], struct tensor *const counts[KTO_KINDS],
                               bool trains)
{
    int64_t world = plim_setting_ranks(m->setting);
    struct measured d = {.total = NULL};
    if (e->halted) return d;
    engine_item(e, l->kl);
    d.mask = tensor_keep(op_slice_end(e, batch->completions, 1, batch->completions->a.shape[1] - 1));
    d.entropy = dpo_measure_entropy(e, own->out.entropy, d.mask, world, &d.total);
    if (trains && !e->halted) measures_read_tokens(e, batch->mask, world);
    if (!e->halted) measure_logits(e, m, own->out.mean_logits, d.mask, places, d.kept);
    for (int kind = KTO_DESIRABLE; kind < KTO_KINDS && !e->halted; kind++)
        measures_read_sum(e, tensor_ref(counts[kind]), world);
    for (int kind = KTO_DESIRABLE; kind < KTO_KINDS && !e->halted; kind++) {
        measures_read_nansum(e, l->rewards[kind], world);
        measures_read_nansum(e, own->scored.log_probs[kind], world);
    }
    return d;
}

static void drop_measured(struct engine *e, struct measured *d)
{
    tensor_drop_list(e, d->kept, 2 * KTO_KINDS);
    tensor_drop_all(e, d->mask, d->entropy, d->total);
}

/* --- a micro-step ----------------------------------------------------------------------------- */

struct tensor *trl_kto_loss(struct engine *e, const struct decoder *m, const struct batch *batch, bool trains,
                            trl_kto_forward *forward, void *user)
{
    if (e->halted) return NULL;
    int64_t rows = m->setting->micro_batch;
    bool grad = e->grad_enabled;
    struct tensor *counts[KTO_KINDS], *places[KTO_KINDS];
    counts[KTO_DESIRABLE] = measures_count(e, batch->tags);
    const double others = (double)kto_rows(rows, KTO_UNDESIRABLE);
    counts[KTO_UNDESIRABLE] = tensor_keep(op_full(e, PLIM_I64, 0, NULL, others));
    struct scores own = {.scored.kl = score_kl(e, batch, forward, user, false)}, reference = {0};
    struct batch labelled = *batch;
    labelled.labels = dpo_labels(e, batch);
    own.out = forward(user, &labelled, false);
    own.sums = dpo_log_probs(e, &own.out);
    if (e->halted) return NULL;
    e->grad_enabled = false;
    places[KTO_DESIRABLE] = tensor_keep(op_nonzero(e, batch->tags, kto_rows(rows, KTO_DESIRABLE)));
    struct tensor *is_other = tensor_keep(op_unary(e, batch->tags, PLIM_UNARY_NOT));
    places[KTO_UNDESIRABLE] = tensor_keep(op_nonzero(e, is_other, kto_rows(rows, KTO_UNDESIRABLE)));
    tensor_drop(e, is_other);
    e->grad_enabled = grad;
    select_kinds(e, own.sums, places, own.scored.log_probs);
    reference = score_by_reference(e, &labelled, places, forward, user);
    if (e->halted) return NULL;
    struct kto_losses l = kto_losses(e, plim_setting_ranks(m->setting), KTO_KINDS, &own.scored, &reference.scored);
    e->grad_enabled = false;
    struct measured measured = measure(e, m, batch, &own, &l, places, counts, trains);
    e->grad_enabled = grad;
    struct tensor *loss = tensor_keep(op_nanmean(e, l.all));
    drop_measured(e, &measured);
    kto_losses_drop(e, &l);
    drop_scores(e, &reference);
    drop_scores(e, &own);
    tensor_drop_list(e, places, KTO_KINDS);
    tensor_drop_list(e, counts, KTO_KINDS);
    tensor_drop(e, labelled.labels);
    return loss;
}
