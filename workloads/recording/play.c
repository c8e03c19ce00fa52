#include "play.h"
#include "autotune/base/hash.h"
#include "autotune/base/round.h"
#include "devices/sim/roofline.h"
#include "time.h"
#include "walk.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

/* cudaMalloc allocates pages of 2 MiB; smaller requests share them. */
enum { SMALL_BYTES = 1 << 20, SMALL_ALIGNMENT = 512 };

/* A block held by the program. */
struct held {
    struct plim_block *block; /* of PyTorch's allocator */
    int64_t bytes;            /* bytes counted as allocated */
    uint64_t address;         /* of a direct allocation */
    uint8_t memory_class;
};

struct player_run {
    const struct plim_recorded_stream *stream;
    bool is_direct;
    size_t loop; /* the loop to whose micro-steps `micro_states` belong */
    bool retries_vary; /* micro-steps need cached memory to be freed, and never repeat */
    int64_t asked_bytes, guessed_bytes;
    int64_t live_bytes, live_peak_bytes; /* of direct allocations */
    int64_t small_bytes;
    bool in_step;
    int64_t class_bytes[PLIM_MEMORY_CLASS_COUNT];
    /* The same at the peak: that of a step, if it is as high as the peak before the steps. */
    int64_t class_bytes_at_peak[PLIM_MEMORY_CLASS_COUNT], peak_bytes;
    bool peak_is_of_step;
};

struct plim_player {
    struct plim_device *device;
    struct plim_allocator *allocator;
    plim_replay_stop *stop;
    const void *stop_user;
    int least_steps;
    int64_t only_steps; /* 0: as many as needed until they repeat */
    struct player_run run;
    PLIM_ARRAY(int64_t) bytes;     /* of the stream's sizes at the point */
    PLIM_ARRAY(int64_t) guessed;   /* of each size: plim_recorded_size_guessed() */
    struct plim_recorded_walk walk;
    PLIM_ARRAY(struct held) held;  /* by the walk's slots */
    PLIM_ARRAY(uint64_t) pages;    /* shared by small direct allocations */
    PLIM_ARRAY(uint32_t) carried;  /* blocks from before a step that its frees refer to: the N-th last */
    PLIM_ARRAY(uint64_t) states;   /* at the ends of steps */
    PLIM_ARRAY(uint64_t) micro_states; /* at the ends of a loop's micro-steps */
};

enum plim_status plim_player_create(struct plim_device *device,
                                    const struct plim_allocator_config *config,
                                    struct plim_player **out, struct plim_error *err)
{
    struct plim_player *player = calloc(1, sizeof(*player));
    *out = player;
    if (!player) return plim_no_memory(err);
    player->device = device;
    enum plim_status st = plim_allocator_create(device, config, &player->allocator, err);
    if (st) plim_player_destroy(out);
    return st;
}

void plim_player_destroy(struct plim_player **player)
{
    struct plim_player *p = *player;
    if (!p) return;
    plim_allocator_destroy(&p->allocator);
    PLIM_ARRAY_FINISH(&p->bytes);
    PLIM_ARRAY_FINISH(&p->guessed);
    plim_recorded_walk_finish(&p->walk);
    PLIM_ARRAY_FINISH(&p->held);
    PLIM_ARRAY_FINISH(&p->pages);
    PLIM_ARRAY_FINISH(&p->carried);
    PLIM_ARRAY_FINISH(&p->states);
    PLIM_ARRAY_FINISH(&p->micro_states);
    free(p);
    *player = NULL;
}

void plim_player_stop(struct plim_player *player, plim_replay_stop *stop, const void *user)
{
    player->stop = stop;
    player->stop_user = user;
}

void plim_player_set_min_steps(struct plim_player *player, int steps)
{
    player->least_steps = steps;
}

void plim_player_only(struct plim_player *player, int64_t steps)
{
    player->only_steps = steps;
}

void plim_player_observe(struct plim_player *player, plim_allocator_observer observer, void *user)
{
    plim_allocator_observe(player->allocator, observer, user);
}

/* --- direct allocations ----------------------------------------------------------------------- */

