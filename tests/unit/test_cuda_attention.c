/* Attention through cuDNN's interface, on the stand-in of tests/doubles, which runs our operation
 * graphs by their definition, against the reference; and in which working memory. */
#include "devices/cuda/fused_attention.h"
#include "devices/half.h"
#include "devices/host/reference.h"
#include "devices/needs/needs_attention.h"
#include "devices/random.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <dlfcn.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --- a host of our own ------------------------------------------------------------------------ */

static enum plim_status view = PLIM_OK;

static enum plim_status driver_view(void *user)
{
    (void)user;
    return view;
}

static const struct plim_lib_host host = {.driver_view = driver_view};

/* A library stays loaded after its first use, and the stand-in keeps its GPU from then on. */
static void forget_stand_in(void)
{
    for (void *h; (h = dlopen(PLIM_DOUBLES_FOLDER "/libcudnn.so.9", RTLD_NOW | RTLD_NOLOAD));) {
        dlclose(h); /* this one's */
        dlclose(h); /* and the one that stayed */
    }
}

static struct plim_fused *open_stand_in(const char *gpu)
{
    forget_stand_in();
    struct plim_error err = PLIM_ERROR_INIT;
    struct plim_fused *f;
    setenv("PLIMSOLL_CUDA_PATH", PLIM_DOUBLES_FOLDER, 1);
    setenv("PLIM_DOUBLE_GPU", gpu, 1);
    cr_assert(eq(int, plim_fused_open(&host, &f, &err), PLIM_OK), "%s", err.text);
    return f;
}

/* --- a call and its arrays -------------------------------------------------------------------- */

struct problem {
    int64_t batch, heads, kv_heads, q, k, size;
    enum plim_dtype dtype;
    bool causal, heads_first;
    int64_t mask[3]; /* batch, heads, rows; 0: no mask */
    double scale, dropped;
};

static void *memory(int64_t bytes)
{
    size_t size = ((size_t)bytes + 511) / 512 * 512;
    unsigned char *p = aligned_alloc(512, size ? size : 512);
    cr_assert(ne(ptr, p, NULL));
    memset(p, 0xff, size ? size : 512); /* NaNs */
    return p;
}

static struct plim_array block(int64_t bytes)
{
    return (struct plim_array){.data = (uint64_t)(uintptr_t)memory(bytes),
                               .shape = {bytes},
                               .stride = {1},
                               .ndim = 1,
                               .dtype = PLIM_U8};
}

/* (b, heads, length, size), in memory as (b, length, heads, size) unless `heads_first`. */
static struct plim_array make(const struct problem *p, int64_t heads, int64_t length, uint64_t seed)
{
    struct plim_array a = {.shape = {p->batch, heads, length, p->size},
                           .stride = {heads * length * p->size, p->size, heads * p->size, 1},
                           .ndim = 4,
                           .dtype = (uint8_t)p->dtype};
    if (p->heads_first) {
        a.stride[1] = length * p->size;
        a.stride[2] = p->size;
    }
    int64_t count = p->batch * heads * length * p->size;
    uint16_t *data = memory(count * 2);
    for (int64_t i = 0; i < count && seed; i++) {
        float x = 2 * plim_random_unit(plim_random_word(seed, (uint64_t)i)) - 1;
        data[i] = p->dtype == PLIM_BF16 ? plim_float_to_bf16(x) : plim_float_to_fp16(x);
    }
    a.data = (uint64_t)(uintptr_t)data;
    return a;
}

