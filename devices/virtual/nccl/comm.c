/* Communicators: the list of them, waiting for other ranks, and errors. */
#include "nccl.h"
#include "devices/virtual/work/transfer.h"
#include "autotune/base/clock.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { WAIT_SECONDS = 300, LAUNCH_FAILED = 719 /* cudaErrorLaunchFailure */ };

/* Interval between checks whether the other ranks are alive. */
static const double look_seconds = 0.1;

static struct nccl_comm *live; /* guarded by the lock */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char last_error[160];

void plim_nccl_lock(void) { pthread_mutex_lock(&lock); }
void plim_nccl_unlock(void) { pthread_mutex_unlock(&lock); }

const char *plim_nccl_last_error(void) { return last_error; }

void plim_nccl_retain(struct nccl_comm *comm) { comm->references++; }

void plim_nccl_drop(struct nccl_comm *comm)
{
    if (--comm->references) return;
    plim_inbox_finish(&comm->inbox);
    plim_exchange_close(comm->exchange);
    free(comm);
}

int plim_nccl_fail(struct nccl_comm *comm, int error, const char *fmt, ...)
{
    char text[sizeof(last_error)];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    plim_nccl_lock();
    bool is_first = !comm->error;
    if (is_first) {
        comm->error = error;
        memcpy(last_error, text, sizeof(text));
    }
    plim_nccl_unlock();
    if (is_first) plim_self_note("NCCL: %s", text);
    return comm->error;
}

/* --- waiting ---------------------------------------------------------------------------------- */

int plim_nccl_patience_seconds(void)
{
    const char *text = getenv("PLIMSOLL_NCCL_WAIT");
    int seconds = text ? atoi(text) : 0;
    return seconds > 0 ? seconds : WAIT_SECONDS;
}

bool plim_nccl_pause(struct nccl_patience *patience)
{
    double now = plim_clock_seconds();
    if (!patience->begin_seconds) {
        patience->begin_seconds = now;
        patience->pause_seconds = 20e-6;
    }
    if (now - patience->begin_seconds > plim_nccl_patience_seconds()) return false;
    struct timespec pause = {.tv_nsec = (long)(patience->pause_seconds * 1e9)};
    nanosleep(&pause, NULL);
    if (patience->pause_seconds < 2e-3) patience->pause_seconds *= 1.5;
    return true;
}

/* Returns those of `ranks` that have not posted message `number` yet. */
static uint32_t missing(struct nccl_comm *comm, uint32_t ranks, int channel, uint64_t number)
{
    for (int rank = 0; rank < EXCHANGE_RANKS; rank++)
        if (ranks >> rank & 1 && plim_exchange_count(comm->exchange, rank, channel) > number)
            ranks &= ~(1u << rank);
    return ranks;
}

int plim_nccl_find_lost(struct nccl_comm *comm, uint32_t ranks, int channel, uint64_t number)
{
    for (int rank = 0; rank < EXCHANGE_RANKS; rank++) {
        if (!(ranks >> rank & 1)) continue;
        enum plim_presence presence = plim_exchange_presence(comm->exchange, rank);
        /* The count is read after the presence: it includes what the rank posted before it left. */
        if ((presence == PLIM_LEFT || presence == PLIM_DEAD) &&
            plim_exchange_count(comm->exchange, rank, channel) <= number)
            return rank;
    }
    return -1;
}

static bool fail_waiting(struct nccl_comm *comm, uint32_t ranks, bool is_late)
{
    int rank = 0;
    while (!(ranks >> rank & 1)) rank++;
    if (is_late)
        plim_nccl_fail(comm, NCCL_REMOTE_ERROR, "rank %d of %d did not come within %d seconds",
                       rank, comm->ranks, plim_nccl_patience_seconds());
    else
        plim_nccl_fail(comm, NCCL_REMOTE_ERROR,
                       "rank %d of %d has ended, and the others wait for it", rank, comm->ranks);
    return false;
}

bool plim_nccl_await(struct nccl_comm *comm, uint32_t ranks, int channel, uint64_t number)
{
    struct nccl_patience patience = {0};
    double looked = plim_clock_seconds();
    while ((ranks = missing(comm, ranks, channel, number))) {
        if (comm->error) return false;
        if (!plim_nccl_pause(&patience)) return fail_waiting(comm, ranks, true);
        if (plim_clock_seconds() - looked < look_seconds) continue;
        looked = plim_clock_seconds();
        int lost = plim_nccl_find_lost(comm, ranks, channel, number);
        if (lost >= 0) return fail_waiting(comm, 1u << lost, false);
    }
    return true;
}

/* --- synchronisation with the GPU ------------------------------------------------------------ */

