/* Elementwise operations. */
#include "planner.h"
#include "walk.h"

#include <math.h>

/* --- launches --------------------------------------------------------------------------------- */

static bool are_integers(const struct plim_array *const *arrays, int count)
{
    for (int i = 0; i < count; i++)
        if (!plim_cuda_plan_is_integer(arrays[i])) return false;
    return true;
}

static bool is_whole(double x)
{
    return x >= -0x1p63 && x < 0x1p63 && x == floor(x);
}

/* Variants of a kernel: by arithmetic, with one element per thread or several. */
enum { FLOAT, INTEGER };
typedef const char *const kernel_forms[2][2];

#define FORMS(name)                                                                                \
    {{name "_float_scalar", name "_float_vector"}, {name "_integer_scalar", name "_integer_vector"}}
#define FLOAT_FORMS(name) {{name "_scalar", name "_vector"}, {NULL, NULL}}

static enum plim_status launch(const struct plim_cuda_plan *plan, kernel_forms forms, bool integers,
                               const struct plim_elementwise_args *args)
{
    bool vector = plim_walk_is_vector(&args->walk);
    int64_t work = (int64_t)(args->walk.elements / (vector ? PLIM_WALK_VECTOR : 1));
    if (args->walk.elements == 0) return PLIM_OK;
    return plim_cuda_plan_launch(plan, forms[integers][vector],
                                 plim_cuda_plan_all_blocks(work, PLIM_ELEMENTWISE_THREADS),
                                 PLIM_ELEMENTWISE_THREADS, args, sizeof *args);
}

static struct plim_elementwise_args args_of(const struct plim_op *op, int function)
{
    return (struct plim_elementwise_args){
        .alpha = op->alpha, .beta = op->beta, .seed = op->seed, .function = (uint8_t)function};
}

/* --- no operands ------------------------------------------------------------------------------ */

enum plim_status plim_cuda_plan_nullary(const struct plim_cuda_plan *plan, const struct plim_op *op)
{
    static kernel_forms forms = FORMS("nullary");
    struct plim_elementwise_args args = args_of(op, op->kind);
    bool integers = plim_cuda_plan_is_integer(op->out[0]);
    if (op->kind == PLIM_OP_RANDOM && integers && !(op->alpha >= 0 && op->alpha <= 0x1p32))
        return PLIM_INVALID;
    enum plim_status st = plim_walk_init(&args.walk, op->out, 1, PLIM_WALK_ORDERED);
    if (st != PLIM_OK) return st;
    /* a type that holds every integer exactly, and rounds like the others */
    return launch(plan, forms, integers, &args);
}

/* --- copies ----------------------------------------------------------------------------------- */

/* Elements whose type does not change are moved as bits. */
static void treat_as_bits(struct plim_walk *w)
{
    static const uint8_t bits[PLIM_DTYPE_COUNT] = {PLIM_I32, PLIM_RAW16, PLIM_RAW16, PLIM_I64,
                                                   PLIM_I32, PLIM_U8,    PLIM_U8};
    w->dtype[0] = w->dtype[1] = bits[w->dtype[0]];
}

static void swap_dims(struct plim_walk *w, int a, int b)
{
    struct plim_divider extent = w->extent[a];
    w->extent[a] = w->extent[b], w->extent[b] = extent;
    for (int i = 0; i < w->operands; i++) {
        int64_t stride = w->stride[i][a];
        w->stride[i][a] = w->stride[i][b], w->stride[i][b] = stride;
    }
}

/* True if the output is contiguous along dimension 0 and the input along another, which becomes dimension 1. */
static bool make_transposition(struct plim_walk *w)
{
    const uint64_t worth = PLIM_TILE / 4;
    if (w->stride[0][0] != plim_walk_element_bytes(w, 0) || w->extent[0].divisor < worth)
        return false;
    if (w->stride[1][0] == plim_walk_element_bytes(w, 1) || w->stride[1][0] == 0) return false;
    for (int d = 1; d < w->ndim; d++) {
        if (w->stride[1][d] != plim_walk_element_bytes(w, 1) || w->extent[d].divisor < worth)
            continue;
        swap_dims(w, 1, d);
        return true;
    }
    return false;
}

static enum plim_status launch_transposition(const struct plim_cuda_plan *plan, bool integers,
                                             const struct plim_walk *w)
{
    struct plim_transpose_args args = {.walk = *w, .all_tiles = 1};
    for (int d = 0; d < w->ndim; d++) {
        uint64_t extent = w->extent[d].divisor;
        if (d < 2) extent = (extent + PLIM_TILE - 1) / PLIM_TILE;
        if (d < 2) args.tiles[d] = plim_divider_of(extent);
        args.all_tiles *= extent;
    }
    int64_t threads = (int64_t)args.all_tiles * PLIM_ELEMENTWISE_THREADS;
    return plim_cuda_plan_launch(plan, integers ? "transpose_integer" : "transpose_float",
                                 plim_cuda_plan_blocks(plan, threads, PLIM_ELEMENTWISE_THREADS),
                                 PLIM_ELEMENTWISE_THREADS, &args, sizeof args);
}

