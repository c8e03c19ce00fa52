/* Gradients of the engine's operations against differences of what they compute, on the host. */
#include "devices/host/host.h"
#include "support/arrays.h"
#include "workloads/engine/autograd.h"
#include "workloads/engine/ops.h"
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

/* --- TRL's head ------------------------------------------------------------------------------- */

static struct tensor *log_sigmoid_of(struct tensor *const x[2])
{
    return op_log_sigmoid(e, op_mul_scalar(e, x[0], 4));
}
Test(engine_gradients, of_log_sigmoid)
{
    expect_slopes(log_sigmoid_of, (struct tensor *[]){variable(SHAPE(2, 5), 1), NULL});
}

/* More classes than a tile has: the second one has three. */
enum { SCORED = 5, WIDTH = 3, CLASSES = 32771 };

static const struct logit_transform transforms[] = {{1, 0}, {0.5, 0}, {1.5, 2}};
static struct logit_transform transform;
static unsigned wanted;

static struct tensor *make_targets(void)
{
    static const int64_t classes[SCORED] = {0, 7, 32767, 32768, 32770};
    struct tensor *targets = tensor_keep(tensor_empty(e, PLIM_I64, SHAPE(SCORED)));
    engine_write(e, targets, classes, sizeof(classes));
    return targets;
}

static struct token_scores score(struct tensor *x, struct tensor *weight, struct tensor *bias)
{
    struct tensor *targets = make_targets();
    struct token_scores scores = op_trl_token_scores(e, x, weight, bias, targets, transform, wanted);
    tensor_drop(e, targets);
    return scores;
}

static void drop_scores(struct token_scores s)
{
    tensor_drop_all(e, s.log_probs, s.entropy, s.mean_logits, s.is_top1);
}

/* The same logits as one tensor; named */
static struct tensor *logits_of(struct tensor *x, struct tensor *weight, struct tensor *bias)
{
    struct tensor *z = tensor_keep(op_mul_scalar(e, op_linear(e, x, weight, bias), transform.scale));
    if (transform.cap == 0) return z;
    tensor_set(e, &z, op_tanh(e, op_div_scalar(e, z, transform.cap)));
    tensor_set(e, &z, op_mul_scalar(e, z, transform.cap));
    return z;
}

/* Of a row of logits, in double */
static void expect_scores(const struct tensor *z, int64_t row, const struct token_scores *s, int64_t target)
{
    double most = -INFINITY, sum = 0, entropy = 0, mean = 0;
    int64_t first = 0;
    for (int64_t i = 0; i < CLASSES; i++) {
        double at = array_at(&z->a, row * CLASSES + i);
        if (at > most) most = at, first = i;
        mean += at / CLASSES;
    }
    for (int64_t i = 0; i < CLASSES; i++) sum += exp(array_at(&z->a, row * CLASSES + i) - most);
    for (int64_t i = 0; i < CLASSES; i++) {
        double log_p = array_at(&z->a, row * CLASSES + i) - most - log(sum);
        entropy -= exp(log_p) * log_p;
    }
    double log_prob = array_at(&z->a, row * CLASSES + target) - most - log(sum);
    cr_expect_float_eq(array_at(&s->log_probs->a, row), log_prob, 1e-4);
    cr_expect_float_eq(array_at(&s->entropy->a, row), entropy, 1e-3);
    cr_expect_float_eq(array_at(&s->mean_logits->a, row), mean, 1e-5);
    cr_expect_eq(array_at(&s->is_top1->a, row) != 0, first == target);
}

static struct tensor *scaled(int ndim, const int64_t *shape, uint64_t seed, double factor)
{
    struct tensor *x = tensor_keep(tensor_empty(e, PLIM_F32, ndim, shape));
    op_random_(e, x, factor, seed);
    tensor_require_grad(e, x);
    return x;
}

/* Of two classes with the largest logit the first is the likeliest. */
Test(engine_gradients, scores_are_those_of_whole_logits)
{
    struct tensor *x = scaled(SHAPE(SCORED, WIDTH), 1, 2), *weight = scaled(SHAPE(CLASSES, WIDTH), 2, 2);
    struct tensor *bias = scaled(SHAPE(CLASSES), 3, 1), *targets = make_targets();
    array_put(&bias->a, 7, 40);     /* row 1: the target */
    array_put(&bias->a, 32770, 40); /* row 4: it is the second one of them */
    for (int k = 0; k < WIDTH; k++) array_put(&weight->a, 7 * WIDTH + k, 0);
    for (int k = 0; k < WIDTH; k++) array_put(&weight->a, 32770 * WIDTH + k, 0);
    wanted = TRL_ENTROPY | TRL_MEAN_LOGITS | TRL_IS_TOP1;
    for (size_t i = 0; i < sizeof(transforms) / sizeof(transforms[0]); i++) {
        transform = transforms[i];
        struct tensor *z = logits_of(x, weight, bias);
        struct token_scores s = score(x, weight, bias);
        for (int64_t row = 0; row < SCORED; row++)
            expect_scores(z, row, &s, (int64_t)array_at(&targets->a, row));
        if (transform.cap == 0) cr_expect(array_at(&s.is_top1->a, 1) && !array_at(&s.is_top1->a, 4));
        drop_scores(s);
        tensor_drop(e, z);
    }
    cr_expect(!e->halted);
    tensor_drop_all(e, x, weight, bias, targets);
}

