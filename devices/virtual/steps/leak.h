/* Memory that keeps growing from step to step. */
#ifndef PLIM_DEVICES_VIRTUAL_STEPS_LEAK_H
#define PLIM_DEVICES_VIRTUAL_STEPS_LEAK_H

#include <stdbool.h>
#include <stdint.h>

enum { PLIM_LEAK_SAMPLES = 256 };

/* Zeroed is new. */
struct plim_leak {
    int64_t samples[PLIM_LEAK_SAMPLES]; /* bytes held by every 2^spread-th step from the third on */
    int64_t count;
    int spread;
};

/* Adds the most bytes that were held in a step; `steps`: how many steps are complete, this one included. */
void plim_leak_sample(struct plim_leak *leak, int64_t steps, int64_t held_bytes);

/* True: memory leaks, by `*bytes` for each step. */
bool plim_leak_find(const struct plim_leak *leak, double *bytes);

#endif
