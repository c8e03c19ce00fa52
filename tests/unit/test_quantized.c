/* Weights in 4 and 8 bits: what the codes stand for, the product with them, when bitsandbytes makes it in one
 * kernel (data/fused_4bit.txt, by make_fused_4bit.py), and training above them. What a run allocates
 * is in tests/golden/finetune.jsonl. */
#include "devices/host/host.h"
#include "devices/needs/needs.h"
#include "devices/sim/sim.h"
#include "support/arrays.h"
#include "workloads/train/replay.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static struct plim_op quantizing(enum plim_quantized how, int64_t block, struct plim_array *codes,
                                 struct plim_array *scales, struct plim_array *x)
{
    return (struct plim_op){.kind = PLIM_OP_QUANTIZE,
                            .quantized = (uint8_t)how,
                            .block = block,
                            .n_out = 2,
                            .n_in = 1,
                            .out = {codes, scales},
                            .in = {x}};
}

static struct plim_op dequantizing(enum plim_quantized how, int64_t block, struct plim_array *y,
                                   struct plim_array *codes, struct plim_array *scales)
{
    return (struct plim_op){.kind = PLIM_OP_DEQUANTIZE,
                            .quantized = (uint8_t)how,
                            .block = block,
                            .n_out = 1,
                            .n_in = 2,
                            .out = {y},
                            .in = {codes, scales}};
}

/* The second element of a byte is in its lower half. */
Test(quantized, nf4_takes_the_nearest_quantile_of_its_block)
{
    struct plim_array x = ARRAY(PLIM_F32, 5), codes = ARRAY(PLIM_U8, 3),
                      scales = ARRAY(PLIM_F32, 2), y = ARRAY(PLIM_F32, 5);
    VALUES(&x, 2, -1.4, 0.01, 0.9, 0.3);
    struct plim_op op = quantizing(PLIM_QUANTIZED_NF4, 3, &codes, &scales, &x);
    run_op(&op);
    EXPECT_VALUES(&scales, 0, 2, 0.9f);
    EXPECT_VALUES(&codes, 0, 0xf1, 0x7f, 0xb0);
    op = dequantizing(PLIM_QUANTIZED_NF4, 3, &y, &codes, &scales);
    run_op(&op);
    EXPECT_VALUES(&y, 1e-6, 2, -1.3923856, 0, 0.9, 0.9 * 0.33791524);
}

Test(quantized, fp4_has_a_sign_and_seven_magnitudes)
{
    struct plim_array x = ARRAY(PLIM_F32, 4), codes = ARRAY(PLIM_U8, 2),
                      scales = ARRAY(PLIM_F32, 1), y = ARRAY(PLIM_F32, 4);
    VALUES(&x, 12, -8, 3, -0.07);
    struct plim_op op = quantizing(PLIM_QUANTIZED_FP4, 64, &codes, &scales, &x);
    run_op(&op);
    EXPECT_VALUES(&codes, 0, 0x3a, 0x79);
    op = dequantizing(PLIM_QUANTIZED_FP4, 64, &y, &codes, &scales);
    run_op(&op);
    EXPECT_VALUES(&y, 1e-6, 12, -8, 3, -0.0625);
}

