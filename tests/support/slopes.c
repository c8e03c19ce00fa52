#include "slopes.h"

#include "arrays.h"
#include "devices/host/host.h"
#include "workloads/engine/autograd.h"
#include "workloads/engine/ops.h"
#include <criterion/criterion.h>
#include <math.h>

static struct plim_device *device;
static struct plim_allocator *allocator;
static struct engine *e;

struct engine *slopes_open(void)
{
    struct plim_error err = PLIM_ERROR_INIT;
    const struct plim_allocator_config config = PLIM_ALLOCATOR_CONFIG_DEFAULT;
    cr_assert_eq(plim_host_open("", &device, &err), PLIM_OK, "%s", err.text);
    cr_assert_eq(plim_allocator_create(device, &config, &allocator, &err), PLIM_OK, "%s", err.text);
    cr_assert_eq(engine_create(device, allocator, &e, &err), PLIM_OK, "%s", err.text);
    return e;
}

void slopes_close(void)
{
    engine_destroy(&e);
    plim_allocator_destroy(&allocator);
    plim_device_close(&device);
}

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

struct tensor *variable(int ndim, const int64_t *shape, uint64_t seed)
{
    struct tensor *x = tensor_keep(tensor_empty(e, PLIM_F32, ndim, shape));
    op_random_(e, x, 1, seed);
    tensor_require_grad(e, x);
    return x;
}

struct tensor *constant(int ndim, const int64_t *shape, uint64_t seed)
{
    struct tensor *x = tensor_keep(tensor_empty(e, PLIM_F32, ndim, shape));
    op_random_(e, x, 1, seed);
    return x;
}

void expect_slopes(function *f, struct tensor *const x[2])
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
