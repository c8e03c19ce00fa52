#include "pairs.h"

struct pair pair_of(struct engine *e, struct tensor *x)
{
    struct tensor *parts[2] = {e->poison, e->poison};
    int64_t half = e->halted ? 0 : x->a.shape[0] / 2;
    if (!e->halted) op_split(e, x, 0, 2, (int64_t[]){half, half}, parts);
    return (struct pair){tensor_keep(parts[0]), tensor_keep(parts[1])};
}

void pair_drop(struct engine *e, struct pair p)
{
    tensor_drop_all(e, p.chosen, p.rejected);
}
