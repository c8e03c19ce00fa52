/* Finds the addresses that hold weights, and detects that most of them were just written, which ends a training step
 * (steps.h).
 *
 * An activation is written before it is read, mostly by a known kernel. Trained weights are read forward and
 * backward, and then written, many of them in a row; the weights of a running average are read only forward. The table
 * starts afresh with each epoch, that is, whenever the weights have been written. Until that was seen, epochs end after
 * a while, because weights that are initialised on the GPU are written before they are read.
 */
#ifndef PLIM_DEVICES_VIRTUAL_STEPS_WEIGHTS_H
#define PLIM_DEVICES_VIRTUAL_STEPS_WEIGHTS_H

#include "seen.h"
#include <stdbool.h>
#include <stdint.h>

struct plim_weights {
    struct plim_seen *table;
    uint32_t epoch;
    int64_t found;      /* addresses that were read before any write, by two operations */
    int64_t updated;    /* how many of these were written since */
    int row;            /* addresses written in place in a row that were not written before in this epoch */
    uintptr_t row_end;
    bool are_updated;   /* most of them were written, in a row */
    int silent;         /* library calls since the last such write */
    bool epoch_is_whole; /* it began when weights had been written, as it will end */
    uint64_t calls, epoch_end; /* counts of library calls */
};

/* False: no memory. */
bool plim_weights_init(struct plim_weights *weights);
void plim_weights_finish(struct plim_weights *weights);

/* A kernel writes there, or the next kernel works in place there. True: most weights have now been written. */
bool plim_weights_write(struct plim_weights *weights, uintptr_t at);
bool plim_weights_write_in_place(struct plim_weights *weights, uintptr_t at);

/* A library's operation reads there, or writes there: what it writes is not a weight. */
void plim_weights_read(struct plim_weights *weights, uintptr_t at, uint64_t reader);
void plim_weights_result(struct plim_weights *weights, uintptr_t at);

/* A library's launch comes. After some of them without a write to weights in between, the row of writes is complete:
 * a few by chance, or many by an optimizer (some optimizers multiply too). `are_known`: epochs do not end after a
 * while. */
void plim_weights_call(struct plim_weights *weights, bool are_known);

/* Something begins that is not part of an optimizer: later writes in place start another row. */
void plim_weights_end_row(struct plim_weights *weights);

#endif
