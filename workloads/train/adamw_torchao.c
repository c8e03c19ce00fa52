/* torchao.optim (0.18): AdamW8bit and AdamW4bit. A state of at least 4096 elements that consists of whole blocks is
 * stored in 8 or 4 bits with an fp32 scale per block, and its own table of the 256 or 16 values of the codes; any other
 * state is like its parameter (_AdamBase._new_buffer in adam.py, zeros() in subclass_8bit.py and _4bit.py).
 *
 * torch.compile generates kernels for single_param_adam(). Their allocations are those of call() in TorchInductor's
 * (2.11) generated code: the same for all sizes and types except for parts_of_block(). They are those of a launch that
 * finds its kernels in TorchInductor's cache: a launch that compiles them additionally allocates, while it times them,
 * as much as the size of the GPU's L2 cache. */
#include "optimizer.h"

enum {
    CODES,
    SCALES,
    BOOK,
    MOMENT_STATES
}; /* of the first moment, then of the second; only CODES if the state is not quantised */
enum { MIN_QUANTIZED_ELEMENTS = 4096, TRAINER_BLOCK = 256 };

/* Returns the elements per block. transformers' Trainer uses 256 in both kinds (_get_torchao_optimizer); torchao's
 * default is 128 in 4 bits. */
static int64_t block_of(const struct optimizer *o)
{
    return o->by_trainer || o->kind->bits == 8 ? TRAINER_BLOCK : TRAINER_BLOCK / 2;
}

static struct tensor **state_of(const struct optimizer *o, int moment, int which, size_t i)
{
    return &o->state[moment * MOMENT_STATES + which][i];
}

/* get_qmap_signed() and get_qmap_unsigned(): the second moment is unsigned, and in 4 bits a multiple of a sixteenth.
 * Computed on the host; a simulated device takes no time for it. */
static void write_book(struct engine *e, struct tensor *book, bool is_signed)
{
    enum { MOST = 256, NIBBLES = 16, POWERS_4BIT = 3, POWERS_8BIT = 7 };
    float numbers[MOST];
    if (e->halted || e->device->info.simulated) return;
    int64_t count = tensor_elements(book);
    for (int i = 0; i < NIBBLES; i++) numbers[i] = (float)(i + 1) / NIBBLES;
    if (count == MOST) op_dynamic_numbers(numbers, POWERS_8BIT, is_signed);
    else if (is_signed) op_dynamic_numbers(numbers, POWERS_4BIT, true);
    engine_write(e, book, numbers, (size_t)count * sizeof(*numbers));
}

static void make_moment(struct engine *e, const struct optimizer *o, int moment, size_t i)
{
    struct tensor *x = o->params[i];
    int64_t elements = tensor_elements(x);
    struct tensor **codes = state_of(o, moment, CODES, i);
    if (elements < MIN_QUANTIZED_ELEMENTS || elements % block_of(o)) {
        *codes = optimizer_state_like(e, x, (enum plim_dtype)x->a.dtype);
        return;
    }
    *codes = tensor_keep(op_full(e, PLIM_U8, SHAPE(elements * o->kind->bits / 8), 0));
    *state_of(o, moment, SCALES, i) =
        tensor_keep(op_full(e, PLIM_F32, SHAPE(elements / block_of(o)), 0));
    *state_of(o, moment, BOOK, i) =
        tensor_keep(op_full(e, PLIM_F32, SHAPE((int64_t)1 << o->kind->bits), 0));
    write_book(e, *state_of(o, moment, BOOK, i), moment == 0);
}

static void make_states(struct engine *e, struct optimizer *o, size_t i)
{
    enum plim_memory_class before = engine_set_class(e, PLIM_MEMORY_OPTIMIZER);
    for (int moment = 0; moment < 2; moment++) make_moment(e, o, moment, i);
    engine_set_class(e, before);
    if (o->has_compiled) return;
    /* the first GPU tensor that torch.compile creates (init_gpu_context() in fake_tensor.py) */
    tensor_drop(e, tensor_keep(tensor_empty(e, PLIM_F32, SHAPE(1))));
    o->has_compiled = true;
}

/* One parameter's step: its states, and the intermediate results of its kernels, for both moments. */
struct call {
    const struct plim_adam *adam;
    int64_t block;
    struct tensor *x, *grad, *codes[2], *scales[2], *books[2];
    struct tensor *new_scales[2]; /* fp32, one per block */
    struct tensor *scaled[2];     /* fp32, one per element of x: the moments divided by their scales */
    struct tensor *index[2]; /* int64, likewise: in 4 bits, the codes before two are packed into a byte */
};

static void make_both(struct engine *e, struct tensor *both[2], enum plim_dtype dtype,
                      int64_t elements)
{
    for (int k = 0; k < 2; k++) both[k] = tensor_keep(tensor_empty(e, dtype, SHAPE(elements)));
}

static void drop_both(struct engine *e, struct tensor *const both[2])
{
    tensor_drop(e, both[0]);
    tensor_drop(e, both[1]);
}

static void launch(struct engine *e, const struct call *c, enum plim_foreach which, int outs, int ins,
                   struct tensor *const *arrays)
{
    const struct plim_op op = {
        .kind = PLIM_OP_OPTIMIZER, .foreach = (uint8_t)which, .block = c->block, .adam = c->adam};
    op_launch(e, op, outs, ins, arrays);
}

/* scale.copy_(), of the same type. */
static void keep_scales(struct engine *e, struct call *c, int k)
{
    op_copy_(e, c->scales[k], c->new_scales[k]);
    tensor_drop(e, c->new_scales[k]);
}

