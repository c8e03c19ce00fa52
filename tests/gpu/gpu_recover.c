/* What goes wrong on a GPU on purpose: memory that does not suffice, and a context that breaks. */
#include "autotune/base/clock.h"
#include "on_gpu.h"
#include "support/case_file.h"

#include <stdio.h>

struct subject {
    struct plim_spec spec;
    struct plim_train_setting setting;
};
static struct subject subject;

/* The first case of the file. */
static int keep_case(struct on_gpu *gpu, const json_t *c, json_t *line)
{
    struct plim_error err = PLIM_ERROR_INIT;
    (void)line;
    if (!on_gpu_read_case(gpu, c, &subject.spec, &subject.setting, &err))
        on_gpu_give_up("%s: %s", gpu->cases, err.text);
    gpu->seconds = 1e-9; /* no other case */
    return 0;
}

static enum plim_status run(struct on_gpu *gpu, int64_t batch, struct plim_replay *out)
{
    struct plim_train_setting setting = subject.setting;
    struct plim_error err = PLIM_ERROR_INIT;
    setting.micro_batch = batch;
    return on_gpu_replay(gpu->device, &subject.spec, &setting, out, &err);
}

/* A batch that does not fit. */
static int64_t too_large(struct on_gpu *gpu)
{
    static struct plim_replay replay;
    int64_t batch = subject.setting.micro_batch;
    do {
        batch *= 4;
    } while (run(gpu, batch, &replay) == PLIM_OK && replay.verdict == PLIM_OK);
    return batch;
}

int on_gpu_oom(struct on_gpu *gpu)
{
    static struct plim_replay first, again, large;
    int failed = 0;
    on_gpu_each(gpu, keep_case);
    on_gpu_open(gpu);
    int64_t small_batch = subject.setting.micro_batch, batch = too_large(gpu);
    if (run(gpu, small_batch, &first)) on_gpu_give_up("the case does not run");
    int64_t free_bytes = plim_device_free_bytes(gpu->device);
    for (long i = 0; i < gpu->times; i++) {
        double begin = plim_clock_seconds();
        enum plim_status st = run(gpu, batch, &large);
        double out_of_memory = plim_clock_seconds();
        if (!st) st = run(gpu, small_batch, &again);
        bool ok = !st && large.verdict == PLIM_OOM && again.verdict == PLIM_OK &&
                  again.peak_reserved_bytes == first.peak_reserved_bytes;
        failed += !ok;
        on_gpu_say(json_pack("{s:b s:s s:s s:f s:f s:I}", "ok", ok, "verdict",
                              plim_status_text(large.verdict), "why", large.why, "oom_seconds",
                              out_of_memory - begin, "next_seconds",
                              plim_clock_seconds() - out_of_memory, "missing_bytes",
                              (json_int_t)(free_bytes - plim_device_free_bytes(gpu->device))));
        if (st) break;
    }
    return failed;
}

/* --- the whole GPU ---------------------------------------------------------------------------- */

struct segments {
    struct {
        uint64_t address;
        int64_t bytes;
    } held[1024];
    int count;
    int64_t bytes; /* of all */
};

/* Takes memory until the driver has no page left. Returns what it said last. */
static enum plim_status take_everything(struct plim_device *device, struct segments *all)
{
    enum plim_status st = PLIM_OK;
    for (int64_t bytes = INT64_C(1) << 30; bytes >= PLIM_PAGE_BYTES; bytes /= 2)
        while (all->count < 1024) {
            st = plim_device_segment_get(device, bytes, &all->held[all->count].address);
            if (st) break;
            all->held[all->count++].bytes = bytes;
            all->bytes += bytes;
        }
    return st;
}

