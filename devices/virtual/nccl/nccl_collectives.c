/* NCCL's functions: collectives and messages. */
#include "nccl.h"

/* Makes a call whose sizes are given in elements. */
static int call_in_bytes(const struct nccl_call *elements)
{
    struct nccl_call call = *elements;
    size_t width = plim_nccl_type_bytes(call.type);
    if (!call.comm || !width || call.operation < 0) return NCCL_INVALID_ARGUMENT;
    if (call.root < 0 || call.root >= call.comm->ranks) return NCCL_INVALID_ARGUMENT;
    call.from_bytes *= width;
    call.to_bytes *= width;
    return plim_nccl_call(&call);
}

static size_t times_ranks(size_t count, const struct nccl_comm *comm)
{
    return comm ? count * (size_t)comm->ranks : 0;
}

static void *only_at(void *buffer, int root, const struct nccl_comm *comm)
{
    return comm && comm->rank == root ? buffer : NULL;
}

ANSWER int ncclAllReduce(const void *from, void *to, size_t count, int type, int operation,
                         struct nccl_comm *comm, void *stream)
{
    return call_in_bytes(&(struct nccl_call){"ncclAllReduce", comm, NCCL_REDUCE, 0, from, to, count, count,
                                   type, operation, stream, 0});
}

ANSWER int ncclReduce(const void *from, void *to, size_t count, int type, int operation, int root,
                      struct nccl_comm *comm, void *stream)
{
    return call_in_bytes(&(struct nccl_call){"ncclReduce", comm, NCCL_REDUCE, root, from,
                                   only_at(to, root, comm), count, count, type, operation, stream,
                                   0});
}

ANSWER int ncclBroadcast(const void *from, void *to, size_t count, int type, int root,
                         struct nccl_comm *comm, void *stream)
{
    return call_in_bytes(&(struct nccl_call){"ncclBroadcast", comm, NCCL_BROADCAST, root, from, to, count,
                                   count, type, 0, stream, 0});
}

ANSWER int ncclBcast(void *buffer, size_t count, int type, int root, struct nccl_comm *comm,
                     void *stream)
{
    return ncclBroadcast(buffer, buffer, count, type, root, comm, stream);
}

ANSWER int ncclAllGather(const void *from, void *to, size_t count, int type,
                         struct nccl_comm *comm, void *stream)
{
    return call_in_bytes(&(struct nccl_call){"ncclAllGather", comm, NCCL_GATHER, 0, from, to, count,
                                   times_ranks(count, comm), type, 0, stream, 0});
}

ANSWER int ncclGather(const void *from, void *to, size_t count, int type, int root,
                      struct nccl_comm *comm, void *stream)
{
    return call_in_bytes(&(struct nccl_call){"ncclGather", comm, NCCL_GATHER, root, from,
                                   only_at(to, root, comm), count, times_ranks(count, comm), type,
                                   0, stream, 0});
}

ANSWER int ncclReduceScatter(const void *from, void *to, size_t count, int type, int operation,
                             struct nccl_comm *comm, void *stream)
{
    return call_in_bytes(&(struct nccl_call){"ncclReduceScatter", comm, NCCL_REDUCE_SCATTER, 0, from, to,
                                   times_ranks(count, comm), count, type, operation, stream, 0});
}

ANSWER int ncclScatter(const void *from, void *to, size_t count, int type, int root,
                       struct nccl_comm *comm, void *stream)
{
    return call_in_bytes(&(struct nccl_call){"ncclScatter", comm, NCCL_SCATTER, root, from, to,
                                   times_ranks(count, comm), count, type, 0, stream, 0});
}

ANSWER int ncclAlltoAll(const void *from, void *to, size_t count, int type, struct nccl_comm *comm,
                        void *stream)
{
    size_t all = times_ranks(count, comm);
    return call_in_bytes(&(struct nccl_call){"ncclAlltoAll", comm, NCCL_EXCHANGE, 0, from, to, all, all, type,
                                   0, stream, 0});
}

ANSWER int ncclSend(const void *from, size_t count, int type, int peer, struct nccl_comm *comm,
                    void *stream)
{
    return call_in_bytes(&(struct nccl_call){"ncclSend", comm, NCCL_SEND, peer, from, NULL, count, count,
                                   type, 0, stream, 0});
}

ANSWER int ncclRecv(void *to, size_t count, int type, int peer, struct nccl_comm *comm,
                    void *stream)
{
    return call_in_bytes(&(struct nccl_call){"ncclRecv", comm, NCCL_RECEIVE, peer, NULL, to, count, count,
                                   type, 0, stream, 0});
}

/* A sum of premultiplied values. Its result is not computed, so any number from NCCL_OPERATIONS on will do. */
ANSWER int ncclRedOpCreatePreMulSum(int *out, const void *scalar, int type, int residence,
                                    struct nccl_comm *comm)
{
    (void)scalar;
    (void)residence;
    if (!out || !comm || !plim_nccl_type_bytes(type)) return NCCL_INVALID_ARGUMENT;
    *out = NCCL_OPERATIONS;
    return NCCL_OK;
}

ANSWER int ncclRedOpDestroy(int operation, struct nccl_comm *comm)
{
    return comm && operation >= NCCL_OPERATIONS ? NCCL_OK : NCCL_INVALID_ARGUMENT;
}

PROFILED(ncclAllReduce)
PROFILED(ncclReduce)
PROFILED(ncclBroadcast)
PROFILED(ncclBcast)
PROFILED(ncclAllGather)
PROFILED(ncclGather)
PROFILED(ncclReduceScatter)
PROFILED(ncclScatter)
PROFILED(ncclAlltoAll)
PROFILED(ncclSend)
PROFILED(ncclRecv)
PROFILED(ncclRedOpCreatePreMulSum)
PROFILED(ncclRedOpDestroy)
