/* A sequence of launches that repeats exactly: it counts as a training step where no kernel gives a better
 * sign. */
#ifndef PLIM_DEVICES_VIRTUAL_STEPS_PERIOD_H
#define PLIM_DEVICES_VIRTUAL_STEPS_PERIOD_H

#include "steps_verdict.h"

struct plim_period {
    uint32_t *ring, *last; /* launches; where each was last seen: its position + 1 */
    uint64_t position, stored;  /* launches so far; how many of them are in the ring */
    uint64_t length, run;       /* length 0: no candidate; run: launches that match it */
    uint64_t inserted;          /* launches since the last match, which may lie between two steps */
    uint64_t kept, kept_length; /* launches of earlier runs of that length */
    uint64_t backward;          /* position after the last launch of a backward pass; 0: none */
    uint64_t unsteady;          /* position at which the peak last grew or memory was refused */
    bool knows_operands;        /* the operands of some launches are known and distinguish them */
};

bool plim_period_init(
    struct plim_period *period); /* zeroed; false: no memory, to be finished too */
void plim_period_finish(struct plim_period *period);

/* Adds a launch, of a backward pass or not; its token may include its operands where they are known. True: a period
 * is complete. */
bool plim_period_feed(struct plim_period *period, uint64_t token, bool is_backward);
/* The peak of memory grew, or memory was refused. */
void plim_period_note_unsteady(struct plim_period *period);

/* Fills in a zeroed state if the launches repeat; else leaves it unchanged. */
void plim_period_look(const struct plim_period *period, struct plim_steps_state *out);

#endif
