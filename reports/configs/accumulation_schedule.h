/* An accumulation by epoch, as in Lightning's GradientAccumulationScheduler: with {0: 4, 4: 2, 8: 1} an optimizer step
 * has 4 micro-steps from epoch 0 on, 2 from epoch 4 on, and 1 from epoch 8 on; before the first epoch listed it has
 * 1. */
#ifndef PLIM_REPORTS_CONFIGS_ACCUMULATION_SCHEDULE_H
#define PLIM_REPORTS_CONFIGS_ACCUMULATION_SCHEDULE_H

#include "config_group.h"

/* True if a place is in the schedule that was found as the accumulation, or is the class of the callback around it. */
bool plim_config_schedule_covers(const struct plim_config_group *g,
                                 const struct plim_config_place *place);

/* PLIM_SPEC if the answer has an accumulation by epoch, and the config a single number. */
enum plim_status plim_config_schedule_check(const struct plim_config_group *g) PLIM_MUST_CHECK;

/* Edits the numbers of the schedule that was found as the accumulation: to those of the answer if it has a schedule
 * too, otherwise all in proportion, so that epoch 0 has the answer's number. PLIM_SPEC if a number would not be whole,
 * or the epochs differ; the message names the epoch. */
enum plim_status plim_config_schedule_write(struct plim_config_group *g) PLIM_MUST_CHECK;

#endif
