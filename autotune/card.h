/* One card, ready to be searched: the device, what of it may be used, and the engine on it.
 *
 *     usable = total of the card - what other processes hold
 *     budget = usable - framework overhead - margin
 *
 * The framework overhead (context, kernels' modules, libraries) is outside of what the replay
 * sees. On a simulated card it is an estimate by compute capability; see overhead_table in
 * card.c for the figures and where they come from. `--overhead` overrides it.
 */
#ifndef PLIM_AUTOTUNE_CARD_H
#define PLIM_AUTOTUNE_CARD_H

#include "reports/result.h"
#include "runner.h"

/* How much of a card may be used. */
struct plim_allowance {
    bool overhead_given;
    int64_t overhead_bytes;   /* where given */
    double margin_share;      /* of usable; used where margin_bytes is negative */
    int64_t margin_bytes;
    const char *alloc_conf;   /* allocator options in PyTorch's syntax; "" or NULL: its defaults */
};

#define PLIM_ALLOWANCE_DEFAULT (struct plim_allowance){.margin_share = 0.05, .margin_bytes = -1}

/* Devices are opened and engines made when they are first needed. */
struct plim_card {
    struct plim_result_device device;
    struct plim_result_limit limit;
    struct plim_runner runner;      /* its user is this card: do not move an open card */
    int multiprocessors, threads_per_multiprocessor;
    double peak_rate[PLIM_PRECISION_COUNT]; /* FLOP/s for model FLOP utilisation; 0: not known */
    const struct plim_model_config *model;
    struct plim_allocator_config allocator;
    struct plim_card_engine {
        struct plim_device *device;
        struct plim_replayer *replayer;
    } engines[2];
};

/* Opens the card that a URI names ("sim:A100-SXM4-80GB,memory=24GiB"). `model` outlives it.
 * PLIM_NODEVICE: there is none; PLIM_UNSUPPORTED: this build has no such device. */
enum plim_status plim_card_open(struct plim_card *card, const char *uri,
                                const struct plim_allowance *allowance,
                                const struct plim_model_config *model,
                                struct plim_error *err) PLIM_MUST_CHECK;
void plim_card_close(struct plim_card *card); /* NULL and zeroed are fine */

/* Runs `setting` under the budget once more and writes what it allocates and frees to the file. */
enum plim_status plim_card_trace(struct plim_card *card, const struct plim_setting *setting,
                                 const char *path, struct plim_error *err) PLIM_MUST_CHECK;

/* Do replays on one tell about the other (memo.h)? */
bool plim_card_same_class(const struct plim_card *a, const struct plim_card *b);

#endif
