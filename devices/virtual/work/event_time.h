/* What the virtual GPU's events say of time.
 *
 * There is none on it: every launch takes the same, ten milliseconds, a thousand times as long as a small kernel does.
 * So what a program chooses by speed is the first of its kind, after few attempts, and the same every time. Only what
 * torch.compile weighs to pad a product, which decides of memory too, is slow here as on a GPU, a thousandfold as
 * well: a product whose rows do not begin at multiples of 16 bytes (GPT-2's 50257 words), and the copy of a transposed
 * operand.
 */
#ifndef PLIM_DEVICES_VIRTUAL_WORK_EVENT_TIME_H
#define PLIM_DEVICES_VIRTUAL_WORK_EVENT_TIME_H

#include "devices/cost.h"

/* What a product loses by its rows on the thread's GPU, in nanoseconds of events; 0 for what is none. */
int64_t plim_event_lost_nanoseconds(const struct plim_cost *cost);

/* The same of a kernel that reads or writes so many bytes of operands whose neighbouring elements lie apart. */
int64_t plim_event_lost_by_jumping(int64_t bytes);

#endif
