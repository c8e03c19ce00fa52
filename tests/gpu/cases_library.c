/* What NVIDIA's libraries compute for the cuda device, with the working memory that PyTorch would
 * have asked for: cuBLASLt's products, cuDNN's attention. */
#include "devices/host/reference.h"
#include "devices/needs/needs_attention.h"
#include "kernel_case_device.h"

#include <criterion/criterion.h>
#include <math.h>

static struct kernel_case c;

static void setup(void)
{
    kernel_case_init(&c, 9);
}

static void finish(void)
{
    kernel_case_finish(&c);
}

TestSuite(library, .init = setup, .fini = finish);

/* --- products --------------------------------------------------------------------------------- */

enum { WORKSPACE = 4 << 20 };

static const int by_rows[] = {0, 1, 2}, by_columns[] = {0, 2, 1};

/* (batches, rows, columns), or (rows, columns) where there is one batch. */
static const struct plim_array *matrix(enum plim_dtype dtype, int64_t batches, int64_t rows,
                                       int64_t columns, bool turned)
{
    static const int plain[] = {0, 1}, other[] = {1, 0};
    const int64_t shape[] = {batches, rows, columns};
    if (batches == 1)
        return kernel_case_permuted(&c, dtype, 2, shape + 1, turned ? other : plain, 0);
    return kernel_case_permuted(&c, dtype, 3, shape, turned ? by_columns : by_rows, 0);
}

struct product {
    int64_t batches, m, n, k;
    enum plim_dtype in, out;
    bool turn_a, turn_b, bias, tf32;
    double beta; /* of an addend of the result's shape; 0: none */
};

/* Terms of up to 4 that cancel: sums are known to a share of 4 sqrt(k); TF32 has ten bits. */
static void check_product(const struct product *p)
{
    struct plim_op op = {.kind = PLIM_OP_MATMUL,
                         .n_out = 1,
                         .n_in = 2,
                         .alpha = 1,
                         .tf32 = p->tf32,
                         .out = {matrix(p->out, p->batches, p->m, p->n, false)},
                         .in = {matrix(p->in, p->batches, p->m, p->k, p->turn_a),
                                matrix(p->in, p->batches, p->k, p->n, p->turn_b)}};
    if (p->bias) op.epilogue = PLIM_EPILOGUE_BIAS, op.beta = 1;
    if (p->bias) op.in[op.n_in++] = KERNEL_ARRAY(&c, p->out, p->n);
    if (p->beta != 0) op.beta = p->beta;
    if (p->beta != 0) op.in[op.n_in++] = matrix(p->out, p->batches, p->m, p->n, false);
    op.scratch[op.n_scratch++] = kernel_case_scratch(&c, WORKSPACE);
    double epsilons = p->tf32 ? 0x1p13 : p->out == PLIM_F32 ? 16 : 1;
    kernel_case_check(&c, &op, epsilons, 4 * sqrt((double)p->k));
    kernel_case_finish(&c);
}

static const enum plim_dtype types[] = {PLIM_F32, PLIM_BF16, PLIM_F16};

Test(library, products_of_every_type_and_order)
{
    for (int t = 0; t < 3; t++)
        for (int turn = 0; turn < 4; turn++) {
            struct product p = {1, 67, 129, 200, types[t], types[t], turn & 1, turn & 2, 0, 0, 0};
            check_product(&p);
            p.batches = 6;
            check_product(&p);
        }
}

Test(library, products_of_bytes)
{
    static const int64_t sizes[][3] = {{8, 64, 128}, {1, 4, 4}, {67, 132, 200}, {300, 260, 12}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        int64_t m = sizes[i][0], n = sizes[i][1], k = sizes[i][2];
        struct plim_op op = {.kind = PLIM_OP_MATMUL_INT8,
                             .n_out = 1,
                             .n_in = 2,
                             .out = {KERNEL_ARRAY(&c, PLIM_I32, m, n)},
                             .in = {KERNEL_ARRAY(&c, PLIM_U8, m, k), KERNEL_ARRAY(&c, PLIM_U8, n, k)}};
        kernel_case_fill(&c, op.in[0], 0, 256);
        kernel_case_fill(&c, op.in[1], 0, 256);
        kernel_case_check(&c, &op, 0, 0);
        kernel_case_finish(&c);
    }
}

