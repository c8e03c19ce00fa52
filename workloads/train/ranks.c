#include "ranks.h"

bool plim_ranks_differ(const struct plim_train_setting *setting)
{
    bool parted = setting->sharding == PLIM_SHARDING_ZERO1 ||
                  setting->sharding == PLIM_SHARDING_ZERO2 ||
                  setting->sharding == PLIM_SHARDING_FSDP;
    return parted && setting->world > 1 && setting->rank < 0;
}

static int64_t ranks_proven(const struct plim_train_setting *setting)
{
    int64_t most = setting->sharding == PLIM_SHARDING_FSDP ? 2 : PLIM_RANKS_PROVEN;
    return setting->world < most ? setting->world : most;
}

enum plim_status plim_ranks_prove(struct plim_replayer *replayer,
                                  const struct plim_model_config *model,
                                  const struct plim_train_setting *setting, struct plim_replay *out,
                                  struct plim_error *err)
{
    struct plim_train_setting of_rank = *setting;
    int64_t count = ranks_proven(setting), rank0_reserved_bytes = 0;
    enum plim_status st = PLIM_OK;
    for (int64_t i = 0; i < count && !st; i++) {
        struct plim_replay replay;
        of_rank.rank = i * (setting->world - 1) / (count - 1);
        st = plim_replay_prove(replayer, model, &of_rank, &replay, err);
        if (st) break;
        replay.rank = of_rank.rank;
        if (i == 0) rank0_reserved_bytes = replay.peak_reserved_bytes;
        if (i == 0 || replay.verdict != PLIM_OK ||
            replay.peak_reserved_bytes > out->peak_reserved_bytes)
            *out = replay;
        if (replay.verdict != PLIM_OK) return PLIM_OK;
    }
    out->rank0_reserved_bytes = rank0_reserved_bytes;
    return st;
}