/* Returns the first rank that has ended and without which a call of this rank cannot complete, or -1. */
static int find_debtor(struct nccl_comm *comm)
{
    uint64_t entered = plim_exchange_count(comm->exchange, comm->rank, EXCHANGE_COLLECTIVE);
    int channel = EXCHANGE_TO + comm->rank, lost = -1;
    if (entered) {
        uint32_t behind =
            missing(comm, plim_nccl_everyone(comm->ranks), EXCHANGE_COLLECTIVE, entered - 1);
        lost = plim_nccl_find_lost(comm, behind, EXCHANGE_COLLECTIVE, entered - 1);
    }
    for (int rank = 0; rank < comm->ranks && lost < 0; rank++) {
        uint64_t received = comm->received[rank];
        if (received && plim_exchange_count(comm->exchange, rank, channel) < received)
            lost = plim_nccl_find_lost(comm, 1u << rank, channel, received - 1);
    }
    return lost;
}

/* Checks for ranks that ended. Large collectives and messages are not waited for, as programs overlap them with work
 * that other ranks need first; but a rank that will never take part must not go unnoticed. */
static void check_ranks(struct nccl_comm *comm)
{
    double now = plim_clock_seconds();
    if (comm->error || now - comm->looked_seconds < look_seconds) return;
    comm->looked_seconds = now;
    int lost = find_debtor(comm);
    if (lost >= 0) fail_waiting(comm, 1u << lost, false);
}

/* Lists the program's communicators of the current GPU, each with a reference that the caller drops. */
static int list_communicators(struct nccl_comm **out, int most)
{
    int count = 0, device = plim_self_device();
    plim_nccl_lock();
    for (struct nccl_comm *comm = live; comm && count < most; comm = comm->older) {
        if (comm->device != device || comm->stage != NCCL_READY) continue;
        plim_nccl_retain(comm);
        out[count++] = comm;
    }
    plim_nccl_unlock();
    return count;
}

/* The host waits for the GPU. Returns cudaErrorLaunchFailure, also as the thread's last error, if a call that it waits
 * for cannot complete. */
static int synchronize(void)
{
    struct nccl_comm *comms[64];
    int failed = GPU_OK;
    int count = list_communicators(comms, 64);
    for (int i = 0; i < count; i++) {
        struct nccl_comm *comm = comms[i];
        uint64_t small = comm->small;
        if (small > comm->entered && plim_nccl_await(comm, plim_nccl_everyone(comm->ranks),
                                                     EXCHANGE_COLLECTIVE, small - 1))
            comm->entered = small;
        check_ranks(comm);
        /* What it waited for did not happen. A real program would hang here until NCCL's watchdog ends it; continuing
         * as if nothing had happened would be worse. */
        if (comm->error) failed = LAUNCH_FAILED;
        plim_nccl_lock();
        plim_nccl_drop(comm);
        plim_nccl_unlock();
    }
    return plim_self_error(failed);
}

/* --- creation and destruction ----------------------------------------------------------------- */

struct nccl_comm *plim_nccl_create(int ranks, int rank, int device)
{
    struct nccl_comm *comm = calloc(1, sizeof(*comm));
    if (!comm) return NULL;
    comm->references = 1;
    comm->ranks = ranks;
    comm->rank = rank;
    comm->device = device;
    comm->is_blocking = true;
    plim_nccl_lock();
    comm->older = live;
    live = comm;
    plim_nccl_unlock();
    plim_transfer_synchronize = synchronize;
    return comm;
}

int plim_nccl_connect(struct nccl_comm *comm)
{
    int64_t bytes = comm->ranks > 1 && !comm->held_bytes ? plim_self_gpu(comm->device)->communicator_bytes : 0;
    if (!bytes) return NCCL_OK;
    if (plim_self_use(comm->device) || !plim_self_allocate(comm->device, bytes)) return NCCL_CUDA_ERROR;
    comm->held_bytes = bytes;
    plim_self_note("each of NCCL's communicators is taken to hold %lld MiB of its GPU, which is an assumption "
                   "(--overhead SIZE leaves it out)", (long long)(bytes >> 20));
    return NCCL_OK;
}

void plim_nccl_destroy(struct nccl_comm *comm)
{
    plim_nccl_lock();
    struct nccl_comm **link = &live;
    while (*link && *link != comm) link = &(*link)->older;
    if (*link) *link = comm->older;
    if (comm->origin.parent) plim_nccl_drop(comm->origin.parent);
    if (comm->exchange) plim_exchange_leave(comm->exchange, comm->rank);
    int64_t held = comm->held_bytes;
    int device = comm->device;
    plim_nccl_drop(comm);
    plim_nccl_unlock();
    if (held) plim_self_free(device, held);
}
