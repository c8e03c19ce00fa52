#include "planned.h"

#include "devices/cuda/kernels.h"
#include <stdio.h>
#include <string.h>

static const struct plim_device_ops *given;
static struct plim_device_ops watched;
static bool lacks[PLIM_OP_KIND_COUNT];
static char names[1024];

static enum plim_status take(void *user, const struct plim_cuda_launch *launch)
{
    (void)user;
    (void)launch;
    return PLIM_OK;
}

/* cuBLAS computes products, and nothing computes what is read back. Heads of more than 256 have no kernel of ours. */
static bool is_known(const struct plim_op *op)
{
    enum { MOST_SIZE = 256, SIZE = 3 };
    bool is_attention = op->kind == PLIM_OP_ATTENTION || op->kind == PLIM_OP_ATTENTION_BACKWARD;
    if (is_attention && op->out[0]->shape[SIZE] > MOST_SIZE) return true;
    return op->kind == PLIM_OP_MATMUL || op->kind == PLIM_OP_MATMUL_INT8 || op->kind == PLIM_OP_MATMUL_GROUPED ||
           op->kind == PLIM_OP_READ_BACK;
}

static void append(const char *text)
{
    size_t length = strlen(names);
    snprintf(names + length, sizeof names - length, "%s", text);
}

static void note(const struct plim_op *op, enum plim_status st)
{
    char text[64];
    if (lacks[op->kind]) return;
    lacks[op->kind] = true;
    append(*names ? ", " : "");
    append(plim_op_name(op->kind));
    append(st == PLIM_UNSUPPORTED ? "" : " (invalid)");
    for (int i = 0; i < op->n_out + op->n_in; i++) {
        const struct plim_array *a = i < op->n_out ? op->out[i] : op->in[i - op->n_out];
        append(i == op->n_out ? " <-" : "");
        append(" (");
        for (int d = 0; a && d < a->ndim; d++) {
            snprintf(text, sizeof text, "%s%lld/%lld", d ? ", " : "", (long long)a->shape[d], (long long)a->stride[d]);
            append(text);
        }
        append(")");
    }
}

static enum plim_status launch(struct plim_device *device, const struct plim_op *op)
{
    if (!is_known(op)) {
        enum plim_status st = plim_cuda_plan(&device->info, op, take, NULL);
        if (st != PLIM_OK) note(op, st);
    }
    return given->launch(device, op);
}

void planned_watch(struct plim_device *device)
{
    given = device->ops;
    watched = *given;
    watched.launch = launch;
    device->ops = &watched;
    memset(lacks, 0, sizeof lacks);
    names[0] = '\0';
}

const char *planned_without_kernels(void)
{
    return names;
}
