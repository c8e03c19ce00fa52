/* What convolutions of cuDNN's graph interface cost. */
#include "devices/virtual/dnn/convolution_cost.h"
#include "machine_fixture.h"
#include <criterion/new/assert.h>

static void begin(void)
{
    make_machine("A100-SXM4-80GB", 1, 1 << 20);
    cr_assert(eq(int, plim_self_use(0), 0));
}

TestSuite(convolution_cost, .init = begin);

static struct plim_dnn_tensor tensor_of(int type, bool is_last, int64_t n, int64_t c, int64_t h, int64_t w)
{
    return (struct plim_dnn_tensor){.type = type, .count = 4, .dimension = {n, c, h, w},
                                    .stride = {c * h * w, is_last ? 1 : h * w, is_last ? c * w : w,
                                               is_last ? c : 1}};
}

/* 3 x 3 with a stride of 2: 8 images of 64 channels and 56 x 56 pixels, to 128 channels of 28 x 28. */
static struct plim_dnn_convolution strided(enum plim_dnn_pass pass, int type, bool is_last)
{
    return (struct plim_dnn_convolution){pass, tensor_of(type, is_last, 8, 64, 56, 56),
                                         tensor_of(type, is_last, 128, 64, 3, 3),
                                         tensor_of(type, is_last, 8, 128, 28, 28)};
}

enum { X_BYTES = 2 * 8 * 64 * 56 * 56, W_BYTES = 2 * 128 * 64 * 9, Y_BYTES = 2 * 8 * 128 * 28 * 28 };

static void expect(const struct plim_cost *cost, enum plim_cost_type type, const int64_t numbers[6])
{
    cr_expect(eq(int, cost->kind, PLIM_COST_CONVOLUTION));
    cr_expect(eq(int, cost->type, type));
    for (int i = 0; i < 6; i++) cr_expect(eq(i64, cost->number[i], numbers[i]), "%d", i);
}

Test(convolution_cost, each_pass_is_a_product_of_as_much_arithmetic)
{
    enum { PIXELS = 8 * 28 * 28, INPUTS = 8 * 56 * 56, ALL = X_BYTES + W_BYTES + Y_BYTES };
    static const int64_t numbers[][6] = {
        [PLIM_DNN_FORWARD] = {PIXELS, 128, 64 * 9, 1, ALL, 1},
        [PLIM_DNN_BACKWARD_DATA] = {INPUTS, 64, 128 * 9 / 4, 1, ALL, 1},
        [PLIM_DNN_BACKWARD_FILTER] = {128, 64 * 9, PIXELS, 1, ALL, 1},
    };
    for (int pass = 0; pass < 3; pass++) {
        const struct plim_dnn_convolution c = strided((enum plim_dnn_pass)pass, DNN_HALF, true);
        struct plim_cost cost;
        cr_assert(plim_dnn_convolution_cost(&c, DNN_NOTE_TENSOR_CORES, &cost));
        expect(&cost, PLIM_COST_FP16, numbers[pass]);
    }
}

Test(convolution_cost, tensor_cores_want_channels_last_and_copy_what_lies_otherwise)
{
    struct plim_dnn_convolution c = strided(PLIM_DNN_FORWARD, DNN_HALF, false);
    struct plim_cost cost;
    cr_assert(plim_dnn_convolution_cost(&c, DNN_NOTE_TENSOR_CORES, &cost));
    cr_expect(eq(i64, cost.number[5], 2 * (X_BYTES + W_BYTES + Y_BYTES)));
    c = strided(PLIM_DNN_FORWARD, DNN_FLOAT, false);
    cr_assert(plim_dnn_convolution_cost(&c, DNN_NOTE_TENSOR_CORES, &cost));
    cr_expect(eq(int, cost.type, PLIM_COST_TF32));
    cr_expect(eq(i64, cost.number[5], 2 * 2 * (X_BYTES + W_BYTES))); /* twice the bytes of halves */
    cr_assert(plim_dnn_convolution_cost(&c, 0, &cost));
    cr_expect(eq(int, cost.type, PLIM_COST_FP32));
    cr_expect(eq(i64, cost.number[5], 1));
}

