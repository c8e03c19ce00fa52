/* Scaled dot product attention: one head at a time, one row of scores at a time, in doubles. */
#include "devices/random.h"
#include "reference_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { Q, K, V };

/* One call. qkv[] and grad[] hold one head; those of k and v are shared by a group of heads. */
struct attention {
    const struct plim_op *op;
    const struct plim_array *q, *k, *v;
    int64_t batch, heads, kv_heads, q_length, k_length, size, v_size;
    bool has_mask;
    struct plim_array mask; /* over (batch, heads, q_length, k_length) */
    double *numbers, *qkv[3], *grad[3];
    double *out, *dout;   /* one row each */
    /* one row each: scores, then probabilities; softcapping's derivatives; dropout's factors */
    double *score, *slope, *unit;
};

/* --- set up ----------------------------------------------------------------------------------- */

static bool is_sound(const struct attention *t)
{
    const struct plim_array *q = t->q, *k = t->k, *v = t->v;
    if (q->ndim != 4 || k->ndim != 4 || v->ndim != 4) return false;
    return k->shape[0] == q->shape[0] && v->shape[0] == q->shape[0] && k->shape[1] > 0 &&
           k->shape[1] == v->shape[1] && q->shape[1] % k->shape[1] == 0 &&
           k->shape[2] == v->shape[2] && k->shape[3] == q->shape[3];
}

static enum plim_status find_mask(struct attention *t, const struct plim_array *mask)
{
    struct plim_array scores = {.shape = {t->batch, t->heads, t->q_length, t->k_length}, .ndim = 4};
    t->has_mask = mask != NULL;
    return mask ? plim_elements_broadcast(mask, &scores, &t->mask) : PLIM_OK;
}

/* `first`: index of q among the inputs. */
static enum plim_status attention_init(struct attention *t, const struct plim_op *op, int first,
                                       int mask)
{
    *t = (struct attention){
        .op = op, .q = op->in[first], .k = op->in[first + 1], .v = op->in[first + 2]};
    if (!is_sound(t)) return PLIM_INVALID;
    t->batch = t->q->shape[0], t->heads = t->q->shape[1], t->kv_heads = t->k->shape[1];
    t->q_length = t->q->shape[2], t->k_length = t->k->shape[2];
    t->size = t->q->shape[3], t->v_size = t->v->shape[3];
    enum plim_status st = find_mask(t, plim_reference_input(op, mask));
    if (st != PLIM_OK) return st;
    int64_t count[3] = {t->q_length * t->size, t->k_length * t->size, t->k_length * t->v_size};
    t->numbers = plim_reference_numbers(2 * (count[Q] + count[K] + count[V]) + 2 * t->v_size +
                                        3 * t->k_length);
    if (!t->numbers) return PLIM_NOMEM;
    double *next = t->numbers;
    for (int i = Q; i <= V; i++) {
        t->qkv[i] = next;
        t->grad[i] = next + count[i];
        next += 2 * count[i];
    }
    t->out = next, t->dout = t->out + t->v_size;
    t->score = t->dout + t->v_size, t->slope = t->score + t->k_length;
    t->unit = t->slope + t->k_length;
    return PLIM_OK;
}

static void attention_finish(struct attention *t)
{
    free(t->numbers);
}

static bool has_shape(const struct plim_array *a, int64_t batch, int64_t heads, int64_t length,
                      int64_t size)
{
    return a->ndim == 4 && a->shape[0] == batch && a->shape[1] == heads && a->shape[2] == length &&
           a->shape[3] == size;
}

static void read_head(const struct plim_array *x, int64_t b, int64_t head, double *to)
{
    int64_t count = x->shape[2] * x->shape[3];
    plim_elements_read(x, (b * x->shape[1] + head) * count, count, to);
}

static void write_head(const struct plim_array *x, int64_t b, int64_t head, const double *from)
{
    int64_t count = x->shape[2] * x->shape[3];
    plim_elements_write(x, (b * x->shape[1] + head) * count, count, from);
}

static double dot(const double *a, const double *b, int64_t count)
{
    double sum = 0;
    for (int64_t i = 0; i < count; i++) sum += a[i] * b[i];
    return sum;
}

static void add_scaled(double *to, double factor, const double *from, int64_t count)
{
    for (int64_t i = 0; i < count; i++) to[i] += factor * from[i];
}

/* --- one row of scores ------------------------------------------------------------------------ */

struct span {
    int64_t first, end; /* the last is the one before `end` */
};

