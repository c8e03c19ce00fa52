#include "loops.h"
#include "devices/virtual/machine/question.h"
#include <stdio.h>
#include <string.h>

/* A place, and how often it was read since the step began or its value was last changed. */
struct loop {
    char place[PLIM_QUESTION_TEXT];
    int64_t step, reads, most;
};

static struct loop loops[PLIM_MACHINE_QUESTIONS]; /* as many as there are rows for questions; free if the place is
                                                   * empty */

static struct loop *find(const char *place, int64_t most)
{
    for (int i = 0; i < PLIM_MACHINE_QUESTIONS; i++) {
        if (!loops[i].place[0]) {
            loops[i] = (struct loop){.most = most};
            snprintf(loops[i].place, sizeof(loops[i].place), "%s", place);
        }
        if (!strcmp(loops[i].place, place)) return &loops[i];
    }
    return NULL;
}

bool plim_loops_should_end(const char *place, int64_t step, int64_t most)
{
    struct loop *loop = find(place, most);
    if (!loop) return false;
    if (loop->step != step) loop->step = step, loop->reads = 0;
    if (loop->reads++ < loop->most) return false;
    loop->reads = 0;
    loop->most = PLIM_LOOP_READS_AGAIN;
    return true;
}
