/* A stream that writes into memory and knows whether everything was stored.
 *
 *     struct plim_text_stream stream;
 *     FILE *file = plim_text_stream_open(&stream);
 *     if (file) fprintf(file, ...);
 *     st = plim_text_stream_close(&stream, &text);
 *
 * The C library's open_memstream() does not: when host memory runs out it drops what does not
 * fit, sets no error and may close with a text of NULL.
 */
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

/* The stream to write to; NULL when the host is out of memory, which plim_text_stream_close() reports. */
FILE *plim_text_stream_open(struct plim_text_stream *stream);

/* The whole text, terminated, which the caller frees. PLIM_NOMEM, and `text` NULL, when host memory
 * ran out since the stream was opened. */
enum plim_status plim_text_stream_close(struct plim_text_stream *stream,
                                        char **text) PLIM_MUST_CHECK;

#endif
