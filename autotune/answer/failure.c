#include "failure.h"
#include <stdio.h>

const char *plim_verdict_name(enum plim_status verdict)
{
    static const struct {
        enum plim_status status;
        const char *name;
    } names[] = {
        {PLIM_OK, "ok"},           {PLIM_OOM, "oom"},         {PLIM_UNSUPPORTED, "unsupported"},
        {PLIM_TIMEOUT, "timeout"}, {PLIM_CRASHED, "crashed"}, {PLIM_UNSTABLE, "unstable"}};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (names[i].status == verdict) return names[i].name;
    return "lost";
}

void plim_describe_failure(const struct plim_answer *answer, enum plim_status verdict,
                           const struct plim_trial *trial, char *out, size_t size)
{
    out[0] = '\0';
    if (verdict == PLIM_OOM && trial->details && answer->details->describe_oom)
        answer->details->describe_oom(trial, out, size);
    if (out[0]) return;
    const char *unsaid = verdict == PLIM_OOM ? "out of memory" : plim_status_text(verdict);
    snprintf(out, size, "%s", trial->why[0] ? trial->why : unsaid);
}
