/* Sections of a training step that repeat: their memory requests and frees, recorded on a tape, and their effect on the
 * clock. Only for devices that compute nothing (plim_device_can_repeat()). */
#ifndef PLIM_TRAIN_STRETCH_H
#define PLIM_TRAIN_STRETCH_H

#include "workloads/engine/engine.h"
#include "workloads/engine/tape.h"

/* A section of a tape; the second half of a micro-step is its backward. Zeroed: not recorded. */
struct stretch {
    size_t begin, middle, end; /* indices of events of the tape */
    int32_t left[TAPE_CARRIED];
    struct plim_device_round round;
    bool known; /* recorded, and may be played */
};

/* Between `begin` and `end` the engine's requests and frees are appended to the tape. */
void stretch_begin(struct engine *e, struct tape *tape, struct stretch *s);
void stretch_middle(const struct engine *e, struct stretch *s);
void stretch_end(struct engine *e, struct stretch *s);

void stretch_play_first_half(struct engine *e, struct tape *tape, const struct stretch *s);
/* Also advances the clock by the whole section. */
void stretch_play_second_half(struct engine *e, struct tape *tape, const struct stretch *s);

#endif