/* A kernel that was not loaded before: the GPU has no memory for its code, or only just enough. */
static enum plim_status load_a_kernel(struct plim_device *device, uint64_t memory)
{
    struct plim_array a = {
        .data = memory, .shape = {64, 64}, .stride = {64, 1}, .ndim = 2, .dtype = PLIM_F16};
    struct plim_op op = {.kind = PLIM_OP_SOFTMAX, .n_out = 1, .n_in = 1, .dim = 1, .out = {&a}, .in = {&a}};
    double seconds;
    enum plim_status st = plim_device_launch(device, &op);
    return st ? st : plim_device_now(device, &seconds);
}

/* No limit of ours is near: what refuses is the driver. */
int on_gpu_fill(struct on_gpu *gpu)
{
    static struct plim_replay first, again;
    static struct segments all;
    on_gpu_each(gpu, keep_case);
    on_gpu_open(gpu);
    int64_t batch = subject.setting.micro_batch;
    if (run(gpu, batch, &first) || first.verdict) on_gpu_give_up("the case does not run");
    int64_t free_bytes = plim_device_free_bytes(gpu->device);
    plim_device_limit(gpu->device, PLIM_UNLIMITED_BYTES);
    enum plim_status full = take_everything(gpu->device, &all);
    bool refused = plim_device_has_refused(gpu->device);
    int64_t left_bytes = plim_device_free_bytes(gpu->device);
    enum plim_status loaded = all.count ? load_a_kernel(gpu->device, all.held[0].address) : full;
    for (int i = 0; i < all.count; i++)
        plim_device_segment_return(gpu->device, all.held[i].address, all.held[i].bytes);
    enum plim_status st = plim_device_reset(gpu->device);
    if (!st) st = run(gpu, batch, &again);
    bool ok = full == PLIM_OOM && refused && (loaded == PLIM_OK || loaded == PLIM_OOM) && !st &&
              again.verdict == PLIM_OK && again.peak_reserved_bytes == first.peak_reserved_bytes;
    on_gpu_say(json_pack("{s:b s:s s:b s:s s:s s:I s:I s:I}", "ok", ok, "full",
                         plim_status_text(full), "driver_refused", refused, "first_kernel",
                         plim_status_text(loaded), "afterwards",
                         plim_status_text(st ? st : again.verdict), "held_bytes",
                         (json_int_t)all.bytes, "left_bytes", (json_int_t)left_bytes,
                         "missing_bytes",
                         (json_int_t)(free_bytes - plim_device_free_bytes(gpu->device))));
    return !ok;
}

/* --- a broken context ------------------------------------------------------------------------- */

/* An operation on an address outside of every allocation: the GPU's context ends with it. On a device whose
 * memory is this process's, the process does. */
static enum plim_status touch_nothing(struct plim_device *device)
{
    struct plim_array a = {
        .data = UINT64_C(1) << 45, .shape = {1 << 20}, .stride = {1}, .ndim = 1, .dtype = PLIM_F32};
    struct plim_op op = {.kind = PLIM_OP_FILL, .n_out = 1, .alpha = 1, .out = {&a}};
    double seconds;
    enum plim_status st = plim_device_launch(device, &op);
    return st ? st : plim_device_now(device, &seconds);
}

int on_gpu_break(struct on_gpu *gpu)
{
    static struct plim_replay replay;
    on_gpu_each(gpu, keep_case);
    double begin = plim_clock_seconds();
    on_gpu_open(gpu);
    double opened = plim_clock_seconds();
    enum plim_status st = run(gpu, subject.setting.micro_batch, &replay);
    on_gpu_say(json_pack("{s:b s:f s:f}", "ran", !st && replay.verdict == PLIM_OK, "open_seconds",
                          opened - begin, "run_seconds", plim_clock_seconds() - opened));
    st = touch_nothing(gpu->device);
    enum plim_status after = run(gpu, subject.setting.micro_batch, &replay);
    on_gpu_say(json_pack("{s:s s:s s:s}", "status", plim_status_text(st), "status_after",
                          plim_status_text(after), "message", plim_device_message(gpu->device)));
    return !(st == PLIM_LOST && after == PLIM_LOST);
}
