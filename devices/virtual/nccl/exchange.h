/* Where ranks meet: what one process of the program tells the others of a communicator.
 *
 * An exchange is a file without a name, in memory, that all ranks of one communicator have open:
 * its place (a path through /proc and a number that proves it) travels in an ncclUniqueId. It holds
 * a row and a log for each rank. A rank writes to its own row and its own log and to nothing else,
 * and makes a message visible after all of it is there. So no process holds a lock that others need, a
 * rank that is killed at any moment leaves nothing half done, and when the last process is gone so
 * is the file.
 *
 * A channel counts: everything a rank does in one has a number, 0, 1, 2, .... A message with bytes
 * stays for whoever needs it; one without is only counted ("I have come so far").
 *
 * That a rank lives is told by a lock on a byte of the file, which the kernel takes away from a
 * process that dies, before its parent has even asked how.
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
    EXCHANGE_SETUP = 0,      /* how communicators come out of this one */
    EXCHANGE_COLLECTIVE = 1,
    EXCHANGE_TO = 2,         /* + the rank that it is for */
    EXCHANGE_CHANNELS = EXCHANGE_TO + EXCHANGE_RANKS,
};

struct plim_exchange;

/* How to find it. Plain bytes, to be sent around. */
struct plim_exchange_place {
    char path[48];
    uint64_t proof;
};

enum plim_presence {
    PLIM_ABSENT, /* has not come yet */
    PLIM_PRESENT,
    PLIM_LEFT,   /* on its own accord */
    PLIM_DEAD,
};

/* A new one. The first plim_exchange_open() of it in this process takes it over; one that is not
 * opened here is to be closed. NULL: no memory. */
struct plim_exchange *plim_exchange_create(struct plim_exchange_place *place);
/* NULL: there is none at that place (any more). To be closed. */
struct plim_exchange *plim_exchange_open(const struct plim_exchange_place *place);
void plim_exchange_close(struct plim_exchange *exchange);

/* Takes the place of a rank. False: it is taken. `gpu` is the GPU's number in the machine. */
bool plim_exchange_join(struct plim_exchange *exchange, int rank, int gpu);
void plim_exchange_leave(struct plim_exchange *exchange, int rank);
enum plim_presence plim_exchange_presence(struct plim_exchange *exchange, int rank);
int plim_exchange_gpu(struct plim_exchange *exchange, int rank);

/* The next number of a channel; `bytes` may be 0 for "no message". False: there was no memory for
 * the message, and it only counts. */
bool plim_exchange_post(struct plim_exchange *exchange, int rank, int channel, const void *message,
                        size_t bytes);
/* How far a rank has come in a channel: the number that it has not reached yet. */
uint64_t plim_exchange_count(struct plim_exchange *exchange, int rank, int channel);

/* --- a rank's inbox --------------------------------------------------------------------------- */

struct plim_exchange_message {
    struct plim_exchange_message *next;
    int from, channel;
    uint64_t number;
    size_t bytes;
    unsigned char data[];
};

/* Messages taken out of the others' logs and not yet forgotten. Zeroed is empty. */
struct plim_inbox {
    struct plim_exchange *exchange;
    int rank; /* whose it is */
    uint64_t taken_bytes[EXCHANGE_RANKS];
    struct plim_exchange_message *newest;
};

/* NULL: there is no message of that number (plim_exchange_count tells whether one may still come).
 * Good until it is forgotten. */
const struct plim_exchange_message *plim_inbox_find(struct plim_inbox *inbox, int from,
                                                    int channel, uint64_t number);
/* No rank will ask for messages with smaller numbers. `from` -1: of all ranks. */
void plim_inbox_forget(struct plim_inbox *inbox, int from, int channel, uint64_t below);
void plim_inbox_finish(struct plim_inbox *inbox);

#endif
