#include "vllm_server.h"
#include "workloads/engine/ops.h"

/* weight += get_delta_weight(), or -= (peft 0.21, LoraLayer in tuners/lora/layer.py), in place whatever its type */
static void move_by_product(struct engine *e, const struct lora_adapter *a)
{
    struct tensor *product = tensor_keep(op_matmul(e, a->b, a->a));
    struct tensor *delta = tensor_keep(op_mul_scalar(e, product, a->scaling));
    tensor_drop_all(e, product, delta);
}

/* merge_adapter(), or unmerge_adapter() */
static void move_by_adapters(struct engine *e, const struct decoder *m)
{
    for (size_t i = 0; i < m->adapters.count; i++) move_by_product(e, &m->adapters.list[i]);
    for (int64_t layer = 0; layer < m->config->layers; layer++)
        for (size_t i = 0; i < m->layers[layer].adapters.count; i++)
            move_by_product(e, &m->layers[layer].adapters.list[i]);
}

void vllm_server_send(struct engine *e, const struct decoder *m, bool is_first)
{
    static const int64_t BUFFER = 1 << 30;
    enum { CHUNKS = 2 };
    const struct parameters *p = &m->parameters;
    bool has_adapters = p->frozen_count > 0;
    struct tensor *const *weights = has_adapters ? p->frozen : p->list, *under_way[CHUNKS] = {NULL};
    size_t count = has_adapters ? p->frozen_count : p->count;
    if (has_adapters && is_first) {
        move_by_adapters(e, m);
        move_by_adapters(e, m);
    }
    int turn = 0;
    for (size_t i = 0; i < count && !e->halted; turn = 1 - turn) {
        int64_t bytes = 0;
        tensor_drop(e, under_way[turn]);
        e->stream = 1 + turn;
        if (has_adapters && i == 0) move_by_adapters(e, m);
        for (; i < count && bytes <= BUFFER; i++)
            bytes +=
                tensor_elements(weights[i]) * plim_dtype_size((enum plim_dtype)weights[i]->a.dtype);
        if (has_adapters && bytes <= BUFFER)
            move_by_adapters(e, m); /* the generator has come to its end */
        under_way[turn] = tensor_keep(tensor_empty_bytes(e, bytes));
        e->stream = 0;
    }
    tensor_drop_list(e, under_way, CHUNKS);
}