/* Random, with a third of the places closed, never a whole row. */
static struct plim_array make_mask(const struct problem *p)
{
    int64_t count = p->mask[0] * p->mask[1] * p->mask[2] * p->k;
    struct plim_array a = {.shape = {p->batch, p->heads, p->q, p->k},
                           .stride = {p->mask[1] * p->mask[2] * p->k, p->mask[2] * p->k, p->k, 1},
                           .ndim = 4,
                           .dtype = (uint8_t)p->dtype};
    for (int i = 0; i < 3; i++)
        if (p->mask[i] == 1 && a.shape[i] != 1) a.stride[i] = 0;
    uint16_t *data = memory(count * 2);
    for (int64_t i = 0; i < count; i++) {
        float x = 2 * plim_random_unit(plim_random_word(9, (uint64_t)i)) - 1;
        if (i % p->k && x < -0.3f) x = -INFINITY;
        data[i] = p->dtype == PLIM_BF16 ? plim_float_to_bf16(x) : plim_float_to_fp16(x);
    }
    a.data = (uint64_t)(uintptr_t)data;
    return a;
}

static void drop(struct plim_array *a)
{
    free((void *)(uintptr_t)a->data);
}

static double value(const struct plim_array *a, int64_t i)
{
    int64_t at = 0;
    for (int d = a->ndim - 1; d >= 0; d--) {
        at += i % a->shape[d] * a->stride[d];
        i /= a->shape[d];
    }
    uint16_t half = ((const uint16_t *)(uintptr_t)a->data)[at];
    return a->dtype == PLIM_BF16 ? plim_bf16_to_float(half) : plim_fp16_to_float(half);
}

static double largest_difference(const struct plim_array *a, const struct plim_array *b)
{
    double largest = 0;
    for (int64_t i = 0; i < plim_array_elements(a); i++) {
        double d = fabs(value(a, i) - value(b, i));
        if (!(d <= largest)) largest = d; /* NaN counts */
    }
    return largest;
}

/* --- scratch as the engine hands it over ------------------------------------------------------ */

struct scratch {
    struct plim_array block[PLIM_SDPA_MAX_NEEDS];
    int count;
};

static struct plim_attention_shape shape_of(const struct problem *p)
{
    return (struct plim_attention_shape){.batch = p->batch,
                                         .heads = p->heads,
                                         .kv_heads = p->kv_heads,
                                         .q_length = p->q,
                                         .k_length = p->k,
                                         .head_size = p->size,
                                         .dtype = p->dtype,
                                         .has_mask = p->mask[0] > 0,
                                         .mask_batch = p->mask[0],
                                         .mask_heads = p->mask[1],
                                         .causal = p->causal,
                                         .training = true,
                                         .dropout = p->dropped > 0,
                                         .contiguous_heads = !p->heads_first,
                                         .grad_heads_first = p->heads_first};
}

static void hand_over(struct plim_op *op, struct scratch *s, const struct problem *p, int cc,
                      enum plim_sdpa kernel)
{
    struct plim_device_info info = {.compute_capability = cc, .multiprocessors = 132};
    struct plim_attention_shape shape = shape_of(p);
    struct plim_attention_need needs[PLIM_SDPA_MAX_NEEDS];
    int count = op->kind == PLIM_OP_ATTENTION
                    ? plim_attention_forward_needs(&info, kernel, &shape, needs)
                    : plim_attention_backward_needs(&info, kernel, &shape, needs);
    *s = (struct scratch){0};
    for (int i = 0; i < count; i++) {
        if (needs[i].role != PLIM_NEED_TEMPORARY) continue;
        s->block[s->count] = block(needs[i].bytes);
        op->scratch[s->count] = &s->block[s->count];
        s->count++;
    }
    op->n_scratch = (uint8_t)s->count;
}

static void take_back(struct scratch *s)
{
    for (int i = 0; i < s->count; i++) drop(&s->block[i]);
}

/* --- against the reference -------------------------------------------------------------------- */

enum { OUT, LSE, FORWARD_OUTPUTS };

struct gpu {
    const char *name;
    int cc;
};
static const struct gpu hopper = {"H100-SXM5-80GB", 90}, blackwell = {"B200-SXM-180GB", 100};

static double tolerance(const struct problem *p)
{
    return p->dtype == PLIM_BF16 ? 0.04 : 0.006;
}

