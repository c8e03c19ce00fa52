/* bitsandbytes.optim: AdamW8bit keeps states in 8 bits, quantised in blocks of 256 with an fp32 maximum each, and those
 * of small tensors in fp32; PagedAdamW32bit and PagedAdamW8bit allocate large states with cudaMallocManaged
 * (Optimizer8bit.get_state_buffer in optim/optimizer.py). */
#include "optimizer.h"

enum { STATE1, STATE2, ABSMAX1, ABSMAX2 };
enum { BLOCK_ELEMENTS = 256, MIN_8BIT_ELEMENTS = 4096, MIN_PAGED_ELEMENTS = 100000 };

/* Returns a state in managed memory, outside of the allocator. A simulated device needs no real memory for it; others
 * are not supported. */
static struct tensor *managed_state(struct engine *e, struct optimizer *o, struct tensor *x,
                                    enum plim_dtype dtype)
{
    if (!e->halted && !e->device->info.simulated) {
        e->halting_op = "a paged optimizer, which needs managed memory,";
        engine_halt(e, HALT_UNSUPPORTED);
    }
    e->meta = true;
    struct tensor *state = optimizer_state_like(e, x, dtype);
    e->meta = false;
    o->managed_bytes += tensor_elements(x) * plim_dtype_size(dtype);
    return state;
}

static struct tensor *new_state(struct engine *e, struct optimizer *o, struct tensor *x,
                                enum plim_dtype dtype)
{
    bool paged = o->kind->is_paged && tensor_elements(x) >= MIN_PAGED_ELEMENTS;
    return paged ? managed_state(e, o, x, dtype) : optimizer_state_like(e, x, dtype);
}

static bool is_embedding(const struct optimizer *o, const struct tensor *x)
{
    bool is_one = false;
    for (int i = 0; i < OPTIMIZER_EMBEDDINGS; i++) is_one |= o->embeddings[i] == x;
    return is_one;
}

static void make_state(struct engine *e, struct optimizer *o, size_t i)
{
    struct tensor *x = o->params[i];
    bool small = tensor_elements(x) < MIN_8BIT_ELEMENTS || o->kind->in_fp32 || is_embedding(o, x);
    if (!small && !o->shared[0]) { /* the two code books, only once */
        o->shared[0] = op_dynamic_map(e, true);
        o->shared[1] = op_dynamic_map(e, false);
    }
    o->state[STATE1][i] = new_state(e, o, x, small ? PLIM_F32 : PLIM_U8);
    o->state[STATE2][i] = new_state(e, o, x, small ? PLIM_F32 : PLIM_U8);
    if (small) return;
    int64_t blocks = (tensor_elements(x) + BLOCK_ELEMENTS - 1) / BLOCK_ELEMENTS;
    o->state[ABSMAX1][i] = tensor_keep(op_full(e, PLIM_F32, SHAPE(blocks), 0));
    o->state[ABSMAX2][i] = tensor_keep(op_full(e, PLIM_F32, SHAPE(blocks), 0));
}

static void step(struct engine *e, struct optimizer *o, struct tensor *found_inf,
                 struct tensor *grad_scale)
{
    (void)found_inf;
    (void)grad_scale;
    struct plim_adam adam = optimizer_adam(o);
    for (size_t i = 0; i < o->count && !e->halted; i++) {
        if (!o->started) {
            enum plim_memory_class before = engine_set_class(e, PLIM_MEMORY_OPTIMIZER);
            make_state(e, o, i);
            engine_set_class(e, before);
        }
        struct tensor *max1 = o->state[ABSMAX1][i], *max2 = o->state[ABSMAX2][i];
        struct plim_op op = {
            .kind = PLIM_OP_OPTIMIZER,
            .foreach = max1 ? PLIM_ADAMW_8BIT : PLIM_ADAMW_32BIT,
            .n_out = 3,
            .n_in = (uint8_t)(max1 ? 5 : 1),
            .adam = &adam,
            .out = {&o->params[i]->a, &o->state[STATE1][i]->a, &o->state[STATE2][i]->a},
            .in = {&o->grads[i]->a, max1 ? &o->shared[0]->a : NULL, max1 ? &o->shared[1]->a : NULL,
                   max1 ? &max1->a : NULL, max2 ? &max2->a : NULL}};
        if (!e->halted) engine_launch(e, &op);
    }
}

const struct optimizer_kind optimizer_adamw_8bit = {.name = "adamw-8bit", .step = step};
const struct optimizer_kind optimizer_paged_adamw_8bit = {
    .name = "paged-adamw-8bit", .step = step, .is_paged = true};
const struct optimizer_kind optimizer_paged_adamw_32bit = {
    .name = "paged-adamw-32bit", .step = step, .in_fp32 = true, .is_paged = true};