static enum plim_status copy_array(const struct plim_cuda_plan *plan, const struct plim_array *to,
                                   const struct plim_array *from)
{
    static kernel_forms forms = FORMS("copy");
    const struct plim_array *operands[] = {to, from};
    struct plim_elementwise_args args = {.function = PLIM_OP_COPY};
    enum plim_status st = plim_walk_init(&args.walk, operands, 2, 0);
    if (st != PLIM_OK || args.walk.elements == 0) return st;
    bool same = to->dtype == from->dtype, integers = same || are_integers(operands, 2);
    if (same) treat_as_bits(&args.walk);
    if (make_transposition(&args.walk)) return launch_transposition(plan, integers, &args.walk);
    return launch(plan, forms, integers, &args);
}

enum plim_status plim_cuda_plan_copy(const struct plim_cuda_plan *plan, const struct plim_op *op)
{
    return copy_array(plan, op->out[0], op->in[0]);
}

/* --- elementwise functions -------------------------------------------------------------------- */

/* Describes the result and `count` inputs. */
static enum plim_status walk_operands(const struct plim_op *op, int count,
                                      const struct plim_array **operands, struct plim_walk *w)
{
    operands[0] = op->out[0];
    for (int i = 0; i < count; i++) operands[1 + i] = op->in[i];
    return plim_walk_init(w, operands, count + 1, 0);
}

enum plim_status plim_cuda_plan_unary(const struct plim_cuda_plan *plan, const struct plim_op *op)
{
    static kernel_forms forms = FORMS("unary");
    static const bool of_integers[PLIM_UNARY_COUNT] = {
        [PLIM_UNARY_NEG] = true, [PLIM_UNARY_RELU] = true,  [PLIM_UNARY_POW] = true,
        [PLIM_UNARY_NOT] = true, [PLIM_UNARY_ABS] = true,   [PLIM_UNARY_CLAMP] = true,
    };
    const struct plim_array *operands[2];
    struct plim_elementwise_args args = args_of(op, op->unary);
    if (op->unary >= PLIM_UNARY_COUNT) return PLIM_INVALID;
    enum plim_status st = walk_operands(op, 1, operands, &args.walk);
    if (st != PLIM_OK) return st;
    bool integers = are_integers(operands, 2) && of_integers[op->unary] && is_whole(op->alpha) &&
                    is_whole(op->beta);
    return launch(plan, forms, integers, &args);
}

enum plim_status plim_cuda_plan_unary_backward(const struct plim_cuda_plan *plan,
                                               const struct plim_op *op)
{
    static kernel_forms forms = FLOAT_FORMS("unary_backward");
    const struct plim_array *operands[3];
    struct plim_elementwise_args args = args_of(op, op->unary);
    if (op->unary >= PLIM_UNARY_COUNT || op->unary == PLIM_UNARY_NOT) return PLIM_INVALID;
    enum plim_status st = walk_operands(op, 2, operands, &args.walk);
    return st == PLIM_OK ? launch(plan, forms, FLOAT, &args) : st;
}

enum plim_status plim_cuda_plan_binary(const struct plim_cuda_plan *plan, const struct plim_op *op)
{
    static kernel_forms forms = FORMS("binary");
    const struct plim_array *operands[3];
    struct plim_elementwise_args args = args_of(op, op->binary);
    int inputs = op->n_in > 1 && op->in[1] ? 2 : 1;
    bool lerp = op->binary == PLIM_BINARY_LERP;
    if (op->binary >= PLIM_BINARY_COUNT || (lerp && inputs == 1)) return PLIM_INVALID;
    enum plim_status st = walk_operands(op, inputs, operands, &args.walk);
    if (st != PLIM_OK) return st;
    bool integers = are_integers(operands, inputs + 1) && is_whole(op->alpha) && !lerp &&
                    op->binary != PLIM_BINARY_DIV && op->binary != PLIM_BINARY_HYPOT;
    return launch(plan, forms, integers, &args);
}

enum plim_status plim_cuda_plan_where(const struct plim_cuda_plan *plan, const struct plim_op *op)
{
    static kernel_forms forms = FORMS("where");
    const struct plim_array *operands[4];
    struct plim_elementwise_args args = args_of(op, 0);
    enum plim_status st = walk_operands(op, 3, operands, &args.walk);
    if (st != PLIM_OK) return st;
    bool integers = plim_cuda_plan_is_integer(op->out[0]) && are_integers(op->in + 1, 2);
    return launch(plan, forms, integers, &args);
}

