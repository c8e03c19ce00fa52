#include "devices/sim/roofline.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <math.h>
#include <string.h>

static struct plim_roofline *clock_of(const char *name)
{
    const struct plim_gpu *gpu;
    static struct plim_roofline clock;
    cr_assert(eq(int, plim_catalogue_find(name, &gpu, NULL), PLIM_OK));
    plim_roofline_init(&clock, gpu);
    return &clock;
}

static double matmul(struct plim_roofline *r, int64_t m, int64_t n, int64_t k, enum plim_dtype type,
                     bool tf32)
{
    struct plim_array a = {.shape = {m, k}, .stride = {k, 1}, .ndim = 2, .dtype = (uint8_t)type};
    struct plim_array b = {.shape = {k, n}, .stride = {1, k}, .ndim = 2, .dtype = (uint8_t)type};
    struct plim_array c = {.shape = {m, n}, .stride = {n, 1}, .ndim = 2, .dtype = (uint8_t)type};
    struct plim_op op = {
        .kind = PLIM_OP_MATMUL, .n_out = 1, .n_in = 2, .out = {&c}, .in = {&a, &b}, .tf32 = tf32};
    return plim_roofline_device_seconds(r, &op);
}

static double bf16(struct plim_roofline *r, int64_t m, int64_t n, int64_t k)
{
    return matmul(r, m, n, k, PLIM_BF16, false);
}

static double attention_in(struct plim_roofline *r, enum plim_sdpa kernel, int64_t window,
                           int64_t batch, int64_t length, enum plim_dtype type, bool causal,
                           bool backward)
{
    struct plim_array x = {.shape = {batch, 16, length, 128},
                           .stride = {16 * 128 * length, 128, 16 * 128, 1},
                           .ndim = 4,
                           .dtype = (uint8_t)type};
    struct plim_op op = {.kind = PLIM_OP_ATTENTION,
                         .n_out = 1,
                         .n_in = 3,
                         .out = {&x},
                         .in = {&x, &x, &x},
                         .sdpa = (uint8_t)kernel,
                         .causal = causal,
                         .window = window};
    if (backward) {
        op.kind = PLIM_OP_ATTENTION_BACKWARD;
        op.n_out = 3, op.n_in = 5;
        op.out[1] = op.out[2] = op.in[3] = op.in[4] = &x;
    }
    return plim_roofline_device_seconds(r, &op);
}

static double attention(struct plim_roofline *r, enum plim_sdpa kernel, int64_t batch,
                        int64_t length, enum plim_dtype type, bool causal, bool backward)
{
    return attention_in(r, kernel, 0, batch, length, type, causal, backward);
}

static double add(struct plim_roofline *r, int64_t rows, int64_t columns, bool broadcast)
{
    struct plim_array x = {
        .shape = {rows, columns}, .stride = {columns, 1}, .ndim = 2, .dtype = PLIM_BF16};
    struct plim_array w = x;
    if (broadcast) w.stride[0] = 0;
    struct plim_op op = {
        .kind = PLIM_OP_BINARY, .n_out = 1, .n_in = 2, .out = {&x}, .in = {&x, &w}};
    return plim_roofline_device_seconds(r, &op);
}

Test(roofline, a_large_matmul_runs_near_the_best_that_was_seen)
{
    double flops = 2.0 * 8192 * 8192 * 8192;
    double rate = flops / bf16(clock_of("A100-SXM4-80GB"), 8192, 8192, 8192);
    cr_expect(lt(dbl, 0.85 * 271e12, rate));
    cr_expect(lt(dbl, rate, 271e12));
}

Test(roofline, no_operation_beats_the_gpu)
{
    for (size_t i = 0; i < plim_catalogue_count(); i++) {
        const struct plim_gpu *g = plim_catalogue_at(i);
        static struct plim_roofline r;
        plim_roofline_init(&r, g);
        double best = g->matmul_bf16_seen > g->bf16 ? g->matmul_bf16_seen : g->bf16;
        if (best == 0) best = g->fp32;
        for (int64_t n = 64; n <= 16384; n *= 4) {
            cr_expect(ge(dbl, bf16(&r, n, n, n), 2.0 * (double)(n * n * n) / best), "%s", g->name);
            cr_expect(ge(dbl, attention(&r, PLIM_SDPA_FLASH, 1, n, PLIM_BF16, false, false),
                         4.0 * 16 * 128 * (double)(n * n) / best),
                      "%s", g->name);
        }
        double bytes = 6.0 * (1 << 28);
        cr_expect(ge(dbl, add(&r, 1 << 14, 1 << 14, false), bytes / g->bandwidth), "%s", g->name);
    }
}

