/* What a program does on the host other than launching. */
#include "trace.h"
#include <math.h>

/* Returns the smallest work of a step: in some steps Python collects garbage, or the machine does something else.
 * Negative: there is no step. */
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

/* Points of work over size, for linear regression. */
struct line {
    double n, x, y, xx, xy, yy, least, most;
};

static void add(struct line *line, double x, double y)
{
    if (!line->n || x < line->least) line->least = x;
    if (!line->n || x > line->most) line->most = x;
    line->n++, line->x += x, line->y += y;
    line->xx += x * x, line->xy += x * y, line->yy += y * y;
}

/* Returns the slope; 0 if the growth over the recorded sizes is not significant compared to the points' scatter,
 * because it is extrapolated to sizes hundreds of times as large. */
static double slope_of(const struct line *line)
{
    const double stands_out = 8, worth_seconds = 1e-3;
    double spread = line->n * line->xx - line->x * line->x;
    if (line->n < 3 || spread <= 0) return 0;
    double slope = (line->n * line->xy - line->x * line->y) / spread;
    double rest = (line->y - slope * line->x) / line->n;
    double squares = line->yy - rest * line->y - slope * line->xy;
    double scatter = sqrt(fmax(0, squares) / (line->n - 2));
    double growth = slope * (line->most - line->least);
    return growth > worth_seconds && growth > stands_out * scatter ? slope : 0;
}

void plim_trace_host_work(const struct plim_trace *traces, size_t count, int64_t micro_steps,
                          double host_speed, int64_t host_work[2])
{
    struct line line = {0};
    for (size_t i = 0; i < count; i++) {
        double work = least_work(&traces[i]) / (double)micro_steps;
        if (work >= 0)
            add(&line, (double)traces[i].point.batch * (double)traces[i].point.seq, work);
    }
    double speed = host_speed > 0 ? host_speed : 1, slope = slope_of(&line);
    double rest = line.n > 0 ? (line.y - slope * line.x) / line.n : 0;
    if (rest < 0) rest = 0, slope = line.xx > 0 ? line.xy / line.xx : 0;
    host_work[0] = nanoseconds(rest * speed);
    host_work[1] = nanoseconds(slope * speed);
}
