#include "plan_rows.h"

enum {
    BLOCK_THREADS = 256,
    WARP_COLUMNS = 1024, /* rows up to this size are processed by at most a warp */
    VECTOR = 8,
    VECTOR_BYTES = 16
};

struct plim_cuda_flat_operand plim_cuda_plan_flat(const struct plim_array *a)
{
    if (!a) return (struct plim_cuda_flat_operand){0};
    return (struct plim_cuda_flat_operand){.data = a->data, .dtype = a->dtype};
}

static bool have_one_shape(int count, const struct plim_row_operand_of *operands)
{
    const struct plim_array *first = operands[0].array;
    for (int i = 1; i < count; i++) {
        const struct plim_array *a = operands[i].array;
        if (a->ndim != first->ndim) return false;
        for (int d = 0; d < a->ndim; d++)
            if (a->shape[d] != first->shape[d]) return false;
    }
    return true;
}

/* True if dimension d can be merged with the last one. */
static bool can_merge(const struct plim_cuda_rows *rows, int count,
                      const struct plim_row_operand_of *operands, int d)
{
    if (rows->outer == 0) return false;
    for (int i = 0; i < count; i++) {
        const struct plim_array *a = operands[i].array;
        if (operands[i].to->step[rows->outer - 1] != a->stride[d] * a->shape[d]) return false;
    }
    return true;
}

static void add_dimension(struct plim_cuda_rows *rows, int count,
                          const struct plim_row_operand_of *operands, int d)
{
    int64_t extent = operands[0].array->shape[d];
    rows->count *= extent;
    if (extent == 1) return;
    if (can_merge(rows, count, operands, d))
        rows->size[rows->outer - 1] *= extent;
    else
        rows->size[rows->outer++] = extent;
    for (int i = 0; i < count; i++)
        operands[i].to->step[rows->outer - 1] = operands[i].array->stride[d];
}

/* True if all operands have multiples of 16 bytes at the same columns of a row. */
static bool allow_vectors(const struct plim_cuda_rows *rows, int count,
                          const struct plim_row_operand_of *operands)
{
    for (int i = 0; i < count; i++) {
        const struct plim_cuda_row_operand *a = operands[i].to, *first = operands[0].to;
        if (a->column_step != 1 || a->data % VECTOR_BYTES) return false;
        for (uint32_t d = 0; d < rows->outer; d++)
            if ((a->step[d] - first->step[d]) % VECTOR) return false;
    }
    return true;
}

enum plim_status plim_cuda_plan_rows(struct plim_cuda_rows *rows, int count,
                                     const struct plim_row_operand_of *operands)
{
    const struct plim_array *first = operands[0].array;
    int last = first->ndim - 1;
    if (!have_one_shape(count, operands)) return PLIM_INVALID;
    *rows = (struct plim_cuda_rows){.count = 1, .columns = last < 0 ? 1 : first->shape[last]};
    for (int i = 0; i < count; i++) {
        const struct plim_array *a = operands[i].array;
        if (!plim_dtype_is_float(a->dtype)) return PLIM_UNSUPPORTED;
        *operands[i].to =
            (struct plim_cuda_row_operand){.data = a->data,
                                           .column_step = rows->columns == 1 ? 1 : a->stride[last],
                                           .dtype = a->dtype};
    }
    for (int d = 0; d < last; d++) add_dimension(rows, count, operands, d);
    if (rows->outer == 0) rows->size[rows->outer++] = 1; /* one row */
    rows->vectors = allow_vectors(rows, count, operands);
    return PLIM_OK;
}

void plim_cuda_plan_rows_beside(struct plim_cuda_rows *rows,
                                const struct plim_cuda_row_operand *operand,
                                const struct plim_array *a)
{
    if (!a) return;
    if (a->data % VECTOR_BYTES) rows->vectors = 0;
    for (uint32_t d = 0; d < rows->outer; d++)
        if (operand->step[d] % VECTOR) rows->vectors = 0;
}

/* Returns the number of threads per row: eight columns each, up to a warp; whole blocks for long rows. */
static uint32_t team_for(int64_t columns)
{
    uint32_t team = 1;
    while (team < PLIM_CUDA_PLAN_WARP && team * VECTOR < columns) team *= 2;
    if (columns > WARP_COLUMNS) team = BLOCK_THREADS;
    for (int64_t reach = 8 * WARP_COLUMNS; reach < columns && team < 1024; reach *= 4) team *= 2;
    return team;
}

enum plim_status plim_cuda_plan_rows_launch(const struct plim_cuda_plan *plan, const char *kernel,
                                            const struct plim_cuda_rows *rows, const void *args,
                                            size_t args_bytes)
{
    if (rows->count == 0 || rows->columns == 0) return PLIM_OK;
    uint32_t team = team_for(rows->columns);
    uint32_t together = team < BLOCK_THREADS ? BLOCK_THREADS / team : 1;
    int threads = (int)(team * together);
    struct plim_cuda_launch launch = {
        .kernel = kernel,
        .grid = {(uint32_t)plim_cuda_plan_blocks(plan, rows->count * team, threads), 1, 1},
        .block = {team, together, 1},
        .args = args,
        .args_bytes = args_bytes};
    return plan->emit(plan->user, &launch);
}

int64_t plim_cuda_plan_tiles(const struct plim_array *rows, int tile)
{
    enum { BATCH, HEADS, LENGTH };
    return rows->shape[BATCH] * rows->shape[HEADS] * ((rows->shape[LENGTH] + tile - 1) / tile);
}
