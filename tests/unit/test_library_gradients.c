/* Gradients of liger-kernel's operations and of cut cross entropy against differences of what they compute, on the
 * host. */
#include "support/arrays.h"
#include "support/slopes.h"
#include "workloads/engine/ops.h"
#include "workloads/engine/ops_cut.h"
#include "workloads/engine/ops_liger.h"

#include <criterion/criterion.h>
#include <math.h>

static struct engine *e;

static void setup(void)
{
    e = slopes_open();
}

static void teardown(void)
{
    slopes_close();
}

TestSuite(library_gradients, .init = setup, .fini = teardown);

/* --- liger-kernel's --------------------------------------------------------------------------- */

static struct tensor *rms_norm_in_place(struct tensor *const x[2])
{
    return op_liger_rms_norm(e, x[0], x[1], 1e-2, 0, true);
}
static struct tensor *rms_norm_apart(struct tensor *const x[2])
{
    return op_liger_rms_norm(e, x[0], x[1], 1e-2, 1, false);
}
static struct tensor *layer_norm(struct tensor *const x[2])
{
    return op_liger_layer_norm(e, x[0], x[1], op_mul_scalar(e, x[1], 0.5), 1e-2);
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

Test(library_gradients, of_ligers_norms_and_gates)
{
    expect_slopes(rms_norm_in_place, (struct tensor *[]){variable(SHAPE(2, 3, 7), 1), variable(SHAPE(7), 2)});
    expect_slopes(rms_norm_apart, (struct tensor *[]){variable(SHAPE(2, 3, 7), 3), variable(SHAPE(7), 4)});
    expect_slopes(layer_norm, (struct tensor *[]){variable(SHAPE(2, 3, 7), 9), variable(SHAPE(7), 10)});
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

Test(library_gradients, of_ligers_rope)
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
Test(library_gradients, of_ligers_losses)
{
    expect_slopes(linear_cross_entropy,
                  (struct tensor *[]){variable(SHAPE(ROWS, WIDTH), 1), variable(SHAPE(CLASSES, WIDTH), 2)});
    expect_slopes(capped_linear_cross_entropy,
                  (struct tensor *[]){variable(SHAPE(ROWS, WIDTH), 3), variable(SHAPE(CLASSES, WIDTH), 4)});
    expect_slopes(cross_entropy, (struct tensor *[]){variable(SHAPE(ROWS, CLASSES), 5), NULL});
}

/* torch.nn.functional.cross_entropy(x weight^T) */
Test(library_gradients, ligers_losses_are_pytorchs)
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

Test(library_gradients, of_cut_cross_entropy)
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
