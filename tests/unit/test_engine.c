/* The engine's own rules: layouts, lifetimes, autograd, checkpointing, counted in allocated bytes. */
#include "devices/sim/sim.h"
#include "workloads/engine/autograd.h"
#include "workloads/engine/checkpoint.h"
#include "workloads/engine/ops.h"
#include <criterion/criterion.h>

static struct plim_device *device;
static struct plim_allocator *allocator;
static struct engine *e;

static void setup(void)
{
    struct plim_error err = PLIM_ERROR_INIT;
    const struct plim_allocator_config config = PLIM_ALLOCATOR_CONFIG_DEFAULT;
    cr_assert_eq(plim_sim_open("A100-SXM4-80GB", &device, &err), PLIM_OK, "%s", err.text);
    cr_assert_eq(plim_allocator_create(device, &config, &allocator, &err), PLIM_OK, "%s", err.text);
    cr_assert_eq(engine_create(device, allocator, &e, &err), PLIM_OK, "%s", err.text);
}

static void teardown(void)
{
    engine_destroy(&e);
    plim_allocator_destroy(&allocator);
    plim_device_close(&device);
}

TestSuite(engine, .init = setup, .fini = teardown);

enum { KIB = 1024, SIDE = 64, TENSOR_BYTES = SIDE * SIDE * 4 };

static struct tensor *matrix(void)
{
    return tensor_empty(e, PLIM_F32, SHAPE(SIDE, SIDE));
}

static struct tensor *parameter(void)
{
    struct tensor *x = tensor_keep(matrix());
    x->is_parameter = true;
    tensor_require_grad(e, x);
    return x;
}

Test(engine, a_floating_operand_is_given_up_by_the_operation)
{
    struct tensor *y = tensor_keep(op_neg(e, op_neg(e, matrix())));
    cr_expect_eq(engine_allocated(e), TENSOR_BYTES);
    tensor_drop(e, y);
    cr_expect_eq(engine_allocated(e), 0);
}

Test(engine, a_kept_operand_stays)
{
    struct tensor *x = tensor_keep(matrix());
    struct tensor *y = tensor_keep(op_neg(e, x));
    cr_expect_eq(engine_allocated(e), 2 * TENSOR_BYTES);
    tensor_drop(e, x);
    tensor_drop(e, y);
    cr_expect_eq(engine_allocated(e), 0);
}

Test(engine, a_view_keeps_its_storage)
{
    struct tensor *x = tensor_keep(matrix());
    struct tensor *y = tensor_keep(op_slice(e, x, 0, 0, 1));
    tensor_drop(e, x);
    cr_expect_eq(engine_allocated(e), TENSOR_BYTES);
    tensor_drop(e, y);
    cr_expect_eq(engine_allocated(e), 0);
}

Test(engine, a_transposed_tensor_reshapes_by_a_copy_only_where_it_must)
{
    int64_t stride[2];
    struct tensor *x = tensor_keep(tensor_empty(e, PLIM_F32, SHAPE(2, 3, 4)));
    struct tensor *turned = tensor_keep(op_transpose(e, x, 1, 2));
    cr_expect(tensor_view_strides(x, SHAPE(6, 4), stride));
    cr_expect_eq(stride[0], 4);
    cr_expect_not(tensor_view_strides(turned, SHAPE(2, 12), stride));
    cr_expect(tensor_view_strides(turned, SHAPE(8, 3), stride) == false);
    tensor_drop(e, turned);
    tensor_drop(e, x);
}

Test(engine, an_elementwise_result_lies_as_its_operands_do)
{
    struct tensor *x =
        tensor_keep(op_transpose(e, tensor_empty(e, PLIM_F32, SHAPE(2, 3, 4, 5)), 1, 2));
    struct tensor *y = tensor_keep(op_mul_scalar(e, x, 2));
    for (int i = 0; i < 4; i++) cr_expect_eq(y->a.stride[i], x->a.stride[i]);
    tensor_drop(e, x);
    tensor_drop(e, y);
}

