#include "kernels/args_foreach.h"
#include "plan_lists.h"
#include "plan_rows.h"

static enum plim_status plan_map(const struct plim_cuda_plan *plan, const char *kernel,
                                 const struct plim_tensor_lists *lists,
                                 struct plim_foreach_args *args)
{
    struct plim_list_launch launch = {0};
    while (launch.next < lists->length) {
        enum plim_status st = plim_lists_pack(lists, &launch, &args->lists);
        if (st == PLIM_OK && launch.chunks > 0)
            st = plim_cuda_plan_launch(plan, kernel, launch.chunks, PLIM_FOREACH_THREADS, args,
                                       sizeof *args);
        if (st != PLIM_OK) return st;
    }
    return PLIM_OK;
}

static int64_t all_chunks(const struct plim_tensor_lists *lists)
{
    int64_t all = 0;
    for (size_t j = 0; j < lists->length; j++) {
        int64_t elements = plim_array_elements(lists->list[0][j]);
        all += (elements + PLIM_FOREACH_CHUNK - 1) / PLIM_FOREACH_CHUNK;
    }
    return all;
}

static enum plim_status plan_norm(const struct plim_cuda_plan *plan, const struct plim_op *op)
{
    const struct plim_tensor_lists lists = {
        .list = {op->lists[1], op->lists[0]}, .count = 2, .alike = 1, .length = op->list_length};
    const struct plim_array *partial = op->n_scratch > 0 ? op->scratch[0] : NULL;
    int64_t partial_bytes = all_chunks(&lists) * (int64_t)sizeof(float);
    if (partial_bytes > 0 && (!partial || plim_array_bytes(partial) < partial_bytes))
        return PLIM_INVALID;
    struct plim_foreach_norm_args args = {.partial = partial ? partial->data : 0};
    struct plim_list_launch launch = {0};
    while (launch.next < lists.length) {
        enum plim_status st = plim_lists_pack(&lists, &launch, &args.lists);
        if (st == PLIM_OK && launch.chunks > 0)
            st = plim_cuda_plan_launch(plan, "foreach_norm_chunks", launch.chunks,
                                       PLIM_FOREACH_THREADS, &args, sizeof args);
        if (st == PLIM_OK)
            st = plim_cuda_plan_launch(plan, "foreach_norm_finish", args.lists.tensors,
                                       PLIM_FOREACH_THREADS, &args, sizeof args);
        if (st != PLIM_OK) return st;
        args.first += launch.chunks;
    }
    return PLIM_OK;
}

enum plim_status plim_cuda_plan_foreach(const struct plim_cuda_plan *plan, const struct plim_op *op)
{
    if (!plim_foreach_has_its_lists(op)) return PLIM_INVALID;
    if (op->foreach == PLIM_FOREACH_NORM) return plan_norm(plan, op);

    bool unscale = op->foreach == PLIM_FOREACH_UNSCALE;
    const struct plim_array *factor = unscale || op->foreach == PLIM_FOREACH_MUL ? op->in[0] : NULL;
    if (unscale && (!factor || !op->out[0])) return PLIM_INVALID;
    if (factor && !plim_dtype_is_float(factor->dtype)) return PLIM_UNSUPPORTED;
    if (unscale && !plim_dtype_is_float(op->out[0]->dtype)) return PLIM_UNSUPPORTED;
    struct plim_tensor_lists lists = {
        .count = op->n_lists, .alike = op->n_lists, .length = op->list_length};
    for (int i = 0; i < op->n_lists; i++) lists.list[i] = op->lists[i];
    struct plim_foreach_args args = {.factor = plim_cuda_plan_flat(factor),
                                     .found = plim_cuda_plan_flat(unscale ? op->out[0] : NULL),
                                     .function = op->foreach,
                                     .alpha = (float)op->alpha};
    return plan_map(plan, unscale ? "foreach_unscale" : "foreach_map", &lists, &args);
}
