/* What a stretch of work asks of memory, written down to be done again without the work.
 *
 * The operations of a training step ask for the same bytes in the same order every time, whatever
 * blocks they are given. So where a stretch comes again on a device that computes nothing, its
 * tensors and nodes need not be made again: the allocator goes through what is on the tape, and the
 * clock through the round of its launches (plim_device_repeat()).
 *
 * On the tape are the storages that the stretch takes, by number, and when it gives them back; of
 * those that were there before it only what they come to be for. A stretch that gives back something
 * older cannot be played, because nothing on the tape says what: then the tape is `broken`. One that
 * keeps what it took can be played only together with another that gives that back. What a variable keeps from one
 * stretch to the next is `carried`: a stretch gives up what it had and leaves something else. */
#ifndef PLIM_ENGINE_TAPE_H
#define PLIM_ENGINE_TAPE_H

#include "autotune/base/array.h"
#include "memory_class.h"

enum { TAPE_CARRIED = 4 };

enum tape_action { TAPE_TAKE, TAPE_CLASSIFY, TAPE_GIVE_BACK };

struct tape_event {
    int64_t bytes;        /* TAKE: asked for; CLASSIFY of a storage that is older than the tape: its */
    int32_t slot;         /* the storage, from 1; 0: one that is older than the tape; below: what a variable carried */
    int16_t stream;       /* TAKE */
    uint8_t action;       /* enum tape_action */
    uint8_t memory_class; /* from now on: TAKE, CLASSIFY */
    uint8_t other_class;  /* TAKE: what is said to be lacking where there is none; CLASSIFY: before */
};

struct plim_block;
struct tensor;

/* Zeroed is empty and ready. */
struct tape {
    PLIM_ARRAY(struct tape_event) events;
    PLIM_ARRAY(struct tape_slot {
        struct plim_block *block;
        int64_t bytes;
        uint8_t memory_class;
    }) slots; /* while it is played; of slot 1 first */
    int32_t slots_used;
    struct tensor **carried[TAPE_CARRIED]; /* variables; the replayer's */
    bool has[TAPE_CARRIED];                /* where what is recorded began */
    int64_t kept; /* storages that were taken and not given back */
    bool broken;
};

void tape_finish(struct tape *tape);
/* Forgets all of it; its memory stays. */
void tape_rewind(struct tape *tape);

/* Around what is recorded: marks what the variables carry, and finds what was `left` in them, by slot (0: what was
 * there before). A variable that has nothing before or afterwards breaks the tape. */
void tape_begin_carrying(struct tape *tape);
void tape_end_carrying(struct tape *tape, int32_t left[TAPE_CARRIED]);

/* For storage.c. `slot` is 0 for a storage that is older than the tape. */
int32_t tape_note_take(struct tape *tape, int64_t bytes, int stream,
                       enum plim_memory_class memory_class, enum plim_memory_class lacking);
void tape_note_classify(struct tape *tape, int32_t slot, int64_t bytes,
                        enum plim_memory_class before, enum plim_memory_class now);
void tape_note_give_back(struct tape *tape, int32_t slot);

struct engine;
/* Does what stands in the events from `begin` to before `end`. Running out of memory halts the engine
 * as it would have there. */
void tape_play(struct engine *e, struct tape *tape, size_t begin, size_t end);
/* What was played has left this in the variables. */
void tape_hand_over(struct engine *e, struct tape *tape, const int32_t left[TAPE_CARRIED]);

#endif
