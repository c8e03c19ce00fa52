/* Matmuls in cuBLASLt's terms; see gemm.h. */
#include "gemm.h"

/* The operation's operands are indexed by their positions in plim_gemm; only the matrices of A and B are exchanged, at
 * the very end. */
enum { A = PLIM_GEMM_A, B = PLIM_GEMM_B, C = PLIM_GEMM_C, D = PLIM_GEMM_D };
enum { MAX_BATCH_DIMS = PLIM_GEMM_MAX_BATCH_DIMS };

struct product {
    const struct plim_array *array[PLIM_GEMM_OPERANDS]; /* C: may be NULL */
    int64_t m, n, k;
    int64_t row_stride[PLIM_GEMM_OPERANDS], column_stride[PLIM_GEMM_OPERANDS];
    /* batch dimensions, outermost first; those of extent 1 are omitted */
    int dims;
    int64_t extent[MAX_BATCH_DIMS], stride[PLIM_GEMM_OPERANDS][MAX_BATCH_DIMS];
    enum plim_gemm_addend addend;
};

/* Returns the stride of dimension `i` from the end, broadcast to the result: 0 if it repeats. */
static int64_t stride_from_end(const struct plim_array *a, int i)
{
    int at = a->ndim - i;
    return at < 0 || a->shape[at] == 1 ? 0 : a->stride[at];
}

static bool broadcasts(const struct plim_array *a, const struct plim_array *to, int first)
{
    if (a->ndim > to->ndim) return false;
    for (int i = first; i <= a->ndim; i++) {
        int64_t n = a->shape[a->ndim - i];
        if (n != 1 && n != to->shape[to->ndim - i]) return false;
    }
    return true;
}

static enum plim_status check(const struct plim_op *op, struct plim_error *err)
{
    const struct plim_array *a = op->in[0], *b = op->in[1], *d = op->out[0];
    const struct plim_array *c = op->n_in > 2 ? op->in[2] : NULL;
    if (a->ndim < 2 || b->ndim < 2 || d->ndim < 2)
        return plim_fail(err, PLIM_INVALID, "matmul of a vector, expected at least 2 dimensions");
    bool fit = a->shape[a->ndim - 1] == b->shape[b->ndim - 2] &&
               a->shape[a->ndim - 2] == d->shape[d->ndim - 2] &&
               b->shape[b->ndim - 1] == d->shape[d->ndim - 1] && broadcasts(a, d, 3) &&
               broadcasts(b, d, 3) && (!c || broadcasts(c, d, 1));
    if (!fit) return plim_fail(err, PLIM_INVALID, "the shapes of a matmul do not fit together");
    bool floats = plim_dtype_is_float(a->dtype) && (!c || c->dtype == d->dtype) &&
                  (d->dtype == a->dtype || d->dtype == PLIM_F32);
    bool bytes = a->dtype == PLIM_U8 && d->dtype == PLIM_I32 && !c;
    if (a->dtype != b->dtype || (!floats && !bytes))
        return plim_fail(err, PLIM_UNSUPPORTED, "matmul of %s and %s into %s",
                         plim_dtype_name((enum plim_dtype)a->dtype),
                         plim_dtype_name((enum plim_dtype)b->dtype),
                         plim_dtype_name((enum plim_dtype)d->dtype));
    return PLIM_OK;
}

static void set_strides(struct product *p, int operand, const struct plim_array *x)
{
    p->array[operand] = x;
    p->row_stride[operand] = stride_from_end(x, 2);
    p->column_stride[operand] = stride_from_end(x, 1);
    const struct plim_array *d = p->array[D];
    for (int dim = 0, i = d->ndim; i > 2; i--)
        if (d->shape[d->ndim - i] != 1) p->stride[operand][dim++] = stride_from_end(x, i);
}

/* From here on C has the layout of D. */
static void lay_out_as_result(struct product *p)
{
    p->array[C] = p->array[D];
    p->row_stride[C] = p->row_stride[D];
    p->column_stride[C] = p->column_stride[D];
    for (int i = 0; i < p->dims; i++) p->stride[C][i] = p->stride[D][i];
}

