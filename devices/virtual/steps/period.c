#include "period.h"
#include <stdlib.h>

enum {
    TABLE = 1 << 16, /* size of the table of last occurrences */
    RING = 1 << 20,  /* longest period that can be found, in launches */
};

bool plim_period_init(struct plim_period *period)
{
    period->ring = calloc(RING, sizeof(uint32_t));
    period->last = calloc(TABLE, sizeof(uint32_t));
    return period->ring && period->last;
}

void plim_period_finish(struct plim_period *period)
{
    free(period->ring);
    free(period->last);
}

static uint64_t fitting(const struct plim_period *period)
{
    return period->run + (period->length == period->kept_length ? period->kept : 0);
}

/* True if matching launches outnumber all others `share` times. The layers of a backward pass repeat too, where their
 * operands are unknown: with checkpointing they are up to four fifths of a step. */
static bool is_most(const struct plim_period *period, uint64_t share)
{
    return period->run >= 2 * period->length && fitting(period) >= share * (period->position - fitting(period));
}

enum { LIKELY = 1, BEYOND_LAYERS = 7 };

/* True if an unexpected launch is an insertion between steps, such as printing the loss or a check every tenth step;
 * the run continues after it. */
static bool is_insertion(struct plim_period *period)
{
    return is_most(period, BEYOND_LAYERS) && ++period->inserted <= period->length;
}

/* Remembers the run that ended, for example at an evaluation longer than a step. */
static void store_run(struct plim_period *period)
{
    if (period->run < 2 * period->length) return;
    if (period->length == period->kept_length) {
        period->kept += period->run;
    } else if (period->run > period->kept) {
        period->kept = period->run;
        period->kept_length = period->length;
    }
}

/* There is one candidate at a time. It is dropped at the first launch that does not match; the distance from that
 * launch to its previous occurrence is the next candidate. So the optimizer's kernel, which ends a run of equal
 * micro-steps, yields the distance from step to step. Returns true when a period is complete. */
bool plim_period_feed(struct plim_period *period, uint64_t token, bool is_backward)
{
    uint32_t symbol = (uint32_t)(token >> 32) | 1;
    uint64_t at = period->stored;
    uint32_t *last = &period->last[symbol >> 4 & (TABLE - 1)];
    period->position++;
    if (period->length && period->ring[(at - period->length) % RING] == symbol) {
        period->run++;
    } else if (period->length && is_insertion(period)) {
        return false;
    } else {
        store_run(period);
        uint64_t before = *last ? at - ((at + 1 - *last) & UINT32_MAX) : at;
        bool found = *last && at - before < RING && period->ring[before % RING] == symbol;
        bool is_longer = at - before > period->kept_length && 2 * period->kept > period->position;
        period->length = !found ? 0 : is_longer ? period->kept_length : at - before;
        period->run = 0;
    }
    period->inserted = 0;
    period->ring[at % RING] = symbol;
    *last = (uint32_t)++period->stored;
    if (is_backward) period->backward = period->stored;
    return period->run && period->run % period->length == 0;
}

void plim_period_mark_unsteady(struct plim_period *period) { period->unsteady = period->position; }

/* True if the repeating launches include a backward pass, which makes them training. */
static bool is_training(const struct plim_period *period)
{
    bool is_clear = period->knows_operands && fitting(period) == period->run;
    return period->length && period->backward + period->length > period->stored &&
           is_most(period, is_clear ? LIKELY : BEYOND_LAYERS);
}

void plim_period_get_state(const struct plim_period *period, struct plim_steps_state *out)
{
    if (!is_training(period)) return;
    uint64_t fits = fitting(period), since = period->position - period->unsteady;
    out->rule = PLIM_STEPS_BY_PERIOD;
    out->steps = (int64_t)(fits / period->length);
    out->steady = (int64_t)((since < fits ? since : fits) / period->length);
    out->alike = out->steps;
    out->launches = (int64_t)period->length;
}
