/* TRL's head: its scores and their gradients, against whole logits and differences, on the host. */
#include "support/arrays.h"
#include "support/slopes.h"
#include "workloads/engine/autograd.h"
#include "workloads/engine/ops.h"
#include "workloads/engine/ops_trl.h"

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

TestSuite(trl_gradients, .init = setup, .fini = teardown);

/* --- TRL's head ------------------------------------------------------------------------------- */

static struct tensor *log_sigmoid_of(struct tensor *const x[2])
{
    return op_log_sigmoid(e, op_mul_scalar(e, x[0], 4));
}
Test(trl_gradients, of_log_sigmoid)
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
Test(trl_gradients, scores_are_those_of_whole_logits)
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

Test(trl_gradients, of_scores)
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
