/* Operation graphs by their definition; the contract is in cudnn_descriptor.h. */
#include "cudnn_descriptor.h"
#include "devices/half.h"
#include "devices/random.h"
#include "gpu_state.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { DIMS = 4, MAX_TENSORS = 64 };

/* Every tensor as fp32 in row-major order, whatever its strides. */
struct tensor {
    const struct descriptor *descriptor;
    int64_t uid, type;
    int64_t extent[DIMS], stride[DIMS];
    bool is_virtual, by_value, filled;
    char *data; /* of stored ones */
    float *values;
};

struct run {
    const struct descriptor *pack;
    struct tensor tensor[MAX_TENSORS];
    int tensors;
    double work; /* multiplications of its products */
    cudnnStatus_t status;
};

static int64_t elements(const struct tensor *t)
{
    int64_t n = 1;
    for (int i = 0; i < DIMS; i++) n *= t->extent[i];
    return n;
}

static void fail(struct run *r, cudnnStatus_t status)
{
    if (!r->status) r->status = status;
}

/* --- memory ----------------------------------------------------------------------------------- */

static float load(const struct tensor *t, int64_t at)
{
    uint16_t half;
    float value;
    if (t->type == CUDNN_DATA_FLOAT) {
        memcpy(&value, t->data + at * 4, sizeof value);
        return value;
    }
    memcpy(&half, t->data + at * 2, sizeof half);
    return t->type == CUDNN_DATA_BFLOAT16 ? plim_bf16_to_float(half) : plim_fp16_to_float(half);
}

static void save(const struct tensor *t, int64_t at, float value)
{
    if (t->type == CUDNN_DATA_FLOAT) {
        memcpy(t->data + at * 4, &value, sizeof value);
        return;
    }
    uint16_t half =
        t->type == CUDNN_DATA_BFLOAT16 ? plim_float_to_bf16(value) : plim_float_to_fp16(value);
    memcpy(t->data + at * 2, &half, sizeof half);
}

static float rounded(const struct tensor *t, float value)
{
    if (t->type == CUDNN_DATA_BFLOAT16) return plim_bf16_to_float(plim_float_to_bf16(value));
    if (t->type == CUDNN_DATA_HALF) return plim_fp16_to_float(plim_float_to_fp16(value));
    if (t->type == CUDNN_DATA_BOOLEAN) return value != 0;
    return value;
}

/* The i-th element in row-major order. */
static void unravel(const struct tensor *t, int64_t i, int64_t index[DIMS])
{
    for (int d = DIMS - 1; d >= 0; d--) {
        index[d] = i % t->extent[d];
        i /= t->extent[d];
    }
}

static int64_t offset(const struct tensor *t, const int64_t index[DIMS])
{
    int64_t at = 0;
    for (int d = 0; d < DIMS; d++) at += index[d] * t->stride[d];
    return at;
}

/* The element of `t` that stands at `index` of a tensor of other extents: 1 repeats, a part of them
 * serves groups. */
static float at(const struct tensor *t, const int64_t index[DIMS], const int64_t extent[DIMS])
{
    int64_t i = 0;
    for (int d = 0; d < DIMS; d++)
        i = i * t->extent[d] + index[d] * t->extent[d] / (extent[d] ? extent[d] : 1);
    return t->values[i];
}

