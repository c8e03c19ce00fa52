/* A job whose ranks need different amounts of memory.
 *
 * Under DeepSpeed's ZeRO 1 and 2 every rank owns another part of the weights, and keeps the gradients of
 * those. Which rank needs the most depends on where its peak falls, so it is not known before it was
 * run: a search goes by the rank that owns most weights (zero_create.c), and what it chooses is proven
 * for the others, too. Under FSDP2 later ranks have fewer rows of what the world does not divide: they
 * allocate less and may still reserve more, so one of each kind is proven beside rank 0.
 */
#ifndef PLIM_WORKLOADS_TRAIN_RANKS_H
#define PLIM_WORKLOADS_TRAIN_RANKS_H

#include "replay.h"

/* Ranks that are proven: of a larger world under ZeRO the first, the last and as many between them; under FSDP2,
 * which has two or three kinds nearly always, the first of each kind. */
enum { PLIM_RANKS_PROVEN = 16 };

/* Do ranks differ, and was none of them asked for? */
bool plim_ranks_differ(const struct plim_train_setting *setting);

/* plim_replay_prove() of all ranks: what came of the one that fails, else of the one that reserves the
 * most, with what rank 0 reserves beside it. */
enum plim_status plim_ranks_prove(struct plim_replayer *replayer,
                                  const struct plim_model_config *model,
                                  const struct plim_train_setting *setting, struct plim_replay *out,
                                  struct plim_error *err) PLIM_MUST_CHECK;

#endif