static void add_copied(struct product *p)
{
    p->addend = PLIM_GEMM_C_COPIED;
    lay_out_as_result(p);
}

/* PyTorch's rule for using the epilogue (addmm_out_cuda_impl in native/cuda/Blas.cpp): a contiguous row, and neither k
 * nor n is 1. It runs along the rows of a row-major result, and is not scaled. */
static bool uses_bias_epilogue(const struct product *p, const struct plim_op *op)
{
    if (op->epilogue != PLIM_EPILOGUE_BIAS || op->beta != 1 || p->k == 1 || p->n == 1) return false;
    if (p->column_stride[C] != 1 || p->row_stride[C] != 0 || p->column_stride[D] != 1) return false;
    for (int i = 0; i < p->dims; i++)
        if (p->stride[C][i]) return false;
    return true;
}

static void choose_addend(struct product *p, const struct plim_op *op)
{
    bool repeats = (p->m > 1 && p->row_stride[C] == 0) || (p->n > 1 && p->column_stride[C] == 0);
    if (uses_bias_epilogue(p, op))
        p->addend = PLIM_GEMM_C_BIAS;
    else if (repeats)
        add_copied(p);
    else
        p->addend = PLIM_GEMM_C_MATRIX;
}

static struct product read_product(const struct plim_op *op)
{
    const struct plim_array *d = op->out[0];
    struct product p = {.array[D] = d,
                        .m = d->shape[d->ndim - 2],
                        .n = d->shape[d->ndim - 1],
                        .k = op->in[0]->shape[op->in[0]->ndim - 1]};
    for (int i = 0; i < d->ndim - 2; i++)
        if (d->shape[i] != 1) p.extent[p.dims++] = d->shape[i];
    set_strides(&p, A, op->in[0]);
    set_strides(&p, B, op->in[1]);
    set_strides(&p, D, d);
    lay_out_as_result(&p); /* so that a product without C folds like one with it */
    if (op->n_in > 2 && op->in[2] && op->beta != 0) {
        set_strides(&p, C, op->in[2]);
        choose_addend(&p, op);
    }
    return p;
}

static void remove_dim(struct product *p, int dim)
{
    p->dims--;
    for (int i = dim; i < p->dims; i++) {
        p->extent[i] = p->extent[i + 1];
        for (int x = A; x <= D; x++) p->stride[x][i] = p->stride[x][i + 1];
    }
}

/* Merges two adjacent dimensions if every operand steps evenly through both. */
static void merge_batch_dims(struct product *p)
{
    for (int i = p->dims - 2; i >= 0; i--) {
        bool even = true;
        for (int x = A; x <= D; x++)
            even = even && p->stride[x][i] == p->stride[x][i + 1] * p->extent[i + 1];
        if (!even) continue;
        p->extent[i + 1] *= p->extent[i];
        remove_dim(p, i);
    }
}

/* The innermost batch dimension becomes rows if b is the same for all of it. */
static void fold_into_rows(struct product *p)
{
    static const int with_rows[] = {A, C, D};
    while (p->dims > 0) {
        int last = p->dims - 1;
        if (p->stride[B][last] != 0 || p->stride[A][last] == 0) return;
        for (int i = 0; i < 3 && p->m > 1; i++) {
            int x = with_rows[i];
            if (p->stride[x][last] != p->m * p->row_stride[x]) return;
        }
        for (int i = 0; i < 3 && p->m == 1; i++)
            p->row_stride[with_rows[i]] = p->stride[with_rows[i]][last];
        p->m *= p->extent[last];
        remove_dim(p, last);
    }
}

