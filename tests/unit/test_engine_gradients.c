/* Gradients of the engine's operations against differences of what they compute, on the host. */
#include "devices/host/host.h"
#include "support/arrays.h"
#include "workloads/engine/autograd.h"
#include "workloads/engine/ops.h"
#include "workloads/engine/ops_cut.h"
#include "workloads/engine/ops_liger.h"
#include "workloads/engine/ops_lora.h"
#include "workloads/engine/ops_trl.h"

#include <criterion/criterion.h>
#include <math.h>

static struct plim_device *device;
static struct plim_allocator *allocator;
static struct engine *e;

static void setup(void)
{
    struct plim_error err = PLIM_ERROR_INIT;
    const struct plim_allocator_config config = PLIM_ALLOCATOR_CONFIG_DEFAULT;
    cr_assert_eq(plim_host_open("", &device, &err), PLIM_OK, "%s", err.text);
    cr_assert_eq(plim_allocator_create(device, &config, &allocator, &err), PLIM_OK, "%s", err.text);
    cr_assert_eq(engine_create(device, allocator, &e, &err), PLIM_OK, "%s", err.text);
}

static void teardown(void)
{
    engine_destroy(&e);
    plim_allocator_destroy(&allocator);
    plim_device_close(&device);
}

TestSuite(engine_gradients, .init = setup, .fini = teardown);

typedef struct tensor *function(struct tensor *const x[2]);

/* The sum of f's elements, each with a weight of its own; named */
static struct tensor *weighed(function *f, struct tensor *const x[2])
{
    struct tensor *y = tensor_keep(f(x));
    struct tensor *weights = tensor_keep(op_full_like(e, y, 0));
    op_random_(e, weights, 1, 7);
    struct tensor *sum = tensor_keep(op_sum_all(e, op_mul(e, y, weights)));
    tensor_drop_all(e, y, weights);
    return sum;
}

static double value(function *f, struct tensor *const x[2])
{
    bool grad = e->grad_enabled;
    e->grad_enabled = false;
    struct tensor *sum = weighed(f, x);
    double result = array_at(&sum->a, 0);
    tensor_drop(e, sum);
    e->grad_enabled = grad;
    return result;
}

static struct tensor *variable(int ndim, const int64_t *shape, uint64_t seed)
{
    struct tensor *x = tensor_keep(tensor_empty(e, PLIM_F32, ndim, shape));
    op_random_(e, x, 1, seed);
    tensor_require_grad(e, x);
    return x;
}

static void expect_slopes(function *f, struct tensor *const x[2])
{
    const double step = 1e-2;
    struct tensor *sum = weighed(f, x);
    autograd_backward(e, sum);
    tensor_drop(e, sum);
    for (int k = 0; k < 2 && x[k] && x[k]->requires_grad; k++)
        for (int64_t i = 0; i < tensor_elements(x[k]); i++) {
            double at = array_at(&x[k]->a, i), ahead, behind;
            array_put(&x[k]->a, i, at + step), ahead = value(f, x);
            array_put(&x[k]->a, i, at - step), behind = value(f, x);
            array_put(&x[k]->a, i, at);
            double slope = (ahead - behind) / (2 * step), grad = array_at(&x[k]->grad->a, i);
            cr_assert(fabs(slope - grad) <= 2e-3 * fmax(1, fabs(slope)),
                      "operand %d, element %d: %g, differences %g", k, (int)i, grad, slope);
        }
    cr_expect(!e->halted);
    for (int k = 0; k < 2; k++) tensor_drop(e, x[k]);
}

static struct tensor *solve_lower(struct tensor *const x[2])
{
    return op_solve_triangular(e, x[0], x[1], false);
}
static struct tensor *solve_upper(struct tensor *const x[2])
{
    return op_solve_triangular(e, x[0], x[1], true);
}
Test(engine_gradients, of_triangular_systems)
{
    expect_slopes(solve_lower,
                  (struct tensor *[]){variable(SHAPE(2, 4, 4), 1), variable(SHAPE(2, 4, 3), 2)});
    expect_slopes(solve_upper,
                  (struct tensor *[]){variable(SHAPE(2, 4, 4), 3), variable(SHAPE(2, 4, 3), 4)});
}

static struct tensor *running_sums(struct tensor *const x[2])
{
    return op_cumsum_last(e, x[0], PLIM_F32);
}
Test(engine_gradients, of_running_sums)
{
    expect_slopes(running_sums, (struct tensor *[]){variable(SHAPE(2, 5), 1), NULL});
}