static enum plim_status run(struct plim_fused *f, struct plim_op *op, const struct problem *p,
                            int cc, enum plim_sdpa kernel, struct plim_error *err)
{
    struct scratch s;
    hand_over(op, &s, p, cc, kernel);
    enum plim_status st = plim_fused_attention(f, op, err);
    take_back(&s);
    return st;
}

static void expect_logsumexp(const struct plim_array *seen, const struct plim_array *wanted,
                             int64_t rows)
{
    const float *a = (const float *)(uintptr_t)seen->data;
    const float *b = (const float *)(uintptr_t)wanted->data;
    for (int64_t i = 0; i < rows; i++)
        cr_assert(fabsf(a[i] - b[i]) <= 1e-4f, "row %d: %g, not %g", (int)i, a[i], b[i]);
}

/* Forward, then backward of the same call, by the reference and by the stand-in. */
static void expect_as_reference(const struct problem *p, const struct gpu *gpu)
{
    struct plim_fused *f = open_stand_in(gpu->name);
    struct plim_array q = make(p, p->heads, p->q, 1), k = make(p, p->kv_heads, p->k, 2);
    struct plim_array v = make(p, p->kv_heads, p->k, 3), grad = make(p, p->heads, p->q, 4);
    struct plim_array mask = p->mask[0] ? make_mask(p) : (struct plim_array){0};
    struct plim_array wanted[5], seen[5]; /* out, dq, dk, dv; logsumexp */
    int64_t rows = p->batch * p->heads * p->q;
    for (int i = 0; i < 4; i++) {
        wanted[i] = i < 2 ? make(p, p->heads, p->q, 0) : make(p, p->kv_heads, p->k, 0);
        seen[i] = i < 2 ? make(p, p->heads, p->q, 0) : make(p, p->kv_heads, p->k, 0);
    }
    wanted[4] = block(rows * 4);
    seen[4] = block(rows * 4);
    for (int i = 0; i < 2; i++) { /* the reference requires the logsumexp's shape */
        struct plim_array *lse = i ? &seen[4] : &wanted[4];
        *lse = (struct plim_array){
            lse->data, {p->batch, p->heads, p->q}, {p->heads * p->q, p->q, 1}, 3, PLIM_F32};
    }
    const struct plim_array *m = p->mask[0] ? &mask : NULL;
    struct plim_error err = PLIM_ERROR_INIT;
    struct plim_op op = {.kind = PLIM_OP_ATTENTION,
                         .n_out = 2,
                         .n_in = m ? 4 : 3,
                         .sdpa = PLIM_SDPA_CUDNN,
                         .causal = p->causal,
                         .alpha = p->dropped,
                         .beta = p->scale,
                         .seed = p->dropped > 0 ? 0x123456789abcd : 0,
                         .out = {&wanted[0], &wanted[4]},
                         .in = {&q, &k, &v, m}};
    cr_assert(eq(int, plim_reference_run(&op), PLIM_OK));
    op.out[0] = &seen[0];
    op.out[1] = &seen[4];
    cr_assert(eq(int, run(f, &op, p, gpu->cc, PLIM_SDPA_CUDNN, &err), PLIM_OK), "%s", err.text);
    expect_logsumexp(&seen[4], &wanted[4], rows);
    struct plim_op back = {.kind = PLIM_OP_ATTENTION_BACKWARD,
                           .n_out = 3,
                           .n_in = m ? 7 : 6,
                           .sdpa = PLIM_SDPA_CUDNN,
                           .causal = p->causal,
                           .alpha = op.alpha,
                           .beta = p->scale,
                           .seed = op.seed,
                           .out = {&wanted[1], &wanted[2], &wanted[3]},
                           .in = {&grad, &q, &k, &v, &wanted[0], &wanted[4], m}};
    cr_assert(eq(int, plim_reference_run(&back), PLIM_OK));
    for (int i = 0; i < 3; i++) back.out[i] = &seen[1 + i];
    for (int i = 0; i < 2; i++) /* the second time by the plan that is there */
        cr_assert(eq(int, run(f, &back, p, gpu->cc, PLIM_SDPA_CUDNN, &err), PLIM_OK), "%s",
                  err.text);
    static const char *const names[] = {"out", "dq", "dk", "dv"};
    for (int i = 0; i < 4; i++) {
        double difference = largest_difference(&seen[i], &wanted[i]);
        cr_expect(difference <= tolerance(p), "%s differs by %g", names[i], difference);
    }
    for (int i = 0; i < 5; i++) drop(&wanted[i]), drop(&seen[i]);
    drop(&q), drop(&k), drop(&v), drop(&grad), drop(&mask);
    plim_fused_close(f);
}

