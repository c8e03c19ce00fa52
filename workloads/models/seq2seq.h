/* Models of an encoder and a decoder: what they share, each family with a file of its own beside it. */
#ifndef PLIM_MODELS_SEQ2SEQ_H
#define PLIM_MODELS_SEQ2SEQ_H

#include "model.h"

enum { SELF, CROSS }; /* attention of a decoder's block: to its own tokens, and to the encoder's */

/* How a family goes about it. */
struct seq2seq {
    bool shifts_first; /* what the decoder reads is made of labels before the encoder runs */
    bool wraps;         /* its rows begin with the last token that is no padding (mbart) */
    bool keeps_nothing; /* the decoder keeps no keys and values where there are labels, or Trainer */
    bool own_config;   /* the decoder has a copy of the model's configuration */
    /* The encoder's stack, of what the model is given, or the decoder's, of tokens and what the encoder returned;
     * named */
    struct tensor *(*run)(struct engine *e, struct decoder *m, struct tensor *inputs, struct tensor *encoded);
};

/* The encoder's stack on `inputs`, then the decoder's on the batch's decoder_inputs or on its shifted labels; named */
struct tensor *seq2seq_body(struct engine *e, struct decoder *m, const struct seq2seq *family, struct tensor *inputs);

/* What a block does (seq2seq_layer.c); `encoded` as of struct block_call. */
struct seq2seq_layer {
    bool norms_first;    /* in front of attention and MLP, else behind what is added */
    bool scales_queries; /* attention's scale is in the queries already */
    bool packs_heads;    /* queries, keys and values are copied, head by head */
    bool clamps;         /* an encoder's result in fp16 */
};

/* Makes a stack's blocks. */
void seq2seq_build_layers(struct engine *e, struct decoder *m, bool decodes, bool key_bias);
/* x (B, S, H) lent -> (B, S, H) floating */
struct tensor *seq2seq_run_layer(struct engine *e, const struct block_call *b, const struct seq2seq_layer *how,
                                 struct tensor *x);

/* Tokens of a row that the encoder sees, and that the decoder writes */
int64_t seq2seq_source(const struct decoder *m);
int64_t seq2seq_target(const struct decoder *m);

#endif
