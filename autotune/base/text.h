/* Small text functions that several layers share: sizes in bytes, text for display, nearest
 * names. */
#ifndef PLIM_BASE_TEXT_H
#define PLIM_BASE_TEXT_H

#include "status.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* 1 EiB: more than any memory, and so little that sums of a few sizes do not overflow. */
#define PLIM_MOST_BYTES (INT64_C(1) << 60)

/* "24GiB", "24 GB", "600MiB", "512", "512 bytes", "1.5TiB" -> bytes. K/M/G/T are decimal with B
 * ("GB" = 1e9) and binary with iB; a bare K, M, G, T is binary. Case does not matter. A fraction of
 * a byte is rounded. Fails with PLIM_INVALID on a sign, an unknown unit, more than PLIM_MOST_BYTES
 * or other text after the unit. */
enum plim_status plim_parse_bytes(const char *text, int64_t *bytes,
                                  struct plim_error *err) PLIM_MUST_CHECK;

/* "23.4 GiB": three significant digits, binary units, from 1000 on the next unit ("0.977 KiB").
 * Below 1000 the number of bytes ("512 B"). `out` holds at least 16 bytes. Returns out. */
char *plim_format_bytes(int64_t bytes, char out[16]);

/* Makes text from outside (programs, files, the environment, arguments) safe to show on a terminal:
 * control characters (C0, tab and newline among them, DEL, C1), line and paragraph separators,
 * controls of writing direction and bytes that are not UTF-8 become \xNN, \uNNNN or \UNNNNNNNN, so
 * that it can neither steer the terminal nor look like another text. Writes at most `size` bytes,
 * terminated, cut between characters. Returns out. */
char *plim_text_show(const char *text, char *out, size_t size);

/* Would plim_text_show() leave it unchanged? */
bool plim_text_is_plain(const char *text);

bool plim_text_ends_with(const char *text, const char *end);

/* The same as plim_text_show(), for any length, to a stream. All text from outside that plimsoll prints goes through
 * this; errors are left in the stream. */
void plim_text_write(FILE *file, const char *text);

/* The index of the name nearest to `word`, ignoring case, or -1 when none is near. Near is an edit
 * distance of at most a third of the word, rounded up (swapped neighbours count once; a name that
 * begins with a word of three letters or more is one away from it); failing that, the first name
 * that contains such a word. Names over 64 characters are not seen. */
int plim_nearest(const char *word, const char *const *names, size_t count);

/* "fp32, tf32 or fp16": truncated where there is no room for all. */
void plim_join_names(const char *const *names, size_t count, char *out, size_t size);

#endif