Test(roofline, a_larger_matmul_is_never_faster)
{
    struct plim_roofline *r = clock_of("A100-SXM4-80GB");
    for (int64_t n = 64; n <= 8192; n += 64)
        for (int axis = 0; axis < 3; axis++) {
            int64_t next = n + 64;
            double more = bf16(r, axis == 0 ? next : n, axis == 1 ? next : n, axis == 2 ? next : n);
            cr_expect(ge(dbl, more, bf16(r, n, n, n) * 0.999), "%ld axis %d", (long)n, axis);
        }
}

Test(roofline, one_tile_beyond_a_wave_costs_a_wave)
{
    /* 108 multiprocessors, tiles of 256 x 128: 27 x 4 of them are exactly one wave */
    struct plim_roofline *r = clock_of("A100-SXM4-80GB");
    double full = bf16(r, 27 * 256, 4 * 128, 16384), beyond = bf16(r, 27 * 256 + 1, 4 * 128, 16384);
    cr_expect(lt(dbl, 1.15 * full, beyond));
    /* and rows inside the tile are free */
    double inside = bf16(r, 26 * 256 + 1, 4 * 128, 16384);
    cr_expect(epsilon_eq(dbl, inside, full, 0.01 * full));
}

Test(roofline, efficiency_is_a_sawtooth_of_waves)
{
    struct plim_roofline *r = clock_of("A100-SXM4-80GB");
    double lowest = 1, highest = 0;
    for (int64_t m = 4096; m <= 12288; m += 128) {
        double rate = 2.0 * (double)m * 4096 * 4096 / bf16(r, m, 4096, 4096) / 271e12;
        lowest = fmin(lowest, rate);
        highest = fmax(highest, rate);
    }
    cr_expect(lt(dbl, 0.9, highest));
    cr_expect(lt(dbl, lowest, 0.87));
    cr_expect(lt(dbl, 0.6, lowest));
}

Test(roofline, few_tiles_with_a_deep_k_are_split)
{
    /* 4 tiles alone would leave 104 of 108 multiprocessors idle */
    double seconds = bf16(clock_of("A100-SXM4-80GB"), 256, 256, 65536);
    double rate = 2.0 * 256 * 256 * 65536 / seconds;
    cr_expect(lt(dbl, 4 * 271e12 / 108 * 3, rate));
}

Test(roofline, a_thin_matmul_is_bound_by_its_weights)
{
    double bytes = 2.0 * 16384 * 16384;
    double seconds = bf16(clock_of("A100-SXM4-80GB"), 8, 16384, 16384);
    cr_expect(lt(dbl, bytes / 2039e9, seconds));
    cr_expect(lt(dbl, seconds, 1.5 * bytes / 2039e9));
}

Test(roofline, a_repeated_matmul_takes_the_same_time)
{
    struct plim_roofline *r = clock_of("RTX-4090");
    double first = bf16(r, 1000, 2000, 3000);
    for (int64_t n = 1; n < 3000; n++) (void)bf16(r, n, 64, 64); /* evicts it from the cache */
    cr_expect(eq(dbl, bf16(r, 1000, 2000, 3000), first));
    cr_expect(eq(dbl, bf16(r, 1000, 2000, 3000), first));
    cr_expect(ne(dbl, bf16(r, 2000, 1000, 3001), first));
}

Test(roofline, rows_that_are_not_aligned_are_slow)
{
    struct plim_roofline *r = clock_of("A100-SXM4-80GB");
    cr_expect(lt(dbl, 2 * bf16(r, 8192, 4096, 4096), bf16(r, 8192, 4096, 4095)));
    cr_expect(lt(dbl, matmul(r, 8192, 4096, 4095, PLIM_F32, false),
                 1.01 * matmul(r, 8192, 4096, 4096, PLIM_F32, false)));
}

