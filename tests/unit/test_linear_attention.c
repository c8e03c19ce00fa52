/* The kernels of flash-linear-attention and causal-conv1d, on the host, beside the operations that transformers
 * composes the same functions of: results and gradients. And documents of a row beside the same as rows. */
#include "support/arrays.h"
#include "support/slopes.h"
#include "workloads/engine/autograd.h"
#include "workloads/engine/ops.h"
#include "workloads/engine/ops_fla.h"
#include "workloads/models/model.h"
#include "workloads/nn/nn.h"

#include <criterion/criterion.h>
#include <math.h>

enum { MOST = 6 };
static const double TOLERANCE = 2e-5; /* of numbers about 1 */

static struct engine *e;

static void setup(void)
{
    e = slopes_open();
}

static void teardown(void)
{
    slopes_close();
}

TestSuite(linear_attention, .init = setup, .fini = teardown);

/* Numbers in [low, high) that are the same wherever they stand in a batch */
static struct tensor *between(int ndim, const int64_t *shape, uint64_t seed, double low, double high)
{
    struct tensor *x = tensor_keep(tensor_empty(e, PLIM_F32, ndim, shape));
    op_random_(e, x, 1, seed);
    for (int64_t i = 0; i < tensor_elements(x); i++)
        array_put(&x->a, i, low + (high - low) * (array_at(&x->a, i) + 1) / 2);
    tensor_require_grad(e, x);
    return x;
}

static void differentiate(struct tensor *y)
{
    struct tensor *weights = tensor_keep(op_full_like(e, y, 0));
    op_random_(e, weights, 1, 77);
    struct tensor *sum = tensor_keep(op_sum_all(e, op_mul(e, y, weights)));
    autograd_backward(e, sum);
    tensor_drop_all(e, weights, sum);
}

static void expect_equal(const struct plim_array *a, const struct plim_array *b, const char *what)
{
    cr_assert_eq(plim_array_elements(a), plim_array_elements(b));
    for (int64_t i = 0; i < plim_array_elements(a); i++) {
        double ours = array_at(a, i), theirs = array_at(b, i);
        cr_assert(fabs(ours - theirs) <= TOLERANCE * fmax(1, fabs(theirs)), "%s, element %d: %.8g, composed %.8g", what,
                  (int)i, ours, theirs);
    }
}

/* A function of `count` variables, two ways: results and gradients must be the same. Both sets are taken. */
typedef struct tensor *function(struct tensor *const *x);

static void expect_the_same(int count, function *f, function *g, struct tensor **x, struct tensor **y)
{
    static const char *const names[MOST] = {"gradient 0", "gradient 1", "gradient 2", "gradient 3", "gradient 4"};
    struct tensor *a = tensor_keep(f(x)), *b = tensor_keep(g(y));
    cr_assert(!e->halted);
    expect_equal(&a->a, &b->a, "result");
    differentiate(a);
    differentiate(b);
    cr_assert(!e->halted);
    for (int i = 0; i < count; i++) expect_equal(&x[i]->grad->a, &y[i]->grad->a, names[i]);
    tensor_drop_all(e, a, b);
    tensor_drop_list(e, x, count);
    tensor_drop_list(e, y, count);
}

/* (1, tokens) int32: `length` tokens a document */
static struct tensor *numbers_of(int64_t documents, int64_t length)
{
    struct tensor *x = tensor_keep(tensor_empty(e, PLIM_I32, SHAPE(1, documents * length)));
    for (int64_t i = 0; i < documents * length; i++) array_put(&x->a, i, (double)(i / length));
    return x;
}

/* --- the convolution -------------------------------------------------------------------------- */

static struct tensor *document; /* of op_causal_conv1d() */

static struct tensor *by_package(struct tensor *const *x)
{
    struct tensor *turned = tensor_keep(op_transpose(e, x[0], 1, 2));
    struct tensor *y = op_causal_conv1d(e, turned, x[1], document);
    tensor_drop(e, turned);
    return op_transpose(e, y, 1, 2);
}

/* (B, S, channels) -> the same */
static struct tensor *composed(struct tensor *const *x)
{
    int64_t seq = tensor_size(x[0], 1), taps = tensor_size(x[1], 1);
    struct tensor *turned = tensor_keep(op_contiguous(e, op_transpose(e, x[0], 1, 2)));
    struct tensor *y = op_depthwise(e, turned, op_unsqueeze(e, x[1], 1), NULL, taps - 1);
    tensor_drop(e, turned);
    return op_transpose(e, op_silu(e, op_slice(e, y, 2, 0, seq)), 1, 2);
}

