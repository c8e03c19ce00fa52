/* Attention as operation graphs; see fused_graph.h. */
#include "fused_graph.h"

static const cudnnDataType_t f32 = CUDNN_DATA_FLOAT;

struct builder {
    struct plim_dnn_graph *g;
    const struct plim_fused_problem *p;
    int *id;
    cudnnDataType_t half;
    struct plim_dnn_shape scores, column; /* (b, heads, s_q, s_k), (b, heads, s_q, 1) */
};

static int stored(struct builder *b, enum plim_fused_tensor which)
{
    return b->id[which] = plim_dnn_tensor(b->g, b->half, b->p->shape[which]);
}

static int stored_transposed(struct builder *b, enum plim_fused_tensor which)
{
    struct plim_dnn_shape shape = plim_dnn_transposed(b->p->shape[which]);
    return b->id[which] = plim_dnn_tensor(b->g, b->half, shape);
}

static int number(struct builder *b, enum plim_fused_tensor which)
{
    cudnnDataType_t type = which >= PLIM_FUSED_SEED ? CUDNN_DATA_INT64 : f32;
    return b->id[which] = plim_dnn_scalar(b->g, type);
}

/* f(x, operand) in fp32, of the shape of x */
static int pointwise(struct builder *b, cudnnPointwiseMode_t mode, int x, int operand)
{
    int y = plim_dnn_virtual(b->g, f32, b->g->shape[x]);
    plim_dnn_pointwise(b->g, mode, f32, x, operand, -1, y);
    return y;
}

static int product(struct builder *b, int x, int y, cudnnDataType_t type,
                   struct plim_dnn_shape shape)
{
    int z = plim_dnn_virtual(b->g, type, shape);
    plim_dnn_matmul(b->g, x, y, z);
    return z;
}

static int row_fold(struct builder *b, cudnnReduceTensorOp_t fold, int x)
{
    int y = plim_dnn_virtual(b->g, f32, b->column);
    plim_dnn_reduce(b->g, fold, x, y);
    return y;
}

static int masked(struct builder *b, int scores)
{
    struct plim_dnn_graph *g = b->g;
    int row = plim_dnn_virtual(g, CUDNN_DATA_INT32, b->scores);
    plim_dnn_index(g, 2, scores, row);
    int column = plim_dnn_virtual(g, CUDNN_DATA_INT32, b->scores);
    plim_dnn_index(g, 3, scores, column);
    int seen = plim_dnn_virtual(g, CUDNN_DATA_BOOLEAN, b->scores);
    plim_dnn_pointwise(g, CUDNN_POINTWISE_CMP_GE, CUDNN_DATA_BOOLEAN, row, column, -1, seen);
    int y = plim_dnn_virtual(g, f32, b->scores);
    plim_dnn_pointwise(g, CUDNN_POINTWISE_BINARY_SELECT, f32, scores,
                       number(b, PLIM_FUSED_MINUS_INFINITY), seen, y);
    return y;
}

static int scores(struct builder *b, int q, int k_transposed, int scale)
{
    int s = product(b, q, k_transposed, f32, b->scores);
    s = pointwise(b, CUDNN_POINTWISE_MUL, s, scale);
    if (b->p->has_bias) s = pointwise(b, CUDNN_POINTWISE_ADD, s, stored(b, PLIM_FUSED_BIAS));
    return b->p->causal ? masked(b, s) : s;
}

/* 1 for elements of P that dropout keeps, otherwise 0. */
static int kept(struct builder *b)
{
    int y = plim_dnn_virtual(b->g, f32, b->scores);
    int seed = number(b, PLIM_FUSED_SEED), offset = number(b, PLIM_FUSED_OFFSET);
    plim_dnn_bernoulli(b->g, 1 - b->p->dropped, seed, offset, y);
    return y;
}