/* Returns the document that contains query i. */
static struct span document_of(const struct attention *t, int64_t i)
{
    const struct plim_array *ends = plim_attention_ends(t->op);
    int64_t documents = ends ? plim_array_elements(ends) - 1 : 0;
    for (int64_t n = 0; n < documents; n++) {
        double edge[2];
        plim_elements_read(ends, n, 2, edge);
        if (i < (int64_t)edge[1] || n == documents - 1) return (struct span){(int64_t)edge[0], (int64_t)edge[1]};
    }
    return (struct span){0, t->k_length};
}

/* Returns the keys visible to query i. */
static struct span keys_of(const struct attention *t, int64_t i)
{
    struct span s = document_of(t, i);
    int64_t window = t->op->window;
    if (window && s.first < i - window + 1) s.first = i - window + 1;
    if (window && s.end > i + window) s.end = i + window;
    if (t->op->causal && s.end > i + 1) s.end = i + 1;
    return s;
}

/* score = cap(beta q k^T) + mask, minus infinity for invisible keys; unit = 0 or 1 / (1 - alpha). */
static void score_row(struct attention *t, int64_t b, int64_t head, int64_t i)
{
    const struct plim_op *op = t->op;
    int64_t row = (b * t->heads + head) * t->q_length + i;
    struct span keys = keys_of(t, i);
    if (t->has_mask) plim_elements_read(&t->mask, row * t->k_length, t->k_length, t->score);
    for (int64_t j = 0; j < t->k_length; j++) {
        double added = t->has_mask ? t->score[j] : 0;
        double product = op->beta * dot(t->qkv[Q] + i * t->size, t->qkv[K] + j * t->size, t->size);
        t->slope[j] = 1;
        if (op->softcap > 0) {
            double tanh_of = tanh(product / op->softcap);
            product = op->softcap * tanh_of;
            t->slope[j] = 1 - tanh_of * tanh_of;
        }
        t->score[j] = j < keys.first || j >= keys.end ? -INFINITY : product + added;
        t->unit[j] = 1;
        if (op->alpha > 0) {
            int byte = plim_dropout_byte(op->seed, row, t->k_length, j);
            t->unit[j] = byte <= plim_dropout_limit(op->alpha) ? 1 / (1 - op->alpha) : 0;
        }
    }
}

/* Turns scores into probabilities, or zeros if no key is visible. Returns logsumexp. */
static double softmax_row(struct attention *t)
{
    double most = -INFINITY, sum = 0;
    for (int64_t j = 0; j < t->k_length; j++)
        if (t->score[j] > most || isnan(t->score[j])) most = t->score[j];
    bool sees_nothing = most == -INFINITY;
    for (int64_t j = 0; j < t->k_length; j++) {
        t->score[j] = sees_nothing ? 0 : exp(t->score[j] - most);
        sum += t->score[j];
    }
    for (int64_t j = 0; j < t->k_length && !sees_nothing; j++) t->score[j] /= sum;
    return sees_nothing ? -INFINITY : most + log(sum);
}

/* --- forward ---------------------------------------------------------------------------------- */

static float *logsumexp_of(const struct plim_array *a)
{
    return (float *)(uintptr_t)a->data;
}

static void forward_head(struct attention *t, int64_t b, int64_t head)
{
    const struct plim_op *op = t->op;
    int64_t row = (b * t->heads + head) * t->q_length;
    for (int64_t i = 0; i < t->q_length; i++, row++) {
        score_row(t, b, head, i);
        double logsumexp = softmax_row(t);
        memset(t->out, 0, (size_t)t->v_size * sizeof(*t->out));
        for (int64_t j = 0; j < t->k_length; j++)
            add_scaled(t->out, t->score[j] * t->unit[j], t->qkv[V] + j * t->v_size, t->v_size);
        plim_elements_write(op->out[0], row * t->v_size, t->v_size, t->out);
        if (op->n_out > 1 && op->out[1]) logsumexp_of(op->out[1])[row] = (float)logsumexp;
    }
}

enum plim_status plim_reference_attention(const struct plim_op *op)
{
    struct attention t;
    enum plim_status st = attention_init(&t, op, 0, 3);
    if (st == PLIM_OK && !has_shape(op->out[0], t.batch, t.heads, t.q_length, t.v_size))
        st = PLIM_INVALID;
    for (int64_t n = 0; n < t.batch * t.heads && st == PLIM_OK; n++) {
        int64_t b = n / t.heads, head = n % t.heads, group = head / (t.heads / t.kv_heads);
        read_head(t.q, b, head, t.qkv[Q]);
        read_head(t.k, b, group, t.qkv[K]);
        read_head(t.v, b, group, t.qkv[V]);
        forward_head(&t, b, head);
    }
    attention_finish(&t);
    return st;
}