Test(roofline, types_run_at_their_own_rates)
{
    struct plim_roofline *r = clock_of("A100-SXM4-80GB");
    double fp32 = matmul(r, 8192, 8192, 8192, PLIM_F32, false),
           tf32 = matmul(r, 8192, 8192, 8192, PLIM_F32, true);
    double half = matmul(r, 8192, 8192, 8192, PLIM_F16, false);
    cr_expect(lt(dbl, 6, fp32 / tf32));
    cr_expect(epsilon_eq(dbl, tf32 / half, 2, 0.1));
    cr_expect(epsilon_eq(dbl, half, bf16(r, 8192, 8192, 8192), 0.01 * half));
}

Test(roofline, bf16_is_emulated_and_tf32_absent_before_ampere)
{
    static const char *const gpus[] = {"V100-SXM2-16GB", "T4", "RTX-2080-Ti", "Quadro-RTX-6000"};
    for (size_t i = 0; i < 4; i++) {
        struct plim_roofline *r = clock_of(gpus[i]);
        double fp32 = matmul(r, 4096, 4096, 4096, PLIM_F32, false);
        cr_expect(lt(dbl, 1.2 * fp32, bf16(r, 4096, 4096, 4096)), "%s", gpus[i]);
        cr_expect(epsilon_eq(dbl, matmul(r, 4096, 4096, 4096, PLIM_F32, true), fp32, 0.001 * fp32));
        cr_expect(lt(dbl, matmul(r, 4096, 4096, 4096, PLIM_F16, false), fp32 / 3), "%s", gpus[i]);
    }
}

Test(roofline, more_bytes_are_never_faster)
{
    static const char *const gpus[] = {"RTX-3090", "L4", "A100-SXM4-80GB", "B200"};
    for (size_t i = 0; i < 4; i++) {
        struct plim_roofline *r = clock_of(gpus[i]);
        double previous = 0;
        for (int64_t n = 256; n < 1 << 28; n += n / 16) {
            double seconds = add(r, 1, n, false);
            cr_expect(ge(dbl, seconds, previous), "%s %ld", gpus[i], (long)n);
            previous = seconds;
        }
    }
}

/* Of a GPU with this bandwidth and fp32, by its architecture alone. */
static struct plim_roofline *plain_clock_of(int compute_capability)
{
    static struct plim_roofline clock;
    const struct plim_gpu gpu = {.compute_capability = compute_capability,
                                 .multiprocessors = 80,
                                 .boost_mhz = 1500,
                                 .l2_bytes = INT64_C(4) << 20,
                                 .bandwidth = 1e12,
                                 .fp32 = 15e12};
    plim_roofline_init(&clock, &gpu);
    return &clock;
}

Test(roofline, element_wise_kernels_reach_the_measured_share_of_the_bandwidth)
{
    static const struct {
        int compute_capability;
        double share;
    } measured[] = {{70, 0.91}, {75, 0.74}, {80, 0.87},
                    {89, 0.78}, {90, 0.76}, {86, PLIM_MEMORY_SHARE}};
    enum { ROWS = 1 << 16, COLUMNS = 1 << 12 };
    for (size_t i = 0; i < sizeof(measured) / sizeof(measured[0]); i++) {
        double seconds = add(plain_clock_of(measured[i].compute_capability), ROWS, COLUMNS, false);
        double share = 3.0 * 2 * ROWS * COLUMNS / (seconds - PLIM_KERNEL_SECONDS) / 1e12;
        cr_expect(epsilon_eq(dbl, share, measured[i].share, 1e-9));
    }
}

