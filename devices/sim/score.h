/* A score: the sequence of events of a run on a simulated device's clock, recorded so that it can be played on another
 * GPU's clock.
 *
 * GPUs of one class execute the same operations in different times. So one run with its score represents runs on all of
 * them: playing the score on a GPU's clock gives exactly the readings that a run there would have given, at the cost of
 * a few additions. */
#ifndef PLIM_DEVICES_SIM_SCORE_H
#define PLIM_DEVICES_SIM_SCORE_H

#include "autotune/base/array.h"
#include "devices/device.h"
#include "roofline.h"

enum {
    PLIM_SCORE_WORKS = 1024,  /* maximum of distinct works in a run; a training step has about a hundred */
    PLIM_SCORE_ROUNDS = 32,   /* maximum of rounds that end in a run */
    PLIM_SCORE_READINGS = 8   /* maximum of clock readings in a run: two per step */
};

enum plim_score_action {
    PLIM_SCORE_LAUNCH,      /* number: the index of the work */
    PLIM_SCORE_BEGIN_ROUND,
    PLIM_SCORE_END_ROUND,
    PLIM_SCORE_REPEAT,      /* number: how many rounds had ended before this one; `times` */
    PLIM_SCORE_READ,
    PLIM_SCORE_TAKE_MEMORY, /* memory requested from the driver */
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

/* Plays a score from a recorder that is not `broken`. Returns the number of readings. */
size_t plim_score_play(const struct plim_score *score, struct plim_roofline *gpu,
                       struct plim_score_reading readings[PLIM_SCORE_READINGS]);

/* Zeroed: empty and ready for use. */
struct plim_score_recorder {
    PLIM_ARRAY(struct plim_work) works;
    PLIM_ARRAY(struct plim_score_event) events;
    uint16_t slots[2 * PLIM_SCORE_WORKS]; /* hash table: 1 + the work's index; 0: free */
    int readings, rounds;
    bool broken; /* the run had more than a score can hold: not usable */
};

void plim_score_rewind(struct plim_score_recorder *recorder); /* keeps its memory */
void plim_score_finish(struct plim_score_recorder *recorder);
void plim_score_launch(struct plim_score_recorder *recorder, const struct plim_work *work);
void plim_score_record(struct plim_score_recorder *recorder, enum plim_score_action action,
                       uint32_t number, int64_t times);

#endif
