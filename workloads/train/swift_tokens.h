/* RLHFTrainerMixin of ms-swift (4.6, rlhf_trainers/rlhf_mixin.py; TRL 0.29): numbers of tokens from logits, of which
 * those before the first label are not computed. */
#ifndef PLIM_TRAIN_SWIFT_TOKENS_H
#define PLIM_TRAIN_SWIFT_TOKENS_H

#include "preference.h"

/* Of one forward; named */
struct swift_tokens {
    struct tensor *logits, *labels;         /* (rows, n, V), (rows, n), the labels of each token's next one */
    struct tensor *log_probs, *reduced;     /* (rows, n); 0 where there is no label */
    struct tensor *given[2];                /* what prepare_logits_to_keep() made: labels, and a mask or NULL */
    struct tensor *is_label, *is_hidden;    /* (rows, n); the latter is what autograd keeps for `reduced` */
};

/* Runs a forward of a batch and get_per_token_logps(), in which the logits of a token are reduced to their mean, or
 * with `sums` to their sum. Zeroed if the engine is halted. */
struct swift_tokens swift_tokens_score(struct engine *e, const struct decoder *m, const struct batch *batch, bool sums,
                                       preference_forward *forward, void *user, bool by_reference);
/* Drops what the function that asked for them no longer needs: all but the two masks, without gradients these, too. */
void swift_tokens_leave(struct engine *e, struct swift_tokens *t);
/* Drops what is left. */
void swift_tokens_drop(struct engine *e, struct swift_tokens *t);

#endif
