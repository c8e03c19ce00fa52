/* What a run asked of a simulated device's clock, written down to be asked of another GPU's.
 *
 * GPUs of one class do the same and take different times for it. So a run of one, with its score, is
 * a run of all: playing the score on a GPU's clock gives the very readings that a run there would have
 * given, for the price of adding up.
 */
#ifndef PLIM_DEVICES_SIM_SCORE_H
#define PLIM_DEVICES_SIM_SCORE_H

#include "autotune/base/array.h"
#include "devices/device.h"
#include "roofline.h"

enum {
    PLIM_SCORE_WORKS = 1024,  /* different ones of a run, at most; a training step has a hundred */
    PLIM_SCORE_ROUNDS = 32,   /* that end in a run, at most */
    PLIM_SCORE_READINGS = 8   /* of the clock in a run, at most: two a step */
};

enum plim_score_action {
    PLIM_SCORE_LAUNCH,      /* number: of the work */
    PLIM_SCORE_BEGIN_ROUND,
    PLIM_SCORE_END_ROUND,
    PLIM_SCORE_REPEAT,      /* number: how many rounds had ended before this one; `times` */
    PLIM_SCORE_READ,
    PLIM_SCORE_TAKE_MEMORY, /* from the driver */
    PLIM_SCORE_RETURN_MEMORY
};

struct plim_score_event {
    uint16_t action, number;
    uint32_t times;
};

struct plim_score {
    const struct plim_work *works;
    const struct plim_score_event *events;
    size_t work_count, event_count;
};

struct plim_score_reading {
    double seconds;
    struct plim_device_load load;
};

/* Plays a score, which came from a recorder that was not `broken`; returns how many readings there
 * are. */
size_t plim_score_play(const struct plim_score *score, struct plim_roofline *gpu,
                       struct plim_score_reading readings[PLIM_SCORE_READINGS]);

/* Zeroed is empty and ready. */
struct plim_score_recorder {
    PLIM_ARRAY(struct plim_work) works;
    PLIM_ARRAY(struct plim_score_event) events;
    uint16_t slots[2 * PLIM_SCORE_WORKS]; /* by hash: 1 + the work's number; 0: free */
    int readings, rounds;
    bool broken; /* more than a score can hold: of no use */
};

void plim_score_rewind(struct plim_score_recorder *recorder); /* its memory stays */
void plim_score_finish(struct plim_score_recorder *recorder);
void plim_score_launch(struct plim_score_recorder *recorder, const struct plim_work *work);
void plim_score_note(struct plim_score_recorder *recorder, enum plim_score_action action,
                     uint32_t number, int64_t times);

#endif