static void build_forward(struct builder *b)
{
    struct plim_dnn_graph *g = b->g;
    int q = stored(b, PLIM_FUSED_Q), k = stored_transposed(b, PLIM_FUSED_K);
    int s = scores(b, q, k, number(b, PLIM_FUSED_SCALE));
    int top = row_fold(b, CUDNN_REDUCE_TENSOR_MAX, s);
    int e = pointwise(b, CUDNN_POINTWISE_EXP, pointwise(b, CUDNN_POINTWISE_SUB, s, top), -1);
    int sum = row_fold(b, CUDNN_REDUCE_TENSOR_ADD, e);
    if (b->p->has_logsumexp) {
        int log = pointwise(b, CUDNN_POINTWISE_LOG, sum, -1);
        int lse = plim_dnn_tensor(g, f32, b->column);
        b->id[PLIM_FUSED_LOGSUMEXP] = lse;
        plim_dnn_pointwise(g, CUDNN_POINTWISE_ADD, f32, top, log, -1, lse);
    }
    int p = plim_dnn_virtual(g, b->half, b->scores);
    if (b->p->dropped > 0) {
        int some =
            pointwise(b, CUDNN_POINTWISE_MUL, pointwise(b, CUDNN_POINTWISE_DIV, e, sum), kept(b));
        plim_dnn_pointwise(g, CUDNN_POINTWISE_MUL, f32, some, number(b, PLIM_FUSED_KEEP_INVERSE),
                           -1, p);
    } else {
        plim_dnn_pointwise(g, CUDNN_POINTWISE_DIV, f32, e, sum, -1, p);
    }
    int v = stored(b, PLIM_FUSED_V);
    plim_dnn_matmul(g, p, v, stored(b, PLIM_FUSED_O));
}

static int transposed_half(struct builder *b, int x)
{
    int y = plim_dnn_virtual(b->g, b->half, plim_dnn_transposed(b->scores));
    plim_dnn_reshape(b->g, x, y);
    return y;
}

/* The gradient of keys or values. If heads share them, first that of each head, then their sum. */
static void shared_gradient(struct builder *b, int left, int right, enum plim_fused_tensor result)
{
    const struct plim_dnn_shape *q = &b->p->shape[PLIM_FUSED_Q], *y = &b->p->shape[result];
    int out = stored(b, result);
    if (q->extent[1] == y->extent[1]) {
        plim_dnn_matmul(b->g, left, right, out);
        return;
    }
    struct plim_dnn_shape all =
        plim_dnn_packed(y->extent[0], q->extent[1], y->extent[2], y->extent[3]);
    plim_dnn_reduce(b->g, CUDNN_REDUCE_TENSOR_ADD, product(b, left, right, b->half, all), out);
}

static int row_sums(struct builder *b, int grad, int out)
{
    const struct plim_dnn_shape *o = &b->p->shape[PLIM_FUSED_O];
    int terms = plim_dnn_virtual(
        b->g, f32, plim_dnn_packed(o->extent[0], o->extent[1], o->extent[2], o->extent[3]));
    plim_dnn_pointwise(b->g, CUDNN_POINTWISE_MUL, f32, grad, out, -1, terms);
    int folded = row_fold(b, CUDNN_REDUCE_TENSOR_ADD, terms);
    int sums = plim_dnn_tensor(b->g, f32, b->column);
    b->id[PLIM_FUSED_ROW_SUMS] = sums;
    /* without dropout too: it belongs to the chain that the engines recognise */
    plim_dnn_pointwise(b->g, CUDNN_POINTWISE_MUL, f32, folded, number(b, PLIM_FUSED_KEEP), -1,
                       sums);
    return sums;
}

