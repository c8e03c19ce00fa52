/* The time that the virtual GPU's events report.
 *
 * It is not real: every launch takes the same time, ten milliseconds, a thousand times as long as a small kernel. So a
 * program that chooses by speed chooses the first candidate, after few attempts, and always the same one. Only the
 * operations by which torch.compile decides whether to pad a matrix product, which affects memory, are slower, as on a
 * GPU, and also a thousandfold: a product whose rows do not start at multiples of 16 bytes (GPT-2's vocabulary of
 * 50257), and the copy of a transposed operand. */
#ifndef PLIM_DEVICES_VIRTUAL_WORK_EVENT_TIME_H
#define PLIM_DEVICES_VIRTUAL_WORK_EVENT_TIME_H

#include "devices/cost.h"

/* Returns the additional event time, in nanoseconds, of a matrix product with unaligned rows on the thread's GPU; 0 for
 * other launches. */
int64_t plim_event_lost_nanoseconds(const struct plim_cost *cost);

/* Same for a kernel that moves `bytes` bytes of operands whose consecutive elements are not adjacent. */
int64_t plim_event_lost_by_jumping(int64_t bytes);

#endif
