#include "score.h"
#include "clock.h"

/* --- recording -------------------------------------------------------------------------------- */

void plim_score_rewind(struct plim_score_recorder *r)
{
    r->works.count = r->events.count = 0;
    memset(r->slots, 0, sizeof(r->slots));
    r->readings = r->rounds = 0;
    r->broken = false;
}

void plim_score_finish(struct plim_score_recorder *r)
{
    PLIM_ARRAY_FINISH(&r->works);
    PLIM_ARRAY_FINISH(&r->events);
}

static uint64_t hash(const struct plim_work *work)
{
    enum { WORDS = sizeof(*work) / sizeof(uint64_t) };
    uint64_t word[WORDS], sum = 0;
    _Static_assert(sizeof(word) == sizeof(*work), "works have no padding");
    memcpy(word, work, sizeof(word));
    for (int i = 0; i < WORDS; i++) sum = (sum ^ word[i]) * 0x9e3779b97f4a7c15u, sum ^= sum >> 29;
    return sum;
}

/* Returns the index of a work, which is added if it is new; PLIM_SCORE_WORKS if there are too many. */
static uint32_t number_of(struct plim_score_recorder *r, const struct plim_work *work)
{
    enum { SLOTS = 2 * PLIM_SCORE_WORKS };
    uint64_t at = hash(work) % SLOTS;
    for (; r->slots[at]; at = (at + 1) % SLOTS)
        if (!memcmp(&r->works.items[r->slots[at] - 1], work, sizeof(*work))) return r->slots[at] - 1U;
    if (r->works.count == PLIM_SCORE_WORKS || PLIM_ARRAY_PUSH(&r->works, *work) != PLIM_OK)
        return PLIM_SCORE_WORKS;
    r->slots[at] = (uint16_t)r->works.count;
    return (uint32_t)r->works.count - 1;
}

void plim_score_record(struct plim_score_recorder *r, enum plim_score_action action, uint32_t number,
                       int64_t times)
{
    r->rounds += action == PLIM_SCORE_END_ROUND;
    r->readings += action == PLIM_SCORE_READ;
    if (r->rounds > PLIM_SCORE_ROUNDS || r->readings > PLIM_SCORE_READINGS || times < 0 ||
        times > UINT32_MAX)
        r->broken = true;
    const struct plim_score_event event = {(uint16_t)action, (uint16_t)number, (uint32_t)times};
    if (r->broken || PLIM_ARRAY_PUSH(&r->events, event) != PLIM_OK) r->broken = true;
}

void plim_score_launch(struct plim_score_recorder *r, const struct plim_work *work)
{
    if (r->broken) return;
    uint32_t number = number_of(r, work);
    if (number == PLIM_SCORE_WORKS) r->broken = true;
    plim_score_record(r, PLIM_SCORE_LAUNCH, number, 1);
}

/* --- playing ---------------------------------------------------------------------------------- */

size_t plim_score_play(const struct plim_score *score, struct plim_roofline *gpu,
                       struct plim_score_reading readings[PLIM_SCORE_READINGS])
{
    struct plim_sim_clock clock = {0};
    struct plim_device_round rounds[PLIM_SCORE_ROUNDS];
    double seconds[PLIM_SCORE_WORKS];
    size_t read = 0;
    for (size_t i = 0; i < score->work_count; i++)
        seconds[i] = plim_roofline_seconds(gpu, &score->works[i]);
    for (size_t i = 0; i < score->event_count; i++) {
        const struct plim_score_event *e = &score->events[i];
        const struct plim_work *work = &score->works[e->number];
        switch ((enum plim_score_action)e->action) {
        case PLIM_SCORE_LAUNCH:
            plim_sim_clock_launch(&clock, work->host_seconds * gpu->host_share, plim_work_task(work),
                                  seconds[e->number], work->waits);
            break;
        case PLIM_SCORE_BEGIN_ROUND: plim_sim_clock_begin_round(&clock); break;
        case PLIM_SCORE_END_ROUND:
            plim_sim_clock_end_round(&clock, &rounds[clock.rounds_ended]);
            break;
        case PLIM_SCORE_REPEAT: plim_sim_clock_repeat(&clock, &rounds[e->number], e->times); break;
        case PLIM_SCORE_READ:
            readings[read] = (struct plim_score_reading){clock.line.device, clock.load};
            readings[read++].load.launching_at_most_seconds =
                clock.load.launching_seconds * gpu->host_doubt;
            break;
        case PLIM_SCORE_TAKE_MEMORY:
        case PLIM_SCORE_RETURN_MEMORY:
            plim_sim_clock_drive(&clock, PLIM_DRIVER_MEMORY_SECONDS,
                                 e->action == PLIM_SCORE_RETURN_MEMORY);
            break;
        }
    }
    return read;
}