Test(convolution_cost, groups_are_products_of_their_own)
{
    struct plim_dnn_convolution c = strided(PLIM_DNN_FORWARD, DNN_BFLOAT16, true);
    struct plim_cost cost;
    c.w = tensor_of(DNN_BFLOAT16, true, 128, 2, 3, 3); /* 32 groups */
    cr_assert(plim_dnn_convolution_cost(&c, DNN_NOTE_TENSOR_CORES, &cost));
    cr_expect(eq(int, cost.type, PLIM_COST_BF16));
    cr_expect(eq(i64, cost.number[1], 4));
    cr_expect(eq(i64, cost.number[2], 2 * 9));
    cr_expect(eq(i64, cost.number[3], 32));
}

Test(convolution_cost, winograd_saves_multiplications)
{
    const struct plim_dnn_convolution c = strided(PLIM_DNN_FORWARD, DNN_FLOAT, false);
    struct plim_cost cost;
    cr_assert(plim_dnn_convolution_cost(&c, DNN_NOTE_WINOGRAD | DNN_NOTE_TILE_4, &cost));
    cr_expect(eq(i64, cost.number[2], 64 * 9 * 4 / 9));
    cr_assert(plim_dnn_convolution_cost(&c, DNN_NOTE_WINOGRAD | DNN_NOTE_TILE_6, &cost));
    cr_expect(eq(i64, cost.number[2], 64 * 9 / 4));
}

/* --- through descriptors ---------------------------------------------------------------------- */

static void *made(int kind)
{
    void *out = NULL;
    cr_assert(eq(int, plim_dnn_own.create(kind, &out), 0));
    return out;
}

/* As the virtual GPU's cudnnBackendSetAttribute does. */
static void set(void *descriptor, int attribute, void *value)
{
    cr_assert(eq(int, plim_dnn_own.set(descriptor, attribute, DNN_OF_DESCRIPTOR, 1, &value), 0));
    plim_dnn_attribute_set(&plim_dnn_own, descriptor, attribute, 1, &value);
}

static void *tensor(const struct plim_dnn_tensor *of)
{
    void *out = made(DNN_TENSOR);
    cr_assert(eq(int, plim_dnn_own.set(out, DNN_TENSOR_TYPE, DNN_OF_TYPE, 1, &of->type), 0));
    cr_assert(eq(int, plim_dnn_own.set(out, DNN_TENSOR_DIMENSIONS, DNN_OF_INT64, 4, of->dimension), 0));
    cr_assert(eq(int, plim_dnn_own.set(out, DNN_TENSOR_STRIDES, DNN_OF_INT64, 4, of->stride), 0));
    return out;
}

Test(convolution_cost, is_that_of_the_graph_from_which_the_configuration_comes)
{
    const struct plim_dnn_convolution c = strided(PLIM_DNN_BACKWARD_DATA, DNN_HALF, true);
    void *operation = made(DNN_CONVOLUTION_BACKWARD_DATA), *graph = made(DNN_GRAPH);
    void *heuristics = made(DNN_HEURISTICS), *config = made(DNN_ENGINE_CONFIG);
    struct plim_cost cost;
    int64_t count = 0;
    set(operation, DNN_DATA_DX, tensor(&c.x));
    set(operation, DNN_DATA_W, tensor(&c.w));
    set(graph, DNN_GRAPH_OPERATIONS, operation); /* not whole yet */
    set(heuristics, DNN_HEURISTICS_GRAPH, graph);
    plim_dnn_results_returned(heuristics, 1, &config);
    cr_expect(not(plim_dnn_config_cost(&plim_dnn_own, config, &cost)));
    set(operation, DNN_DATA_DY, tensor(&c.y));
    set(graph, DNN_GRAPH_OPERATIONS, operation);
    set(heuristics, DNN_HEURISTICS_GRAPH, graph);
    cr_assert(eq(int, plim_dnn_own.get(heuristics, DNN_HEURISTICS_RESULTS, DNN_OF_DESCRIPTOR, 1, &count,
                                       &config), 0));
    plim_dnn_results_returned(heuristics, count, &config);
    plim_dnn_descriptor_destroyed(operation);
    plim_dnn_descriptor_destroyed(heuristics);
    cr_assert(plim_dnn_config_cost(&plim_dnn_own, config, &cost));
    cr_expect(eq(i64, cost.number[0], 8 * 56 * 56));
    plim_dnn_descriptor_destroyed(config);
    cr_expect(not(plim_dnn_config_cost(&plim_dnn_own, config, &cost)));
}

