/* Models of an encoder and a decoder in a spec. */
#ifndef PLIM_WORKLOADS_SPEC_SEQ2SEQ_H
#define PLIM_WORKLOADS_SPEC_SEQ2SEQ_H

#include "spec.h"

enum { PLIM_TARGET_SEQ = 128 }; /* max_target_length of transformers' run_summarization.py */

/* Tokens of a row's target, where data.seq counts those of its source. 0: the model has no encoder beside its decoder,
 * or it has one for sound (whisper), and then data.seq counts the target's tokens. */
static inline int64_t plim_spec_target(const struct plim_spec *spec)
{
    if (!spec->model.encoder_layers || spec->model.source_positions) return 0;
    int64_t most = spec->model.positions; /* 0: any */
    if (spec->target_seq) return spec->target_seq;
    return most && most < PLIM_TARGET_SEQ ? most : PLIM_TARGET_SEQ;
}

/* Derives from the keys: the number of blocks of both stacks together, and the MLP. Leaves other models alone. */
void plim_seq2seq_derive(struct plim_model_config *model);

/* Refuses models that transformers fails to build or to run; the key at fault in *culprit. */
enum plim_status plim_seq2seq_check(const struct plim_spec *spec, const char **culprit,
                                    struct plim_error *err) PLIM_MUST_CHECK;

/* Refuses a target for a model without a decoder for it. The culprit is data.target_seq. */
enum plim_status plim_spec_check_target(const struct plim_spec *spec, struct plim_error *err) PLIM_MUST_CHECK;

/* Refuses train.freeze_encoder, the culprit, for models without mel bins: only whisper's encoder can be frozen. */
enum plim_status plim_spec_check_freezing(const struct plim_spec *spec, struct plim_error *err) PLIM_MUST_CHECK;

#endif
