#include "nccl.h"
#include "autotune/base/stats.h"
#include "context.h"
#include "library.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WARM_UPS = 5, REPEATS = 21 };

/* Declarations from <nccl.h>, which is not available at build time. */
enum { NCCL_SUCCESS = 0, NCCL_FLOAT32 = 7, NCCL_SUM = 0 };
typedef struct ncclComm *nccl_comm;

struct nccl {
    int (*comm_init_all)(nccl_comm *comms, int count, const int *devices);
    int (*comm_destroy)(nccl_comm comm);
    int (*group_start)(void);
    int (*group_end)(void);
    int (*all_reduce)(const void *from, void *to, size_t count, int type, int operation,
                      nccl_comm comm, CUstream stream);
    const char *(*error_string)(int result);
};

static const struct plim_cuda_library_symbol symbols[] = {
    {"ncclCommInitAll", offsetof(struct nccl, comm_init_all)},
    {"ncclCommDestroy", offsetof(struct nccl, comm_destroy)},
    {"ncclGroupStart", offsetof(struct nccl, group_start)},
    {"ncclGroupEnd", offsetof(struct nccl, group_end)},
    {"ncclAllReduce", offsetof(struct nccl, all_reduce)},
    {"ncclGetErrorString", offsetof(struct nccl, error_string)},
};

struct member {
    struct plim_cuda_context context;
    CUdeviceptr buffer;
    CUevent before, after;
};

struct ring {
    struct nccl nccl;
    struct plim_error *err;
    int count;
    struct member *members;
    nccl_comm *comms;
};

/* --- calls ------------------------------------------------------------------------------------ */

static enum plim_status check_nccl(const struct ring *r, const char *call, int result)
{
    if (result == NCCL_SUCCESS) return PLIM_OK;
    return plim_fail(r->err, PLIM_UNSUPPORTED, "%s: %s (%d)", call, r->nccl.error_string(result), result);
}

static enum plim_status check_driver(const struct ring *r, int gpu, const char *call,
                                     CUresult result)
{
    struct plim_cuda_context *c = &r->members[gpu].context;
    enum plim_status st = plim_cuda_check(c, call, result);
    return st ? plim_fail(r->err, st, "GPU %d of %d: %s", gpu, r->count, c->message) : PLIM_OK;
}

