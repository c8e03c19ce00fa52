#include "steps.h"
#include "autotune/base/compare.h"
#include "leak.h"
#include "period.h"
#include "seen.h"
#include "token.h"
#include "weights.h"
#include <stdlib.h>
#include <string.h>

enum {
    KINDS = 16,
    TIMES = 64,
    PAUSE = 64, /* plain launches after which a burst has ended */
    OPTIMIZERS = 64,
};

struct burst {
    enum plim_steps_rule sign; /* strongest sign so far; BY_NOTHING: no burst */
    int pause;                 /* plain launches since its last sign */
    int single_updates;        /* launches that update one parameter each */
};

/* A sequence of consecutive launches. */
struct stretch {
    uint64_t length, calls, kind; /* `calls`: library calls */
    uint64_t places;              /* hash of the large blocks that were handed out; 0: none reported */
    int64_t held_bytes; /* the maximum */
    bool unsteady;      /* the peak grew, or memory was refused */
};

struct plim_steps {
    double (*clock)(void);
    enum plim_steps_rule rule;
    uint64_t launches;
    int64_t held_bytes, peak_bytes;

    /* `step` lasts from the end of the last step to the last burst, `tail` from there to now. Whether that burst ended
     * a step is decided when the next backward pass begins, by whether there was a forward pass in between. */
    struct stretch step, tail;
    struct burst burst;
    bool undecided;
    double burst_time;
    uint32_t bursts;
    int64_t keys;         /* distinct keys since the last burst */
    int64_t forward_keys; /* fewest keys of a forward pass; 0: none seen yet */
    int64_t most_keys;    /* most keys after a burst that did not end a step */
    int64_t first_keys;   /* keys before the first burst */
    uint64_t first_calls; /* library calls before the first burst */
    uint64_t longest;

    /* The completed steps. */
    bool changed; /* since plim_steps_changed() */
    int64_t steps, steady, alike;
    uint64_t length;
    uint64_t kinds[KINDS], places[KINDS];
    bool moves; /* the large blocks of the last step lay where no earlier step's did */
    double times[TIMES], time;
    struct plim_leak leak;

    struct plim_seen *key_table;
    struct plim_weights weights;
    /* Periods of launches distinguished by operands too, and by shape alone. The latter finds steps whose operands lie
     * elsewhere each time, such as weights that are not updated in place. */
    struct plim_period operands, shapes;
    bool expects_optimizer; /* an optimizer will report its steps */
    uint64_t optimizers[OPTIMIZERS]; /* those that reported since the last step */
    int optimizer_count;
};

struct plim_steps *plim_steps_create(double (*clock)(void))
{
    struct plim_steps *steps = calloc(1, sizeof(*steps));
    if (!steps) return NULL;
    steps->clock = clock;
    steps->key_table = plim_seen_create();
    bool is_whole = plim_weights_init(&steps->weights) && plim_period_init(&steps->operands) &&
                    plim_period_init(&steps->shapes);
    if (is_whole && steps->key_table) return steps;
    plim_steps_destroy(steps);
    return NULL;
}

void plim_steps_destroy(struct plim_steps *steps)
{
    if (!steps) return;
    free(steps->key_table);
    plim_weights_finish(&steps->weights);
    plim_period_finish(&steps->operands);
    plim_period_finish(&steps->shapes);
    free(steps);
}

/* --- recognising steps ------------------------------------------------------------------------ */

/* True if `value` is among the last KINDS values; otherwise adds it. */
static bool is_known(uint64_t last[KINDS], uint64_t value)
{
    for (int i = 0; i < KINDS; i++)
        if (last[i] == value) return true;
    memmove(&last[1], &last[0], (KINDS - 1) * sizeof(last[0]));
    last[0] = value;
    return false;
}

static void begin_stretch(struct plim_steps *steps, struct stretch *stretch)
{
    *stretch = (struct stretch){.held_bytes = steps->held_bytes};
}

/* Adds the launches since the last burst to the step. */
static void join_tail(struct plim_steps *steps)
{
    struct stretch *step = &steps->step, *tail = &steps->tail;
    step->kind = plim_token_more(step->kind, tail->kind);
    if (tail->places) step->places = plim_token_more(step->places, tail->places);
    step->length += tail->length;
    step->calls += tail->calls;
    step->unsteady |= tail->unsteady;
    if (tail->held_bytes > step->held_bytes) step->held_bytes = tail->held_bytes;
    begin_stretch(steps, tail);
}

