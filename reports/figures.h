/* Figures as people read them. `out` is the caller's; each function returns it. */
#ifndef PLIM_REPORTS_FIGURES_H
#define PLIM_REPORTS_FIGURES_H

#include "result.h"

enum { PLIM_FIGURE = 32 };

/* "23.4 GiB"; less than nothing is "0 B". */
char *plim_figure_bytes(int64_t bytes, char out[PLIM_FIGURE]);

/* "1,234,567" */
char *plim_figure_grouped(double value, char out[PLIM_FIGURE]);

/* Three significant digits: "0.0123 s", "1.23 s", "123 s". */
char *plim_figure_seconds(double seconds, char out[PLIM_FIGURE]);

/* "8 x 4": micro-batch and accumulation; "-" where the micro-batch is not known. */
char *plim_figure_batch(const struct plim_result_setting *setting, char out[PLIM_FIGURE]);

#endif
