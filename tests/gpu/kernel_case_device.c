#include "kernel_case_device.h"
#include "config.h"
#if PLIM_WITH_CUDA
#include "devices/cuda/cuda.h"
#endif

#include <criterion/criterion.h>

enum { ALIGNMENT = 512, LIST = 1024 };

static struct plim_device *device;
static bool plans;      /* can be launched */
static uint64_t memory; /* of the device; 0: none */
static int64_t memory_bytes;
static long launched;

void kernel_case_use(struct plim_device *d, bool is_cuda)
{
    device = d;
    plans = is_cuda;
}

const struct plim_device_info *kernel_case_gpu(void)
{
    return &device->info;
}

long kernel_case_count(void)
{
    return launched;
}

unsigned kernel_case_sdpa_engines(void)
{
    return device->sdpa_engines;
}

void kernel_case_leave(void)
{
    if (memory) plim_device_segment_return(device, memory, memory_bytes);
    memory = 0;
    memory_bytes = 0;
}

/* --- the operation, moved to the device ------------------------------------------------------- */

struct moved {
    struct plim_op op;
    struct plim_array out[PLIM_OP_MAX_OUT], in[PLIM_OP_MAX_IN], scratch[PLIM_OP_MAX_SCRATCH];
    struct plim_array lists[PLIM_OP_MAX_LISTS][LIST];
    const struct plim_array *pointers[PLIM_OP_MAX_LISTS][LIST];
    uint64_t at[KERNEL_CASE_ARRAYS]; /* addresses of the arrays of the case */
};
static struct moved moved;

static void place_arrays(const struct kernel_case *c)
{
    int64_t needed = 0;
    for (int i = 0; i < c->count; i++) needed += (int64_t)c->arrays[i].bytes + ALIGNMENT;
    if (needed > memory_bytes) {
        kernel_case_leave();
        enum plim_status st = plim_device_segment_get(device, needed, &memory);
        cr_assert(st == PLIM_OK, "%lld bytes: %s", (long long)needed, plim_status_text(st));
        memory_bytes = needed;
    }
    uint64_t next = memory;
    for (int i = 0; i < c->count; i++) {
        moved.at[i] = next;
        next += (c->arrays[i].bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    }
}

static uint64_t move_address(const struct kernel_case *c, uint64_t address)
{
    for (int i = 0; i < c->count; i++) {
        uint64_t begin = (uint64_t)(uintptr_t)c->arrays[i].memory;
        if (address >= begin && address < begin + c->arrays[i].bytes)
            return moved.at[i] + (address - begin);
    }
    return address;
}

static const struct plim_array *move(const struct kernel_case *c, const struct plim_array *from,
                                     struct plim_array *to)
{
    if (!from) return NULL;
    *to = *from;
    to->data = move_address(c, from->data);
    return to;
}

static void move_operation(const struct kernel_case *c, const struct plim_op *op)
{
    moved.op = *op;
    for (int i = 0; i < op->n_out; i++) moved.op.out[i] = move(c, op->out[i], &moved.out[i]);
    for (int i = 0; i < op->n_in; i++) moved.op.in[i] = move(c, op->in[i], &moved.in[i]);
    for (int i = 0; i < op->n_scratch; i++)
        moved.op.scratch[i] = move(c, op->scratch[i], &moved.scratch[i]);
    for (int l = 0; l < op->n_lists; l++) {
        cr_assert(op->list_length <= LIST);
        for (size_t i = 0; i < op->list_length; i++)
            moved.pointers[l][i] = move(c, op->lists[l][i], &moved.lists[l][i]);
        moved.op.lists[l] = moved.pointers[l];
    }
}

static void copy_arrays(struct kernel_case *c, bool to_device)
{
    for (int i = 0; i < c->count; i++) {
        struct kernel_case_array *k = &c->arrays[i];
        enum plim_status st = to_device
                                  ? plim_device_write(device, moved.at[i], k->memory, k->bytes)
                                  : plim_device_read(device, moved.at[i], k->memory, k->bytes);
        cr_assert(st == PLIM_OK, "copying array %d: %s", i, plim_status_text(st));
    }
}

/* --- launches --------------------------------------------------------------------------------- */

#if PLIM_WITH_CUDA
static enum plim_status emit(void *user, const struct plim_cuda_launch *launch)
{
    struct kernel_case *c = user;
    c->launches++;
    c->kernel = launch->kernel;
    return plim_cuda_launch(device, launch);
}

/* Never for a newer GPU than it is. */
static enum plim_status launch_plan(struct kernel_case *c)
{
    if (c->info.compute_capability > device->info.compute_capability)
        c->info.compute_capability = device->info.compute_capability;
    c->launches = 0;
    return plans ? plim_cuda_plan(&c->info, &moved.op, emit, c) : PLIM_UNSUPPORTED;
}
#else
static enum plim_status launch_plan(struct kernel_case *c)
{
    (void)c;
    return PLIM_UNSUPPORTED;
}
#endif

/* 7.5's kernels for fp16 are empty from 8.0 on (devices/cuda/kernels/flash.cuh). */
bool kernel_case_has(int compute_capability)
{
    return compute_capability >= 80 || kernel_case_gpu()->compute_capability < 80;
}

enum kernel_case_way kernel_case_launch(struct kernel_case *c, const struct plim_op *op, int way)
{
    enum { PLANNED, PLANNED_AGAIN, LAUNCHED, WAYS };
    if (way >= WAYS) return KERNEL_CASE_NO_WAY;
    if (way == PLANNED) place_arrays(c), move_operation(c, op);
    copy_arrays(c, true);
    device->sdpa_engines = 0;
    enum plim_status st = way == LAUNCHED ? plim_device_launch(device, &moved.op) : launch_plan(c);
    bool none_of_ours = st == PLIM_UNSUPPORTED && way != LAUNCHED;
    cr_assert(st == PLIM_OK || none_of_ours, "%s, way %d: %s", plim_op_name(op->kind), way,
              plim_status_text(st));
    if (way == LAUNCHED) launched++;
    if (none_of_ours) return KERNEL_CASE_SKIPPED;
    copy_arrays(c, false);
    return way == PLANNED_AGAIN ? KERNEL_CASE_AGAIN : KERNEL_CASE_ANOTHER;
}