/* Bytes with a sign; the product of rows and columns is scaled by both and by 127 twice. */
Test(quantized, int8_takes_the_largest_of_a_row_for_127)
{
    struct plim_array a = ARRAY(PLIM_F16, 2, 4), codes = ARRAY(PLIM_U8, 2, 4),
                      scales = ARRAY(PLIM_F32, 2), w = ARRAY(PLIM_U8, 1, 4),
                      of_w = ARRAY(PLIM_F32, 1), sums = ARRAY(PLIM_I32, 2, 1),
                      y = ARRAY(PLIM_F32, 2, 1), bias = ARRAY(PLIM_F32, 1);
    VALUES(&a, 2, -1, 0.5, 0, -4, 4, 1, -2);
    struct plim_op op = quantizing(PLIM_QUANTIZED_ROWS, 4, &codes, &scales, &a);
    run_op(&op);
    EXPECT_VALUES(&scales, 0, 2, 4);
    EXPECT_VALUES(&codes, 0, 127, 256 - 64, 32, 0, 256 - 127, 127, 32, 256 - 64);
    VALUES(&w, 127, 256 - 127, 0, 1);
    VALUES(&of_w, 3);
    VALUES(&bias, 0.25);
    op = (struct plim_op){.kind = PLIM_OP_MATMUL_INT8,
                          .n_out = 1,
                          .n_in = 2,
                          .out = {&sums},
                          .in = {&codes, &w}};
    run_op(&op);
    EXPECT_VALUES(&sums, 0, 127 * 127 + 64 * 127, -2 * 127 * 127 - 64);
    op = (struct plim_op){.kind = PLIM_OP_SCALE_INT32,
                          .n_out = 1,
                          .n_in = 4,
                          .out = {&y},
                          .in = {&sums, &scales, &of_w, &bias}};
    run_op(&op);
    EXPECT_VALUES(&y, 1e-6, 24257 * 6 / 16129.0 + 0.25, -32322 * 12 / 16129.0 + 0.25);
}

Test(quantized, a_block_of_zeros_stays_zero)
{
    struct plim_array x = ARRAY(PLIM_BF16, 2, 64), codes = ARRAY(PLIM_U8, 64),
                      scales = ARRAY(PLIM_F32, 2), y = ARRAY(PLIM_BF16, 2, 64);
    array_fill(&x, 0);
    struct plim_op op = quantizing(PLIM_QUANTIZED_NF4, 64, &codes, &scales, &x);
    run_op(&op);
    op = dequantizing(PLIM_QUANTIZED_NF4, 64, &y, &codes, &scales);
    run_op(&op);
    for (int i = 0; i < 128; i++) cr_assert(eq(dbl, array_at(&y, i), 0));
}

Test(quantized, the_product_in_one_kernel_is_that_with_the_matrix)
{
    enum { M = 3, N = 5, K = 128 };
    struct plim_array w = ARRAY(PLIM_F32, N, K), codes = ARRAY(PLIM_U8, N * K / 2),
                      scales = ARRAY(PLIM_F32, N * K / 64), a = ARRAY(PLIM_F32, M, K),
                      bias = ARRAY(PLIM_F32, N), y = ARRAY(PLIM_F32, M, N);
    array_scatter(&w, 1, -1, 1);
    array_scatter(&a, 2, -1, 1);
    array_scatter(&bias, 3, -1, 1);
    struct plim_op op = quantizing(PLIM_QUANTIZED_NF4, 64, &codes, &scales, &w);
    run_op(&op);
    op = dequantizing(PLIM_QUANTIZED_NF4, 64, &w, &codes, &scales);
    run_op(&op);
    op = (struct plim_op){.kind = PLIM_OP_MATMUL_4BIT,
                          .quantized = PLIM_QUANTIZED_NF4,
                          .block = 64,
                          .n_out = 1,
                          .n_in = 4,
                          .out = {&y},
                          .in = {&a, &codes, &scales, &bias}};
    run_op(&op);
    for (int i = 0; i < M * N; i++) {
        double sum = array_at(&bias, i % N);
        for (int k = 0; k < K; k++) sum += array_at(&a, i / N * K + k) * array_at(&w, i % N * K + k);
        cr_expect(fabs(array_at(&y, i) - sum) < 1e-5);
    }
}

/* --- against bitsandbytes --------------------------------------------------------------------- */

