/* The real cuDNN on GPUs that are not there: it takes a GPU as a description, and says without
 * compiling which engines run our graphs there and what workspace they ask for. Compared with what
 * was measured (cuDNN 9.19), with what the engine is told to allocate (needs_attention.c), and with
 * what the stand-in of tests/doubles pretends. Skipped where cuDNN or the driver's stub is missing.
 *
 * No GPU is used, but a libcuda has to be loaded: the toolkit's stub is enough.
 */
#include "autotune/base/clock.h"
#include "devices/catalogue/catalogue.h"
#include "devices/cuda/fused_graph.h"
#include "devices/needs/needs_attention.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <criterion/parameterized.h>
#include <dlfcn.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* cuDNN leaks; the tests on the stand-in see whether we do. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "detect_leaks=0";
}

/* --- GPUs ------------------------------------------------------------------------------------ */

/* What the catalogue does not have. Source: CUDA C++ Programming Guide, technical specifications
 * per compute capability. */
struct gpu {
    const char *name;
    int shared_per_block, shared_per_sm, threads_per_sm, blocks_per_sm;
};

static const struct gpu gpus[] = {
    {"T4", 65536, 65536, 1024, 16},
    {"A100-SXM4-80GB", 166912, 167936, 2048, 32},
    {"RTX-3090", 101376, 102400, 1536, 16},
    {"RTX-4090", 101376, 102400, 1536, 24},
    {"H100-SXM5-80GB", 232448, 233472, 2048, 32},
    {"B200-SXM-180GB", 232448, 233472, 2048, 32},
    {"RTX-5090", 101376, 102400, 1536, 24},
};
enum { GPUS = sizeof gpus / sizeof *gpus, HOPPER = 4, BLACKWELL = 5 };
static int gpu_indices[GPUS] = {0, 1, 2, 3, 4, 5, 6};

static const struct plim_gpu *model_of(const struct gpu *gpu)
{
    const struct plim_gpu *model;
    cr_assert(eq(int, plim_catalogue_find(gpu->name, &model, NULL), PLIM_OK), "%s", gpu->name);
    return model;
}

static cudnnBackendDescriptor_t describe_gpu(const struct plim_dnn *dnn, const struct gpu *gpu)
{
    const struct plim_gpu *model = model_of(gpu);
    char json[1536];
    snprintf(json, sizeof json,
             "{\"maxGridSize\":[2147483647,65535,65535],\"maxBlockSize\":[1024,1024,64],"
             "\"regsPerBlock\":65536,\"multiProcessorCount\":%d,\"warpSize\":32,"
             "\"maxSharedMemoryPerBlock\":49152,\"maxSharedMemoryPerBlockOptin\":%d,"
             "\"reservedSharedMemoryPerBlock\":%d,\"maxRegistersPerSM\":65536,"
             "\"maxCtasPerSM\":%d,\"maxThreadsPerBlock\":1024,\"maxThreadsPerSM\":%d,"
             "\"pciDeviceId\":0,\"isTccDriver\":0,\"supportCoopLaunch\":1,"
             "\"totalGlobalMem\":%" PRId64 ",\"smClockRateKHz\":%d,\"memClockRateKHz\":1000000,"
             "\"l2CacheSize\":%" PRId64 ",\"cudaDeviceId\":0,\"deviceVer\":%d,"
             "\"driverVer\":13000,\"deviceName\":\"%s\"}",
             model->multiprocessors, gpu->shared_per_block,
             gpu->shared_per_sm - gpu->shared_per_block, gpu->blocks_per_sm, gpu->threads_per_sm,
             model->total_bytes, model->boost_mhz * 1000, model->l2_bytes,
             model->compute_capability * 10, model->match);
    cudnnBackendDescriptor_t d;
    cudnnStatus_t st = dnn->cudnnBackendCreateDescriptor(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, &d);
    if (!st)
        st = dnn->cudnnBackendSetAttribute(d, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION,
                                           CUDNN_TYPE_CHAR, (int64_t)strlen(json) + 1, json);
    if (!st) st = dnn->cudnnBackendFinalize(d);
    cr_assert(eq(int, st, 0), "%s", json);
    return d;
}

/* --- shapes ----------------------------------------------------------------------------------- */

struct shape {
    int64_t batch, heads, kv_heads, q, k, size;
    bool causal;
    int64_t mask[3]; /* batch, heads, rows; 0: none */
};

