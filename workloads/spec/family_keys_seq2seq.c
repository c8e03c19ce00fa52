/* An encoder and a decoder: the keys of their config.json. */
#include "family_rows.h"

/* One key, four places: dropouts that are modules, and attention's. tie_word_embeddings: their classes tie what they
 * make anew in any case, but published checkpoints whose config.json says false have a head of their own, which
 * from_pretrained() leaves as it is (tie_weights(): both are there with different values). */
#define T5_KEYS(vocabulary, width, layers, heads, feed_forward, start)                                              \
    KEY("task", TASK, "seq2seq-lm"), KEY("vocab_size", VOCAB_SIZE, vocabulary),                                     \
        TWO("d_model", "hidden_size", HIDDEN_SIZE, "512"), TWO("d_kv", "head_dim", HEAD_DIM, "64"),                 \
        KEY("d_ff", INTERMEDIATE_SIZE, width), KEY("num_layers", LAYERS, layers),              \
        NUL("num_decoder_layers", DECODER_LAYERS, "null"), TWO("num_heads", "num_attention_heads", HEADS, heads),   \
        KEY("relative_attention_num_buckets", RELATIVE_BUCKETS, "32"),                                              \
        KEY("relative_attention_max_distance", RELATIVE_DISTANCE, "128"),                                           \
        KEY("dropout_rate", DROPOUT_RESIDUAL, "0.1"), KEY("dropout_rate", DROPOUT_EMBEDDING, "0.1"),                \
        KEY("dropout_rate", DROPOUT_ATTENTION, "0.1"), KEY("dropout_rate", DROPOUT_MLP, "0.1"),                     \
        KEY("feed_forward_proj", FEED_FORWARD, feed_forward), KEY("use_cache", USE_CACHE, "true"),                  \
        KEY("tie_word_embeddings", TIE_WORD_EMBEDDINGS, "true"), NUL("pad_token_id", PAD_TOKEN, "0"),               \
        NUL("decoder_start_token_id", DECODER_START, start)

static const struct plim_family_key t5_keys[] = {T5_KEYS("32128", "2048", "6", "8", "relu", "null")};
static const struct plim_family_key mt5_keys[] = {T5_KEYS("250112", "1024", "8", "6", "gated-gelu", "0")};

static const struct plim_family_key whisper_keys[] = {
    KEY("task", TASK, "seq2seq-lm"),
    KEY("vocab_size", VOCAB_SIZE, "51865"),
    KEY("num_mel_bins", MEL_BINS, "80"),
    TWO("encoder_layers", "num_hidden_layers", LAYERS, "4"),
    TWO("encoder_attention_heads", "num_attention_heads", HEADS, "6"),
    KEY("decoder_layers", DECODER_LAYERS, "4"),
    KEY("decoder_attention_heads", DECODER_HEADS, "6"),
    KEY("decoder_ffn_dim", DECODER_INTERMEDIATE, "1536"),
    KEY("encoder_ffn_dim", INTERMEDIATE_SIZE, "1536"),
    KEY("decoder_start_token_id", DECODER_START, "50257"),
    KEY("use_cache", USE_CACHE, "true"),
    KEY("activation_function", ACTIVATION, "gelu"),
    TWO("d_model", "hidden_size", HIDDEN_SIZE, "384"),
    KEY("dropout", DROPOUT_RESIDUAL, "0.0"),
    KEY("dropout", DROPOUT_EMBEDDING, "0.0"),
    KEY("attention_dropout", DROPOUT_ATTENTION, "0.0"),
    KEY("activation_dropout", DROPOUT_MLP, "0.0"),
    KEY("max_source_positions", SOURCE_POSITIONS, "1500"),
    KEY("max_target_positions", POSITIONS, "448"),
    NUL("pad_token_id", PAD_TOKEN, "50256"),
    KEY("tie_word_embeddings", TIE_WORD_EMBEDDINGS, "true"),
};

#define BART_KEYS(start)                                                                                            \
    KEY("task", TASK, "seq2seq-lm"), KEY("vocab_size", VOCAB_SIZE, "50265"),                                        \
        KEY("max_position_embeddings", POSITIONS, "1024"),                                                          \
        TWO("encoder_layers", "num_hidden_layers", LAYERS, "12"),                                                   \
        KEY("encoder_ffn_dim", INTERMEDIATE_SIZE, "4096"),                                                          \
        TWO("encoder_attention_heads", "num_attention_heads", HEADS, "16"),                                         \
        KEY("decoder_layers", DECODER_LAYERS, "12"), KEY("decoder_ffn_dim", DECODER_INTERMEDIATE, "4096"),          \
        KEY("decoder_attention_heads", DECODER_HEADS, "16"), KEY("activation_function", ACTIVATION, "gelu"),        \
        TWO("d_model", "hidden_size", HIDDEN_SIZE, "1024"), KEY("dropout", DROPOUT_RESIDUAL, "0.1"),                \
        KEY("dropout", DROPOUT_EMBEDDING, "0.1"), KEY("attention_dropout", DROPOUT_ATTENTION, "0.0"),               \
        KEY("activation_dropout", DROPOUT_MLP, "0.0"), KEY("scale_embedding", SCALES_EMBEDDINGS, "false"),          \
        NUL("pad_token_id", PAD_TOKEN, "1"), NUL("decoder_start_token_id", DECODER_START, start),                   \
        KEY("tie_word_embeddings", TIE_WORD_EMBEDDINGS, "true")

/* Their decoder_start_token_id: mbart's rows begin with a token of their own. */
static const struct plim_family_key bart_keys[] = {BART_KEYS("2")};
static const struct plim_family_key mbart_keys[] = {BART_KEYS("null")};

#define T5_FAMILY(table)                                                                                            \
    {KEYS(table), .tasks = 1u << PLIM_TASK_SEQ2SEQ_LM,                                                        \
     .required = {PLIM_FIELD_DECODER_START, PLIM_FIELD_PAD_TOKEN}, /* _shift_right() */                             \
     .linears = {"q", "k", "v", "o", "wi", "wi_0", "wi_1", "wo"}, .lora_default = {"q", "v"}}

/* Models of seq2seq_layer.c; what shift_tokens_right() takes is required. */
#define LAYERED(...)                                                                                                \
    .tasks = 1u << PLIM_TASK_SEQ2SEQ_LM, .learned_positions = true, .functional_dropout = true,                     \
    .heads_must_divide = true, .required = {__VA_ARGS__},                                                           \
    .linears = {"k_proj", "v_proj", "q_proj", "out_proj", "fc1", "fc2"}, .lora_default = {"q_proj", "v_proj"}

const struct plim_family_info plim_seq2seq_families[PLIM_FAMILY_COUNT] = {
    [PLIM_FAMILY_T5] = T5_FAMILY(t5_keys),
    [PLIM_FAMILY_MT5] = T5_FAMILY(mt5_keys),
    [PLIM_FAMILY_WHISPER] = {KEYS(whisper_keys), LAYERED(PLIM_FIELD_PAD_TOKEN)},
    [PLIM_FAMILY_BART] = {KEYS(bart_keys), LAYERED(PLIM_FIELD_PAD_TOKEN, PLIM_FIELD_DECODER_START)},
    [PLIM_FAMILY_MBART] = {KEYS(mbart_keys), LAYERED(PLIM_FIELD_PAD_TOKEN)},
};