/* Views arrays of pairs of numbers as arrays of their first parts. */
static bool view_first_parts(const struct plim_op *op, struct plim_array first[3])
{
    const struct plim_array *all[3] = {op->out[0], op->in[0], op->in[1]};
    for (int i = 0; i < 3; i++) {
        int last = all[i]->ndim - 1;
        bool fits = last >= 0 && all[i]->dtype == PLIM_F32 && all[i]->shape[last] == 2 && all[i]->stride[last] == 1;
        if (!fits) return false;
        first[i] = *all[i];
        first[i].ndim--;
    }
    return true;
}

enum plim_status plim_cuda_plan_complex_mul(const struct plim_cuda_plan *plan, const struct plim_op *op)
{
    struct plim_array first[3];
    const struct plim_array *const operands[] = {&first[0], &first[1], &first[2]};
    struct plim_elementwise_args args = args_of(op, 0);
    if (!view_first_parts(op, first)) return PLIM_INVALID;
    enum plim_status st = plim_walk_init(&args.walk, operands, 3, 0);
    if (st != PLIM_OK || args.walk.elements == 0) return st;
    return plim_cuda_plan_launch(plan, "complex_mul",
                                 plim_cuda_plan_all_blocks((int64_t)args.walk.elements, PLIM_ELEMENTWISE_THREADS),
                                 PLIM_ELEMENTWISE_THREADS, &args, sizeof args);
}

enum plim_status plim_cuda_plan_masked_fill(const struct plim_cuda_plan *plan, const struct plim_op *op)
{
    static kernel_forms forms = FORMS("masked_fill");
    const struct plim_array *operands[3];
    struct plim_elementwise_args args = args_of(op, 0);
    enum plim_status st = walk_operands(op, 2, operands, &args.walk);
    if (st != PLIM_OK) return st;
    bool integers = plim_cuda_plan_is_integer(op->out[0]) && plim_cuda_plan_is_integer(op->in[0]) &&
                    is_whole(op->alpha);
    return launch(plan, forms, integers, &args);
}

enum plim_status plim_cuda_plan_triangle(const struct plim_cuda_plan *plan, const struct plim_op *op)
{
    static kernel_forms forms = FORMS("triangle");
    const struct plim_array *operands[] = {op->out[0], op->in[0]}, *out = op->out[0];
    struct plim_elementwise_args args = args_of(op, op->kind);
    if (out->ndim < 2) return PLIM_INVALID;
    args.dim = op->dim;
    enum plim_status st = plim_walk_init(&args.walk, operands, 2, PLIM_WALK_ORDERED);
    if (st != PLIM_OK || args.walk.elements == 0) return st;
    args.rows = plim_divider_of((uint64_t)out->shape[out->ndim - 2]);
    args.columns = plim_divider_of((uint64_t)out->shape[out->ndim - 1]);
    return launch(plan, forms, are_integers(operands, 2), &args);
}

/* A copy that starts at the end. */
enum plim_status plim_cuda_plan_flip(const struct plim_cuda_plan *plan, const struct plim_op *op)
{
    struct plim_array turned = *op->in[0];
    struct plim_op copy = {.kind = PLIM_OP_COPY, .n_out = 1, .n_in = 1, .out = {op->out[0]}, .in = {&turned}};
    int last = turned.ndim - 1;
    if (last < 0 || op->out[0]->ndim != turned.ndim) return PLIM_INVALID;
    int64_t steps = turned.shape[last] > 0 ? turned.shape[last] - 1 : 0;
    turned.data += (uint64_t)(steps * turned.stride[last] * plim_dtype_size((enum plim_dtype)turned.dtype));
    turned.stride[last] = -turned.stride[last];
    return plim_cuda_plan_copy(plan, &copy);
}

enum plim_status plim_cuda_plan_dropout(const struct plim_cuda_plan *plan, const struct plim_op *op)
{
    static kernel_forms forms = FLOAT_FORMS("dropout");
    const struct plim_array *operands[] = {op->out[0], op->out[1], op->in[0]};
    struct plim_elementwise_args args = args_of(op, 0);
    enum plim_status st = plim_walk_init(&args.walk, operands, 3, PLIM_WALK_ORDERED);
    return st == PLIM_OK ? launch(plan, forms, FLOAT, &args) : st;
}

/* --- concatenation ---------------------------------------------------------------------------- */

