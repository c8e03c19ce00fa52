#include "attention_cost.h"

enum { FORWARD_PRODUCTS = 2, BACKWARD_PRODUCTS = 5, BATCH = 0, HEADS, ROWS, COLUMNS, DIMENSIONS };

void plim_dnn_attention_join(struct plim_dnn_attention *graph, const struct plim_dnn_attention *operation)
{
    if (!graph->products) {
        graph->queries = operation->queries;
        graph->keys = operation->keys;
        graph->scores = operation->scores;
    }
    graph->products += operation->products;
    graph->is_masked |= operation->is_masked;
}

bool plim_dnn_attention_cost(const struct plim_dnn_attention *a, struct plim_cost *out)
{
    bool is_backward = a->products == BACKWARD_PRODUCTS;
    if (a->products != FORWARD_PRODUCTS && !is_backward) return false;
    if (a->queries.count != DIMENSIONS || a->keys.count != DIMENSIONS || a->scores.count != DIMENSIONS) return false;
    *out = (struct plim_cost){.kind = is_backward ? PLIM_COST_CUDNN_BACKWARD : PLIM_COST_CUDNN,
                              .type = a->queries.type == DNN_BFLOAT16 ? PLIM_COST_BF16
                                      : a->queries.type == DNN_HALF   ? PLIM_COST_FP16
                                                                      : PLIM_COST_FP32,
                              .causal = a->is_masked,
                              .number = {a->queries.dimension[BATCH], a->queries.dimension[HEADS],
                                         a->keys.dimension[HEADS], a->queries.dimension[ROWS],
                                         a->scores.dimension[COLUMNS], a->queries.dimension[COLUMNS]}};
    for (int i = 0; i < PLIM_COST_NUMBERS; i++)
        if (out->number[i] < 1) return false;
    return true;
}
