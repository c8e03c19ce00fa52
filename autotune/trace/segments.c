#include "segments.h"
#include "devices/open.h"

void plim_segments_add(struct plim_segments *s, int64_t bytes)
{
    s->failed |= PLIM_ARRAY_PUSH(&s->bytes, bytes) != PLIM_OK;
}

void plim_segments_finish(struct plim_segments *s)
{
    PLIM_ARRAY_FINISH(&s->bytes);
    PLIM_ARRAY_FINISH(&s->before_step);
}

/* The allocator's observer. */
static void count_segment(void *user, char what, int64_t bytes)
{
    plim_segments_add(user, what == 'S' || what == 'M' ? bytes : -bytes);
}

/* The player's stop callback, which is called before each step. */
static bool note_step(const void *user)
{
    struct plim_segments *s = *(struct plim_segments *const *)user;
    s->failed |= PLIM_ARRAY_PUSH(&s->before_step, s->bytes.count) != PLIM_OK;
    return s->most_steps && s->before_step.count > s->most_steps;
}

enum plim_status plim_segments_play(const struct plim_recorded_stream *stream,
                                    struct plim_recorded_point point, size_t steps,
                                    const char *device, const struct plim_allocator_config *config,
                                    struct plim_segments *out, struct plim_replay *replay,
                                    struct plim_error *err)
{
    struct plim_device *opened = NULL;
    struct plim_player *player = NULL;
    enum plim_status st = plim_device_open(device, &opened, err);
    if (!st) st = plim_player_create(opened, config, &player, err);
    if (!st && out) {
        plim_player_observe(player, count_segment, out);
        plim_player_stop(player, note_step, &out);
        plim_player_set_min_steps(player, (int)steps);
    }
    if (!st) st = plim_player_run(player, PLIM_RECORDED_PYTORCH, stream, point, 1, replay, err);
    plim_player_destroy(&player);
    if (opened) plim_device_close(&opened);
    return st;
}
