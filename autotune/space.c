#include "space.h"

/* An axis without values has the default: the first name. */
static size_t axis_count(const struct plim_enum_axis *axis)
{
    return axis->count ? axis->count : 1;
}

static int axis_value(const struct plim_enum_axis *axis, size_t index)
{
    return axis->count ? axis->values[index] : 0;
}

void plim_space_seqs(const struct plim_spec *spec, struct plim_int_axis *seqs)
{
    *seqs = spec->seq;
    if (seqs->count) return;
    int64_t positions = spec->model.positions;
    seqs->values[0] =
        positions > 0 && positions < PLIM_DEFAULT_SEQ_MAX ? positions : PLIM_DEFAULT_SEQ_MAX;
    seqs->count = 1;
}

enum plim_status plim_space_build(struct plim_space *space, const struct plim_spec *spec,
                                  const struct plim_int_axis *seqs, struct plim_error *err)
{
    size_t attentions = axis_count(&spec->attention),
           checkpointings = axis_count(&spec->checkpointing);
    size_t optimizers = axis_count(&spec->optimizer), precisions = axis_count(&spec->precision);
    size_t variants = spec->variants ? (size_t)spec->variants : 1;
    size_t count = seqs->count * precisions * optimizers * checkpointings * attentions * variants;
    space->points.count = 0;
    for (size_t i = 0; i < count; i++) {
        size_t rest = i;
        struct plim_setting point = {.sharding = spec->sharding,
                                     .packing = spec->packing,
                                     .clip = spec->clip,
                                     .lora = spec->lora};
        point.variant = (int64_t)(rest % variants);
        rest /= variants;
        point.attention = (enum plim_attention)axis_value(&spec->attention, rest % attentions);
        rest /= attentions;
        point.checkpointing =
            (enum plim_checkpointing)axis_value(&spec->checkpointing, rest % checkpointings);
        rest /= checkpointings;
        point.optimizer = (enum plim_optimizer)axis_value(&spec->optimizer, rest % optimizers);
        rest /= optimizers;
        point.precision = (enum plim_precision)axis_value(&spec->precision, rest % precisions);
        point.seq = seqs->values[rest / precisions];
        if (PLIM_ARRAY_PUSH(&space->points, point) != PLIM_OK)
            return plim_fail(err, PLIM_NOMEM, "out of host memory");
    }
    return PLIM_OK;
}

void plim_space_finish(struct plim_space *space)
{
    if (space) PLIM_ARRAY_FINISH(&space->points);
}

struct plim_setting plim_space_setting(const struct plim_setting *point,
                                       const struct plim_batch *batch)
{
    struct plim_setting setting = *point;
    setting.micro_batch = batch->micro_batch;
    setting.accumulation =
        batch->accumulation < PLIM_PROBED_STEPS ? batch->accumulation : PLIM_PROBED_STEPS;
    return setting;
}