static void step_8bit(struct engine *e, struct call *c, int64_t blocks)
{
    make_both(e, c->new_scales, PLIM_F32, blocks);
    make_both(e, c->scaled, PLIM_F32, tensor_elements(c->x));
    launch(e, c, PLIM_TORCHAO_SCALES, 4, 7,
           (struct tensor *[]){c->new_scales[0], c->new_scales[1], c->scaled[0], c->scaled[1], c->grad, c->codes[0],
                               c->codes[1], c->scales[0], c->scales[1], c->books[0], c->books[1]});
    launch(e, c, PLIM_TORCHAO_STEP_8BIT, 3, 10,
           (struct tensor *[]){c->x, c->codes[0], c->codes[1], c->x, c->grad, c->codes[0], c->codes[1], c->scales[0],
                               c->scales[1], c->scaled[0], c->scaled[1], c->books[0], c->books[1]});
    drop_both(e, c->scaled);
    for (int k = 0; k < 2; k++) keep_scales(e, c, k);
}

/* Returns the number of parts into which the reduction to the maximum of a block is split if there are few blocks for
 * the GPU's multiprocessors (Reduction.num_splits() in ir.py, reduction_split_factor() in choices.py). As two codes of
 * 4 bits are packed into one byte, it counts as a reduction over non-contiguous elements. */
static int64_t parts_of_block(const struct engine *e, int64_t block, int64_t blocks)
{
    enum { BLOCKS_OF_MULTIPROCESSOR = 2 * 32, ELEMENTS_OF_PART = 4 * 32 };
    if (blocks >= (int64_t)e->device->info.multiprocessors * BLOCKS_OF_MULTIPROCESSOR) return 1;
    return (block + ELEMENTS_OF_PART - 1) / ELEMENTS_OF_PART;
}

/* Computes the maximum of each block from those of its parts. */
static void fold_parts(struct engine *e, struct tensor *y, const struct tensor *in_parts)
{
    if (e->halted) return;
    int64_t blocks = tensor_elements(y), parts = tensor_elements(in_parts) / blocks;
    const struct plim_array rows = {
        .data = in_parts->a.data, .shape = {blocks, parts}, .stride = {parts, 1}, .ndim = 2, .dtype = PLIM_F32};
    const struct plim_op op = {.kind = PLIM_OP_REDUCE,
                               .n_out = 1,
                               .n_in = 1,
                               .binary = PLIM_BINARY_MAX,
                               .dims = 2,
                               .alpha = 1,
                               .out = {&y->a},
                               .in = {&rows}};
    engine_launch(e, &op);
}

static void find_scales(struct engine *e, struct call *c, int64_t blocks, int64_t parts)
{
    struct tensor *in_parts[2];
    make_both(e, in_parts, PLIM_F32, blocks * parts);
    launch(e, c, PLIM_TORCHAO_SCALES, 2, 7,
           (struct tensor *[]){in_parts[0], in_parts[1], c->grad, c->codes[0], c->codes[1], c->scales[0], c->scales[1],
                               c->books[0], c->books[1]});
    for (int k = 0; k < 2; k++) {
        if (parts == 1) {
            c->new_scales[k] = in_parts[k];
            continue;
        }
        c->new_scales[k] = tensor_keep(tensor_empty(e, PLIM_F32, SHAPE(blocks)));
        fold_parts(e, c->new_scales[k], in_parts[k]);
        tensor_drop(e, in_parts[k]);
    }
}

static void step_4bit(struct engine *e, struct call *c)
{
    int64_t elements = tensor_elements(c->x), blocks = elements / c->block;
    find_scales(e, c, blocks, parts_of_block(e, c->block, blocks));
    make_both(e, c->scaled, PLIM_F32, elements);
    make_both(e, c->index, PLIM_I64, elements);
    launch(e, c, PLIM_TORCHAO_STEP_4BIT, 5, 10,
           (struct tensor *[]){c->x, c->scaled[0], c->scaled[1], c->index[0], c->index[1], c->x, c->grad, c->codes[0],
                               c->codes[1], c->scales[0], c->scales[1], c->new_scales[0], c->new_scales[1],
                               c->books[0], c->books[1]});
    for (int k = 0; k < 2; k++) {
        launch(e, c, PLIM_TORCHAO_CODES, 1, 3,
               (struct tensor *[]){c->codes[k], c->scaled[k], c->index[k], c->books[k]});
        tensor_drop(e, c->scaled[k]);
        tensor_drop(e, c->index[k]);
        keep_scales(e, c, k);
    }
}

static void step(struct engine *e, struct optimizer *o, struct tensor *found_inf,
                 struct tensor *grad_scale)
{
    (void)found_inf;
    (void)grad_scale;
    const struct plim_adam adam = optimizer_adam(o);
    for (size_t i = 0; i < o->count && !e->halted; i++) {
        if (!o->started) make_states(e, o, i);
        struct call c = {.adam = &adam, .block = block_of(o), .x = o->params[i], .grad = o->grads[i]};
        for (int k = 0; k < 2; k++) {
            c.codes[k] = *state_of(o, k, CODES, i);
            c.scales[k] = *state_of(o, k, SCALES, i);
            c.books[k] = *state_of(o, k, BOOK, i);
        }
        if (e->halted) return;
        if (!c.scales[0])
            launch(e, &c, PLIM_TORCHAO_ADAMW, 3, 1, (struct tensor *[]){c.x, c.codes[0], c.codes[1], c.grad});
        else if (o->kind->bits == 8)
            step_8bit(e, &c, tensor_elements(c.scales[0]));
        else
            step_4bit(e, &c);
    }
}

const struct optimizer_kind optimizer_adamw_torch_8bit = {
    .name = "adamw-torch-8bit", .step = step, .bits = 8};
const struct optimizer_kind optimizer_adamw_torch_4bit = {
    .name = "adamw-torch-4bit", .step = step, .bits = 4};