static const struct problem plain = {.batch = 2,
                                     .heads = 3,
                                     .kv_heads = 3,
                                     .q = 21,
                                     .k = 21,
                                     .size = 16,
                                     .dtype = PLIM_BF16,
                                     .scale = 0.25};

Test(attention, full)
{
    expect_as_reference(&plain, &hopper);
    expect_as_reference(&plain, &blackwell);
}

Test(attention, causal)
{
    struct problem p = plain;
    p.causal = true;
    expect_as_reference(&p, &hopper);
}

Test(attention, causal_with_more_keys_than_queries)
{
    struct problem p = plain;
    p.causal = true;
    p.k = 33;
    expect_as_reference(&p, &hopper);
}

Test(attention, fp16)
{
    struct problem p = plain;
    p.dtype = PLIM_F16;
    p.causal = true;
    expect_as_reference(&p, &hopper);
}

Test(attention, heads_that_share_keys_and_values)
{
    struct problem p = plain;
    p.heads = 6;
    p.kv_heads = 2;
    p.causal = true;
    expect_as_reference(&p, &hopper);
    expect_as_reference(&p, &blackwell);
}

Test(attention, lies_with_heads_first)
{
    struct problem p = plain;
    p.heads_first = true;
    expect_as_reference(&p, &hopper);
}

Test(attention, one_head_one_batch)
{
    struct problem p = plain;
    p.batch = p.heads = p.kv_heads = 1;
    expect_as_reference(&p, &hopper);
}

Test(attention, mask_of_every_extent)
{
    static const int64_t masks[][3] = {{2, 3, 21}, {2, 1, 21}, {1, 1, 21}, {2, 1, 1}, {1, 3, 21}};
    for (size_t i = 0; i < sizeof masks / sizeof *masks; i++) {
        struct problem p = plain;
        memcpy(p.mask, masks[i], sizeof p.mask);
        expect_as_reference(&p, &hopper);
    }
}

/* The stand-in draws as the reference does: so it is seen that both directions drop the same, by the seed
 * of the call, and what keeps the mean. */
Test(attention, dropout)
{
    struct problem p = plain;
    p.dropped = 0.3;
    expect_as_reference(&p, &hopper);
    expect_as_reference(&p, &blackwell);
    p.causal = true;
    p.heads = 6;
    p.kv_heads = 2;
    expect_as_reference(&p, &hopper);
    p.dropped = 0.9;
    p.k = 33;
    expect_as_reference(&p, &blackwell);
}

