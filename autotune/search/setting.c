#include "setting.h"
#include "autotune/base/text.h"
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

static enum plim_status add_to_waterfall(struct plim_axes *axes, const char *name,
                                         struct plim_error *err)
{
    const char *names[PLIM_AXES] = {0};
    char expected[256];
    size_t count = 0;
    for (size_t i = 0; i < axes->count; i++)
        if (axes->axis[i].count > 1) names[count++] = axes->axis[i].name;
    plim_join_names(names, count, expected, sizeof(expected));
    int axis = plim_axes_find(axes, name);
    if (axis < 0 || axes->axis[axis].count < 2)
        return plim_fail(err, PLIM_INVALID, "--waterfall: %s %s, expected %s%s", name,
                         axis < 0 ? "cannot be varied" : "has one value only",
                         count ? expected : "options that are lists, such as --seq 2048,1024",
                         count ? ", which have several" : "");
    for (size_t i = 0; i < axes->waterfall_count; i++)
        if (axes->waterfall[i] == (size_t)axis)
            return plim_fail(err, PLIM_INVALID, "--waterfall: %s is there twice", name);
    axes->waterfall[axes->waterfall_count++] = (size_t)axis;
    return PLIM_OK;
}

enum plim_status plim_axes_waterfall(struct plim_axes *axes, const char *list,
                                     struct plim_error *err)
{
    enum plim_status st = PLIM_OK;
    char name[sizeof(axes->axis[0].name)];
    for (const char *at = list; !st; at++) {
        size_t length = strcspn(at, ",");
        snprintf(name, sizeof(name), "%.*s", (int)length, at);
        st = add_to_waterfall(axes, name, err);
        at += length;
        if (!*at) break;
    }
    return st;
}

void plim_axes_normalize(const struct plim_axes *axes, struct plim_setting *setting)
{
    if (axes->normalize) axes->normalize(setting);
}

int64_t plim_axes_seq(const struct plim_axes *axes, const struct plim_setting *setting)
{
    return axes->seq < 0 ? 1 : setting->value[axes->seq];
}

int64_t plim_axes_tokens(const struct plim_axes *axes, const struct plim_setting *setting)
{
    return (plim_axes_seq(axes, setting) + axes->more_tokens) * (axes->rows ? axes->rows : 1);
}

const char *plim_axes_text(const struct plim_axes *axes, const struct plim_setting *setting,
                           size_t axis, char room[PLIM_AXIS_TEXT])
{
    int64_t value = setting->value[axis];
    if (axes->axis[axis].names) return axes->axis[axis].names[value];
    snprintf(room, PLIM_AXIS_TEXT, "%" PRId64, value);
    return room;
}
