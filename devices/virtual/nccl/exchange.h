/* Message passing between the processes of a communicator.
 *
 * An exchange is an unnamed file in memory that all ranks of one communicator have open; its place (a path through
 * /proc and a number that proves it) is sent in an ncclUniqueId. It holds a row and a log for each rank. A rank writes
 * only to its own row and log, and makes a message visible after it is complete. So no process holds a lock that others
 * need, a rank that is killed at any moment leaves nothing half done, and the file disappears with the last process.
 *
 * Messages are numbered per rank and channel: 0, 1, 2, .... A message with bytes is kept for the ranks that need it;
 * one without is only counted ("I have come this far").
 *
 * A rank holds a lock on a byte of the file while it lives; the kernel releases it when the process dies, before its
 * parent is even notified.
 *
 * Functions here do not wait. An exchange may be used by several threads; a rank's row, its log and an inbox only under
 * the caller's own lock. */
#ifndef PLIM_DEVICES_VIRTUAL_NCCL_EXCHANGE_H
#define PLIM_DEVICES_VIRTUAL_NCCL_EXCHANGE_H

#include "devices/virtual/machine/machine.h"

enum {
    EXCHANGE_RANKS = PLIM_MACHINE_GPUS, /* each rank needs a GPU of its own */
    EXCHANGE_MESSAGE_BYTES = 1 << 20,
};

/* Channels of a rank: two for all ranks, and one to each rank. */
enum {
    EXCHANGE_SETUP = 0,      /* creating new communicators from this one */
    EXCHANGE_COLLECTIVE = 1,
    EXCHANGE_TO = 2,         /* + the receiving rank */
    EXCHANGE_CHANNELS = EXCHANGE_TO + EXCHANGE_RANKS,
};

struct plim_exchange;

/* The address of an exchange; plain bytes that can be sent to other processes. */
struct plim_exchange_place {
    char path[48];
    uint64_t proof;
};

enum plim_presence {
    PLIM_ABSENT, /* has not joined yet */
    PLIM_PRESENT,
    PLIM_LEFT,   /* left of its own accord */
    PLIM_DEAD,
};

/* Creates an exchange and stores its place. The first plim_exchange_open() of it in this process takes over the
 * reference; otherwise the caller closes it. Returns NULL if out of memory. */
struct plim_exchange *plim_exchange_create(struct plim_exchange_place *place);
/* Opens an exchange, which the caller closes. Returns NULL if there is none at that place any more. */
struct plim_exchange *plim_exchange_open(const struct plim_exchange_place *place);
void plim_exchange_close(struct plim_exchange *exchange);

/* Joins as a rank. Returns false if another process has joined as this rank. `gpu` is the GPU's index in the
 * machine. */
bool plim_exchange_join(struct plim_exchange *exchange, int rank, int gpu);
void plim_exchange_leave(struct plim_exchange *exchange, int rank);
enum plim_presence plim_exchange_presence(struct plim_exchange *exchange, int rank);
int plim_exchange_gpu(struct plim_exchange *exchange, int rank);

/* Posts the next message of a channel; with `bytes` 0 it is only counted. Returns false if the message could not be
 * stored; it is counted nevertheless. */
bool plim_exchange_post(struct plim_exchange *exchange, int rank, int channel, const void *message,
                        size_t bytes);
/* Returns how many messages a rank has posted in a channel, which is the number of its next one. */
uint64_t plim_exchange_count(struct plim_exchange *exchange, int rank, int channel);

/* --- a rank's inbox --------------------------------------------------------------------------- */

struct plim_exchange_message {
    struct plim_exchange_message *next;
    int from, channel;
    uint64_t number;
    size_t bytes;
    unsigned char data[];
};

/* Messages read from other ranks' logs and not yet forgotten. Initialised by zeroing. */
struct plim_inbox {
    struct plim_exchange *exchange;
    int rank; /* the owner */
    uint64_t taken_bytes[EXCHANGE_RANKS];
    struct plim_exchange_message *newest;
};

/* Returns a message, valid until it is forgotten, or NULL if there is none with that number (plim_exchange_count()
 * tells whether it may still come). */
const struct plim_exchange_message *plim_inbox_find(struct plim_inbox *inbox, int from,
                                                    int channel, uint64_t number);
/* Forgets messages with numbers less than `below` from one rank, or from all ranks if `from` is -1. */
void plim_inbox_discard(struct plim_inbox *inbox, int from, int channel, uint64_t below);
void plim_inbox_finish(struct plim_inbox *inbox);

#endif
