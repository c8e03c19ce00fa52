#include "devices/cuda/kernels/args_flash.h"
#include "devices/host/reference.h"
#include "support/kernel_case.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static struct kernel_case c;

static void setup(void)
{
    kernel_case_init(&c, 5);
}

static void finish(void)
{
    kernel_case_finish(&c);
}

TestSuite(kernels_attention, .init = setup, .fini = finish);

/* One call. Lengths of 0 are 1. */
struct call {
    int64_t batch, heads, kv_heads, q_length, k_length, size, v_size;
    enum plim_dtype dtype;
    bool causal;
    double dropout;
    int mask_dims; /* 0: none */
    int64_t mask_shape[4];
    bool heads_inside; /* in memory (batch, length, heads, size) */
    int64_t offset;    /* of the operands from an aligned address */
    bool mask_trains;  /* backward writes its gradient, too */
    int unseen;        /* this query's mask is minus infinity; 0: none */
    int64_t window;
    double softcap;
    int documents;     /* 0: one */
    int ends[12];      /* of the documents, from 0 on */
};

enum { Q, K, V };

static const struct plim_array *operand(const struct call *t, int64_t heads, int64_t length,
                                        int64_t size)
{
    static const int inside[] = {0, 2, 1, 3}, outside[] = {0, 1, 2, 3};
    const int64_t shape[] = {t->batch, heads, length, size};
    return kernel_case_permuted(&c, t->dtype, 4, shape, t->heads_inside ? inside : outside,
                                t->offset);
}

static const struct plim_array *make_mask(const struct call *t)
{
    if (t->mask_dims == 0) return NULL;
    const struct plim_array *mask =
        kernel_case_array(&c, t->dtype, t->mask_dims, t->mask_shape + 4 - t->mask_dims);
    for (int64_t i = 0; i < plim_array_elements(mask); i += 3) kernel_case_set(mask, i, -INFINITY);
    for (int64_t j = 0; t->unseen && j < t->k_length; j++)
        kernel_case_set(mask, t->unseen * t->k_length + j, -INFINITY);
    return mask;
}

static const struct plim_array *make_ends(const struct call *t)
{
    if (!t->documents) return NULL;
    const struct plim_array *ends = KERNEL_ARRAY(&c, PLIM_I32, t->documents + 1);
    for (int i = 0; i <= t->documents; i++) kernel_case_set(ends, i, t->ends[i]);
    return ends;
}

static void make_forward(struct plim_op *op, const struct call *t)
{
    const struct plim_array *mask = make_mask(t), *ends = make_ends(t);
    *op = (struct plim_op){
        .kind = PLIM_OP_ATTENTION,
        .n_out = 2,
        .n_in = ends ? 5 : mask ? 4 : 3,
        .alpha = t->dropout,
        .window = t->window,
        .softcap = t->softcap,
        .beta = 1 / sqrt((double)t->size),
        .causal = t->causal,
        .seed = 0xfedcba9876543210u,
        .out = {operand(t, t->heads, t->q_length, t->v_size),
                KERNEL_ARRAY(&c, PLIM_F32, t->batch, t->heads, t->q_length)},
        .in = {operand(t, t->heads, t->q_length, t->size),
               operand(t, t->kv_heads, t->k_length, t->size),
               operand(t, t->kv_heads, t->k_length, t->v_size), mask, ends},
    };
}

/* 3: logsumexp is fp32 whatever the operands are, and comes from scores in units of log 2. The GPU's own exponentials
 * and sums differ by more than the emulator's (an H200: 2.3, and 34 in fp32). */
static double tolerance(enum plim_dtype dtype)
{
    return dtype == PLIM_F32 ? 64 : 3;
}

