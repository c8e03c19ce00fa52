/* Seconds of each operation of a training step, at the shapes that it really has, beside what the
 * clock of the simulated device says of it (devices/sim/roofline.h).
 *
 * Each operation of the second step is launched REPEATS times more, between two looks at the device's
 * time, so that its start is hidden by the launch before it, as in a step. What is small enough for the
 * L2 cache is found there. What the step computes is of no use afterwards. */
#include "devices/sim/roofline.h"
#include "on_gpu.h"

#include <stdio.h>
#include <string.h>

enum { REPEATS = 4, ROWS = 512, NAME = 192 };

struct row {
    char name[NAME]; /* the operation, its type and shapes */
    int64_t count;
    double seconds, clock_seconds, bytes; /* of all of them */
};

/* Stands between the wrappers of device.c and the device. */
static struct {
    const struct plim_device_ops *inner;
    struct plim_device_ops ops;
    struct plim_roofline roofline;
    bool on;
    struct row rows[ROWS];
    size_t count;
} meter;

/* " 8192x768"; of a list its number of tensors. */
static void add_shape(char name[NAME], const struct plim_array *a)
{
    for (int i = 0; i < a->ndim; i++) {
        size_t used = strlen(name);
        snprintf(name + used, NAME - used, "%s%lld", i ? "x" : " ", (long long)a->shape[i]);
    }
}

static void name_of(const struct plim_op *op, char name[NAME])
{
    const struct plim_array *first = op->n_out ? op->out[0] : op->n_in ? op->in[0] : NULL;
    if (!first && op->n_lists && op->list_length) first = op->lists[0][0];
    snprintf(name, NAME, "%s %s", plim_op_name(op->kind), first ? plim_dtype_name(first->dtype) : "");
    if (op->n_out) add_shape(name, op->out[0]);
    for (int i = 0; i < op->n_in && i < 2; i++)
        if (op->in[i]) add_shape(name, op->in[i]);
    size_t used = strlen(name);
    if (op->n_lists) snprintf(name + used, NAME - used, " of %zu tensors", op->list_length);
}

static void note(const struct plim_op *op, double seconds)
{
    char name[NAME];
    size_t i = 0;
    name_of(op, name);
    while (i < meter.count && strcmp(meter.rows[i].name, name) != 0) i++;
    if (i == ROWS) on_gpu_give_up("more than %d kinds of operations", ROWS);
    struct row *row = &meter.rows[i];
    if (i == meter.count) meter.count++, snprintf(row->name, NAME, "%s", name);
    row->count++;
    row->seconds += seconds;
    row->clock_seconds += plim_roofline_device_seconds(&meter.roofline, op);
    row->bytes += plim_op_bytes(op);
}

static enum plim_status launch(struct plim_device *device, const struct plim_op *op)
{
    double begin, end;
    enum plim_status st = meter.inner->launch(device, op);
    if (st || !meter.on || op->kind == PLIM_OP_READ_BACK) return st;
    st = meter.inner->now(device, &begin);
    for (int i = 0; i < REPEATS && !st; i++) st = meter.inner->launch(device, op);
    if (!st) st = meter.inner->now(device, &end);
    if (!st) note(op, (end - begin) / REPEATS);
    return st;
}

static void put_meter(struct on_gpu *gpu)
{
    struct plim_gpu model = on_gpu_model(gpu);
    meter.inner = gpu->device->ops;
    meter.ops = *meter.inner;
    meter.ops.launch = launch;
    gpu->device->ops = &meter.ops;
    plim_roofline_init(&meter.roofline, &model);
}

static json_t *rows(void)
{
    json_t *all = json_array();
    for (size_t i = 0; i < meter.count; i++) {
        const struct row *row = &meter.rows[i];
        json_array_append_new(
            all, json_pack("{s:s s:I s:f s:f s:f}", "op", row->name, "count",
                           (json_int_t)row->count, "seconds", row->seconds, "clock_seconds",
                           row->clock_seconds, "bytes", row->bytes));
    }
    return all;
}

static int run_ops(struct on_gpu *gpu, const json_t *c, json_t *line)
{
    static struct plim_spec spec;
    static struct plim_replay out;
    struct plim_train_setting setting;
    struct plim_replay_step step;
    struct plim_replayer *replayer;
    struct plim_error err = PLIM_ERROR_INIT;
    if (!on_gpu_read_case(gpu, c, &spec, &setting, &err)) return on_gpu_refuse(line, &err);
    if (plim_replayer_create(gpu->device, NULL, &replayer, &err)) return on_gpu_refuse(line, &err);
    meter.count = 0;
    memset(meter.rows, 0, sizeof meter.rows);
    plim_replay_begin(replayer, &spec.model, &setting);
    bool runs = plim_replay_next(replayer, &step);
    meter.on = true;
    runs = runs && plim_replay_next(replayer, &step);
    meter.on = false;
    enum plim_status st = plim_replay_end(replayer, &out, &err);
    plim_replayer_destroy(&replayer);
    if (!st) st = plim_device_reset(gpu->device);
    if (st) return on_gpu_refuse(line, &err);
    json_object_set_new(line, "verdict", json_string(plim_status_text(out.verdict)));
    json_object_set_new(line, "ops", rows());
    return !runs || meter.count == 0;
}

int on_gpu_ops(struct on_gpu *gpu)
{
    on_gpu_open(gpu);
    put_meter(gpu);
    return on_gpu_each(gpu, run_ops);
}