/* The second group has no rows; `turned`: in the layout of a weight's transpose. */
static void check_groups(enum plim_dtype type, bool summed, bool turned)
{
    enum { GROUPS = 5, ROWS = 40, K = 24, N = 16 };
    static const int64_t ends[GROUPS] = {8, 8, 20, 33, 40};
    const struct plim_array *at = KERNEL_ARRAY(&c, PLIM_I32, GROUPS);
    for (int i = 0; i < GROUPS; i++) kernel_case_set(at, i, (double)ends[i]);
    struct plim_op op = {.kind = PLIM_OP_MATMUL_GROUPED, .n_out = 1, .n_in = 3, .alpha = 1, .in = {NULL, NULL, at}};
    op.out[0] = summed ? matrix(type, GROUPS, K, N, false) : matrix(type, 1, ROWS, N, false);
    op.in[0] = summed ? matrix(type, 1, K, ROWS, turned) : matrix(type, 1, ROWS, K, turned);
    op.in[1] = summed ? matrix(type, 1, ROWS, N, false) : matrix(type, GROUPS, K, N, turned);
    kernel_case_check(&c, &op, type == PLIM_F32 ? 16 : 1, 4 * sqrt((double)ROWS));
    kernel_case_finish(&c);
}

Test(library, products_of_groups)
{
    for (int t = 0; t < 3; t++)
        for (int way = 0; way < 4; way++) check_groups(types[t], way & 1, way & 2);
}

Test(library, products_of_sizes_that_are_no_multiple_of_anything)
{
    static const int64_t sizes[][3] = {{1, 1, 1}, {1, 257, 64}, {300, 1, 33}, {5, 7, 1}};
    for (int t = 0; t < 3; t++)
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
            check_product(&(struct product){.batches = 1,
                                            .m = sizes[i][0],
                                            .n = sizes[i][1],
                                            .k = sizes[i][2],
                                            .in = types[t],
                                            .out = types[t]});
}

Test(library, products_with_a_bias_and_with_an_addend)
{
    for (int t = 0; t < 3; t++) {
        check_product(&(struct product){1, 64, 96, 128, types[t], types[t], 0, 1, true, 0, 0});
        check_product(&(struct product){1, 64, 96, 128, types[t], types[t], 0, 1, 0, 0, -1.5});
    }
}

Test(library, products_into_a_wider_type)
{
    for (int t = 1; t < 3; t++)
        check_product(&(struct product){1, 64, 96, 128, types[t], PLIM_F32, 0, 0, 0, 0, 0});
}

Test(library, products_with_tf32)
{
    check_product(&(struct product){1, 64, 96, 128, PLIM_F32, PLIM_F32, 0, 0, 0, true, 0});
}

/* --- attention -------------------------------------------------------------------------------- */

struct call {
    int64_t batch, heads, kv_heads, q_length, k_length, size;
    enum plim_dtype dtype;
    bool causal, mask;
    double dropped;
};

static const struct plim_array *operand(const struct call *t, int64_t heads, int64_t length)
{
    static const int heads_inside[] = {0, 2, 1, 3};
    const int64_t shape[] = {t->batch, heads, length, t->size};
    return kernel_case_permuted(&c, t->dtype, 4, shape, heads_inside, 0);
}

static void add_scratch(struct plim_op *op, const struct call *t, enum plim_sdpa kernel)
{
    struct plim_attention_shape shape = {.batch = t->batch,
                                         .heads = t->heads,
                                         .kv_heads = t->kv_heads,
                                         .q_length = t->q_length,
                                         .k_length = t->k_length,
                                         .head_size = t->size,
                                         .dtype = t->dtype,
                                         .has_mask = t->mask,
                                         .mask_batch = t->batch,
                                         .mask_heads = 1,
                                         .causal = t->causal,
                                         .dropout = t->dropped > 0,
                                         .training = true,
                                         .contiguous_heads = true};
    struct plim_attention_need needs[PLIM_SDPA_MAX_NEEDS];
    bool forward = op->kind == PLIM_OP_ATTENTION;
    int count = (forward ? plim_attention_forward_needs : plim_attention_backward_needs)(
        kernel_case_gpu(), kernel, &shape, needs);
    op->n_scratch = 0;
    for (int i = 0; i < count; i++)
        if (needs[i].role == PLIM_NEED_TEMPORARY && needs[i].bytes > 0)
            op->scratch[op->n_scratch++] = kernel_case_scratch(&c, needs[i].bytes);
}