/* Allocates or frees shared pages as needed for `bytes` more (or fewer) bytes of small allocations. */
static enum plim_status change_small(struct plim_player *p, int64_t bytes)
{
    int64_t wanted = plim_round_up(p->run.small_bytes + bytes, PLIM_PAGE_BYTES) / PLIM_PAGE_BYTES;
    while ((int64_t)p->pages.count < wanted) {
        uint64_t address;
        enum plim_status st = plim_device_segment_get(p->device, PLIM_PAGE_BYTES, &address);
        if (st) return st;
        if (PLIM_ARRAY_PUSH(&p->pages, address) != PLIM_OK) return PLIM_NOMEM;
    }
    while ((int64_t)p->pages.count > wanted)
        plim_device_segment_return(p->device, p->pages.items[--p->pages.count], PLIM_PAGE_BYTES);
    p->run.small_bytes += bytes;
    return PLIM_OK;
}

static enum plim_status allocate_direct(struct plim_player *p, int64_t bytes, struct held *out)
{
    bool shares = bytes <= SMALL_BYTES;
    out->bytes = plim_round_up(bytes, shares ? SMALL_ALIGNMENT : PLIM_PAGE_BYTES);
    enum plim_status st = shares ? change_small(p, out->bytes)
                                 : plim_device_segment_get(p->device, out->bytes, &out->address);
    if (st) return st;
    p->run.live_bytes += out->bytes;
    if (p->run.live_bytes > p->run.live_peak_bytes) p->run.live_peak_bytes = p->run.live_bytes;
    return PLIM_OK;
}

static enum plim_status release_direct(struct plim_player *p, const struct held *held)
{
    p->run.live_bytes -= held->bytes;
    if (held->bytes <= SMALL_BYTES) return change_small(p, -held->bytes);
    plim_device_segment_return(p->device, held->address, held->bytes);
    return PLIM_OK;
}

/* --- classes ---------------------------------------------------------------------------------- */

static void count_class(struct plim_player *p, const struct held *held, int64_t sign)
{
    p->run.class_bytes[held->memory_class] += sign * held->bytes;
}

static void note_classes(struct plim_player *p)
{
    struct player_run *run = &p->run;
    int64_t allocated = run->is_direct ? run->live_bytes
                                       : plim_allocator_statistics(p->allocator)->allocated;
    bool is_first_of_step = run->in_step && !run->peak_is_of_step && allocated == run->peak_bytes;
    if (allocated <= run->peak_bytes && !is_first_of_step) return;
    run->peak_bytes = allocated;
    run->peak_is_of_step = run->in_step;
    memcpy(run->class_bytes_at_peak, run->class_bytes, sizeof(run->class_bytes));
}

/* --- events ----------------------------------------------------------------------------------- */

static enum plim_status allocate(void *user, uint32_t slot, uint32_t size)
{
    struct plim_player *p = user;
    struct held held = {.memory_class = p->run.stream->events.items[p->walk.event].memory_class};
    int64_t bytes = p->bytes.items[size];
    enum plim_status st = PLIM_ARRAY_RESERVE(&p->held, (size_t)slot + 1);
    if (st) return st;
    p->run.asked_bytes = bytes;
    if (p->guessed.items[size] > p->run.guessed_bytes) p->run.guessed_bytes = p->guessed.items[size];
    if (!bytes) st = PLIM_OK; /* there is no such block at this size */
    else if (p->run.is_direct) st = allocate_direct(p, bytes, &held);
    else
        st = plim_allocator_malloc(p->allocator, bytes,
                                   p->run.stream->sizes.items[size].cuda_stream, &held.block);
    if (!st && held.block) held.bytes = plim_block_bytes(held.block);
    p->held.items[slot] = held;
    if (!st) {
        count_class(p, &held, 1);
        note_classes(p);
    }
    return st;
}

static enum plim_status release(void *user, uint32_t slot)
{
    struct plim_player *p = user;
    const struct held *held = &p->held.items[slot];
    count_class(p, held, -1);
    if (p->run.is_direct) return release_direct(p, held);
    if (held->block) plim_allocator_free(p->allocator, held->block);
    return PLIM_OK;
}

static enum plim_status empty_cache(void *user)
{
    struct plim_player *p = user;
    if (!p->run.is_direct) plim_allocator_empty_cache(p->allocator);
    return PLIM_OK;
}

/* --- states ----------------------------------------------------------------------------------- */

/* Adds to a state the place of a block of the walk in the allocator's fingerprint; 0 if it is free, or not a block of
 * the allocator. */
