/* Replays that cards have in common.
 *
 * A `plan` over many cards would replay the same thing again and again. The events of a
 * training step (what is allocated, in which order) depend on the card only through its
 * compute capability and its number of multiprocessors (needs.h); cards that agree in both are
 * one *class*. And the allocator acts on the limit of the card only once the limit is hit. So,
 * for a replay that never hit one ("clean": run without limit, or run to the end without a
 * retry):
 *
 *   - peak_reserved <= budget   it runs the same on every card of the class with that budget: it
 *     fits, and its peaks are the peaks there;
 *   - peak_requested > budget   it fits on none: whatever the allocator does, the tensors alone
 *     need more (`requested` is what was asked for, before any rounding of the allocator);
 *   - in between                only a replay under the very budget can tell, because what the
 *     allocator gives back and asks for again decides.
 *
 * Time is another matter: seconds belong to the card that they were measured on.
 *
 * The allocator's memory fraction makes it heed the limit before it is hit; then only the
 * second rule holds (runner.h, limit_acts_early).
 */
#ifndef PLIM_AUTOTUNE_MEMO_H
#define PLIM_AUTOTUNE_MEMO_H

#include "autotune/base/array.h"
#include "workloads/train/replay.h"

/* The clean replays of one class of cards and one model. Zeroed is empty and ready.
 * Thread safety: one thread at a time. */
struct plim_memo_entry {
    struct plim_setting setting;
    struct plim_replay replay;
    int64_t peak_requested_bytes; /* over all steps */
    const void *card;             /* whose seconds they are: an identity, never followed */
};

struct plim_memo {
    PLIM_ARRAY(struct plim_memo_entry) entries;
};

void plim_memo_finish(struct plim_memo *memo); /* NULL and zeroed are fine */

/* Do two settings agree in everything that a search varies? (The rest is constant within one.) */
bool plim_setting_equal(const struct plim_setting *a, const struct plim_setting *b);

/* The entry of a setting, or NULL. Valid until the next addition. */
const struct plim_memo_entry *plim_memo_find(const struct plim_memo *memo,
                                             const struct plim_setting *setting);

/* Keeps a replay that never hit a limit; one that did is ignored. PLIM_NOMEM when it cannot be
 * kept: a search that went on without it could choose otherwise. */
enum plim_status plim_memo_add(struct plim_memo *memo, const struct plim_setting *setting,
                               const struct plim_replay *replay, const void *card) PLIM_MUST_CHECK;

/* What an entry says about a budget: PLIM_OK it fits, PLIM_OOM it cannot, PLIM_INVALID it
 * cannot tell. */
enum plim_status plim_memo_verdict(const struct plim_memo_entry *entry, int64_t budget_bytes);

#endif
