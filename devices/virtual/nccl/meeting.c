/* Creation of communicators.
 *
 * A communicator is created by a meeting: no rank has it before all have joined. In a group, or without blocking, one
 * thread may bring several ranks, so the meeting proceeds in steps that do not wait. */
#include "nccl.h"
#include <string.h>

/* --- steps of a meeting ----------------------------------------------------------------------- */

int plim_nccl_join(struct nccl_comm *comm, const struct plim_exchange_place *place)
{
    comm->exchange = plim_exchange_open(place);
    if (!comm->exchange)
        return plim_nccl_fail(comm, NCCL_REMOTE_ERROR,
                              "the process that made the communicator's id has ended");
    comm->inbox.exchange = comm->exchange;
    comm->inbox.rank = comm->rank;
    if (!plim_exchange_join(comm->exchange, comm->rank, plim_self_machine_index(comm->device)))
        return plim_nccl_fail(comm, NCCL_INVALID_USAGE, "two processes are rank %d", comm->rank);
    comm->stage = NCCL_MEETING;
    return NCCL_OK;
}

/* Returns NCCL_OK if all ranks of the parent that are asked have posted their invitation. */
static int check_parent(struct nccl_comm *comm)
{
    struct nccl_comm *parent = comm->origin.parent;
    uint64_t number = comm->origin.number;
    uint32_t left = comm->origin.asked;
    for (int rank = 0; rank < parent->ranks; rank++)
        if (plim_exchange_count(parent->exchange, rank, EXCHANGE_SETUP) > number)
            left &= ~(1u << rank);
    int lost = left ? plim_nccl_find_lost(parent, left, EXCHANGE_SETUP, number) : -1;
    if (lost >= 0)
        return plim_nccl_fail(comm, NCCL_REMOTE_ERROR,
                              "rank %d has ended, and the others wait for it", lost);
    return left ? NCCL_IN_PROGRESS : NCCL_OK;
}

static bool read_invitation(struct nccl_comm *parent, int rank, uint64_t number,
                            struct nccl_invitation *out)
{
    plim_nccl_lock();
    const struct plim_exchange_message *message =
        plim_inbox_find(&parent->inbox, rank, EXCHANGE_SETUP, number);
    bool found = message && message->bytes == sizeof(*out);
    if (found) memcpy(out, message->data, sizeof(*out));
    plim_nccl_unlock();
    return found;
}

/* Determines rank and size: ranks of one color, ordered by key and then by rank in the parent. Of the places, only that
 * of the first rank is used. */
static int gather(struct nccl_comm *comm)
{
    struct nccl_comm *parent = comm->origin.parent;
    struct nccl_invitation mine, other, first = {0};
    uint64_t number = comm->origin.number;
    int waiting = check_parent(comm);
    if (waiting) return waiting;
    if (!read_invitation(parent, parent->rank, number, &mine))
        return plim_nccl_fail(comm, NCCL_SYSTEM_ERROR, "no memory for a new communicator");
    comm->rank = comm->ranks = 0;
    for (int rank = 0; rank < parent->ranks; rank++) {
        if (!(comm->origin.asked >> rank & 1)) continue;
        if (!read_invitation(parent, rank, number, &other))
            return plim_nccl_fail(comm, NCCL_SYSTEM_ERROR, "no memory for a new communicator");
        if (other.color != mine.color) continue;
        bool is_before = other.key < mine.key || (other.key == mine.key && rank < parent->rank);
        if (!comm->ranks || other.key < first.key) first = other;
        comm->rank += is_before;
        comm->ranks++;
    }
    if (comm->rank > 0) plim_exchange_close(plim_exchange_open(&mine.place));
    plim_nccl_lock();
    plim_nccl_drop(parent);
    plim_nccl_unlock();
    comm->origin.parent = NULL;
    return plim_nccl_join(comm, &first.place);
}

static int meet(struct nccl_comm *comm)
{
    for (int rank = 0; rank < comm->ranks; rank++) {
        enum plim_presence presence = plim_exchange_presence(comm->exchange, rank);
        if (presence == PLIM_DEAD)
            return plim_nccl_fail(comm, NCCL_REMOTE_ERROR,
                                  "rank %d of %d ended before all had come", rank, comm->ranks);
        if (presence == PLIM_ABSENT) return NCCL_IN_PROGRESS;
    }
    for (int a = 0; a < comm->ranks; a++)
        for (int b = a + 1; b < comm->ranks; b++)
            if (plim_exchange_gpu(comm->exchange, a) == plim_exchange_gpu(comm->exchange, b))
                return plim_nccl_fail(comm, NCCL_INVALID_USAGE, "ranks %d and %d use one GPU, %d",
                                      a, b, plim_exchange_gpu(comm->exchange, a));
    comm->stage = NCCL_READY;
    return NCCL_OK;
}

int plim_nccl_advance(struct nccl_comm *comm)
{
    int status = comm->error;
    if (!status && comm->stage == NCCL_GATHERING) status = gather(comm);
    if (!status && comm->stage == NCCL_MEETING) status = meet(comm);
    return status;
}

/* --- waiting for the other ranks -------------------------------------------------------------- */

int plim_nccl_wait(struct nccl_comm *const *comms, size_t count)
{
    struct nccl_patience patience = {0};
    for (;;) {
        struct nccl_comm *late = NULL;
        for (size_t i = 0; i < count; i++) {
            int status = plim_nccl_advance(comms[i]);
            if (status == NCCL_IN_PROGRESS) late = comms[i];
            else if (status) return status;
        }
        if (!late) return NCCL_OK;
        if (!plim_nccl_pause(&patience))
            return plim_nccl_fail(late, NCCL_REMOTE_ERROR,
                                  "not all of %d ranks came within %d seconds", late->ranks,
                                  plim_nccl_patience_seconds());
    }
}

int plim_nccl_ensure_ready(struct nccl_comm *comm)
{
    if (comm->error) return comm->error;
    return comm->stage == NCCL_READY ? NCCL_OK : plim_nccl_wait(&comm, 1);
}
