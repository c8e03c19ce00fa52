#include "timeline.h"

void plim_timeline_begin(struct plim_timeline *timeline, double start_seconds)
{
    timeline->count = 0;
    timeline->phase = "";
    timeline->start = start_seconds;
    timeline->stride = 1;
    timeline->noted = 0;
}

/* Replaces a moment by another one that is merged into it if that has more bytes. */
static void keep_larger(struct plim_moment *moment, const struct plim_moment *other)
{
    if (other->allocated_bytes > moment->allocated_bytes) *moment = *other;
}

static void halve(struct plim_timeline *t)
{
    for (size_t i = 0; i < t->count / 2; i++) {
        t->moments[i] = t->moments[2 * i];
        keep_larger(&t->moments[i], &t->moments[2 * i + 1]);
    }
    t->count /= 2;
    t->stride *= 2;
}

void plim_timeline_add(struct plim_timeline *t, const struct plim_moment *moment)
{
    struct plim_moment now = *moment;
    now.seconds -= t->start;
    now.phase = t->phase;
    if (t->count && t->noted < t->stride) {
        keep_larger(&t->moments[t->count - 1], &now);
        t->noted++;
        return;
    }
    if (t->count == PLIM_TIMELINE_MOMENTS) halve(t);
    t->moments[t->count++] = now;
    t->noted = 1;
}
