/* Shared by the files of NCCL; each has a section below that depends only on those above it.
 *
 * Like kernels, collectives do not compute. But known values in small buffers (shapes that ranks compare, flags,
 * pickled objects; see shadow.h) are sent between the ranks through the communicator's exchange, and combined when the
 * result is read. A sum with an unknown part is unknown.
 *
 * Every rank counts its collectives. A host that waits for its GPU waits until all ranks have entered the small
 * collectives that it has entered itself, so that barriers work; it does not wait for large ones, but checks whether a
 * rank that is behind is still alive. No wait is endless: a rank that has ended, or that does not come within
 * PLIMSOLL_NCCL_WAIT seconds (300), puts the communicator into an error state, and every later call on it returns that
 * error.
 *
 * One lock guards communicators and their inboxes. It is taken after the process's lock (self.h), never before it: no
 * shadow or heap function is called under it.
 *
 * The constants of NCCL's interface are those of nccl.h 2.18 to 2.28. */
#ifndef PLIM_DEVICES_VIRTUAL_NCCL_NCCL_H
#define PLIM_DEVICES_VIRTUAL_NCCL_NCCL_H

#include "exchange.h"
#include "devices/virtual/machine/self.h"

/* Also defines the alias (pnccl...) that tools call which intercept NCCL. */
#define PROFILED(function)                                                                         \
    ANSWER extern __typeof__(function) p##function __attribute__((alias(#function)));

/* ncclResult_t */
enum nccl_status {
    NCCL_OK = 0,
    NCCL_CUDA_ERROR = 1,
    NCCL_SYSTEM_ERROR = 2,
    NCCL_INTERNAL_ERROR = 3,
    NCCL_INVALID_ARGUMENT = 4,
    NCCL_INVALID_USAGE = 5,
    NCCL_REMOTE_ERROR = 6,
    NCCL_IN_PROGRESS = 7,
};

/* ncclDataType_t */
enum nccl_type {
    NCCL_INT8, NCCL_UINT8, NCCL_INT32, NCCL_UINT32, NCCL_INT64, NCCL_UINT64,
    NCCL_FLOAT16, NCCL_FLOAT32, NCCL_FLOAT64, NCCL_BFLOAT16, NCCL_FLOAT8_E4M3, NCCL_FLOAT8_E5M2,
    NCCL_TYPES,
};

/* ncclRedOp_t; values from NCCL_OPERATIONS on are operations created by the program. */
enum nccl_operation { NCCL_SUM, NCCL_PRODUCT, NCCL_MAX, NCCL_MIN, NCCL_AVERAGE, NCCL_OPERATIONS };

enum nccl_stage {
    NCCL_GATHERING, /* derived from another communicator, whose ranks must agree first */
    NCCL_MEETING,   /* waiting for all ranks to join */
    NCCL_READY,
};

struct nccl_result;

struct nccl_comm {
    struct nccl_comm *older; /* next in the list of communicators that the program has not destroyed */
    int references;          /* one for the program, and one per result */
    struct plim_exchange *exchange; /* NULL while gathering */
    struct plim_inbox inbox;
    int ranks, rank, device;
    bool is_blocking;
    enum nccl_stage stage;
    struct {
        struct nccl_comm *parent;
        uint64_t number; /* index among the communicators derived from the parent */
        uint32_t asked;  /* bit mask of the parent's ranks that are asked */
    } origin;
    volatile int error; /* sticky */
    uint64_t small;     /* number of collectives up to and including the last small one */
    uint64_t entered;   /* number of collectives that all ranks are known to have entered */
    uint64_t received[EXCHANGE_RANKS]; /* messages received from each rank so far */
    struct nccl_result *results;       /* results that may still be read */
    double looked_seconds;             /* time at which the other ranks were last checked */
    int64_t held_bytes;                /* GPU memory held by the communicator */
};

void plim_nccl_lock(void);
void plim_nccl_unlock(void);

/* --- communicators (comm.c) ------------------------------------------------------------------- */

/* Returns a new communicator of this process, with a reference that plim_nccl_destroy() drops; NULL if out of
 * memory. */