static uint64_t add_place(const struct plim_player *p, uint64_t state, uint32_t back, bool in_loop)
{
    int64_t slot = plim_recorded_walk_slot(&p->walk, back, in_loop);
    const struct plim_block *block = slot < 0 ? NULL : p->held.items[slot].block;
    state = (state ^ (block ? plim_block_position(block) : 0)) * 0x9e3779b97f4a7c15u;
    return state ^ state >> 32;
}

/* Returns a hash of everything that determines later steps; 0: no host memory. */
static uint64_t state_of(struct plim_player *p)
{
    uint64_t state = plim_allocator_fingerprint(p->allocator);
    if (!state || p->run.is_direct) return state;
    for (size_t i = 0; i < p->carried.count; i++)
        state = add_place(p, state, p->carried.items[i], false);
    return state ? state : 1;
}

/* The same for later micro-steps: what they free was allocated by the last ones. */
static uint64_t micro_state_of(struct plim_player *p, const struct plim_recorded_loop *loop)
{
    const struct plim_recorded_event *events = p->run.stream->events.items + loop->first;
    uint64_t state = plim_allocator_fingerprint(p->allocator);
    size_t reach = loop->count / 2; /* its allocations: half of its events */
    if (!state || p->run.is_direct) return state;
    for (size_t i = 0; i < loop->count; i++)
        if (events[i].frees && events[i].value > reach) reach = events[i].value;
    for (size_t i = 1; i <= reach; i++) state = add_place(p, state, (uint32_t)i, true);
    return state ? state : 1;
}

/* Called after a micro-step: skips whole periods of the remaining ones if the period is known by now. The rules are
 * those of the engine's micro-steps (replay.h). */
static enum plim_status repeated(void *user, size_t loop, int64_t *left)
{
    struct plim_player *p = user;
    if (p->run.loop != loop) p->micro_states.count = 0;
    p->run.loop = loop;
    uint64_t state = micro_state_of(p, &p->run.stream->loops.items[loop]);
    if (!state) return PLIM_NOMEM;
    size_t count = p->micro_states.count, back = 1;
    while (back <= count && p->micro_states.items[count - back] != state) back++;
    bool is_known = back <= count;
    if (!is_known && count >= PLIM_REPLAY_PROOF_MICRO_STEPS) {
        p->run.retries_vary |= plim_allocator_statistics(p->allocator)->retries > 0;
        back = 1;
        is_known = true;
    }
    if (is_known) *left %= (int64_t)back;
    if (!*left) p->micro_states.count = 0; /* the loop starts again in the next step */
    else return PLIM_ARRAY_PUSH(&p->micro_states, state);
    return PLIM_OK;
}

static const struct plim_recorded_walker walker = {allocate, release, empty_cache, repeated};

/* --- a run ------------------------------------------------------------------------------------ */

static enum plim_status prepare_sizes(struct plim_player *p, struct plim_recorded_point point,
                                      struct plim_error *err)
{
    const struct plim_recorded_stream *stream = p->run.stream;
    if (point.batch < stream->from.batch || point.seq < stream->from.seq)
        return plim_fail(err, PLIM_INVALID,
                         "the recording holds from batch %lld and length %lld on, not at batch "
                         "%lld, length %lld: exec runs the program there",
                         (long long)stream->from.batch, (long long)stream->from.seq,
                         (long long)point.batch, (long long)point.seq);
    if (PLIM_ARRAY_RESERVE(&p->bytes, stream->sizes.count) != PLIM_OK ||
        PLIM_ARRAY_RESERVE(&p->guessed, stream->sizes.count) != PLIM_OK)
        return plim_no_memory(err);
    for (size_t i = 0; i < stream->sizes.count; i++) {
        p->guessed.items[i] = plim_recorded_size_guessed(&stream->sizes.items[i], point);
        p->bytes.items[i] = plim_recorded_size_at(&stream->sizes.items[i], point, &p->device->info);
        if (p->bytes.items[i] < 0)
            return plim_fail(err, PLIM_INVALID,
                             "the recording has no size for a block at batch %lld, length %lld",
                             (long long)point.batch, (long long)point.seq);
    }
    return PLIM_OK;
}

