#include "cost.h"
#include "autotune/base/text.h"
#include "device.h"
#include <math.h>

const struct plim_cost_row plim_cost_rows[PLIM_COST_KINDS] = {
#define PLIM_COST_ROW(kind, name, numbers, is_typed) [PLIM_COST_##kind] = {name, numbers, is_typed},
    PLIM_COST_MAP(PLIM_COST_ROW)
#undef PLIM_COST_ROW
};

const char *const plim_cost_types[PLIM_COST_TYPES] = {"fp32", "tf32", "fp16", "bf16"};

static const enum plim_dtype dtypes[PLIM_COST_TYPES] = {PLIM_F32, PLIM_F32, PLIM_F16, PLIM_BF16};

/* --- bytes ------------------------------------------------------------------------------------ */

static struct plim_array bytes_of(int64_t bytes, int64_t stride)
{
    return (struct plim_array){.shape = {bytes}, .stride = {stride}, .ndim = 1, .dtype = PLIM_U8};
}

static enum plim_status launch_move(struct plim_device *device, const struct plim_cost *cost)
{
    const struct plim_array all = bytes_of(cost->number[0], 1);
    const struct plim_op op = {.kind = PLIM_OP_FILL, .n_out = 1, .out = {&all}};
    return plim_device_launch(device, &op);
}

static enum plim_status launch_strided(struct plim_device *device, const struct plim_cost *cost)
{
    int64_t read = cost->number[0] / 2;
    const struct plim_array from = bytes_of(read, 2), to = bytes_of(cost->number[0] - read, 1);
    const struct plim_op op = {
        .kind = PLIM_OP_COPY, .n_out = 1, .n_in = 1, .out = {&to}, .in = {&from}};
    return plim_device_launch(device, &op);
}

/* The bytes are an operand in addition to empty lists. */
static enum plim_status launch_lists(struct plim_device *device, const struct plim_cost *cost)
{
    const struct plim_array all = bytes_of(cost->number[0], 1);
    const struct plim_op op = {.kind = PLIM_OP_FOREACH, .n_in = 1, .in = {&all},
                               .list_length = (size_t)cost->number[1]};
    return plim_device_launch(device, &op);
}

static enum plim_status launch_read_back(struct plim_device *device, const struct plim_cost *cost)
{
    const struct plim_array all = bytes_of(cost->number[0], 1);
    const struct plim_op op = {.kind = PLIM_OP_READ_BACK, .n_in = 1, .in = {&all}};
    return plim_device_launch(device, &op);
}

static enum plim_status launch_link(struct plim_device *device, const struct plim_cost *cost)
{
    plim_device_link(device, cost->number[0], cost->kind == PLIM_COST_LINK_PAGEABLE);
    return PLIM_OK;
}

/* --- products --------------------------------------------------------------------------------- */

static struct plim_array matrices(const struct plim_cost *cost, int64_t rows, int64_t columns,
                                  int64_t row_bytes)
{
    enum plim_dtype dtype = dtypes[cost->type];
    int64_t row = row_bytes / plim_dtype_size(dtype);
    return (struct plim_array){.shape = {cost->number[3], rows, columns},
                               .stride = {rows * columns, row ? row : 1, 1},
                               .ndim = 3,
                               .dtype = (uint8_t)dtype};
}

static enum plim_status launch_matmul(struct plim_device *device, const struct plim_cost *cost)
{
    const int64_t *n = cost->number, out_bytes = n[1] * plim_dtype_size(dtypes[cost->type]);
    const struct plim_array a = matrices(cost, n[0], n[2], n[4]),
                            b = matrices(cost, n[2], n[1], n[5]),
                            out = matrices(cost, n[0], n[1], out_bytes);
    const struct plim_op op = {.kind = PLIM_OP_MATMUL, .n_out = 1, .n_in = 2, .out = {&out},
                               .in = {&a, &b}, .tf32 = cost->type == PLIM_COST_TF32};
    return plim_device_launch(device, &op);
}

/* With a step of 0 bytes from row to row: kernels support any step, and the bytes are given separately. */
static struct plim_array pixels(const struct plim_cost *cost, int64_t rows, int64_t columns)
{
    return (struct plim_array){.shape = {cost->number[3], rows, columns},
                               .ndim = 3,
                               .dtype = (uint8_t)dtypes[cost->type]};
}

static enum plim_status launch_convolution(struct plim_device *device, const struct plim_cost *cost)
{
    const int64_t *n = cost->number;
    const struct plim_array a = pixels(cost, n[0], n[2]), b = pixels(cost, n[2], n[1]),
                            out = pixels(cost, n[0], n[1]), all = bytes_of(n[4], 1);
    const struct plim_op op = {.kind = PLIM_OP_MATMUL, .n_out = 1, .n_in = 3, .out = {&out},
                               .in = {&a, &b, &all}, .tf32 = cost->type == PLIM_COST_TF32};
    const struct plim_cost copies = {.kind = PLIM_COST_MOVE, .number = {n[5]}};
    enum plim_status st = n[5] > 1 ? launch_move(device, &copies) : PLIM_OK;
    return st ? st : plim_device_launch(device, &op);
}