/* Describes a column-major matrix, or its transpose if that is column-major. Returns false if neither is. */
static bool read_matrix(const struct product *p, int operand, bool turned, int64_t rows,
                        int64_t columns, struct plim_gemm_matrix *out)
{
    int64_t down = turned ? p->column_stride[operand] : p->row_stride[operand];
    int64_t across = turned ? p->row_stride[operand] : p->column_stride[operand];
    for (int transposed = 0; transposed < 2; transposed++) {
        int64_t r = transposed ? columns : rows, c = transposed ? rows : columns;
        int64_t dr = transposed ? across : down, dc = transposed ? down : across;
        if ((r != 1 && dr != 1) || (c != 1 && dc < r)) continue;
        *out = (struct plim_gemm_matrix){.data = p->array[operand]->data,
                                         .rows = r,
                                         .columns = c,
                                         .ld = c == 1 ? r : dc,
                                         .transposed = transposed};
        return true;
    }
    return false;
}

/* Describes all operands, with the result as it is or with everything transposed. */
static bool read_matrices(struct product *p, bool turned, struct plim_gemm *g)
{
    int64_t rows = turned ? p->n : p->m, columns = turned ? p->m : p->n;
    int left = turned ? B : A, right = turned ? A : B;
    struct plim_gemm_matrix *m = g->matrix;
    if (!read_matrix(p, D, turned, rows, columns, &m[D]) || m[D].transposed) return false;
    if (!read_matrix(p, left, turned, rows, p->k, &m[A])) return false;
    if (!read_matrix(p, right, turned, p->k, columns, &m[B])) return false;
    if (p->addend == PLIM_GEMM_C_MATRIX &&
        (!read_matrix(p, C, turned, rows, columns, &m[C]) || m[C].transposed))
        add_copied(p);
    if (p->addend != PLIM_GEMM_C_MATRIX) {
        m[C] = m[D];
        m[C].data = p->array[C]->data;
    }
    return true;
}

/* The longest batch dimension is handled by the call, the others are runs. */
static void set_batches(const struct product *p, bool turned, struct plim_gemm *g)
{
    int longest = 0;
    for (int i = 1; i < p->dims; i++)
        if (p->extent[i] > p->extent[longest]) longest = i;
    g->batch = p->dims ? p->extent[longest] : 1;
    for (int x = A; x <= D; x++) {
        int source = turned && x <= B ? A + B - x : x;
        if (p->dims) g->matrix[x].batch_stride = p->stride[source][longest];
        for (int i = 0, run = 0; i < p->dims; i++)
            if (i != longest) g->runs_stride[x][run++] = p->stride[source][i];
    }
    for (int i = 0; i < p->dims; i++)
        if (i != longest) g->runs_extent[g->runs_dims++] = p->extent[i];
}

enum plim_status plim_gemm_describe(const struct plim_op *op, struct plim_gemm *out,
                                    struct plim_error *err)
{
    enum plim_status st = check(op, err);
    if (st) return st;
    struct product p = read_product(op);
    merge_batch_dims(&p);
    fold_into_rows(&p);
    *out =
        (struct plim_gemm){.k = p.k, .in_dtype = op->in[0]->dtype, .out_dtype = op->out[0]->dtype};
    bool turned = read_matrices(&p, true, out);
    if (!turned && !read_matrices(&p, false, out))
        return plim_fail(err, PLIM_UNSUPPORTED,
                         "matmul of a matrix without a dimension of stride 1");
    out->addend = p.addend;
    set_batches(&p, turned, out);
    return PLIM_OK;
}

int64_t plim_gemm_runs(const struct plim_gemm *gemm)
{
    int64_t runs = 1;
    for (int i = 0; i < gemm->runs_dims; i++) runs *= gemm->runs_extent[i];
    return runs;
}

uint64_t plim_gemm_address(const struct plim_gemm *gemm, int operand, int64_t run)
{
    int64_t offset = 0;
    for (int i = gemm->runs_dims - 1; i >= 0; i--) {
        offset += run % gemm->runs_extent[i] * gemm->runs_stride[operand][i];
        run /= gemm->runs_extent[i];
    }
    uint8_t dtype = operand <= PLIM_GEMM_B ? gemm->in_dtype : gemm->out_dtype;
    return gemm->matrix[operand].data +
           (uint64_t)(offset * plim_dtype_size((enum plim_dtype)dtype));
}
