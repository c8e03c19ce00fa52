/* What is seen first of a GPU: what a context takes, then what the first product of cuBLASLt and the
 * first training step add to it. Nothing is warm: seconds are those of loading, not of computing. */
#include "autotune/base/round.h"
#include "autotune/base/clock.h"
#include "on_gpu.h"

#define ALIGNMENT 512

/* bf16 (M, N) <- (M, K) (K, N): a layer of GPT-2 on half a row. */
enum { M = 512, N = 768, K = 768, WORKSPACE = 32 << 20 };

static enum plim_status first_product(struct plim_device *device, double *seconds)
{
    static const int64_t bytes[] = {2 * M * N, 2 * M * K, 2 * K * N, WORKSPACE};
    struct plim_array a[] = {
        {.shape = {M, N}, .stride = {N, 1}, .ndim = 2, .dtype = PLIM_BF16},
        {.shape = {M, K}, .stride = {K, 1}, .ndim = 2, .dtype = PLIM_BF16},
        {.shape = {K, N}, .stride = {N, 1}, .ndim = 2, .dtype = PLIM_BF16},
        {.shape = {WORKSPACE}, .stride = {1}, .ndim = 1, .dtype = PLIM_U8},
    };
    struct plim_op op = {.kind = PLIM_OP_MATMUL, .n_out = 1, .n_in = 2, .n_scratch = 1, .alpha = 1,
                         .out = {&a[0]}, .in = {&a[1], &a[2]}, .scratch = {&a[3]}};
    int64_t total = 0;
    uint64_t memory;
    for (int i = 0; i < 4; i++) total += plim_round_up(bytes[i], ALIGNMENT);
    double begin = plim_clock_seconds(), now;
    total = plim_round_up(total, PLIM_PAGE_BYTES);
    enum plim_status st = plim_device_segment_get(device, total, &memory);
    if (st) return st;
    for (int i = 0; i < 4; i++) {
        a[i].data = i ? a[i - 1].data + (uint64_t)plim_round_up(bytes[i - 1], ALIGNMENT) : memory;
    }
    st = plim_device_launch(device, &op);
    if (!st) st = plim_device_now(device, &now); /* after it */
    plim_device_segment_return(device, memory, total);
    *seconds = plim_clock_seconds() - begin;
    return st;
}

static void add_stage(const struct on_gpu *gpu, json_t *line, const char *name, double seconds)
{
    json_t *stage = json_pack("{s:f}", "seconds", seconds);
    on_gpu_add_overhead(gpu, stage);
    json_object_set_new(line, name, stage);
}

static int start(struct on_gpu *gpu, const json_t *c, json_t *line)
{
    static struct plim_spec spec;
    static struct plim_replay out;
    struct plim_train_setting setting;
    struct plim_error err = PLIM_ERROR_INIT;
    char engines[PLIM_SDPA_ENGINES_TEXT];
    double begin = plim_clock_seconds(), seconds = 0;
    on_gpu_open(gpu);
    add_stage(gpu, line, "context", plim_clock_seconds() - begin);
    enum plim_status st = first_product(gpu->device, &seconds);
    add_stage(gpu, line, "first_product", seconds);
    begin = plim_clock_seconds();
    bool known = on_gpu_read_case(gpu, c, &spec, &setting, &err);
    if (known && !st) st = on_gpu_replay(gpu->device, &spec, &setting, &out, &err);
    add_stage(gpu, line, "first_steps", plim_clock_seconds() - begin);
    plim_sdpa_engines_text(out.sdpa_engines, engines);
    json_object_set_new(line, "verdict", json_string(plim_status_text(st ? st : out.verdict)));
    json_object_set_new(line, "attention_engine", json_string(engines));
    if (err.text[0]) json_object_set_new(line, "error", json_string(err.text));
    gpu->seconds = 1e-9; /* no other case */
    return !known || st || out.verdict;
}

int on_gpu_start(struct on_gpu *gpu)
{
    return on_gpu_each(gpu, start);
}
