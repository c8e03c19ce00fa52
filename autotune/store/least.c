#include "least.h"
#include <string.h>

/* True if two settings have the same values along every axis, and the same sequence length. */
static bool same_values(const struct plim_result_setting *a, const struct plim_result_setting *b)
{
    if (a->seq != b->seq || a->value_count != b->value_count) return false;
    for (size_t i = 0; i < a->value_count; i++)
        if (strcmp(plim_result_value(b, a->values[i].name), a->values[i].text) != 0) return false;
    return true;
}

/* Returns the best choice of a GPU with these values; NULL if none that fits is known. */
static const struct plim_result_choice *reach(const struct plim_result *result,
                                              const struct plim_result_setting *values)
{
    if (same_values(&result->choice.setting, values)) return &result->choice;
    for (size_t i = 0; i < result->points.count; i++) {
        const struct plim_result_choice *best = &result->points.items[i].best;
        if (best->present && same_values(&best->setting, values)) return best;
    }
    return NULL;
}

/* A common setting with given values. */
struct candidate {
    const struct plim_result_choice
        *choice; /* the one with the smallest micro-batch; NULL: it does not fit on all */
    size_t from;
    double slowest; /* the lowest plim_result_rate() of all; 0: not known */
};

static struct candidate examine(const struct plim_result *const *results, size_t count,
                                const struct plim_result_setting *values)
{
    struct candidate c = {0};
    for (size_t i = 0; i < count; i++) {
        const struct plim_result_choice *one = reach(results[i], values);
        if (!one) return (struct candidate){0};
        if (!c.choice || one->setting.micro_batch < c.choice->setting.micro_batch) {
            c.choice = one;
            c.from = i;
        }
        if (!i || plim_result_rate(one) < c.slowest) c.slowest = plim_result_rate(one);
    }
    return c;
}

static bool is_better(const struct candidate *a, const struct candidate *b)
{
    if (!b->choice) return a->choice != NULL;
    if (!a->choice) return false;
    if (a->slowest != b->slowest) return a->slowest > b->slowest;
    return a->choice->setting.micro_batch > b->choice->setting.micro_batch;
}

enum plim_status plim_store_least(const struct plim_result *const *results, size_t count,
                                  struct plim_result_choice *choice, size_t *from,
                                  struct plim_error *err)
{
    struct candidate best = {0};
    for (size_t i = 0; i < count; i++) {
        struct candidate c = examine(results, count, &results[i]->choice.setting);
        if (is_better(&c, &best)) best = c;
    }
    if (!best.choice)
        return plim_fail(
            err, PLIM_NOFIT,
            "no one setting is known to fit on all %zu GPUs (--per-rank: each its own)", count);
    *choice = *best.choice;
    *from = best.from;
    return PLIM_OK;
}
