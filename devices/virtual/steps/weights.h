/* Finds the addresses of weights, and detects that most of them were just written, which ends a training step
 * (steps.h).
 *
 * An activation is written before it is read, mostly by a known kernel. Trained weights are read in the forward and
 * backward pass and then written, many of them in a row; weights of a running average are read only in the forward
 * pass. The table starts afresh with each epoch, which ends when the weights have been written. Until that is first
 * seen, epochs end after some time, because weights that are initialised on the GPU are written before they are
 * read. */
#ifndef PLIM_DEVICES_VIRTUAL_STEPS_WEIGHTS_H
#define PLIM_DEVICES_VIRTUAL_STEPS_WEIGHTS_H

#include "seen.h"
#include <stdbool.h>
#include <stdint.h>

struct plim_weights {
    struct plim_seen *table;
    uint32_t epoch;
    int64_t found;      /* addresses read by two operations before any write */
    int64_t updated;    /* how many of these were written since */
    int row;            /* addresses written in place in a row that were not written before in this epoch */
    uintptr_t row_end;
    bool are_updated;   /* most weights were written in a row */
    int silent;         /* library calls since the last such write */
    bool epoch_is_whole; /* the epoch began after a write to the weights, and so will end with one */
    uint64_t calls, epoch_end; /* in library calls */
};

/* Returns false if out of memory. */
bool plim_weights_init(struct plim_weights *weights);
void plim_weights_finish(struct plim_weights *weights);

/* A kernel writes at `at`, or the next kernel works in place there. Return true if most weights have now been
 * written. */
bool plim_weights_write(struct plim_weights *weights, uintptr_t at);
bool plim_weights_write_in_place(struct plim_weights *weights, uintptr_t at);

/* A library operation reads at `at`, or writes there; what it writes is not a weight. */
void plim_weights_read(struct plim_weights *weights, uintptr_t at, uint64_t reader);
void plim_weights_result(struct plim_weights *weights, uintptr_t at);

/* A library launch begins. After some of them without a write to weights, the row of writes is complete: a few by
 * chance, or many by an optimizer (some optimizers multiply matrices too). With `are_known`, epochs do not end after
 * some time. */
void plim_weights_call(struct plim_weights *weights, bool are_known);

/* Something begins that is not part of an optimizer: later writes in place start another row. */
void plim_weights_end_row(struct plim_weights *weights);

#endif
