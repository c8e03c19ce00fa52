/* A job whose ranks need different amounts of memory.
 *
 * Under DeepSpeed's ZeRO 1 and 2 every rank owns another part of the weights, and keeps their
 * gradients. Which rank needs the most depends on where its peak falls, so it is not known before a
 * run: a search uses the rank that owns most weights (zero_create.c), and its choice is proven
 * for the others, too. Under FSDP2 later ranks have fewer rows of weights that the world size does not divide:
 * they allocate less and may still reserve more, so one rank of each kind is proven beside rank 0.
 */
#ifndef PLIM_WORKLOADS_TRAIN_RANKS_H
#define PLIM_WORKLOADS_TRAIN_RANKS_H

#include "replay.h"

/* The greatest number of ranks that are proven: in a larger world under ZeRO the first, the last and others spread
 * between them; under FSDP2, which nearly always has two or three kinds, the first of each kind. */
enum { PLIM_RANKS_PROVEN = 16 };

/* Do ranks differ in memory, and does the setting name none of them? */
bool plim_ranks_differ(const struct plim_train_setting *setting);

/* plim_replay_prove() of the ranks: `out` is the result of the rank that fails, else of the one that reserves the
 * most, together with what rank 0 reserves. */
enum plim_status plim_ranks_prove(struct plim_replayer *replayer,
                                  const struct plim_model_config *model,
                                  const struct plim_train_setting *setting, struct plim_replay *out,
                                  struct plim_error *err) PLIM_MUST_CHECK;

#endif
