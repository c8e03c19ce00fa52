/* One card, ready to be searched: the device, what of it may be used, and the engine on it.
 *
 *     usable = total of the card - what other processes hold
 *     budget = usable - framework overhead - margin
 *
 * The framework overhead (context, kernels' modules, libraries) is outside of what the replay
 * sees. It is an estimate by compute capability (overhead_table in card.c has the figures and where
 * they come from), on a real card what was measured there if that is more; `--overhead` overrides
 * both.
 *
 * A simulated card is replayed on in this process. A real one is run on in a worker (remote.h), and
 * has a simulated twin: the same card, with the same budget, for plans and for what a setting would
 * need if nothing limited it.
 */
#ifndef PLIM_AUTOTUNE_CARD_H
#define PLIM_AUTOTUNE_CARD_H

#include "autotune/base/log.h"
#include "devices/catalogue/catalogue.h"
#include "measure.h"
#include "reports/result.h"
#include "runner.h"
#include "stop.h"

/* How much of a card may be used. */
struct plim_allowance {
    bool overhead_given;
    int64_t overhead_bytes;   /* where given */
    double margin_share;      /* of usable; used where margin_bytes is negative */
    int64_t margin_bytes;
    const char *alloc_conf;   /* allocator options in PyTorch's syntax; "" or NULL: its defaults */
};

#define PLIM_ALLOWANCE_DEFAULT (struct plim_allowance){.margin_share = 0.05, .margin_bytes = -1}

/* What is asked of a card. Everything outlives it. */
struct plim_card_order {
    const char *uri; /* "sim:A100-SXM4-80GB,memory=24GiB", "cuda:0", "host" */
    const struct plim_allowance *allowance;
    const struct plim_spec *spec;
    const struct plim_stop *stop; /* NULL: never stops */
    const struct plim_log *log;   /* NULL: nobody listens */
    double timing_seconds;        /* a real card: for the repeats of one setting; 0: one run */
};

struct plim_remote;
struct plim_nvml;

/* Devices are opened and engines made when they are first needed. */
struct plim_card {
    struct plim_result_device device;
    struct plim_result_limit limit;
    struct plim_runner runner;      /* its user is this card: do not move an open card */
    struct plim_runner planner;     /* of a real card: its twin; `run` is NULL on a simulated one */
    int multiprocessors, threads_per_multiprocessor;
    double peak_rate[PLIM_PRECISION_COUNT]; /* FLOP/s for model FLOP utilisation; 0: not known */
    const struct plim_card_order *order;
    struct plim_allocator_config allocator;
    struct plim_gpu gpu;            /* what is simulated: this card, or the twin */
    struct plim_card_engine {
        struct plim_device *device;
        struct plim_replayer *replayer;
    } engines[2];
    /* a real card's: */
    struct plim_remote *remote;
    struct plim_nvml *nvml;         /* NULL: nobody to ask */
    char uuid[96];                  /* to NVML */
    int64_t held_bytes;             /* by others, when the card was opened */
    struct plim_timing timing;      /* of the last run */
};

/* Opens the card that a URI names. `order` outlives it. PLIM_NODEVICE: there is none, or it cannot
 * be used; PLIM_UNSUPPORTED: this build has no such device. */
enum plim_status plim_card_open(struct plim_card *card, const struct plim_card_order *order,
                                struct plim_error *err) PLIM_MUST_CHECK;
void plim_card_close(struct plim_card *card); /* NULL and zeroed are fine */

/* Opens a real GPU for a program of the user's: what NVML tells of it, its limit, and nothing to run on
 * (`runner` and `planner` stay empty). `order->uri` is "cuda:...", `order->spec` is not looked at. */
enum plim_status plim_card_open_for_program(struct plim_card *card,
                                            const struct plim_card_order *order,
                                            struct plim_error *err) PLIM_MUST_CHECK;

/* Runs `setting` under the budget once more, simulated, and writes what it allocates and frees to
 * the file. */
enum plim_status plim_card_trace(struct plim_card *card, const struct plim_setting *setting,
                                 const char *path, struct plim_error *err) PLIM_MUST_CHECK;

/* Do replays on one tell about the other (memo.h)? */
bool plim_card_same_class(const struct plim_card *a, const struct plim_card *b);

#endif
