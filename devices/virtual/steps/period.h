/* A stretch of launches that repeats exactly: what is taken for a training step where no kernel says
 * more. */
#ifndef PLIM_DEVICES_VIRTUAL_STEPS_PERIOD_H
#define PLIM_DEVICES_VIRTUAL_STEPS_PERIOD_H

#include "steps_verdict.h"

struct plim_period {
    uint32_t *ring, *last; /* launches; where each was last: its position + 1 */
    uint64_t position, stored;  /* launches so far; of these, those in the ring */
    uint64_t length, run;       /* length 0: no candidate; run: launches that fit it */
    uint64_t inserted;          /* launches since the last that fitted, which may stand between two steps */
    uint64_t kept, kept_length; /* launches of runs of that length that have ended */
    uint64_t backward;          /* place in the ring behind the last launch of a backward pass; 0: none */
    uint64_t unsteady;          /* position at which the peak last grew or memory was refused */
    bool knows_operands;        /* of some launches, which are told apart by them */
};

bool plim_period_init(
    struct plim_period *period); /* zeroed; false: no memory, to be finished too */
void plim_period_finish(struct plim_period *period);

/* A launch, of a backward pass or not; its token may tell of its operands, where they are known. True: a period is
 * complete. */
bool plim_period_feed(struct plim_period *period, uint64_t token, bool is_backward);
/* The peak of memory grew, or memory was refused. */
void plim_period_note_unsteady(struct plim_period *period);

/* Fills a zeroed state where the launches repeat; leaves it where not. */
void plim_period_look(const struct plim_period *period, struct plim_steps_state *out);

#endif
