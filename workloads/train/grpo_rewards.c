#include "grpo_rewards.h"
#include "measures.h"

/* Replaces *x, which is dropped, by `result`. */
static void replace(struct engine *e, struct tensor **x, struct tensor *result)
{
    tensor_drop(e, *x);
    *x = result;
}

/* x (n) as (groups, n / groups); named */
static struct tensor *grouped(struct engine *e, struct tensor *x, int64_t groups)
{
    return e->halted ? e->poison : tensor_keep(op_view(e, x, SHAPE(groups, tensor_elements(x) / groups)));
}

/* Returns the sums of each group of x (groups, n), (groups, 1); named. */
static struct tensor *sums_of(struct engine *e, struct tensor *x, enum plim_dtype dtype)
{
    return tensor_keep(op_reduce(e, x, 2, true, PLIM_BINARY_ADD, 1, dtype));
}

/* Returns the number of true elements in each group of booleans, int64; named. */
static struct tensor *count(struct engine *e, struct tensor *is)
{
    return sums_of(e, is, PLIM_I64);
}

/* torch.nanmean() of each group: nansum() divided by the number of non-NaN elements; named. There is no NaN here. */
static struct tensor *nanmean(struct engine *e, struct tensor *x)
{
    struct tensor *is_number = tensor_keep(op_compare(e, PLIM_BINARY_NE, x, x));
    if (!e->halted) op_unary_(e, PLIM_UNARY_NOT, is_number);
    struct tensor *numbers = count(e, is_number);
    tensor_drop(e, is_number);
    struct tensor *sum = sums_of(e, x, PLIM_F32), *mean = tensor_keep(op_div(e, sum, numbers));
    tensor_drop_all(e, sum, numbers);
    return mean;
}

/* nanstd() of trainer/utils.py of each group; named */
static struct tensor *nanstd(struct engine *e, struct tensor *x)
{
    struct tensor *mean = nanmean(e, x), *square = tensor_keep(op_sub(e, x, mean));
    replace(e, &square, tensor_keep(op_pow_scalar(e, square, 2)));
    struct tensor *variance = nanmean(e, square);
    tensor_drop(e, square);
    struct tensor *is_number = tensor_keep(op_compare(e, PLIM_BINARY_NE, x, x));
    replace(e, &is_number, tensor_keep(op_unary(e, is_number, PLIM_UNARY_NOT)));
    struct tensor *numbers = count(e, is_number);
    tensor_drop(e, is_number);
    struct tensor *less = tensor_keep(op_add_scalar(e, numbers, -1));
    struct tensor *correction = measures_quotient(e, numbers, less);
    tensor_drop(e, less);
    struct tensor *is_several = tensor_keep(op_compare_scalar(e, PLIM_BINARY_GT, numbers, 1));
    struct tensor *none = tensor_keep(op_full_like(e, correction, 0)); /* NaN there, which finally becomes 0 */
    replace(e, &correction, tensor_keep(op_where(e, is_several, correction, none, PLIM_F32, 0, 0)));
    tensor_drop_all(e, is_several, none);
    if (!e->halted) op_binary_(e, PLIM_BINARY_MUL, variance, correction);
    struct tensor *deviation = tensor_keep(op_pow_scalar(e, variance, 0.5));
    tensor_drop_all(e, mean, variance, numbers, correction);
    return deviation;
}

/* x (groups, 1), taken, repeated for each row of a group, (n); named */
static struct tensor *repeated(struct engine *e, struct tensor *x, int64_t n)
{
    if (e->halted) return x;
    struct tensor *wide = tensor_keep(op_repeat_each(e, x, 1, n / tensor_elements(x)));
    tensor_drop(e, x);
    struct tensor *flat = tensor_keep(op_view(e, wide, SHAPE(n)));
    tensor_drop(e, wide);
    return flat;
}

