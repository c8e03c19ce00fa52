/* A simulated device whose operations are planned for a GPU of its kind as well, so that what has no kernel is found
 * where nothing runs. One at a time. */
#ifndef PLIM_TESTS_SUPPORT_PLANNED_H
#define PLIM_TESTS_SUPPORT_PLANNED_H

#include "devices/device.h"

/* From now on, until the device is closed. */
void planned_watch(struct plim_device *device);

/* The names of the operations that a GPU's library computes no more than our kernels, with commas, and what shape the
 * first of each had. "": none. */
const char *planned_without_kernels(void);

#endif
