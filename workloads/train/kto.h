/* LLaMA-Factory's CustomKTOTrainer (0.9.5, llamafactory/train/kto/trainer.py, a subclass of TRL 0.24's trainer, whose
 * kto_loss() it uses): each row is desirable or undesirable. The model and a reference compute all logits of these
 * rows, and of other rows for an estimate of the KL divergence. The logits of each kind are copied for the metrics. */
#ifndef PLIM_TRAIN_KTO_H
#define PLIM_TRAIN_KTO_H

#include "preference.h"

/* Rows of each kind: a batch's first half, and the others. */
enum { KTO_DESIRABLE, KTO_UNDESIRABLE, KTO_KINDS };
static inline int64_t kto_rows(int64_t rows, int kind)
{
    return kind == KTO_DESIRABLE ? (rows + 1) / 2 : rows / 2;
}
/* The log-probabilities of each kind of rows and of those from which the KL divergence is estimated; (rows), named */
struct kto_scored {
    struct tensor *log_probs[KTO_KINDS], *kl;
};
/* The losses of all rows, their rewards, and the KL divergence; of each kind its log ratios and losses; named */
struct kto_losses {
    struct tensor *all, *rewards[KTO_KINDS], *kl, *ratios[KTO_KINDS], *each[KTO_KINDS];
    int kinds; /* the number of kinds that occur */
};
/* TRL's kto_loss() of a model's and a reference's log-probabilities, lent. */
struct kto_losses kto_losses(struct engine *e, int64_t world, int kinds, const struct kto_scored *own,
                             const struct kto_scored *reference);
/* Drops ratios and each, which are variables of kto_loss() in earlier versions of TRL. */
void kto_losses_leave(struct engine *e, struct kto_losses *l);
void kto_losses_drop(struct engine *e, struct kto_losses *l);

/* get_batch_loss_metrics(); see preference_loss(). */
struct tensor *kto_loss(struct engine *e, const struct batch *batch, preference_forward *forward, void *user);

#endif