Test(attention, inference_without_logsumexp)
{
    struct plim_fused *f = open_stand_in(hopper.name);
    struct plim_array q = make(&plain, 3, 21, 1), k = make(&plain, 3, 21, 2);
    struct plim_array v = make(&plain, 3, 21, 3), out = make(&plain, 3, 21, 0);
    struct plim_array wanted = make(&plain, 3, 21, 0);
    struct plim_op op = {.kind = PLIM_OP_ATTENTION,
                         .n_out = 1,
                         .n_in = 3,
                         .beta = 1,
                         .out = {&wanted},
                         .in = {&q, &k, &v}};
    cr_assert(eq(int, plim_reference_run(&op), PLIM_OK));
    op.out[0] = &out;
    cr_expect(eq(int, run(f, &op, &plain, 90, PLIM_SDPA_CUDNN, NULL), PLIM_OK));
    cr_expect(largest_difference(&out, &wanted) <= tolerance(&plain));
    drop(&q), drop(&k), drop(&v), drop(&out), drop(&wanted);
    plim_fused_close(f);
}

/* --- what is left to other kernels ------------------------------------------------------------ */

/* A forward call of `p` in what `kernel` asks for, of which nothing is read. */
static enum plim_status try_forward_in(const char *gpu, int cc, enum plim_sdpa kernel,
                                       const struct problem *p, struct plim_error *err)
{
    struct plim_fused *f = open_stand_in(gpu);
    struct plim_array q = make(p, p->heads, p->q, 1), out = make(p, p->heads, p->q, 0);
    struct plim_array k = make(p, p->kv_heads, p->k, 2);
    struct plim_op op = {.kind = PLIM_OP_ATTENTION,
                         .n_out = 1,
                         .n_in = 3,
                         .sdpa = (uint8_t)kernel,
                         .alpha = p->dropped,
                         .beta = 1,
                         .out = {&out},
                         .in = {&q, &k, &k}};
    enum plim_status st = run(f, &op, p, cc, kernel, err);
    drop(&q), drop(&out), drop(&k);
    plim_fused_close(f);
    return st;
}

static enum plim_status try_forward(const char *gpu, const struct problem *p,
                                    struct plim_error *err)
{
    return try_forward_in(gpu, 80, PLIM_SDPA_FLASH, p, err);
}

Test(attention, dropout_is_for_the_kernel_that_pytorch_takes)
{
    struct plim_error err = PLIM_ERROR_INIT;
    struct problem p = plain;
    p.dropped = 0.1;
    cr_expect(eq(int, try_forward(hopper.name, &p, &err), PLIM_UNSUPPORTED));
    cr_expect(strstr(err.text, "dropout where PyTorch takes another kernel") != NULL, "%s",
              err.text);
    cr_expect(eq(int, try_forward_in(hopper.name, 90, PLIM_SDPA_CUDNN, &p, &err), PLIM_OK));
    p.dropped = 1;
    cr_expect(
        eq(int, try_forward_in(hopper.name, 90, PLIM_SDPA_CUDNN, &p, &err), PLIM_UNSUPPORTED));
}

/* A mask in addition to `causal` is redundant: it may even be one that the graph could not read. */
Test(attention, mask_beside_causal_is_left_out)
{
    struct plim_fused *f = open_stand_in(hopper.name);
    struct problem p = plain;
    p.causal = true;
    struct plim_array q = make(&p, 3, 21, 1), out = make(&p, 3, 21, 0), wanted = make(&p, 3, 21, 0);
    struct plim_array mask = {
        .data = q.data, .shape = {1}, .stride = {1}, .ndim = 1, .dtype = PLIM_F32};
    struct plim_op op = {.kind = PLIM_OP_ATTENTION,
                         .n_out = 1,
                         .n_in = 3,
                         .causal = true,
                         .beta = 1,
                         .out = {&wanted},
                         .in = {&q, &q, &q, &mask}};
    cr_assert(eq(int, plim_reference_run(&op), PLIM_OK));
    op.n_in = 4;
    op.out[0] = &out;
    cr_expect(eq(int, run(f, &op, &p, 90, PLIM_SDPA_CUDNN, NULL), PLIM_OK));
    cr_expect(largest_difference(&out, &wanted) <= tolerance(&p));
    drop(&q), drop(&out), drop(&wanted);
    plim_fused_close(f);
}