static char *address_of(const struct run *r, int64_t uid)
{
    const struct attribute *ids = descriptor_find(r->pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
    const struct attribute *to = descriptor_find(r->pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
    for (int64_t i = 0; ids && to && i < ids->count && i < to->count; i++)
        if (((const int64_t *)ids->values)[i] == uid) return ((char **)to->values)[i];
    return NULL;
}

static void fill(struct tensor *t)
{
    int64_t index[DIMS], n = elements(t);
    for (int64_t i = 0; i < n; i++) {
        unravel(t, i, index);
        t->values[i] = load(t, offset(t, index));
    }
    t->filled = true;
}

static void read_shape(struct tensor *t)
{
    const struct descriptor *d = t->descriptor;
    t->uid = descriptor_number(d, CUDNN_ATTR_TENSOR_UNIQUE_ID, 0);
    t->type = descriptor_number(d, CUDNN_ATTR_TENSOR_DATA_TYPE, -1);
    t->is_virtual = descriptor_number(d, CUDNN_ATTR_TENSOR_IS_VIRTUAL, 0) != 0;
    t->by_value = descriptor_number(d, CUDNN_ATTR_TENSOR_IS_BY_VALUE, 0) != 0;
    memcpy(t->extent, descriptor_find(d, CUDNN_ATTR_TENSOR_DIMENSIONS)->values, sizeof t->extent);
    memcpy(t->stride, descriptor_find(d, CUDNN_ATTR_TENSOR_STRIDES)->values, sizeof t->stride);
}

/* By descriptor; made at its first mention. NULL: none, or no memory. */
static struct tensor *tensor_of(struct run *r, const struct descriptor *op,
                                cudnnBackendAttributeName_t name)
{
    const struct descriptor *d = descriptor_link(op, name);
    if (!d) return NULL;
    for (int i = 0; i < r->tensors; i++)
        if (r->tensor[i].descriptor == d) return &r->tensor[i];
    if (r->tensors == MAX_TENSORS) {
        fail(r, CUDNN_STATUS_NOT_SUPPORTED);
        return NULL;
    }
    struct tensor *t = &r->tensor[r->tensors];
    *t = (struct tensor){.descriptor = d};
    read_shape(t);
    int64_t alignment = descriptor_number(d, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, 1);
    if (!t->is_virtual) t->data = address_of(r, t->uid);
    if (!t->is_virtual && (!t->data || (!t->by_value && (uintptr_t)t->data % (uintptr_t)alignment)))
        fail(r, CUDNN_STATUS_BAD_PARAM);
    t->values = r->status ? NULL : malloc((size_t)elements(t) * sizeof(float));
    if (!t->values) {
        fail(r, CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED);
        return NULL;
    }
    r->tensors++;
    return t;
}

static struct tensor *input(struct run *r, const struct descriptor *op,
                            cudnnBackendAttributeName_t name)
{
    struct tensor *t = tensor_of(r, op, name);
    if (!t || t->filled) return t;
    if (t->is_virtual) {
        fail(r, CUDNN_STATUS_BAD_PARAM);
        return NULL;
    }
    fill(t);
    return t;
}

static void put(struct tensor *y, int64_t i, float value)
{
    y->values[i] = rounded(y, value);
    y->filled = true;
    if (y->is_virtual) return;
    int64_t index[DIMS];
    unravel(y, i, index);
    save(y, offset(y, index), value);
}

/* --- operations ------------------------------------------------------------------------------- */

static float pointwise(struct run *r, int64_t mode, float x, float b, float t)
{
    switch (mode) {
    case CUDNN_POINTWISE_ADD:
        return x + b;
    case CUDNN_POINTWISE_SUB:
        return x - b;
    case CUDNN_POINTWISE_MUL:
        return x * b;
    case CUDNN_POINTWISE_DIV:
        return x / b;
    case CUDNN_POINTWISE_EXP:
        return expf(x);
    case CUDNN_POINTWISE_LOG:
        return logf(x);
    case CUDNN_POINTWISE_IDENTITY:
        return x;
    case CUDNN_POINTWISE_CMP_GE:
        return x >= b;
    case CUDNN_POINTWISE_BINARY_SELECT:
        return t != 0 ? x : b;
    default:
        fail(r, CUDNN_STATUS_NOT_SUPPORTED);
        return 0;
    }
}

static void run_pointwise(struct run *r, const struct descriptor *op)
{
    const struct descriptor *p = descriptor_link(op, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR);
    const struct tensor *x, *b = NULL, *t = NULL;
    int64_t mode = descriptor_number(p, CUDNN_ATTR_POINTWISE_MODE, -1), index[DIMS];
    int64_t axis = descriptor_number(p, CUDNN_ATTR_POINTWISE_AXIS, -1);
    bool indices = mode == CUDNN_POINTWISE_GEN_INDEX;
    x = indices ? NULL : input(r, op, CUDNN_ATTR_OPERATION_POINTWISE_XDESC);
    b = input(r, op, CUDNN_ATTR_OPERATION_POINTWISE_BDESC);
    t = input(r, op, CUDNN_ATTR_OPERATION_POINTWISE_TDESC);
    struct tensor *y = tensor_of(r, op, CUDNN_ATTR_OPERATION_POINTWISE_YDESC);
    if (!r->status && (!y || (!indices && !x))) fail(r, CUDNN_STATUS_BAD_PARAM);
    for (int64_t i = 0; !r->status && i < elements(y); i++) {
        unravel(y, i, index);
        put(y, i,
            indices ? (float)index[axis]
                    : pointwise(r, mode, at(x, index, y->extent), b ? at(b, index, y->extent) : 0,
                                t ? at(t, index, y->extent) : 0));
    }
}

static void run_matmul(struct run *r, const struct descriptor *op)
{
    const struct tensor *a = input(r, op, CUDNN_ATTR_OPERATION_MATMUL_ADESC);
    const struct tensor *b = input(r, op, CUDNN_ATTR_OPERATION_MATMUL_BDESC);
    struct tensor *y = tensor_of(r, op, CUDNN_ATTR_OPERATION_MATMUL_CDESC);
    if (r->status) return;
    int64_t k = a->extent[3], index[DIMS];
    if (b->extent[2] != k || a->extent[2] != y->extent[2] || b->extent[3] != y->extent[3]) {
        fail(r, CUDNN_STATUS_BAD_PARAM);
        return;
    }
    int64_t a_extent[DIMS] = {y->extent[0], y->extent[1], y->extent[2], k};
    int64_t b_extent[DIMS] = {y->extent[0], y->extent[1], k, y->extent[3]};
    for (int64_t i = 0; i < elements(y); i++) {
        unravel(y, i, index);
        float sum = 0;
        for (int64_t j = 0; j < k; j++) {
            int64_t left[DIMS] = {index[0], index[1], index[2], j};
            int64_t right[DIMS] = {index[0], index[1], j, index[3]};
            sum += at(a, left, a_extent) * at(b, right, b_extent);
        }
        put(y, i, sum);
    }
    r->work += (double)elements(y) * (double)k;
}

static void run_reduction(struct run *r, const struct descriptor *op)
{
    const struct descriptor *p = descriptor_link(op, CUDNN_ATTR_OPERATION_REDUCTION_DESC);
    const struct tensor *x = input(r, op, CUDNN_ATTR_OPERATION_REDUCTION_XDESC);
    struct tensor *y = tensor_of(r, op, CUDNN_ATTR_OPERATION_REDUCTION_YDESC);
    int64_t fold = descriptor_number(p, CUDNN_ATTR_REDUCTION_OPERATOR, -1), index[DIMS];
    if (r->status) return;
    bool adds = fold == CUDNN_REDUCE_TENSOR_ADD;
    if (!adds && fold != CUDNN_REDUCE_TENSOR_MAX) fail(r, CUDNN_STATUS_NOT_SUPPORTED);
    int64_t n = elements(y);
    float *folded = malloc((size_t)n * sizeof *folded);
    if (!folded) fail(r, CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED);
    for (int64_t i = 0; folded && i < n; i++) folded[i] = adds ? 0 : -INFINITY;
    for (int64_t i = 0; !r->status && i < elements(x); i++) {
        int64_t to = 0;
        unravel(x, i, index);
        for (int d = 0; d < DIMS; d++)
            to = to * y->extent[d] + index[d] * y->extent[d] / x->extent[d];
        folded[to] = adds ? folded[to] + x->values[i] : fmaxf(folded[to], x->values[i]);
    }
    for (int64_t i = 0; !r->status && i < n; i++) put(y, i, folded[i]);
    free(folded);
}

/* The dimension of x that dimension `d` of y is: the same extent and stride. */
static bool same_memory(const struct tensor *x, const struct tensor *y, int from[DIMS])
{
    bool used[DIMS] = {false};
    for (int d = 0; d < DIMS; d++) {
        from[d] = -1;
        for (int e = 0; e < DIMS && from[d] < 0; e++)
            if (!used[e] && x->extent[e] == y->extent[d] && x->stride[e] == y->stride[d])
                from[d] = e;
        if (from[d] < 0) return false;
        used[from[d]] = true;
    }
    return true;
}

static void run_reshape(struct run *r, const struct descriptor *op)
{
    const struct tensor *x = input(r, op, CUDNN_ATTR_OPERATION_RESHAPE_XDESC);
    struct tensor *y = tensor_of(r, op, CUDNN_ATTR_OPERATION_RESHAPE_YDESC);
    int from[DIMS];
    if (!r->status && !same_memory(x, y, from)) fail(r, CUDNN_STATUS_NOT_SUPPORTED);
    for (int64_t i = 0; !r->status && i < elements(y); i++) {
        int64_t to[DIMS], index[DIMS];
        unravel(y, i, to);
        for (int d = 0; d < DIMS; d++) index[from[d]] = to[d];
        put(y, i, at(x, index, x->extent));
    }
}

static int64_t integer(struct run *r, const struct descriptor *op, cudnnBackendAttributeName_t name)
{
    const struct tensor *t = tensor_of(r, op, name);
    int64_t value = 0;
    if (!t || !t->by_value || t->type != CUDNN_DATA_INT64)
        fail(r, CUDNN_STATUS_NOT_SUPPORTED);
    else
        memcpy(&value, t->data, sizeof value);
    return value;
}

/* By the reference's own rule, so that the two can be compared; cuDNN has another. */
static void run_random(struct run *r, const struct descriptor *op)
{
    const struct descriptor *p = descriptor_link(op, CUDNN_ATTR_OPERATION_RNG_DESC);
    const struct attribute *chance = descriptor_find(p, CUDNN_ATTR_RNG_BERNOULLI_DIST_PROBABILITY);
    int64_t seed = integer(r, op, CUDNN_ATTR_OPERATION_RNG_SEED);
    int64_t first = integer(r, op, CUDNN_ATTR_OPERATION_RNG_OFFSET_DESC);
    struct tensor *y = tensor_of(r, op, CUDNN_ATTR_OPERATION_RNG_YDESC);
    if (!chance ||
        descriptor_number(p, CUDNN_ATTR_RNG_DISTRIBUTION, -1) != CUDNN_RNG_DISTRIBUTION_BERNOULLI)
        fail(r, CUDNN_STATUS_NOT_SUPPORTED);
    for (int64_t i = 0; !r->status && i < elements(y); i++) {
        int64_t keys = y->extent[DIMS - 1], row = (first + i) / keys, key = (first + i) % keys;
        int limit = plim_dropout_limit(1 - *(const double *)chance->values);
        put(y, i, plim_dropout_byte((uint64_t)seed, row, keys, key) <= limit);
    }
}

static void run_operation(struct run *r, const struct descriptor *op)
{
    switch (op->type) {
    case CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR:
        run_pointwise(r, op);
        break;
    case CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR:
        run_matmul(r, op);
        break;
    case CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR:
        run_reduction(r, op);
        break;
    case CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR:
        run_reshape(r, op);
        break;
    case CUDNN_BACKEND_OPERATION_RNG_DESCRIPTOR:
        run_random(r, op);
        break;
    default:
        fail(r, CUDNN_STATUS_NOT_SUPPORTED);
    }
}

cudnnStatus_t graph_run(const struct descriptor *graph, const struct descriptor *pack)
{
    struct run *r = calloc(1, sizeof *r);
    if (!r) return CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED;
    r->pack = pack;
    const struct attribute *ops = descriptor_find(graph, CUDNN_ATTR_OPERATIONGRAPH_OPS);
    for (int64_t i = 0; i < ops->count && !r->status; i++)
        run_operation(r, ((struct descriptor **)ops->values)[i]);
    for (int i = 0; i < r->tensors; i++) free(r->tensor[i].values);
    cudnnStatus_t status = r->status;
    gpu_time_passes(gpu_launch_seconds(r->work));
    free(r);
    return status;
}
