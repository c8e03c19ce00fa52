#include "stop.h"
#include "clock.h"
#include <stddef.h>

enum plim_status plim_stop_check(const struct plim_stop *stop, struct plim_error *err)
{
    if (!stop) return PLIM_OK;
    if (stop->signalled && *stop->signalled) return plim_fail(err, PLIM_CANCELLED, "interrupted");
    if (stop->deadline_seconds > 0 && plim_clock_seconds() >= stop->deadline_seconds)
        return plim_fail(err, PLIM_TIMEOUT, "the time budget is used up");
    return PLIM_OK;
}
