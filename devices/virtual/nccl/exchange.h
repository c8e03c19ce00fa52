/* An exchange: how the processes of a communicator send each other messages.
 *
 * An exchange is an unnamed file in memory that all ranks of one communicator have open:
 * its place (a path through /proc and a number that proves it) is sent in an ncclUniqueId. It holds
 * a row and a log for each rank. A rank writes only to its own row and its own log,
 * and makes a message visible after it is complete. So no process holds a lock that others need, a
 * rank that is killed at any moment leaves nothing half done, and the file disappears with the last
 * process.
 *
 * A channel counts: everything a rank posts in one has a number, 0, 1, 2, .... A message with bytes
 * is kept for the ranks that need it; one without is only counted ("I have come this far").
 *
 * A rank holds a lock on a byte of the file while it lives; the kernel releases it when the process dies,
 * before its parent is even notified.
 *
 * Functions here do not wait. An exchange may be used by several threads; a rank's row, its log and
 * an inbox only under the caller's own lock.
 */
#ifndef PLIM_DEVICES_VIRTUAL_NCCL_EXCHANGE_H
#define PLIM_DEVICES_VIRTUAL_NCCL_EXCHANGE_H

#include "devices/virtual/machine/machine.h"

enum {
    EXCHANGE_RANKS = PLIM_MACHINE_GPUS, /* each needs a GPU of its own */
    EXCHANGE_MESSAGE_BYTES = 1 << 20,
};

/* Channels of a rank: two for all ranks, and one to each. */
enum {
    EXCHANGE_SETUP = 0,      /* creating communicators from this one */
    EXCHANGE_COLLECTIVE = 1,
    EXCHANGE_TO = 2,         /* + the receiving rank */
    EXCHANGE_CHANNELS = EXCHANGE_TO + EXCHANGE_RANKS,
};

struct plim_exchange;

/* The address of an exchange. Plain bytes that can be sent to other processes. */
struct plim_exchange_place {
    char path[48];
    uint64_t proof;
};

enum plim_presence {
    PLIM_ABSENT, /* has not joined yet */
    PLIM_PRESENT,
    PLIM_LEFT,   /* left on its own accord */
    PLIM_DEAD,
};

/* Creates an exchange. The first plim_exchange_open() of it in this process takes it over; otherwise the
 * caller closes it. NULL: no memory. */
struct plim_exchange *plim_exchange_create(struct plim_exchange_place *place);
/* NULL: there is none at that place (any more). The caller closes it. */
struct plim_exchange *plim_exchange_open(const struct plim_exchange_place *place);
void plim_exchange_close(struct plim_exchange *exchange);

/* Takes the place of a rank. False: it is taken. `gpu` is the GPU's number in the machine. */
bool plim_exchange_join(struct plim_exchange *exchange, int rank, int gpu);
void plim_exchange_leave(struct plim_exchange *exchange, int rank);
enum plim_presence plim_exchange_presence(struct plim_exchange *exchange, int rank);
int plim_exchange_gpu(struct plim_exchange *exchange, int rank);

/* Posts the next message of a channel; `bytes` may be 0 for "no message". False: there was no memory for
 * the message, which is then only counted. */
bool plim_exchange_post(struct plim_exchange *exchange, int rank, int channel, const void *message,
                        size_t bytes);
/* How many messages a rank has posted in a channel, which is the number of its next one. */
uint64_t plim_exchange_count(struct plim_exchange *exchange, int rank, int channel);

/* --- a rank's inbox --------------------------------------------------------------------------- */

struct plim_exchange_message {
    struct plim_exchange_message *next;
    int from, channel;
    uint64_t number;
    size_t bytes;
    unsigned char data[];
};

/* Messages read from the other ranks' logs and not yet forgotten. Zeroed is empty. */
struct plim_inbox {
    struct plim_exchange *exchange;
    int rank; /* whose it is */
    uint64_t taken_bytes[EXCHANGE_RANKS];
    struct plim_exchange_message *newest;
};

/* NULL: there is no message with that number (plim_exchange_count() tells whether it may still come).
 * Valid until it is forgotten. */
const struct plim_exchange_message *plim_inbox_find(struct plim_inbox *inbox, int from,
                                                    int channel, uint64_t number);
/* Forgets messages with numbers below `below`. `from` -1: of all ranks. */
void plim_inbox_forget(struct plim_inbox *inbox, int from, int channel, uint64_t below);
void plim_inbox_finish(struct plim_inbox *inbox);

#endif
