#include "grpo_rewards.h"

/* A new tensor (n), named */
static struct tensor *make(struct engine *e, enum plim_dtype dtype, int64_t n)
{
    return tensor_keep(tensor_empty(e, dtype, 1, &n));
}

/* A function's result in the place of its operand */
static void replace(struct engine *e, struct tensor **x, struct tensor *result)
{
    tensor_drop(e, *x);
    *x = result;
}

/* A sum of booleans casts them: of n to m; named */
static struct tensor *count(struct engine *e, int64_t n, int64_t m)
{
    struct tensor *sum = make(e, PLIM_I64, m), *wide = make(e, PLIM_I64, n);
    tensor_drop(e, wide);
    return sum;
}

/* torch.nanmean(): nansum() over how many are numbers; from n to m; named */
static struct tensor *nanmean(struct engine *e, int64_t n, int64_t m)
{
    struct tensor *is_number = make(e, PLIM_BOOL, n), *numbers = count(e, n, m);
    tensor_drop(e, is_number);
    struct tensor *sum = make(e, PLIM_F32, m), *mean = make(e, PLIM_F32, m);
    tensor_drop_all(e, sum, numbers);
    return mean;
}

/* nanstd() of trainer/utils.py, from n to m; named */
static struct tensor *nanstd(struct engine *e, int64_t n, int64_t m)
{
    struct tensor *mean = nanmean(e, n, m), *square = make(e, PLIM_F32, n);
    replace(e, &square, make(e, PLIM_F32, n));
    struct tensor *variance = nanmean(e, n, m);
    tensor_drop(e, square);
    struct tensor *is_number = make(e, PLIM_BOOL, n);
    replace(e, &is_number, make(e, PLIM_BOOL, n));
    struct tensor *numbers = count(e, n, m);
    tensor_drop(e, is_number);
    struct tensor *less = make(e, PLIM_I64, m), *correction = make(e, PLIM_F32, m);
    tensor_drop(e, less);
    struct tensor *is_several = make(e, PLIM_BOOL, m), *nan = make(e, PLIM_F32, m);
    replace(e, &correction, make(e, PLIM_F32, m));
    tensor_drop_all(e, is_several, nan);
    struct tensor *deviation = make(e, PLIM_F32, m);
    tensor_drop_all(e, mean, variance, numbers, correction);
    return deviation;
}

/* (rewards * weights.to(device)).nansum(dim=1), (n); named */
static struct tensor *weighted(struct engine *e, int64_t n)
{
    struct tensor *product = make(e, PLIM_F32, 1);
    replace(e, &product, make(e, PLIM_F32, n));
    struct tensor *sums = make(e, PLIM_F32, n);
    tensor_drop(e, product);
    return sums;
}

/* _calculate_rewards() */
static struct tensor *calculate(struct engine *e, int64_t own, int64_t world)
{
    struct tensor *rewards = make(e, PLIM_F32, own);
    tensor_drop(e, make(e, PLIM_F32, own)); /* what the function returned */
    struct tensor *is_nan = make(e, PLIM_BOOL, own);
    replace(e, &is_nan, make(e, PLIM_BOOL, own)); /* isnan().all(dim=1).any() */
    struct tensor *is_any = make(e, PLIM_BOOL, 1);
    tensor_drop_all(e, is_nan, is_any);
    if (world > 1) replace(e, &rewards, make(e, PLIM_F32, own * world));
    return rewards;
}

static void tell(struct engine *e, struct tensor *number)
{
    engine_item(e, number);
    tensor_drop(e, number);
}

struct tensor *grpo_rewards_compare(struct engine *e, int64_t own, int64_t world, int64_t group,
                                    struct grpo_rewards *r)
{
    int64_t rows = own * world, groups = rows / group > 0 ? rows / group : 1;
    *r = (struct grpo_rewards){.given = calculate(e, own, world)};
    struct tensor *is_nan = make(e, PLIM_BOOL, rows);
    r->unscorable = make(e, PLIM_BOOL, rows);
    tensor_drop(e, is_nan);
    r->sums = weighted(e, rows);
    r->means = nanmean(e, rows, groups);
    replace(e, &r->means, make(e, PLIM_F32, rows)); /* repeat_interleave() */
    r->deviations = nanstd(e, rows, groups);
    replace(e, &r->deviations, make(e, PLIM_F32, rows));
    struct tensor *difference = make(e, PLIM_F32, rows), *divisor = make(e, PLIM_F32, rows);
    struct tensor *advantages = make(e, PLIM_F32, rows);
    tensor_drop_all(e, divisor, difference);
    struct tensor *zeros = make(e, PLIM_F32, rows);
    r->is_zero = make(e, PLIM_BOOL, rows); /* isclose() */
    tensor_drop(e, zeros);
    replace(e, &advantages, make(e, PLIM_F32, rows)); /* nan_to_num() */
    r->all_advantages = make(e, PLIM_F32, rows);
    tell(e, nanmean(e, rows, 1));
    tell(e, nanstd(e, rows, 1));
    replace(e, &r->sums, weighted(e, rows));
    tell(e, nanmean(e, rows, 1));
    tell(e, nanstd(e, rows, 1));
    struct tensor *part = e->halted ? NULL : tensor_hold(op_slice(e, advantages, 0, 0, own));
    tensor_drop(e, advantages);
    return part;
}

void grpo_rewards_drop(struct engine *e, struct grpo_rewards *r)
{
    tensor_drop_all(e, r->given, r->unscorable, r->sums, r->means, r->deviations, r->is_zero,
                    r->all_advantages);
    *r = (struct grpo_rewards){0};
}
