/* Which addresses hold weights, and have most of them just been written? That ends a training step (steps.h).
 *
 * An activation is written before it is read, by something known mostly. Trained weights are read forward and
 * backward, and then written, many of them in a row; a running average's only forward. What is known of addresses
 * begins anew with each epoch of them: when the weights have been written. Until that was seen epochs end by
 * themselves, as weights that are initialised on the GPU are written before they are read.
 */
#ifndef PLIM_DEVICES_VIRTUAL_STEPS_WEIGHTS_H
#define PLIM_DEVICES_VIRTUAL_STEPS_WEIGHTS_H

#include "seen.h"
#include <stdbool.h>
#include <stdint.h>

struct plim_weights {
    struct plim_seen *table;
    uint32_t epoch;
    int64_t found;      /* addresses read first, and by two operations */
    int64_t updated;    /* of these, written since */
    int row;            /* addresses written in place in a row, which nothing wrote in this epoch */
    uintptr_t row_end;
    bool are_updated;   /* most of them, in a row */
    int silent;         /* library calls since the last such write */
    bool epoch_is_whole; /* began when weights had been written, as it ends */
    uint64_t calls, epoch_end; /* of libraries */
};

/* False: no memory. */
bool plim_weights_init(struct plim_weights *weights);
void plim_weights_finish(struct plim_weights *weights);

/* A kernel writes there, or what comes next works in place there. Most weights are written now: true. */
bool plim_weights_write(struct plim_weights *weights, uintptr_t at);
bool plim_weights_write_in_place(struct plim_weights *weights, uintptr_t at);

/* An operation of a library reads there, or writes: what it writes is no weight. */
void plim_weights_read(struct plim_weights *weights, uintptr_t at, uint64_t reader);
void plim_weights_result(struct plim_weights *weights, uintptr_t at);

/* A library's launch comes. After some without a write to weights between, those before were all: few by chance, or
 * many by an optimizer (some optimizers multiply too). `are_known`: epochs do not end by themselves. */
void plim_weights_call(struct plim_weights *weights, bool are_known);

/* Something begins that is no part of an optimizer: what is written in place from now on is another row. */
void plim_weights_end_row(struct plim_weights *weights);

#endif