/* GPT-2's last layer, 8192 tokens: as measured on an H200 (tests/gpu/records), within a fifth. */
Test(roofline, a_vocabulary_of_50257_costs_a_hopper_all_three_products)
{
    struct plim_roofline *hopper = clock_of("H200-SXM-141GB");
    static const struct {
        int64_t m, n, k;
        double seconds;
    } measured[] = {
        {8192, 50257, 768, 6.62e-3}, {8192, 768, 50257, 4.50e-3}, {50257, 768, 8192, 4.27e-3}};
    const struct plim_array logits = {
        .shape = {8192, 50257}, .stride = {50257, 1}, .ndim = 2, .dtype = PLIM_BF16};
    struct plim_array turned = logits, hidden = logits, weight = logits;
    turned.shape[0] = 50257, turned.shape[1] = 8192, turned.stride[0] = 1, turned.stride[1] = 50257;
    hidden.shape[1] = 768, hidden.stride[0] = 768;
    weight.shape[0] = 50257, weight.shape[1] = 768, weight.stride[0] = 768;
    struct plim_array across = weight;
    across.shape[0] = 768, across.shape[1] = 50257, across.stride[0] = 1, across.stride[1] = 768;
    const struct plim_array *const of[][3] = {
        {&logits, &hidden, &across}, {&hidden, &logits, &weight}, {&weight, &turned, &hidden}};
    for (size_t i = 0; i < 3; i++) {
        struct plim_op op = {.kind = PLIM_OP_MATMUL,
                             .n_out = 1,
                             .n_in = 2,
                             .out = {of[i][0]},
                             .in = {of[i][1], of[i][2]}};
        double seconds = plim_roofline_device_seconds(hopper, &op);
        cr_expect(fabs(seconds / measured[i].seconds - 1) < 0.2, "%zu: %g s, measured %g", i,
                  seconds, measured[i].seconds);
    }
}

/* 8192 rows of 50257 and of 32000 numbers, as measured on an H200, within a sixth; shorter rows are read once. */
Test(roofline, softmax_reads_long_rows_twice)
{
    static const struct {
        int kind;
        int64_t columns;
        enum plim_dtype dtype;
        double seconds;
    } measured[] = {{PLIM_OP_LOG_SOFTMAX, 50257, PLIM_F32, 1.49e-3},
                    {PLIM_OP_LOG_SOFTMAX_BACKWARD, 50257, PLIM_F32, 1.74e-3},
                    {PLIM_OP_LOG_SOFTMAX, 32000, PLIM_F32, 0.823e-3},
                    {PLIM_OP_LOG_SOFTMAX_BACKWARD, 32000, PLIM_F32, 1.078e-3}};
    struct plim_roofline *r = clock_of("H200-SXM-141GB");
    for (size_t i = 0; i < sizeof(measured) / sizeof(measured[0]); i++) {
        struct plim_array x = {.shape = {8192, measured[i].columns},
                               .stride = {measured[i].columns, 1},
                               .ndim = 2,
                               .dtype = measured[i].dtype};
        struct plim_op op = {.kind = (uint8_t)measured[i].kind,
                             .n_out = 1,
                             .n_in = measured[i].kind == PLIM_OP_LOG_SOFTMAX ? 1 : 2,
                             .out = {&x},
                             .in = {&x, &x}};
        double seconds = plim_roofline_device_seconds(r, &op);
        cr_expect(fabs(seconds / measured[i].seconds - 1) < 1.0 / 6, "%zu: %g s, measured %g", i,
                  seconds, measured[i].seconds);
        struct plim_array narrow = x;
        narrow.shape[1] = narrow.stride[0] = 1000;
        op.out[0] = op.in[0] = op.in[1] = &narrow;
        double narrow_seconds = plim_roofline_device_seconds(r, &op);
        cr_expect(lt(dbl, narrow_seconds * (double)measured[i].columns / 1000, seconds));
    }
}

/* It runs above the clock of its data sheet. */
Test(roofline, a_v100_multiplies_fp32_faster_than_its_data_sheet_says)
{
    double flops = 2.0 * 8192 * 8192 * 8192;
    double volta = flops / matmul(plain_clock_of(70), 8192, 8192, 8192, PLIM_F32, false),
           turing = flops / matmul(plain_clock_of(75), 8192, 8192, 8192, PLIM_F32, false);
    cr_expect(epsilon_eq(dbl, volta / turing, 1.02 / 0.90, 0.01));
}

Test(roofline, what_fits_in_l2_is_faster_than_memory)
{
    struct plim_roofline *r = clock_of("A100-SXM4-80GB");
    double small = add(r, 1024, 2048, false) - add(r, 1, 1, false);
    double large = add(r, 65536, 2048, false) - add(r, 1, 1, false);
    cr_expect(lt(dbl, small, 0.7 * large / 64));
}

