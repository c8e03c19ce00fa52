/* NCCL's functions: communicators. */
#include "nccl.h"
#include "devices/virtual/memory/heap.h"
#include "devices/virtual/work/transfer.h"
#include "devices/virtual/machine/version.h"
#include <dlfcn.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum { UNIQUE_ID_BYTES = 128, NO_COLOR = -1, NEWEST_VERSION = 22809 };

struct unique_id {
    char bytes[UNIQUE_ID_BYTES];
};

/* ncclConfig_t starts like this in all versions; INT_MIN: not set. */
struct config {
    size_t bytes;
    unsigned magic, version;
    int blocking;
};

/* --- creating communicators ------------------------------------------------------------------- */

static bool is_blocking(const struct config *config, bool otherwise)
{
    return config && config->blocking != INT_MIN ? config->blocking != 0 : otherwise;
}

ANSWER int ncclGetUniqueId(struct unique_id *id)
{
    struct plim_exchange_place place;
    if (!id) return NCCL_INVALID_ARGUMENT;
    memset(id, 0, sizeof(*id));
    if (!plim_exchange_create(&place)) return NCCL_SYSTEM_ERROR;
    memcpy(id, &place, sizeof(place));
    return NCCL_OK;
}

/* Rejects more ranks than there are GPUs, since waiting for the others would be in vain. */
static int check_ranks(int ranks, int rank)
{
    const struct plim_machine *machine = plim_self_machine();
    if (ranks < 1 || rank < 0 || rank >= ranks) return NCCL_INVALID_ARGUMENT;
    if (plim_self_use_current()) return NCCL_CUDA_ERROR;
    if (ranks <= machine->gpu_count) return NCCL_OK;
    plim_self_note("NCCL: %d ranks on a machine of %d GPUs; each rank needs one of its own", ranks,
                   machine->gpu_count);
    return NCCL_INVALID_USAGE;
}

static int init(struct nccl_comm **out, int ranks, const struct unique_id *id, int rank,
                const struct config *config)
{
    struct plim_exchange_place place;
    if (!out) return NCCL_INVALID_ARGUMENT;
    *out = NULL;
    int status = check_ranks(ranks, rank);
    if (status) return status;
    struct nccl_comm *comm = plim_nccl_create(ranks, rank, plim_self_device());
    if (!comm) return NCCL_SYSTEM_ERROR;
    comm->is_blocking = is_blocking(config, true);
    memcpy(&place, id, sizeof(place));
    place.path[sizeof(place.path) - 1] = '\0';
    status = plim_nccl_join(comm, &place);
    if (!status) status = plim_nccl_begin(comm);
    if (status && status != NCCL_IN_PROGRESS) plim_nccl_destroy(comm);
    else *out = comm;
    return status;
}

ANSWER int ncclCommInitRankConfig(struct nccl_comm **out, int ranks, struct unique_id id, int rank,
                                  const struct config *config)
{
    return init(out, ranks, &id, rank, config);
}

ANSWER int ncclCommInitRank(struct nccl_comm **out, int ranks, struct unique_id id, int rank)
{
    return init(out, ranks, &id, rank, NULL);
}

/* Several ids are several meeting places; the first is enough. */
ANSWER int ncclCommInitRankScalable(struct nccl_comm **out, int ranks, int rank, int count,
                                    const struct unique_id *ids, const struct config *config)
{
    if (count < 1 || !ids) return NCCL_INVALID_ARGUMENT;
    return init(out, ranks, &ids[0], rank, config);
}

ANSWER int ncclGroupStart(void);
ANSWER int ncclGroupEnd(void);

ANSWER int ncclCommInitAll(struct nccl_comm **out, int count, const int *devices)
{
    struct unique_id id;
    int before = plim_self_device();
    if (!out || count < 1) return NCCL_INVALID_ARGUMENT;
    int status = ncclGetUniqueId(&id);
    if (status) return status;
    ncclGroupStart();
    for (int i = 0; i < count && !status; i++) {
        int failed = plim_self_set_device(devices ? devices[i] : i);
        status = failed ? NCCL_CUDA_ERROR : init(&out[i], count, &id, i, NULL);
    }
    int ended = ncclGroupEnd();
    plim_self_set_device(before);
    return status ? status : ended;
}

/* --- deriving communicators from others ------------------------------------------------------- */

