/* What card.c (simulated cards, limits) and card_real.c (workers and twins) share. */
#ifndef PLIM_AUTOTUNE_CARD_INTERNAL_H
#define PLIM_AUTOTUNE_CARD_INTERNAL_H

#include "card.h"
#include "devices/device.h"

/* Fills in what is known of the device; `card->gpu` comes first. */
void plim_card_describe(struct plim_card *card, const struct plim_device_info *info);

/* What a training process of PyTorch takes beside the caching allocator's memory. */
int64_t plim_card_estimated_overhead(int compute_capability);
/* Of that, what a process takes before it has loaded a kernel. */
int64_t plim_card_estimated_context(int compute_capability);

/* Fills in `limit` from what was allowed. Of the overhead's estimate and of what was measured (0: was
 * not) the larger counts. */
void plim_card_set_limit(struct plim_card *card, int64_t usable_bytes, int64_t estimate,
                         int64_t measured_bytes);

/* Runs on `card->gpu`, simulated: the function of a runner whose user is the card. */
enum plim_status plim_card_simulate(void *user, const struct plim_setting *setting,
                                    enum plim_run_mode mode, struct plim_replay *out,
                                    struct plim_error *err);
struct plim_runner plim_card_simulator(struct plim_card *card);

/* Open what `card->order` names. */
enum plim_status plim_card_open_cuda(struct plim_card *card,
                                     struct plim_error *err) PLIM_MUST_CHECK;
enum plim_status plim_card_open_host(struct plim_card *card,
                                     struct plim_error *err) PLIM_MUST_CHECK;

#endif
