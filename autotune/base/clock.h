/* Host time, for budgets, deadlines and the duration of a run. Device time is plim_device_now(). */
#ifndef PLIM_BASE_CLOCK_H
#define PLIM_BASE_CLOCK_H

#include <stdint.h>

/* Returns seconds of a monotonic clock, which starts at an arbitrary time. */
double plim_clock_seconds(void);

/* Returns microseconds of the wall clock since 1970, as in the time stamps of drivers. */
uint64_t plim_clock_wall_microseconds(void);

/* Returns the CPU time of this thread in seconds. */
double plim_clock_thread_seconds(void);

#endif
