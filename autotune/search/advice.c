#include "advice.h"
#include "question.h"
#include "space.h"
#include <inttypes.h>
#include <stdio.h>

struct adviser {
    const struct plim_question *question;
    struct plim_prober *prober;
    struct plim_advices *advices;
    struct plim_error *err;
};

/* Applies a change to the setting. Returns false if it does not apply to the setting's value. */
static bool apply(const struct adviser *a, const struct plim_change *change,
                  struct plim_setting *setting)
{
    int64_t *value = &setting->value[change->axis];
    if (*value < 0 || *value > 63 || !(change->from >> *value & 1)) return false;
    *value = change->to;
    plim_axes_normalize(&a->question->axes, setting);
    return true;
}

/* Finds out whether the advised setting fits for any number of steps, and how much memory it needs. *known is false if
 * it cannot run. */
static enum plim_status probe(struct adviser *a, struct plim_advice *advice, bool *known)
{
    const struct plim_sample *sample;
    const struct plim_cache_entry *entry;
    struct plim_setting setting = advice->setting;
    setting.accumulation = plim_runner_probed(a->prober->runner, setting.accumulation);
    enum plim_status st = plim_probe_need(a->prober, &setting, &entry, a->err);
    *known = !st && entry;
    if (!*known) return st;
    advice->trial = entry->trial;
    st = plim_probe_proof(a->prober, &setting, &sample, a->err);
    if (st) return st;
    advice->fits = sample->verdict == PLIM_OK;
    if (advice->fits) advice->trial = sample->trial;
    return PLIM_OK;
}

static enum plim_status append(struct adviser *a, const struct plim_advice *advice)
{
    if (PLIM_ARRAY_PUSH(&a->advices->list, *advice) != PLIM_OK) return plim_no_memory(a->err);
    return PLIM_OK;
}

static enum plim_status single_changes(struct adviser *a, const struct plim_setting *setting)
{
    for (size_t i = 0; i < a->question->change_count; i++) {
        const struct plim_change *change = &a->question->changes[i];
        struct plim_advice advice = {.setting = *setting};
        bool known;
        if (!apply(a, change, &advice.setting)) continue;
        snprintf(advice.change, sizeof(advice.change), "%s", change->text);
        enum plim_status st = probe(a, &advice, &known);
        if (!st && known) st = append(a, &advice);
        if (st) return st;
    }
    return PLIM_OK;
}

/* Returns change number `index` of a sequence, in which each needs less memory than the one before; false at its
 * end. */
typedef bool change_row(const struct adviser *a, const struct plim_setting *setting, int64_t index,
                        struct plim_advice *advice);

/* Returns the number of changes in a sequence and stores the last. */
static int64_t end_of_row(const struct adviser *a, const struct plim_setting *setting, change_row *row,
                          struct plim_advice *last)
{
    struct plim_advice advice;
    int64_t count = 0;
    while (row(a, setting, count, &advice)) *last = advice, count++;
    return count;
}

/* Appends the first change of a sequence that fits. Tries the last one first; if that does not fit, appends it. */
static enum plim_status first_of_row(struct adviser *a, const struct plim_setting *setting,
                                     change_row *row)
{
    struct plim_advice advice, last;
    int64_t count = end_of_row(a, setting, row, &last);
    bool known = false;
    enum plim_status st = count ? probe(a, &last, &known) : PLIM_OK;
    if (st || !known) return st;
    for (int64_t i = 0; last.fits && i + 1 < count; i++) {
        row(a, setting, i, &advice);
        st = probe(a, &advice, &known);
        if (st) return st;
        if (known && advice.fits) return append(a, &advice);
    }
    return append(a, &last);
}

/* The smallest micro-batch that may be run */
static int64_t first_batch(const struct adviser *a)
{
    return a->question->batch.first > 1 ? a->question->batch.first : 1;
}

/* A sequence of smaller micro-batches, with more micro-steps for the same effective batch. */
static bool smaller_batch(const struct adviser *a, const struct plim_setting *setting, int64_t index,
                          struct plim_advice *advice)
{
    int64_t samples = setting->micro_batch * setting->accumulation, first = first_batch(a);
    for (int64_t b = setting->micro_batch - 1; b >= first; b--) {
        if (samples % b || index-- > 0) continue;
        *advice = (struct plim_advice){.setting = *setting};
        advice->setting.micro_batch = b;
        advice->setting.accumulation = samples / b;
        snprintf(advice->change, sizeof(advice->change),
                 "micro-batch %" PRId64 ", accumulation %" PRId64, b, samples / b);
        return true;
    }
    return false;
}