Test(roofline, a_broadcast_operand_is_read_element_by_element)
{
    struct plim_roofline *r = clock_of("A100-SXM4-80GB");
    double plain = add(r, 65536, 4096, false) / 3,
           broadcast = add(r, 65536, 4096, true) / 2; /* a pass */
    cr_expect(epsilon_eq(dbl, broadcast, plain / PLIM_STRIDED_SHARE, 0.01 * plain));
}

Test(roofline, the_causal_mask_saves_nearly_half)
{
    struct plim_roofline *r = clock_of("A100-SXM4-80GB");
    double full = attention(r, PLIM_SDPA_FLASH, 4, 4096, PLIM_BF16, false, false);
    double causal = attention(r, PLIM_SDPA_FLASH, 4, 4096, PLIM_BF16, true, false);
    cr_expect(lt(dbl, 0.5 * full, causal));
    cr_expect(lt(dbl, causal, 0.6 * full));
}

/* 16384 keys, of which a causal query sees half, against 1024 and the rest of its block. */
Test(roofline, a_window_saves_what_lies_before_it)
{
    struct plim_roofline *r = clock_of("A100-SXM4-80GB");
    double all = attention_in(r, PLIM_SDPA_FLASH2, 0, 1, 16384, PLIM_BF16, true, false);
    double few = attention_in(r, PLIM_SDPA_FLASH2, 1024, 1, 16384, PLIM_BF16, true, false);
    double no_fewer = attention_in(r, PLIM_SDPA_FLASH2, 16384, 1, 16384, PLIM_BF16, false, false);
    cr_expect(epsilon_eq(dbl, few / all, (1024 + PLIM_SDPA_BLOCK) / (16384 / 2.0), 0.02));
    cr_expect(eq(dbl, no_fewer,
                 attention_in(r, PLIM_SDPA_FLASH2, 0, 1, 16384, PLIM_BF16, false, false)));
    cr_expect(eq(dbl, all, attention(r, PLIM_SDPA_FLASH, 1, 16384, PLIM_BF16, true, false)));
}

Test(roofline, attention_is_quadratic_in_the_length)
{
    struct plim_roofline *r = clock_of("A100-SXM4-80GB");
    double once = attention(r, PLIM_SDPA_FLASH, 1, 8192, PLIM_BF16, true, false);
    double twice = attention(r, PLIM_SDPA_FLASH, 1, 16384, PLIM_BF16, true, false);
    cr_expect(epsilon_eq(dbl, twice / once, 4, 0.2));
}

Test(roofline, flash_comes_to_the_rates_of_its_paper)
{
    /* FlashAttention-2 paper, A100, head size 128, causal, 16k tokens: about 190 and 175 TFLOP/s */
    struct plim_roofline *r = clock_of("A100-SXM4-80GB");
    double flops = 4.0 * 16 * 128 * 16384.0 * 16384 / 2;
    double forward = flops / attention(r, PLIM_SDPA_FLASH, 1, 16384, PLIM_BF16, true, false);
    double backward =
        2.5 * flops / attention(r, PLIM_SDPA_FLASH, 1, 16384, PLIM_BF16, true, true);
    cr_expect(epsilon_eq(dbl, forward, 190e12, 25e12));
    cr_expect(epsilon_eq(dbl, backward, 175e12, 20e12));
}

Test(roofline, attention_kernels_are_ordered)
{
    struct plim_roofline *r = clock_of("H100-SXM5-80GB");
    double cudnn = attention(r, PLIM_SDPA_CUDNN, 4, 4096, PLIM_BF16, true, false);
    double flash = attention(r, PLIM_SDPA_FLASH, 4, 4096, PLIM_BF16, true, false);
    double efficient = attention(r, PLIM_SDPA_EFFICIENT, 4, 4096, PLIM_BF16, true, false);
    cr_expect(lt(dbl, cudnn, flash));
    cr_expect(lt(dbl, flash, efficient));
    cr_expect(
        lt(dbl, efficient, attention(r, PLIM_SDPA_EFFICIENT, 4, 4096, PLIM_F32, true, false)));
}