/* Blocks add to an fp32 array provided by the caller; then it is rounded. */
static void q_gradient(struct builder *b, int ds, int k_transposed)
{
    const struct plim_dnn_shape *q = &b->p->shape[PLIM_FUSED_Q];
    int k = plim_dnn_virtual(b->g, b->half, b->p->shape[PLIM_FUSED_K]);
    plim_dnn_reshape(b->g, k_transposed, k);
    int sums = plim_dnn_tensor(
        b->g, f32, plim_dnn_packed(q->extent[0], q->extent[1], q->extent[2], q->extent[3]));
    b->id[PLIM_FUSED_DQ_SUMS] = sums;
    plim_dnn_matmul(b->g, ds, k, sums);
    plim_dnn_pointwise(b->g, CUDNN_POINTWISE_IDENTITY, f32, sums, -1, -1, stored(b, PLIM_FUSED_DQ));
}

/* Computes P's part of the softmax's gradient from dP: P (dP - sums), or with dropout P (M dP - sums) / keep. Also
 * computes dV, because it needs M, too. */
static int through_softmax(struct builder *b, int p, int grad, int sums)
{
    int mask = b->p->dropped > 0 ? kept(b) : -1, inverse = -1, used = p;
    if (mask >= 0) {
        inverse = number(b, PLIM_FUSED_KEEP_INVERSE);
        used = pointwise(b, CUDNN_POINTWISE_MUL, p, mask);
        used = pointwise(b, CUDNN_POINTWISE_MUL, used, inverse);
    }
    shared_gradient(b, transposed_half(b, used), grad, PLIM_FUSED_DV);
    int dp = product(b, grad, stored_transposed(b, PLIM_FUSED_V), f32, b->scores);
    if (mask >= 0) dp = pointwise(b, CUDNN_POINTWISE_MUL, dp, mask);
    dp = pointwise(b, CUDNN_POINTWISE_SUB, dp, sums);
    dp = pointwise(b, CUDNN_POINTWISE_MUL, dp, p);
    return mask >= 0 ? pointwise(b, CUDNN_POINTWISE_MUL, dp, inverse) : dp;
}

static void build_backward(struct builder *b)
{
    struct plim_dnn_graph *g = b->g;
    int grad = stored(b, PLIM_FUSED_DO), out = stored(b, PLIM_FUSED_O);
    int sums = row_sums(b, grad, out);
    int q = stored(b, PLIM_FUSED_Q), k = stored_transposed(b, PLIM_FUSED_K);
    int scale = number(b, PLIM_FUSED_SCALE);
    int s = scores(b, q, k, scale);
    int lse = b->id[PLIM_FUSED_LOGSUMEXP] = plim_dnn_tensor(g, f32, b->column);
    int p = pointwise(b, CUDNN_POINTWISE_EXP, pointwise(b, CUDNN_POINTWISE_SUB, s, lse), -1);
    int dp = through_softmax(b, p, grad, sums);
    int ds = plim_dnn_virtual(g, b->half, b->scores);
    plim_dnn_pointwise(g, CUDNN_POINTWISE_MUL, f32, dp, scale, -1, ds);
    shared_gradient(b, transposed_half(b, ds), q, PLIM_FUSED_DK);
    q_gradient(b, ds, k);
}

cudnnStatus_t plim_fused_graph(struct plim_dnn_graph *g, const struct plim_dnn *dnn,
                               cudnnHandle_t handle, const struct plim_fused_problem *problem,
                               int id[PLIM_FUSED_TENSORS])
{
    const int64_t *q = problem->shape[PLIM_FUSED_Q].extent,
                  *k = problem->shape[PLIM_FUSED_K].extent;
    struct builder b = {.g = g,
                        .p = problem,
                        .id = id,
                        .half = (cudnnDataType_t)problem->type,
                        .scores = plim_dnn_packed(q[0], q[1], q[2], k[2]),
                        .column = plim_dnn_packed(q[0], q[1], q[2], 1)};
    for (int i = 0; i < PLIM_FUSED_TENSORS; i++) id[i] = -1;
    plim_dnn_graph_init(g, dnn, handle);
    if (problem->backward)
        build_backward(&b);
    else
        build_forward(&b);
    return plim_dnn_graph_seal(g);
}
