/* Characters in UTF-8. */
#ifndef PLIM_BASE_UTF8_H
#define PLIM_BASE_UTF8_H

#include <stddef.h>
#include <stdint.h>

/* Bytes of the UTF-8 character at `at`, with `left` bytes from there on; 0 if it is not one.
 * Shortest form only, no surrogates. */
size_t plim_utf8_decode(const unsigned char *at, size_t left, uint32_t *code);

/* Removes the incomplete UTF-8 character that truncation may have left at the end of `text`. */
void plim_utf8_trim(char *text);

#endif