/* (rewards * weights.to(device)).nansum(dim=1) of one function with weight 1, (n); named. */
static struct tensor *weighted(struct engine *e, struct tensor *rewards)
{
    struct tensor *product = tensor_keep(op_full(e, PLIM_F32, SHAPE(1), 1));
    replace(e, &product, tensor_keep(op_mul(e, rewards, product)));
    struct tensor *column = grouped(e, product, e->halted ? 1 : tensor_elements(product));
    struct tensor *sums = tensor_keep(op_reduce(e, column, 2, false, PLIM_BINARY_ADD, 1, PLIM_F32));
    tensor_drop_all(e, column, product);
    return sums;
}

/* torch.isnan(rewards_per_func).all(dim=1), (n); named */
static struct tensor *are_nan(struct engine *e, struct tensor *rewards)
{
    struct tensor *is_nan = tensor_keep(op_compare(e, PLIM_BINARY_NE, rewards, rewards));
    replace(e, &is_nan, tensor_keep(op_clone(e, is_nan))); /* of one function */
    return is_nan;
}

/* _calculate_rewards() of one function: random rewards between -1 and 1. */
static struct tensor *calculate(struct engine *e, int64_t own, int64_t world)
{
    static const uint64_t SEED = 1;
    struct tensor *rewards = tensor_keep(op_full(e, PLIM_F32, SHAPE(own), 0));
    struct tensor *given = tensor_keep(tensor_empty(e, PLIM_F32, SHAPE(own)));
    op_random_(e, given, 1, SEED);
    if (!e->halted) op_copy_(e, rewards, given);
    tensor_drop(e, given);
    struct tensor *is_nan = are_nan(e, rewards);
    struct tensor *is_any = tensor_keep(op_reduce(e, is_nan, 1, false, PLIM_BINARY_MAX, 1, PLIM_BOOL));
    engine_item(e, is_any);
    tensor_drop_all(e, is_nan, is_any);
    if (world > 1) replace(e, &rewards, measures_gather(e, rewards, world));
    return rewards;
}

static void read_item(struct engine *e, struct tensor *number)
{
    engine_item(e, number);
    tensor_drop(e, number);
}

/* nanmean(x).item() and nanstd(x).item() */
static void read_mean_and_std(struct engine *e, struct tensor *x)
{
    struct tensor *all = grouped(e, x, 1);
    read_item(e, nanmean(e, all));
    read_item(e, nanstd(e, all));
    tensor_drop(e, all);
}

struct tensor *grpo_rewards_compare(struct engine *e, int64_t own, int64_t world, int64_t group,
                                    struct grpo_rewards *r)
{
    int64_t rows = own * world, groups = rows % group ? 1 : rows / group; /* a search also tries other numbers */
    if (e->halted) return NULL;
    *r = (struct grpo_rewards){.given = calculate(e, own, world)};
    r->unscorable = are_nan(e, r->given);
    r->sums = weighted(e, r->given);
    struct tensor *of_groups = grouped(e, r->sums, groups);
    r->means = repeated(e, nanmean(e, of_groups), rows);
    r->deviations = repeated(e, nanstd(e, of_groups), rows);
    tensor_drop(e, of_groups);
    struct tensor *difference = tensor_keep(op_sub(e, r->sums, r->means));
    struct tensor *divisor = tensor_keep(op_add_scalar(e, r->deviations, 1e-4));
    struct tensor *advantages = tensor_keep(op_div(e, difference, divisor));
    tensor_drop_all(e, divisor, difference);
    struct tensor *zeros = tensor_keep(op_full_like(e, r->deviations, 0));
    r->is_zero = tensor_keep(op_compare(e, PLIM_BINARY_EQ, r->deviations, zeros)); /* isclose() */
    tensor_drop(e, zeros);
    replace(e, &advantages, tensor_keep(op_clone(e, advantages))); /* nan_to_num() of numbers */
    r->all_advantages = tensor_keep(op_clone(e, advantages));
    read_mean_and_std(e, r->given);
    replace(e, &r->sums, weighted(e, r->given));
    read_mean_and_std(e, r->sums);
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
