/* The effect of a collective or message on the memory of this rank. */
#include "nccl.h"
#include "devices/virtual/memory/heap.h"
#include "devices/virtual/memory/shadow.h"
#include "devices/virtual/steps/token.h"
#include "devices/virtual/work/launches.h"
#include <stdlib.h>
#include <string.h>

enum { FORGET_INTERVAL = 32 };

/* The future result of a call in the memory of this rank, computed when it is first read. */
struct nccl_result {
    struct nccl_result *older, **link; /* list of the communicator's results */
    struct nccl_call call;
    int channel;
    uint64_t number;
    bool is_resolved;
    unsigned char *bytes; /* if resolved: the result, NULL if unknown */
};

/* --- computing results ------------------------------------------------------------------------ */

static bool comes_from_one(enum nccl_kind kind)
{
    return kind == NCCL_BROADCAST || kind == NCCL_SCATTER || kind == NCCL_RECEIVE;
}

static bool is_reduction(enum nccl_kind kind)
{
    return kind == NCCL_REDUCE || kind == NCCL_REDUCE_SCATTER;
}

/* Copies the data sent by `rank` to `into`. Returns false, zeroing it, if they are unknown. */
static bool read_part(struct nccl_result *result, int rank, unsigned char *into)
{
    size_t bytes = result->call.from_bytes;
    const struct plim_exchange_message *message =
        plim_inbox_find(&result->call.comm->inbox, rank, result->channel, result->number);
    memset(into, 0, bytes);
    if (!message) return false;
    memcpy(into, message->data, message->bytes < bytes ? message->bytes : bytes);
    return true;
}

/* Places the parts side by side, or takes the share of each that is for this rank. Returns false if no part is
 * known. */
static bool combine_parts(struct nccl_result *result, unsigned char *part)
{
    const struct nccl_call *call = &result->call;
    const struct nccl_comm *comm = call->comm;
    size_t share = call->to_bytes / (size_t)comm->ranks;
    bool some = false;
    for (int rank = 0; rank < comm->ranks; rank++) {
        if (comes_from_one(call->kind) && rank != call->root) continue;
        if (!read_part(result, rank, part)) continue;
        some = true;
        if (call->kind == NCCL_GATHER) memcpy(result->bytes + (size_t)rank * share, part, share);
        else if (call->kind == NCCL_EXCHANGE)
            memcpy(result->bytes + (size_t)rank * share, part + (size_t)comm->rank * share, share);
        else if (call->kind == NCCL_SCATTER)
            memcpy(result->bytes, part + (size_t)comm->rank * call->to_bytes, call->to_bytes);
        else memcpy(result->bytes, part, call->to_bytes);
    }
    return some;
}

static bool reduce(struct nccl_result *result, unsigned char *part)
{
    const struct nccl_call *call = &result->call;
    const struct nccl_comm *comm = call->comm;
    size_t bytes = call->from_bytes;
    unsigned char *sum = malloc(bytes);
    bool known = sum && read_part(result, 0, sum);
    for (int rank = 1; known && rank < comm->ranks; rank++)
        known = read_part(result, rank, part) &&
                plim_nccl_reduce(sum, part, bytes, call->type, call->operation);
    if (known && call->operation == NCCL_AVERAGE)
        plim_nccl_divide(sum, bytes, call->type, comm->ranks);
    size_t skipped = call->kind == NCCL_REDUCE ? 0 : (size_t)comm->rank * call->to_bytes;
    if (known) memcpy(result->bytes, sum + skipped, call->to_bytes);
    free(sum);
    return known && call->operation < NCCL_OPERATIONS;
}

static void resolve(struct nccl_result *result)
{
    const struct nccl_call *call = &result->call;
    unsigned char *part = malloc(call->from_bytes + 1);
    result->bytes = calloc(1, call->to_bytes + 1);
    result->is_resolved = true;
    if (part && result->bytes &&
        (is_reduction(call->kind) ? reduce(result, part) : combine_parts(result, part))) {
        free(part);
        return;
    }
    free(part);
    free(result->bytes);
    result->bytes = NULL;
}

/* --- results as shadow sources ---------------------------------------------------------------- */

static bool read_result(void *user, size_t offset, void *out, size_t bytes)
{
    struct nccl_result *result = user;
    const struct nccl_call *call = &result->call;
    struct nccl_comm *comm = call->comm;
    uint32_t whose =
        comes_from_one(call->kind) ? 1u << call->root : plim_nccl_everyone(comm->ranks);
    if (!result->is_resolved && !plim_nccl_await(comm, whose, result->channel, result->number))
        return false;
    plim_nccl_lock();
    if (!result->is_resolved) resolve(result);
    bool known = result->bytes && offset + bytes <= call->to_bytes;
    if (known) memcpy(out, result->bytes + offset, bytes);
    plim_nccl_unlock();
    return known;
}

static void release_result(void *user)
{
    struct nccl_result *result = user;
    plim_nccl_lock();
    *result->link = result->older;
    if (result->older) result->older->link = result->link;
    plim_nccl_drop(result->call.comm);
    plim_nccl_unlock();
    free(result->bytes);
    free(result);
}

/* Creates the result of a call. The caller holds the lock. */
static struct nccl_result *promise(const struct nccl_call *call, int channel, uint64_t number)
{
    struct nccl_comm *comm = call->comm;
    struct nccl_result *result = calloc(1, sizeof(*result));
    if (!result) return NULL;
    result->call = *call;
    result->channel = channel;
    result->number = number;
    result->older = comm->results;
    result->link = &comm->results;
    if (result->older) result->older->link = &result->older;
    comm->results = result;
    plim_nccl_retain(comm);
    return result;
}