struct nccl_comm *plim_nccl_create(int ranks, int rank, int device);
/* Takes GPU memory for channels and buffers, as NCCL does when a communicator is first used. The amount is set in the
 * machine (communicator_bytes): some hundred MiB on real GPUs, depending on version, topology and ranks. */
int plim_nccl_connect(struct nccl_comm *comm);
/* Destroys a communicator for the program; its results may still be read. */
void plim_nccl_destroy(struct nccl_comm *comm);
void plim_nccl_retain(struct nccl_comm *comm); /* both require the lock */
void plim_nccl_drop(struct nccl_comm *comm);

/* Returns the bit mask of all ranks. */
static inline uint32_t plim_nccl_everyone(int ranks) { return (uint32_t)((1ull << ranks) - 1); }

/* Waits until these ranks have posted message `number` in a channel. Returns false if the communicator failed. */
bool plim_nccl_await(struct nccl_comm *comm, uint32_t ranks, int channel, uint64_t number);

/* Puts a communicator into the permanent error state `error`, unless it is in one, and tells the user why. Returns its
 * error. */
int plim_nccl_fail(struct nccl_comm *comm, int error, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
const char *plim_nccl_last_error(void);

/* Returns a rank among `ranks` that died or left without posting message `number`, or -1. */
int plim_nccl_find_lost(struct nccl_comm *comm, uint32_t ranks, int channel, uint64_t number);

/* The duration of a wait; initialised by zeroing. plim_nccl_pause() sleeps; it returns false if the wait has timed
 * out. */
struct nccl_patience {
    double begin_seconds, pause_seconds;
};
bool plim_nccl_pause(struct nccl_patience *patience);
int plim_nccl_patience_seconds(void);

/* --- creating communicators (meeting.c) ------------------------------------------------------- */

/* A rank's message to the others about a communicator that is to be derived from theirs. */
struct nccl_invitation {
    int32_t color, key;
    struct plim_exchange_place place; /* used if this rank becomes rank 0 of the new communicator */
};

/* Opens an exchange and joins it as the communicator's rank. */
int plim_nccl_join(struct nccl_comm *comm, const struct plim_exchange_place *place);
/* Returns NCCL_OK if ready, NCCL_IN_PROGRESS, or the error that prevents it. Does not wait. */
int plim_nccl_advance(struct nccl_comm *comm);
/* Waits until all of these are ready, or one of them fails. */
int plim_nccl_wait(struct nccl_comm *const *comms, size_t count);
/* To be called before a communicator is used: waits until it is ready. */
int plim_nccl_ensure_ready(struct nccl_comm *comm);

/* --- collectives and messages (collective.c) -------------------------------------------------- */

enum nccl_kind {
    NCCL_BROADCAST, NCCL_GATHER, NCCL_REDUCE, NCCL_REDUCE_SCATTER, NCCL_EXCHANGE, NCCL_SCATTER,
    NCCL_SEND, NCCL_RECEIVE,
};

struct nccl_call {
    const char *name;
    struct nccl_comm *comm;
    enum nccl_kind kind;
    int root;         /* the single rank that sends or receives, if there is one */
    const void *from; /* NULL: this rank sends nothing */
    void *to;         /* NULL: this rank receives nothing */
    size_t from_bytes, to_bytes; /* per sending and per receiving rank */
    int type, operation;
    void *stream;
    int turn; /* in a group: index among the calls on its communicator */
};

/* Returns NCCL_OK or an error. */
int plim_nccl_run(const struct nccl_call *call);

/* --- groups (group.c) -------------------------------------------------------------------------- */

/* Begins a new communicator: waits until it is ready, except in a group or if the program asked not to. */
int plim_nccl_begin(struct nccl_comm *comm);
/* Does plim_nccl_run(), now or at the end of the thread's group. */
int plim_nccl_call(const struct nccl_call *call);

/* --- element types (reduce.c) ----------------------------------------------------------------- */

/* Returns the size of an element; 0 if there is no such type. */
size_t plim_nccl_type_bytes(int type);
/* Computes into = into (operation) from for each element. Returns false if this type and operation are not
 * supported. */
bool plim_nccl_reduce(void *into, const void *from, size_t bytes, int type, int operation);
void plim_nccl_divide(void *values, size_t bytes, int type, int by);

#endif
