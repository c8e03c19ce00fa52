/* The pretended cards that all stand-ins and all processes of a test share.
 *
 * What a card holds is counted per process in a small file that everybody maps, so that memory held
 * by others, leaks and several processes on one card are real. A process that dies gives its memory
 * back as with the real driver: a little later, here at the second look after its death.
 *
 *   PLIM_DOUBLE_CARD     cards by their name in the catalogue, with commas; plain: A100-SXM4-80GB
 *   PLIM_DOUBLE_MEMORY   total of each card ("2GiB"); plain: the catalogue's
 *   PLIM_DOUBLE_OTHERS   bytes of each card that strangers hold from the start; plain: 0
 *   PLIM_DOUBLE_STATE    the file; it may be empty at first. Without it every library of every
 *                        process has cards of its own
 *   PLIM_DOUBLE_FAULT    KIND@N, with commas: what goes wrong at the Nth event (from 1) of a process
 *
 * KIND@N! happens in one process only, in the first that comes to its Nth event, so that a fresh
 * process does not fail as well (needs PLIM_DOUBLE_STATE to be seen by others). A mistake in these
 * variables ends the process with a line on stderr.
 *
 * Thread safety: one thread at a time in each library; libraries and processes lock each other out.
 */
#ifndef PLIM_TESTS_DOUBLES_CARD_STATE_H
#define PLIM_TESTS_DOUBLES_CARD_STATE_H

#include "devices/catalogue/catalogue.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CARD_MAX = 4, CARD_MAX_PROCESSES = 64 };

/* kind, name, whether it lasts from its Nth event on. The comment: the event that counts. */
#define CARD_FAULT_MAP(X)                                                                          \
    X(OOM, "oom", false)               /* an allocation: it fails */                               \
    X(OOM_LAUNCH, "oom-launch", false) /* a launch: its code does not fit */                       \
    X(DISGUISED, "disguised", false) /* an allocation that would leave under 1 GiB: it fails     \
                                          with an error that does not say so */ \
    X(LOST, "lost", true)            /* a launch: an illegal address */                            \
    X(HANG, "hang", false)           /* a launch: it never ends */                                 \
    X(KILL, "kill", false)           /* a launch: SIGKILL */                                       \
    X(VANISH, "vanish", true)        /* a call: the card is gone */                                \
    X(OOM_LIB, "oom-lib", false)     /* a call of cuBLASLt, of cuDNN: an allocation in it fails */ \
    X(DISGUISED_LIB, "disguised-lib", false) /* the same: it fails and does not say why */         \
    X(LEAK, "leak", true)            /* something is freed: free memory does not grow */           \
    X(STEAL, "steal", false)         /* a launch: strangers take half of the free memory */        \
    X(NAN, "nan", false)             /* a copy to the host: NaNs */                                \
    X(SLOW, "slow", true)            /* a launch: five times slower */

enum card_fault {
#define CARD_FAULT_ENUM(name, text, lasts) CARD_FAULT_##name,
    CARD_FAULT_MAP(CARD_FAULT_ENUM)
#undef CARD_FAULT_ENUM
        CARD_FAULT_COUNT
};

/* What one process holds of one card. */
struct card_process {
    int pid; /* CARD_STRANGERS: not a process of this test, and it stays */
    int64_t held_bytes;
};

enum { CARD_STRANGERS = -1 };

int card_count(void);

/* `card` counts from 0. The figures live as long as the process. */
const struct plim_gpu *card_gpu(int card);
int64_t card_total_bytes(int card);
void card_uuid(int card, uint8_t uuid[16]);

int64_t card_free_bytes(int card);

/* Takes memory of a card for this process; false: it does not fit. */
bool card_take(int card, int64_t bytes);
/* Gives it back. Under the fault `leak` the process goes on holding it. */
void card_give_back(int card, int64_t bytes);
/* Strangers take it, as far as it is free. */
void card_steal(int card, int64_t bytes);

/* Who holds something of a card; the dead are listed until they are noticed. Returns how many there
 * are, of which the first `size` are written. */
size_t card_processes(int card, struct card_process *out, size_t size);

/* Counts an event of this process and says whether the fault strikes at it. */
bool card_fault(enum card_fault kind);

/* How often that event came in the process where it came most often: the positions where the fault
 * can strike. */
uint32_t card_most_events(enum card_fault kind);
const char *card_fault_name(enum card_fault kind);

/* The cards are gone, for everybody (`vanish` without "!"): NVML knows as well. */
bool card_gone(void);

#endif
