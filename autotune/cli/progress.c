#include "progress.h"
#include "autotune/base/clock.h"

/* For logs and for terminals: when the first line is shown, and the interval. */
static const struct {
    double first_seconds, every_seconds;
} paces[] = {{5, 5}, {0.5, 0.1}};

void plim_progress_init(struct plim_progress *progress, const struct plim_request *request,
                        const struct plim_io *io, size_t devices)
{
    progress->file = request->quiet ? NULL : io->err;
    progress->is_live = io->err_is_terminal && !io->is_dumb;
    progress->devices = devices;
    atomic_init(&progress->runs, 0);
    atomic_init(&progress->devices_done, 0);
    atomic_flag_clear(&progress->drawing);
    progress->start_seconds = plim_clock_seconds();
    progress->next_seconds = progress->start_seconds + paces[progress->is_live].first_seconds;
    progress->length = 0;
}

static void draw(struct plim_progress *progress)
{
    char line[128];
    double now = plim_clock_seconds();
    if (now < progress->next_seconds) return;
    progress->next_seconds = now + paces[progress->is_live].every_seconds;
    int length = snprintf(line, sizeof(line), "plimsoll: %.0f s, %zu settings tried",
                          now - progress->start_seconds, atomic_load(&progress->runs));
    if (progress->devices > 1)
        length += snprintf(line + length, sizeof(line) - (size_t)length, ", %zu of %zu devices",
                           atomic_load(&progress->devices_done), progress->devices);
    if (progress->is_live) {
        fprintf(progress->file, "\r%-*s", progress->length, line);
        progress->length = length;
    } else {
        fprintf(progress->file, "%s\n", line);
    }
    fflush(progress->file);
}

void plim_progress_run(void *user)
{
    struct plim_progress *progress = user;
    atomic_fetch_add(&progress->runs, 1);
    if (!progress->file || atomic_flag_test_and_set(&progress->drawing)) return;
    draw(progress);
    atomic_flag_clear(&progress->drawing);
}

void plim_progress_device(void *user)
{
    struct plim_progress *progress = user;
    atomic_fetch_add(&progress->devices_done, 1);
}

void plim_progress_finish(struct plim_progress *progress)
{
    if (progress->length) fprintf(progress->file, "\r%*s\r", progress->length, "");
}
