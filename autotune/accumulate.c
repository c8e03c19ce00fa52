#include "accumulate.h"
#include <inttypes.h>

static bool is_exact(const struct plim_batch_rule *rule)
{
    return rule->spec->effective_batch_tolerance <= 0;
}

static int64_t given_accumulation(const struct plim_spec *spec, size_t phase)
{
    if (spec->schedule_count) return spec->schedule[phase].accumulation;
    return spec->accumulation ? spec->accumulation : 1;
}

static enum plim_status set_targets(struct plim_batch_rule *rule, struct plim_error *err)
{
    const struct plim_spec *spec = rule->spec;
    for (size_t i = 0; i < rule->phases; i++) {
        int64_t first = given_accumulation(spec, 0), own = given_accumulation(spec, i), scaled;
        if (__builtin_mul_overflow(spec->effective_batch, own, &scaled) || scaled % first)
            return plim_fail(err, PLIM_SPEC,
                             "the effective batch of epoch %" PRId64 " would be %" PRId64
                             " x %" PRId64 " / %" PRId64 " samples, expected a whole number",
                             spec->schedule[i].epoch, spec->effective_batch, own, first);
        rule->phase_target[i] = scaled / first;
        if (is_exact(rule) && rule->phase_target[i] % spec->world)
            return plim_fail(err, PLIM_SPEC,
                             "an effective batch of %" PRId64 " cannot be split over %" PRId64
                             " GPUs, expected a "
                             "multiple (or an effective batch tolerance)",
                             rule->phase_target[i], spec->world);
    }
    return PLIM_OK;
}

enum plim_status plim_batch_rule_init(struct plim_batch_rule *rule, const struct plim_spec *spec,
                                      struct plim_error *err)
{
    *rule = (struct plim_batch_rule){.spec = spec,
                                     .phases = spec->schedule_count ? spec->schedule_count : 1};
    for (size_t i = 1; i < rule->phases; i++)
        if (given_accumulation(spec, i) > given_accumulation(spec, rule->leading))
            rule->leading = i;
    return spec->effective_batch ? set_targets(rule, err) : PLIM_OK;
}

int64_t plim_batch_target(const struct plim_batch_rule *rule)
{
    return rule->phase_target[rule->leading];
}

static bool in_list(const struct plim_int_axis *axis, int64_t value)
{
    if (!axis->count) return true;
    for (size_t i = 0; i < axis->count; i++)
        if (axis->values[i] == value) return true;
    return false;
}

/* The accumulation of one phase, and whether it keeps to the rule. */
static bool phase_accumulation(const struct plim_batch_rule *rule, size_t phase,
                               int64_t micro_batch, int64_t *accumulation)
{
    const struct plim_spec *spec = rule->spec;
    int64_t target = rule->phase_target[phase], given = given_accumulation(spec, phase);
    *accumulation = given;
    if (!target) return true;

    int64_t at_once = micro_batch * spec->world; /* both bounded by the spec: no overflow */
    bool fixed = spec->accumulation > 0 && !spec->schedule_count;
    if (!fixed) {
        *accumulation = target / at_once + (target % at_once >= at_once - target % at_once);
        if (*accumulation < 1) *accumulation = 1;
    }
    double deviation = (double)*accumulation * (double)at_once - (double)target;
    if (is_exact(rule)) return target % at_once == 0 && target / at_once == *accumulation;
    return (deviation < 0 ? -deviation : deviation) <=
           spec->effective_batch_tolerance * (double)target;
}

bool plim_batch_allowed(const struct plim_batch_rule *rule, int64_t micro_batch,
                        struct plim_batch *out)
{
    bool allowed = in_list(&rule->spec->micro_batch, micro_batch) &&
                   micro_batch >= rule->spec->micro_batch_first;
    out->micro_batch = micro_batch;
    for (size_t i = 0; i < rule->phases; i++)
        if (!phase_accumulation(rule, i, micro_batch, &out->phase_accumulation[i])) allowed = false;
    out->accumulation = out->phase_accumulation[rule->leading];
    out->effective = micro_batch * out->accumulation * rule->spec->world;
    return allowed;
}

/* The smallest value of a list beyond `from`, or the next integer where there is no list. */
static int64_t next_value(const struct plim_int_axis *axis, int64_t from)
{
    int64_t next = INT64_MAX;
    if (!axis->count) return from + 1;
    for (size_t i = 0; i < axis->count; i++)
        if (axis->values[i] > from && axis->values[i] < next) next = axis->values[i];
    return next;
}

/* The largest value of a list up to `from`; the smallest of all where none is. */
static int64_t listed_below(const struct plim_int_axis *axis, int64_t from)
{
    int64_t below = 0, smallest = INT64_MAX;
    for (size_t i = 0; i < axis->count; i++) {
        if (axis->values[i] <= from && axis->values[i] > below) below = axis->values[i];
        if (axis->values[i] < smallest) smallest = axis->values[i];
    }
    return below ? below : smallest;
}

int64_t plim_batch_tried(const struct plim_batch_rule *rule, int64_t micro_batch)
{
    if (micro_batch < rule->spec->micro_batch_first) return rule->spec->micro_batch_first;
    if (!rule->spec->micro_batch_listed) return micro_batch;
    return listed_below(&rule->spec->micro_batch, micro_batch);
}

int64_t plim_batch_after(const struct plim_batch_rule *rule, int64_t micro_batch)
{
    int64_t next = rule->spec->micro_batch_listed
                       ? next_value(&rule->spec->micro_batch, micro_batch)
                       : micro_batch + 1;
    return next <= plim_batch_limit(rule) ? next : 0;
}

int64_t plim_batch_limit(const struct plim_batch_rule *rule)
{
    int64_t limit = PLIM_MICRO_BATCH_MAX, target = plim_batch_target(rule);
    if (rule->spec->micro_batch_last) limit = rule->spec->micro_batch_last;
    if (rule->spec->micro_batch_listed) limit = listed_below(&rule->spec->micro_batch, limit);
    if (target) {
        int64_t share = (int64_t)((double)target * (1 + rule->spec->effective_batch_tolerance)
                                  / (double)rule->spec->world);
        if (share < 1) share = 1;
        if (share < limit) limit = share;
    }
    return limit;
}

int64_t plim_batch_next(const struct plim_batch_rule *rule, int64_t micro_batch)
{
    struct plim_batch batch;
    const struct plim_int_axis *list = &rule->spec->micro_batch;
    int64_t limit = plim_batch_limit(rule);
    for (int64_t b = next_value(list, micro_batch); b <= limit; b = next_value(list, b))
        if (plim_batch_allowed(rule, b, &batch)) return b;
    return 0;
}

int64_t plim_batch_below(const struct plim_batch_rule *rule, int64_t from, int64_t multiple)
{
    struct plim_batch batch;
    for (int64_t b = from - from % multiple; b > 0; b -= multiple)
        if (plim_batch_allowed(rule, b, &batch)) return b;
    return 0;
}