/* --- attention -------------------------------------------------------------------------------- */

/* Of cudnn-frontend: the sizes are those of the first product, that of queries and keys. */
static void *add_product(void *operations[], int *count, const struct plim_dnn_tensor *a,
                         const struct plim_dnn_tensor *b, const struct plim_dnn_tensor *c)
{
    enum { MATMUL_OPERATION = 21 };
    void *operation = operations[(*count)++] = made(MATMUL_OPERATION);
    set(operation, DNN_MATMUL_A, tensor(a));
    set(operation, DNN_MATMUL_B, tensor(b));
    set(operation, DNN_MATMUL_C, tensor(c));
    return operation;
}

static void *config_of_attention(int products, bool is_masked)
{
    enum { POINTWISE_OPERATION = 13, MOST = 8 };
    const struct plim_dnn_tensor q = tensor_of(DNN_BFLOAT16, false, 2, 12, 512, 64),
                                 k = tensor_of(DNN_BFLOAT16, false, 2, 4, 64, 1024),
                                 s = tensor_of(DNN_FLOAT, false, 2, 12, 512, 1024);
    void *operations[MOST], *graph = made(DNN_GRAPH), *heuristics = made(DNN_HEURISTICS);
    void *config = made(DNN_ENGINE_CONFIG);
    int count = 0;
    add_product(operations, &count, &q, &k, &s);
    if (is_masked) set(operations[count++] = made(POINTWISE_OPERATION), DNN_POINTWISE_SELECTOR, tensor(&s));
    while (count < products + is_masked) add_product(operations, &count, &s, &k, &q);
    cr_assert(eq(int, plim_dnn_own.set(graph, DNN_GRAPH_OPERATIONS, DNN_OF_DESCRIPTOR, count, operations), 0));
    plim_dnn_attribute_set(&plim_dnn_own, graph, DNN_GRAPH_OPERATIONS, count, operations);
    set(heuristics, DNN_HEURISTICS_GRAPH, graph);
    plim_dnn_results_returned(heuristics, 1, &config);
    plim_dnn_results_returned(heuristics, 1, &config); /* asked again: it is no other */
    return config;
}

Test(convolution_cost, attention_is_told_by_its_products)
{
    static const int64_t numbers[] = {2, 12, 4, 512, 1024, 64};
    static const struct { int products; bool is_masked, is_known; enum plim_cost_kind kind; } rows[] = {
        {2, true, true, PLIM_COST_CUDNN}, {2, false, true, PLIM_COST_CUDNN},
        {5, true, true, PLIM_COST_CUDNN_BACKWARD}, {1, false, false, 0}};
    for (size_t row = 0; row < sizeof(rows) / sizeof(rows[0]); row++) {
        struct plim_cost cost;
        void *config = config_of_attention(rows[row].products, rows[row].is_masked);
        cr_expect(eq(int, plim_dnn_config_cost(&plim_dnn_own, config, &cost), rows[row].is_known), "%zu", row);
        if (!rows[row].is_known) continue;
        cr_expect(eq(int, cost.kind, rows[row].kind));
        cr_expect(eq(int, cost.type, PLIM_COST_BF16));
        cr_expect(eq(int, cost.causal, rows[row].is_masked));
        for (int i = 0; i < 6; i++) cr_expect(eq(i64, cost.number[i], numbers[i]), "%zu %d", row, i);
    }
}