static const struct plim_array *make_mask(const struct call *t)
{
    const struct plim_array *mask =
        KERNEL_ARRAY(&c, t->dtype, t->batch, 1, t->q_length, t->k_length);
    for (int64_t i = 1; i < plim_array_elements(mask); i += 3)
        if (i % t->k_length) kernel_case_set(mask, i, -INFINITY); /* never a whole row */
    return mask;
}

/* Where PyTorch takes cuDNN, so must we; its own kernels are never a fall-back for us from 8.0 on. */
static void check_engine(enum plim_sdpa kernel)
{
    char seen[PLIM_SDPA_ENGINES_TEXT];
    int cc = kernel_case_gpu()->compute_capability;
    unsigned engines = kernel_case_sdpa_engines();
    plim_sdpa_engines_text(engines, seen);
    if (kernel == PLIM_SDPA_CUDNN && cc >= 90 && cc < 110)
        cr_assert(engines == PLIM_SDPA_BY_CUDNN, "not cuDNN, but %s", seen);
    else if (cc >= 80)
        cr_assert(!(engines & PLIM_SDPA_BY_FALLBACK), "a fall-back: %s", seen);
}

/* Forward by the kernel that PyTorch takes on this GPU, and backward after the reference's. */
static void check_attention(const struct call *t, enum plim_sdpa kernel)
{
    const struct plim_array *q = operand(t, t->heads, t->q_length);
    const struct plim_array *k = operand(t, t->kv_heads, t->k_length);
    const struct plim_array *v = operand(t, t->kv_heads, t->k_length);
    const struct plim_array *mask = t->mask ? make_mask(t) : NULL;
    const struct plim_array *out = operand(t, t->heads, t->q_length);
    const struct plim_array *lse = KERNEL_ARRAY(&c, PLIM_F32, t->batch, t->heads, t->q_length);
    struct plim_op op = {.kind = PLIM_OP_ATTENTION,
                         .sdpa = (uint8_t)kernel,
                         .n_out = 2,
                         .n_in = mask ? 4 : 3,
                         .beta = 1 / sqrt((double)t->size),
                         .causal = t->causal,
                         .out = {out, lse},
                         .in = {q, k, v, mask}};
    add_scratch(&op, t, kernel);
    kernel_case_check(&c, &op, 2, 2);
    check_engine(kernel);
    cr_assert(plim_reference_run(&op) == PLIM_OK);
    op.kind = PLIM_OP_ATTENTION_BACKWARD;
    op.n_in = mask ? 7 : 6;
    op.n_out = 3;
    const struct plim_array *in[] = {operand(t, t->heads, t->q_length), q, k, v, out, lse, mask};
    for (int i = 0; i < 7; i++) op.in[i] = in[i];
    op.out[0] = operand(t, t->heads, t->q_length);
    op.out[1] = operand(t, t->kv_heads, t->k_length);
    op.out[2] = operand(t, t->kv_heads, t->k_length);
    add_scratch(&op, t, kernel);
    kernel_case_check(&c, &op, 4, 8);
    check_engine(kernel);
    kernel_case_finish(&c);
}

static const struct call calls[] = {{2, 3, 3, 128, 128, 64, PLIM_BF16, true, false, 0},
                                    {2, 3, 3, 128, 128, 64, PLIM_F16, false, false, 0},
                                    {1, 4, 2, 96, 96, 128, PLIM_BF16, true, false, 0},
                                    {2, 2, 2, 64, 80, 40, PLIM_F16, false, false, 0},
                                    {2, 2, 2, 128, 128, 64, PLIM_BF16, false, true, 0},
                                    {1, 1, 1, 257, 257, 80, PLIM_BF16, true, false, 0}};

