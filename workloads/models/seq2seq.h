/* The parts that encoder-decoder models share; each family also has a file of its own. */
#ifndef PLIM_MODELS_SEQ2SEQ_H
#define PLIM_MODELS_SEQ2SEQ_H

#include "model.h"

enum { SELF, CROSS }; /* self-attention and cross-attention of a decoder's block */

/* The traits of a family. */
struct seq2seq {
    bool shifts_first; /* the decoder's input is made from the labels before the encoder runs */
    bool wraps;         /* the decoder's input starts with the labels' last token that is not padding (mbart) */
    bool keeps_nothing; /* the decoder has no KV cache if there are labels, or with Trainer */
    bool own_config;   /* the decoder has a copy of the model's configuration */
    /* Runs the encoder's stack on the model's input (`encoded` NULL), or the decoder's on tokens and the encoder's
     * result; named. */
    struct tensor *(*run)(struct engine *e, struct decoder *m, struct tensor *inputs, struct tensor *encoded);
};

/* Runs the encoder's stack on `inputs`, then the decoder's on the batch's decoder_inputs or shifted labels; named. */
struct tensor *seq2seq_body(struct engine *e, struct decoder *m, const struct seq2seq *family, struct tensor *inputs);

/* The traits of a block (seq2seq_layer.c). */
struct seq2seq_layer {
    bool norms_first;    /* norms before attention and MLP, otherwise after the residual addition */
    bool scales_queries; /* the queries are scaled instead of the scores */
    bool packs_heads;    /* queries, keys and values are copied, so that each head is contiguous */
    bool clamps;         /* clamps an encoder's result in fp16 */
};

/* Builds the blocks of the encoder's or (decodes) decoder's stack. */
void seq2seq_build_layers(struct engine *e, struct decoder *m, bool decodes, bool key_bias);
/* Runs a block: x (B, S, H) lent -> (B, S, H) floating. */
struct tensor *seq2seq_run_layer(struct engine *e, const struct block_call *b, const struct seq2seq_layer *how,
                                 struct tensor *x);

/* Return the number of tokens of a row in the encoder, and in the decoder. */
int64_t seq2seq_source(const struct decoder *m);
int64_t seq2seq_target(const struct decoder *m);

#endif
