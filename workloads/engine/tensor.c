/* Tensors: creation, aliases, release, and the strides that determine when PyTorch copies. */
#include "tensor.h"
#include "engine.h"
#include <string.h>

static struct tensor *tensor_on(struct engine *e, struct storage *s)
{
    struct tensor *x = pool_allocate(&e->tensors, sizeof *x);
    if (!x) {
        engine_fail(e, PLIM_NOMEM);
        storage_put(e, s);
        return e->poison;
    }
    x->storage = s;
    x->grad_fn = x->accumulator = NULL;
    x->grad = x->cast = NULL;
    x->refs = 1;
    x->layer = x->param_index = 0;
    x->output_number = 0;
    x->floating = true;
    x->requires_grad = x->is_view = x->is_parameter = x->odd_name = x->is_codes = false;
    return x;
}

static void contiguous_strides(struct plim_array *a)
{
    int64_t step = 1;
    for (int i = a->ndim - 1; i >= 0; i--) {
        a->stride[i] = step;
        step *= a->shape[i] > 0 ? a->shape[i] : 1;
    }
}

static struct tensor *tensor_with(struct engine *e, enum plim_dtype dtype, int ndim,
                                  const int64_t *shape, const int64_t *stride)
{
    if (e->halted) return e->poison;
    int64_t count = 1;
    for (int i = 0; i < ndim; i++) count *= shape[i];
    struct storage *s = storage_get(e, e->meta ? 0 : count * plim_dtype_size(dtype));
    if (!s) return e->poison;
    struct tensor *x = tensor_on(e, s);
    if (x == e->poison) return x;
    x->a.data = s->address;
    x->a.ndim = (uint8_t)ndim;
    x->a.dtype = (uint8_t)dtype;
    if (ndim) memcpy(x->a.shape, shape, sizeof *shape * (size_t)ndim);
    if (stride && ndim)
        memcpy(x->a.stride, stride, sizeof *stride * (size_t)ndim);
    else
        contiguous_strides(&x->a);
    return x;
}

struct tensor *tensor_empty(struct engine *e, enum plim_dtype dtype, int ndim, const int64_t *shape)
{
    return tensor_with(e, dtype, ndim, shape, NULL);
}

struct tensor *tensor_empty_strided(struct engine *e, enum plim_dtype dtype, int ndim,
                                    const int64_t *shape, const int64_t *stride)
{
    return tensor_with(e, dtype, ndim, shape, stride);
}

struct tensor *tensor_empty_like(struct engine *e, const struct tensor *x, enum plim_dtype dtype)
{
    if (e->halted) return e->poison;
    bool keep = !tensor_is_contiguous(x) && tensor_is_dense(x);
    return tensor_with(e, dtype, x->a.ndim, x->a.shape, keep ? x->a.stride : NULL);
}

struct tensor *tensor_empty_bytes(struct engine *e, int64_t bytes)
{
    return tensor_with(e, PLIM_U8, 1, &bytes, NULL);
}

struct tensor *tensor_alias(struct engine *e, const struct tensor *x, int ndim,
                            const int64_t *shape, const int64_t *stride, int64_t offset)
{
    if (e->halted) return e->poison;
    x->storage->refs++;
    struct tensor *y = tensor_on(e, x->storage);
    if (y == e->poison) return y;
    y->a.data = x->a.data + (uint64_t)(offset * plim_dtype_size(x->a.dtype));
    y->a.ndim = (uint8_t)ndim;
    y->a.dtype = x->a.dtype;
    memcpy(y->a.shape, shape, sizeof *shape * (size_t)ndim);
    memcpy(y->a.stride, stride, sizeof *stride * (size_t)ndim);
    y->is_view = true;
    return y;
}

struct tensor *tensor_detach(struct engine *e, const struct tensor *x)
{
    return tensor_alias(e, x, x->a.ndim, x->a.shape, x->a.stride, 0);
}

void tensor_free(struct engine *e, struct tensor *x)
{
    struct node *grad_fn = x->grad_fn, *accumulator = x->is_parameter ? x->accumulator : NULL;
    struct tensor *grad = x->grad, *cast = x->cast;
    storage_put(e, x->storage);
    pool_free(&e->tensors, x);
    node_drop(e, grad_fn);
    node_drop(e, accumulator);
    tensor_drop(e, grad);
    tensor_drop(e, cast);
}

void tensor_set_data(struct engine *e, struct tensor *x, struct tensor *data)
{
    struct storage *old = x->storage;
    x->a = data->a;
    x->storage = data->storage;
    data->storage = old;
    if (x->accumulator) x->accumulator->output[0].dtype = x->a.dtype; /* VariableHooks::set_data */
    tensor_drop(e, data);
}

void tensor_classify(struct engine *e, struct tensor *x, enum plim_memory_class memory_class)
{
    if (x != e->poison) storage_classify(e, x->storage, memory_class);
}

bool tensor_is_contiguous(const struct tensor *x)
{
    int64_t step = 1;
    for (int i = x->a.ndim - 1; i >= 0; i--) {
        if (x->a.shape[i] == 1) continue;
        if (x->a.stride[i] != step) return false;
        step *= x->a.shape[i];
    }
    return true;
}

bool tensor_is_dense(const struct tensor *x)
{
    /* Visits the dimensions in order of increasing stride; each must start where the last one ended. */
    bool taken[PLIM_MAX_DIMS] = {false};
    int64_t step = 1;
    for (int n = 0; n < x->a.ndim; n++) {
        int next = -1;
        for (int i = 0; i < x->a.ndim; i++) {
            if (taken[i]) continue;
            if (x->a.shape[i] == 1) {
                next = i;
                break;
            }
            if (x->a.stride[i] == step) next = i;
        }
        if (next < 0) return false;
        taken[next] = true;
        if (x->a.shape[next] != 1) step *= x->a.shape[next];
    }
    return true;
}

bool tensor_view_strides(const struct tensor *x, int ndim, const int64_t *shape, int64_t *stride)
{
    int view = ndim - 1;
    int64_t base = x->a.ndim ? x->a.stride[x->a.ndim - 1] : 1, run = 1, seen = 1;
    if (x->a.ndim == 0) {
        for (int i = 0; i < ndim; i++) stride[i] = 1;
        return true;
    }
    for (int i = x->a.ndim - 1; i >= 0; i--) {
        run *= x->a.shape[i];
        /* the end of a run of dimensions that are adjacent in memory */
        if (i != 0 && (x->a.shape[i - 1] == 1 || x->a.stride[i - 1] == run * base)) continue;
        while (view >= 0 && (seen < run || shape[view] == 1)) {
            stride[view] = seen * base;
            seen *= shape[view];
            view--;
        }
        if (seen != run) return false;
        if (i > 0) {
            base = x->a.stride[i - 1];
            run = seen = 1;
        }
    }
    return view == -1;
}
