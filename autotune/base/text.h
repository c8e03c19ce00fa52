/* Text functions that several layers share: sizes in bytes, text for display, similar names. */
#ifndef PLIM_BASE_TEXT_H
#define PLIM_BASE_TEXT_H

#include "status.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* 1 EiB: more than any memory, but sums of a few sizes do not overflow. */
#define PLIM_MOST_BYTES (INT64_C(1) << 60)

/* Parses a size such as "24GiB", "24 GB", "600MiB", "512", "512 bytes" or "1.5TiB". K, M, G and T are decimal with B
 * ("GB" is 1e9), and binary with iB or alone. Case does not matter. Fractions of a byte are rounded. PLIM_INVALID: a
 * sign, an unknown unit, more than PLIM_MOST_BYTES, or text after the unit. */
enum plim_status plim_parse_bytes(const char *text, int64_t *bytes,
                                  struct plim_error *err) PLIM_MUST_CHECK;

/* Formats a size as "23.4 GiB": three significant digits, binary units, the next unit from 1000 on ("0.977 KiB"); below
 * 1000 the number of bytes ("512 B"). Returns `out`. */
char *plim_format_bytes(int64_t bytes, char out[16]);

/* Makes text from outside (programs, files, the environment, arguments) safe to show on a terminal: control characters
 * (C0 including tab and newline, DEL, C1), line and paragraph separators, bidirectional controls and bytes that are not
 * UTF-8 become \xNN, \uNNNN or \UNNNNNNNN. Writes at most `size` bytes, with the terminator, truncated between
 * characters. Returns `out`. */
char *plim_text_show(const char *text, char *out, size_t size);

/* True if plim_text_show() would not change the text. */
bool plim_text_is_plain(const char *text);

bool plim_text_ends_with(const char *text, const char *end);

/* As plim_text_show(), for any length, to a stream. All text from outside that plimsoll prints goes through this.
 * Errors are recorded in the stream. */
void plim_text_write(FILE *file, const char *text);

/* Returns the index of the name most similar to `word`, ignoring case, or -1 if none is similar. Similar names have an
 * edit distance of at most a third of the word's length, rounded up (a transposition counts as one; a name that starts
 * with a word of three letters or more has distance one); if there are none, the first name that contains such a word.
 * Names over 64 characters are ignored. */
int plim_nearest(const char *word, const char *const *names, size_t count);

/* Writes "fp32, tf32 or fp16", truncated if there is no room for all. */
void plim_join_names(const char *const *names, size_t count, char *out, size_t size);

#endif
