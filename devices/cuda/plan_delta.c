/* The gated delta rule in chunks, and sums along chunks. */
#include "kernels/args_delta.h"
#include "plan_rows.h"

enum { BATCH, TOKENS, HEADS, WIDTH, MAX_BLOCKS = 0x7fffffff };

/* --- sizes ------------------------------------------------------------------------------------ */

static enum plim_status set_documents(const struct plim_array *ends, struct plim_delta_sizes *s)
{
    s->rows = s->batch;
    s->chunks = (s->seq + PLIM_DELTA_CHUNK - 1) / PLIM_DELTA_CHUNK;
    if (!ends) return PLIM_OK;
    if (ends->ndim != 1 || ends->shape[0] < 1 || s->batch != 1) return PLIM_INVALID;
    if (ends->dtype != PLIM_I32 || !plim_cuda_plan_is_contiguous(ends)) return PLIM_UNSUPPORTED;
    s->ends = ends->data;
    s->rows = ends->shape[0] - 1;
    s->chunks = s->seq / PLIM_DELTA_CHUNK + s->rows; /* maximum */
    return PLIM_OK;
}

/* keys: (b, s, heads, d); values: (b, s, heads, e), or NULL */
static enum plim_status sizes_of(const struct plim_array *keys, const struct plim_array *values,
                                 const struct plim_array *ends, struct plim_delta_sizes *s)
{
    if (keys->ndim != 4 || (values && values->ndim != 4)) return PLIM_INVALID;
    int64_t key = keys->shape[WIDTH], value = values ? values->shape[WIDTH] : 1;
    if (key < 1 || value < 1) return PLIM_INVALID;
    if (key > INT16_MAX || value > INT16_MAX) return PLIM_UNSUPPORTED;
    *s = (struct plim_delta_sizes){.batch = keys->shape[BATCH],
                                   .seq = keys->shape[TOKENS],
                                   .heads = keys->shape[HEADS],
                                   .key = (int32_t)key,
                                   .value = (int32_t)value};
    return set_documents(ends, s);
}

/* --- operands --------------------------------------------------------------------------------- */

/* Shapes of operands: (b, s, heads, width), (b, s, heads), (b, chunks, heads, d, e) or (parts, b, s, heads) */
enum shape { KEYS, VALUES, SQUARES, NUMBERS, STATES, PARTS };

struct operand {
    const struct plim_array *array;
    enum shape shape;
    struct plim_cuda_flat_operand *to;
};

static bool has_tokens(const struct plim_array *a, const struct plim_delta_sizes *s, int first, int ndim)
{
    return a->ndim == ndim && a->shape[first + BATCH] == s->batch && a->shape[first + TOKENS] == s->seq &&
           a->shape[first + HEADS] == s->heads;
}

static bool fits(const struct plim_array *a, enum shape shape, struct plim_delta_sizes *s)
{
    enum { CHUNKS = 1, KEY = 3, VALUE = 4 };
    switch (shape) {
    case KEYS: return has_tokens(a, s, 0, 4) && a->shape[WIDTH] == s->key;
    case VALUES: return has_tokens(a, s, 0, 4) && a->shape[WIDTH] == s->value;
    case SQUARES: return has_tokens(a, s, 0, 4) && a->shape[WIDTH] == PLIM_DELTA_CHUNK;
    case NUMBERS: return has_tokens(a, s, 0, 3);
    case PARTS: return has_tokens(a, s, 1, 4) && a->shape[0] > 0;
    case STATES: break;
    }
    if (a->ndim != 5 || a->shape[BATCH] != s->batch || a->shape[HEADS] != s->heads || a->shape[KEY] != s->key ||
        a->shape[VALUE] != s->value || (!s->ends && a->shape[CHUNKS] != s->chunks))
        return false;
    s->places = s->batch * a->shape[CHUNKS];
    return true;
}

static enum plim_status set_operands(struct plim_delta_sizes *s, int count, const struct operand *operands)
{
    for (int i = 0; i < count; i++)
        if (!fits(operands[i].array, operands[i].shape, s)) return PLIM_INVALID;
    for (int i = 0; i < count; i++) {
        if (!plim_dtype_is_float(operands[i].array->dtype) || !plim_cuda_plan_is_contiguous(operands[i].array))
            return PLIM_UNSUPPORTED;
        *operands[i].to = plim_cuda_plan_flat(operands[i].array);
    }
    return PLIM_OK;
}
#define TAKE(sizes, ...)                                                                                               \
    set_operands(sizes, (int)(sizeof((struct operand[]){__VA_ARGS__}) / sizeof(struct operand)),                       \
         (struct operand[]){__VA_ARGS__})

