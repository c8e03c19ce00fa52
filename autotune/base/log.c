#include "log.h"
#include "text.h"
#include "utf8.h"

void plim_log(const struct plim_log *log, enum plim_log_level level, const char *fmt, ...)
{
    if (!log || !log->write || level > log->level) return;
    char text[1024];
    va_list args;
    va_start(args, fmt);
    if (vsnprintf(text, sizeof(text), fmt, args) >= (int)sizeof(text)) plim_utf8_trim(text);
    va_end(args);
    log->write(log->user, level, text);
}

void plim_log_write_file(void *file, enum plim_log_level level, const char *text)
{
    static const char *const prefixes[] = {
        [PLIM_LOG_WARNING] = "warning: ",
        [PLIM_LOG_INFO] = "",
        [PLIM_LOG_DEBUG] = "debug: ",
    };
    fprintf(file, "plimsoll: %s", prefixes[level]);
    plim_text_write(file, text);
    fputc('\n', file);
}
