/* An NCCL for tests: nothing is added up, but the time that it takes passes on the stand-in driver's clock
 * (libcuda.h).
 *
 *   PLIM_DOUBLE_NCCL           "GB_PER_SECOND,MILLISECONDS": bus bandwidth and latency; plain: 20,0.2
 *   PLIM_DOUBLE_NCCL_VERSION   what ncclGetVersion says; plain: 22809
 *
 * What the real one waits for ever for, hangs here: operations of one thread outside of a group, a group in
 * which not every GPU has the same operations. Of <nccl.h> there is only what is called.
 */
#include "gpu_state.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SUCCESS, UNHANDLED_CUDA_ERROR, SYSTEM_ERROR, INTERNAL_ERROR, INVALID_ARGUMENT, INVALID_USAGE };
enum { FLOAT32 = 7, MOST_OPERATIONS = 64 };

struct ncclComm {
    int rank, count;
    size_t bytes[MOST_OPERATIONS]; /* of this group */
    int operations;
    struct ncclComm *all; /* the first of them */
};

static struct {
    int depth;
    struct ncclComm *comms; /* whose operations are in it */
} group;

static int fault(void)
{
    while (gpu_fault(GPU_FAULT_NCCL_HANG)) pause();
    if (gpu_gone()) return UNHANDLED_CUDA_ERROR;
    return gpu_fault(GPU_FAULT_NCCL) ? SYSTEM_ERROR : SUCCESS;
}

__attribute__((noreturn)) static void hang(void)
{
    for (;;) pause();
}

/* --- time ------------------------------------------------------------------------------------- */

static void pass_time(int gpus, size_t bytes)
{
    double gigabytes = 20, milliseconds = 0.2;
    const char *told = getenv("PLIM_DOUBLE_NCCL");
    if (told && sscanf(told, "%lf,%lf", &gigabytes, &milliseconds) != 2) abort();
    gpu_time_passes(1e-3 * milliseconds +
                    2.0 * (gpus - 1) / gpus * (double)bytes / (1e9 * gigabytes));
}

/* --- communicators ---------------------------------------------------------------------------- */

int ncclGetVersion(int *version);
int ncclGetVersion(int *version)
{
    const char *told = getenv("PLIM_DOUBLE_NCCL_VERSION");
    *version = told ? atoi(told) : 22809;
    return SUCCESS;
}

const char *ncclGetErrorString(int result);
const char *ncclGetErrorString(int result)
{
    static const char *const texts[] = {"no error", "unhandled cuda error", "unhandled system error",
                                        "internal error", "invalid argument", "invalid usage"};
    bool known = result >= 0 && (size_t)result < sizeof(texts) / sizeof(texts[0]);
    return known ? texts[result] : "unknown result code";
}

/* How many GPUs CUDA shows to this process. */
static int shown_gpus(void)
{
    int (*get_count)(int *count), count = 0;
    void *symbol = gpu_driver_symbol("cuDeviceGetCount");
    if (!symbol) return 0;
    memcpy(&get_count, &symbol, sizeof(get_count));
    return get_count(&count) ? 0 : count;
}

int ncclCommInitAll(struct ncclComm **comms, int count, const int *devices);
int ncclCommInitAll(struct ncclComm **comms, int count, const int *devices)
{
    int result = fault();
    if (result) return result;
    if (count < 1 || count > shown_gpus() || devices) return INVALID_ARGUMENT;
    struct ncclComm *all = calloc((size_t)count, sizeof(*all));
    if (!all) return SYSTEM_ERROR;
    for (int i = 0; i < count; i++) {
        all[i] = (struct ncclComm){.rank = i, .count = count, .all = all};
        comms[i] = &all[i];
    }
    return SUCCESS;
}

int ncclCommDestroy(struct ncclComm *comm);
int ncclCommDestroy(struct ncclComm *comm)
{
    if (comm->rank == comm->count - 1) free(comm->all); /* ours destroy them in order */
    return SUCCESS;
}

/* --- operations ------------------------------------------------------------------------------- */

int ncclGroupStart(void);
int ncclGroupStart(void)
{
    group.depth++;
    return SUCCESS;
}

int ncclGroupEnd(void);
int ncclGroupEnd(void)
{
    struct ncclComm *all = group.comms;
    if (!group.depth) return INVALID_USAGE;
    if (--group.depth || !all) return SUCCESS;
    for (int i = 1; i < all->count; i++)
        if (all[i].operations != all[0].operations ||
            memcmp(all[i].bytes, all[0].bytes, sizeof(all[0].bytes)) != 0)
            hang();
    for (int i = 0; i < all[0].operations; i++) pass_time(all->count, all[0].bytes[i]);
    for (int i = 0; i < all->count; i++) {
        all[i].operations = 0;
        memset(all[i].bytes, 0, sizeof(all[i].bytes));
    }
    group.comms = NULL;
    return SUCCESS;
}

/* `stream` begins with the number of its GPU (libcuda.c), which has to be the communicator's. */
int ncclAllReduce(const void *from, void *to, size_t count, int type, int operation,
                  struct ncclComm *comm, const int *stream);
int ncclAllReduce(const void *from, void *to, size_t count, int type, int operation,
                  struct ncclComm *comm, const int *stream)
{
    static int gpu_of_first;
    int result = fault();
    if (result) return result;
    if (comm->rank == 0 && stream) gpu_of_first = *stream;
    bool is_its_own = stream && (comm->rank == 0) == (*stream == gpu_of_first);
    if (!from || !to || !count || type != FLOAT32 || operation || !is_its_own ||
        comm->operations == MOST_OPERATIONS)
        return INVALID_ARGUMENT;
    if (!group.depth && comm->count > 1) hang();
    comm->bytes[comm->operations++] = 4 * count;
    group.comms = comm->all;
    return SUCCESS;
}
