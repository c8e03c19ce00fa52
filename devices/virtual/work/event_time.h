/* The time that the virtual GPU's events report.
 *
 * It is not real: every launch takes the same time, ten milliseconds, a thousand times as long as a small kernel.
 * So a program that chooses by speed chooses the first candidate, after few attempts, and always the same one. Only
 * the operations by which torch.compile decides whether to pad a product, which affects memory, are slower, as on a
 * GPU and also a thousandfold: a product whose rows do not begin at multiples of 16 bytes (GPT-2's 50257 words), and
 * the copy of a transposed operand.
 */
#ifndef PLIM_DEVICES_VIRTUAL_WORK_EVENT_TIME_H
#define PLIM_DEVICES_VIRTUAL_WORK_EVENT_TIME_H

#include "devices/cost.h"

/* The extra event time, in nanoseconds, of a product with unaligned rows on the thread's GPU; 0 for other launches. */
int64_t plim_event_lost_nanoseconds(const struct plim_cost *cost);

/* The same for a kernel that moves `bytes` of operands whose neighbouring elements are not adjacent. */
int64_t plim_event_lost_by_jumping(int64_t bytes);

#endif
