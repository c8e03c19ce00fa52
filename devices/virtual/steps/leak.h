/* Detects memory that keeps growing from step to step. */
#ifndef PLIM_DEVICES_VIRTUAL_STEPS_LEAK_H
#define PLIM_DEVICES_VIRTUAL_STEPS_LEAK_H

#include <stdbool.h>
#include <stdint.h>

enum { PLIM_LEAK_SAMPLES = 256 };

/* Initialised by zeroing. */
struct plim_leak {
    int64_t samples[PLIM_LEAK_SAMPLES]; /* most bytes held in every 2^spread-th step, from the third on */
    int64_t count;
    int spread;
};

/* Adds the most bytes held during a step; `steps` is the number of completed steps, including this one. */
void plim_leak_sample(struct plim_leak *leak, int64_t steps, int64_t held_bytes);

/* True if memory leaks; stores how many bytes per step. */
bool plim_leak_find(const struct plim_leak *leak, double *bytes);

#endif
