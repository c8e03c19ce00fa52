/* Numbers as people read them. `out` is the caller's; each function returns it. */
#ifndef PLIM_REPORTS_NUMBERS_H
#define PLIM_REPORTS_NUMBERS_H

#include "result.h"

enum { PLIM_NUMBER = 32 };

/* "23.4 GiB"; a negative number is "0 B". */
char *plim_number_bytes(int64_t bytes, char out[PLIM_NUMBER]);

/* "1,234,567" */
char *plim_number_grouped(double value, char out[PLIM_NUMBER]);

/* Tokens or samples per second, at least three significant digits: "7.49", "74.9", "12,345". */
char *plim_number_rate(double value, char out[PLIM_NUMBER]);

/* Three significant digits: "0.0123 s", "1.23 s", "123 s". */
char *plim_number_seconds(double seconds, char out[PLIM_NUMBER]);

/* "8 x 4": micro-batch and accumulation; "-" where the micro-batch is not known. */
char *plim_number_batch(const struct plim_result_setting *setting, char out[PLIM_NUMBER]);

#endif
