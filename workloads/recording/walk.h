/* A walk through the events of a stream: which block each free means, for any number of micro-steps.
 *
 * A loop of a stream stands for one micro-step between the first and the last, and is walked as often as
 * the accumulation says beyond those two (recording.h). Inside of it a free counts back over what really was
 * allocated: the block may be of the micro-step before. Outside it counts as though each loop
 * had been walked once, and finds what the last micro-step in it allocated. That is why a number in
 * the file means the same block whatever the accumulation is. Where a loop is not walked at all,
 * the first micro-step stands for it: it does as those between.
 *
 * Blocks have slots: small numbers that are given again once a block is freed.
 */
#ifndef PLIM_WORKLOADS_RECORDING_WALK_H
#define PLIM_WORKLOADS_RECORDING_WALK_H

#include "recording.h"

/* A status of these ends the walk. */
struct plim_recorded_walker {
    enum plim_status (*take)(void *user, uint32_t slot, uint32_t size); /* of the stream's sizes */
    enum plim_status (*give)(void *user, uint32_t slot);
    enum plim_status (*empty_cache)(void *user); /* NULL: not asked */
    /* Behind each walk of a loop; `left`, how many there will be, may be made less. NULL: not asked. */
    enum plim_status (*repeated)(void *user, size_t loop, int64_t *left);
};

struct plim_recorded_reference {
    uint64_t number; /* of its allocation, from 1; 0: none */
    uint32_t slot;
};

/* Keeps its storage from walk to walk. Zeroed is a walk that has not begun. */
struct plim_recorded_walk {
    const struct plim_recorded_stream *stream;
    const struct plim_recorded_walker *walker;
    void *user;
    size_t event;                /* that is walked: a walker is called of it */
    int64_t loops_times;         /* how often each loop is walked */
    uint64_t allocated, counted; /* allocations: made; with each loop counted once */
    PLIM_ARRAY(struct plim_recorded_reference) made, outside; /* the last, by those two counts */
    PLIM_ARRAY(uint64_t) live;                                /* by slot: the number; 0: free */
    PLIM_ARRAY(uint32_t) free_slots;
};

/* Begins anew, before the first event. `accumulation`: micro-steps of a step, 1 or more; it matters
 * where the stream has loops, and is 2 or more there. PLIM_NOMEM is the only failure. */
enum plim_status plim_recorded_walk_begin(struct plim_recorded_walk *walk,
                                          const struct plim_recorded_stream *stream,
                                          int64_t accumulation,
                                          const struct plim_recorded_walker *walker,
                                          void *user) PLIM_MUST_CHECK;
void plim_recorded_walk_finish(struct plim_recorded_walk *walk); /* NULL and zeroed are fine */

/* Walks the events [from, to), which cut no loop in two. PLIM_INVALID: a block is freed that is not
 * there; PLIM_NOMEM, and what the walker says. */
enum plim_status plim_recorded_walk_events(struct plim_recorded_walk *walk, size_t from,
                                           size_t to) PLIM_MUST_CHECK;

/* The slot of the N-th last allocation, from 1, as events count it outside of loops or inside; -1:
 * it is free. N is at most the stream's longest. */
int64_t plim_recorded_walk_slot(const struct plim_recorded_walk *walk, uint32_t back,
                                bool in_loop) PLIM_MUST_CHECK;

#endif