/* Whatever rows are of whole 16 bytes is for tensor cores; on 7.5 fp16 alone. */
static void expect_engine(const struct call *t, const struct plim_op *op)
{
    bool rows_fit = t->size % 8 == 0 && t->v_size % 8 == 0 && t->offset % 8 == 0;
    int64_t size = t->size > t->v_size ? t->size : t->v_size;
    bool has_cores = c.info.compute_capability >= (t->dtype == PLIM_F16 ? 75 : 80);
    bool wanted = has_cores && rows_fit && size <= 256 && op->n_out < 4;
    cr_expect(eq(int, plim_cuda_attention_has_tensor_cores(&c.info, op), wanted));
    cr_expect(eq(int, strncmp(c.kernel, "flash", 5) == 0, wanted), "%s", c.kernel);
}

static void check_forward(const struct call *t)
{
    struct plim_op op;
    make_forward(&op, t);
    kernel_case_check(&c, &op, tolerance(t->dtype), 2);
    expect_engine(t, &op);
    kernel_case_finish(&c);
}

/* After the reference's forward pass. */
static void check_backward(const struct call *t)
{
    struct plim_op op;
    make_forward(&op, t);
    cr_assert(eq(int, plim_reference_run(&op), PLIM_OK));
    const struct plim_array *q = op.in[Q], *k = op.in[K], *v = op.in[V], *mask = op.in[3], *ends = op.in[4];
    const struct plim_array *out = op.out[0], *logsumexp = op.out[1];
    op.kind = PLIM_OP_ATTENTION_BACKWARD;
    op.n_in = ends ? 8 : mask ? 7 : 6;
    op.n_out = 3;
    const struct plim_array *in[] = {
        operand(t, t->heads, t->q_length, t->v_size), q, k, v, out, logsumexp, mask, ends};
    for (int i = 0; i < 8; i++) op.in[i] = in[i];
    op.out[Q] = operand(t, t->heads, t->q_length, t->size);
    op.out[K] = operand(t, t->kv_heads, t->k_length, t->size);
    op.out[V] = operand(t, t->kv_heads, t->k_length, t->v_size);
    if (t->mask_trains) op.out[op.n_out++] = operand(t, t->heads, t->q_length, t->k_length);
    op.scratch[op.n_scratch++] = kernel_case_scratch(&c, t->batch * t->heads * t->q_length * 4);
    kernel_case_check(&c, &op, tolerance(t->dtype), 8);
    expect_engine(t, &op);
    kernel_case_finish(&c);
}

static void check_on(int compute_capability, struct call t)
{
    if (!t.batch) t.batch = 1;
    if (!t.heads) t.heads = 1;
    if (!t.kv_heads) t.kv_heads = t.heads;
    if (!t.v_size) t.v_size = t.size;
    c.info.compute_capability = compute_capability;
    check_forward(&t);
    check_backward(&t);
}

/* PLIM_CASES_EVERY=N in the environment: of a test's combinations the first and then every Nth. */
static void check(struct call t)
{
    static size_t asked;
    const char *sample = getenv("PLIM_CASES_EVERY");
    size_t every = sample ? strtoul(sample, NULL, 10) : 1;
    static const int with_and_without_tensor_cores[] = {80, 70};
    for (int i = 0; i < 2; i++)
        if (asked++ % every == 0) check_on(with_and_without_tensor_cores[i], t);
}

static const enum plim_dtype types[] = {PLIM_F32, PLIM_BF16, PLIM_F16};

/* Of shared memory a block may ask for 99 KiB on every GPU from 8.0 on, and for 64 on 7.5 (CUDA programming
 * guide, technical specifications per compute capability). */
static void expect_room(const char *kernels, int capability, int elements, int element_bytes, int numbers)
{
    int bytes = elements * element_bytes + numbers * (int)sizeof(float);
    cr_expect(bytes <= (capability >= 80 ? 99 : 64) * 1024, "%s: %d bytes", kernels, bytes);
}

