/* bitsandbytes.optim.AdamW8bit: states in 8 bits, quantised in blocks of 256 with an fp32 maximum
 * each; small tensors keep fp32 states. */
#include "optimizer.h"
#include <math.h>
#include <stdlib.h>

enum { STATE1, STATE2, ABSMAX1, ABSMAX2 };
enum { BLOCK_ELEMENTS = 256, MIN_8BIT_ELEMENTS = 4096, MAP_ENTRIES = 256 };

static int by_value(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

/* create_dynamic_map: for each power of ten from 1e-6 to 1 the middles of 1, 2, 4, .. 64 equal parts
 * of [0.1, 1) (of twice as many where there is no sign), with both signs where there is one; 0 and
 * 1. In order of value. */
static struct tensor *map_of_codes(struct engine *e, bool is_signed)
{
    float book[MAP_ENTRIES] = {0, 1};
    int count = 2;
    for (int power = 0; power < 7; power++) {
        int parts = (is_signed ? 1 : 2) << power;
        for (int i = 0; i < parts; i++) {
            double middle = 0.1 + 0.9 * (i + 0.5) / parts;
            float value = (float)(pow(10, power - 6) * middle);
            book[count++] = value;
            if (is_signed) book[count++] = -value;
        }
    }
    qsort(book, MAP_ENTRIES, sizeof *book, by_value);
    struct tensor *map = tensor_keep(tensor_empty(e, PLIM_F32, SHAPE(MAP_ENTRIES)));
    engine_write(e, map, book, sizeof book);
    return map;
}


static void make_state(struct engine *e, struct optimizer *o, size_t i)
{
    struct tensor *x = o->params[i];
    bool small = tensor_elements(x) < MIN_8BIT_ELEMENTS;
    if (!small && !o->shared[0]) { /* the two code books, once */
        o->shared[0] = map_of_codes(e, true);
        o->shared[1] = map_of_codes(e, false);
    }
    o->state[STATE1][i] = optimizer_state_like(e, x, small ? PLIM_F32 : PLIM_U8);
    o->state[STATE2][i] = optimizer_state_like(e, x, small ? PLIM_F32 : PLIM_U8);
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

const struct optimizer_kind optimizer_adamw_8bit = {"adamw-8bit", step, false};
