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

/* Normalizes the point. Combinations that come to the same count once: the one that was so already,
 * or the first. */
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

enum plim_status plim_space_build(struct plim_space *space, const struct plim_axes *axes,
                                  const int64_t *seqs, size_t seq_count, struct plim_error *err)
{
    const int64_t *values;
    size_t count = 1;
    space->points.count = 0;
    for (size_t i = 0; i < axes->count; i++) count *= values_of(axes, i, seqs, seq_count, &values);
    for (size_t n = 0; n < count; n++) {
        struct plim_setting point = {0};
        size_t rest = n;
        for (size_t i = axes->count; i-- > 0;) {
            size_t choices = values_of(axes, i, seqs, seq_count, &values);
            point.value[i] = values[rest % choices];
            rest /= choices;
        }
        if (!normalize_once(axes, &point)) continue;
        if (PLIM_ARRAY_PUSH(&space->points, point) != PLIM_OK)
            return plim_fail(err, PLIM_NOMEM, "out of host memory");
    }
    return PLIM_OK;
}

void plim_space_finish(struct plim_space *space)
{
    if (space) PLIM_ARRAY_FINISH(&space->points);
}

struct plim_setting plim_space_first(const struct plim_axes *axes)
{
    struct plim_setting first = {0};
    for (size_t i = 0; i < axes->count; i++) first.value[i] = axes->axis[i].values[0];
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
