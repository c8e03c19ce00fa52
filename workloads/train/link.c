#include "link.h"
#include "workloads/engine/ops.h"
#include <math.h>

double link_now(const struct link *l)
{
    double seconds = 0;
    if (!(l->bytes_per_second > 0) || l->e->halted) return 0;
    enum plim_status st = plim_device_now(l->e->device, &seconds);
    if (st != PLIM_OK) engine_fail(l->e, st);
    return seconds + l->waited;
}

double link_send(struct link *l, double ready, double bytes, int passes)
{
    if (!(l->bytes_per_second > 0)) return 0;
    double share = (double)(l->world - 1) / (double)l->world;
    double pass = l->latency_seconds + share * bytes / l->bytes_per_second;
    l->free_at = fmax(l->free_at, ready) + passes * pass;
    return l->free_at;
}

void link_barrier(struct engine *e, struct link *l)
{
    struct tensor *now = tensor_keep(tensor_empty(e, PLIM_U8, SHAPE(1)));
    tensor_drop(e, l->barrier_tensor);
    l->barrier_tensor = now;
}

void link_wait(struct link *l, double arrival)
{
    l->waited += fmax(0, arrival - link_now(l));
}
