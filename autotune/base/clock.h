/* Host time, for budgets, deadlines and the duration of a run. Device time is plim_device_now(). */
#ifndef PLIM_BASE_CLOCK_H
#define PLIM_BASE_CLOCK_H

#include <stdint.h>

/* Seconds since an arbitrary start, never going back; unaffected by changes of the date. */
double plim_clock_seconds(void);

/* Microseconds of the wall clock since 1970, as in the time stamps of drivers. */
uint64_t plim_clock_wall_microseconds(void);

/* CPU seconds that this thread has used; independent of what else runs on the machine. */
double plim_clock_thread_seconds(void);

#endif
