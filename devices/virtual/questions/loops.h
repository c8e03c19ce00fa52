/* Detects loops whose end depends on a value that only a real GPU knows, such as an error that must become small or a
 * step that must be accepted. The value reads as 0 each time, or a mask selects everything each time, so such a loop
 * might never end. */
#ifndef PLIM_DEVICES_VIRTUAL_QUESTIONS_LOOPS_H
#define PLIM_DEVICES_VIRTUAL_QUESTIONS_LOOPS_H

#include <stdbool.h>
#include <stdint.h>

/* Called when the program makes a decision by a value read at `place` in training step `step`; more than `most` such
 * reads in a step are taken for a loop. Returns true if the caller should return a different value, in order to end the
 * loop. Not thread-safe: the caller holds the lock. */
bool plim_loops_should_end(const char *place, int64_t step, int64_t most);

#endif