#define NCCL(r, call, name, ...) PLIM_TRY(check_nccl(r, name, (r)->nccl.call(__VA_ARGS__)))
#define DRIVER(r, gpu, call, ...)                                                                  \
    PLIM_TRY(check_driver(r, gpu, #call, (r)->members[gpu].context.driver->call(__VA_ARGS__)))

/* Makes the following calls apply to this GPU. */
static enum plim_status enter(const struct ring *r, int gpu)
{
    enum plim_status st = PLIM_OK;
    DRIVER(r, gpu, cuCtxSetCurrent, r->members[gpu].context.handle);
out:
    return st;
}

/* --- a ring ----------------------------------------------------------------------------------- */

/* The message for a missing library names many places: its first half is enough here. */
static enum plim_status load(struct ring *r, struct plim_all_reduce *out)
{
    struct plim_cuda_library library;
    struct plim_error inner = PLIM_ERROR_INIT;
    enum plim_status st = plim_cuda_library_open(&plim_cuda_library_nccl, &library, &inner);
    if (st)
        return plim_fail(r->err, st, "%.*s", (int)strcspn(inner.text, ";"), inner.text);
    snprintf(out->nccl, sizeof(out->nccl), "%zu.%zu.%zu", library.version / 10000,
             library.version / 100 % 100, library.version % 100);
    return plim_cuda_library_resolve(&library, symbols, sizeof(symbols) / sizeof(symbols[0]),
                                     &r->nccl, r->err);
}

static enum plim_status open_member(const struct ring *r, int gpu)
{
    struct plim_device_info info = {0};
    struct member *m = &r->members[gpu];
    enum plim_status st = plim_cuda_context_open(&m->context, gpu, &info, r->err);
    if (st) return st;
    DRIVER(r, gpu, cuMemAlloc, &m->buffer, PLIM_ALL_REDUCE_LARGE_BYTES);
    DRIVER(r, gpu, cuEventCreate, &m->before, CU_EVENT_DEFAULT);
    DRIVER(r, gpu, cuEventCreate, &m->after, CU_EVENT_DEFAULT);
out:
    return st;
}

static enum plim_status open_ring(struct ring *r)
{
    enum plim_status st = PLIM_OK;
    r->members = calloc((size_t)r->count, sizeof(*r->members));
    r->comms = calloc((size_t)r->count, sizeof(*r->comms));
    if (!r->members || !r->comms) return plim_no_memory(r->err);
    for (int i = 0; i < r->count; i++) PLIM_TRY(open_member(r, i));
    NCCL(r, comm_init_all, "ncclCommInitAll", r->comms, r->count, NULL);
out:
    return st;
}

/* Destroys only what NCCL may leave outside of this process, whose end frees the rest. */
static void close_ring(struct ring *r, bool is_sound)
{
    for (int i = 0; is_sound && i < r->count; i++) (void)r->nccl.comm_destroy(r->comms[i]);
    free(r->members);
    free(r->comms);
}

/* --- timing ----------------------------------------------------------------------------------- */

static enum plim_status reduce(const struct ring *r, int bytes)
{
    enum plim_status st = PLIM_OK;
    NCCL(r, group_start, "ncclGroupStart");
    for (int i = 0; i < r->count; i++) {
        void *buffer = (void *)(uintptr_t)r->members[i].buffer;
        NCCL(r, all_reduce, "ncclAllReduce", buffer, buffer, (size_t)bytes / sizeof(float),
             NCCL_FLOAT32, NCCL_SUM, r->comms[i], r->members[i].context.stream);
    }
    NCCL(r, group_end, "ncclGroupEnd");
out:
    return st;
}

/* Records an event; `after`: the event after the timed one, otherwise that before it. */
static enum plim_status mark(const struct ring *r, bool after)
{
    enum plim_status st = PLIM_OK;
    for (int i = 0; i < r->count; i++) {
        const struct member *m = &r->members[i];
        PLIM_TRY(enter(r, i));
        DRIVER(r, i, cuEventRecord, after ? m->after : m->before, m->context.stream);
    }
out:
    return st;
}

/* Stores the shortest time measured by a GPU. */
static enum plim_status read_seconds(const struct ring *r, double *seconds)
{
    enum plim_status st = PLIM_OK;
    for (int i = 0; i < r->count; i++) {
        const struct member *m = &r->members[i];
        float milliseconds = 0;
        PLIM_TRY(enter(r, i));
        DRIVER(r, i, cuStreamSynchronize, m->context.stream);
        DRIVER(r, i, cuEventElapsedTime, &milliseconds, m->before, m->after);
        if (i == 0 || 1e-3 * milliseconds < *seconds) *seconds = 1e-3 * milliseconds;
    }
out:
    return st;
}

static enum plim_status time_size(const struct ring *r, int bytes, double *median)
{
    double seconds[REPEATS];
    struct plim_stats stats;
    enum plim_status st = PLIM_OK;
    for (int i = -WARM_UPS; i < REPEATS; i++) {
        PLIM_TRY(reduce(r, PLIM_ALL_REDUCE_LARGE_BYTES));
        PLIM_TRY(mark(r, false));
        PLIM_TRY(reduce(r, bytes));
        PLIM_TRY(mark(r, true));
        PLIM_TRY(read_seconds(r, &seconds[i < 0 ? 0 : i]));
    }
    plim_stats_compute(seconds, REPEATS, &stats);
    *median = stats.median;
out:
    return st;
}

enum plim_status plim_nccl_measure(int gpus, struct plim_all_reduce *out, struct plim_error *err)
{
    struct ring r = {.err = err, .count = gpus};
    double small = 0, large = 0;
    enum plim_status st = PLIM_OK;
    if (gpus < 2) return plim_fail(err, PLIM_INVALID, "an all-reduce is among two GPUs at least");
    PLIM_TRY(load(&r, out));
    PLIM_TRY(open_ring(&r));
    PLIM_TRY(time_size(&r, PLIM_ALL_REDUCE_SMALL_BYTES, &small));
    PLIM_TRY(time_size(&r, PLIM_ALL_REDUCE_LARGE_BYTES, &large));
    if (plim_all_reduce_fit(gpus, small, large, out))
        st = plim_fail(err, PLIM_UNSUPPORTED, "NCCL's all-reduce of %d bytes took %g s",
                       PLIM_ALL_REDUCE_LARGE_BYTES, large);
out:
    close_ring(&r, !st);
    return st;
}
