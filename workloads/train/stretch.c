#include "stretch.h"

void stretch_begin(struct engine *e, struct tape *tape, struct stretch *s)
{
    *s = (struct stretch){.begin = tape->events.count, .middle = tape->events.count};
    tape_begin_carrying(tape);
    e->memory.tape = tape;
    plim_device_begin_round(e->device);
}

void stretch_middle(const struct engine *e, struct stretch *s)
{
    s->middle = e->memory.tape->events.count;
}

void stretch_end(struct engine *e, struct stretch *s)
{
    s->end = e->memory.tape->events.count;
    tape_end_carrying(e->memory.tape, s->left);
    e->memory.tape = NULL;
    plim_device_end_round(e->device, &s->round);
}

void stretch_play_first_half(struct engine *e, struct tape *tape, const struct stretch *s)
{
    tape_play(e, tape, s->begin, s->middle);
}

void stretch_play_second_half(struct engine *e, struct tape *tape, const struct stretch *s)
{
    tape_play(e, tape, s->middle, s->end);
    tape_store_carried(e, tape, s->left);
    plim_device_repeat(e->device, &s->round, 1);
}
