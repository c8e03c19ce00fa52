/* A stream that writes to memory and reports whether all data was stored.
 *
 *     struct plim_text_stream stream;
 *     FILE *file = plim_text_stream_open(&stream);
 *     if (file) fprintf(file, ...);
 *     st = plim_text_stream_close(&stream, &text);
 *
 * The C library's open_memstream() does not: if host memory runs out, it drops data, sets no error and may close with a
 * NULL text. */
#ifndef PLIM_BASE_TEXT_STREAM_H
#define PLIM_BASE_TEXT_STREAM_H

#include "array.h"
#include "status.h"
#include <stdbool.h>
#include <stdio.h>

struct plim_text_stream {
    FILE *file;
    PLIM_ARRAY(char) text;
    bool failed;
};

/* Returns the stream to write to; NULL if host memory is exhausted, which plim_text_stream_close() reports. */
FILE *plim_text_stream_open(struct plim_text_stream *stream);

/* Closes the stream and stores the whole text, terminated, which the caller frees. PLIM_NOMEM, with *text NULL, if host
 * memory ran out since the stream was opened. */
enum plim_status plim_text_stream_close(struct plim_text_stream *stream,
                                        char **text) PLIM_MUST_CHECK;

#endif
