/* torchao's AdamW with moments of 4 and 8 bits. */
#include "kernels/args_torchao.h"
#include "plan_adam.h"
#include "plan_rows.h"

enum { MOMENTS = 2, THREADS = PLIM_TORCHAO_THREADS };
enum { NIBBLES = PLIM_TORCHAO_NIBBLES, CODES = PLIM_TORCHAO_CODES_MOST };

/* Stores the address of a contiguous array of this type and number of elements. */
static enum plim_status set_address(const struct plim_array *a, enum plim_dtype dtype, int64_t elements, uint64_t *to)
{
    *to = a->data;
    if (plim_array_elements(a) != elements) return PLIM_INVALID;
    return a->dtype == dtype && plim_cuda_plan_is_contiguous(a) ? PLIM_OK : PLIM_UNSUPPORTED;
}

/* The same for any floating-point type. */
static enum plim_status set_floats(const struct plim_array *a, int64_t elements, struct plim_cuda_flat_operand *to)
{
    *to = plim_cuda_plan_flat(a);
    if (plim_array_elements(a) != elements) return PLIM_INVALID;
    return plim_dtype_is_float(a->dtype) && plim_cuda_plan_is_contiguous(a) ? PLIM_OK : PLIM_UNSUPPORTED;
}

/* in: gradient, two of codes and of scales; two books */
static enum plim_status set_state(const struct plim_op *op, const struct plim_array *const *in,
                                  const struct plim_array *const *books, struct plim_torchao_args *args)
{
    if (!op->adam || op->adam->step < 1 || op->block < 1) return PLIM_INVALID;
    int64_t elements = plim_array_elements(in[0]), size = plim_array_elements(books[0]);
    *args = (struct plim_torchao_args){.elements = elements,
                                       .block = plim_divider_of((uint64_t)op->block),
                                       .part = op->block,
                                       .book_size = (uint32_t)size,
                                       .adam = plim_cuda_plan_adam(op->adam)};
    if ((size != NIBBLES && size != CODES) || elements % op->block || elements % 2) return PLIM_INVALID;
    enum plim_status st = set_floats(in[0], elements, &args->gradient);
    for (int k = 0; k < MOMENTS && st == PLIM_OK; k++) {
        struct plim_torchao_moment *m = &args->moment[k];
        st = set_address(in[1 + k], PLIM_U8, size == NIBBLES ? elements / 2 : elements, &m->codes);
        if (st == PLIM_OK) st = set_address(in[1 + MOMENTS + k], PLIM_F32, elements / op->block, &m->scales);
        if (st == PLIM_OK) st = set_address(books[k], PLIM_F32, size, &m->book);
    }
    return st;
}

static enum plim_status launch(const struct plim_cuda_plan *plan, const char *kernel, int64_t threads,
                               const struct plim_torchao_args *args)
{
    if (args->elements == 0) return PLIM_OK;
    return plim_cuda_plan_launch(plan, kernel, plim_cuda_plan_blocks(plan, threads, THREADS), THREADS, args,
                                 sizeof *args);
}

enum plim_status plim_cuda_plan_torchao_scales(const struct plim_cuda_plan *plan, const struct plim_op *op)
{
    struct plim_torchao_args args;
    if (!plim_op_has(op, MOMENTS, 7) && !plim_op_has(op, 2 * MOMENTS, 7)) return PLIM_INVALID;
    enum plim_status st = set_state(op, op->in, op->in + 5, &args);
    if (st != PLIM_OK) return st;
    bool eight = args.book_size == CODES;
    int64_t parts = plim_array_elements(op->out[0]);
    if (eight != (op->n_out > MOMENTS) || (args.elements > 0) != (parts > 0)) return PLIM_INVALID;
    if (args.elements == 0) return PLIM_OK;
    args.part = args.elements / parts;
    if (args.elements % parts || op->block % args.part || (eight && args.part != op->block)) return PLIM_INVALID;
    for (int k = 0; k < MOMENTS && st == PLIM_OK; k++) {
        st = set_address(op->out[k], PLIM_F32, parts, &args.moment[k].new_scales);
        if (st == PLIM_OK && eight)
            st = set_address(op->out[MOMENTS + k], PLIM_F32, args.elements, &args.moment[k].scaled);
    }
    if (st != PLIM_OK) return st;
    return launch(plan, eight ? "torchao_scales_8bit" : "torchao_scales_4bit", parts * PLIM_CUDA_PLAN_WARP, &args);
}

enum plim_status plim_cuda_plan_torchao_step(const struct plim_cuda_plan *plan, const struct plim_op *op)
{
    enum { PARAMETER, NEW = 6, BOOKS = 8, INS = 10 };
    struct plim_torchao_args args;
    bool eight = op->foreach == PLIM_TORCHAO_STEP_8BIT;
    if (!plim_op_has(op, eight ? 1 + MOMENTS : 1 + 2 * MOMENTS, INS)) return PLIM_INVALID;
    enum plim_status st = set_state(op, op->in + 1, op->in + BOOKS, &args);
    if (st == PLIM_OK && args.book_size != (eight ? CODES : NIBBLES)) st = PLIM_INVALID;
    if (st == PLIM_OK) st = set_floats(op->out[PARAMETER], args.elements, &args.parameter);
    for (int k = 0; k < MOMENTS && st == PLIM_OK; k++) {
        struct plim_torchao_moment *m = &args.moment[k];
        if (eight) {
            st = set_address(op->in[NEW + k], PLIM_F32, args.elements, &m->scaled);
            if (st == PLIM_OK && op->out[1 + k]->data != m->codes) st = PLIM_UNSUPPORTED; /* only in place */
            continue;
        }
        st = set_address(op->in[NEW + k], PLIM_F32, args.elements / op->block, &m->new_scales);
        if (st == PLIM_OK) st = set_address(op->out[1 + k], PLIM_F32, args.elements, &m->scaled);
        if (st == PLIM_OK) st = set_address(op->out[1 + MOMENTS + k], PLIM_I64, args.elements, &m->places);
    }
    if (st == PLIM_OK && op->in[PARAMETER]->data != op->out[PARAMETER]->data) st = PLIM_UNSUPPORTED;
    if (st != PLIM_OK) return st;
    return launch(plan, eight ? "torchao_step_8bit" : "torchao_step_4bit", args.elements, &args);
}

enum plim_status plim_cuda_plan_torchao_codes(const struct plim_cuda_plan *plan, const struct plim_op *op)
{
    enum { SCALED, PLACES, BOOK, INS };
    if (!plim_op_has(op, 1, INS)) return PLIM_INVALID;
    int64_t elements = plim_array_elements(op->in[SCALED]);
    struct plim_torchao_args args = {.elements = elements, .book_size = NIBBLES};
    struct plim_torchao_moment *m = &args.moment[0];
    enum plim_status st = elements % 2 ? PLIM_INVALID : set_address(op->out[0], PLIM_U8, elements / 2, &m->codes);
    if (st == PLIM_OK) st = set_address(op->in[SCALED], PLIM_F32, elements, &m->scaled);
    if (st == PLIM_OK) st = set_address(op->in[PLACES], PLIM_I64, elements, &m->places);
    if (st == PLIM_OK) st = set_address(op->in[BOOK], PLIM_F32, NIBBLES, &m->book);
    return st == PLIM_OK ? launch(plan, "torchao_codes", elements / 2, &args) : st;
}