/* torch.cat((x, y), dim=3).stride() of tensors of these strides, by PyTorch 2.11 on its CPU */
Test(engine, what_is_joined_lies_as_its_parts_do_if_their_channels_are_last)
{
    static const struct {
        int64_t shape[4], stride[2][4], joined[4];
    } cases[] = {
        {{2, 64, 3, 1}, {{192, 1, 64, 64}, {192, 1, 64, 64}}, {384, 1, 128, 64}},
        {{2, 64, 3, 1}, {{192, 1, 64, 64}, {192, 3, 1, 1}}, {384, 6, 2, 1}},
        {{2, 64, 3, 2}, {{384, 1, 128, 64}, {768, 1, 128, 64}}, {768, 1, 256, 64}},
        {{2, 4, 3, 5}, {{60, 5, 20, 1}, {60, 5, 20, 1}}, {120, 30, 10, 1}},
        {{3, 1, 1, 1}, {{1, 1, 1, 1}, {1, 1, 1, 1}}, {2, 2, 2, 1}},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct tensor *parts[2];
        for (int k = 0; k < 2; k++)
            parts[k] = tensor_keep(tensor_empty_strided(e, PLIM_F32, 4, cases[i].shape, cases[i].stride[k]));
        struct tensor *y = tensor_keep(op_cat(e, 2, parts, 3));
        for (int d = 0; d < 4; d++) cr_expect_eq(y->a.stride[d], cases[i].joined[d], "%zu: %d", i, d);
        tensor_drop_all(e, parts[0], parts[1], y);
    }
}

Test(engine, a_product_saves_what_its_gradients_need)
{
    struct tensor *w = parameter();
    struct tensor *y = tensor_keep(op_mul(e, matrix(), w));
    cr_expect_eq(engine_allocated(e), 3 * TENSOR_BYTES,
                 "w, the other factor (saved for w), the product");
    tensor_drop(e, y);
    cr_expect_eq(engine_allocated(e), TENSOR_BYTES, "the node is gone, and what it saved");
    tensor_drop(e, w);
}

Test(engine, gradients_arrive_and_nothing_else_stays)
{
    struct tensor *w = parameter();
    struct tensor *y = tensor_keep(op_silu(e, op_add(e, op_mul(e, matrix(), w), w)));
    autograd_backward(e, y);
    tensor_drop(e, y);
    cr_assert_not_null(w->grad);
    cr_expect_eq(engine_allocated(e), 2 * TENSOR_BYTES);
    tensor_drop(e, w);
    cr_expect_eq(engine_allocated(e), 0);
}

Test(engine, a_second_backward_adds_in_place)
{
    struct tensor *w = parameter();
    for (int i = 0; i < 2; i++) {
        struct tensor *y = tensor_keep(op_mul(e, matrix(), w));
        autograd_backward(e, y);
        tensor_drop(e, y);
        cr_expect_eq(engine_allocated(e), 2 * TENSOR_BYTES);
    }
    tensor_drop(e, w);
}

static struct tensor *three_products(struct engine *engine, const void *context, struct tensor *x)
{
    struct tensor *const *w = context;
    return op_mul(engine,
                  op_silu(engine, op_mul(engine, op_silu(engine, op_mul(engine, x, *w)), *w)), *w);
}

Test(engine, a_checkpointed_region_keeps_only_its_input)
{
    struct tensor *w = parameter(), *x = tensor_keep(matrix());
    struct tensor *const held[CHECKPOINT_HELD] = {NULL};
    struct tensor *y = tensor_keep(checkpoint_run(e, three_products, &w, sizeof w, held, NULL, x));
    cr_expect_eq(engine_allocated(e), 3 * TENSOR_BYTES, "w, x and the result");
    autograd_backward(e, y);
    tensor_drop(e, y);
    cr_assert_not_null(w->grad);
    cr_expect_eq(engine_allocated(e), 3 * TENSOR_BYTES, "w, its gradient and x");
    tensor_drop(e, x);
    tensor_drop(e, w);
    cr_expect_eq(engine_allocated(e), 0);
}

