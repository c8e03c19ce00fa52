/* Loops that end by a value which only a real GPU knows: until an error is small, or a step is accepted. It reads as 0
 * each time, or a mask selects all each time, and so they might never end. */
#ifndef PLIM_DEVICES_VIRTUAL_QUESTIONS_LOOPS_H
#define PLIM_DEVICES_VIRTUAL_QUESTIONS_LOOPS_H

#include <stdbool.h>
#include <stdint.h>

/* The program decides by the value that it reads at `place`, in training step `step`, `most` times before it is a loop.
 * True: it is to be told otherwise than before, so that it goes on. Not for several threads at once. */
bool plim_loops_turn(const char *place, int64_t step, int64_t most);

#endif
