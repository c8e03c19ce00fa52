#include "batch.h"
#include <inttypes.h>

static bool is_exact(const struct plim_batch_rule *rule)
{
    return rule->request->effective_batch_tolerance <= 0;
}

static int64_t given_accumulation(const struct plim_batch_request *request, size_t phase)
{
    if (request->phase_count) return request->phases[phase].accumulation;
    return request->accumulation ? request->accumulation : 1;
}

static enum plim_status set_targets(struct plim_batch_rule *rule, struct plim_error *err)
{
    const struct plim_batch_request *request = rule->request;
    for (size_t i = 0; i < rule->phases; i++) {
        int64_t first = given_accumulation(request, 0), own = given_accumulation(request, i),
                scaled;
        if (__builtin_mul_overflow(request->effective_batch, own, &scaled) || scaled % first)
            return plim_fail(err, PLIM_SPEC,
                             "the effective batch of epoch %" PRId64 " would be %" PRId64
                             " x %" PRId64 " / %" PRId64 " samples, expected a whole number",
                             request->phases[i].epoch, request->effective_batch, own, first);
        rule->phase_target[i] = scaled / first;
        if (is_exact(rule) && rule->phase_target[i] % request->world)
            return plim_fail(err, PLIM_SPEC,
                             "an effective batch of %" PRId64 " cannot be split over %" PRId64
                             " GPUs, expected a "
                             "multiple (or an effective batch tolerance)",
                             rule->phase_target[i], request->world);
    }
    return PLIM_OK;
}

enum plim_status plim_batch_rule_init(struct plim_batch_rule *rule,
                                      const struct plim_batch_request *request,
                                      struct plim_error *err)
{
    *rule = (struct plim_batch_rule){.request = request,
                                     .phases = request->phase_count ? request->phase_count : 1};
    for (size_t i = 1; i < rule->phases; i++)
        if (given_accumulation(request, i) > given_accumulation(request, rule->leading))
            rule->leading = i;
    return request->effective_batch ? set_targets(rule, err) : PLIM_OK;
}

int64_t plim_batch_target(const struct plim_batch_rule *rule)
{
    return rule->phase_target[rule->leading];
}

static bool is_listed(const struct plim_batch_request *request, int64_t value)
{
    if (!request->listed_count) return true;
    for (size_t i = 0; i < request->listed_count; i++)
        if (request->listed[i] == value) return true;
    return false;
}

/* Computes the accumulation of one phase. Returns false if it misses the target. */
static bool phase_accumulation(const struct plim_batch_rule *rule, size_t phase,
                               int64_t micro_batch, int64_t *accumulation)
{
    const struct plim_batch_request *request = rule->request;
    int64_t target = rule->phase_target[phase], given = given_accumulation(request, phase);
    *accumulation = given;
    if (!target) return true;

    int64_t at_once = micro_batch * request->world; /* both bounded by the spec: no overflow */
    bool fixed = request->accumulation > 0 && !request->phase_count;
    if (!fixed) {
        *accumulation = target / at_once + (target % at_once >= at_once - target % at_once);
        if (*accumulation < 1) *accumulation = 1;
    }
    double deviation = (double)*accumulation * (double)at_once - (double)target;
    if (is_exact(rule)) return target % at_once == 0 && target / at_once == *accumulation;
    return (deviation < 0 ? -deviation : deviation) <=
           request->effective_batch_tolerance * (double)target;
}

bool plim_batch_allowed(const struct plim_batch_rule *rule, int64_t micro_batch,
                        struct plim_batch *out)
{
    bool allowed = is_listed(rule->request, micro_batch) && micro_batch >= rule->request->first;
    out->micro_batch = micro_batch;
    out->exact = true;
    for (size_t i = 0; i < rule->phases; i++) {
        int64_t *accumulation = &out->phase_accumulation[i], target = rule->phase_target[i];
        if (!phase_accumulation(rule, i, micro_batch, accumulation)) allowed = false;
        if (target && *accumulation * micro_batch * rule->request->world != target)
            out->exact = false;
    }
    out->accumulation = out->phase_accumulation[rule->leading];
    out->effective = micro_batch * out->accumulation * rule->request->world;
    return allowed;
}