static void check_all(enum plim_sdpa kernel)
{
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        if (kernel != PLIM_SDPA_FLASH || !calls[i].mask) check_attention(&calls[i], kernel);
}

Test(library, attention_with_the_scratch_of_flash)
{
    check_all(PLIM_SDPA_FLASH);
}

Test(library, attention_with_the_scratch_of_the_efficient_kernel)
{
    check_all(PLIM_SDPA_EFFICIENT);
}

Test(library, attention_with_the_scratch_of_cudnn)
{
    if (kernel_case_gpu()->compute_capability >= 80) check_all(PLIM_SDPA_CUDNN);
}

/* The sum of the elements of batch b and head h. */
static double head_sum(const struct plim_array *a, int64_t b, int64_t h)
{
    int64_t count = a->shape[2] * a->shape[3];
    double sum = 0;
    for (int64_t i = 0; i < count; i++)
        sum += kernel_case_get(a, (b * a->shape[1] + h) * count + i);
    return sum;
}

/* cuDNN draws its own random numbers, so no element can be compared. With V and dO of ones, out is the sum
 * of P's rows after dropout and dV that of its columns: of all they are the same number if both directions
 * dropped the same. The scale is such that a row has few large scores. */
static void check_dropout(const struct call *t)
{
    const struct plim_array *q = operand(t, t->heads, t->q_length);
    const struct plim_array *k = operand(t, t->kv_heads, t->k_length);
    const struct plim_array *ones = operand(t, t->heads, t->k_length);
    const struct plim_array *out = operand(t, t->heads, t->q_length);
    const struct plim_array *dq = operand(t, t->heads, t->q_length);
    const struct plim_array *dk = operand(t, t->kv_heads, t->k_length);
    const struct plim_array *dv = operand(t, t->kv_heads, t->k_length);
    const struct plim_array *lse = KERNEL_ARRAY(&c, PLIM_F32, t->batch, t->heads, t->q_length);
    for (int64_t i = 0; i < plim_array_elements(ones); i++) kernel_case_set(ones, i, 1);
    struct plim_op op = {.kind = PLIM_OP_ATTENTION,
                         .sdpa = PLIM_SDPA_CUDNN,
                         .n_out = 2,
                         .n_in = 3,
                         .alpha = t->dropped,
                         .beta = 4,
                         .seed = 1234,
                         .out = {out, lse},
                         .in = {q, k, ones}};
    struct plim_op back = op;
    back.kind = PLIM_OP_ATTENTION_BACKWARD;
    back.n_in = 6;
    back.n_out = 3;
    const struct plim_array *in[] = {ones, q, k, ones, out, lse}, *grads[] = {dq, dk, dv};
    for (int i = 0; i < 6; i++) back.in[i] = in[i];
    for (int i = 0; i < 3; i++) back.out[i] = grads[i];
    add_scratch(&op, t, PLIM_SDPA_CUDNN);
    add_scratch(&back, t, PLIM_SDPA_CUDNN);
    kernel_case_run(&c, &op);
    check_engine(PLIM_SDPA_CUDNN);
    kernel_case_run(&c, &back);
    check_engine(PLIM_SDPA_CUDNN);
    double heads = (double)(t->batch * t->heads), each = (double)(t->q_length * t->size), all = 0;
    for (int64_t b = 0; b < t->batch; b++)
        for (int64_t h = 0; h < t->heads; h++) {
            double forward = head_sum(out, b, h) / each, backward = head_sum(dv, b, h) / each;
            cr_assert(fabs(forward - backward) < 0.01, "head %d: %g forward, %g backward", (int)h,
                      forward, backward);
            all += forward;
        }
    double off = fabs(all / heads - 1);
    cr_assert(off < 0.1 && off > 1e-4, "a mean of %g: nothing was dropped, or not by its share",
              all / heads);
    kernel_case_finish(&c);
}

Test(library, dropout_of_cudnn_drops_the_same_in_both_directions)
{
    if (kernel_case_gpu()->compute_capability < 80) return;
    check_dropout(&(struct call){2, 4, 4, 128, 128, 64, PLIM_F16, false, false, 0.25});
    check_dropout(&(struct call){2, 4, 4, 96, 96, 128, PLIM_F16, false, false, 0.5});
}
