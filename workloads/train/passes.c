#include "passes.h"
#include "forward.h"
#include "dpo_logits.h"
#include "kto.h"
#include "orpo.h"
#include "pairwise.h"
#include "preference.h"
#include "reward.h"
#include "swift_dpo.h"
#include "swift_kto.h"
#include "trl_kto.h"
#include "workloads/engine/ops_trl.h"

struct passes {
    struct training_run *r;
    bool reduces; /* the following backward reduces the gradients */
};

/* DistributedDataParallel wraps the model in all of its forwards, also those without gradients, but not in
 * evaluations. */
static void enter_ddp(const struct passes *passes, bool trains)
{
    struct training_run *r = passes->r;
    if (r->e->evaluates) return;
    if (trains) ddp_before_forward(r->e, &r->ddp, passes->reduces);
    else ddp_before_measuring(r->e, &r->ddp);
}

static struct tensor *score_rows(void *user, const struct batch *batch, bool by_reference)
{
    const struct passes *passes = user;
    struct training_run *r = passes->r;
    struct engine *e = r->e;
    bool has_own = by_reference && r->reference.model.family, evaluates = e->evaluates;
    struct batch unlabelled = *batch;
    struct tensor *logits = NULL, *no_loss = NULL;
    unlabelled.labels = NULL;
    bool trains = !by_reference && e->grad_enabled;
    bool is_bare = by_reference && plim_loop_is_swift_rlhf(r->setting.loop); /* without DistributedDataParallel */
    if (!has_own && !is_bare) enter_ddp(passes, trains);
    e->evaluates = evaluates || by_reference;
    forward_logits(r, forward_model(r, by_reference), &unlabelled, passes->reduces, &logits);
    e->evaluates = evaluates;
    e->adapters_off = false;
    if (trains && !evaluates) ddp_copy_outputs(e, &r->ddp, &no_loss, &logits, &r->model.encoded);
    if (!e->halted) tensor_set(e, &logits, op_to(e, logits, PLIM_F32));
    return logits;
}

/* The forwards of TRL's KTOTrainer: of the model with the outputs that it requests, also where it is the reference */
static struct fused_output score_fused(void *user, const struct batch *batch, bool by_reference)
{
    const struct passes *passes = user;
    struct training_run *r = passes->r;
    struct engine *e = r->e;
    bool has_own = by_reference && r->reference.model.family, evaluates = e->evaluates;
    bool trains = !by_reference && e->grad_enabled;
    if (e->halted) return (struct fused_output){0};
    if (!by_reference) enter_ddp(passes, trains);
    e->evaluates = evaluates || by_reference;
    struct decoder *m = forward_model(r, by_reference);
    forward_autocast(r, true);
    struct fused_output out = decoder_fused(e, m, batch, has_own ? 0 : TRL_ENTROPY | TRL_MEAN_LOGITS);
    forward_autocast(r, false);
    e->evaluates = evaluates;
    e->adapters_off = false;
    if (trains && !evaluates) ddp_copy_scores(e, &r->ddp, &out);
    return out;
}

/* PairwiseTrainer's forward: the model also computes its own loss of the logits, which lives as long as a Python
 * variable. */
static struct tensor *reward(const struct passes *passes, const struct batch *batch,
                             struct tensor *scores[TRAINER_LOGITS])
{
    struct training_run *r = passes->r;
    struct engine *e = r->e;
    struct tensor *own = NULL, *logits = NULL;
    enter_ddp(passes, true);
    forward_autocast(r, true);
    struct tensor *values = decoder_values(e, &r->model, batch, &own, &logits);
    forward_autocast(r, false);
    values = trainer_loop_widen(e, &r->model, values, forward_is_mixed(r));
    tensor_drop(e, logits);
    struct pair of_rows;
    struct tensor *loss = pairwise_loss(e, values, batch->mask, &of_rows);
    tensor_drop_all(e, values, own);
    if (!scores || !loss) {
        pair_drop(e, of_rows);
        return loss;
    }
    scores[0] = of_rows.chosen;
    scores[1] = of_rows.rejected;
    return loss;
}

/* By ms-swift's trainers */
static struct tensor *swift_loss(struct passes *passes, const struct batch *batch)
{
    struct training_run *r = passes->r;
    struct engine *e = r->e;
    bool trains = !e->evaluates;
    switch (r->setting.loop) {
    case PLIM_LOOP_SWIFT_DPO: return swift_dpo_loss(e, &r->model, batch, trains, score_rows, passes);
    case PLIM_LOOP_SWIFT_KTO: return swift_kto_loss(e, &r->model, batch, score_rows, passes);
    case PLIM_LOOP_SWIFT_RM: break;
    default: return orpo_loss(e, &r->model, batch, trains, score_rows, passes);
    }
    struct tensor *rewards = score_rows(passes, batch, false);
    struct tensor *loss = swift_reward_loss(e, rewards, &r->model);
    tensor_drop(e, rewards);
    return loss;
}

struct tensor *passes_loss(struct training_run *r, const struct batch *batch, bool reduces,
                           struct tensor *scores[TRAINER_LOGITS])
{
    struct passes passes = {r, reduces};
    if (r->setting.loop == PLIM_LOOP_AXOLOTL_DPO)
        return dpo_logits_loss(r->e, &r->model, batch, !r->e->evaluates, score_rows, &passes);
    if (r->setting.loop == PLIM_LOOP_TRL_KTO)
        return trl_kto_loss(r->e, &r->model, batch, !r->e->evaluates, score_fused, &passes);
    if (r->setting.loop == PLIM_LOOP_LLAMAFACTORY_RM) return reward(&passes, batch, scores);
    if (r->setting.loop == PLIM_LOOP_LLAMAFACTORY_KTO) return kto_loss(r->e, batch, score_rows, &passes);
    if (plim_loop_is_trl_orpo(r->setting.loop))
        return orpo_loss(r->e, &r->model, batch, !r->e->evaluates, score_rows, &passes);
    if (plim_loop_is_swift_rlhf(r->setting.loop)) return swift_loss(&passes, batch);
    return preference_loss(r->e, &r->model, batch, score_rows, &passes);
}