static enum plim_status launch(const struct plim_cuda_plan *plan, const char *kernel, int64_t blocks, const void *args,
                               size_t bytes)
{
    if (blocks > MAX_BLOCKS) return PLIM_UNSUPPORTED;
    return blocks ? plim_cuda_plan_launch(plan, kernel, blocks, PLIM_DELTA_THREADS, args, bytes) : PLIM_OK;
}

/* Number of chunks times heads. */
static int64_t blocks_of(const struct plim_delta_sizes *s)
{
    return s->seq ? s->batch * s->chunks * s->heads : 0;
}

/* Number of rows or documents, times heads, times groups of columns of the states. */
static int64_t blocks_along(const struct plim_delta_sizes *s)
{
    int64_t parts = (s->value + PLIM_DELTA_COLUMNS - 1) / PLIM_DELTA_COLUMNS;
    return s->seq ? s->rows * s->heads * parts : 0;
}

/* --- forward ---------------------------------------------------------------------------------- */

enum plim_status plim_cuda_plan_chunk_sums(const struct plim_cuda_plan *plan, const struct plim_op *op)
{
    struct plim_array one = *op->in[0]; /* one number per token and head */
    struct plim_chunk_sums_args args;
    enum plim_status st;
    if (one.ndim != 3) return PLIM_INVALID;
    one.shape[one.ndim++] = 1;
    PLIM_TRY(sizes_of(&one, NULL, plim_cuda_plan_input(op, 1), &args.sizes));
    PLIM_TRY(TAKE(&args.sizes, {op->in[0], NUMBERS, &args.x}, {op->out[0], NUMBERS, &args.out}));
    args.scale = (float)op->alpha;
    args.backwards = op->beta < 0;
    int64_t threads = blocks_of(&args.sizes);
    if (threads)
        st = launch(plan, "chunk_sums", plim_cuda_plan_all_blocks(threads, PLIM_DELTA_THREADS), &args, sizeof args);
out:
    return st;
}

enum plim_status plim_cuda_plan_delta_inverse(const struct plim_cuda_plan *plan, const struct plim_op *op)
{
    struct plim_delta_args args = {0};
    enum plim_status st;
    PLIM_TRY(sizes_of(op->in[0], NULL, plim_cuda_plan_input(op, 3), &args.sizes));
    PLIM_TRY(TAKE(&args.sizes, {op->in[0], KEYS, &args.k}, {op->in[1], NUMBERS, &args.g},
                  {op->in[2], NUMBERS, &args.beta}, {op->out[0], SQUARES, &args.inverse}));
    st = launch(plan, "delta_inverse", blocks_of(&args.sizes), &args, sizeof args);
out:
    return st;
}

enum plim_status plim_cuda_plan_delta_solve(const struct plim_cuda_plan *plan, const struct plim_op *op)
{
    struct plim_delta_args args = {0};
    enum plim_status st;
    PLIM_TRY(sizes_of(op->in[0], op->in[1], plim_cuda_plan_input(op, 5), &args.sizes));
    PLIM_TRY(TAKE(&args.sizes, {op->in[0], KEYS, &args.k}, {op->in[1], VALUES, &args.v},
                  {op->in[2], NUMBERS, &args.beta}, {op->in[3], SQUARES, &args.inverse}, {op->in[4], NUMBERS, &args.g},
                  {op->out[0], KEYS, &args.w}, {op->out[1], VALUES, &args.u}));
    st = launch(plan, "delta_solve", blocks_of(&args.sizes), &args, sizeof args);
out:
    return st;
}

enum plim_status plim_cuda_plan_delta_states(const struct plim_cuda_plan *plan, const struct plim_op *op)
{
    struct plim_delta_args args = {0};
    enum plim_status st;
    PLIM_TRY(sizes_of(op->in[0], op->in[2], plim_cuda_plan_input(op, 4), &args.sizes));
    PLIM_TRY(TAKE(&args.sizes, {op->in[0], KEYS, &args.k}, {op->in[1], KEYS, &args.w}, {op->in[2], VALUES, &args.u},
                  {op->in[3], NUMBERS, &args.g}, {op->out[0], STATES, &args.states},
                  {op->out[1], VALUES, &args.fresh}));
    st = args.sizes.key > PLIM_DELTA_MOST_KEYS
             ? PLIM_UNSUPPORTED
             : launch(plan, "delta_states", blocks_along(&args.sizes), &args, sizeof args);
out:
    return st;
}

enum plim_status plim_cuda_plan_delta_output(const struct plim_cuda_plan *plan, const struct plim_op *op)
{
    struct plim_delta_args args = {.alpha = (float)op->alpha};
    enum plim_status st;
    PLIM_TRY(sizes_of(op->in[0], op->in[2], plim_cuda_plan_input(op, 5), &args.sizes));
    PLIM_TRY(TAKE(&args.sizes, {op->in[0], KEYS, &args.q}, {op->in[1], KEYS, &args.k}, {op->in[2], VALUES, &args.fresh},
                  {op->in[3], STATES, &args.states}, {op->in[4], NUMBERS, &args.g}, {op->out[0], VALUES, &args.out}));
    st = launch(plan, "delta_output", blocks_of(&args.sizes), &args, sizeof args);
out:
    return st;
}