Test(attention, head_size_of_no_eights)
{
    struct problem p = plain;
    p.size = 20;
    cr_expect(eq(int, try_forward(hopper.name, &p, NULL), PLIM_UNSUPPORTED));
}

Test(attention, gpu_without_engines)
{
    struct plim_error err = PLIM_ERROR_INIT;
    cr_expect(eq(int, try_forward("T4", &plain, &err), PLIM_UNSUPPORTED));
    cr_expect(strstr(err.text, "no engine") != NULL, "%s", err.text);
}

/* --- where temporaries are placed ------------------------------------------------------------- */

static enum plim_status try_backward(const struct problem *p, const char *gpu, int cc,
                                     enum plim_sdpa kernel, struct plim_error *err)
{
    struct plim_fused *f = open_stand_in(gpu);
    struct plim_array q = make(p, p->heads, p->q, 1), dq = make(p, p->heads, p->q, 0);
    struct plim_array k = make(p, p->kv_heads, p->k, 2), dk = make(p, p->kv_heads, p->k, 0);
    struct plim_array lse = block(p->batch * p->heads * p->q * 4);
    struct plim_op op = {.kind = PLIM_OP_ATTENTION_BACKWARD,
                         .n_out = 3,
                         .n_in = 6,
                         .causal = p->causal,
                         .beta = 1,
                         .out = {&dq, &dk, &dk},
                         .in = {&q, &q, &k, &k, &q, &lse}};
    enum plim_status st = run(f, &op, p, cc, kernel, err);
    drop(&q), drop(&dq), drop(&k), drop(&dk), drop(&lse);
    plim_fused_close(f);
    return st;
}

/* On which GPUs cuDNN's backward fits into what another kernel of PyTorch's asks for. Engine 7,
 * the only one of Ampere and Ada, keeps dQ twice; flash and the efficient kernel once. */
Test(attention, backward_in_the_scratch_of_other_kernels)
{
    static const struct {
        const char *gpu;
        int cc;
        enum plim_sdpa kernel;
        bool heads_first, grouped;
        int64_t length;
        enum plim_status wanted;
    } rows[] = {
        {"A100-SXM4-80GB", 80, PLIM_SDPA_FLASH, false, false, 128, PLIM_UNSUPPORTED},
        {"A100-SXM4-80GB", 80, PLIM_SDPA_FLASH, false, true, 128, PLIM_UNSUPPORTED},
        {"A100-SXM4-80GB", 80, PLIM_SDPA_EFFICIENT, false, false, 128, PLIM_UNSUPPORTED},
        {"RTX-4090", 89, PLIM_SDPA_FLASH, false, false, 128, PLIM_UNSUPPORTED},
        {"RTX-4090", 89, PLIM_SDPA_FLASH, true, false, 128, PLIM_UNSUPPORTED},
        {"RTX-5090", 120, PLIM_SDPA_FLASH, false, false, 128, PLIM_UNSUPPORTED},
        /* rows rounded up to 128: enough memory for a second dQ of a short sequence */
        {"A100-SXM4-80GB", 80, PLIM_SDPA_FLASH, false, false, 40, PLIM_OK},
        /* Hopper needs 256 bytes more than flash has, unless something is left over */
        {"H100-SXM5-80GB", 90, PLIM_SDPA_FLASH, false, false, 128, PLIM_UNSUPPORTED},
        {"H100-SXM5-80GB", 90, PLIM_SDPA_FLASH, true, false, 128, PLIM_OK},
        {"H100-SXM5-80GB", 90, PLIM_SDPA_FLASH, false, false, 100, PLIM_OK},
        {"H100-SXM5-80GB", 90, PLIM_SDPA_CUDNN, false, false, 128, PLIM_OK},
        {"H100-SXM5-80GB", 90, PLIM_SDPA_CUDNN, false, true, 77, PLIM_OK},
        {"B200-SXM-180GB", 100, PLIM_SDPA_CUDNN, false, false, 136, PLIM_OK},
        {"B200-SXM-180GB", 100, PLIM_SDPA_CUDNN, false, true, 136, PLIM_OK},
        {"B200-SXM-180GB", 100, PLIM_SDPA_CUDNN, false, false, 77, PLIM_OK},
        {"B200-SXM-180GB", 100, PLIM_SDPA_CUDNN, false, true, 77, PLIM_OK},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct problem p = {.batch = 1,
                            .heads = 2,
                            .kv_heads = rows[i].grouped ? 1 : 2,
                            .q = rows[i].length,
                            .k = rows[i].length,
                            .size = 32,
                            .dtype = PLIM_BF16,
                            .heads_first = rows[i].heads_first};
        struct plim_error err = PLIM_ERROR_INIT;
        enum plim_status st = try_backward(&p, rows[i].gpu, rows[i].cc, rows[i].kernel, &err);
        cr_expect(eq(int, st, rows[i].wanted), "row %zu (%s, %d keys): %s", i, rows[i].gpu,
                  (int)rows[i].length, err.text);
    }
}