bool plim_batch_is_exact(const struct plim_batch_rule *rule)
{
    return plim_batch_target(rule) && is_exact(rule);
}

/* Returns the smallest listed value greater than `from`; without a list, the next integer. */
static int64_t next_value(const struct plim_batch_request *request, int64_t from)
{
    int64_t next = INT64_MAX;
    if (!request->listed_count) return from + 1;
    for (size_t i = 0; i < request->listed_count; i++)
        if (request->listed[i] > from && request->listed[i] < next) next = request->listed[i];
    return next;
}

/* Returns the largest multiple of `multiple` up to `from`, in the list if there is one; 0 if there is none. */
static int64_t value_below(const struct plim_batch_request *request, int64_t from, int64_t multiple)
{
    int64_t below = 0;
    if (!request->listed_count) return from - from % multiple;
    for (size_t i = 0; i < request->listed_count; i++) {
        int64_t value = request->listed[i];
        if (value <= from && value > below && value % multiple == 0) below = value;
    }
    return below;
}

/* Returns the largest listed value up to `from`; if there is none, the smallest. */
static int64_t listed_below(const struct plim_batch_request *request, int64_t from)
{
    int64_t below = value_below(request, from, 1);
    return below ? below : next_value(request, 0);
}

int64_t plim_batch_tried(const struct plim_batch_rule *rule, int64_t micro_batch)
{
    if (micro_batch < rule->request->first) return rule->request->first;
    if (!rule->request->only_listed) return micro_batch;
    return listed_below(rule->request, micro_batch);
}

int64_t plim_batch_after(const struct plim_batch_rule *rule, int64_t micro_batch)
{
    int64_t next =
        rule->request->only_listed ? next_value(rule->request, micro_batch) : micro_batch + 1;
    return next <= plim_batch_limit(rule) ? next : 0;
}

int64_t plim_batch_exact(const struct plim_batch_rule *rule, int64_t from)
{
    struct plim_batch batch;
    while (from > 0 && !(plim_batch_allowed(rule, from, &batch) && batch.exact)) from--;
    return from;
}

int64_t plim_batch_limit(const struct plim_batch_rule *rule)
{
    int64_t limit = PLIM_MICRO_BATCH_MAX, target = plim_batch_target(rule);
    if (rule->request->last) limit = rule->request->last;
    if (rule->request->only_listed) limit = listed_below(rule->request, limit);
    if (target) {
        int64_t share = (int64_t)((double)target * (1 + rule->request->effective_batch_tolerance) /
                                  (double)rule->request->world);
        if (share < 1) share = 1;
        if (share < limit) limit = share;
    }
    return limit;
}

int64_t plim_batch_next(const struct plim_batch_rule *rule, int64_t micro_batch)
{
    struct plim_batch batch;
    int64_t limit = plim_batch_limit(rule);
    for (int64_t b = next_value(rule->request, micro_batch); b <= limit;
         b = next_value(rule->request, b))
        if (plim_batch_allowed(rule, b, &batch)) return b;
    return 0;
}

enum plim_status plim_batch_smallest(const struct plim_batch_rule *rule, int64_t *micro_batch, struct plim_error *err)
{
    int64_t target = plim_batch_target(rule), first = rule->request->first;
    *micro_batch = plim_batch_next(rule, 0);
    if (*micro_batch) return PLIM_OK;
    if (first > 1 && target)
        return plim_fail(err, PLIM_SPEC,
                         "no micro-batch that may be run, of which the smallest is %lld, leads to an effective batch "
                         "of %lld", (long long)first, (long long)target);
    if (first > 1)
        return plim_fail(err, PLIM_SPEC, "no micro-batch that was given may be run: the smallest is %lld",
                         (long long)first);
    if (!target) return plim_fail(err, PLIM_SPEC, "no micro-batch that was given may be run");
    return plim_fail(err, PLIM_SPEC, "no micro-batch that was given leads to an effective batch of %lld",
                     (long long)target);
}

int64_t plim_batch_below(const struct plim_batch_rule *rule, int64_t from, int64_t multiple)
{
    struct plim_batch batch;
    for (int64_t b = from; (b = value_below(rule->request, b, multiple)) > 0; b--)
        if (plim_batch_allowed(rule, b, &batch)) return b;
    return 0;
}