/* The second part is written over what the first operand is made of. */
static struct tensor *write_parts(struct tensor *const x[2])
{
    struct tensor *y = tensor_keep(op_mul_scalar(e, x[0], 3));
    tensor_set(e, &y, op_set_part_(e, y, 1, 2, op_mul_scalar(e, x[1], 2)));
    tensor_set(e, &y, op_set_part_(e, y, 1, 0, x[1]));
    return tensor_yield(y);
}
Test(engine_gradients, of_what_is_written_into_parts)
{
    expect_slopes(write_parts,
                  (struct tensor *[]){variable(SHAPE(2, 3, 4), 1), variable(SHAPE(2, 4), 2)});
}

static struct tensor *convolve(struct tensor *const x[2])
{
    return op_depthwise(e, x[0], x[1], 2);
}
Test(engine_gradients, of_convolutions_of_channels)
{
    expect_slopes(convolve,
                  (struct tensor *[]){variable(SHAPE(2, 3, 5), 1), variable(SHAPE(3, 1, 3), 2)});
}

static struct tensor *grow(struct tensor *const x[2])
{
    struct tensor *y = op_pad(e, op_pad(e, x[0], 1, 2), 0, -1);
    return op_softplus(e, op_exp(e, op_repeat_each(e, op_masked_fill(e, y, x[1], -1), 1, 3)));
}
Test(engine_gradients, of_padding_repeating_masks_and_exponentials)
{
    struct tensor *mask = tensor_keep(op_full(e, PLIM_BOOL, SHAPE(2, 6), 0));
    array_put(&mask->a, 3, 1);
    struct tensor *x = variable(SHAPE(3, 4), 1), *given[2] = {tensor_ref(x), tensor_ref(mask)};
    expect_slopes(grow, given);
    cr_expect_eq(array_at(&x->grad->a, 3), 0, "masked");
    tensor_drop_all(e, x, mask);
}

static struct tensor *smaller_of(struct tensor *const x[2])
{
    return op_trl_minimum(e, x[0], x[1]);
}
/* Each has half of the gradient where they are equal, of which the difference to both sides is half, too. */
Test(engine_gradients, of_minima)
{
    struct tensor *a = variable(SHAPE(2, 6), 1), *b = variable(SHAPE(2, 6), 2);
    array_put(&b->a, 4, array_at(&a->a, 4));
    expect_slopes(smaller_of, (struct tensor *[]){a, b});
}

/* --- axolotl's functions of LoRA -------------------------------------------------------------- */

enum { IN = 4, OUT = 3, RANK = 2, PARTS = 3, MATRICES = RANK * (IN + OUT) };

static struct tensor *constant(int ndim, const int64_t *shape, uint64_t seed)
{
    struct tensor *x = tensor_keep(tensor_empty(e, PLIM_F32, ndim, shape));
    op_random_(e, x, 1, seed);
    return x;
}

/* Projections whose matrices lie one behind the other in `all`; their tensors are the caller's (give_up). */
static void make_projections(struct tensor *all, struct lora_projection p[PARTS])
{
    for (int i = 0; i < PARTS; i++) {
        int64_t at = i * MATRICES;
        p[i] = (struct lora_projection){.weight = constant(2, (int64_t[]){OUT, IN}, 10 + (uint64_t)i),
                                        .bias = i == 1 ? NULL : constant(1, (int64_t[]){OUT}, 20),
                                        .scaling = 0.5 + i};
        p[i].a = tensor_keep(op_view(e, op_slice(e, all, 0, at, RANK * IN), SHAPE(RANK, IN)));
        p[i].b = tensor_keep(op_view(e, op_slice(e, all, 0, at + RANK * IN, OUT * RANK), SHAPE(OUT, RANK)));
    }
}

static void give_up(struct lora_projection p[PARTS])
{
    for (int i = 0; i < PARTS; i++) tensor_drop_all(e, p[i].weight, p[i].bias, p[i].a, p[i].b);
}

/* peft's: x W^T + bias + scaling (seen A^T) B^T; floating */
static struct tensor *apart(struct tensor *x, struct tensor *seen, const struct lora_projection *p)
{
    struct tensor *low = op_linear(e, seen, p->a, NULL);
    return op_add(e, op_linear(e, x, p->weight, p->bias), op_mul_scalar(e, op_linear(e, low, p->b, NULL), p->scaling));
}

/* What the adapters see, as dropout would have it: another tensor that is made of x; named, or NULL */
static struct tensor *dropped_of(struct tensor *x, bool drops)
{
    return drops ? tensor_keep(op_mul_scalar(e, x, 0.7)) : NULL;
}

