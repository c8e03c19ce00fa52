/* The charts of a report: which there are, and what they show. */
#ifndef PLIM_REPORTS_CHARTS_H
#define PLIM_REPORTS_CHARTS_H

#include "chart.h"
#include "result.h"

/* Each fills the zeroed `chart`, which stays empty where the result has nothing to draw. */

/* The memory that the GPU needs at each micro-batch that was tried: a line for each combination of the
 * other settings, the best PLIM_CHARTS_LINES. */
enum { PLIM_CHARTS_LINES = 8 };
void plim_charts_memory(const struct plim_result *result, struct plim_chart *chart);

/* Tokens per second of an optimizer step, likewise; samples per second where there is no sequence. */
void plim_charts_speed(const struct plim_result *result, struct plim_chart *chart);

/* Allocated bytes during a step, by class, and the limit as a line. */
void plim_charts_step(const struct plim_result *result, struct plim_chart *chart);

/* A bar for each result that has a choice: bytes at its peak by class, and free memory. */
enum { PLIM_CHARTS_BARS = 12 };
void plim_charts_peak(const struct plim_report *report, struct plim_chart *chart);

/* A bar for each result of a table that has a choice: tokens per second. */
void plim_charts_devices(const struct plim_report *report, struct plim_chart *chart);

/* All charts of a result, or of a report of several, in the order in which they are shown. PLIM_NOMEM is the
 * only failure: then one was not shown. */
typedef void plim_charts_show(const struct plim_chart *chart, void *user);
enum plim_status plim_charts_of_result(const struct plim_report *report,
                                       const struct plim_result *result, plim_charts_show *show,
                                       void *user) PLIM_MUST_CHECK;
enum plim_status plim_charts_of_table(const struct plim_report *report, plim_charts_show *show,
                                      void *user) PLIM_MUST_CHECK;

#endif
