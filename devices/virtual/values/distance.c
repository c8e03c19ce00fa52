/* Distances between rows (aten/src/ATen/native/cuda/DistanceKernel.cu, PyTorch 2.0 to 2.15):
 *
 *     cdist_kernel_cuda_impl<T, dists<T>::kind>(T *out, const T *a, const T *b, T p, long rows of b, long columns,
 *         long pairs, long elements of a, long elements of b)                           one block per pair
 *     pdist_kernel_cuda_impl<T, dists<T>::kind>(T *out, const T *in, long rows, long columns, T p, 2 doubles)
 *
 * Each thread of a block handles one column and the sums are reduced pairwise; the same order is used here, so that
 * floats are rounded identically. */
#include "devices/virtual/memory/heap.h"
#include "plan.h"
#include <math.h>
#include <string.h>

enum kind { DIFFERENT, SUM, SQUARES, LARGEST };
enum { IN, KIND = 0, WARP = 32, MOST_COLUMNS = 256 };

static bool read(const char *list, struct plim_plan *plan)
{
    static const struct {
        const char *name;
        enum kind kind;
    } kinds[] = {{">::zero", DIFFERENT}, {">::one", SUM}, {">::two", SQUARES}, {">::inf", LARGEST}};
    struct plim_name norm = plim_name_argument(list, 1);
    plan->types[IN] = plim_name_type(plim_name_argument(list, 0));
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (!plim_name_behind(norm, kinds[i].name)) continue;
        plan->numbers[KIND] = kinds[i].kind;
        return plan->types[IN] == PLIM_FLOAT || plan->types[IN] == PLIM_DOUBLE;
    }
    return false;
}

struct distances {
    enum plim_type type;
    enum kind kind;
    struct plim_view a, b;
    size_t columns;
};

static double join(const struct distances *d, double x, double y)
{
    return d->kind == LARGEST ? (y > x ? y : x) : plim_number_round(x + y, d->type);
}

/* Reduces the numbers of a warp into the first one. */
static void join_all(const struct distances *d, double *numbers)
{
    for (size_t offset = WARP / 2; offset; offset /= 2)
        for (size_t i = 0; i < offset; i++) numbers[i] = join(d, numbers[i], numbers[i + offset]);
}

static double part(const struct distances *d, double x, double y)
{
    double difference = plim_number_round(fabs(plim_number_round(x - y, d->type)), d->type);
    if (d->kind == DIFFERENT) return difference != 0;
    return d->kind == SQUARES ? plim_number_round(difference * difference, d->type) : difference;
}

static unsigned char between(const struct distances *d, size_t row_of_a, size_t row_of_b, double *out)
{
    double numbers[MOST_COLUMNS] = {0}, sums[WARP] = {0};
    size_t width = plim_type_bytes(d->type);
    unsigned char known = PLIM_KNOWN;
    for (size_t i = 0; i < d->columns; i++) {
        struct plim_number x, y;
        known = plim_known_both(known, plim_view_get(&d->a, (row_of_a * d->columns + i) * width, d->type, &x));
        known = plim_known_both(known, plim_view_get(&d->b, (row_of_b * d->columns + i) * width, d->type, &y));
        numbers[i] = part(d, x.f, y.f);
        if (isnan(numbers[i])) known = PLIM_UNKNOWN;
    }
    for (size_t warp = 0; warp < MOST_COLUMNS / WARP; warp++) {
        join_all(d, &numbers[warp * WARP]);
        sums[warp] = numbers[warp * WARP];
    }
    join_all(d, sums);
    *out = d->kind == SQUARES ? plim_number_round(sqrt(sums[0]), d->type) : sums[0];
    return known;
}

/* The rows of a and b in each matrix of a batch. */
struct images {
    size_t count, rows_of_a, rows_of_b;
    bool is_of_one; /* pairs of different rows of a; b is the same matrix */
};

static void fill(const struct distances *d, const struct images *x, struct plim_view *out)
{
    size_t width = plim_type_bytes(d->type), at = 0;
    for (size_t image = 0; image < x->count; image++)
        for (size_t i = 0; i < x->rows_of_a; i++)
            for (size_t j = x->is_of_one ? i + 1 : 0; j < x->rows_of_b; j++) {
                struct plim_number number = {.is_float = true};
                unsigned char known =
                    between(d, image * x->rows_of_a + i, image * x->rows_of_b + j, &number.f);
                plim_view_set(out, at++ * width, d->type, number, known);
            }
}

static bool run(struct distances *d, const struct images *x, const struct plim_launch *launch, uintptr_t from,
                uintptr_t from_b)
{
    enum { MOST = 1 << 16 };
    size_t width = plim_type_bytes(d->type), pairs = launch->grid->x, row = d->columns * width;
    uintptr_t to = plim_launch_address(launch, 0);
    struct plim_view out = {0};
    if (!plim_heap_is_device(to)) return false;
    bool works = pairs <= MOST && d->columns <= MOST_COLUMNS && x->rows_of_a <= MOST && x->rows_of_b <= MOST &&
                 plim_view_open(&d->a, from, x->count * x->rows_of_a * row) &&
                 plim_view_open(&d->b, from_b, x->count * x->rows_of_b * row) &&
                 plim_view_blank(&out, to, pairs * width);
    if (works) {
        fill(d, x, &out);
        plim_view_store(&out, launch->kernel);
    } else
        plim_launch_spoil(launch, to, pairs * width);
    plim_view_close(&d->a);
    plim_view_close(&d->b);
    plim_view_close(&out);
    return true;
}

static bool run_two(const struct plim_plan *plan, const struct plim_launch *launch)
{
    int64_t rows_of_b = plim_launch_long(launch, 4), columns = plim_launch_long(launch, 5),
            pairs = plim_launch_long(launch, 6);
    if (rows_of_b <= 0 || rows_of_b > INT32_MAX || columns <= 0 || columns > INT32_MAX || pairs <= 0 ||
        pairs % rows_of_b || launch->grid->x % pairs || plim_launch_long(launch, 7) != pairs / rows_of_b * columns ||
        plim_launch_long(launch, 8) != rows_of_b * columns)
        return false;
    struct distances d = {plan->types[IN], (enum kind)plan->numbers[KIND], {0}, {0}, (size_t)columns};
    struct images x = {launch->grid->x / (size_t)pairs, (size_t)(pairs / rows_of_b), (size_t)rows_of_b, false};
    return run(&d, &x, launch, plim_launch_address(launch, 1), plim_launch_address(launch, 2));
}

static bool run_one(const struct plim_plan *plan, const struct plim_launch *launch)
{
    int64_t rows = plim_launch_long(launch, 2), columns = plim_launch_long(launch, 3);
    uintptr_t from = plim_launch_address(launch, 1);
    if (rows <= 1 || rows > INT32_MAX || columns <= 0 || columns > INT32_MAX ||
        rows * (rows - 1) / 2 != (int64_t)launch->grid->x)
        return false;
    struct distances d = {plan->types[IN], (enum kind)plan->numbers[KIND], {0}, {0}, (size_t)columns};
    struct images x = {1, (size_t)rows, (size_t)rows, true};
    return run(&d, &x, launch, from, from);
}

const struct plim_row plim_rows_distance[] = {{"cdist_kernel_cuda_impl<", read, run_two},
                                              {"pdist_kernel_cuda_impl<", read, run_one},
                                              {0}};