/* Three projections, or the first one alone, weighed so that none stands for another; fused or apart */
static struct tensor *projected(struct tensor *const x[2], bool drops, int count, bool fuses)
{
    struct lora_projection p[PARTS];
    make_projections(x[1], p);
    struct tensor *dropped = dropped_of(x[0], drops), *seen = dropped ? dropped : x[0], *y[PARTS];
    if (fuses && count == PARTS)
        op_lora_qkv(e, x[0], dropped, p, y);
    else
        for (int i = 0; i < count; i++)
            y[i] = tensor_keep(fuses ? op_lora_o(e, x[0], dropped, p) : apart(x[0], seen, &p[i]));
    struct tensor *sum = tensor_ref(y[0]);
    for (int i = 1; i < count; i++) tensor_set(e, &sum, op_add(e, sum, op_mul_scalar(e, y[i], i + 1)));
    tensor_drop_list(e, y, (size_t)count);
    tensor_drop(e, dropped);
    give_up(p);
    return tensor_yield(sum);
}

static struct tensor *fused_qkv(struct tensor *const x[2])
{
    return projected(x, false, PARTS, true);
}
static struct tensor *fused_qkv_with_dropout(struct tensor *const x[2])
{
    return projected(x, true, PARTS, true);
}
static struct tensor *fused_o(struct tensor *const x[2])
{
    return projected(x, false, 1, true);
}
static struct tensor *fused_o_with_dropout(struct tensor *const x[2])
{
    return projected(x, true, 1, true);
}

Test(engine_gradients, of_fused_lora)
{
    function *const functions[] = {fused_qkv, fused_qkv_with_dropout, fused_o, fused_o_with_dropout};
    for (uint64_t i = 0; i < sizeof(functions) / sizeof(*functions); i++)
        expect_slopes(functions[i],
                      (struct tensor *[]){variable(SHAPE(2, 3, IN), 1 + i), variable(SHAPE(PARTS * MATRICES), 30 + i)});
}

Test(engine_gradients, fused_lora_is_what_the_modules_compute)
{
    for (int i = 0; i < 4; i++) {
        struct tensor *const x[2] = {variable(SHAPE(2, 3, IN), 1), variable(SHAPE(PARTS * MATRICES), 2)};
        struct tensor *fused = tensor_keep(projected(x, i % 2, i < 2 ? PARTS : 1, true));
        struct tensor *plain = tensor_keep(projected(x, i % 2, i < 2 ? PARTS : 1, false));
        for (int64_t k = 0; k < tensor_elements(plain); k++)
            cr_assert(fabs(array_at(&fused->a, k) - array_at(&plain->a, k)) < 1e-5, "case %d, element %d", i, (int)k);
        tensor_drop_all(e, fused, plain, x[0], x[1]);
    }
}

/* --- axolotl's gated MLP ---------------------------------------------------------------------- */

enum { INNER = 5, MLP_MATRICES = 2 * RANK * (IN + INNER) + RANK * (INNER + OUT) };

/* gate and up of IN to INNER, down of INNER to OUT */
static void make_mlp(struct tensor *all, struct lora_projection p[PARTS])
{
    for (int64_t i = 0, at = 0; i < PARTS; i++) {
        int64_t in = i == 2 ? INNER : IN, out = i == 2 ? OUT : INNER;
        p[i] = (struct lora_projection){.weight = constant(2, (int64_t[]){out, in}, 40 + (uint64_t)i),
                                        .scaling = 0.5 + (double)i};
        p[i].a = tensor_keep(op_view(e, op_slice(e, all, 0, at, RANK * in), SHAPE(RANK, in)));
        p[i].b = tensor_keep(op_view(e, op_slice(e, all, 0, at + RANK * in, out * RANK), SHAPE(out, RANK)));
        at += RANK * (in + out);
    }
}

static struct tensor *gated_mlp(struct tensor *const x[2], enum plim_unary f, bool drops, bool fuses)
{
    struct lora_projection p[PARTS];
    make_mlp(x[1], p);
    struct tensor *dropped = dropped_of(x[0], drops), *seen = dropped ? dropped : x[0], *y;
    if (fuses) {
        y = tensor_keep(op_lora_mlp(e, f, x[0], dropped, p));
    } else {
        struct tensor *gate = apart(x[0], seen, &p[0]);
        gate = f == PLIM_UNARY_SILU ? op_silu(e, gate) : op_gelu(e, gate, false);
        struct tensor *hidden = tensor_keep(op_mul(e, gate, apart(x[0], seen, &p[1])));
        y = tensor_keep(apart(hidden, hidden, &p[2]));
        tensor_drop(e, hidden);
    }
    tensor_drop(e, dropped);
    give_up(p);
    return tensor_yield(y);
}

