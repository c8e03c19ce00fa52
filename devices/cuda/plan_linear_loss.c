/* Losses of a linear layer's logits, only on tensor cores. */
#include "kernels/args_linear_loss.h"
#include "plan_rows.h"

enum { TILE = PLIM_LINEAR_LOSS_TILE, COLUMNS = PLIM_LINEAR_LOSS_COLUMNS };
enum { WAVES = 4, BLOCKS_OF_MULTIPROCESSOR = 2, WHOLE_BYTES = 16 };

static int64_t divide_up(int64_t n, int64_t by)
{
    return (n + by - 1) / by;
}

/* Checks that an array is contiguous, and has this type and number of elements; NULL: absent. */
static enum plim_status check(const struct plim_array *a, enum plim_dtype dtype, int64_t elements)
{
    if (!a) return PLIM_OK;
    if (plim_array_elements(a) != elements) return PLIM_INVALID;
    return a->dtype == (uint8_t)dtype && plim_cuda_plan_is_contiguous(a) ? PLIM_OK : PLIM_UNSUPPORTED;
}

/* True if rows are multiples of 16 bytes. */
static bool is_whole(const struct plim_array *a)
{
    return !a || (a->data % WHOLE_BYTES == 0 && a->shape[1] * plim_dtype_size(a->dtype) % WHOLE_BYTES == 0);
}

static const char *const kernels[][2] = {{"linear_lse_bf16", "linear_lse_fp16"},
                                         {"linear_lse_backward_bf16", "linear_lse_backward_fp16"}};

struct operands {
    const struct plim_array *x, *weight, *targets, *places, *bias; /* targets and bias may be NULL */
};

static enum plim_status describe(struct plim_linear_head_args *head, const struct plim_op *op,
                                 const struct operands *a)
{
    enum plim_status st;
    if (a->x->ndim != 2 || a->weight->ndim != 2 || a->places->ndim != 1) return PLIM_INVALID;
    *head = (struct plim_linear_head_args){.x = a->x->data,
                                           .weight = a->weight->data,
                                           .places = a->places->data,
                                           .targets = a->targets ? a->targets->data : 0,
                                           .bias = plim_cuda_plan_flat(a->bias),
                                           .rows = a->x->shape[0],
                                           .classes = a->weight->shape[0],
                                           .width = a->weight->shape[1],
                                           .count = a->places->shape[0],
                                           .cap = (float)op->softcap,
                                           .shift = op->dim,
                                           .dtype = a->x->dtype,
                                           .whole = is_whole(a->x) && is_whole(a->weight)};
    enum plim_dtype dtype = (enum plim_dtype)a->x->dtype;
    if (head->width < 1 || a->x->shape[1] != head->width) return PLIM_INVALID;
    PLIM_TRY(check(a->x, dtype, head->rows * head->width));
    PLIM_TRY(check(a->weight, dtype, head->classes * head->width));
    PLIM_TRY(check(a->places, PLIM_I64, head->count));
    PLIM_TRY(check(a->targets, PLIM_I64, head->rows));
    if (a->bias) PLIM_TRY(check(a->bias, (enum plim_dtype)a->bias->dtype, head->classes));
    if (a->bias && !plim_dtype_is_float(a->bias->dtype)) st = PLIM_UNSUPPORTED;
    bool fits = head->rows <= INT32_MAX && head->classes <= INT32_MAX && head->width <= INT32_MAX - COLUMNS;
    if ((dtype != PLIM_BF16 && dtype != PLIM_F16) || !fits) st = PLIM_UNSUPPORTED;
out:
    return st;
}

/* True if the scratch has a counter for each turn. */
static bool has_turns(const struct plim_op *op, int i, int64_t turns)
{
    const struct plim_array *a = i < op->n_scratch ? op->scratch[i] : NULL;
    return a && plim_array_bytes(a) >= turns * (int64_t)sizeof(int32_t);
}

static enum plim_status launch(const struct plim_cuda_plan *plan, const char *kernel, int64_t blocks, const void *args,
                               size_t args_bytes)
{
    if (blocks > INT32_MAX) return PLIM_UNSUPPORTED;
    const struct plim_cuda_launch launch = {.kernel = kernel,
                                            .grid = {(uint32_t)blocks, 1, 1},
                                            .block = {PLIM_LINEAR_LOSS_THREADS, 1, 1},
                                            .shared_bytes = PLIM_LINEAR_LOSS_SHARED,
                                            .args = args,
                                            .args_bytes = args_bytes};
    return plan->emit(plan->user, &launch);
}

/* --- forward ---------------------------------------------------------------------------------- */

/* Returns the number of tiles per block such that there are a few waves of blocks, so that the last wave is a small
 * part: each block processes as many tiles of classes. */
static int64_t tiles_of_block(const struct plim_cuda_plan *plan, int64_t tiles_of_places, int64_t tiles_of_classes)
{
    int64_t blocks = (int64_t)plim_cuda_plan_multiprocessors(plan) * BLOCKS_OF_MULTIPROCESSOR * WAVES;
    return divide_up(tiles_of_classes, divide_up(blocks, tiles_of_places));
}

static enum plim_status finish_means(const struct plim_cuda_plan *plan, const struct plim_linear_lse_args *args)
{
    const struct plim_linear_means_args means = {.means = args->means, .classes = (uint64_t)args->head.classes};
    int64_t blocks = plim_cuda_plan_blocks(plan, args->head.classes, PLIM_LINEAR_LOSS_THREADS);
    return plim_cuda_plan_launch(plan, "linear_means", blocks, PLIM_LINEAR_LOSS_THREADS, &means, sizeof means);
}

