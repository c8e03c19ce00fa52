/* A number written as another one was. */
#ifndef PLIM_REPORTS_CONFIGS_NUMBER_STYLE_H
#define PLIM_REPORTS_CONFIGS_NUMBER_STYLE_H

#include <stddef.h>
#include <stdint.h>

/* "12.0" and 4 make "4.0"; "1_024" and 2048 make "2_048"; "0x10" and 4 make "0x4"; what is no
 * number ("auto") makes "4". Returns out. */
char *plim_config_number_text(const char *old, int64_t value, char *out, size_t size);

#endif
