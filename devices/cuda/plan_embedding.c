/* Rows of a table by index, and the table's gradient. */
#include "kernels/args_embedding.h"
#include "planner.h"
#include "walk.h"

/* Views rows and their indices as (.., width) and (.., 1). If the dimensions differ, but not their product, both become
 * one row of tokens, for which they have to be contiguous. */
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

static void set_table(struct plim_embedding_args *args, const struct plim_array *table)
{
    int64_t bytes = plim_dtype_size((enum plim_dtype)table->dtype);
    args->table = table->data;
    args->table_dtype = table->dtype;
    args->rows = (uint64_t)table->shape[0];
    args->columns = (uint64_t)table->shape[1];
    for (int d = 0; d < 2; d++) args->table_stride[d] = table->stride[d] * bytes;
}

/* True if packs of a row of the table are contiguous and aligned. */
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
    set_table(&args, op->in[0]);
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
    set_table(&args, table);
    bool vector = plim_walk_is_vector(&args.walk) && table_is_vector(&args);
    bool integers = plim_cuda_plan_is_integer(&out) && plim_cuda_plan_is_integer(table);
    int64_t work = (int64_t)args.walk.elements / (vector ? PLIM_WALK_VECTOR : 1);
    return plim_cuda_plan_launch(plan, kernels[integers][vector],
                                 plim_cuda_plan_blocks(plan, work, PLIM_EMBEDDING_THREADS),
                                 PLIM_EMBEDDING_THREADS, &args, sizeof args);
}

/* --- the gradient ----------------------------------------------------------------------------- */

/* Launches of one gradient; each assigns the columns of a slab to threads, and loops over the rest. */
struct gradient {
    const struct plim_cuda_plan *plan;
    struct plim_embedding_sorted_args args;
    bool vector;
    int64_t slabs;
};

static int64_t ceil_div(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

/* Launches one block per unit, or as many as fill the GPU, times the slabs. */
static enum plim_status launch(const struct gradient *g, const char *kernel, int64_t units,
                               int64_t slabs, size_t args_bytes)
{
    int64_t blocks =
        plim_cuda_plan_blocks(g->plan, units * PLIM_EMBEDDING_THREADS, PLIM_EMBEDDING_THREADS);
    const struct plim_cuda_launch launched = {.kernel = kernel,
                                              .grid = {(uint32_t)blocks, (uint32_t)slabs, 1},
                                              .block = {PLIM_EMBEDDING_THREADS, 1, 1},
                                              .args = &g->args,
                                              .args_bytes = args_bytes};
    return g->plan->emit(g->plan->user, &launched);
}

/* Takes a block of the scratch that is large enough and not in use; 0 if there is none. */
static uint64_t allocate_scratch(const struct plim_op *op, unsigned *taken, int64_t bytes)
{
    for (unsigned i = 0; i < op->n_scratch; i++) {
        const struct plim_array *room = op->scratch[i];
        if (*taken >> i & 1 || !room || room->data % 16 != 0 || plim_array_bytes(room) < bytes)
            continue;
        *taken |= 1u << i;
        return room->data;
    }
    return 0;
}

/* If PyTorch sorts, the scratch has room for sorting. */
static bool find_room(const struct plim_op *op, struct plim_embedding_sorted_args *args,
                      uint64_t pairs[2])
{
    unsigned taken = 0;
    int64_t tokens = (int64_t)args->b.tokens, chunks = ceil_div(tokens, PLIM_EMBEDDING_CHUNK);
    if (tokens > UINT32_MAX || args->b.e.rows >= UINT32_MAX) return false;
    args->tiles = (uint32_t)ceil_div(tokens, PLIM_EMBEDDING_TILE);
    for (int i = 0; i < 2; i++) pairs[i] = allocate_scratch(op, &taken, tokens * (int64_t)sizeof(uint64_t));
    args->counts =
        allocate_scratch(op, &taken, (int64_t)(args->tiles * PLIM_EMBEDDING_DIGITS * sizeof(uint32_t)));
    args->partials = allocate_scratch(op, &taken, chunks * 2 * (int64_t)(args->b.e.columns * sizeof(float)));
    return pairs[0] && pairs[1] && args->counts && args->partials;
}

static enum plim_status sort_and_sum(struct gradient *g, const uint64_t pairs[2])
{
    struct plim_embedding_sorted_args *args = &g->args;
    enum plim_status st = PLIM_OK;
    int pass = 0;
    do {
        args->shift = (uint32_t)pass * PLIM_EMBEDDING_DIGIT_BITS;
        args->from = pass ? args->to : 0;
        args->to = pairs[pass % 2];
        st = launch(g, "embedding_sort_count", args->tiles, 1, sizeof *args);
        if (!st) st = launch(g, "embedding_sort_scan", 1, 1, sizeof *args);
        if (!st) st = launch(g, "embedding_sort_place", args->tiles, 1, sizeof *args);
        pass++;
    } while (!st && args->b.e.rows >> (pass * PLIM_EMBEDDING_DIGIT_BITS));
    args->from = args->to;
    int64_t chunks = ceil_div((int64_t)args->b.tokens, PLIM_EMBEDDING_CHUNK);
    if (!st)
        st = launch(g, g->vector ? "embedding_sum_vector" : "embedding_sum_scalar", chunks,
                    g->slabs, sizeof *args);
    return st ? st
              : launch(g, g->vector ? "embedding_sum_long_vector" : "embedding_sum_long_scalar",
                       chunks, g->slabs, sizeof *args);
}

enum plim_status plim_cuda_plan_embedding_backward(const struct plim_cuda_plan *plan,
                                                   const struct plim_op *op)
{
    const struct plim_array *table = op->out[0];
    if (table->ndim != 2 || op->in[0]->ndim < 1) return PLIM_INVALID;
    if (op->in[0]->shape[op->in[0]->ndim - 1] != table->shape[1]) return PLIM_INVALID;
    struct plim_array rows = *op->in[0], indices = *op->in[1];
    const struct plim_array *operands[] = {&rows, &indices};
    struct gradient g = {.plan = plan};
    struct plim_embedding_backward_args *args = &g.args.b;
    enum plim_status st = align_tokens(&rows, &indices);
    if (st == PLIM_OK)
        st = plim_walk_init(&args->e.walk, operands, 2, PLIM_WALK_ORDERED | PLIM_WALK_KEEP_INNER);
    if (st != PLIM_OK || args->e.walk.elements == 0) return st;
    set_table(&args->e, table);
    args->tokens = args->e.walk.elements / args->e.columns;
    g.vector = plim_walk_is_vector(&args->e.walk) && table_is_vector(&args->e);
    g.slabs = ceil_div((int64_t)args->e.columns,
                       PLIM_EMBEDDING_THREADS * (g.vector ? PLIM_WALK_VECTOR : 1));
    if (g.slabs > UINT16_MAX) return PLIM_UNSUPPORTED;
    uint64_t pairs[2];
    if (find_room(op, &g.args, pairs)) return sort_and_sum(&g, pairs);
    return launch(&g, g.vector ? "embedding_backward_vector" : "embedding_backward_scalar",
                  (int64_t)args->tokens, g.slabs, sizeof *args);
}