/* Returns an input's extent along `dim` in the result. */
static int64_t cat_extent(const struct plim_array *in, int dim)
{
    return in->ndim ? in->shape[dim] : 1;
}

static enum plim_status cat_check(const struct plim_op *op, bool *is_plain)
{
    const struct plim_array *out = op->out[0];
    int64_t total = 0;
    *is_plain = plim_cuda_plan_is_contiguous(out);
    if (op->dim < 0 || op->dim >= out->ndim) return PLIM_INVALID;
    for (size_t i = 0; i < op->list_length; i++) {
        const struct plim_array *in = op->lists[0][i];
        if (in->ndim != out->ndim && !(in->ndim == 0 && out->ndim == 1)) return PLIM_INVALID;
        for (int d = 0; d < in->ndim; d++)
            if (d != op->dim && in->shape[d] != out->shape[d]) return PLIM_INVALID;
        total += cat_extent(in, op->dim);
        *is_plain = *is_plain && in->dtype == out->dtype && plim_cuda_plan_is_contiguous(in);
    }
    return total == out->shape[op->dim] ? PLIM_OK : PLIM_INVALID;
}

/* For any strides and types: one copy per input. */
static enum plim_status cat_copies(const struct plim_cuda_plan *plan, const struct plim_op *op)
{
    struct plim_array part = *op->out[0];
    enum plim_status st = PLIM_OK;
    for (size_t i = 0; i < op->list_length && st == PLIM_OK; i++) {
        part.shape[op->dim] = cat_extent(op->lists[0][i], op->dim);
        st = copy_array(plan, &part, op->lists[0][i]);
        part.data += (uint64_t)(part.shape[op->dim] * part.stride[op->dim] *
                                plim_dtype_size((enum plim_dtype)part.dtype));
    }
    return st;
}

/* Returns the widest unit that divides all addresses and lengths. */
static uint32_t cat_unit(const struct plim_cat_args *args, int count, const uint64_t *row_bytes)
{
    uint64_t bits = 16 | args->out | args->out_stride;
    for (int i = 0; i < count; i++) bits |= args->in[i].data | args->in[i].offset | row_bytes[i];
    return (uint32_t)(bits & -bits);
}

static enum plim_status cat_launch(const struct plim_cuda_plan *plan, struct plim_cat_args *args,
                                   int count, const uint64_t *row_bytes)
{
    uint64_t most = 0;
    if (count == 0) return PLIM_OK;
    args->unit_bytes = cat_unit(args, count, row_bytes);
    for (int i = 0; i < count; i++) {
        args->in[i].units = plim_divider_of(row_bytes[i] / args->unit_bytes);
        uint64_t units = args->rows * args->in[i].units.divisor;
        if (units > most) most = units;
    }
    int64_t blocks = plim_cuda_plan_blocks(plan, (int64_t)most, PLIM_ELEMENTWISE_THREADS);
    struct plim_cuda_launch cat = {.kernel = "cat",
                                   .grid = {(uint32_t)blocks, (uint32_t)count, 1},
                                   .block = {PLIM_ELEMENTWISE_THREADS, 1, 1},
                                   .args = args,
                                   .args_bytes = sizeof *args};
    return plan->emit(plan->user, &cat);
}

enum plim_status plim_cuda_plan_cat(const struct plim_cuda_plan *plan, const struct plim_op *op)
{
    const struct plim_array *out = op->out[0];
    bool is_plain;
    enum plim_status st = cat_check(op, &is_plain);
    if (st != PLIM_OK) return st;
    if (!is_plain) return cat_copies(plan, op);

    uint64_t unit = (uint64_t)plim_dtype_size((enum plim_dtype)out->dtype), offset = 0;
    struct plim_cat_args args = {.out = out->data, .rows = 1};
    for (int d = 0; d < out->ndim; d++)
        *(d < op->dim ? &args.rows : &unit) *= d == op->dim ? 1 : (uint64_t)out->shape[d];
    args.out_stride = unit * (uint64_t)out->shape[op->dim];

    uint64_t row_bytes[PLIM_CAT_INPUTS];
    int count = 0;
    for (size_t i = 0; i < op->list_length && st == PLIM_OK; i++) {
        uint64_t bytes = unit * (uint64_t)cat_extent(op->lists[0][i], op->dim);
        if (bytes == 0 || args.rows == 0) continue;
        args.in[count].data = op->lists[0][i]->data;
        args.in[count].offset = offset;
        row_bytes[count++] = bytes;
        offset += bytes;
        if (count == PLIM_CAT_INPUTS) {
            st = cat_launch(plan, &args, count, row_bytes);
            count = 0;
        }
    }
    return st == PLIM_OK ? cat_launch(plan, &args, count, row_bytes) : st;
}