static const struct shape shapes[] = {
    {2, 8, 8, 512, 512, 64, true, {0}},
    {2, 8, 8, 512, 512, 80, false, {0}},
    {2, 8, 2, 512, 512, 128, true, {0}},
    {1, 6, 3, 256, 384, 96, false, {0}},
    {2, 8, 8, 197, 197, 64, false, {0}},
    {2, 8, 4, 197, 333, 64, true, {0}},
    {2, 8, 8, 512, 512, 64, false, {2, 1, 512}},
    {2, 8, 8, 512, 512, 64, false, {1, 8, 512}},
    {2, 8, 8, 512, 512, 64, false, {2, 1, 1}},
    {2, 8, 8, 197, 197, 64, false, {2, 8, 197}},
    {2, 8, 8, 64, 64, 64, true, {0}},
    {2, 8, 8, 100, 100, 72, true, {0}},
    {2, 8, 4, 100, 300, 96, false, {0}},
    {1, 1, 1, 128, 128, 64, true, {0}},
    {1, 8, 8, 1, 300, 64, false, {0}},
    {2, 8, 8, 512, 512, 256, true, {0}},
};
enum { SHAPES = sizeof shapes / sizeof *shapes };

static struct plim_dnn_shape lies(int64_t b, int64_t h, int64_t s, int64_t d)
{
    return (struct plim_dnn_shape){{b, h, s, d}, {s * h * d, d, h * d, 1}};
}

/* What is asked: a shape in one direction, with dropout or without. */
struct question {
    const struct shape *shape;
    bool backward, dropout;
};

static struct question question_at(int i)
{
    return (struct question){&shapes[i / 4], i & 1, i & 2};
}
enum { QUESTIONS = SHAPES * 4 };

static struct plim_fused_problem problem_of(const struct question *of, cudnnDataType_t type)
{
    const struct shape *s = of->shape;
    struct plim_fused_problem p;
    memset(&p, 0, sizeof p);
    struct plim_dnn_shape q = lies(s->batch, s->heads, s->q, s->size);
    struct plim_dnn_shape k = lies(s->batch, s->kv_heads, s->k, s->size);
    static const int of_q[] = {PLIM_FUSED_Q, PLIM_FUSED_O, PLIM_FUSED_DO, PLIM_FUSED_DQ};
    static const int of_k[] = {PLIM_FUSED_K, PLIM_FUSED_V, PLIM_FUSED_DK, PLIM_FUSED_DV};
    for (int i = 0; i < 4; i++) {
        p.shape[of_q[i]] = q;
        p.shape[of_k[i]] = k;
    }
    p.type = type;
    p.backward = of->backward;
    p.dropped = of->dropout ? 0.1 : 0;
    p.causal = s->causal;
    p.has_bias = s->mask[0] > 0;
    p.has_logsumexp = 1;
    if (p.has_bias)
        p.shape[PLIM_FUSED_BIAS] = plim_dnn_packed(s->mask[0], s->mask[1], s->mask[2], s->k);
    return p;
}

/* --- answers ---------------------------------------------------------------------------------- */

struct answer {
    int64_t engine, workspace_bytes; /* of the first engine; engine -1: there is none */
};

static struct answer ask(const struct plim_dnn *dnn, cudnnBackendDescriptor_t gpu,
                         const struct plim_fused_problem *problem)
{
    struct plim_dnn_graph graph;
    struct plim_dnn_configs configs;
    int id[PLIM_FUSED_TENSORS];
    cr_assert(eq(int, plim_fused_graph(&graph, dnn, NULL, problem, id), 0), "the graph is refused");
    struct answer answer = {-1, 0};
    plim_dnn_configs_open(&graph, gpu, &configs); /* fails where there is none */
    if (configs.count)
        answer = (struct answer){plim_dnn_config_engine(&configs, 0), configs.workspace_bytes[0]};
    plim_dnn_configs_close(&configs);
    plim_dnn_graph_close(&graph);
    return answer;
}

static int64_t round_up(int64_t n, int64_t to)
{
    return (n + to - 1) / to * to;
}

/* Measured: which engine comes first in backward, and every workspace. Blackwell keeps a bit for each
 * score that dropout may drop. */