static void end_step(struct plim_steps *steps)
{
    const struct stretch *step = &steps->step;
    if (step->length > steps->longest) steps->longest = step->length;
    double now = steps->burst_time;
    if (steps->steps > 0) steps->times[(steps->steps - 1) % TIMES] = now - steps->time;
    steps->time = now;
    steps->length = step->length;
    steps->alike = is_known(steps->kinds, step->kind) ? steps->alike + 1 : 0;
    steps->moves = step->places && !is_known(steps->places, step->places);
    steps->steady = step->unsteady || steps->steps == 0 ? 0 : steps->steady + 1;
    steps->steps++;
    steps->changed = true;
    plim_leak_sample(&steps->leak, steps->steps, steps->step.held_bytes);
    begin_stretch(steps, &steps->step);
    steps->most_keys = 0;
    steps->optimizer_count = 0;
}

/* True if a whole forward pass followed the last burst, rather than the rest of a backward pass. If addresses tell
 * nothing, the number of launches decides. */
static bool is_step(struct plim_steps *steps, int64_t expected_keys)
{
    enum { FEWEST = 4, SHARE = 2, PATIENCE = 4 };
    if (expected_keys < FEWEST) return 2 * steps->step.length >= steps->longest;
    if (SHARE * steps->keys >= expected_keys) return true;
    if (steps->keys > steps->most_keys) steps->most_keys = steps->keys;
    if (steps->step.calls < PATIENCE * steps->first_calls) return false;
    /* What was taken for a forward pass was work that the program did before training. */
    steps->forward_keys = steps->first_keys = steps->most_keys;
    return true;
}

/* A backward pass begins or continues. */
static void begin_backward(struct plim_steps *steps)
{
    if (!steps->forward_keys) steps->forward_keys = steps->keys;
    if (steps->undecided && is_step(steps, steps->forward_keys)) end_step(steps);
    steps->undecided = false;
}

/* Adopts a stronger sign than those before; what they counted as steps may have been micro-steps. */
static void adopt_rule(struct plim_steps *steps, enum plim_steps_rule rule)
{
    steps->rule = rule;
    steps->steps = steps->steady = steps->alike = 0;
    steps->leak = (struct plim_leak){0};
    steps->longest = steps->launches;
    steps->first_calls = steps->weights.calls;
    if (!steps->first_keys) steps->first_keys = steps->keys;
    memset(steps->kinds, 0, sizeof(steps->kinds));
    memset(steps->places, 0, sizeof(steps->places));
    steps->undecided = false;
}

/* Something begins that is not part of an optimizer. */
static void end_burst(struct plim_steps *steps)
{
    enum plim_steps_rule sign = steps->burst.sign;
    steps->burst = (struct burst){.sign = PLIM_STEPS_BY_NOTHING};
    bool is_sure = sign != PLIM_STEPS_BY_WEIGHTS || steps->weights.epoch_is_whole;
    if (sign == PLIM_STEPS_BY_NOTHING || sign < steps->rule || !is_sure) return;
    if (sign > steps->rule) adopt_rule(steps, sign);
    /* Two bursts with no backward pass in between are one, unless no kernel identifies backward passes. */
    if (steps->undecided && !steps->forward_keys && is_step(steps, steps->first_keys))
        end_step(steps);
    join_tail(steps);
    steps->undecided = true;
    steps->burst_time = steps->clock();
    steps->bursts++;
    steps->keys = 0;
}

static void record_sign(struct plim_steps *steps, enum plim_steps_rule sign)
{
    if (sign > steps->burst.sign) steps->burst.sign = sign;
    steps->burst.pause = 0;
}

/* `symbol`: the token including the operands, where they are known. */
static void count_launch(struct plim_steps *steps, uint64_t token, uint64_t symbol, bool is_backward)
{
    steps->launches++;
    steps->tail.length++;
    steps->tail.kind = plim_token_more(steps->tail.kind + 1, token);
    if (steps->rule >= PLIM_STEPS_BY_GRADIENTS) return;
    steps->changed |= plim_period_feed(&steps->operands, symbol, is_backward);
    if (!steps->expects_optimizer) steps->changed |= plim_period_feed(&steps->shapes, token, is_backward);
}

