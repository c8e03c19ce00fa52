#include "plan_flash.h"
#include "kernels/args_flash.h"
#include "placement.h"
#include "plan_rows.h"

enum { ROWS_OF_WARP = 16, MAX_BLOCKS = 0x7fffffff, ROW_DIMS = 3 };

/* The kernels of one type for head sizes up to `size`. */
struct plim_flash {
    const char *forward, *dq, *dkv;
    enum plim_dtype dtype;
    int capability; /* minimum */
    int element_bytes, size, warps, keys, dq_keys, queries, stages, wide, columns;
};

enum {
    DTYPE_bf16 = PLIM_BF16,
    DTYPE_fp16 = PLIM_F16,
    DTYPE_tf32 = PLIM_F32,
    DTYPE_turing = PLIM_F16
};

/* The smaller sizes of a type come first, and those for newer GPUs. */
static const struct plim_flash kernels[] = {
#define FLASH(type, bytes, size, warps, keys, dq_keys, queries, stages, wide, columns)             \
    {"flash_" #type "_" #size, "flash_dq_" #type "_" #size, "flash_dkv_" #type "_" #size,          \
     (enum plim_dtype)DTYPE_##type, PLIM_FLASH_CAPABILITY_##type, bytes, size, warps, keys,        \
     dq_keys, queries, stages, wide, columns},
    PLIM_FLASH_MAP(FLASH)
#undef FLASH
};

/* --- choice of the kernel --------------------------------------------------------------------- */

static bool is_fit(const struct plim_cuda_heads *a, enum plim_dtype dtype)
{
    return !a->data || (a->dtype == (uint32_t)dtype && a->vectors);
}

static bool are_fit(const struct plim_attention_args *a, enum plim_dtype dtype)
{
    return is_fit(&a->q, dtype) && is_fit(&a->k, dtype) && is_fit(&a->v, dtype) &&
           is_fit(&a->out, dtype) && is_fit(&a->dout, dtype) && is_fit(&a->dq, dtype) &&
           is_fit(&a->dk, dtype) && is_fit(&a->dv, dtype);
}

/* Finds room for one number per query of every head. */
static bool find_sums(const struct plim_op *op, uint64_t *address)
{
    const struct plim_array *q = op->in[1];
    struct plim_piece piece = {.bytes = (int64_t)sizeof(float), .alignment = sizeof(float)};
    for (int d = 0; d < ROW_DIMS; d++) piece.bytes *= q->shape[d];
    bool found = plim_place(op, &piece, 1);
    *address = piece.address;
    return found;
}

const struct plim_flash *plim_cuda_flash_find(const struct plim_device_info *info,
                                              const struct plim_op *op,
                                              const struct plim_attention_args *args)
{
    int size = args->size > args->v_size ? args->size : args->v_size;
    enum plim_dtype dtype = (enum plim_dtype)args->q.dtype;
    uint64_t sums;
    if (!are_fit(args, dtype) || args->dmask.data) return NULL;
    if (op->kind == PLIM_OP_ATTENTION_BACKWARD && !find_sums(op, &sums)) return NULL;
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++)
        if (kernels[i].dtype == dtype && size <= kernels[i].size &&
            info->compute_capability >= kernels[i].capability)
            return &kernels[i];
    return NULL;
}

/* --- launches --------------------------------------------------------------------------------- */

/* Returns the number of parts of a head's columns, with `columns` per block. */
static int parts_of(int size, int columns)
{
    return (size + columns - 1) / columns;
}

/* `elements` of the kernels' type and `numbers` in fp32 are in shared memory. */
static enum plim_status launch(const struct plim_cuda_plan *plan, const struct plim_flash *flash,
                               const char *kernel, const struct plim_array *rows, int parts,
                               int elements, int numbers, const struct plim_flash_args *args)
{
    int64_t blocks = plim_cuda_plan_tiles(rows, flash->warps * ROWS_OF_WARP);
    if (blocks == 0) return PLIM_OK;
    if (blocks > MAX_BLOCKS) return PLIM_UNSUPPORTED;
    struct plim_cuda_launch launch = {
        .kernel = kernel,
        .grid = {(uint32_t)blocks, (uint32_t)parts, 1},
        .block = {(uint32_t)flash->warps * PLIM_CUDA_PLAN_WARP, 1, 1},
        .shared_bytes = (uint32_t)(elements * flash->element_bytes + numbers * (int)sizeof(float)),
        .args = args,
        .args_bytes = sizeof *args};
    return plan->emit(plan->user, &launch);
}

enum plim_status plim_cuda_plan_flash(const struct plim_cuda_plan *plan,
                                      const struct plim_flash *flash, const struct plim_op *op,
                                      const struct plim_attention_args *attention)
{
    const struct plim_flash_args args = {.attention = *attention, .batch = op->in[0]->shape[0]};
    int rows = flash->warps * ROWS_OF_WARP + flash->keys;
    return launch(plan, flash, flash->forward, op->in[0], parts_of(attention->v_size, flash->wide),
                  rows * flash->size + flash->keys * flash->wide, 0, &args);
}

static enum plim_status launch_sums(const struct plim_cuda_plan *plan, const struct plim_array *q,
                                    const struct plim_flash_args *args)
{
    int64_t rows = q->shape[0] * q->shape[1] * q->shape[2];
    int64_t blocks =
        plim_cuda_plan_blocks(plan, rows * PLIM_FLASH_SUMS_LANES, PLIM_FLASH_SUMS_THREADS);
    if (rows == 0) return PLIM_OK;
    return plim_cuda_plan_launch(plan, "flash_sums", blocks, PLIM_FLASH_SUMS_THREADS, args,
                                 sizeof *args);
}

enum plim_status plim_cuda_plan_flash_backward(const struct plim_cuda_plan *plan,
                                               const struct plim_flash *flash,
                                               const struct plim_op *op,
                                               const struct plim_attention_args *attention)
{
    struct plim_flash_args args = {.attention = *attention, .batch = op->in[1]->shape[0]};
    int rows = flash->warps * ROWS_OF_WARP, of_stages = flash->stages * flash->queries;
    int size = attention->size > attention->v_size ? attention->size : attention->v_size;
    enum plim_status st = PLIM_OK;
    if (!find_sums(op, &args.sums)) return PLIM_UNSUPPORTED;
    PLIM_TRY(launch_sums(plan, op->in[1], &args));
    PLIM_TRY(launch(plan, flash, flash->dkv, op->in[2], parts_of(size, flash->columns),
                    2 * (rows + of_stages) * flash->size, 2 * of_stages, &args));
    PLIM_TRY(launch(plan, flash, flash->dq, op->in[1], parts_of(attention->size, flash->wide),
                    2 * (rows + flash->dq_keys) * flash->size, 0, &args));
out:
    return st;
}