/* sum(w log_probs) + sum(v entropy), either of them NULL; named */
static struct tensor *weigh(struct tensor *log_probs, struct tensor *entropy)
{
    struct tensor *sum = NULL, *parts[2] = {log_probs, entropy};
    for (int i = 0; i < 2; i++) {
        if (!parts[i]) continue;
        struct tensor *weights = tensor_keep(op_full_like(e, parts[i], 0));
        op_random_(e, weights, 1, 5 + (uint64_t)i);
        struct tensor *part = tensor_keep(op_sum_all(e, op_mul(e, parts[i], weights)));
        tensor_drop(e, weights);
        if (!sum) sum = part;
        else tensor_set(e, &sum, op_add(e, sum, part)), tensor_drop(e, part);
    }
    return sum;
}

/* Log-probabilities by log_softmax, and their entropy */
static struct tensor *composed(struct tensor *x, struct tensor *weight, struct tensor *bias, bool of_log_probs,
                               bool of_entropy)
{
    struct tensor *z = logits_of(x, weight, bias), *targets = make_targets();
    struct tensor *log_p = tensor_keep(op_log_softmax(e, z));
    struct tensor *p = tensor_keep(op_exp(e, log_p));
    struct tensor *entropy = tensor_keep(op_neg(e, op_sum_dim(e, op_mul(e, p, log_p), 1)));
    struct tensor *chosen = tensor_keep(op_gather_last(e, log_p, op_view(e, targets, SHAPE(SCORED, 1))));
    struct tensor *log_probs = tensor_keep(op_view(e, chosen, SHAPE(SCORED)));
    struct tensor *sum = weigh(of_log_probs ? log_probs : NULL, of_entropy ? entropy : NULL);
    tensor_drop_all(e, z, targets, log_p, p, entropy, chosen, log_probs);
    return sum;
}

static void expect_same(const struct tensor *a, const struct tensor *b, const char *what)
{
    double most = 0;
    for (int64_t i = 0; i < tensor_elements(a); i++) most = fmax(most, fabs(array_at(&a->a, i)));
    for (int64_t i = 0; i < tensor_elements(a); i++)
        cr_assert(fabs(array_at(&a->a, i) - array_at(&b->a, i)) <= 1e-5 + 1e-4 * most, "%s, element %d: %g and %g",
                  what, (int)i, array_at(&a->a, i), array_at(&b->a, i));
}

static void expect_gradients_of_composed(bool of_log_probs, bool of_entropy)
{
    struct tensor *given[2][3];
    for (int i = 0; i < 2; i++) {
        given[i][0] = scaled(SHAPE(SCORED, WIDTH), 1, 2);
        given[i][1] = scaled(SHAPE(CLASSES, WIDTH), 2, 2);
        given[i][2] = scaled(SHAPE(CLASSES), 3, 1);
        array_put(&given[i][2]->a, 32769, 9); /* the largest logit comes in the second tile */
    }
    struct token_scores s = score(given[0][0], given[0][1], given[0][2]);
    struct tensor *sums[2] = {weigh(of_log_probs ? s.log_probs : NULL, of_entropy ? s.entropy : NULL),
                              composed(given[1][0], given[1][1], given[1][2], of_log_probs, of_entropy)};
    drop_scores(s);
    for (int i = 0; i < 2; i++) autograd_backward(e, sums[i]);
    cr_assert(!e->halted);
    cr_expect_float_eq(array_at(&sums[0]->a, 0), array_at(&sums[1]->a, 0), 1e-3);
    static const char *const names[] = {"x", "weight", "bias"};
    for (int k = 0; k < 3; k++) expect_same(given[0][k]->grad, given[1][k]->grad, names[k]);
    for (int i = 0; i < 2; i++) {
        tensor_drop(e, sums[i]);
        for (int k = 0; k < 3; k++) tensor_drop(e, given[i][k]);
    }
}

Test(engine_gradients, of_scores)
{
    for (size_t i = 0; i < sizeof(transforms) / sizeof(transforms[0]); i++) {
        transform = transforms[i];
        wanted = TRL_IS_TOP1;
        expect_gradients_of_composed(true, false);
        wanted |= TRL_ENTROPY;
        expect_gradients_of_composed(true, false);
        expect_gradients_of_composed(false, true);
        expect_gradients_of_composed(true, true);
    }
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
