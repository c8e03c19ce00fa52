/* Reductions over dimensions, and running sums. */
#include "kernels/args_reduce.h"
#include "planner.h"
#include "walk.h"

enum {
    LONG_ROW = 64 * PLIM_WALK_VECTOR, /* from here on a block reduces a row, not a warp */
    ROW_CHUNK = 4096,                 /* elements that are worth a separate block */
    COLUMN_CHUNK = 16,                /* elements that are worth a separate thread */
    NARROWEST_TILE = 4                /* adjacent threads: 64 bytes of 16-bit elements */
};

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t ceil_div(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

/* --- dimensions ------------------------------------------------------------------------------- */

/* Dimensions from fastest to slowest in the input, strides in bytes. */
struct dims {
    int count;
    int64_t extent[PLIM_MAX_DIMS], in[PLIM_MAX_DIMS], out[PLIM_MAX_DIMS];
};

/* Distance between neighbours of a dimension; a repeated element counts as far away. */
static int64_t distance(int64_t stride)
{
    return stride == 0 ? INT64_MAX : stride < 0 ? -stride : stride;
}

/* Inserts a dimension, sorted by the input's stride; the order of dimensions does not matter to a reduction, and
 * outputs have their own strides. */
static void dims_add(struct dims *d, int64_t extent, int64_t in, int64_t out)
{
    int i = d->count++;
    if (extent == 1) {
        d->count--;
        return;
    }
    for (; i > 0 && distance(in) < distance(d->in[i - 1]); i--) {
        d->extent[i] = d->extent[i - 1];
        d->in[i] = d->in[i - 1];
        d->out[i] = d->out[i - 1];
    }
    d->extent[i] = extent;
    d->in[i] = in;
    d->out[i] = out;
}

static void dims_merge(struct dims *d)
{
    int last = 0;
    for (int i = 1; i < d->count; i++) {
        bool in = d->in[i] == d->in[last] * d->extent[last];
        bool out = d->out[i] == d->out[last] * d->extent[last];
        if (in && out) {
            d->extent[last] *= d->extent[i];
            continue;
        }
        last++;
        d->extent[last] = d->extent[i];
        d->in[last] = d->in[i];
        d->out[last] = d->out[i];
    }
    if (d->count > 0) d->count = last + 1;
}

/* The output has only the kept dimensions, or all of them with extent 1 for reduced ones. */
static enum plim_status split_dims(const struct plim_array *out, const struct plim_array *in,
                                   unsigned mask, struct dims *kept, struct dims *folded)
{
    int next = 0;
    int kept_count = 0;
    for (int d = 0; d < in->ndim; d++) kept_count += !(mask >> d & 1);
    bool keepdim = out->ndim == in->ndim;
    if (mask >> in->ndim || (!keepdim && out->ndim != kept_count)) return PLIM_INVALID;
    *kept = *folded = (struct dims){0};
    for (int d = 0; d < in->ndim; d++) {
        int64_t stride = in->stride[d] * plim_dtype_size((enum plim_dtype)in->dtype);
        if (mask >> d & 1) {
            if (keepdim && out->shape[next++] != 1) return PLIM_INVALID;
            dims_add(folded, in->shape[d], stride, 0);
        } else {
            if (out->shape[next] != in->shape[d]) return PLIM_INVALID;
            int64_t out_stride = out->stride[next++] * plim_dtype_size((enum plim_dtype)out->dtype);
            dims_add(kept, in->shape[d], stride, out_stride);
        }
    }
    return PLIM_OK;
}

/* Returns the number of elements. */
static uint64_t set_dims(const struct dims *d, struct plim_divider *extent, int64_t *in,
                         uint8_t *count)
{
    uint64_t elements = 1;
    *count = (uint8_t)larger(d->count, 1);
    extent[0] = plim_divider_of(1);
    in[0] = 0;
    for (int i = 0; i < d->count; i++) {
        elements *= (uint64_t)d->extent[i];
        extent[i] = plim_divider_of((uint64_t)larger(d->extent[i], 1));
        in[i] = d->in[i];
    }
    return elements;
}

/* --- one pass --------------------------------------------------------------------------------- */

struct pass {
    struct plim_reduce_args args;
    bool rows, integers, vector;
};

static int element_bytes(const struct pass *p)
{
    return plim_dtype_size((enum plim_dtype)p->args.in_dtype);
}

/* True if packs along `own` start aligned, whatever the coordinates of the other dimensions. */
static bool is_vector(const struct pass *p)
{
    const struct plim_reduce_args *a = &p->args;
    const struct plim_divider *extent = p->rows ? a->folded : a->kept;
    int64_t inner = p->rows ? a->folded_stride[0] : a->kept_stride[0];
    int dims = p->rows ? a->folded_dims : a->kept_dims, bytes = element_bytes(p);
    bool aligned = plim_address_is_aligned(a->in, bytes, PLIM_WALK_VECTOR);
    for (int d = p->rows ? 0 : 1; d < a->kept_dims; d++)
        aligned &= plim_address_is_aligned((uint64_t)a->kept_stride[d], bytes, PLIM_WALK_VECTOR);
    for (int d = p->rows ? 1 : 0; d < a->folded_dims; d++)
        aligned &= plim_address_is_aligned((uint64_t)a->folded_stride[d], bytes, PLIM_WALK_VECTOR);
    bool whole = (p->rows && dims == 1) || extent[0].divisor % PLIM_WALK_VECTOR == 0;
    return inner == bytes && aligned && whole && extent[0].divisor >= PLIM_WALK_VECTOR;
}

/* Sets `chunks` chunks, each a multiple of the vector's elements; fewer if some would be empty. */
static void set_chunks(struct plim_reduce_args *a, int64_t chunks)
{
    int64_t n = (int64_t)a->folded_elements;
    int64_t packs = ceil_div(ceil_div(n, larger(chunks, 1)), PLIM_WALK_VECTOR);
    a->chunk_elements = (uint64_t)(larger(packs, 1) * PLIM_WALK_VECTOR);
    a->chunks = plim_divider_of((uint64_t)larger(ceil_div(n, (int64_t)a->chunk_elements), 1));
    a->is_final = a->chunks.divisor == 1;
}

/* `most`: number of chunks of an output for which there is room. */
static void shape_rows(const struct plim_cuda_plan *plan, struct pass *p, int64_t most)
{
    struct plim_reduce_args *a = &p->args;
    int64_t busy = 4LL * plim_cuda_plan_multiprocessors(plan), n = (int64_t)a->folded_elements;
    int64_t wanted = smaller(ceil_div(busy, (int64_t)a->outputs), ceil_div(n, ROW_CHUNK));
    set_chunks(a, smaller(wanted, most));
    int64_t length = smaller((int64_t)a->chunk_elements, n);
    int64_t packs = ceil_div(length, p->vector ? PLIM_WALK_VECTOR : 1);
    a->lanes = 1;
    while (a->lanes < PLIM_CUDA_PLAN_WARP && a->lanes < packs) a->lanes *= 2;
    if (length >= LONG_ROW) a->lanes = PLIM_REDUCE_THREADS;
}

static void shape_columns(const struct plim_cuda_plan *plan, struct pass *p, int64_t most)
{
    struct plim_reduce_args *a = &p->args;
    int64_t busy = 4LL * plim_cuda_plan_multiprocessors(plan), n = (int64_t)a->folded_elements;
    int64_t packs = (int64_t)a->outputs / (p->vector ? PLIM_WALK_VECTOR : 1);
    a->width = PLIM_CUDA_PLAN_WARP;
    while (a->width > NARROWEST_TILE && ceil_div(packs, a->width) < busy) a->width /= 2;
    while ((int64_t)a->width < PLIM_REDUCE_THREADS && PLIM_REDUCE_THREADS / a->width > n)
        a->width *= 2; /* no threads for rows that are not there */
    int64_t tiles = ceil_div(packs, a->width), height = PLIM_REDUCE_THREADS / a->width;
    int64_t wanted = smaller(ceil_div(busy, tiles), ceil_div(n, height * COLUMN_CHUNK));
    a->tiles = plim_divider_of((uint64_t)tiles);
    set_chunks(a, smaller(wanted, most));
}

static enum plim_status launch_pass(const struct plim_cuda_plan *plan, const struct pass *p)
{
    static const char *const kernels[2][2][2] = {
        {{"reduce_columns_float_scalar", "reduce_columns_float_vector"},
         {"reduce_columns_integer_scalar", "reduce_columns_integer_vector"}},
        {{"reduce_rows_float_scalar", "reduce_rows_float_vector"},
         {"reduce_rows_integer_scalar", "reduce_rows_integer_vector"}}};
    const struct plim_reduce_args *a = &p->args;
    int64_t chunks = (int64_t)a->chunks.divisor;
    int64_t threads = p->rows ? (int64_t)a->outputs * chunks * a->lanes
                              : (int64_t)a->tiles.divisor * chunks * PLIM_REDUCE_THREADS;
    return plim_cuda_plan_launch(plan, kernels[p->rows][p->integers][p->vector],
                                 plim_cuda_plan_blocks(plan, threads, PLIM_REDUCE_THREADS),
                                 PLIM_REDUCE_THREADS, a, sizeof *a);
}

/* --- both passes ------------------------------------------------------------------------------ */

/* Returns the pass that reduces the partial results in `scratch`: (outputs, chunks) of rows, (chunks, outputs) of
 * columns. */
static struct pass second_pass(const struct plim_cuda_plan *plan, const struct pass *first,
                               const struct plim_reduce_args *final, uint64_t scratch)
{
    struct pass p = {.args = *final, .rows = first->rows, .integers = first->integers};
    struct plim_reduce_args *a = &p.args;
    int64_t chunks = (int64_t)first->args.chunks.divisor;
    a->in = scratch;
    a->in_dtype = p.integers ? PLIM_I64 : PLIM_F32;
    a->square = false;
    int64_t bytes = element_bytes(&p), outputs = 1;
    for (int d = 0; d < a->kept_dims; d++) {
        a->kept_stride[d] = outputs * (p.rows ? chunks : 1) * bytes;
        outputs *= (int64_t)a->kept[d].divisor;
    }
    a->folded_dims = 1;
    a->folded[0] = plim_divider_of((uint64_t)chunks);
    a->folded_stride[0] = p.rows ? bytes : outputs * bytes;
    a->folded_elements = (uint64_t)chunks;
    p.vector = is_vector(&p);
    (p.rows ? shape_rows : shape_columns)(plan, &p, 1);
    return p;
}

static int64_t room_for_chunks(const struct plim_op *op, const struct pass *p)
{
    if (op->n_scratch == 0 || !op->scratch[0] || op->scratch[0]->data % 16 != 0) return 1;
    int64_t partial_bytes = p->integers ? 8 : 4;
    return plim_array_bytes(op->scratch[0]) / partial_bytes / (int64_t)p->args.outputs;
}

static enum plim_status reduce(const struct plim_cuda_plan *plan, const struct plim_op *op,
                               struct pass *p)
{
    p->vector = is_vector(p);
    (p->rows ? shape_rows : shape_columns)(plan, p, room_for_chunks(op, p));
    if (p->args.is_final) return launch_pass(plan, p);

    struct plim_reduce_args final = p->args;
    p->args.out = op->scratch[0]->data;
    enum plim_status st = launch_pass(plan, p);
    if (st != PLIM_OK) return st;
    struct pass second = second_pass(plan, p, &final, op->scratch[0]->data);
    return launch_pass(plan, &second);
}

static bool is_fold(int fold)
{
    switch (fold) {
    case PLIM_BINARY_ADD:
    case PLIM_BINARY_MUL:
    case PLIM_BINARY_MAX:
    case PLIM_BINARY_MIN:
    case PLIM_BINARY_HYPOT:
    case PLIM_BINARY_AND:
    case PLIM_BINARY_OR:
        return true;
    default:
        return false;
    }
}

enum plim_status plim_cuda_plan_reduce(const struct plim_cuda_plan *plan, const struct plim_op *op)
{
    const struct plim_array *out = op->out[0], *in = op->in[0];
    struct dims kept, folded;
    if (!is_fold(op->binary)) return PLIM_INVALID;
    enum plim_status st = split_dims(out, in, op->dims, &kept, &folded);
    if (st != PLIM_OK || op->part > 0) return st; /* part 0 has computed everything */
    dims_merge(&kept);
    dims_merge(&folded);

    bool norm = op->binary == PLIM_BINARY_HYPOT;
    struct pass p = {.integers = plim_cuda_plan_is_integer(in) && !norm};
    struct plim_reduce_args *a = &p.args;
    a->in = in->data, a->out = out->data;
    a->in_dtype = in->dtype, a->out_dtype = out->dtype;
    a->alpha = op->alpha;
    a->fold = norm ? PLIM_BINARY_ADD : op->binary;
    a->square = a->root = norm;
    a->outputs = set_dims(&kept, a->kept, a->kept_stride, &a->kept_dims);
    a->folded_elements = set_dims(&folded, a->folded, a->folded_stride, &a->folded_dims);
    for (int d = 0; d < kept.count; d++) a->out_stride[d] = kept.out[d];
    if (a->outputs == 0) return PLIM_OK;
    if (a->folded_elements == 0 && (a->fold == PLIM_BINARY_MAX || a->fold == PLIM_BINARY_MIN))
        return PLIM_INVALID; /* an empty range has no minimum or maximum */
    p.rows = kept.count == 0 || (folded.count > 0 && distance(folded.in[0]) < distance(kept.in[0]));
    return reduce(plan, op, &p);
}

/* --- running sums ----------------------------------------------------------------------------- */

enum plim_status plim_cuda_plan_cumsum(const struct plim_cuda_plan *plan, const struct plim_op *op)
{
    const struct plim_array *operands[] = {op->out[0], op->in[0]};
    struct plim_scan_args args = {.rows = 0};
    enum plim_status st =
        plim_walk_init(&args.walk, operands, 2, PLIM_WALK_ORDERED | PLIM_WALK_KEEP_INNER);
    if (st != PLIM_OK || args.walk.elements == 0) return st;
    args.rows = args.walk.elements / args.walk.extent[0].divisor;
    bool integers = plim_cuda_plan_is_integer(op->out[0]) && plim_cuda_plan_is_integer(op->in[0]);
    int64_t threads = (int64_t)args.rows * PLIM_SCAN_THREADS;
    return plim_cuda_plan_launch(plan, integers ? "scan_integer" : "scan_float",
                                 plim_cuda_plan_blocks(plan, threads, PLIM_SCAN_THREADS),
                                 PLIM_SCAN_THREADS, &args, sizeof args);
}