static struct answer measured(const struct question *of, int cc)
{
    const struct shape *s = of->shape;
    int64_t heads = s->batch * s->heads;
    int64_t shared = s->heads == s->kv_heads ? 0 : 4 * heads * s->k * s->size;
    int64_t bits = cc / 10 == 10 && of->dropout
                       ? heads * round_up(s->q, 128) * round_up(s->k, 128) / 8 + 128
                       : 0;
    if (cc < 80 || (of->backward && s->size > 128 && cc != 90)) return (struct answer){-1, 0};
    if (!of->backward) return (struct answer){0, cc == 90 && s->q > 1 ? 256 : bits};
    if (cc == 90) return (struct answer){6, shared + 256};
    if (bits) return (struct answer){5, shared + bits};
    bool is_short = s->q > 1 && (s->q <= 128 || s->k <= 128);
    if (cc / 10 == 10 && !is_short) return (struct answer){5, shared ? shared + 128 : 0};
    return (struct answer){7, shared + 4 * heads * round_up(s->q, 8) * s->size + 128};
}

/* --- tests ------------------------------------------------------------------------------------ */

/* The real library, or a skipped test. The stub is found again by its name, before any libcuda that
 * the machine or the stand-ins have. */
static void load_with(const char *driver, struct plim_dnn *dnn)
{
    struct plim_error err = PLIM_ERROR_INIT;
    /* by its path, and before anything else: cuDNN takes what has the name already, and not the
     * stand-in that LD_LIBRARY_PATH may lead to */
    if (!dlopen(driver, RTLD_NOW | RTLD_GLOBAL)) cr_skip_test("%s: there is none", driver);
    unsetenv("PLIMSOLL_CUDA_PATH");
    if (plim_dnn_load(dnn, &err)) cr_skip_test("%s", err.text);
}

static void load_real(struct plim_dnn *dnn)
{
    load_with(PLIM_CUDA_FOLDER "/lib64/stubs/libcuda.so", dnn);
}

ParameterizedTestParameters(cudnn, engines_and_workspaces_are_as_measured)
{
    return cr_make_param_array(int, gpu_indices, GPUS);
}

ParameterizedTest(int *index, cudnn, engines_and_workspaces_are_as_measured)
{
    const struct gpu *gpu = &gpus[*index];
    struct plim_dnn dnn;
    load_real(&dnn);
    cudnnBackendDescriptor_t there = describe_gpu(&dnn, gpu);
    for (int i = 0; i < QUESTIONS; i++) {
        struct question of = question_at(i);
        struct plim_fused_problem p =
            problem_of(&of, i / 4 % 2 ? CUDNN_DATA_HALF : CUDNN_DATA_BFLOAT16);
        struct answer seen = ask(&dnn, there, &p);
        struct answer wanted = measured(&of, model_of(gpu)->compute_capability);
        if (!of.backward && seen.engine >= 0) seen.engine = 0; /* several serve, none matters */
        cr_expect(eq(i64, seen.engine, wanted.engine), "%s, question %d", gpu->name, i);
        cr_expect(eq(i64, seen.workspace_bytes, wanted.workspace_bytes), "%s, question %d",
                  gpu->name, i);
    }
    dnn.cudnnBackendDestroyDescriptor(there);
}

/* What PyTorch allocates for its cuDNN call on Hopper and Blackwell, by needs_attention.c, is what
 * our graph needs: the workspace of the first engine, dQ in fp32, the row sums. */
static void expect_need(const struct plim_device_info *info, const struct question *of)
{
    const struct shape *s = of->shape;
    struct plim_attention_need needs[PLIM_SDPA_MAX_NEEDS];
    struct plim_attention_shape shape = {.batch = s->batch,
                                         .heads = s->heads,
                                         .kv_heads = s->kv_heads,
                                         .q_length = s->q,
                                         .k_length = s->k,
                                         .head_size = s->size,
                                         .dtype = PLIM_BF16,
                                         .causal = s->causal,
                                         .dropout = of->dropout,
                                         .training = true,
                                         .contiguous_heads = true};
    struct answer engine = measured(of, info->compute_capability);
    bool asks_another = of->dropout && s->q == 1; /* kernel, and so nothing of this one */
    if (engine.engine < 0 || asks_another) return;
    int count = of->backward ? plim_attention_backward_needs(info, PLIM_SDPA_CUDNN, &shape, needs)
                             : plim_attention_forward_needs(info, PLIM_SDPA_CUDNN, &shape, needs);
    int64_t given = 0, rows = s->batch * s->heads * s->q;
    for (int i = 0; i < count; i++)
        if (needs[i].role == PLIM_NEED_TEMPORARY) given += needs[i].bytes;
    int64_t wanted = engine.workspace_bytes + (of->backward ? 4 * rows * (s->size + 1) : 0);
    cr_expect(eq(i64, given, wanted), "cc %d, %s, %d x %d, size %d", info->compute_capability,
              of->backward ? "backward" : "forward", (int)s->q, (int)s->k, (int)s->size);
}

