/* The tables of a report for people, as grids: the writers of text and Markdown share them.
 *
 * Values that are the same in every row are no columns; they are told once, in a line above.
 */
#ifndef PLIM_REPORTS_TABLES_H
#define PLIM_REPORTS_TABLES_H

#include "grid.h"

enum { PLIM_TABLE_LINE = 512 };

/* One row a combination of the values asked for. `common` is what they have in common, or "". */
void plim_table_points(const struct plim_result *result, struct plim_grid *grid,
                       char common[PLIM_TABLE_LINE]);

/* One row a result: of the devices of a plan, or of several reports. The model is a column where they
 * differ in it; `style` (NULL: none) says what else the rate is told by. */
void plim_table_devices(const struct plim_report *report, const struct plim_style *style,
                         struct plim_grid *grid, char common[PLIM_TABLE_LINE]);

/* What the results of a table are of: the model's name, or "several models". */
const char *plim_table_title(const struct plim_report *report);

/* One row for every setting that was tried, in that order. */
void plim_table_samples(const struct plim_result *result, struct plim_grid *grid,
                        char common[PLIM_TABLE_LINE]);

/* One row for each task of a step: its seconds, and its share of all. No rows: they are not known. */
#define PLIM_TABLE_TIME "Where the seconds are, in a step"
void plim_table_time(const struct plim_result *result, struct plim_grid *grid);

/* A task that takes less than a thousandth is left out. */
bool plim_table_tells(double seconds, double whole);

/* For every device on which nothing fits: the change that makes it fit,
 * or comes nearest. No rows: there is none. */
void plim_table_device_advice(const struct plim_report *report, struct plim_grid *grid);

/* The values of a setting beside batch and sequence in words, as "bf16-mixed, adamw". */
void plim_table_values(const struct plim_result_setting *setting, char *out, size_t size);

/* Why there is no choice, in two words: "nothing fits", "no GPU was used". */
const char *plim_table_failure(const struct plim_result *result);

#endif