/* A sequence of halved sequence lengths, down to an eighth and at least 64 tokens. */
static bool shorter_sequence(const struct adviser *a, const struct plim_setting *setting, int64_t index,
                             struct plim_advice *advice)
{
    int axis = a->question->axes.seq;
    int64_t seq = axis < 0 ? 0 : setting->value[axis] >> (index + 1);
    if (index > 2 || seq < 64) return false;
    *advice = (struct plim_advice){.setting = *setting};
    advice->setting.value[axis] = seq;
    snprintf(advice->change, sizeof(advice->change), "sequence %" PRId64, seq);
    return true;
}

/* Advises `setting` with a sharding over 2^`power` GPUs. The effective batch stays as close to the same as that number
 * of GPUs allows. */
static void spread_over(const struct adviser *a, const struct plim_setting *setting,
                        int64_t sharding, int power, struct plim_advice *advice)
{
    const struct plim_spread *spread = &a->question->spread;
    int64_t world = INT64_C(1) << power, before = setting->value[spread->world];
    int64_t samples = setting->micro_batch * setting->accumulation * before;
    *advice = (struct plim_advice){.setting = *setting};
    advice->setting.value[spread->sharding] = sharding;
    advice->setting.value[spread->world] = world;
    int64_t shared = samples / (world * setting->micro_batch);
    advice->setting.accumulation = shared > 0 ? shared : 1;
    int64_t effective = setting->micro_batch * advice->setting.accumulation * world;
    int used = snprintf(advice->change, sizeof(advice->change), "sharding %s over %" PRId64 " GPUs",
                        a->question->axes.axis[spread->sharding].names[sharding], world);
    if (effective != samples)
        snprintf(advice->change + used, sizeof(advice->change) - (size_t)used,
                 ", effective batch %" PRId64, effective);
}

enum { MOST = 6 }; /* 64 GPUs */

/* Appends sharding over the smallest power of two of GPUs with which it fits; over 2^MOST if it fits with none. */
static enum plim_status more_gpus(struct adviser *a, const struct plim_setting *setting)
{
    const struct plim_spread *spread = &a->question->spread;
    for (size_t i = 0; i < spread->count; i++) {
        struct plim_advice found = {0}, next;
        bool known = false;
        int least = 1, most = MOST + 1;
        while (INT64_C(1) << least < setting->value[spread->world]) least++;
        if (setting->value[spread->sharding] == spread->shardings[i]) least++;
        for (int power = MOST; least < most && power >= least; power = (least + most) / 2) {
            bool runs;
            spread_over(a, setting, spread->shardings[i], power, &next);
            enum plim_status st = probe(a, &next, &runs);
            if (st) return st;
            if (!runs) break;
            /* conservative: with less memory the allocator might cache less */
            if (next.trial.reserved_bytes + spread->reserve_bytes > a->prober->runner->budget_bytes)
                next.fits = false;
            if (!known || next.fits) found = next;
            known = true;
            if (!next.fits && power == MOST) break;
            if (next.fits) most = power;
            else least = power + 1;
        }
        if (known) return append(a, &found);
    }
    return PLIM_OK;
}

/* A combination of changes, each of another axis. */
struct stack {
    size_t count;
    const struct plim_change *changes[PLIM_CHANGES];
};

/* Adds a change, which replaces an earlier one of its axis. */
static void push_change(struct stack *stack, const struct plim_change *change)
{
    size_t i = 0;
    while (i < stack->count && stack->changes[i]->axis != change->axis) i++;
    stack->changes[i] = change;
    stack->count += i == stack->count;
}