/* --- backward --------------------------------------------------------------------------------- */

enum plim_status plim_cuda_plan_delta_output_backward_fresh(const struct plim_cuda_plan *plan, const struct plim_op *op)
{
    struct plim_delta_backward_args args = {.of = {.alpha = (float)op->alpha}};
    struct plim_delta_sizes *s = &args.of.sizes;
    enum plim_status st;
    PLIM_TRY(sizes_of(op->in[0], op->in[3], plim_cuda_plan_input(op, 4), s));
    PLIM_TRY(TAKE(s, {op->in[0], KEYS, &args.of.q}, {op->in[1], KEYS, &args.of.k}, {op->in[2], NUMBERS, &args.of.g},
                  {op->in[3], VALUES, &args.dout}, {op->out[0], VALUES, &args.dfresh}));
    st = launch(plan, "delta_output_backward_fresh", blocks_of(s), &args, sizeof args);
out:
    return st;
}

enum plim_status plim_cuda_plan_delta_states_backward(const struct plim_cuda_plan *plan, const struct plim_op *op)
{
    struct plim_delta_backward_args args = {.of = {.alpha = (float)op->alpha}};
    struct plim_delta_sizes *s = &args.of.sizes;
    enum plim_status st;
    PLIM_TRY(sizes_of(op->in[0], op->in[4], plim_cuda_plan_input(op, 6), s));
    PLIM_TRY(TAKE(s, {op->in[0], KEYS, &args.of.q}, {op->in[1], KEYS, &args.of.k}, {op->in[2], KEYS, &args.of.w},
                  {op->in[3], NUMBERS, &args.of.g}, {op->in[4], VALUES, &args.dout}, {op->in[5], VALUES, &args.local},
                  {op->out[0], STATES, &args.dstates}, {op->out[1], VALUES, &args.dfresh}));
    st = s->key > PLIM_DELTA_MOST_KEYS ? PLIM_UNSUPPORTED
                                       : launch(plan, "delta_states_backward", blocks_along(s), &args, sizeof args);
out:
    return st;
}

enum plim_status plim_cuda_plan_delta_output_backward(const struct plim_cuda_plan *plan, const struct plim_op *op)
{
    struct plim_delta_backward_args args = {.of = {.alpha = (float)op->alpha}};
    struct plim_delta_sizes *s = &args.of.sizes;
    enum plim_status st;
    PLIM_TRY(sizes_of(op->in[0], op->in[3], plim_cuda_plan_input(op, 8), s));
    PLIM_TRY(TAKE(s, {op->in[0], KEYS, &args.of.q}, {op->in[1], KEYS, &args.of.k}, {op->in[2], NUMBERS, &args.of.g},
                  {op->in[3], VALUES, &args.of.fresh}, {op->in[4], STATES, &args.of.states},
                  {op->in[5], VALUES, &args.dout}, {op->in[6], STATES, &args.dstates},
                  {op->in[7], VALUES, &args.dfresh}, {op->out[0], KEYS, &args.dq}, {op->out[1], KEYS, &args.dk},
                  {op->out[2], KEYS, &args.dw},
                  {op->out[3], PARTS, &args.dg}));
    args.of.parts = (uint32_t)op->out[3]->shape[0];
    st = launch(plan, "delta_output_backward", blocks_of(s), &args, sizeof args);
out:
    return st;
}

enum plim_status plim_cuda_plan_delta_solve_backward(const struct plim_cuda_plan *plan, const struct plim_op *op)
{
    struct plim_delta_backward_args args = {0};
    struct plim_delta_sizes *s = &args.of.sizes;
    enum plim_status st;
    PLIM_TRY(sizes_of(op->in[0], op->in[1], plim_cuda_plan_input(op, 7), s));
    PLIM_TRY(TAKE(s, {op->in[0], KEYS, &args.of.k}, {op->in[1], VALUES, &args.of.v},
                  {op->in[2], NUMBERS, &args.of.beta}, {op->in[3], NUMBERS, &args.of.g},
                  {op->in[4], SQUARES, &args.of.inverse}, {op->in[5], KEYS, &args.dw},
                  {op->in[6], VALUES, &args.dfresh}, {op->out[0], KEYS, &args.dk}, {op->out[1], VALUES, &args.dv},
                  {op->out[2], NUMBERS, &args.dbeta}, {op->out[3], NUMBERS, &args.dg}));
    st = launch(plan, "delta_solve_backward", blocks_of(s), &args, sizeof args);
out:
    return st;
}
