/* A sequence of launches that repeats exactly; it counts as a training step if no kernel gives a better sign. */
#ifndef PLIM_DEVICES_VIRTUAL_STEPS_PERIOD_H
#define PLIM_DEVICES_VIRTUAL_STEPS_PERIOD_H

#include "steps_verdict.h"

struct plim_period {
    uint32_t *ring, *last; /* launches; for each, the position at which it last occurred, plus 1 (0: never) */
    uint64_t position, stored;  /* launches so far; how many of them were stored in the ring */
    uint64_t length, run;       /* length of the candidate, 0 if there is none; launches that matched it so far */
    uint64_t inserted;          /* launches since the last match that may lie between two steps */
    uint64_t kept, kept_length; /* length of an earlier period, and launches that matched it */
    uint64_t backward;          /* position after the last launch of a backward pass; 0: none */
    uint64_t unsteady;          /* position at which the peak last grew or memory was refused */
    bool knows_operands;        /* some launches have known operands, which distinguish them */
};

bool plim_period_init(
    struct plim_period *period); /* for a zeroed structure; false: out of memory; call finish in any case */
void plim_period_finish(struct plim_period *period);

/* Adds a launch; `token` may include its operands if they are known. Returns true when a period is complete. */
bool plim_period_feed(struct plim_period *period, uint64_t token, bool is_backward);
/* The memory peak grew, or an allocation was refused. */
void plim_period_mark_unsteady(struct plim_period *period);

/* Fills in a zeroed state if the launches repeat; otherwise leaves it unchanged. */
void plim_period_get_state(const struct plim_period *period, struct plim_steps_state *out);

#endif
