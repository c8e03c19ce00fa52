/* Rotary positions: queries and keys without gaps, which are rotated in place. */
#include "kernels/args_rotate.h"
#include "plan_rows.h"

enum { BATCH, LENGTH, HEADS, SIZE, DIMS };
enum { ROTATE_COS = 2, ROTATE_SIN, VECTOR_BYTES = 16 };

static bool is_one_place(const struct plim_array *a, const struct plim_array *b)
{
    if (a->ndim != b->ndim || a->data != b->data || a->dtype != b->dtype) return false;
    for (int d = 0; d < a->ndim; d++)
        if (a->shape[d] != b->shape[d] || a->stride[d] != b->stride[d]) return false;
    return true;
}

/* True if both are angles for the rows of x, and have one shape. */
static bool are_angles(const struct plim_op *op, const struct plim_array *x)
{
    const struct plim_array *cos = op->in[ROTATE_COS], *sin = op->in[ROTATE_SIN];
    if (cos->ndim != 3 || sin->ndim != 3) return false;
    for (int d = 0; d < 3; d++)
        if (cos->shape[d] != sin->shape[d]) return false;
    return (cos->shape[BATCH] == 1 || cos->shape[BATCH] == x->shape[BATCH]) &&
           cos->shape[LENGTH] == x->shape[LENGTH] && cos->shape[2] >= op->pairs;
}

static enum plim_status check(const struct plim_op *op)
{
    for (int i = 0; i < 2; i++) {
        const struct plim_array *x = op->in[i];
        if (x->ndim != DIMS || op->pairs <= 0 || 2 * op->pairs > x->shape[SIZE]) return PLIM_INVALID;
        if (!is_one_place(op->out[i], x) || !are_angles(op, x)) return PLIM_INVALID;
    }
    if (op->in[0]->shape[BATCH] != op->in[1]->shape[BATCH]) return PLIM_INVALID;
    if (op->in[0]->shape[SIZE] != op->in[1]->shape[SIZE]) return PLIM_UNSUPPORTED;
    for (int i = 0; i < op->n_in; i++)
        if (!plim_dtype_is_float(op->in[i]->dtype) || !plim_cuda_plan_is_contiguous(op->in[i])) return PLIM_UNSUPPORTED;
    return PLIM_OK;
}

/* True if every head, and every row of angles, starts at a multiple of 16 bytes, and so does each half of the rotated
 * part. */
static bool are_vectors(const struct plim_op *op)
{
    int64_t size = op->in[0]->shape[SIZE], width = op->in[ROTATE_COS]->shape[2];
    if ((op->pairs | size | width) % PLIM_ROTATE_VECTOR) return false;
    for (int i = 0; i < op->n_in; i++)
        if (op->in[i]->data % VECTOR_BYTES) return false;
    return true;
}

enum plim_status plim_cuda_plan_rotate(const struct plim_cuda_plan *plan, const struct plim_op *op)
{
    enum plim_status st = check(op);
    if (st != PLIM_OK) return st;
    const struct plim_array *q = op->in[0], *k = op->in[1], *cos = op->in[ROTATE_COS];
    int64_t rows = q->shape[BATCH] * q->shape[LENGTH], heads = q->shape[HEADS] + k->shape[HEADS];
    struct plim_rotate_args args = {.x = {plim_cuda_plan_flat(q), plim_cuda_plan_flat(k)},
                                    .cos = plim_cuda_plan_flat(cos),
                                    .sin = plim_cuda_plan_flat(op->in[ROTATE_SIN]),
                                    .of_x = {q->shape[HEADS], k->shape[HEADS]},
                                    .size = q->shape[SIZE],
                                    .pairs = op->pairs,
                                    .width = cos->shape[2],
                                    .direction = (float)op->beta,
                                    .vectors = are_vectors(op)};
    int64_t units = args.vectors ? op->pairs / PLIM_ROTATE_VECTOR : op->pairs;
    args.work = rows * heads * units;
    if (args.work == 0) return PLIM_OK;
    args.units = plim_divider_of((uint64_t)units);
    args.heads = plim_divider_of((uint64_t)heads);
    args.rows = plim_divider_of((uint64_t)(cos->shape[BATCH] * cos->shape[LENGTH]));
    return plim_cuda_plan_launch(plan, "rotate", plim_cuda_plan_all_blocks(args.work, PLIM_ROTATE_THREADS),
                                 PLIM_ROTATE_THREADS, &args, sizeof args);
}