/* smallest: a smaller micro-batch; 0: none */
static void describe(const struct stack *stack, int64_t smallest, char *text, size_t size)
{
    size_t used = 0;
    if (smallest) used += (size_t)snprintf(text, size, "micro-batch %lld", (long long)smallest);
    for (size_t i = 0; i < stack->count && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%s", used ? " + " : "", stack->changes[i]->text);
}

/* Returns the smallest micro-batch that may be run, if it is smaller than the setting's and divides it; otherwise 0. */
static int64_t smallest_batch(const struct adviser *a, const struct plim_setting *setting)
{
    int64_t first = first_batch(a);
    return setting->micro_batch > first && setting->micro_batch % first == 0 ? first : 0;
}

/* Appends the smallest micro-batch with as many changes, in order, as it takes to fit. */
static enum plim_status combination(struct adviser *a, const struct plim_setting *setting)
{
    struct plim_advice advice = {.setting = *setting};
    struct stack stack = {0};
    bool known = false;
    int64_t smallest = smallest_batch(a, setting);
    if (smallest) {
        advice.setting.micro_batch = smallest;
        advice.setting.accumulation = setting->micro_batch / smallest * setting->accumulation;
    }
    for (size_t i = 0; i < a->question->change_count && !advice.fits; i++) {
        const struct plim_change *change = &a->question->changes[i];
        struct plim_advice next = advice;
        struct stack more = stack;
        if (!change->combines || !apply(a, change, &next.setting)) continue;
        push_change(&more, change);
        describe(&more, smallest, next.change, sizeof(next.change));
        bool runs = true, is_single = more.count + (smallest > 0) < 2; /* single changes were tried before */
        if (!is_single) {
            enum plim_status st = probe(a, &next, &runs);
            if (st) return st;
        }
        if (!runs) continue;
        advice = next;
        stack = more;
        known = !is_single;
    }
    return known ? append(a, &advice) : PLIM_OK;
}

/* --- all advice ------------------------------------------------------------------------------- */

/* Announces the runs that are certain, whatever their results are. */
static void expect(struct adviser *a, const struct plim_setting *setting)
{
    struct plim_setting list[PLIM_CHANGES + 3];
    struct plim_advice last;
    size_t count = 0;
    if (end_of_row(a, setting, smaller_batch, &last)) list[count++] = last.setting;
    for (size_t i = 0; i < a->question->change_count; i++) {
        list[count] = *setting;
        count += apply(a, &a->question->changes[i], &list[count]);
    }
    if (end_of_row(a, setting, shorter_sequence, &last)) list[count++] = last.setting;
    if (a->question->spread.count) {
        spread_over(a, setting, a->question->spread.shardings[0], MOST, &last);
        list[count++] = last.setting;
    }
    for (size_t i = 0; i < count; i++)
        list[i].accumulation = plim_runner_probed(a->prober->runner, list[i].accumulation);
    plim_probe_expect_needs(a->prober, list, count);
}

static bool any_fits(const struct plim_advices *advices)
{
    for (size_t i = 0; i < advices->list.count; i++)
        if (advices->list.items[i].fits) return true;
    return false;
}

/* Moves advice that fits to the front; otherwise keeps the order. */
static void move_fitting_first(struct plim_advices *advices)
{
    struct plim_advice *list = advices->list.items;
    size_t front = 0;
    for (size_t i = 0; i < advices->list.count; i++) {
        if (!list[i].fits) continue;
        struct plim_advice found = list[i];
        memmove(&list[front + 1], &list[front], (i - front) * sizeof(list[0]));
        list[front++] = found;
    }
}

enum plim_status plim_advise(const struct plim_question *question, struct plim_prober *prober,
                             const struct plim_setting *setting, struct plim_advices *advices,
                             struct plim_error *err)
{
    struct adviser a = {.question = question, .prober = prober, .advices = advices, .err = err};
    if (!question->can_advise || prober->runner->budget_bytes <= 0) return PLIM_OK;
    expect(&a, setting);
    enum plim_status st = first_of_row(&a, setting, smaller_batch);
    if (!st) st = single_changes(&a, setting);
    if (!st) st = first_of_row(&a, setting, shorter_sequence);
    if (!st) st = more_gpus(&a, setting);
    if (!st && !any_fits(advices)) st = combination(&a, setting);
    move_fitting_first(advices);
    return st;
}

void plim_advices_finish(struct plim_advices *advices)
{
    if (advices) PLIM_ARRAY_FINISH(&advices->list);
}