static struct tensor *fused_swiglu(struct tensor *const x[2])
{
    return gated_mlp(x, PLIM_UNARY_SILU, false, true);
}
static struct tensor *fused_geglu_with_dropout(struct tensor *const x[2])
{
    return gated_mlp(x, PLIM_UNARY_GELU, true, true);
}

Test(engine_gradients, of_a_fused_gated_mlp)
{
    expect_slopes(fused_swiglu, (struct tensor *[]){variable(SHAPE(2, 3, IN), 1), variable(SHAPE(MLP_MATRICES), 2)});
    expect_slopes(fused_geglu_with_dropout,
                  (struct tensor *[]){variable(SHAPE(2, 3, IN), 3), variable(SHAPE(MLP_MATRICES), 4)});
}

Test(engine_gradients, a_fused_gated_mlp_is_what_the_modules_compute)
{
    for (int i = 0; i < 4; i++) {
        enum plim_unary f = i < 2 ? PLIM_UNARY_SILU : PLIM_UNARY_GELU;
        struct tensor *const x[2] = {variable(SHAPE(2, 3, IN), 1), variable(SHAPE(MLP_MATRICES), 2)};
        struct tensor *fused = tensor_keep(gated_mlp(x, f, i % 2, true));
        struct tensor *plain = tensor_keep(gated_mlp(x, f, i % 2, false));
        for (int64_t k = 0; k < tensor_elements(plain); k++)
            cr_assert(fabs(array_at(&fused->a, k) - array_at(&plain->a, k)) < 1e-5, "case %d, element %d", i, (int)k);
        tensor_drop_all(e, fused, plain, x[0], x[1]);
    }
}

/* --- liger-kernel's --------------------------------------------------------------------------- */

static struct tensor *rms_norm_in_place(struct tensor *const x[2])
{
    return op_liger_rms_norm(e, x[0], x[1], 1e-2, 0, true);
}
static struct tensor *rms_norm_apart(struct tensor *const x[2])
{
    return op_liger_rms_norm(e, x[0], x[1], 1e-2, 1, false);
}
/* Of copies, which are overwritten */
static struct tensor *swiglu(struct tensor *const x[2])
{
    return op_liger_gated(e, PLIM_UNARY_SILU, op_mul_scalar(e, x[0], 1), op_mul_scalar(e, x[1], 1));
}
static struct tensor *geglu(struct tensor *const x[2])
{
    return op_liger_gated(e, PLIM_UNARY_GELU_TANH, op_mul_scalar(e, x[0], 1), op_mul_scalar(e, x[1], 1));
}

Test(engine_gradients, of_ligers_norms_and_gates)
{
    expect_slopes(rms_norm_in_place, (struct tensor *[]){variable(SHAPE(2, 3, 7), 1), variable(SHAPE(7), 2)});
    expect_slopes(rms_norm_apart, (struct tensor *[]){variable(SHAPE(2, 3, 7), 3), variable(SHAPE(7), 4)});
    expect_slopes(swiglu, (struct tensor *[]){variable(SHAPE(2, 9), 5), variable(SHAPE(2, 9), 6)});
    expect_slopes(geglu, (struct tensor *[]){variable(SHAPE(2, 9), 7), variable(SHAPE(2, 9), 8)});
}

/* Copies of (B, S, A, D) turn as (B, A, S, D); x[1] has fewer heads. Of each head two pairs turn, one number does
 * not. */
static struct tensor *rope(struct tensor *const x[2])
{
    struct tensor *const angles[2] = {constant(3, (int64_t[]){1, 3, 2}, 50), constant(3, (int64_t[]){1, 3, 2}, 51)};
    struct tensor *copies[2], *y[2];
    for (int i = 0; i < 2; i++) copies[i] = tensor_keep(op_transpose(e, op_mul_scalar(e, x[i], 1), 1, 2));
    op_liger_rope(e, copies, angles, 2, y);
    struct tensor *sum = op_add(e, op_mul_scalar(e, y[0], 2), y[1]);
    tensor_drop_all(e, copies[0], copies[1], y[0], y[1], angles[0], angles[1]);
    return sum;
}

Test(engine_gradients, of_ligers_rope)
{
    expect_slopes(rope, (struct tensor *[]){variable(SHAPE(2, 3, 2, 5), 1), variable(SHAPE(2, 3, 1, 5), 2)});
}

enum { ROWS = 5, CLASSES = 7, WIDTH = 3 };

