/* Rows of a table by index, and the table's gradient. */
#include "kernels/args_embedding.h"
#include "planner.h"
#include "walk.h"

/* Rows and their indices as (.., width) and (.., 1). Where the dimensions differ, but not their
 * product, both are one row of tokens; then both have to be contiguous. */
static enum plim_status align_tokens(struct plim_array *rows, struct plim_array *indices)
{
    int64_t tokens = plim_array_elements(indices), width = rows->shape[rows->ndim - 1];
    bool same = indices->ndim + 1 == rows->ndim;
    for (int d = 0; same && d < indices->ndim; d++) same = indices->shape[d] == rows->shape[d];
    if (!same) {
        if (plim_array_elements(rows) != tokens * width) return PLIM_INVALID;
        if (!plim_cuda_plan_is_contiguous(rows) || !plim_cuda_plan_is_contiguous(indices))
            return PLIM_UNSUPPORTED;
        rows->ndim = 2, indices->ndim = 1;
        rows->shape[0] = indices->shape[0] = tokens;
        rows->shape[1] = rows->stride[0] = width;
        rows->stride[1] = indices->stride[0] = 1;
    }
    indices->shape[indices->ndim] = 1;
    indices->stride[indices->ndim] = 0;
    indices->ndim++;
    return PLIM_OK;
}

static void put_table(struct plim_embedding_args *args, const struct plim_array *table)
{
    int64_t bytes = plim_dtype_size((enum plim_dtype)table->dtype);
    args->table = table->data;
    args->table_dtype = table->dtype;
    args->rows = (uint64_t)table->shape[0];
    args->columns = (uint64_t)table->shape[1];
    for (int d = 0; d < 2; d++) args->table_stride[d] = table->stride[d] * bytes;
}

/* Whether packs of a row of the table are contiguous and aligned. */
static bool table_is_vector(const struct plim_embedding_args *args)
{
    int bytes = plim_dtype_size((enum plim_dtype)args->table_dtype);
    return args->table_stride[1] == bytes && args->columns % PLIM_WALK_VECTOR == 0 &&
           plim_address_is_aligned(args->table, bytes, PLIM_WALK_VECTOR) &&
           plim_address_is_aligned((uint64_t)args->table_stride[0], bytes, PLIM_WALK_VECTOR);
}

static enum plim_status plan_gather(const struct plim_cuda_plan *plan, const struct plim_op *op)
{
    const struct plim_array *operands[] = {op->out[0], op->in[1], op->in[2]};
    struct plim_embedding_args args = {.rows = 0};
    enum plim_status st = plim_walk_init(&args.walk, operands, 3, 0);
    if (st != PLIM_OK || args.walk.elements == 0) return st;
    put_table(&args, op->in[0]);
    bool integers = plim_cuda_plan_is_integer(op->out[0]) && plim_cuda_plan_is_integer(op->in[0]);
    int64_t blocks =
        plim_cuda_plan_blocks(plan, (int64_t)args.walk.elements, PLIM_EMBEDDING_THREADS);
    return plim_cuda_plan_launch(plan, integers ? "gather_integer" : "gather_float", blocks,
                                 PLIM_EMBEDDING_THREADS, &args, sizeof args);
}

enum plim_status plim_cuda_plan_embedding(const struct plim_cuda_plan *plan,
                                          const struct plim_op *op)
{
    static const char *const kernels[2][2] = {
        {"embedding_float_scalar", "embedding_float_vector"},
        {"embedding_integer_scalar", "embedding_integer_vector"}};
    const struct plim_array *table = op->in[0];
    if (table->ndim != 2 || op->out[0]->ndim < 1) return PLIM_INVALID;
    if (op->n_in > 2 && op->in[2]) return plan_gather(plan, op);
    if (op->out[0]->shape[op->out[0]->ndim - 1] != table->shape[1]) return PLIM_INVALID;
    struct plim_array out = *op->out[0], indices = *op->in[1];
    const struct plim_array *operands[] = {&out, &indices};
    struct plim_embedding_args args = {.rows = 0};
    enum plim_status st = align_tokens(&out, &indices);
    if (st == PLIM_OK) st = plim_walk_init(&args.walk, operands, 2, PLIM_WALK_KEEP_INNER);
    if (st != PLIM_OK || args.walk.elements == 0) return st;
    put_table(&args, table);
    bool vector = plim_walk_is_vector(&args.walk) && table_is_vector(&args);
    bool integers = plim_cuda_plan_is_integer(&out) && plim_cuda_plan_is_integer(table);
    int64_t work = (int64_t)args.walk.elements / (vector ? PLIM_WALK_VECTOR : 1);
    return plim_cuda_plan_launch(plan, kernels[integers][vector],
                                 plim_cuda_plan_blocks(plan, work, PLIM_EMBEDDING_THREADS),
                                 PLIM_EMBEDDING_THREADS, &args, sizeof args);
}

enum plim_status plim_cuda_plan_embedding_backward(const struct plim_cuda_plan *plan,
                                                   const struct plim_op *op)
{
    const struct plim_array *table = op->out[0];
    if (table->ndim != 2 || op->in[0]->ndim < 1) return PLIM_INVALID;
    if (op->in[0]->shape[op->in[0]->ndim - 1] != table->shape[1]) return PLIM_INVALID;
    struct plim_array rows = *op->in[0], indices = *op->in[1];
    const struct plim_array *operands[] = {&rows, &indices};
    struct plim_embedding_backward_args args = {.tokens = 0};
    enum plim_status st = align_tokens(&rows, &indices);
    if (st == PLIM_OK)
        st = plim_walk_init(&args.e.walk, operands, 2, PLIM_WALK_ORDERED | PLIM_WALK_KEEP_INNER);
    if (st != PLIM_OK || args.e.walk.elements == 0) return st;
    put_table(&args.e, table);
    args.tokens = args.e.walk.elements / args.e.columns;
    bool vector = plim_walk_is_vector(&args.e.walk) && table_is_vector(&args.e);
    int64_t width = PLIM_EMBEDDING_THREADS * (vector ? PLIM_WALK_VECTOR : 1);
    int64_t blocks = plim_cuda_plan_blocks(plan, (int64_t)args.tokens * PLIM_EMBEDDING_THREADS,
                                           PLIM_EMBEDDING_THREADS);
    int64_t slabs = ((int64_t)args.e.columns + width - 1) / width;
    if (slabs > UINT16_MAX) return PLIM_UNSUPPORTED;
    struct plim_cuda_launch launch = {.kernel = vector ? "embedding_backward_vector"
                                                       : "embedding_backward_scalar",
                                      .grid = {(uint32_t)blocks, (uint32_t)slabs, 1},
                                      .block = {PLIM_EMBEDDING_THREADS, 1, 1},
                                      .args = &args,
                                      .args_bytes = sizeof args};
    return plan->emit(plan->user, &launch);
}
