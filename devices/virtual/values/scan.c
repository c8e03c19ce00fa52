/* Cumulative sums, products, maxima and minima (aten/src/ATen/native/cuda/ScanUtils.cuh, PyTorch 2.0 to 2.15), and
 * CUB's scan of one row.
 *
 *     tensor_kernel_scan_innermost_dim<T, op>(T *out, const T *in, u32 rows, u32 length, u32, T initial, op)
 *     tensor_kernel_scan_outer_dim<T, index, op>(T *out, const T *in, u32 outer, u32 inner, u32 length, T, op)
 *     tensor_kernel_scan_innermost_dim_with_indices<T, op>(const T *in, T *out, long *indices, int rows, int length,
 *     ...)
 *     DeviceScanKernel<policy, const T *, T *, ...>(const T *in, T *out, state, int, op, initial, count) */
#include "devices/virtual/memory/heap.h"
#include "plan.h"
#include <string.h>

enum operation { PLUS, TIMES, LARGEST, SMALLEST };
enum { OPERATION, EXCLUSIVE };

static bool read_operation(struct plim_name name, struct plim_plan *plan)
{
    static const struct {
        const char *name;
        enum operation operation;
    } rows[] = {{"plus<", PLUS},
                {"multiplies<", TIMES},
                {"greater_equal<", LARGEST},
                {"less_equal<", SMALLEST}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (plim_name_begins(name, rows[i].name)) {
            plan->numbers[OPERATION] = rows[i].operation;
            return plan->types[0] != PLIM_NO_TYPE;
        }
    return false;
}

static bool read_innermost(const char *list, struct plim_plan *plan)
{
    plan->types[0] = plan->types[1] = plim_name_type(plim_name_argument(list, 0));
    return read_operation(plim_name_argument(list, 1), plan);
}

static bool read_outer(const char *list, struct plim_plan *plan)
{
    plan->types[0] = plan->types[1] = plim_name_type(plim_name_argument(list, 0));
    return read_operation(plim_name_argument(list, 2), plan);
}

/* A scan with an initial value is exclusive; PyTorch's start with 0. Masks are read through CountMaskOp. */
static bool read_cub(const char *list, struct plim_plan *plan)
{
    struct plim_name from = plim_name_argument(list, 1), to = plim_name_argument(list, 2),
                     op = plim_name_argument(list, 4);
    const char *mask = plim_name_behind(from, "CountMaskOp, ");
    plan->types[0] = plim_name_type(mask ? plim_name_argument(mask, 0) : from);
    plan->types[1] = plim_name_type(to);
    plan->numbers[OPERATION] = PLUS;
    plan->numbers[EXCLUSIVE] = !plim_name_behind(plim_name_argument(list, 5), "NullType");
    return plan->types[0] != PLIM_NO_TYPE && plan->types[1] != PLIM_NO_TYPE &&
           plim_name_behind(from, "*") &&
           (plim_name_behind(op, "plus<") || plim_name_begins(op, "SumOp<"));
}

/* `rows` rows of `length` elements. The elements of a row are `inner` apart: `inner` rows are interleaved. */
struct scan {
    uintptr_t from, to, indices;
    size_t rows, length, inner;
};

static struct plim_number combine(enum operation operation, struct plim_number a,
                                  struct plim_number b, bool *second)
{
    int order = plim_number_compare(b, a);
    *second = operation == LARGEST ? order >= 0 : order <= 0;
    switch (operation) {
    case PLUS:
        return (struct plim_number){(int64_t)((uint64_t)a.i + (uint64_t)b.i), a.f + b.f,
                                    a.is_float};
    case TIMES:
        return (struct plim_number){(int64_t)((uint64_t)a.i * (uint64_t)b.i), a.f * b.f,
                                    a.is_float};
    default:
        return *second ? b : a;
    }
}

static void row(const struct plim_plan *plan, const struct scan *s, size_t first,
                struct plim_view *in, struct plim_view *out, struct plim_view *indices)
{
    enum plim_type type = plan->types[0];
    size_t width = plim_type_bytes(type), out_width = plim_type_bytes(plan->types[1]);
    struct plim_number total, x, index = {0};
    unsigned char known = 0, known_before = PLIM_KNOWN;
    struct plim_number before = {.is_float = plim_type_is_float(type)};
    for (size_t i = 0; i < s->length; i++) {
        size_t at = first + i * s->inner;
        bool second = true;
        unsigned char its = plim_view_get(in, at * width, type, &x);
        total = i ? combine((enum operation)plan->numbers[OPERATION], total, x, &second) : x;
        known = i ? plim_known_both(known, its) : its;
        if (total.is_float)
            total.f = plim_number_round(
                total.f, type == PLIM_HALF || type == PLIM_BFLOAT16 ? PLIM_FLOAT : type);
        if (second) index.i = (int64_t)i;
        if (plan->numbers[EXCLUSIVE])
            plim_view_set(out, at * out_width, plan->types[1], before, known_before);
        else
            plim_view_set(out, at * out_width, plan->types[1], total, known);
        before = total;
        known_before = known;
        if (indices) plim_view_set(indices, at * 8, PLIM_INT64, index, known);
    }
}

static bool run(const struct plim_plan *plan, const struct plim_launch *launch,
                const struct scan *s)
{
    size_t count = s->rows * s->length, width = plim_type_bytes(plan->types[0]);
    size_t bytes = count * plim_type_bytes(plan->types[1]);
    struct plim_view in = {0}, out = {0}, indices = {0};
    if (!count || !plim_heap_is_device(s->from) || !plim_heap_is_device(s->to)) return false;
    bool works =
        count <= PLIM_MOST_ELEMENTS && plim_shadow_survey(s->from, count * width) & PLIM_KNOWN &&
        plim_view_open(&in, s->from, count * width) && plim_view_blank(&out, s->to, bytes) &&
        (!s->indices || plim_view_blank(&indices, s->indices, count * 8));
    for (size_t r = 0; works && r < s->rows; r++)
        row(plan, s, r / s->inner * s->inner * s->length + r % s->inner, &in, &out,
            s->indices ? &indices : NULL);
    if (works)
        plim_view_store(&out, launch->kernel);
    else
        plim_launch_spoil(launch, s->to, bytes);
    if (works && s->indices)
        plim_view_store(&indices, launch->kernel);
    else if (s->indices)
        plim_launch_spoil(launch, s->indices, count * 8);
    plim_view_close(&in);
    plim_view_close(&out);
    plim_view_close(&indices);
    return true;
}

static bool run_innermost(const struct plim_plan *plan, const struct plim_launch *l)
{
    return run(plan, l,
               &(struct scan){plim_launch_address(l, 1), plim_launch_address(l, 0), 0,
                              (uint32_t)plim_launch_int(l, 2), (uint32_t)plim_launch_int(l, 3), 1});
}

static bool run_outer(const struct plim_plan *plan, const struct plim_launch *l)
{
    size_t outer = (uint32_t)plim_launch_int(l, 2), inner = (uint32_t)plim_launch_int(l, 3);
    return run(plan, l,
               &(struct scan){plim_launch_address(l, 1), plim_launch_address(l, 0), 0,
                              outer * inner, (uint32_t)plim_launch_int(l, 4), inner});
}

static bool run_with_indices(const struct plim_plan *plan, const struct plim_launch *l)
{
    return run(plan, l,
               &(struct scan){plim_launch_address(l, 0), plim_launch_address(l, 1),
                              plim_launch_address(l, 2), (uint32_t)plim_launch_int(l, 3),
                              (uint32_t)plim_launch_int(l, 4), 1});
}

static bool run_outer_with_indices(const struct plim_plan *plan, const struct plim_launch *l)
{
    size_t outer = (uint32_t)plim_launch_int(l, 3), inner = (uint32_t)plim_launch_int(l, 4);
    return run(plan, l,
               &(struct scan){plim_launch_address(l, 0), plim_launch_address(l, 1),
                              plim_launch_address(l, 2), outer * inner,
                              (uint32_t)plim_launch_int(l, 5), inner});
}

static bool run_cub(const struct plim_plan *plan, const struct plim_launch *l)
{
    return run(plan, l,
               &(struct scan){plim_launch_address(l, 0), plim_launch_address(l, 1), 0, 1,
                              (uint32_t)plim_launch_int(l, 6), 1});
}

const struct plim_row plim_rows_scan[] = {
    {"tensor_kernel_scan_innermost_dim<", read_innermost, run_innermost},
    {"tensor_kernel_scan_outer_dim<", read_outer, run_outer},
    {"tensor_kernel_scan_innermost_dim_with_indices<", read_innermost, run_with_indices},
    {"tensor_kernel_scan_outer_dim_with_indices<", read_innermost, run_outer_with_indices},
    {"DeviceScanKernel<", read_cub, run_cub},
    {0}};
