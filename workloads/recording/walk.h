/* A walk through the events of a stream, which finds the block that each free refers to, for any number of micro-steps.
 *
 * A loop of a stream represents one micro-step between the first and the last, and is walked accumulation - 2 times
 * (recording.h). Inside the loop a free counts back over the allocations that were actually made: the block may be from
 * the previous micro-step. Outside, a free counts as if each loop had been walked once, and finds the allocations of
 * the loop's last micro-step. So a number in the file refers to the same block for any accumulation. If a loop is not
 * walked at all, the first micro-step is used instead, since it does the same.
 *
 * Blocks have slots: small numbers that are reused once a block is freed. */
#ifndef PLIM_WORKLOADS_RECORDING_WALK_H
#define PLIM_WORKLOADS_RECORDING_WALK_H

#include "recording.h"

/* Callbacks of a walk; a status other than PLIM_OK ends it. */
struct plim_recorded_walker {
    enum plim_status (*allocate)(void *user, uint32_t slot, uint32_t size); /* `size`: index of the stream's sizes */
    enum plim_status (*release)(void *user, uint32_t slot);
    enum plim_status (*empty_cache)(void *user); /* may be NULL */
    /* Called after each walk of a loop; may reduce `left`, the number of remaining walks. May be NULL. */
    enum plim_status (*repeated)(void *user, size_t loop, int64_t *left);
};

struct plim_recorded_reference {
    uint64_t number; /* of its allocation, from 1; 0: none */
    uint32_t slot;
};

/* A walk; keeps its memory for the next one. Zeroed: not begun. */
struct plim_recorded_walk {
    const struct plim_recorded_stream *stream;
    const struct plim_recorded_walker *walker;
    void *user;
    size_t event;                /* the current event, for which the walker is called */
    int64_t loops_times;         /* how often each loop is walked */
    uint64_t allocated, counted; /* number of allocations: made; with each loop counted once */
    PLIM_ARRAY(struct plim_recorded_reference) made, outside; /* the last ones, by these two counts */
    PLIM_ARRAY(uint64_t) live;                                /* by slot: the number of the allocation; 0: free */
    PLIM_ARRAY(uint32_t) free_slots;
};

/* Starts again before the first event. `accumulation`: micro-steps of a step, 1 or more; it only matters if the stream
 * has loops, and is then 2 or more. Fails only with PLIM_NOMEM. */
enum plim_status plim_recorded_walk_begin(struct plim_recorded_walk *walk,
                                          const struct plim_recorded_stream *stream,
                                          int64_t accumulation,
                                          const struct plim_recorded_walker *walker,
                                          void *user) PLIM_MUST_CHECK;
void plim_recorded_walk_finish(struct plim_recorded_walk *walk); /* NULL and zeroed are allowed */

/* Walks the events [from, to), which must not split a loop. PLIM_INVALID: a free of a block that does not exist;
 * PLIM_NOMEM, or the walker's status. */
enum plim_status plim_recorded_walk_events(struct plim_recorded_walk *walk, size_t from,
                                           size_t to) PLIM_MUST_CHECK;

/* Returns the slot of the `back`-th last allocation, from 1, counted as outside or inside of loops; -1 if it is free.
 * `back` is at most the stream's `longest`. */
int64_t plim_recorded_walk_slot(const struct plim_recorded_walk *walk, uint32_t back,
                                bool in_loop) PLIM_MUST_CHECK;

#endif
