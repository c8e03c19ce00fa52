#include "space.h"

static size_t values_of(const struct plim_axes *axes, size_t axis, const int64_t *seqs,
                        size_t seq_count, const int64_t **values)
{
    bool replaced = seqs && (int)axis == axes->seq;
    *values = replaced ? seqs : axes->axis[axis].values;
    return replaced ? seq_count : axes->axis[axis].count;
}

static bool offers(const struct plim_axis *axis, int64_t value)
{
    for (size_t i = 0; i < axis->count; i++)
        if (axis->values[i] == value) return true;
    return false;
}

/* Normalizes the point. Returns false if another combination with the same result is kept: one that is normalized
 * already, otherwise the first. */
static bool normalize_once(const struct plim_axes *axes, struct plim_setting *point)
{
    const struct plim_setting given = *point;
    plim_axes_normalize(axes, point);
    for (size_t i = 0; i < axes->count; i++)
        if (point->value[i] != given.value[i] && (offers(&axes->axis[i], point->value[i]) ||
                                                  given.value[i] != axes->axis[i].values[0]))
            return false;
    return true;
}

/* Returns the level of the waterfall of a combination of values; -1 if it is on none. */
static int level_of(const struct plim_axes *axes, const size_t choice[PLIM_AXES],
                    const size_t choices[PLIM_AXES])
{
    size_t level = 0;
    bool spent = true; /* all axes before this one are at their last values */
    for (size_t i = 0; i < axes->waterfall_count; i++) {
        size_t axis = axes->waterfall[i];
        if (choice[axis] && !spent) return -1;
        level += choice[axis];
        spent &= choice[axis] + 1 == choices[axis];
    }
    return (int)level;
}

static bool has(const struct plim_axes *axes, const struct plim_setting *point)
{
    return !axes->has || axes->has(axes->has_user, point);
}

/* Returns combination number `n` of the values, the last axis varying fastest. */
static struct plim_setting point_at(const struct plim_axes *axes, const int64_t *const values[PLIM_AXES],
                                    const size_t choices[PLIM_AXES], size_t n, size_t choice[PLIM_AXES])
{
    struct plim_setting point = {0};
    for (size_t i = axes->count; i-- > 0;) {
        choice[i] = n % choices[i];
        point.value[i] = values[i][choice[i]];
        n /= choices[i];
    }
    return point;
}

/* Adds the points of one level. */
static enum plim_status add_level(struct plim_space *space, const struct plim_axes *axes,
                                  const int64_t *const values[PLIM_AXES],
                                  const size_t choices[PLIM_AXES], int level)
{
    size_t count = 1;
    for (size_t i = 0; i < axes->count; i++) count *= choices[i];
    for (size_t n = 0; n < count; n++) {
        size_t choice[PLIM_AXES] = {0};
        struct plim_setting point = point_at(axes, values, choices, n, choice);
        if (level_of(axes, choice, choices) != level || !normalize_once(axes, &point)) continue;
        if (!has(axes, &point)) continue;
        if (PLIM_ARRAY_PUSH(&space->points, point) != PLIM_OK) return PLIM_NOMEM;
    }
    return PLIM_ARRAY_PUSH(&space->level_ends, space->points.count);
}

enum plim_status plim_space_build(struct plim_space *space, const struct plim_axes *axes,
                                  const int64_t *seqs, size_t seq_count, struct plim_error *err)
{
    const int64_t *values[PLIM_AXES];
    size_t choices[PLIM_AXES], levels = 1;
    enum plim_status st = PLIM_OK;
    space->points.count = space->level_ends.count = 0;
    for (size_t i = 0; i < axes->count; i++)
        choices[i] = values_of(axes, i, seqs, seq_count, &values[i]);
    for (size_t i = 0; i < axes->waterfall_count; i++) levels += choices[axes->waterfall[i]] - 1;
    for (size_t level = 0; level < levels && !st; level++)
        st = add_level(space, axes, values, choices, (int)level);
    return st ? plim_no_memory(err) : PLIM_OK;
}

void plim_space_finish(struct plim_space *space)
{
    if (!space) return;
    PLIM_ARRAY_FINISH(&space->points);
    PLIM_ARRAY_FINISH(&space->level_ends);
}

struct plim_setting plim_space_first(const struct plim_axes *axes)
{
    const int64_t *values[PLIM_AXES];
    size_t choices[PLIM_AXES], choice[PLIM_AXES] = {0}, count = 1;
    for (size_t i = 0; i < axes->count; i++) {
        choices[i] = values_of(axes, i, NULL, 0, &values[i]);
        count *= choices[i];
    }
    struct plim_setting first = point_at(axes, values, choices, 0, choice), point = first;
    for (size_t n = 1; n < count && !has(axes, &point); n++)
        point = point_at(axes, values, choices, n, choice);
    if (has(axes, &point)) first = point;
    plim_axes_normalize(axes, &first);
    return first;
}

struct plim_setting plim_space_setting(const struct plim_setting *point,
                                       const struct plim_batch *batch,
                                       const struct plim_runner *runner)
{
    struct plim_setting setting = *point;
    setting.micro_batch = batch->micro_batch;
    setting.accumulation = plim_runner_probed(runner, batch->accumulation);
    return setting;
}
