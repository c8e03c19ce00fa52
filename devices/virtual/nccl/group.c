/* Groups: calls of a thread between ncclGroupStart() and ncclGroupEnd() begin at the end of the group. */
#include "nccl.h"
#include "autotune/base/array.h"

static _Thread_local struct {
    int depth;
    PLIM_ARRAY(struct nccl_comm *) setups;
    PLIM_ARRAY(struct nccl_call) calls;
} group;

int plim_nccl_begin(struct nccl_comm *comm)
{
    if (comm->error) return comm->error;
    if (group.depth) {
        if (PLIM_ARRAY_PUSH(&group.setups, comm) != PLIM_OK) return NCCL_SYSTEM_ERROR;
        return NCCL_OK;
    }
    return comm->is_blocking ? plim_nccl_wait(&comm, 1) : plim_nccl_advance(comm);
}

int plim_nccl_call(const struct nccl_call *call)
{
    if (!group.depth) return plim_nccl_run(call);
    struct nccl_call copy = *call;
    for (size_t i = 0; i < group.calls.count; i++)
        copy.turn += group.calls.items[i].comm == copy.comm;
    return PLIM_ARRAY_PUSH(&group.calls, copy) == PLIM_OK ? NCCL_OK : NCCL_SYSTEM_ERROR;
}

/* Runs the first call of every communicator, then the second, and so on: a call may need data that another rank of this
 * thread sends in an earlier call. */
static int run_calls(void)
{
    size_t done = 0;
    int error = NCCL_OK;
    for (int turn = 0; done < group.calls.count; turn++)
        for (size_t i = 0; i < group.calls.count; i++) {
            if (group.calls.items[i].turn != turn) continue;
            int status = plim_nccl_run(&group.calls.items[i]);
            if (!error) error = status;
            done++;
        }
    return error;
}

static int begin_setups(void)
{
    bool is_blocking = true;
    for (size_t i = 0; i < group.setups.count; i++)
        is_blocking = is_blocking && group.setups.items[i]->is_blocking;
    if (is_blocking) return plim_nccl_wait(group.setups.items, group.setups.count);
    for (size_t i = 0; i < group.setups.count; i++) {
        int status = plim_nccl_advance(group.setups.items[i]);
        if (status) return status;
    }
    return NCCL_OK;
}

static void empty(void)
{
    PLIM_ARRAY_FINISH(&group.setups);
    PLIM_ARRAY_FINISH(&group.calls);
}

ANSWER int ncclGroupStart(void)
{
    group.depth++;
    return NCCL_OK;
}

ANSWER int ncclGroupEnd(void)
{
    if (!group.depth) return NCCL_INVALID_USAGE;
    if (--group.depth) return NCCL_OK;
    int status = begin_setups();
    if (status == NCCL_OK) status = run_calls();
    empty();
    return status;
}

/* ncclSimInfo_t */
struct simulation {
    size_t bytes;
    unsigned magic, version;
    float microseconds;
};

/* What NCCL itself reports if it has no estimate; PyTorch checks for it. */
static const float no_estimate = -1000;

ANSWER int ncclGroupSimulateEnd(struct simulation *out)
{
    if (!group.depth) return NCCL_INVALID_USAGE;
    if (!--group.depth) empty();
    if (out) out->microseconds = no_estimate;
    return NCCL_OK;
}

PROFILED(ncclGroupStart)
PROFILED(ncclGroupEnd)
PROFILED(ncclGroupSimulateEnd)