Test(roofline, what_a_kernel_multiplies_on_its_way_takes_time)
{
    struct plim_roofline *r = clock_of("A100-SXM4-80GB");
    struct plim_array x = {.shape = {1 << 20}, .stride = {1}, .ndim = 1, .dtype = PLIM_BF16};
    struct plim_op op = {.kind = PLIM_OP_DELTA_SOLVE, .n_out = 1, .n_in = 1, .out = {&x}, .in = {&x}};
    double moved = plim_roofline_device_seconds(r, &op);
    op.flops = 1e12, op.blocks = 1 << 20;
    double all = plim_roofline_device_seconds(r, &op);
    cr_expect(all > 1e12 / 312e12 && all < 2e12 / 312e12, "%g", all);
    op.blocks = 54; /* of 108 multiprocessors */
    cr_expect(ieee_ulp_eq(dbl, plim_roofline_device_seconds(r, &op) - PLIM_KERNEL_SECONDS,
                          2 * (all - PLIM_KERNEL_SECONDS), 64));
    op.flops = 1; /* bytes take longer */
    cr_expect(eq(dbl, plim_roofline_device_seconds(r, &op), moved));
}

/* Each operand once, as of any kernel that multiplies nothing */
Test(roofline, kernels_of_libraries_cost_what_they_move)
{
    static const enum plim_op_kind kinds[] = {PLIM_OP_RMS_NORM, PLIM_OP_RMS_NORM_BACKWARD, PLIM_OP_ROTATE,
                                              PLIM_OP_GATED,    PLIM_OP_GATED_BACKWARD,    PLIM_OP_CROSS_ENTROPY};
    struct plim_roofline *r = clock_of("A100-SXM4-80GB");
    struct plim_array x = {.shape = {1 << 12, 1 << 12}, .stride = {1 << 12, 1}, .ndim = 2, .dtype = PLIM_BF16};
    struct plim_op op = {.kind = PLIM_OP_LAYER_NORM, .n_out = 2, .n_in = 4, .out = {&x, &x}, .in = {&x, &x, &x, &x}};
    double seconds = plim_roofline_device_seconds(r, &op);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        op.kind = kinds[i];
        cr_expect(eq(dbl, plim_roofline_device_seconds(r, &op), seconds), "%s", plim_op_name(op.kind));
    }
}

/* And those of the gated delta rule what they multiply; what tells documents is not counted. */
Test(roofline, kernels_of_linear_attention_cost_what_they_move_or_multiply)
{
    static const struct {
        enum plim_op_kind kind;
        uint8_t outs, ins;
    } rows[] = {
        {PLIM_OP_CAUSAL_CONV, 1, 2},           {PLIM_OP_CAUSAL_CONV_BACKWARD, 2, 3},
        {PLIM_OP_CHUNK_SUMS, 1, 1},            {PLIM_OP_DELTA_INVERSE, 1, 3},
        {PLIM_OP_DELTA_SOLVE, 2, 5},           {PLIM_OP_DELTA_STATES, 2, 4},
        {PLIM_OP_DELTA_OUTPUT, 1, 5},          {PLIM_OP_DELTA_OUTPUT_BACKWARD_FRESH, 1, 4},
        {PLIM_OP_DELTA_STATES_BACKWARD, 2, 6}, {PLIM_OP_DELTA_OUTPUT_BACKWARD, 4, 8},
        {PLIM_OP_DELTA_SOLVE_BACKWARD, 4, 7},
    };
    struct plim_roofline *r = clock_of("A100-SXM4-80GB");
    struct plim_array x = {.shape = {1 << 10, 1 << 12}, .stride = {1 << 12, 1}, .ndim = 2, .dtype = PLIM_BF16};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        bool multiplies = i >= 3;
        enum plim_op_kind like = multiplies ? PLIM_OP_DELTA_SOLVE : PLIM_OP_LAYER_NORM;
        struct plim_op op = {.kind = like, .n_out = rows[i].outs, .n_in = rows[i].ins};
        op.flops = multiplies ? 1e12 : 0;
        op.blocks = multiplies ? 50 : 0;
        for (int k = 0; k < PLIM_OP_MAX_IN; k++) op.in[k] = &x;
        for (int k = 0; k < op.n_out; k++) op.out[k] = &x;
        double seconds = plim_roofline_device_seconds(r, &op);
        op.kind = rows[i].kind;
        cr_expect(eq(dbl, plim_roofline_device_seconds(r, &op), seconds), "%s", plim_op_name(op.kind));
        op.n_in++;
        cr_expect(eq(dbl, plim_roofline_device_seconds(r, &op), seconds), "%s", plim_op_name(op.kind));
    }
}