static int invite(struct nccl_comm *parent, int color, int key, bool is_in)
{
    struct nccl_invitation invitation = {.color = color, .key = key};
    if (is_in && !plim_exchange_create(&invitation.place)) return NCCL_SYSTEM_ERROR;
    plim_nccl_lock();
    bool posted = plim_exchange_post(parent->exchange, parent->rank, EXCHANGE_SETUP, &invitation,
                                     sizeof(invitation));
    plim_nccl_unlock();
    return posted ? NCCL_OK : NCCL_SYSTEM_ERROR;
}

static int derive(struct nccl_comm *parent, uint32_t asked, int color, int key,
                  struct nccl_comm **out, const struct config *config)
{
    bool is_in = color != NO_COLOR;
    uint64_t number = plim_exchange_count(parent->exchange, parent->rank, EXCHANGE_SETUP);
    int status = invite(parent, color, key, is_in);
    if (status || !is_in) return status;
    struct nccl_comm *comm = plim_nccl_create(0, 0, parent->device);
    if (!comm) return NCCL_SYSTEM_ERROR;
    comm->is_blocking = is_blocking(config, parent->is_blocking);
    comm->origin.parent = parent;
    comm->origin.number = number;
    comm->origin.asked = asked;
    plim_nccl_lock();
    plim_nccl_retain(parent);
    plim_nccl_unlock();
    status = plim_nccl_begin(comm);
    if (status && status != NCCL_IN_PROGRESS) plim_nccl_destroy(comm);
    else *out = comm;
    return status;
}

ANSWER int ncclCommSplit(struct nccl_comm *parent, int color, int key, struct nccl_comm **out,
                         const struct config *config)
{
    if (!parent || !out || color < NO_COLOR) return NCCL_INVALID_ARGUMENT;
    *out = NULL;
    int status = plim_nccl_ensure_ready(parent);
    if (status) return status;
    return derive(parent, plim_nccl_everyone(parent->ranks), color, key, out, config);
}

/* Also works for a communicator that has failed, which is its purpose. */
ANSWER int ncclCommShrink(struct nccl_comm *parent, const int *excluded, int count,
                          struct nccl_comm **out, const struct config *config, int flags)
{
    (void)flags;
    if (!parent || !out || !excluded || count < 1) return NCCL_INVALID_ARGUMENT;
    *out = NULL;
    if (parent->stage != NCCL_READY) return NCCL_INVALID_ARGUMENT;
    uint32_t asked = plim_nccl_everyone(parent->ranks);
    for (int i = 0; i < count; i++) {
        if (excluded[i] < 0 || excluded[i] >= parent->ranks) return NCCL_INVALID_ARGUMENT;
        asked &= ~(1u << excluded[i]);
    }
    if (!(asked >> parent->rank & 1)) return NCCL_INVALID_USAGE;
    return derive(parent, asked, 0, 0, out, config);
}

/* --- destroying communicators ----------------------------------------------------------------- */

/* No work is ever outstanding. */
ANSWER int ncclCommFinalize(struct nccl_comm *comm)
{
    return comm ? plim_nccl_ensure_ready(comm) : NCCL_INVALID_ARGUMENT;
}

/* Results may still be read. */
ANSWER int ncclCommDestroy(struct nccl_comm *comm)
{
    if (comm) plim_nccl_destroy(comm);
    return NCCL_OK;
}

/* Another thread may be waiting on the communicator. */
ANSWER int ncclCommAbort(struct nccl_comm *comm)
{
    if (!comm) return NCCL_OK;
    plim_nccl_lock();
    if (!comm->error) comm->error = NCCL_INVALID_USAGE;
    plim_nccl_unlock();
    plim_nccl_destroy(comm);
    return NCCL_OK;
}

/* --- queries ---------------------------------------------------------------------------------- */

ANSWER int ncclCommCount(const struct nccl_comm *comm, int *out)
{
    if (!comm || !out) return NCCL_INVALID_ARGUMENT;
    *out = comm->ranks;
    return NCCL_OK;
}

ANSWER int ncclCommUserRank(const struct nccl_comm *comm, int *out)
{
    if (!comm || !out) return NCCL_INVALID_ARGUMENT;
    *out = comm->rank;
    return NCCL_OK;
}

ANSWER int ncclCommCuDevice(const struct nccl_comm *comm, int *out)
{
    if (!comm || !out) return NCCL_INVALID_ARGUMENT;
    *out = comm->device;
    return NCCL_OK;
}