enum plim_status plim_cuda_plan_linear_lse(const struct plim_cuda_plan *plan, const struct plim_op *op)
{
    const struct plim_array *lse = op->out[0], *means = op->n_out > 1 ? op->out[1] : NULL;
    const struct operands operands = {
        .x = op->in[0], .weight = op->in[1], .places = op->in[2], .bias = op->n_in > 3 ? op->in[3] : NULL};
    struct plim_linear_lse_args args = {.lse = lse->data, .means = means ? means->data : 0};
    enum plim_status st;
    PLIM_TRY(describe(&args.head, op, &operands));
    PLIM_TRY(check(lse, PLIM_F32, args.head.count));
    PLIM_TRY(check(means, PLIM_F32, args.head.classes));
    if (plan->info->compute_capability < PLIM_LINEAR_LOSS_CAPABILITY) return PLIM_UNSUPPORTED;
    if (args.head.count == 0 || args.head.classes == 0) return PLIM_OK;
    int64_t places = divide_up(args.head.count, TILE), classes = divide_up(args.head.classes, TILE),
            tiles = tiles_of_block(plan, places, classes);
    if (!has_turns(op, 0, places)) return PLIM_UNSUPPORTED;
    args.turns = op->scratch[0]->data;
    args.classes_of_block = tiles * TILE;
    PLIM_TRY(launch(plan, kernels[0][args.head.dtype == PLIM_F16], places * divide_up(classes, tiles), &args,
                    sizeof args));
    if (means) st = finish_means(plan, &args);
out:
    return st;
}

enum plim_status plim_cuda_plan_linear_target(const struct plim_cuda_plan *plan, const struct plim_op *op)
{
    const struct operands operands = {.x = op->in[0],
                                      .weight = op->in[1],
                                      .targets = op->in[2],
                                      .places = op->in[3],
                                      .bias = op->n_in > 4 ? op->in[4] : NULL};
    struct plim_linear_target_args args = {.out = op->out[0]->data};
    enum plim_status st;
    PLIM_TRY(describe(&args.head, op, &operands));
    PLIM_TRY(check(op->out[0], PLIM_F32, args.head.count));
    if (args.head.count == 0) return PLIM_OK;
    int64_t threads = args.head.count * PLIM_CUDA_PLAN_WARP;
    st = plim_cuda_plan_launch(plan, "linear_target", plim_cuda_plan_blocks(plan, threads, PLIM_LINEAR_TARGET_THREADS),
                               PLIM_LINEAR_TARGET_THREADS, &args, sizeof args);
out:
    return st;
}

/* --- backward --------------------------------------------------------------------------------- */

/* Describes the gradients, and the counters of turns of the blocks that add to them. */
static enum plim_status describe_gradients(struct plim_linear_lse_backward_args *args, const struct plim_op *op)
{
    const struct plim_array *dx = op->n_out > 0 ? op->out[0] : NULL, *dweight = op->n_out > 1 ? op->out[1] : NULL,
                            *dbias = op->n_out > 2 ? op->out[2] : NULL;
    struct plim_linear_head_args *head = &args->head;
    enum plim_dtype dtype = (enum plim_dtype)head->dtype;
    int64_t steps = divide_up(head->width, COLUMNS);
    enum plim_status st;
    PLIM_TRY(check(dx, dtype, head->rows * head->width));
    PLIM_TRY(check(dweight, dtype, head->classes * head->width));
    PLIM_TRY(check(dbias, PLIM_F32, head->classes));
    if (dbias && !dweight) return PLIM_UNSUPPORTED; /* dbias uses the turns of dweight */
    if (dx && !has_turns(op, 0, divide_up(head->count, TILE) * steps)) return PLIM_UNSUPPORTED;
    if (dweight && !has_turns(op, 1, divide_up(head->classes, TILE) * steps)) return PLIM_UNSUPPORTED;
    head->whole = head->whole && (!dx || is_whole(dx)) && (!dweight || is_whole(dweight));
    args->dx = dx ? dx->data : 0;
    args->dweight = dweight ? dweight->data : 0;
    args->dbias = dbias ? dbias->data : 0;
    args->turns_of_dx = dx ? op->scratch[0]->data : 0;
    args->turns_of_dweight = dweight ? op->scratch[1]->data : 0;
out:
    return st;
}

enum plim_status plim_cuda_plan_linear_lse_backward(const struct plim_cuda_plan *plan, const struct plim_op *op)
{
    const struct plim_array *dloss = op->in[0], *lse = op->in[3];
    const struct operands operands = {.x = op->in[1],
                                      .weight = op->in[2],
                                      .targets = op->in[4],
                                      .places = op->in[5],
                                      .bias = op->n_in > 6 ? op->in[6] : NULL};
    struct plim_linear_lse_backward_args args = {
        .dloss = plim_cuda_plan_flat(dloss), .lse = lse->data, .scale = (float)op->beta};
    enum plim_status st;
    PLIM_TRY(describe(&args.head, op, &operands));
    PLIM_TRY(check(lse, PLIM_F32, args.head.count));
    if (plim_array_elements(dloss) != 1) return PLIM_INVALID;
    if (!plim_dtype_is_float(dloss->dtype)) return PLIM_UNSUPPORTED;
    PLIM_TRY(describe_gradients(&args, op));
    if (plan->info->compute_capability < PLIM_LINEAR_LOSS_CAPABILITY) return PLIM_UNSUPPORTED;
    if (args.head.count == 0 || args.head.classes == 0 || (!args.dx && !args.dweight)) return PLIM_OK;
    st = launch(plan, kernels[1][args.head.dtype == PLIM_F16],
                divide_up(args.head.count, TILE) * divide_up(args.head.classes, TILE), &args, sizeof args);
out:
    return st;
}
