/* An accumulation that follows epochs, as Lightning's GradientAccumulationScheduler has it:
 * {0: 4, 4: 2, 8: 1} makes 4 micro-steps an optimizer step from epoch 0 on, 2 from epoch 4 on. Before
 * the first epoch that is named it is 1.
 */
#ifndef PLIM_REPORTS_CONFIGS_ACCUMULATION_SCHEDULE_H
#define PLIM_REPORTS_CONFIGS_ACCUMULATION_SCHEDULE_H

#include "config_group.h"

/* Is a place in the schedule that was found as the accumulation, or does it say whose it is (the
 * class of the callback around it)? */
bool plim_config_schedule_covers(const struct plim_config_group *g,
                                 const struct plim_config_place *place);

/* PLIM_SPEC: the answer's accumulation follows epochs, and what was found is one number. */
enum plim_status plim_config_schedule_check(const struct plim_config_group *g) PLIM_MUST_CHECK;

/* Edits the numbers of the schedule that was found as the accumulation: to those of the answer where
 * that follows epochs too, else all in proportion, so that epoch 0 has the answer's. PLIM_SPEC: one
 * would be no whole number, or the epochs are others; the message names the epoch. */
enum plim_status plim_config_schedule_write(struct plim_config_group *g) PLIM_MUST_CHECK;

#endif