Test(cudnn, measured_workspaces_are_what_the_engine_allocates)
{
    for (int c = HOPPER; c <= BLACKWELL; c++) {
        const struct plim_gpu *model = model_of(&gpus[c]);
        struct plim_device_info info = {.compute_capability = model->compute_capability,
                                        .multiprocessors = model->multiprocessors};
        for (int i = 0; i < QUESTIONS; i++) {
            struct question of = question_at(i);
            expect_need(&info, &of);
        }
    }
}

/* Compiles for a Hopper that is not there, with a driver that does nothing, and reads what was written:
 * the same plan, in less than a quarter of the time (cuDNN 9.19: 2 ms after 0.8 s). */
static void expect_read(const struct plim_dnn *dnn, cudnnBackendDescriptor_t there, bool backward)
{
    int id[PLIM_FUSED_TENSORS];
    struct question of = {&shapes[0], backward, true};
    struct plim_fused_problem p = problem_of(&of, CUDNN_DATA_BFLOAT16);
    struct plim_dnn_graph graph;
    struct plim_dnn_configs configs;
    cudnnBackendDescriptor_t plan, again = NULL;
    int64_t workspace = -1, read_workspace = -2;
    size_t bytes, again_bytes;
    cr_assert(eq(int, plim_fused_graph(&graph, dnn, NULL, &p, id), 0));
    cr_assert(eq(int, plim_dnn_configs_open(&graph, there, &configs), 0));
    double start = plim_clock_seconds();
    cr_assert(eq(int, plim_dnn_plan_open(&configs, 0, &plan, &workspace), 0));
    double compiled = plim_clock_seconds();
    char *text = plim_dnn_plan_write(dnn, plan, &bytes);
    cr_assert(text != NULL);
    double written = plim_clock_seconds();
    cr_assert(eq(int, plim_dnn_plan_read(dnn, NULL, there, text, bytes, &again, &read_workspace), 0));
    cr_expect(lt(dbl, plim_clock_seconds() - written, (compiled - start) / 4));
    cr_expect(eq(i64, read_workspace, workspace));
    char *text_again = plim_dnn_plan_write(dnn, again, &again_bytes);
    cr_assert(text_again != NULL);
    cr_expect(eq(str, text_again, text));
    free(text), free(text_again);
    dnn->cudnnBackendDestroyDescriptor(plan);
    dnn->cudnnBackendDestroyDescriptor(again);
    plim_dnn_configs_close(&configs);
    plim_dnn_graph_close(&graph);
}

Test(cudnn, a_plan_that_was_written_is_read_without_compiling)
{
    struct plim_dnn dnn;
    load_with(PLIM_DOUBLES_FOLDER "/empty/libcuda.so.1", &dnn);
    cudnnBackendDescriptor_t there = describe_gpu(&dnn, &gpus[HOPPER]);
    expect_read(&dnn, there, false);
    expect_read(&dnn, there, true);
    dnn.cudnnBackendDestroyDescriptor(there);
}

/* The stand-in must agree with it. */
Test(cudnn, stand_in_answers_as_measured)
{
    struct plim_dnn stand_in;
    setenv("PLIMSOLL_CUDA_PATH", PLIM_DOUBLES_FOLDER, 1);
    for (int c = 0; c < GPUS; c++) {
        setenv("PLIM_DOUBLE_GPU", gpus[c].name, 1);
        cr_assert(eq(int, plim_dnn_load(&stand_in, NULL), PLIM_OK));
        for (int i = 0; i < QUESTIONS; i++) {
            struct question of = question_at(i);
            struct plim_fused_problem p = problem_of(&of, CUDNN_DATA_BFLOAT16);
            struct answer seen = ask(&stand_in, NULL, &p);
            struct answer wanted = measured(&of, model_of(&gpus[c])->compute_capability);
            cr_expect(eq(int, seen.engine >= 0, wanted.engine >= 0), "%s, question %d",
                      gpus[c].name, i);
            cr_expect(eq(i64, seen.workspace_bytes, wanted.workspace_bytes), "%s, question %d",
                      gpus[c].name, i);
        }
        plim_dnn_unload(&stand_in);
    }
}