static void make(struct tensor *x[2], int64_t batch, int64_t seq, int64_t channels, int64_t taps)
{
    x[0] = between(SHAPE(batch, seq, channels), 1, -2, 2);
    x[1] = between(SHAPE(channels, taps), 2, -1, 1);
}

Test(linear_attention, convolutions)
{
    static const int64_t lengths[] = {1, 2, 3, 4, 9};
    struct tensor *x[2], *y[2];
    for (int i = 0; i < 5; i++)
        for (int64_t taps = 2; taps <= 4; taps++) {
            make(x, 2, lengths[i], 3, taps);
            make(y, 2, lengths[i], 3, taps);
            expect_the_same(2, by_package, composed, x, y);
        }
}

/* One row of documents is the documents as rows. */
Test(linear_attention, convolutions_of_documents)
{
    static const int64_t lengths[] = {1, 2, 5};
    struct tensor *x[2], *y[2];
    for (int i = 0; i < 3; i++) {
        make(x, 1, 4 * lengths[i], 3, 4);
        make(y, 4, lengths[i], 3, 4);
        document = numbers_of(4, lengths[i]);
        expect_the_same(2, by_package, composed, x, y);
        tensor_drop(e, document);
    }
}

/* --- the gated delta rule --------------------------------------------------------------------- */

static struct fla_documents rows_of_documents; /* of op_fla_gated_delta_rule() */

static struct tensor *by_fla(struct tensor *const *x)
{
    return op_fla_gated_delta_rule(e, x, x[3], x[4], &rows_of_documents);
}

static struct tensor *by_transformers(struct tensor *const *x)
{
    return nn_gated_delta_rule(e, x, x[3], x[4]);
}

enum { HEADS = 2, KEY = 6, VALUE = 5, LONGEST = 150 };

static void make_rule(struct tensor *x[5], int64_t batch, int64_t seq)
{
    x[0] = between(SHAPE(batch, seq, HEADS, KEY), 3, -1, 1);
    x[1] = between(SHAPE(batch, seq, HEADS, KEY), 4, -1, 1);
    x[2] = between(SHAPE(batch, seq, HEADS, VALUE), 5, -1, 1);
    x[3] = between(SHAPE(batch, seq, HEADS), 6, -0.2, 0);
    x[4] = between(SHAPE(batch, seq, HEADS), 7, 0, 1);
}

/* Less than a chunk, one, a token more, and three of which the last is not full */
Test(linear_attention, delta_rules)
{
    static const int64_t lengths[] = {1, 2, 63, 64, 65, 150};
    struct tensor *x[5], *y[5];
    for (int i = 0; i < 6; i++) {
        make_rule(x, 2, lengths[i]);
        make_rule(y, 2, lengths[i]);
        expect_the_same(5, by_fla, by_transformers, x, y);
    }
}

/* The vector of a token and a head, divided by its length and by `divisor`. */
static void read_unit(const struct tensor *x, int64_t row, double divisor, double vector[KEY])
{
    double squares = 1e-6;
    for (int64_t d = 0; d < KEY; d++) squares += pow(array_at(&x->a, row * KEY + d), 2);
    for (int64_t d = 0; d < KEY; d++) vector[d] = array_at(&x->a, row * KEY + d) / (sqrt(squares) * divisor);
}

/* The result for one element of a head's values, from token to token: s <- exp(decay) s, s <- s + beta (v - s k) k,
 * y = s q. */
static void recur(struct tensor *const x[5], int64_t batch, int64_t seq, int64_t head, int64_t element, double *y)
{
    double s[KEY] = {0}, q[KEY], k[KEY];
    for (int64_t t = 0; t < seq; t++) {
        int64_t row = (batch * seq + t) * HEADS + head;
        double product = 0;
        read_unit(x[0], row, sqrt(KEY), q);
        read_unit(x[1], row, 1, k);
        for (int64_t d = 0; d < KEY; d++) {
            s[d] *= exp(array_at(&x[3]->a, row));
            product += s[d] * k[d];
        }
        double change = array_at(&x[4]->a, row) * (array_at(&x[2]->a, row * VALUE + element) - product);
        y[t] = 0;
        for (int64_t d = 0; d < KEY; d++) {
            s[d] += change * k[d];
            y[t] += s[d] * q[d];
        }
    }
}