/* In backward the region is there whole: its input again, five results, and their gradients one after the other. */
Test(engine, a_reentrant_region_keeps_only_its_input_and_has_a_backward_of_its_own)
{
    struct tensor *w = parameter(), *x = tensor_keep(matrix());
    struct tensor *const held[CHECKPOINT_HELD] = {NULL};
    struct tensor *y = tensor_keep(checkpoint_run_reentrant(e, three_products, &w, sizeof w, held, NULL, x));
    cr_expect_null(y->grad_fn, "an input that needs no gradient");
    tensor_drop(e, y);
    tensor_require_input_grad(e, x);
    y = tensor_keep(checkpoint_run_reentrant(e, three_products, &w, sizeof w, held, NULL, x));
    cr_expect_eq(engine_allocated(e), 3 * TENSOR_BYTES, "w, x and the result");
    cr_expect_null(w->grad);
    autograd_backward(e, y);
    tensor_drop(e, y);
    cr_assert_not_null(w->grad);
    cr_assert_not_null(x->grad);
    cr_expect_eq(engine_allocated(e), 4 * TENSOR_BYTES, "w, x and their gradients");
    tensor_drop(e, x);
    tensor_drop(e, w);
    cr_expect_eq(engine_allocated(e), 0);
}

struct layer {
    struct tensor *weight, *bias;
};

static struct tensor *linear_function(struct engine *engine, const void *context, struct tensor *x)
{
    const struct layer *layer = context;
    return op_linear_function(engine, x, layer->weight, layer->bias);
}

Test(engine, a_node_in_the_place_of_another_has_nothing_of_what_that_one_saved)
{
    enum { BIAS = 2 };
    struct layer layer = {parameter(), tensor_keep(tensor_empty(e, PLIM_F32, SHAPE(SIDE)))};
    struct tensor *x = tensor_keep(matrix()), *bias = layer.bias;
    struct tensor *const held[CHECKPOINT_HELD] = {NULL};
    const struct node *first = NULL;
    for (int i = 0; i < 2; i++, layer.bias = NULL) {
        struct tensor *y = tensor_keep(checkpoint_run(e, linear_function, &layer, sizeof layer, held, NULL, x));
        const struct tensor *saved = node_saved(e, y->grad_fn, BIAS);
        if (i == 0) cr_expect_not_null(saved);
        if (i == 1) cr_expect_null(saved);
        if (i == 1) cr_expect_eq(y->grad_fn, first, "or nothing is tested here");
        first = y->grad_fn;
        tensor_drop(e, y);
    }
    tensor_drop(e, x);
    tensor_drop(e, bias);
    tensor_drop(e, layer.weight);
}

static struct checkpoint_frame *kept;

static struct tensor *kept_products(struct engine *engine, const void *context, struct tensor *x)
{
    if (!checkpoint_recomputing(engine)) kept = checkpoint_retain(engine);
    return three_products(engine, context, x);
}

/* As an all-gather keeps one that it began in */
Test(engine, a_region_that_is_kept_has_its_input_beyond_its_backward)
{
    struct tensor *w = parameter(), *x = tensor_keep(matrix());
    struct tensor *const held[CHECKPOINT_HELD] = {NULL};
    cr_expect_null(checkpoint_retain(e), "no region runs");
    struct tensor *y = tensor_keep(checkpoint_run(e, kept_products, &w, sizeof w, held, NULL, x));
    tensor_drop(e, x);
    cr_assert_not_null(kept);
    autograd_backward(e, y);
    tensor_drop(e, y);
    cr_expect_eq(engine_allocated(e), 3 * TENSOR_BYTES, "w, its gradient and x");
    checkpoint_release(e, kept);
    cr_expect_eq(engine_allocated(e), 2 * TENSOR_BYTES);
    tensor_drop(e, w);
}