Test(quantized, one_kernel_where_bitsandbytes_takes_one)
{
    FILE *f = fopen(PLIM_UNIT_DATA_FOLDER "/fused_4bit.txt", "r");
    int capability, sms, fused, lines = 0;
    long long m, n, k;
    char type[8];
    cr_assert(ne(ptr, f, NULL));
    while (fscanf(f, "%d %d %7s %lld %lld %lld %d", &capability, &sms, type, &m, &n, &k, &fused) ==
           7) {
        const struct plim_device_info info = {.compute_capability = capability,
                                              .multiprocessors = sms};
        enum plim_dtype dtype = strcmp(type, "fp32") == 0   ? PLIM_F32
                                : strcmp(type, "bf16") == 0 ? PLIM_BF16
                                                            : PLIM_F16;
        cr_expect(eq(int, plim_matmul_4bit_is_fused(&info, dtype, m, n, k, 64), fused),
                  "%d with %d multiprocessors, %s, %lld x %lld x %lld", capability, sms, type, m, n,
                  k);
        lines++;
    }
    fclose(f);
    cr_expect(ge(int, lines, 3000));
}

/* --- training --------------------------------------------------------------------------------- */

static const char model[] = "model: {family: llama, vocab_size: 97, hidden_size: 64, "
                            "intermediate_size: 128, num_hidden_layers: 2, "
                            "num_attention_heads: 2, tie_word_embeddings: true}\n";

static const struct plim_train_setting qlora = {
    .micro_batch = 2,
    .seq = 12,
    .accumulation = 1,
    .precision = PLIM_PRECISION_BF16,
    .optimizer = PLIM_OPTIMIZER_ADAMW_FUSED,
    .lora = {.r = 4, .targets = "q_proj"},
    .quantization = {.type = PLIM_QUANTIZATION_NF4, .prepared = true, .compute = PLIM_WEIGHTS_BF16}};

static void replay(struct plim_device *device, const struct plim_train_setting *setting,
                   struct plim_replay *out)
{
    static struct plim_spec spec;
    struct plim_error err = PLIM_ERROR_INIT;
    struct plim_replayer *replayer;
    cr_assert(eq(int, plim_spec_load_text("model.yaml", model, &spec, &err), PLIM_OK));
    cr_assert(eq(int, plim_replayer_create(device, NULL, &replayer, &err), PLIM_OK));
    cr_assert(eq(int, plim_replay_run(replayer, &spec.model, setting, out, &err), PLIM_OK), "%s",
              err.text);
    plim_replayer_destroy(&replayer);
}

static struct plim_device *host(void)
{
    struct plim_error err = PLIM_ERROR_INIT;
    struct plim_device *device;
    cr_assert(eq(int, plim_host_open("", &device, &err), PLIM_OK), "%s", err.text);
    return device;
}

/* The same weights in few bits are nearly the same model, and the adapters learn. */
Test(quantized, a_model_in_4_bits_trains_as_the_one_it_was_made_of)
{
    static struct plim_replay full, nested, plain;
    struct plim_device *device = host();
    struct plim_train_setting setting = qlora;
    replay(device, &setting, &plain);
    setting.quantization.nested = true;
    setting.checkpointing = PLIM_CHECKPOINTING_FULL;
    replay(device, &setting, &nested);
    setting.quantization = (struct plim_quantization){0};
    replay(device, &setting, &full);
    cr_assert(eq(int, plain.verdict, PLIM_OK), "%s", plain.why);
    cr_assert(eq(int, nested.verdict, PLIM_OK), "%s", nested.why);
    cr_expect(eq(i64, plain.parameters, full.parameters));
    cr_expect(eq(i64, plain.trainable_parameters, full.trainable_parameters));
    for (int i = 0; i < PLIM_REPLAY_STEPS; i++) {
        cr_expect(fabs(plain.step[i].loss - full.step[i].loss) < 1e-3 * full.step[i].loss,
                  "%g and %g", plain.step[i].loss, full.step[i].loss);
        cr_expect(fabs(nested.step[i].loss - plain.step[i].loss) < 1e-4 * full.step[i].loss,
                  "%g and %g", nested.step[i].loss, plain.step[i].loss);
    }
    plim_device_close(&device);
}