Test(linear_attention, delta_rules_are_the_recurrence)
{
    static const int64_t lengths[] = {1, 63, 64, LONGEST};
    struct tensor *x[5];
    for (int i = 0; i < 4; i++) {
        make_rule(x, 2, lengths[i]);
        struct tensor *y = tensor_keep(by_transformers(x));
        cr_assert(!e->halted);
        for (int64_t j = 0; j < 2 * HEADS * VALUE; j++) {
            int64_t batch = j / (HEADS * VALUE), head = j / VALUE % HEADS, element = j % VALUE;
            double expected[LONGEST];
            recur(x, batch, lengths[i], head, element, expected);
            for (int64_t t = 0; t < lengths[i]; t++) {
                double ours = array_at(&y->a, ((batch * lengths[i] + t) * HEADS + head) * VALUE + element);
                cr_assert(fabs(ours - expected[t]) <= TOLERANCE, "%d tokens, token %d: %.8g, expected %.8g",
                          (int)lengths[i], (int)t, ours, expected[t]);
            }
        }
        tensor_drop(e, y);
        tensor_drop_list(e, x, 5);
    }
}

/* (documents + 1) int32 */
static struct tensor *ends_of(int64_t documents, int64_t length)
{
    int64_t count = documents + 1;
    struct tensor *x = tensor_keep(tensor_empty(e, PLIM_I32, 1, &count));
    for (int64_t i = 0; i < count; i++) array_put(&x->a, i, (double)(i * length));
    return x;
}

Test(linear_attention, delta_rules_of_documents)
{
    static const int64_t lengths[] = {1, 7, 64, 70};
    struct tensor *x[5], *y[5];
    for (int i = 0; i < 4; i++) {
        make_rule(x, 1, 3 * lengths[i]);
        make_rule(y, 3, lengths[i]);
        rows_of_documents = (struct fla_documents){ends_of(3, lengths[i]), 3 * ((lengths[i] + 63) / 64)};
        expect_the_same(5, by_fla, by_transformers, x, y);
        tensor_drop(e, rows_of_documents.ends);
    }
}

/* On Hopper it is TileLang's kernel that adds the gradient of the decay up: other parts of it, of the same sum */
Test(linear_attention, the_decays_gradient_has_parts)
{
    static const int generations[] = {75, 80, 90};
    struct tensor *x[5], *y[5];
    rows_of_documents = (struct fla_documents){NULL, 0};
    for (int i = 0; i < 3; i++) {
        e->device->info.compute_capability = generations[i];
        for (int way = 0; way < 2; way++) {
            struct tensor **z = way ? y : x;
            make_rule(z, 1, 66);
            for (int k = 0; k < 2; k++) {
                tensor_drop(e, z[k]);
                z[k] = between(SHAPE(1, 66, HEADS, 140), 8 + (uint64_t)k, -1, 1);
            }
        }
        expect_the_same(5, by_fla, by_transformers, x, y);
    }
}

/* --- documents of one row --------------------------------------------------------------------- */

/* Two rows of ten tokens, in three documents each: the longest stand first, then what leaves the others a token each */
Test(linear_attention, documents_are_told_apart)
{
    static const int lengths[] = {4, 4, 4, 4, 3, 1};
    const struct plim_model_config config = {.vocab_size = 9};
    const struct plim_train_setting setting = {.micro_batch = 2,
                                               .seq = 10,
                                               .loop = PLIM_LOOP_TRL_SFT,
                                               .packing = PLIM_PACKING_ONE_ROW,
                                               .documents = 3};
    const struct decoder m = {.config = &config, .setting = &setting};
    struct batch b = decoder_batch(e, &m, 1);
    int end = 0;
    cr_assert(!e->halted);
    for (int i = 0; i < 6; i++) {
        cr_expect_eq(array_at(&b.ends[0]->a, i), end);
        for (int k = 0; k < lengths[i]; k++) cr_expect_eq(array_at(&b.document->a, end + k), i, "token %d", end + k);
        end += lengths[i];
    }
    cr_expect_eq(array_at(&b.ends[0]->a, 6), end);
    tensor_drop_all(e, b.inputs, b.positions, b.ends[0], b.ends[1], b.document);
    if (b.labels != b.inputs) tensor_drop(e, b.labels);
}