/* matmul() copies rows that are not adjacent if the weight needs a gradient, and otherwise multiplies in batches. */
Test(engine, the_function_for_a_linear_copies_rows_for_a_weight_that_is_trained)
{
    struct tensor *w = parameter(), *x = tensor_keep(tensor_empty(e, PLIM_F32, SHAPE(2, SIDE + 1, SIDE)));
    struct tensor *rows = tensor_keep(op_slice(e, x, 1, 1, SIDE));
    const struct plim_allocator_stats *stats = plim_allocator_statistics(e->allocator);
    tensor_drop(e, tensor_keep(op_linear_function(e, x, w, NULL))); /* cuBLAS has its workspace from here on */
    int64_t before = stats->allocated;
    for (int trained = 1; trained >= 0; trained--) {
        w->requires_grad = trained;
        plim_allocator_reset_peaks(e->allocator);
        tensor_drop(e, tensor_keep(op_linear_function(e, rows, w, NULL)));
        cr_expect_eq(stats->allocated_peak - before, (trained ? 4 : 2) * TENSOR_BYTES, "%d: %lld", trained,
                     (long long)(stats->allocated_peak - before));
    }
    struct tensor *done[] = {rows, x, w};
    for (size_t i = 0; i < sizeof done / sizeof *done; i++) tensor_drop(e, done[i]);
}

Test(engine, autocast_casts_a_parameter_once_and_forgets_it_at_the_end)
{
    struct tensor *w = parameter(), *x = tensor_keep(tensor_empty(e, PLIM_BF16, SHAPE(SIDE, SIDE)));
    int64_t before = engine_allocated(e);
    autocast_enter(e, PLIM_BF16);
    struct tensor *first = autocast_low(e, w), *second = autocast_low(e, w);
    cr_expect_eq(first, second);
    cr_expect_eq(engine_allocated(e), before + TENSOR_BYTES / 2);
    autocast_leave(e);
    cr_expect_eq(engine_allocated(e), before);
    tensor_drop(e, x);
    tensor_drop(e, w);
}

Test(engine, after_the_memory_ran_out_operations_do_nothing)
{
    plim_device_limit(device, 4 * KIB * KIB);
    struct tensor *x = tensor_keep(tensor_empty(e, PLIM_F32, SHAPE(KIB, KIB, 8)));
    cr_expect_eq(e->halted, HALT_OOM);
    cr_expect_eq(x, e->poison);
    cr_expect_eq(op_neg(e, x), e->poison);
    cr_expect_eq(engine_allocated(e), 0);
}

Test(engine, logits_are_the_product_and_what_is_made_of_it_element_by_element)
{
    const int64_t *logits = &e->memory.class_bytes[PLIM_MEMORY_LOGITS];
    struct tensor *w = parameter(), *x = tensor_keep(matrix());
    autocast_enter(e, PLIM_BF16);
    enum plim_memory_class before = engine_set_class(e, PLIM_MEMORY_LOGITS);
    struct tensor *y = tensor_keep(op_linear(e, x, w, NULL));
    engine_set_class(e, before);
    cr_expect_eq(*logits, TENSOR_BYTES / 2, "neither the casts of x and w nor cuBLAS's workspace");
    struct tensor *wide = tensor_keep(op_to(e, y, PLIM_F32));
    struct tensor *scaled = tensor_keep(op_mul_scalar(e, wide, 2));
    cr_expect_eq(*logits, 2 * TENSOR_BYTES + TENSOR_BYTES / 2);
    struct tensor *log = tensor_keep(op_softmax(e, scaled, PLIM_F32));
    cr_expect_eq(*logits, 3 * TENSOR_BYTES + TENSOR_BYTES / 2, "though the node saves it");
    tensor_drop(e, op_neg(e, x));
    cr_expect_eq(e->memory.class_bytes[PLIM_MEMORY_TEMPORARIES],
                 2 * TENSOR_BYTES + TENSOR_BYTES / 2, "w, its cast and x");
    struct tensor *done[] = {log, scaled, wide, y, x, w};
    autocast_leave(e);
    for (size_t i = 0; i < sizeof done / sizeof *done; i++) tensor_drop(e, done[i]);
    cr_expect_eq(*logits, 0);
}
