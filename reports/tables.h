/* The tables of a report for people, as grids: the writers of text and Markdown share them.
 *
 * Values that are the same in every row get no column; they are written once, in a line above.
 */
#ifndef PLIM_REPORTS_TABLES_H
#define PLIM_REPORTS_TABLES_H

#include "grid.h"

enum { PLIM_TABLE_LINE = 512 };

/* One row per combination of the requested values. `common`: the values that all have in common, or "". */
void plim_table_points(const struct plim_result *result, struct plim_grid *grid,
                       char common[PLIM_TABLE_LINE]);

/* One row per result: of the devices of a plan, or of several reports. The model is a column if they
 * differ in it; `style` (NULL: none) asks for further columns of the rate. */
void plim_table_devices(const struct plim_report *report, const struct plim_style *style,
                         struct plim_grid *grid, char common[PLIM_TABLE_LINE]);

/* The model of the results of a table: its name, or "several models". */
const char *plim_table_title(const struct plim_report *report);

/* One row for every setting that was tried, in that order. */
void plim_table_samples(const struct plim_result *result, struct plim_grid *grid,
                        char common[PLIM_TABLE_LINE]);

/* One row for each task of a step: its seconds, and its share of the step. No rows: they are not known. */
#define PLIM_TABLE_TIME "Where the seconds are, in a step"
void plim_table_time(const struct plim_result *result, struct plim_grid *grid);

/* Is a task shown? One that takes less than a thousandth is left out. */
bool plim_table_shows(double seconds, double whole);

/* For every device on which nothing fits: the change that makes it fit,
 * or comes nearest. No rows: there is none. */
void plim_table_device_advice(const struct plim_report *report, struct plim_grid *grid);

/* The values of a setting beside batch and sequence in words, as "bf16-mixed, adamw". */
void plim_table_values(const struct plim_result_setting *setting, char *out, size_t size);

/* Why there is no choice, in two words: "nothing fits", "no GPU was used". */
const char *plim_table_failure(const struct plim_result *result);

#endif