/* Lists the blocks allocated before a step that its frees refer to. */
static enum plim_status prepare_carried(struct plim_player *p)
{
    const struct plim_recorded_stream *stream = p->run.stream;
    uint32_t allocated = 0;
    p->carried.count = 0;
    for (size_t i = stream->before; i < stream->events.count; i++) {
        const struct plim_recorded_event *event = &stream->events.items[i];
        if (!event->frees) allocated++;
        else if (event->value > allocated &&
                 PLIM_ARRAY_PUSH(&p->carried, event->value - allocated) != PLIM_OK)
            return PLIM_NOMEM;
    }
    return PLIM_OK;
}

/* Frees what a previous run has left, first in the allocator, whose segments are the device's. */
static enum plim_status empty(struct plim_player *p)
{
    plim_allocator_reset(p->allocator);
    return plim_device_reset(p->device);
}

static enum plim_status prepare(struct plim_player *p, struct plim_recorded_point point,
                                int64_t accumulation, struct plim_error *err)
{
    p->states.count = p->micro_states.count = p->pages.count = 0;
    enum plim_status st = prepare_sizes(p, point, err);
    if (st) return st;
    st = prepare_carried(p);
    if (!st) st = plim_recorded_walk_begin(&p->walk, p->run.stream, accumulation, &walker, p);
    if (st) return plim_no_memory(err);
    return empty(p);
}

static enum plim_status compare(struct plim_player *p, struct plim_replay *out)
{
    uint64_t state = state_of(p);
    if (!state) return PLIM_NOMEM;
    for (size_t i = 0; i < p->states.count && !out->repeats_after; i++)
        if (p->states.items[i] == state) out->repeats_after = out->steps_done;
    return PLIM_ARRAY_PUSH(&p->states, state);
}

static void note_peaks(const struct plim_player *p, struct plim_replay_step *step)
{
    const struct plim_allocator_stats *stats = plim_allocator_statistics(p->allocator);
    const struct player_run *run = &p->run;
    *step = (struct plim_replay_step){.after_forward_bytes = 0,
                                      .peak_allocated_bytes = stats->allocated_peak,
                                      .peak_reserved_bytes = stats->reserved_peak,
                                      .peak_requested_bytes = stats->requested_peak,
                                      .end_allocated_bytes = stats->allocated,
                                      .end_reserved_bytes = stats->reserved,
                                      .loss = NAN};
    if (!run->is_direct) return;
    step->peak_allocated_bytes = step->peak_requested_bytes = run->live_peak_bytes;
    step->peak_reserved_bytes = p->device->segment_bytes_peak;
    step->end_allocated_bytes = run->live_bytes;
    step->end_reserved_bytes = p->device->segment_bytes;
}

/* Plays events, and adds their peaks to those of the whole run. */
static enum plim_status play_part(struct plim_player *p, size_t from, size_t to,
                                  struct plim_replay_step *step, struct plim_replay *out)
{
    plim_allocator_reset_peaks(p->allocator);
    p->device->segment_bytes_peak = p->device->segment_bytes;
    p->run.live_peak_bytes = p->run.live_bytes;
    enum plim_status st = plim_recorded_walk_events(&p->walk, from, to);
    note_peaks(p, step);
    if (step->peak_allocated_bytes > out->peak_allocated_bytes)
        out->peak_allocated_bytes = step->peak_allocated_bytes;
    if (step->peak_reserved_bytes > out->peak_reserved_bytes)
        out->peak_reserved_bytes = step->peak_reserved_bytes;
    return st;
}

static enum plim_status play_steps(struct plim_player *p, struct plim_replay *out)
{
    const struct plim_recorded_stream *stream = p->run.stream;
    struct plim_replay_step step;
    enum plim_status st = play_part(p, 0, stream->before, &step, out);
    if (!st) st = compare(p, out);
    p->run.in_step = true;
    int64_t most = p->only_steps ? p->only_steps : PLIM_REPLAY_PROOF_STEPS;
    while (!st && out->steps_done < most &&
           (p->only_steps || !out->repeats_after || out->steps_done < p->least_steps)) {
        if (p->stop && p->stop(p->stop_user)) return PLIM_CANCELLED;
        st = play_part(p, stream->before, stream->events.count, &step, out);
        if (st) break;
        if (out->steps_done < PLIM_REPLAY_STEPS) out->step[out->steps_done] = step;
        out->steps_done++;
        st = compare(p, out);
    }
    return st;
}