Test(kernels_attention, tiles_are_no_larger_than_shared_memory)
{
#define FLASH(type, bytes, size, warps, keys, dq_keys, queries, stages, wide, columns)             \
    expect_room(#type, PLIM_FLASH_CAPABILITY_##type,                                               \
                (16 * warps + keys) * size + keys * wide, bytes, 0);                               \
    expect_room(#type, PLIM_FLASH_CAPABILITY_##type, 2 * (16 * warps + dq_keys) * size, bytes, 0); \
    expect_room(#type, PLIM_FLASH_CAPABILITY_##type, 2 * (16 * warps + stages * queries) * size,   \
                bytes, 2 * stages * queries);
    PLIM_FLASH_MAP(FLASH)
#undef FLASH
}

Test(kernels_attention, every_type_and_head_size)
{
    static const int64_t sizes[] = {1, 7, 8, 64, 80, 128, 129, 256};
    for (int t = 0; t < 3; t++)
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
            check(
                (struct call){.q_length = 5, .k_length = 67, .size = sizes[i], .dtype = types[t]});
}

Test(kernels_attention, lengths_around_the_tiles)
{
    static const int64_t lengths[][2] = {{1, 1},   {1, 64},  {64, 1},   {63, 65},
                                         {64, 64}, {65, 63}, {129, 131}};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
        for (int causal = 0; causal < 2; causal++)
            check((struct call){.heads = 2,
                                .q_length = lengths[i][0],
                                .k_length = lengths[i][1],
                                .size = 16,
                                .dtype = types[i % 3],
                                .causal = causal});
}

/* Tiles before, on and after the diagonal, of heads that share keys, with dropout. */
Test(kernels_attention, many_tiles_of_every_head_size)
{
    static const int64_t sizes[] = {40, 96, 160};
    for (int t = 0; t < 3; t++)
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
            check((struct call){.heads = 2,
                                .kv_heads = 1,
                                .q_length = 137,
                                .k_length = i == 0 ? 300 : 137,
                                .size = sizes[i],
                                .dropout = i == 1 ? 0.2 : 0,
                                .causal = i != 1,
                                .heads_inside = true,
                                .dtype = types[t]});
}

/* Blocks write parts of a large head of fp32: the last part may be narrow, and of keys and values one alone. */
Test(kernels_attention, parts_of_large_heads_of_fp32)
{
    static const int64_t sizes[][2] = {{136, 136}, {192, 64}, {64, 200}, {256, 8}, {8, 256}, {248, 132}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        check((struct call){.heads = 2,
                            .kv_heads = 1,
                            .q_length = 37,
                            .k_length = 50,
                            .size = sizes[i][0],
                            .v_size = sizes[i][1],
                            .dropout = i % 2 ? 0.2 : 0,
                            .causal = i % 3 == 0,
                            .heads_inside = true,
                            .dtype = PLIM_F32});
}

/* 7.5 has tensor cores for fp16 alone, and kernels of their own for them. */
Test(kernels_attention, fp16_of_compute_capability_7_5)
{
    static const struct call calls[] = {
        {.heads = 2, .q_length = 70, .k_length = 150, .size = 64, .causal = true},
        {.heads = 2, .kv_heads = 1, .q_length = 66, .k_length = 131, .size = 40, .dropout = 0.3},
        {.heads = 2, .kv_heads = 1, .q_length = 70, .k_length = 70, .size = 128, .causal = true,
         .heads_inside = true},
        {.q_length = 65, .k_length = 67, .size = 96, .v_size = 104, .dropout = 0.2, .causal = true},
        {.q_length = 35, .k_length = 70, .size = 256},
        {.heads = 2, .q_length = 33, .k_length = 50, .size = 160, .mask_dims = 2,
         .mask_shape = {0, 0, 33, 50}, .unseen = 3}};
    if (!kernel_case_has(75)) return;
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        struct call t = calls[i];
        t.dtype = PLIM_F16;
        check_on(75, t);
    }
    check_on(75, (struct call){.q_length = 9, .k_length = 9, .size = 64, .dtype = PLIM_BF16});
    check_on(75, (struct call){.q_length = 9, .k_length = 9, .size = 64, .dtype = PLIM_F32});
}

Test(kernels_attention, backward_without_scratch_for_sums_is_on_fp32_units)
{
    struct call t = {.batch = 1, .heads = 1, .kv_heads = 1, .q_length = 4, .k_length = 4, .size = 8,
                     .v_size = 8, .dtype = PLIM_BF16};
    struct plim_op op;
    make_forward(&op, &t);
    cr_expect(plim_cuda_attention_has_tensor_cores(&c.info, &op));
    const struct plim_array *q = op.in[Q];
    op.kind = PLIM_OP_ATTENTION_BACKWARD;
    op.n_in = 6;
    op.n_out = 3;
    const struct plim_array *in[] = {q, q, q, q, op.out[0], op.out[1]};
    for (int i = 0; i < 6; i++) op.in[i] = in[i];
    for (int i = 0; i < 3; i++) op.out[i] = operand(&t, 1, 4, 8);
    cr_expect(eq(int, plim_cuda_attention_has_tensor_cores(&c.info, &op), false));
    op.scratch[op.n_scratch++] = kernel_case_scratch(&c, 15);
    cr_expect(eq(int, plim_cuda_attention_has_tensor_cores(&c.info, &op), false), "a byte too few");
    op.scratch[0] = kernel_case_scratch(&c, 16);
    cr_expect(plim_cuda_attention_has_tensor_cores(&c.info, &op));
}

Test(kernels_attention, batches_heads_and_shared_heads)
{
    for (int t = 0; t < 3; t++) {
        check((struct call){.batch = 2,
                            .heads = 3,
                            .q_length = 70,
                            .k_length = 70,
                            .size = 8,
                            .causal = true,
                            .dtype = types[t]});
        check((struct call){.batch = 2,
                            .heads = 6,
                            .kv_heads = 2,
                            .q_length = 9,
                            .k_length = 66,
                            .size = 24,
                            .dtype = types[t]});
    }
}

Test(kernels_attention, operands_with_heads_inside_or_out_of_alignment)
{
    for (int t = 0; t < 3; t++)
        for (int64_t offset = 0; offset < 2; offset++)
            check((struct call){.batch = 2,
                                .heads = 4,
                                .kv_heads = 2,
                                .q_length = 33,
                                .k_length = 65,
                                .size = 40,
                                .heads_inside = true,
                                .offset = offset,
                                .dtype = types[t]});
}

Test(kernels_attention, values_of_another_size_than_keys)
{
    check((struct call){.q_length = 10, .k_length = 70, .size = 24, .v_size = 72});
    check((struct call){.q_length = 10, .k_length = 70, .size = 136, .v_size = 8});
}

Test(kernels_attention, columns_that_are_not_adjacent)
{
    const int64_t shape[] = {1, 2, 6, 16}, apart[] = {500, 240, 40, 2};
    struct plim_op op = {.kind = PLIM_OP_ATTENTION, .n_out = 1, .n_in = 3, .beta = 0.25};
    for (int i = 0; i < 3; i++) op.in[i] = kernel_case_strided(&c, PLIM_F32, 4, shape, apart, 0);
    op.out[0] = kernel_case_strided(&c, PLIM_F32, 4, shape, apart, 0);
    kernel_case_check(&c, &op, 16, 2);
}

Test(kernels_attention, rows_that_are_padded_to_vectors)
{
    const int64_t shape[] = {1, 2, 6, 7}, padded[] = {96, 48, 8, 1};
    struct plim_op op = {.kind = PLIM_OP_ATTENTION, .n_out = 1, .n_in = 3, .beta = 0.25};
    for (int i = 0; i < 3; i++) op.in[i] = kernel_case_strided(&c, PLIM_BF16, 4, shape, padded, 0);
    op.out[0] = kernel_case_strided(&c, PLIM_BF16, 4, shape, padded, 0);
    kernel_case_check(&c, &op, 1, 2);
}

Test(kernels_attention, masks_of_every_broadcast_form)
{
    static const struct {
        int dims;
        int64_t shape[4];
    } masks[] = {{4, {2, 3, 20, 70}}, {4, {1, 3, 20, 70}}, {4, {2, 1, 20, 70}}, {4, {2, 1, 1, 70}},
                 {4, {1, 1, 20, 1}},  {3, {0, 3, 20, 70}}, {2, {0, 0, 20, 70}}, {1, {0, 0, 0, 70}}};
    for (size_t i = 0; i < sizeof masks / sizeof *masks; i++) {
        struct call t = {.batch = 2,
                         .heads = 3,
                         .q_length = 20,
                         .k_length = 70,
                         .size = 16,
                         .dtype = types[i % 3],
                         .mask_dims = masks[i].dims};
        for (int d = 0; d < 4; d++) t.mask_shape[d] = masks[i].shape[d];
        check(t);
    }
}

Test(kernels_attention, a_mask_that_needs_a_gradient)
{
    static const int64_t lengths[][2] = {{20, 70}, {65, 64}, {3, 130}, {64, 1}};
    for (int i = 0; i < 12; i++)
        check((struct call){.batch = 2,
                            .heads = 3,
                            .q_length = lengths[i % 4][0],
                            .k_length = lengths[i % 4][1],
                            .size = 16,
                            .dtype = types[i % 3],
                            .dropout = i % 2 ? 0.1 : 0,
                            .mask_dims = 4,
                            .mask_shape = {1, 3, lengths[i % 4][0], lengths[i % 4][1]},
                            .mask_trains = true,
                            .unseen = i == 4 ? 2 : 0});
}

Test(kernels_attention, a_query_that_sees_nothing_gives_zeros)
{
    check((struct call){.heads = 2,
                        .q_length = 68,
                        .k_length = 130,
                        .size = 16,
                        .mask_dims = 2,
                        .mask_shape = {0, 0, 68, 130},
                        .unseen = 66});
}

/* Around the tiles' edges, of lengths that differ too. */
Test(kernels_attention, windows)
{
    static const int64_t windows[] = {1, 15, 16, 64, 65, 100, 300};
    for (size_t i = 0; i < sizeof windows / sizeof *windows; i++)
        for (int causal = 0; causal < 2; causal++)
            check((struct call){.heads = 2,
                                .kv_heads = i % 2 ? 1 : 2,
                                .q_length = 193,
                                .k_length = i % 3 || !causal ? 193 : 150,
                                .size = i % 2 ? 16 : 72,
                                .causal = causal,
                                .window = windows[i],
                                .dropout = i % 3 == 1 ? 0.2 : 0,
                                .dtype = types[i % 3]});
}

Test(kernels_attention, documents_of_one_row)
{
    static const struct call calls[] = {
        {.documents = 1, .ends = {0, 70}},
        {.documents = 4, .ends = {0, 1, 17, 64, 70}},
        {.documents = 3, .ends = {0, 64, 128, 192}},
        {.documents = 7, .ends = {0, 3, 5, 70, 71, 130, 131, 200}},
        {.documents = 5, .ends = {0, 0, 40, 40, 140, 200}}, /* of which two have no tokens */
        {.documents = 4, .ends = {0, 30, 129, 140, 200}, .window = 20},
        {.documents = 4, .ends = {0, 30, 129, 140, 200}, .window = 90, .dropout = 0.3}};
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        for (int causal = 0; causal < 2; causal++) {
            struct call t = calls[i];
            t.heads = 2;
            t.kv_heads = i % 2 ? 2 : 1;
            t.q_length = t.k_length = t.ends[t.documents];
            t.size = i % 3 == 0 ? 136 : 24;
            t.heads_inside = true;
            t.causal = causal;
            t.dtype = types[(i + 1) % 3];
            check(t);
        }
}

Test(kernels_attention, documents_are_of_queries_and_keys_of_one_length)
{
    struct plim_op op;
    struct call t = {.batch = 1, .heads = 1, .kv_heads = 1, .q_length = 9, .k_length = 8, .size = 8, .v_size = 8,
                     .documents = 1, .ends = {0, 8}};
    make_forward(&op, &t);
    cr_expect(eq(int, plim_cuda_plan(&c.info, &op, NULL, NULL), PLIM_INVALID));
}

/* Scores far beyond the cap, where it is flat, and far below it, where it does nothing. */
Test(kernels_attention, softcapping)
{
    static const double caps[] = {0.05, 0.5, 50};
    for (int t = 0; t < 3; t++)
        for (size_t i = 0; i < sizeof caps / sizeof *caps; i++)
            check((struct call){.heads = 2,
                                .q_length = 70,
                                .k_length = 90,
                                .size = i == 1 ? 136 : 40,
                                .causal = i != 2,
                                .window = i == 1 ? 33 : 0,
                                .softcap = caps[i],
                                .dropout = i == 0 ? 0.2 : 0,
                                .dtype = types[t]});
}

Test(kernels_attention, a_mask_beside_causality)
{
    check((struct call){.q_length = 70,
                        .k_length = 70,
                        .size = 16,
                        .causal = true,
                        .mask_dims = 2,
                        .mask_shape = {0, 0, 70, 70}});
}

Test(kernels_attention, dropout_drops_what_the_host_drops)
{
    for (int t = 0; t < 3; t++) /* rows of 67, 66, 65 elements: not in step with blocks of four */
        check((struct call){.batch = 2,
                            .heads = 2,
                            .q_length = 66,
                            .k_length = 67 - t,
                            .size = 8,
                            .dropout = 0.3,
                            .dtype = types[t]});
    check((struct call){.q_length = 5, .k_length = 68, .size = 8, .dropout = 0.9, .causal = true});
    check((struct call){.q_length = 3, .k_length = 9, .size = 8, .dropout = 1});
}

Test(kernels_attention, large_scores_do_not_overflow)
{
    struct plim_op op;
    struct call t = {.batch = 1,
                     .heads = 1,
                     .kv_heads = 1,
                     .q_length = 4,
                     .k_length = 200,
                     .size = 8,
                     .v_size = 8};
    make_forward(&op, &t);
    op.beta = 100;
    kernel_case_check(&c, &op, 4096, 2); /* scores of 1000 are known to 2^-13 */
}

Test(kernels_attention, forward_without_logsumexp)
{
    struct plim_op op;
    struct call t = {.batch = 1,
                     .heads = 1,
                     .kv_heads = 1,
                     .q_length = 4,
                     .k_length = 20,
                     .size = 8,
                     .v_size = 8};
    make_forward(&op, &t);
    op.n_out = 1;
    op.out[1] = NULL;
    kernel_case_check(&c, &op, 16, 2);
}

Test(kernels_attention, no_keys_give_zeros)
{
    struct plim_op op;
    struct call t = {.batch = 1, .heads = 2, .kv_heads = 2, .q_length = 4, .size = 8, .v_size = 8};
    make_forward(&op, &t);
    kernel_case_check(&c, &op, 0, 0);
    cr_expect(eq(int, c.launches, 1));
}

Test(kernels_attention, what_no_kernel_takes_is_refused)
{
    struct plim_op op;
    struct call t = {.batch = 1,
                     .heads = 1,
                     .kv_heads = 1,
                     .q_length = 2,
                     .k_length = 2,
                     .size = 257,
                     .v_size = 8};
    make_forward(&op, &t);
    cr_expect(eq(int, plim_cuda_plan(&c.info, &op, NULL, NULL), PLIM_UNSUPPORTED));
    t.size = 8, t.heads = 3, t.kv_heads = 2;
    make_forward(&op, &t);
    cr_expect(eq(int, plim_cuda_plan(&c.info, &op, NULL, NULL), PLIM_INVALID));
}