/* --- failures --------------------------------------------------------------------------------- */

/* Calls that can fail: 1 create, 2 and 3 the plans of Hopper's two engines, then executions. */
Test(attention, engine_that_fails_leaves_it_to_the_next)
{
    static const char *const faults[] = {"oom-lib@2", "disguised-lib@2"};
    for (int i = 0; i < 2; i++) {
        setenv("PLIM_DOUBLE_FAULT", faults[i], 1);
        enum plim_status st = try_forward_in(hopper.name, 90, PLIM_SDPA_CUDNN, &plain, NULL);
        cr_expect(eq(int, st, PLIM_OK), "%s", faults[i]);
    }
}

static struct plim_op call_of(struct plim_array *q, struct plim_array *out)
{
    return (struct plim_op){
        .kind = PLIM_OP_ATTENTION, .beta = 1, .n_out = 1, .out = {out}, .n_in = 3, .in = {q, q, q}};
}

Test(attention, full_gpu_at_the_plans_is_out_of_memory_and_passes)
{
    setenv("PLIM_DOUBLE_FAULT", "oom-lib@2,oom-lib@3,oom-lib@5", 1);
    struct plim_fused *f = open_stand_in(hopper.name);
    struct plim_array q = make(&plain, 3, 21, 1), out = make(&plain, 3, 21, 0);
    struct plim_op op = call_of(&q, &out);
    cr_expect(eq(int, run(f, &op, &plain, 90, PLIM_SDPA_CUDNN, NULL), PLIM_OOM), "the plan");
    cr_expect(eq(int, run(f, &op, &plain, 90, PLIM_SDPA_CUDNN, NULL), PLIM_OOM), "the execution");
    cr_expect(eq(int, run(f, &op, &plain, 90, PLIM_SDPA_CUDNN, NULL), PLIM_OK));
    drop(&q), drop(&out);
    plim_fused_close(f);
}

Test(attention, driver_says_what_an_unclear_failure_is)
{
    static const enum plim_status says[] = {PLIM_OOM, PLIM_LOST, PLIM_OK};
    static const enum plim_status means[] = {PLIM_OOM, PLIM_LOST, PLIM_INTERNAL};
    setenv("PLIM_DOUBLE_FAULT", "disguised-lib@3,disguised-lib@4,disguised-lib@5", 1);
    struct plim_fused *f = open_stand_in(hopper.name);
    struct plim_array q = make(&plain, 3, 21, 1), out = make(&plain, 3, 21, 0);
    struct plim_op op = call_of(&q, &out);
    for (int i = 0; i < 3; i++) {
        view = says[i];
        cr_expect(eq(int, run(f, &op, &plain, 90, PLIM_SDPA_CUDNN, NULL), means[i]));
    }
    drop(&q), drop(&out);
    plim_fused_close(f);
}
