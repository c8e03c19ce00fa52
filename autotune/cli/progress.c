#include "progress.h"
#include "autotune/base/clock.h"

static const double FIRST_SECONDS = 0.5, EVERY_SECONDS = 0.1;

void plim_progress_init(struct plim_progress *progress, const struct plim_request *request,
                        const struct plim_io *io, size_t devices)
{
    progress->file = io->err_is_terminal && !request->quiet ? io->err : NULL;
    progress->devices = devices;
    atomic_init(&progress->runs, 0);
    atomic_init(&progress->devices_done, 0);
    atomic_flag_clear(&progress->drawing);
    progress->start_seconds = plim_clock_seconds();
    progress->next_seconds = progress->start_seconds + FIRST_SECONDS;
    progress->drawn = false;
}

static void draw(struct plim_progress *progress)
{
    double now = plim_clock_seconds();
    if (now < progress->next_seconds) return;
    progress->next_seconds = now + EVERY_SECONDS;
    progress->drawn = true;
    fprintf(progress->file, "\rplimsoll: %.0f s, %zu settings replayed",
            now - progress->start_seconds, atomic_load(&progress->runs));
    if (progress->devices > 1)
        fprintf(progress->file, ", %zu of %zu devices", atomic_load(&progress->devices_done),
                progress->devices);
    fprintf(progress->file, "\033[K");
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
    if (progress->drawn) fprintf(progress->file, "\r\033[K");
}