/* --- attention -------------------------------------------------------------------------------- */

static struct plim_array heads_of(const struct plim_cost *cost, int64_t heads, int64_t length)
{
    int64_t size = cost->number[5];
    return (struct plim_array){.shape = {cost->number[0], heads, length, size},
                               .stride = {length * heads * size, size, heads * size, 1},
                               .ndim = 4,
                               .dtype = (uint8_t)dtypes[cost->type]};
}

static enum plim_status launch_attention(struct plim_device *device, const struct plim_cost *cost)
{
    static const struct {
        enum plim_sdpa sdpa;
        bool is_backward;
    } kinds[PLIM_COST_KINDS] = {
        [PLIM_COST_FLASH] = {PLIM_SDPA_FLASH, false},
        [PLIM_COST_FLASH_BACKWARD] = {PLIM_SDPA_FLASH, true},
        [PLIM_COST_EFFICIENT] = {PLIM_SDPA_EFFICIENT, false},
        [PLIM_COST_EFFICIENT_BACKWARD] = {PLIM_SDPA_EFFICIENT, true},
        [PLIM_COST_CUDNN] = {PLIM_SDPA_CUDNN, false},
        [PLIM_COST_CUDNN_BACKWARD] = {PLIM_SDPA_CUDNN, true},
    };
    const int64_t *n = cost->number;
    const struct plim_array q = heads_of(cost, n[1], n[3]), k = heads_of(cost, n[2], n[4]);
    struct plim_op op = {.kind = PLIM_OP_ATTENTION, .n_out = 1, .n_in = 3, .out = {&q},
                         .in = {&q, &k, &k}, .causal = cost->causal,
                         .sdpa = (uint8_t)kinds[cost->kind].sdpa};
    if (kinds[cost->kind].is_backward) {
        op.kind = PLIM_OP_ATTENTION_BACKWARD;
        op.n_out = 3;
        op.n_in = 5;
        op.out[1] = op.out[2] = op.in[2] = op.in[3] = &k;
        op.in[1] = op.in[4] = &q;
    }
    return plim_device_launch(device, &op);
}

/* --- all -------------------------------------------------------------------------------------- */

/* True if no product of dimensions, in bytes, exceeds any possible memory. */
static bool is_possible(const struct plim_cost *cost)
{
    const int64_t *n = cost->number;
    double size = sizeof(float), most = (double)PLIM_MOST_BYTES;
    for (int i = 0; i < plim_cost_rows[cost->kind].numbers; i++)
        if (n[i] < (plim_cost_rows[cost->kind].is_typed ? 1 : 0) || n[i] > PLIM_MOST_BYTES) return false;
    if (cost->kind == PLIM_COST_MATMUL || cost->kind == PLIM_COST_CONVOLUTION)
        return fmax(fmax((double)n[0] * (double)n[1], (double)n[0] * (double)n[2]),
                    (double)n[1] * (double)n[2]) * (double)n[3] * size <= most;
    if (!plim_cost_rows[cost->kind].is_typed) return true;
    return (double)n[0] * fmax((double)n[1], (double)n[2]) * fmax((double)n[3], (double)n[4]) *
               (double)n[5] * size <= most;
}

enum plim_status plim_cost_launch(struct plim_device *device, const struct plim_cost *cost)
{
    typedef enum plim_status launcher(struct plim_device *, const struct plim_cost *);
    static launcher *const launchers[PLIM_COST_KINDS] = {
        [PLIM_COST_MOVE] = launch_move,
        [PLIM_COST_STRIDED] = launch_strided,
        [PLIM_COST_LISTS] = launch_lists,
        [PLIM_COST_READ_BACK] = launch_read_back,
        [PLIM_COST_LINK] = launch_link,
        [PLIM_COST_LINK_PAGEABLE] = launch_link,
        [PLIM_COST_MATMUL] = launch_matmul,
        [PLIM_COST_CONVOLUTION] = launch_convolution,
        [PLIM_COST_FLASH] = launch_attention,
        [PLIM_COST_FLASH_BACKWARD] = launch_attention,
        [PLIM_COST_EFFICIENT] = launch_attention,
        [PLIM_COST_EFFICIENT_BACKWARD] = launch_attention,
        [PLIM_COST_CUDNN] = launch_attention,
        [PLIM_COST_CUDNN_BACKWARD] = launch_attention,
    };
    if (!is_possible(cost)) return PLIM_INVALID;
    bool in_autograd = device->in_autograd, in_graph = device->in_graph;
    device->in_autograd = cost->in_autograd;
    device->in_graph = cost->in_graph;
    enum plim_status st = launchers[cost->kind](device, cost);
    device->in_autograd = in_autograd;
    device->in_graph = in_graph;
    return st;
}