static struct tensor *targets(void)
{
    struct tensor *x = tensor_keep(tensor_empty(e, PLIM_I64, SHAPE(ROWS)));
    for (int i = 0; i < ROWS; i++) array_put(&x->a, i, i == 2 ? PLIM_IGNORED_TARGET : (3 * i) % CLASSES);
    return x;
}

/* In 2 rows, 2 and 1 */
static struct tensor *linear_cross_entropy(struct tensor *const x[2])
{
    struct tensor *target = targets(), *y = op_liger_linear_cross_entropy(e, x[0], x[1], target, 0, 0);
    tensor_drop(e, target);
    return y;
}
static struct tensor *capped_linear_cross_entropy(struct tensor *const x[2])
{
    struct tensor *target = targets(), *y = op_liger_linear_cross_entropy(e, x[0], x[1], target, 9, 0.5);
    tensor_drop(e, target);
    return y;
}
/* Its logits are overwritten. */
static struct tensor *cross_entropy(struct tensor *const x[2])
{
    struct tensor *target = targets(), *logits = op_mul_scalar(e, x[0], 3);
    struct tensor *y = op_liger_cross_entropy(e, logits, target);
    tensor_drop(e, target);
    return y;
}

/* What the losses are multiplied with in weighed() is their gradient, and not 1. */
Test(engine_gradients, of_ligers_losses)
{
    expect_slopes(linear_cross_entropy,
                  (struct tensor *[]){variable(SHAPE(ROWS, WIDTH), 1), variable(SHAPE(CLASSES, WIDTH), 2)});
    expect_slopes(capped_linear_cross_entropy,
                  (struct tensor *[]){variable(SHAPE(ROWS, WIDTH), 3), variable(SHAPE(CLASSES, WIDTH), 4)});
    expect_slopes(cross_entropy, (struct tensor *[]){variable(SHAPE(ROWS, CLASSES), 5), NULL});
}

/* torch.nn.functional.cross_entropy(x weight^T) */
Test(engine_gradients, ligers_losses_are_pytorchs)
{
    struct tensor *const x[2] = {variable(SHAPE(ROWS, WIDTH), 1), variable(SHAPE(CLASSES, WIDTH), 2)};
    struct tensor *target = targets(), *plain, *logits = tensor_keep(op_linear(e, x[0], x[1], NULL));
    plain = tensor_keep(op_cross_entropy(e, logits, target));
    struct tensor *fused = tensor_keep(op_liger_linear_cross_entropy(e, x[0], x[1], target, 0, 0));
    struct tensor *of_logits = tensor_keep(op_liger_cross_entropy(e, logits, target));
    cr_expect(fabs(array_at(&fused->a, 0) - array_at(&plain->a, 0)) < 1e-6);
    cr_expect(fabs(array_at(&of_logits->a, 0) - array_at(&plain->a, 0)) < 1e-6);
    tensor_drop_all(e, plain, fused, of_logits, logits, target, x[0], x[1]);
}

/* --- cut cross entropy ------------------------------------------------------------------------ */

static struct cut_call head;

/* Two rows of five; of the eight labels behind the first two do not count. */
static void make_head(double softcap, bool is_sum)
{
    static const int64_t labels[] = {0, 3, -100, 6, 2, -100, 5, 1, -100, 4};
    head = (struct cut_call){.labels = tensor_keep(tensor_empty(e, PLIM_I64, SHAPE(2, 5))),
                             .found = 6,
                             .softcap = softcap,
                             .is_sum = is_sum};
    engine_write(e, head.labels, labels, sizeof(labels));
}

static struct tensor *cut_loss(struct tensor *const x[2])
{
    head.x = x[0], head.weight = x[1];
    return op_cut_cross_entropy(e, &head);
}

static struct tensor *cut_loss_by_bias(struct tensor *const x[2])
{
    head.x = x[0], head.bias = x[1];
    return op_cut_cross_entropy(e, &head);
}

Test(engine_gradients, of_cut_cross_entropy)
{
    for (int i = 0; i < 2; i++) {
        make_head(i ? 0.5 : 0, i);
        expect_slopes(cut_loss, (struct tensor *[]){variable(SHAPE(2, 5, 3), 1), variable(SHAPE(7, 3), 2)});
        head.weight = tensor_keep(tensor_empty(e, PLIM_F32, SHAPE(7, 3))); /* frozen */
        op_random_(e, head.weight, 1, 3);
        expect_slopes(cut_loss_by_bias, (struct tensor *[]){variable(SHAPE(2, 5, 3), 1), variable(SHAPE(7), 4)});
        tensor_drop_all(e, head.weight, head.labels);
    }
}
