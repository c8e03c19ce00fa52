#define _GNU_SOURCE /* fopencookie */
#include "text_stream.h"

static ssize_t append(void *user, const char *bytes, size_t size)
{
    struct plim_text_stream *stream = user;
    size_t used = stream->text.count;
    if (stream->failed || PLIM_ARRAY_RESERVE(&stream->text, used + size) != PLIM_OK) {
        stream->failed = true;
        return 0;
    }
    memcpy(stream->text.items + used, bytes, size);
    stream->text.count += size;
    return (ssize_t)size;
}

FILE *plim_text_stream_open(struct plim_text_stream *stream)
{
    *stream = (struct plim_text_stream){0};
    stream->file = fopencookie(stream, "w", (cookie_io_functions_t){.write = append});
    return stream->file;
}

enum plim_status plim_text_stream_close(struct plim_text_stream *stream, char **text)
{
    *text = NULL;
    bool failed = !stream->file || fclose(stream->file) != 0 || stream->failed;
    if (failed || PLIM_ARRAY_PUSH(&stream->text, '\0') != PLIM_OK) {
        PLIM_ARRAY_FINISH(&stream->text);
        return PLIM_NOMEM;
    }
    *text = stream->text.items;
    return PLIM_OK;
}
