/* Jobs whose ranks need different amounts of memory.
 *
 * With DeepSpeed's ZeRO 1 and 2 every rank owns a different part of the weights and keeps their gradients. Which rank
 * needs the most memory depends on when its peak occurs, so it is not known before a run: a search uses the rank that
 * owns the most weights (zero_create.c), and its choice is then proven for the other ranks, too. With FSDP2 later ranks
 * have fewer rows of weights that the world size does not divide: they allocate less but may still reserve more, so one
 * rank of each kind is proven in addition to rank 0. */
#ifndef PLIM_WORKLOADS_TRAIN_RANKS_H
#define PLIM_WORKLOADS_TRAIN_RANKS_H

#include "replay.h"

/* The maximum number of ranks that are proven. In a larger world these are, with ZeRO, the first, the last and others
 * spread evenly between them; with FSDP2, where there are nearly always two or three kinds of ranks, the first of each
 * kind. */
enum { PLIM_RANKS_PROVEN = 16 };

/* True if ranks differ in memory and the setting names no rank. */
bool plim_ranks_differ(const struct plim_train_setting *setting);

/* Runs plim_replay_prove() for the ranks. `out` is the result of the first rank that fails, otherwise of the rank that
 * reserves the most, and includes what rank 0 reserves. */
enum plim_status plim_ranks_prove(struct plim_replayer *replayer,
                                  const struct plim_model_config *model,
                                  const struct plim_train_setting *setting, struct plim_replay *out,
                                  struct plim_error *err) PLIM_MUST_CHECK;

#endif
