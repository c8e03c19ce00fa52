/* Storages: blocks of the caching allocator that tensors share, and statistics of all of them.
 *
 * A storage counts the tensors on it and is freed with the last one. Its bytes belong to one class (memory_class.h):
 * the one that was set when it was allocated (engine_set_class()), activations while an autograd node holds it for
 * backward, or a fixed one set by storage_classify(). */
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
    int32_t slot;         /* number on the tape; 0: not on a tape */
    int32_t refs;
    int32_t saved;        /* number of nodes that hold it for backward */
    uint8_t memory_class; /* enum plim_memory_class */
    bool pinned_class;    /* its class does not change when it is saved for backward */
};

/* The memory of all storages. */
struct memory_use {
    enum plim_memory_class new_class; /* of new storages */
    int64_t class_bytes[PLIM_MEMORY_CLASS_COUNT];
    int64_t class_bytes_at_peak[PLIM_MEMORY_CLASS_COUNT]; /* their sum is peak_bytes */
    int64_t peak_bytes;                                   /* of allocated memory */
    FILE *trace; /* every allocation and release, or NULL (plim_replayer_trace()) */
    int64_t trace_next_id;
    struct plim_timeline *timeline; /* records what is allocated after each event, or NULL */
    struct tape *tape;              /* records the events, or NULL */
};

/* Allocates `bytes`. Returns one reference; NULL, with the engine halted, if there is no memory. */
struct storage *storage_get(struct engine *e, int64_t bytes);
/* Records what is allocated now, if a timeline is being recorded. */
void storage_record_moment(struct engine *e);
/* Replaces the block by another one, for all tensors on the storage; the contents are lost. 0 bytes: no block
 * (PyTorch's untyped_storage().resize_(), as FSDP calls it). If there is no memory, the engine is halted. The addresses
 * in its tensors become stale, so this is only for devices that compute nothing. */
void storage_resize(struct engine *e, struct storage *s, int64_t bytes);
/* storage_release_block() frees the storage's memory; storage_adopt_block() sets another block, which is counted
 * already, as its memory (tape.h). */
void storage_release_block(struct engine *e, struct storage *s);
void storage_adopt_block(struct storage *s, struct plim_block *block);
/* Drops a reference. */
void storage_put(struct engine *e, struct storage *s);
/* Call when one more (+1) or one less (-1) node holds the storage for backward. */
void storage_saved(struct engine *e, struct storage *s, int change);
/* Adds `bytes`, which may be negative, to the class, and records a new peak. */
void storage_count(struct engine *e, enum plim_memory_class memory_class, int64_t bytes);
/* Halts the engine because there was no memory for `bytes`, and records their class. */
void storage_out_of_memory(struct engine *e, enum plim_status st, int64_t bytes,
                           enum plim_memory_class memory_class);
/* Sets the class permanently. */
void storage_classify(struct engine *e, struct storage *s, enum plim_memory_class memory_class);

#endif
