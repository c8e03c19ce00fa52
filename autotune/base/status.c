#include "status.h"
#include "utf8.h"

#include <stdio.h>
#include <string.h>

const char *plim_status_text(enum plim_status status)
{
    static const char *const texts[] = {
#define STATUS_TEXT(name, text) [PLIM_##name] = text,
        PLIM_STATUS_MAP(STATUS_TEXT)
#undef STATUS_TEXT
    };
    size_t index = (size_t)status;
    return index < sizeof(texts) / sizeof(texts[0]) ? texts[index] : "unknown status";
}

static void copy_path(char *out, size_t size, const char *path)
{
    size_t length = strlen(path);
    if (length < size)
        memcpy(out, path, length + 1);
    else
        snprintf(out, size, "...%s", path + length - (size - 4));
}

static enum plim_status fail_v(struct plim_error *err, enum plim_status status, const char *file,
                               int line, int column, const char *fmt, va_list args)
{
    if (!err || err->status != PLIM_OK) return status;
    err->status = status;
    err->line = line;
    err->column = column;
    copy_path(err->file, sizeof(err->file), file ? file : "");
    int length = vsnprintf(err->text, sizeof(err->text), fmt, args);
    if (length >= (int)sizeof(err->text)) plim_utf8_trim(err->text);
    return status;
}

enum plim_status plim_fail(struct plim_error *err, enum plim_status status, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    fail_v(err, status, NULL, 0, 0, fmt, args);
    va_end(args);
    return status;
}

enum plim_status plim_no_memory(struct plim_error *err)
{
    return plim_fail(err, PLIM_NOMEM, "%s", plim_status_text(PLIM_NOMEM));
}

enum plim_status plim_fail_at(struct plim_error *err, enum plim_status status, const char *file,
                              int line, int column, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    fail_v(err, status, file, line, column, fmt, args);
    va_end(args);
    return status;
}

void plim_error_format(const struct plim_error *err, char *out, unsigned long size)
{
    const char *text = err->text[0] ? err->text : plim_status_text(err->status);
    if (!err->file[0])
        snprintf(out, size, "%s", text);
    else if (err->line <= 0)
        snprintf(out, size, "%s: %s", err->file, text);
    else
        snprintf(out, size, "%s:%d:%d: %s", err->file, err->line, err->column, text);
}
