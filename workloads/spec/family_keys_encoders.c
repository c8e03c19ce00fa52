/* Encoders of fewer users: the keys of their config.json. */
#include "family_rows.h"

/* Its classes look at no hidden_act. */
static const struct plim_family_key esm_keys[] = {
    KEY("task", TASK, "masked-lm"),
    KEY("num_labels", LABELS, "2"),
    NUL("vocab_size", VOCAB_SIZE, "null"),
    NUL("mask_token_id", MASK_TOKEN, "null"),
    NUL("pad_token_id", PAD_TOKEN, "null"),
    KEY("hidden_size", HIDDEN_SIZE, "768"),
    KEY("num_hidden_layers", LAYERS, "12"),
    KEY("num_attention_heads", HEADS, "12"),
    KEY("intermediate_size", INTERMEDIATE_SIZE, "3072"),
    KEY("hidden_dropout_prob", DROPOUT_RESIDUAL, "0.1"),
    KEY("hidden_dropout_prob", DROPOUT_CLASSIFIER, "0.1"), /* one key, two places */
    KEY("attention_probs_dropout_prob", DROPOUT_ATTENTION, "0.1"),
    KEY("max_position_embeddings", POSITIONS, "1026"),
    NUL("position_embedding_type", POSITION_KIND, "absolute"),
    NUL("emb_layer_norm_before", NORMS_EMBEDDINGS, "null"),
    NUL("token_dropout", TOKEN_DROPOUT, "false"),
    KEY("tie_word_embeddings", TIE_WORD_EMBEDDINGS, "true"),
};

static const struct plim_family_key albert_keys[] = {
    KEY("task", TASK, "masked-lm"),
    KEY("num_labels", LABELS, "2"),
    KEY("vocab_size", VOCAB_SIZE, "30000"),
    KEY("embedding_size", WORD_EMBED_PROJ_DIM, "128"),
    KEY("hidden_size", HIDDEN_SIZE, "4096"),
    KEY("num_hidden_layers", LAYERS, "12"),
    KEY("num_hidden_groups", LAYER_GROUPS, "1"),
    KEY("num_attention_heads", HEADS, "64"),
    KEY("intermediate_size", INTERMEDIATE_SIZE, "16384"),
    KEY("hidden_act", ACTIVATION, "gelu_new"),
    KEY("hidden_dropout_prob", DROPOUT_RESIDUAL, "0.0"),
    KEY("hidden_dropout_prob", DROPOUT_EMBEDDING, "0.0"), /* one key, two places */
    KEY("attention_probs_dropout_prob", DROPOUT_ATTENTION, "0.0"),
    KEY("max_position_embeddings", POSITIONS, "512"),
    KEY("type_vocab_size", TYPE_VOCAB_SIZE, "2"),
    KEY("classifier_dropout_prob", DROPOUT_CLASSIFIER, "0.1"),
    NUL("pad_token_id", PAD_TOKEN, "0"),
    KEY("tie_word_embeddings", TIE_WORD_EMBEDDINGS, "true"),
};

static const struct plim_family_key mpnet_keys[] = {
    KEY("task", TASK, "masked-lm"),
    KEY("num_labels", LABELS, "2"),
    KEY("vocab_size", VOCAB_SIZE, "30527"),
    KEY("hidden_size", HIDDEN_SIZE, "768"),
    KEY("num_hidden_layers", LAYERS, "12"),
    KEY("num_attention_heads", HEADS, "12"),
    KEY("intermediate_size", INTERMEDIATE_SIZE, "3072"),
    KEY("hidden_act", ACTIVATION, "gelu"),
    KEY("hidden_dropout_prob", DROPOUT_RESIDUAL, "0.1"),
    KEY("hidden_dropout_prob", DROPOUT_EMBEDDING, "0.1"), /* one key, three places */
    KEY("hidden_dropout_prob", DROPOUT_CLASSIFIER, "0.1"),
    KEY("attention_probs_dropout_prob", DROPOUT_ATTENTION, "0.1"),
    KEY("max_position_embeddings", POSITIONS, "512"),
    KEY("relative_attention_num_buckets", RELATIVE_BUCKETS, "32"),
    KEY("tie_word_embeddings", TIE_WORD_EMBEDDINGS, "true"),
};

#define TASKS_OF_ALL (TASKS_OF_ESM | 1u << PLIM_TASK_QUESTION_ANSWERING)
#define TASKS_OF_ESM \
    (1u << PLIM_TASK_MASKED_LM | 1u << PLIM_TASK_CLASSIFICATION | 1u << PLIM_TASK_TOKEN_CLASSIFICATION)

const struct plim_family_info plim_encoder_families[PLIM_FAMILY_COUNT] = {
    [PLIM_FAMILY_ALBERT] = {KEYS(albert_keys), .learned_positions = true, .heads_must_divide = true,
                            .uncheckpointed = true, .tasks = TASKS_OF_ALL, .classifier = "classifier",
                            .linears = {"query", "key", "value", "dense", "ffn", "ffn_output", "pooler",
                                        "embedding_hidden_mapping_in"}},
    [PLIM_FAMILY_MPNET] = {KEYS(mpnet_keys), .learned_positions = true, .counts_positions = true,
                           .heads_must_divide = true, .eager_only = true, .uncheckpointed = true,
                           .tasks = TASKS_OF_ALL, .classifier = "out_proj",
                           .linears = {"q", "k", "v", "o", "dense"}},
    [PLIM_FAMILY_ESM] = {KEYS(esm_keys), .activation = PLIM_ACTIVATION_GELU_PYTHON, .learned_positions = true,
                         .counts_positions = true, .heads_must_divide = true,
                         .required = {PLIM_FIELD_VOCAB_SIZE, PLIM_FIELD_PAD_TOKEN}, .tasks = TASKS_OF_ESM,
                         .classifier = "out_proj", .linears = {"query", "key", "value", "dense", "regression"}},
};