static void note_write(struct plim_steps *steps, uintptr_t at)
{
    if (plim_weights_write(&steps->weights, at)) record_sign(steps, PLIM_STEPS_BY_WEIGHTS);
}

static void note_key(struct plim_steps *steps, uint64_t key)
{
    struct plim_seen *entry = plim_seen_find(steps->key_table, key);
    uint32_t now = steps->bursts + 1;
    steps->keys += entry->when != now;
    entry->when = now;
}

/* --- events ----------------------------------------------------------------------------------- */

void plim_steps_in_place(struct plim_steps *steps, uintptr_t at)
{
    if (steps && plim_weights_write_in_place(&steps->weights, at)) record_sign(steps, PLIM_STEPS_BY_WEIGHTS);
}

void plim_steps_launch(struct plim_steps *steps, uint64_t token, enum plim_steps_class class,
                       const uintptr_t *written, size_t count)
{
    enum { ENOUGH_UPDATES = 4 };
    if (!steps) return;
    token = plim_token_more(token, 1);
    if (class == PLIM_STEPS_WORK || class == PLIM_STEPS_BACKWARD) end_burst(steps);
    if (class == PLIM_STEPS_BACKWARD) begin_backward(steps), plim_weights_end_row(&steps->weights);
    count_launch(steps, token, token, class == PLIM_STEPS_BACKWARD);
    for (size_t i = 0; i < count; i++) note_write(steps, written[i]);
    switch (class) {
    case PLIM_STEPS_PLAIN:
        if (steps->burst.sign && ++steps->burst.pause > PAUSE) end_burst(steps);
        break;
    case PLIM_STEPS_WORK:
    case PLIM_STEPS_BACKWARD: break;
    case PLIM_STEPS_GRADIENT: record_sign(steps, PLIM_STEPS_BY_GRADIENTS); break;
    case PLIM_STEPS_LIST: record_sign(steps, PLIM_STEPS_BY_LISTS); break;
    case PLIM_STEPS_ONE_UPDATE:
        if (++steps->burst.single_updates >= ENOUGH_UPDATES)
            record_sign(steps, PLIM_STEPS_BY_OPTIMIZER);
        break;
    case PLIM_STEPS_UPDATE: record_sign(steps, PLIM_STEPS_BY_OPTIMIZER); break;
    case PLIM_STEPS_WHOLE:
        record_sign(steps, PLIM_STEPS_BY_OPTIMIZER);
        end_burst(steps);
        end_step(steps);
        steps->undecided = false;
        break;
    }
}

void plim_steps_graph(struct plim_steps *steps, uint64_t graph, enum plim_steps_class class,
                      int64_t library_calls)
{
    enum { KEYS = 2 }; /* per library call: a matmul reads two operands */
    if (!steps) return;
    if (class == PLIM_STEPS_PLAIN && library_calls > 0) class = PLIM_STEPS_WORK;
    plim_steps_launch(steps, graph, class, NULL, 0);
    if (class == PLIM_STEPS_WHOLE) return;
    steps->keys += KEYS * library_calls;
    steps->tail.calls += (uint64_t)library_calls;
    steps->weights.calls += (uint64_t)library_calls;
}

void plim_steps_library(struct plim_steps *steps, uint64_t token, uint64_t operation,
                        const uintptr_t *read, size_t read_count, const uintptr_t *written,
                        size_t written_count)
{
    if (!steps) return;
    end_burst(steps);
    steps->tail.calls++;
    plim_weights_call(&steps->weights, steps->rule >= PLIM_STEPS_BY_WEIGHTS);
    token = plim_token_more(token, 2);
    uint64_t symbol = token;
    for (size_t i = 0; i < read_count; i++) {
        if (!read[i]) continue;
        uint64_t key = plim_token_more(plim_token_more(operation, i + 1), read[i]) | 1;
        steps->operands.knows_operands = true;
        symbol = plim_token_more(symbol, key);
        note_key(steps, key);
        plim_weights_read(&steps->weights, read[i], plim_token_more(operation, i + 1));
    }
    for (size_t i = 0; i < written_count; i++) plim_weights_result(&steps->weights, written[i]);
    count_launch(steps, token, symbol, false);
}