static struct plim_array matrix_of(int64_t rows, int64_t columns)
{
    return (struct plim_array){.shape = {rows, columns}, .stride = {columns, 1}, .ndim = 2, .dtype = PLIM_BF16};
}

static struct plim_array numbers_of(int64_t count)
{
    return (struct plim_array){.shape = {count}, .stride = {1}, .ndim = 1, .dtype = PLIM_F32};
}

/* As Triton's kernel that reads x and the weight and writes both gradients: what is of one row or class is left out. */
Test(roofline, losses_of_a_head_are_its_products)
{
    struct plim_array x = matrix_of(1000, 512), weight = matrix_of(5000, 512), lse = numbers_of(900),
                      means = numbers_of(5000);
    struct plim_op op = {.kind = PLIM_OP_LINEAR_LSE,
                         .n_out = 2,
                         .n_in = 4,
                         .out = {&lse, &means},
                         .in = {&x, &weight, &lse, &means}},
                   fused = {
                       .kind = PLIM_OP_DELTA_SOLVE, .n_out = 2, .n_in = 2, .out = {&lse, &means}, .in = {&x, &weight}};
    fused.flops = 2.0 * 1000 * 5000 * 512;
    fused.blocks = 8 * 40;
    struct plim_work ours = plim_work_of(&op, false), theirs = plim_work_of(&fused, false);
    cr_expect_eq(memcmp(&ours, &theirs, sizeof(ours)), 0);
    op = (struct plim_op){.kind = PLIM_OP_LINEAR_LSE_BACKWARD,
                          .n_out = 3,
                          .n_in = 7,
                          .out = {&x, NULL, &means},
                          .in = {&lse, &x, &weight, &lse, &lse, &lse, &means}};
    fused.n_out = 1, fused.out[0] = &x, fused.flops *= 2;
    ours = plim_work_of(&op, true), theirs = plim_work_of(&fused, true);
    cr_expect_eq(memcmp(&ours, &theirs, sizeof(ours)), 0);
    op.out[1] = &weight;
    fused.n_out = 2, fused.out[1] = &weight, fused.flops *= 1.5;
    ours = plim_work_of(&op, true), theirs = plim_work_of(&fused, true);
    cr_expect_eq(memcmp(&ours, &theirs, sizeof(ours)), 0);
}

Test(roofline, a_list_costs_the_host_by_its_length)
{
    struct plim_op one = {.kind = PLIM_OP_FOREACH, .list_length = 1},
                   many = {.kind = PLIM_OP_FOREACH, .list_length = 200};
    double more = plim_work_of(&many, false).host_seconds - plim_work_of(&one, false).host_seconds;
    cr_expect(epsilon_eq(dbl, more, 199 * PLIM_HOST_SECONDS_PER_TENSOR, 1e-9));
}

Test(roofline, autograd_launches_sooner_than_python)
{
    struct plim_op op = {.kind = PLIM_OP_UNARY};
    cr_expect(lt(dbl, plim_work_of(&op, true).host_seconds, plim_work_of(&op, false).host_seconds));
}

/* The second wave overlaps the end of the first. */
Test(roofline, a_single_wave_of_tiles_loses_most)
{
    struct plim_roofline *r = clock_of("A100-SXM4-80GB");
    int64_t tiles = 108 * 128; /* rows of one full wave of 128 x 256 */
    double one = matmul(r, tiles, 256, 4096, PLIM_BF16, false),
           eight = matmul(r, 8 * tiles, 256, 4096, PLIM_BF16, false);
    cr_expect(lt(dbl, eight, 8 * 0.85 * one));
}

Test(roofline, a_gpu_of_which_nothing_is_known_has_finite_times)
{
    static struct plim_roofline r;
    struct plim_gpu nothing = {.name = "?"};
    plim_roofline_init(&r, &nothing);
    double seconds = add(&r, 4, 4, false);
    cr_expect(ge(dbl, seconds, PLIM_KERNEL_SECONDS));
    cr_expect(isfinite(seconds));
}
