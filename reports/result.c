#include "result.h"
#include <stdio.h>

void plim_result_reason(struct plim_result *result, const char *fmt, ...)
{
    if (result->reason_count == PLIM_RESULT_REASONS) return;
    va_list args;
    va_start(args, fmt);
    vsnprintf(result->reasons[result->reason_count++], PLIM_RESULT_LINE, fmt, args);
    va_end(args);
}

void plim_result_finish(struct plim_result *result)
{
    if (!result) return;
    PLIM_ARRAY_FINISH(&result->samples);
    PLIM_ARRAY_FINISH(&result->advice);
}

void plim_report_finish(struct plim_report *report)
{
    if (!report) return;
    for (size_t i = 0; i < report->results.count; i++)
        plim_result_finish(&report->results.items[i]);
    PLIM_ARRAY_FINISH(&report->results);
}

const char *plim_result_value(const struct plim_result_setting *setting, const char *name)
{
    for (size_t i = 0; i < setting->value_count; i++)
        if (!strcmp(setting->values[i].name, name)) return setting->values[i].text;
    return "";
}
