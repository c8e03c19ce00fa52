/* A tape: the memory requests of a section of work, recorded in order to repeat them without doing the work.
 *
 * The operations of a training step request the same bytes in the same order every time, whatever blocks they receive.
 * So when a section repeats on a device that computes nothing, its tensors and nodes need not be created again: the
 * allocator plays the tape, and the clock repeats the round of its launches (plim_device_repeat()).
 *
 * The tape has the storages that the section allocates, by number, and when it frees them; of older storages only
 * changes of their class. A section that frees an older storage cannot be played, because the tape does not identify
 * it: then the tape is `broken`. A section that keeps storages can be played only together with another that frees
 * them. What a variable keeps from one section to the next is `carried`: a section frees what the variable had and
 * leaves something else in it. */
#ifndef PLIM_ENGINE_TAPE_H
#define PLIM_ENGINE_TAPE_H

#include "autotune/base/array.h"
#include "memory_class.h"

enum { TAPE_CARRIED = 4 };

enum tape_action { TAPE_ALLOCATE, TAPE_CLASSIFY, TAPE_FREE };

struct tape_event {
    int64_t bytes;        /* ALLOCATE: requested bytes; CLASSIFY of a storage older than the tape: its size */
    int32_t slot;         /* number of the storage, from 1; 0: older than the tape; negative: carried by a variable */
    int16_t stream;       /* ALLOCATE */
    uint8_t action;       /* enum tape_action */
    uint8_t memory_class; /* ALLOCATE, CLASSIFY: the class from now on */
    uint8_t other_class;  /* ALLOCATE: the class to report when out of memory; CLASSIFY: the class before */
};

struct plim_block;
struct tensor;

/* Zeroed: empty and ready for use. */
struct tape {
    PLIM_ARRAY(struct tape_event) events;
    PLIM_ARRAY(struct tape_slot {
        struct plim_block *block;
        int64_t bytes;
        uint8_t memory_class;
    }) slots; /* while the tape is played; the first is slot 1 */
    int32_t slots_used;
    struct tensor **carried[TAPE_CARRIED]; /* the replayer's variables */
    bool has[TAPE_CARRIED];                /* the variable was not empty when recording began */
    int64_t kept; /* number of storages that were allocated and not freed */
    bool broken;
};

void tape_finish(struct tape *tape);
/* Empties the tape; keeps its memory. */
void tape_rewind(struct tape *tape);

/* Call before and after recording: mark what the variables carry, and store what was `left` in them, by slot (0: the
 * same as before). A variable that is empty before or afterwards breaks the tape. */
void tape_begin_carrying(struct tape *tape);
void tape_end_carrying(struct tape *tape, int32_t left[TAPE_CARRIED]);

/* For storage.c. `slot` is 0 for a storage that is older than the tape. */
int32_t tape_record_allocation(struct tape *tape, int64_t bytes, int stream,
                               enum plim_memory_class memory_class, enum plim_memory_class lacking);
void tape_record_class(struct tape *tape, int32_t slot, int64_t bytes,
                       enum plim_memory_class before, enum plim_memory_class now);
void tape_record_free(struct tape *tape, int32_t slot);

struct engine;
/* Plays the events from `begin` up to but not including `end`. Running out of memory halts the engine as in the
 * recorded section. */
void tape_play(struct engine *e, struct tape *tape, size_t begin, size_t end);
/* Stores in the variables what the played events have `left` in them. */
void tape_store_carried(struct engine *e, struct tape *tape, const int32_t left[TAPE_CARRIED]);

#endif
