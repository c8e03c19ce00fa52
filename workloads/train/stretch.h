/* Parts of a training step that come again: what they ask of memory, on a tape, and what they do to
 * the clock. Only for devices that compute nothing (plim_device_can_repeat()). */
#ifndef PLIM_TRAIN_STRETCH_H
#define PLIM_TRAIN_STRETCH_H

#include "workloads/engine/engine.h"
#include "workloads/engine/tape.h"

/* Of one tape; of a micro-step the second half is backward. Zeroed is not known. */
struct stretch {
    size_t begin, middle, end; /* events of the tape */
    int32_t left[TAPE_CARRIED];
    struct plim_device_round round;
    bool known; /* recorded, and may be played */
};

/* What the engine does from `begin` to `end` is recorded behind what the tape has. */
void stretch_begin(struct engine *e, struct tape *tape, struct stretch *s);
void stretch_middle(const struct engine *e, struct stretch *s);
void stretch_end(struct engine *e, struct stretch *s);

void stretch_play_first_half(struct engine *e, struct tape *tape, const struct stretch *s);
/* The clock goes on by the whole stretch. */
void stretch_play_second_half(struct engine *e, struct tape *tape, const struct stretch *s);

#endif