Test(quantized, a_model_in_8_bits_trains_as_the_one_it_was_made_of)
{
    static struct plim_replay full, int8;
    struct plim_device *device = host();
    struct plim_train_setting setting = qlora;
    setting.precision = PLIM_PRECISION_FP32;
    setting.quantization = (struct plim_quantization){0};
    replay(device, &setting, &full);
    setting.quantization.type = PLIM_QUANTIZATION_INT8;
    setting.quantization.prepared = true;
    replay(device, &setting, &int8);
    cr_assert(eq(int, int8.verdict, PLIM_OK), "%s", int8.why);
    for (int i = 0; i < PLIM_REPLAY_STEPS; i++)
        cr_expect(fabs(int8.step[i].loss - full.step[i].loss) < 1e-4 * full.step[i].loss, "%g and %g",
                  int8.step[i].loss, full.step[i].loss);
    plim_device_close(&device);
}

/* Magnitudes begin as the lengths of the rows, and B as zeros: then nothing changes. Afterwards the
 * magnitudes are trained too. */
Test(quantized, dora_begins_as_the_base_and_goes_another_way_than_lora)
{
    static struct plim_replay lora, dora;
    struct plim_device *device = host();
    struct plim_train_setting setting = qlora;
    setting.precision = PLIM_PRECISION_FP32;
    setting.quantization = (struct plim_quantization){0};
    for (int dropped = 0; dropped < 2; dropped++) { /* which takes the base's product anew */
        setting.lora.dropout = dropped ? 1e-9 : 0;
        setting.lora.dora = false;
        replay(device, &setting, &lora);
        setting.lora.dora = true;
        replay(device, &setting, &dora);
        cr_assert(eq(int, dora.verdict, PLIM_OK), "%s", dora.why);
        cr_expect(fabs(dora.step[0].loss - lora.step[0].loss) < 1e-6 * lora.step[0].loss);
        cr_expect(fabs(dora.step[3].loss - lora.step[3].loss) > 1e-7 * lora.step[3].loss);
        cr_expect(eq(i64, dora.trainable_parameters, lora.trainable_parameters + 2 * 64));
    }
    plim_device_close(&device);
}

/* 2 x 64 x 1024 elements of two states in fp32; the smaller B has its own in the GPU's memory. */
Test(quantized, a_paged_optimizer_keeps_large_states_beside_the_gpu)
{
    static struct plim_replay paged, usual;
    struct plim_error err = PLIM_ERROR_INIT;
    struct plim_device *device;
    struct plim_train_setting setting = qlora;
    cr_assert(eq(int, plim_sim_open("A100-SXM4-80GB", &device, &err), PLIM_OK));
    setting.lora.r = 1600;
    setting.optimizer = PLIM_OPTIMIZER_PAGED_ADAMW_32BIT;
    replay(device, &setting, &paged);
    setting.optimizer = PLIM_OPTIMIZER_ADAMW_FUSED;
    replay(device, &setting, &usual);
    int64_t states = 2 * 2 * 2 * 1600 * 64 * 4; /* layers, A and B, states */
    cr_expect(eq(i64, paged.managed_bytes, states));
    cr_expect(eq(i64, usual.managed_bytes, 0));
    cr_expect(eq(i64, usual.step[3].end_allocated_bytes - paged.step[3].end_allocated_bytes,
                 states + 4 * 512)); /* and the step counters */
    plim_device_close(&device);
}

Test(quantized, a_paged_optimizer_runs_on_no_real_device)
{
    static struct plim_replay out;
    struct plim_device *device = host();
    struct plim_train_setting setting = qlora;
    setting.lora.r = 1600;
    setting.optimizer = PLIM_OPTIMIZER_PAGED_ADAMW_8BIT;
    replay(device, &setting, &out);
    cr_expect(eq(int, out.verdict, PLIM_UNSUPPORTED));
    cr_expect(strstr(out.why, "managed memory") != NULL, "%s", out.why);
    plim_device_close(&device);
}