/* --- backward --------------------------------------------------------------------------------- */

enum { DOUT, IN_Q, IN_K, IN_V, IN_OUT, LOGSUMEXP, MASK };

/* With p the probabilities, u their dropout and c the derivatives of softcapping: dv = (p u)^T dout, dp = (dout v^T) u,
 * ds = c p (dp - sum of p dp over the row), where that sum is dout . out; dq = beta ds k, dk = beta ds^T q; the mask's
 * gradient is (dp - that sum) p. */
static void backward_head(struct attention *t, int64_t b, int64_t head)
{
    const struct plim_op *op = t->op;
    int64_t row = (b * t->heads + head) * t->q_length;
    const struct plim_array *dmask = plim_attention_mask_gradient(op);
    memset(t->grad[Q], 0, (size_t)(t->q_length * t->size) * sizeof(double));
    for (int64_t i = 0; i < t->q_length; i++, row++) {
        double logsumexp = (double)logsumexp_of(op->in[LOGSUMEXP])[row];
        if (isinf(logsumexp)) { /* no visible keys */
            memset(t->unit, 0, (size_t)t->k_length * sizeof(double));
            if (dmask) plim_elements_write(dmask, row * t->k_length, t->k_length, t->unit);
            continue;
        }
        score_row(t, b, head, i);
        plim_elements_read(op->in[DOUT], row * t->v_size, t->v_size, t->dout);
        plim_elements_read(op->in[IN_OUT], row * t->v_size, t->v_size, t->out);
        double mean = dot(t->dout, t->out, t->v_size);
        for (int64_t j = 0; j < t->k_length; j++) {
            double p = exp(t->score[j] - logsumexp);
            double dp = dot(t->dout, t->qkv[V] + j * t->v_size, t->v_size) * t->unit[j];
            double ds = op->beta * p * (dp - mean) * t->slope[j];
            add_scaled(t->grad[V] + j * t->v_size, p * t->unit[j], t->dout, t->v_size);
            add_scaled(t->grad[Q] + i * t->size, ds, t->qkv[K] + j * t->size, t->size);
            add_scaled(t->grad[K] + j * t->size, ds, t->qkv[Q] + i * t->size, t->size);
            t->unit[j] = p * (dp - mean); /* no longer needed */
        }
        if (dmask) plim_elements_write(dmask, row * t->k_length, t->k_length, t->unit);
    }
}

static bool backward_is_sound(const struct attention *t)
{
    const struct plim_op *op = t->op;
    return plim_elements_same_shape(op->out[Q], t->q) &&
           plim_elements_same_shape(op->out[K], t->k) &&
           plim_elements_same_shape(op->out[V], t->v) &&
           (!plim_attention_mask_gradient(op) ||
            has_shape(plim_attention_mask_gradient(op), t->batch, t->heads, t->q_length, t->k_length)) &&
           has_shape(op->in[DOUT], t->batch, t->heads, t->q_length, t->v_size) &&
           has_shape(op->in[IN_OUT], t->batch, t->heads, t->q_length, t->v_size);
}

/* Sums the gradients of k and v over the heads that share them. */
static void backward_group(struct attention *t, int64_t b, int64_t group)
{
    int64_t shared = t->heads / t->kv_heads;
    read_head(t->k, b, group, t->qkv[K]);
    read_head(t->v, b, group, t->qkv[V]);
    memset(t->grad[K], 0, (size_t)(t->k_length * t->size) * sizeof(double));
    memset(t->grad[V], 0, (size_t)(t->k_length * t->v_size) * sizeof(double));
    for (int64_t head = group * shared; head < (group + 1) * shared; head++) {
        read_head(t->q, b, head, t->qkv[Q]);
        backward_head(t, b, head);
        write_head(t->op->out[Q], b, head, t->grad[Q]);
    }
    write_head(t->op->out[K], b, group, t->grad[K]);
    write_head(t->op->out[V], b, group, t->grad[V]);
}

enum plim_status plim_reference_attention_backward(const struct plim_op *op)
{
    struct attention t;
    enum plim_status st = attention_init(&t, op, IN_Q, MASK);
    if (st == PLIM_OK && !backward_is_sound(&t)) st = PLIM_INVALID;
    for (int64_t n = 0; n < t.batch * t.kv_heads && st == PLIM_OK; n++)
        backward_group(&t, n / t.kv_heads, n % t.kv_heads);
    attention_finish(&t);
    return st;
}
