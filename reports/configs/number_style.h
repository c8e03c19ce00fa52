/* Writes a number in the style of another. */
#ifndef PLIM_REPORTS_CONFIGS_NUMBER_STYLE_H
#define PLIM_REPORTS_CONFIGS_NUMBER_STYLE_H

#include <stddef.h>
#include <stdint.h>

/* "12.0" and 4 give "4.0"; "1_024" and 2048 give "2_048"; "0x10" and 4 give "0x4"; with text that is not a number
 * ("auto"), 4 gives "4". Returns `out`. */
char *plim_config_number_text(const char *old, int64_t value, char *out, size_t size);

#endif