/* The steps after one that repeats are equal to it. */
static void fill_steps(const struct plim_player *p, struct plim_replay *out)
{
    while (!p->only_steps && out->repeats_after && out->steps_done < PLIM_REPLAY_STEPS) {
        out->step[out->steps_done] = out->step[out->steps_done - 1];
        out->steps_done++;
    }
}

/* Every step has the same launches, and so the same seconds. */
static enum plim_status fill_seconds(struct plim_player *p, struct plim_recorded_point point,
                                     int64_t accumulation, struct plim_replay *out,
                                     struct plim_error *err)
{
    struct plim_recorded_time time;
    enum plim_status st = plim_recorded_step_time(p->device, p->run.stream, point, p->bytes.items,
                                                  accumulation, &time);
    if (st == PLIM_NOMEM) return plim_no_memory(err);
    if (st)
        return plim_fail(err, st,
                         "the recording launches what no GPU could hold at batch %lld, length %lld",
                         (long long)point.batch, (long long)point.seq);
    for (int i = 0; i < plim_replay_kept_steps(out); i++) out->step[i].seconds = time.seconds;
    out->launching_seconds = time.launching_seconds;
    out->host_bound = time.host_bound;
    memcpy(out->running_seconds, time.running_seconds, sizeof(out->running_seconds));
    return PLIM_OK;
}

static void set_verdict(const struct plim_player *p, enum plim_status st, struct plim_replay *out)
{
    out->retries = plim_allocator_statistics(p->allocator)->retries;
    out->guessed_bytes = p->run.guessed_bytes;
    if (st == PLIM_OOM) {
        out->oom_asked_bytes = p->run.asked_bytes;
        snprintf(out->oom_where, sizeof(out->oom_where), "step %d", out->steps_done + 1);
        snprintf(out->why, sizeof(out->why), "out of memory: %lld bytes asked for in %s",
                 (long long)out->oom_asked_bytes, out->oom_where);
    }
    bool retries_vary = !st && !p->only_steps && (p->run.retries_vary || plim_replay_has_unproven_retries(out));
    if (retries_vary)
        snprintf(out->why, sizeof(out->why),
                 "out of memory: it has to free cached memory, and %d steps did not repeat",
                 PLIM_REPLAY_PROOF_STEPS);
    if (st == PLIM_OOM || retries_vary) out->verdict = PLIM_OOM;
}

enum plim_status plim_player_run(struct plim_player *player,
                                 enum plim_recorded_allocator allocator,
                                 const struct plim_recorded_stream *stream,
                                 struct plim_recorded_point point, int64_t accumulation,
                                 struct plim_replay *out, struct plim_error *err)
{
    *out = (struct plim_replay){.verdict = PLIM_OK};
    player->run = (struct player_run){.stream = stream,
                                      .is_direct = allocator == PLIM_RECORDED_DIRECT};
    enum plim_status st = prepare(player, point, accumulation, err);
    if (st) return st;
    st = play_steps(player, out);
    set_verdict(player, st, out);
    if (stream->is_classified)
        memcpy(out->class_bytes, player->run.class_bytes_at_peak, sizeof(out->class_bytes));
    if (st == PLIM_OK || st == PLIM_OOM) {
        fill_steps(player, out);
        return out->steps_done ? fill_seconds(player, point, accumulation, out, err) : PLIM_OK;
    }
    if (st == PLIM_CANCELLED) return st;
    return plim_fail(err, st, st == PLIM_INVALID ? "the recording frees a block twice" : "%s",
                     plim_status_text(st));
}

enum plim_status plim_player_sizes(struct plim_player *player, const struct plim_recorded_stream *stream,
                                   struct plim_recorded_point point, uint64_t *out, struct plim_error *err)
{
    player->run = (struct player_run){.stream = stream};
    enum plim_status st = prepare_sizes(player, point, err);
    if (!st)
        *out = plim_hash(PLIM_HASH_START, player->bytes.items, stream->sizes.count * sizeof(*player->bytes.items));
    return st;
}

enum plim_status plim_player_retime(struct plim_player *player,
                                    const struct plim_recorded_stream *stream,
                                    struct plim_recorded_point point, int64_t accumulation,
                                    struct plim_replay *replay, struct plim_error *err)
{
    player->run = (struct player_run){.stream = stream};
    enum plim_status st = prepare_sizes(player, point, err);
    if (!st) st = empty(player);
    return st ? st : fill_seconds(player, point, accumulation, replay, err);
}
