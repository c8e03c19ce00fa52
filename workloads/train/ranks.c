#include "ranks.h"

bool plim_ranks_differ(const struct plim_train_setting *setting)
{
    bool parted = setting->sharding == PLIM_SHARDING_ZERO1 ||
                  setting->sharding == PLIM_SHARDING_ZERO2 ||
                  setting->sharding == PLIM_SHARDING_FSDP;
    return parted && setting->world > 1 && setting->rank < 0;
}

/* Returns the N-th rank to prove, after the one that was replayed last; -1 if there are no more. */
static int64_t next_rank(const struct plim_train_setting *setting, const struct plim_replay *of_last, int64_t n)
{
    int64_t most = setting->world < PLIM_RANKS_PROVEN ? setting->world : PLIM_RANKS_PROVEN;
    if (n >= most) return -1;
    if (setting->sharding == PLIM_SHARDING_FSDP) return of_last->next_rank ? of_last->next_rank : -1;
    return n * (setting->world - 1) / (most - 1);
}

enum plim_status plim_ranks_prove(struct plim_replayer *replayer,
                                  const struct plim_model_config *model,
                                  const struct plim_train_setting *setting, struct plim_replay *out,
                                  struct plim_error *err)
{
    struct plim_train_setting of_rank = *setting;
    int64_t rank0_reserved_bytes = 0;
    of_rank.rank = 0;
    for (int64_t n = 0; of_rank.rank >= 0; n++) {
        struct plim_replay replay;
        enum plim_status st = plim_replay_prove(replayer, model, &of_rank, &replay, err);
        if (st) return st;
        replay.rank = of_rank.rank;
        if (n == 0) rank0_reserved_bytes = replay.peak_reserved_bytes;
        bool decides = replay.verdict != PLIM_OK || plim_replay_has_unproven_retries(&replay); /* not proven to fit */
        if (n == 0 || decides || replay.peak_reserved_bytes > out->peak_reserved_bytes) *out = replay;
        out->rank0_reserved_bytes = rank0_reserved_bytes;
        if (decides) return PLIM_OK;
        of_rank.rank = next_rank(setting, &replay, n + 1);
    }
    return PLIM_OK;
}