/* Forgets messages that no result needs any more. The caller holds the lock. */
static void discard_messages(struct nccl_comm *comm)
{
    uint64_t collectives = plim_exchange_count(comm->exchange, comm->rank, EXCHANGE_COLLECTIVE);
    uint64_t received[EXCHANGE_RANKS];
    memcpy(received, comm->received, sizeof(received));
    for (struct nccl_result *result = comm->results; result; result = result->older) {
        uint64_t *oldest = result->call.kind == NCCL_RECEIVE ? &received[result->call.root]
                                                             : &collectives;
        if (!result->is_resolved && result->number < *oldest) *oldest = result->number;
    }
    plim_inbox_discard(&comm->inbox, -1, EXCHANGE_COLLECTIVE, collectives);
    for (int rank = 0; rank < comm->ranks; rank++)
        plim_inbox_discard(&comm->inbox, rank, EXCHANGE_TO + comm->rank, received[rank]);
}

/* --- calls ------------------------------------------------------------------------------------ */

static bool brings(const struct nccl_call *call)
{
    bool is_root = call->comm->rank == call->root;
    bool is_asked = call->kind == NCCL_BROADCAST || call->kind == NCCL_SCATTER ? is_root : true;
    return is_asked && call->from && call->kind != NCCL_RECEIVE;
}

/* Returns a copy of what this rank sends, which the caller frees; NULL if a byte that was written is unknown. (Objects
 * are gathered in buffers as long as the longest, whose ends are never written.) May wait for other ranks if the data
 * are the result of an earlier call. */
static void *known_bytes(const struct nccl_call *call)
{
    if (!brings(call) || !call->from_bytes) return NULL;
    void *bytes = malloc(call->from_bytes);
    if (bytes && !plim_heap_is_device((uintptr_t)call->from))
        return memcpy(bytes, call->from, call->from_bytes);
    unsigned known = bytes ? plim_shadow_load((uintptr_t)call->from, bytes, NULL, call->from_bytes) : 0;
    if ((known & PLIM_KNOWN) && !(known & PLIM_UNKNOWN)) return bytes;
    free(bytes);
    return NULL;
}

/* The result is handled by the shadow here, and an all-gather of weights does not update them; so both buffers are
 * passed as read. */
static int launch(const struct nccl_call *call)
{
    int before = plim_self_device();
    const void *operands[2];
    struct plim_work work = {.stream = call->stream, .what = call->name, .operands = operands,
                             .form = (uint64_t)call->type};
    work.sizes = plim_token_more(call->from_bytes, call->to_bytes);
    if (call->from) operands[work.read++] = call->from;
    if (call->to) operands[work.read++] = call->to;
    plim_self_set_device(call->comm->device);
    int failed = plim_library_launch(&work);
    plim_self_set_device(before);
    return failed ? NCCL_CUDA_ERROR : NCCL_OK;
}

/* Posts what this rank sends. Returns the number of the call, which is the same on all ranks that take part. */
static uint64_t enter(const struct nccl_call *call, const void *known, int *channel)
{
    struct nccl_comm *comm = call->comm;
    if (call->kind == NCCL_RECEIVE) {
        *channel = EXCHANGE_TO + comm->rank;
        return comm->received[call->root]++;
    }
    *channel = call->kind == NCCL_SEND ? EXCHANGE_TO + call->root : EXCHANGE_COLLECTIVE;
    uint64_t number = plim_exchange_count(comm->exchange, comm->rank, *channel);
    if (!plim_exchange_post(comm->exchange, comm->rank, *channel, known,
                            known ? call->from_bytes : 0) && known)
        plim_self_note("NCCL: no memory for what rank %d tells the others", comm->rank);
    return number;
}

/* The values that this rank sends are known now; the result is computed when it is read. */
static void contribute(const struct nccl_call *call, const void *known, bool is_small)
{
    struct nccl_comm *comm = call->comm;
    struct nccl_result *result = NULL;
    int channel;
    plim_nccl_lock();
    uint64_t number = enter(call, known, &channel);
    if (channel == EXCHANGE_COLLECTIVE && is_small) comm->small = number + 1;
    if (is_small && call->to && call->to_bytes) result = promise(call, channel, number);
    if (number % FORGET_INTERVAL == FORGET_INTERVAL - 1) discard_messages(comm);
    plim_nccl_unlock();
    if (result)
        plim_shadow_write_later((uintptr_t)call->to,
                                &(struct plim_shadow_source){read_result, release_result, result}, PLIM_KNOWN,
                                call->to_bytes, NULL);
    else if (call->to) plim_shadow_spoil((uintptr_t)call->to, call->to_bytes, call->name);
}

static int run(const struct nccl_call *call)
{
    int status = plim_nccl_ensure_ready(call->comm);
    if (!status) status = plim_nccl_connect(call->comm);
    if (status) return status;
    size_t most = call->from_bytes > call->to_bytes ? call->from_bytes : call->to_bytes;
    bool is_small = most <= EXCHANGE_MESSAGE_BYTES;
    bool is_captured = plim_stream_of(call->stream)->capture != NULL;
    status = launch(call);
    /* A captured call happens at each replay of its graph, which is not simulated. */
    if (status || is_captured) return status;
    void *known = is_small ? known_bytes(call) : NULL;
    contribute(call, known, is_small);
    free(known);
    return NCCL_OK;
}

/* Holds a reference, as a watchdog thread may abort the communicator during a wait. */
int plim_nccl_run(const struct nccl_call *call)
{
    plim_nccl_lock();
    plim_nccl_retain(call->comm);
    plim_nccl_unlock();
    int status = run(call);
    plim_nccl_lock();
    plim_nccl_drop(call->comm);
    plim_nccl_unlock();
    return status;
}
