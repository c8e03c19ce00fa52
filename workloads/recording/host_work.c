/* What a program does on the host beside launching. */
#include "join.h"
#include <math.h>

/* Of the step that has least: in some Python collects garbage, or the machine does something else. Negative: there is
 * none. */
static double least_work(const struct plim_trace *trace)
{
    double least = -1;
    for (size_t i = PLIM_TRACE_STARTING_STEPS; i < trace->timed.count; i++) {
        double work = trace->timed.items[i].work_seconds;
        if (least < 0 || work < least) least = work;
    }
    return least;
}

static int64_t nanoseconds(double seconds)
{
    return seconds > 0 ? (int64_t)llround(fmin(1e9 * seconds, (double)PLIM_MOST_BYTES)) : 0;
}

void plim_trace_host_work(const struct plim_trace *traces, size_t count, int64_t micro_steps,
                          double host_speed, int64_t host_work[2])
{
    double n = 0, x = 0, y = 0, xx = 0, xy = 0;
    for (size_t i = 0; i < count; i++) {
        double size = (double)traces[i].point.batch * (double)traces[i].point.seq;
        double work = least_work(&traces[i]) / (double)micro_steps;
        if (work < 0) continue;
        n++, x += size, y += work, xx += size * size, xy += size * work;
    }
    double spread = n * xx - x * x, speed = host_speed > 0 ? host_speed : 1;
    double slope = spread > 0 ? fmax(0, (n * xy - x * y) / spread) : 0;
    double rest = n > 0 ? (y - slope * x) / n : 0;
    if (rest < 0) rest = 0, slope = xx > 0 ? xy / xx : 0;
    host_work[0] = nanoseconds(rest * speed);
    host_work[1] = nanoseconds(slope * speed);
}