ANSWER int ncclCommGetAsyncError(struct nccl_comm *comm, int *out)
{
    if (!comm || !out) return NCCL_INVALID_ARGUMENT;
    *out = comm->stage == NCCL_READY ? comm->error : plim_nccl_advance(comm);
    return NCCL_OK;
}

static int query_version(void)
{
    typedef int query(int *);
    int version = NEWEST_VERSION;
    void *library = plim_version_library("libnccl.so");
    void *found = library ? dlsym(library, "ncclGetVersion") : NULL;
    query *function;
    memcpy(&function, &found, sizeof(function));
    if (function && function(&version)) return NEWEST_VERSION;
    return version;
}

ANSWER int ncclGetVersion(int *out)
{
    static int version;
    if (!out) return NCCL_INVALID_ARGUMENT;
    if (!version) version = query_version();
    *out = version;
    return NCCL_OK;
}

ANSWER const char *ncclGetErrorString(int status)
{
    static const char *const texts[] = {
        "no error", "unhandled cuda error", "unhandled system error", "internal error",
        "invalid argument", "invalid usage", "remote process exited or network error",
        "NCCL operation in progress",
    };
    return status >= 0 && status <= NCCL_IN_PROGRESS ? texts[status] : "unknown result code";
}

ANSWER const char *ncclGetLastError(const struct nccl_comm *comm)
{
    (void)comm;
    return plim_nccl_last_error();
}

ANSWER void ncclResetDebugInit(void) {}

/* --- memory ----------------------------------------------------------------------------------- */

/* NCCL maps whole pages, so that other processes can map them too. */
ANSWER int ncclMemAlloc(void **out, size_t bytes)
{
    uintptr_t at = 0;
    if (!out || !bytes) return NCCL_INVALID_ARGUMENT;
    bytes = (bytes + HEAP_PAGE_BYTES - 1) / HEAP_PAGE_BYTES * HEAP_PAGE_BYTES;
    int device = plim_self_device(), failed = plim_self_use(device);
    if (!failed) failed = plim_heap_allocate(device, bytes, &at);
    *out = (void *)at;
    return failed ? NCCL_CUDA_ERROR : NCCL_OK;
}

ANSWER int ncclMemFree(void *at)
{
    return plim_heap_free((uintptr_t)at) ? NCCL_INVALID_ARGUMENT : NCCL_OK;
}

/* Registration only makes transfers faster. */
ANSWER int ncclCommRegister(const struct nccl_comm *comm, void *at, size_t bytes, void **out)
{
    (void)bytes;
    if (!comm || !out) return NCCL_INVALID_ARGUMENT;
    *out = at;
    return NCCL_OK;
}

ANSWER int ncclCommDeregister(const struct nccl_comm *comm, void *handle)
{
    (void)handle;
    return comm ? NCCL_OK : NCCL_INVALID_ARGUMENT;
}

ANSWER int ncclCommWindowRegister(struct nccl_comm *comm, void *at, size_t bytes, void **out,
                                  int flags)
{
    (void)flags;
    return ncclCommRegister(comm, at, bytes, out);
}

ANSWER int ncclCommWindowDeregister(struct nccl_comm *comm, void *window)
{
    return ncclCommDeregister(comm, window);
}

PROFILED(ncclGetUniqueId)
PROFILED(ncclCommInitRankConfig)
PROFILED(ncclCommInitRank)
PROFILED(ncclCommInitRankScalable)
PROFILED(ncclCommInitAll)
PROFILED(ncclCommSplit)
PROFILED(ncclCommShrink)
PROFILED(ncclCommFinalize)
PROFILED(ncclCommDestroy)
PROFILED(ncclCommAbort)
PROFILED(ncclCommCount)
PROFILED(ncclCommUserRank)
PROFILED(ncclCommCuDevice)
PROFILED(ncclCommGetAsyncError)
PROFILED(ncclGetVersion)
PROFILED(ncclGetErrorString)
PROFILED(ncclGetLastError)
PROFILED(ncclResetDebugInit)
PROFILED(ncclMemAlloc)
PROFILED(ncclMemFree)
PROFILED(ncclCommRegister)
PROFILED(ncclCommDeregister)
PROFILED(ncclCommWindowRegister)
PROFILED(ncclCommWindowDeregister)
