/* Gradients of axolotl's functions of LoRA against differences of what they compute, and that against the modules, on
 * the host. */
#include "support/arrays.h"
#include "support/slopes.h"
#include "workloads/engine/ops.h"
#include "workloads/engine/ops_lora.h"

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

TestSuite(lora_gradients, .init = setup, .fini = teardown);

/* --- axolotl's functions of LoRA -------------------------------------------------------------- */

enum { IN = 4, OUT = 3, RANK = 2, PARTS = 3, MATRICES = RANK * (IN + OUT) };

/* Projections whose matrices are adjacent in `all`; the caller owns their tensors (give_up). */
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

Test(lora_gradients, of_fused_lora)
{
    function *const functions[] = {fused_qkv, fused_qkv_with_dropout, fused_o, fused_o_with_dropout};
    for (uint64_t i = 0; i < sizeof(functions) / sizeof(*functions); i++)
        expect_slopes(functions[i],
                      (struct tensor *[]){variable(SHAPE(2, 3, IN), 1 + i), variable(SHAPE(PARTS * MATRICES), 30 + i)});
}

Test(lora_gradients, fused_lora_is_what_the_modules_compute)
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

Test(lora_gradients, of_a_fused_gated_mlp)
{
    expect_slopes(fused_swiglu, (struct tensor *[]){variable(SHAPE(2, 3, IN), 1), variable(SHAPE(MLP_MATRICES), 2)});
    expect_slopes(fused_geglu_with_dropout,
                  (struct tensor *[]){variable(SHAPE(2, 3, IN), 3), variable(SHAPE(MLP_MATRICES), 4)});
}

Test(lora_gradients, a_fused_gated_mlp_is_what_the_modules_compute)
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
