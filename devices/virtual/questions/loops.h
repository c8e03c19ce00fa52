/* Loops whose end depends on a value that only a real GPU knows: until an error is small, or a step is accepted. The
 * value reads as 0 each time, or a mask selects all each time, so such loops might never end. */
#ifndef PLIM_DEVICES_VIRTUAL_QUESTIONS_LOOPS_H
#define PLIM_DEVICES_VIRTUAL_QUESTIONS_LOOPS_H

#include <stdbool.h>
#include <stdint.h>

/* The program makes a decision by a value read at `place` in training step `step`; more than `most` such reads in a
 * step are a loop. True: give it another value than before, to end the loop. One thread at a time. */
bool plim_loops_turn(const char *place, int64_t step, int64_t most);

#endif
