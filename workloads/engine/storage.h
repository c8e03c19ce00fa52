/* Storages: blocks of the caching allocator that tensors share, and what they add up to.
 *
 * A storage counts the tensors on it and is freed with the last. Its bytes belong to one class
 * (memory_class.h): the one that was set when it was taken (engine_set_class()), activations while
 * a node of autograd holds it for backward, or what storage_classify() said for good.
 */
#ifndef PLIM_ENGINE_STORAGE_H
#define PLIM_ENGINE_STORAGE_H

#include "autotune/base/status.h"
#include "memory_class.h"
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct engine;
struct plim_timeline;
struct plim_block;
struct tape;

struct storage {
    struct plim_block *block; /* NULL for zero bytes */
    uint64_t address;
    int64_t bytes; /* of the block */
    int64_t trace_id;
    int32_t slot;         /* on the tape; 0: it is on none */
    int32_t refs;
    int32_t saved;        /* how many nodes hold it for backward */
    uint8_t memory_class; /* enum plim_memory_class */
    bool pinned_class;    /* saving it does not make it activations */
};

/* What all storages hold. */
struct memory_use {
    enum plim_memory_class new_class; /* of new storages */
    int64_t class_bytes[PLIM_MEMORY_CLASS_COUNT];
    int64_t class_bytes_at_peak[PLIM_MEMORY_CLASS_COUNT]; /* they add up to peak_bytes */
    int64_t peak_bytes;                                   /* allocated */
    FILE *trace; /* every allocation and release, or NULL (plim_replayer_trace()) */
    int64_t trace_next_id;
    struct plim_timeline *timeline; /* what is allocated after each of them, or NULL */
    struct tape *tape;              /* on which they are written down, or NULL */
};

/* Memory for `bytes`, one reference; NULL (and the engine halted) when there is none. */
struct storage *storage_get(struct engine *e, int64_t bytes);
/* Notes what is allocated now, where a timeline is recorded. */
void storage_note_moment(struct engine *e);
/* Another block in the place of the one that it has, for all tensors on it; contents are lost.
 * 0 bytes: none (PyTorch's untyped_storage().resize_(), as FSDP calls it). Where there is no memory
 * the engine is halted. Addresses that tensors have of it are stale: for devices that compute
 * nothing. */
void storage_resize(struct engine *e, struct storage *s, int64_t bytes);
/* Its memory is given up, and another block becomes it, which is counted already (tape.h). */
void storage_give_up(struct engine *e, struct storage *s);
void storage_take_over(struct storage *s, struct plim_block *block);
/* Gives a reference up. */
void storage_put(struct engine *e, struct storage *s);
/* One node more (+1) or less (-1) holds it for backward. */
void storage_saved(struct engine *e, struct storage *s, int change);
/* So many bytes of the class were taken: counts them, and notes a peak. */
void storage_count(struct engine *e, enum plim_memory_class memory_class, int64_t bytes);
/* There was no memory for so many: halts the engine, and notes what it was for. */
void storage_lacks(struct engine *e, enum plim_status st, int64_t bytes,
                   enum plim_memory_class memory_class);
/* Says what it is for, for good. */
void storage_classify(struct engine *e, struct storage *s, enum plim_memory_class memory_class);

#endif
