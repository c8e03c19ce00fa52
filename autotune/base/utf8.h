/* UTF-8. */
#ifndef PLIM_BASE_UTF8_H
#define PLIM_BASE_UTF8_H

#include <stddef.h>
#include <stdint.h>

/* Decodes the character at `at`, where `left` bytes follow. Returns its length in bytes; 0 if it is not valid UTF-8
 * (overlong forms and surrogates are not). */
size_t plim_utf8_decode(const unsigned char *at, size_t left, uint32_t *code);

/* Removes an incomplete character at the end of `text`, which truncation may have left. */
void plim_utf8_trim(char *text);

#endif
