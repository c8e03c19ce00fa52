#include "period.h"
#include <stdlib.h>

enum {
    TABLE = 1 << 16, /* tokens are told apart by so many places */
    RING = 1 << 20,  /* launches in which a period has to fit */
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

/* One candidate at a time. It dies at the first launch that does not fit, and the distance from
 * that launch to its last occurrence is the next one. So an optimizer's kernel, which ends a run of
 * equal micro-steps, brings the distance from step to step. True: a period is complete. */
bool plim_period_feed(struct plim_period *period, uint64_t token)
{
    uint32_t symbol = (uint32_t)(token >> 32) | 1;
    uint64_t at = period->position++;
    uint32_t *last = &period->last[symbol >> 4 & (TABLE - 1)];
    if (period->length && period->ring[(at - period->length) % RING] == symbol) {
        period->run++;
    } else {
        uint64_t before = *last ? at - ((at + 1 - *last) & UINT32_MAX) : at;
        bool found = *last && at - before < RING && period->ring[before % RING] == symbol;
        period->length = found ? at - before : 0;
        period->run = 0;
    }
    period->ring[at % RING] = symbol;
    *last = (uint32_t)(at + 1);
    return period->run && period->run % period->length == 0;
}

void plim_period_note_backward(struct plim_period *period)
{
    period->backward = period->position + 1;
}

void plim_period_note_unsteady(struct plim_period *period) { period->unsteady = period->position; }

/* What repeats is believed to be training if it has a backward pass, and if it is most of what there was so far. The
 * layers of one backward pass repeat, too, where their operands are not known: up to four fifths of a step, with
 * checkpointing. */
static bool has_period(const struct plim_period *period)
{
    uint64_t rest = period->position - period->run;
    uint64_t least = (period->knows_operands ? 1 : 7) * rest;
    return period->length && period->backward + period->length > period->position &&
           period->run >= 2 * period->length && period->run >= least;
}

void plim_period_look(const struct plim_period *period, struct plim_steps_state *out)
{
    if (!has_period(period)) return;
    uint64_t since = period->position - period->unsteady;
    out->rule = PLIM_STEPS_BY_PERIOD;
    out->steps = (int64_t)(period->run / period->length);
    out->steady = (int64_t)((since < period->run ? since : period->run) / period->length);
    out->alike = out->steps;
    out->launches = (int64_t)period->length;
}