void plim_steps_expect_optimizer(struct plim_steps *steps)
{
    if (steps) steps->expects_optimizer = true;
}

static bool has_reported(const struct plim_steps *steps, uint64_t optimizer)
{
    for (int i = 0; i < steps->optimizer_count; i++)
        if (steps->optimizers[i] == optimizer) return true;
    return false;
}

void plim_steps_optimizer_stepped(struct plim_steps *steps, uint64_t optimizer)
{
    if (!steps) return;
    bool is_next_step = steps->rule == PLIM_STEPS_BY_REPORT && steps->tail.calls && has_reported(steps, optimizer);
    if (is_next_step) end_step(steps), steps->undecided = false;
    record_sign(steps, PLIM_STEPS_BY_REPORT);
    end_burst(steps);
    if (optimizer && !has_reported(steps, optimizer) && steps->optimizer_count < OPTIMIZERS)
        steps->optimizers[steps->optimizer_count++] = optimizer;
}

void plim_steps_finish(struct plim_steps *steps)
{
    if (!steps || !steps->undecided || steps->rule != PLIM_STEPS_BY_REPORT) return;
    end_step(steps);
    steps->undecided = false;
}

void plim_steps_block(struct plim_steps *steps, uintptr_t at, int64_t bytes)
{
    enum { SMALL = 1 << 20 };
    if (!steps || bytes <= SMALL) return;
    struct stretch *tail = &steps->tail;
    tail->places = plim_token_more(plim_token_more(tail->places, at), (uint64_t)bytes);
}

void plim_steps_copy(struct plim_steps *steps, uintptr_t to)
{
    if (steps) note_write(steps, to);
}

static void mark_unsteady(struct plim_steps *steps)
{
    steps->tail.unsteady = steps->changed = true;
    plim_period_mark_unsteady(&steps->operands);
    plim_period_mark_unsteady(&steps->shapes);
}

void plim_steps_set_held(struct plim_steps *steps, int64_t bytes)
{
    if (!steps) return;
    steps->held_bytes = bytes;
    if (bytes > steps->tail.held_bytes) steps->tail.held_bytes = bytes;
    if (bytes <= steps->peak_bytes) return;
    steps->peak_bytes = bytes;
    mark_unsteady(steps);
}

void plim_steps_refused(struct plim_steps *steps)
{
    if (steps) mark_unsteady(steps);
}

/* --- results ---------------------------------------------------------------------------------- */

static double median_seconds(const struct plim_steps *steps)
{
    double sorted[TIMES];
    size_t count = steps->steps > TIMES ? TIMES : steps->steps > 1 ? (size_t)steps->steps - 1 : 0;
    if (!count) return 0;
    memcpy(sorted, steps->times, count * sizeof(sorted[0]));
    qsort(sorted, count, sizeof(sorted[0]), plim_compare_double);
    return sorted[count / 2];
}

bool plim_steps_changed(struct plim_steps *steps)
{
    if (!steps || !steps->changed) return false;
    steps->changed = false;
    return true;
}

void plim_steps_get_state(const struct plim_steps *steps, struct plim_steps_state *out)
{
    *out = (struct plim_steps_state){.rule = PLIM_STEPS_BY_NOTHING};
    if (!steps) return;
    if (steps->rule == PLIM_STEPS_BY_NOTHING) {
        struct plim_steps_state by_shapes = *out;
        plim_period_get_state(&steps->operands, out);
        if (!steps->expects_optimizer) plim_period_get_state(&steps->shapes, &by_shapes);
        if (by_shapes.steps > out->steps) *out = by_shapes;
        return;
    }
    out->rule = steps->rule;
    out->steps = steps->steps;
    out->steady = steps->step.unsteady || steps->tail.unsteady ? 0 : steps->steady;
    out->alike = steps->alike;
    out->moves = steps->moves;
    out->launches = (int64_t)steps->length;
    out->seconds = median_seconds(steps);
    out->leaks = plim_leak_find(&steps->leak, &out->leak_bytes);
}
