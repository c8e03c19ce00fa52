#include "setting.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

bool plim_setting_same_point(const struct plim_setting *a, const struct plim_setting *b)
{
    return !memcmp(a->value, b->value, sizeof(a->value));
}

bool plim_setting_equal(const struct plim_setting *a, const struct plim_setting *b)
{
    return a->micro_batch == b->micro_batch && a->accumulation == b->accumulation &&
           plim_setting_same_point(a, b);
}

int plim_axes_find(const struct plim_axes *axes, const char *name)
{
    for (size_t i = 0; i < axes->count; i++)
        if (!strcmp(axes->axis[i].name, name)) return (int)i;
    return -1;
}

void plim_axes_normalize(const struct plim_axes *axes, struct plim_setting *setting)
{
    if (axes->normalize) axes->normalize(setting);
}

int64_t plim_axes_seq(const struct plim_axes *axes, const struct plim_setting *setting)
{
    return axes->seq < 0 ? 1 : setting->value[axes->seq];
}

const char *plim_axes_text(const struct plim_axes *axes, const struct plim_setting *setting,
                           size_t axis, char room[PLIM_AXIS_TEXT])
{
    int64_t value = setting->value[axis];
    if (axes->axis[axis].names) return axes->axis[axis].names[value];
    snprintf(room, PLIM_AXIS_TEXT, "%" PRId64, value);
    return room;
}
