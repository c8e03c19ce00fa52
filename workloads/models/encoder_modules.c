/* The modules of encoders. */
#include "model.h"
#include <string.h>

const struct module plim_bert_block[] = {BLOCK("attention.self.query", q, LINEAR),
                                         BLOCK("attention.self.key", k, LINEAR),
                                         BLOCK("attention.self.value", v, LINEAR),
                                         BLOCK("attention.output.dense", o, LINEAR),
                                         BLOCK("attention.output.LayerNorm", norm[0], NORM),
                                         BLOCK("intermediate.dense", fc1, LINEAR),
                                         BLOCK("output.dense", fc2, LINEAR),
                                         BLOCK("output.LayerNorm", norm[1], NORM),
                                         {0}};
const struct module plim_distilbert_block[] = {BLOCK("attention.q_lin", q, LINEAR),
                                               BLOCK("attention.k_lin", k, LINEAR),
                                               BLOCK("attention.v_lin", v, LINEAR),
                                               BLOCK("attention.out_lin", o, LINEAR),
                                               BLOCK("sa_layer_norm", norm[0], NORM),
                                               BLOCK("ffn.lin1", fc1, LINEAR),
                                               BLOCK("ffn.lin2", fc2, LINEAR),
                                               BLOCK("output_layer_norm", norm[1], NORM),
                                               {0}};
const struct module plim_modernbert_block[] = {BLOCK("attn_norm", norm[0], NORM),
                                               BLOCK("attn.Wqkv", qkv, LINEAR),
                                               BLOCK("attn.Wo", o, LINEAR),
                                               BLOCK("mlp_norm", norm[1], NORM),
                                               BLOCK("mlp.Wi", gate_up, LINEAR),
                                               BLOCK("mlp.Wo", down, LINEAR),
                                               {0}};
const struct module plim_deberta_block[] = {BLOCK("attention.self.query_proj", q, LINEAR),
                                            BLOCK("attention.self.key_proj", k, LINEAR),
                                            BLOCK("attention.self.value_proj", v, LINEAR),
                                            BLOCK("attention.self.pos_key_proj", distance_k, LINEAR),
                                            BLOCK("attention.self.pos_query_proj", distance_q, LINEAR),
                                            BLOCK("attention.output.dense", o, LINEAR),
                                            BLOCK("attention.output.LayerNorm", norm[0], NORM),
                                            BLOCK("intermediate.dense", fc1, LINEAR),
                                            BLOCK("output.dense", fc2, LINEAR),
                                            BLOCK("output.LayerNorm", norm[1], NORM),
                                            {0}};
const struct module plim_albert_block[] = {BLOCK("albert_layers.0.full_layer_layer_norm", norm[1], NORM),
                                           BLOCK("albert_layers.0.attention.query", q, LINEAR),
                                           BLOCK("albert_layers.0.attention.key", k, LINEAR),
                                           BLOCK("albert_layers.0.attention.value", v, LINEAR),
                                           BLOCK("albert_layers.0.attention.dense", o, LINEAR),
                                           BLOCK("albert_layers.0.attention.LayerNorm", norm[0], NORM),
                                           BLOCK("albert_layers.0.ffn", fc1, LINEAR),
                                           BLOCK("albert_layers.0.ffn_output", fc2, LINEAR),
                                           {0}};
const struct module plim_mpnet_block[] = {BLOCK("attention.attn.q", q, LINEAR),
                                          BLOCK("attention.attn.k", k, LINEAR),
                                          BLOCK("attention.attn.v", v, LINEAR),
                                          BLOCK("attention.attn.o", o, LINEAR),
                                          BLOCK("attention.LayerNorm", norm[0], NORM),
                                          BLOCK("intermediate.dense", fc1, LINEAR),
                                          BLOCK("output.dense", fc2, LINEAR),
                                          BLOCK("output.LayerNorm", norm[1], NORM),
                                          {0}};
const struct module plim_esm_block[] = {BLOCK("attention.self.query", q, LINEAR),
                                        BLOCK("attention.self.key", k, LINEAR),
                                        BLOCK("attention.self.value", v, LINEAR),
                                        BLOCK("attention.output.dense", o, LINEAR),
                                        BLOCK("attention.LayerNorm", norm[0], NORM),
                                        BLOCK("intermediate.dense", fc1, LINEAR),
                                        BLOCK("output.dense", fc2, LINEAR),
                                        BLOCK("LayerNorm", norm[1], NORM),
                                        {0}};
const struct module plim_vit_block[] = {BLOCK("attention.q_proj", q, LINEAR),
                                        BLOCK("attention.k_proj", k, LINEAR),
                                        BLOCK("attention.v_proj", v, LINEAR),
                                        BLOCK("attention.o_proj", o, LINEAR),
                                        BLOCK("layernorm_before", norm[0], NORM),
                                        BLOCK("layernorm_after", norm[1], NORM),
                                        BLOCK("mlp.fc1", fc1, LINEAR),
                                        BLOCK("mlp.fc2", fc2, LINEAR),
                                        {0}};

/* Heads have other names for other tasks, and roberta's modules another prefix: see renamed[] below. */
const struct module plim_bert_model[] = {
    MODEL("bert.embeddings.word_embeddings", embedding, WEIGHT),
    MODEL("bert.embeddings.position_embeddings", position_embedding, WEIGHT),
    MODEL("bert.embeddings.token_type_embeddings", type_embedding, WEIGHT),
    MODEL("bert.embeddings.LayerNorm", embedding_norm, NORM),
    MODEL("bert.embeddings_project", project_in, LINEAR), /* electra's */
    BLOCKS("bert.encoder.layer"),
    MODEL("head.dense", head_dense, LINEAR),
    MODEL("head.LayerNorm", head_norm, NORM),
    MODEL("head.decoder", head, HEAD),
    MODEL("classifier", head, CLASSIFIER),           /* of rows: bert's; of tokens: all */
    MODEL("classifier.out_proj", head, CLASSIFIER),  /* of rows: roberta's and electra's */
    MODEL("qa_outputs", head, CLASSIFIER),
    {0}};
const struct module plim_distilbert_model[] = {
    MODEL("distilbert.embeddings.word_embeddings", embedding, WEIGHT),
    MODEL("distilbert.embeddings.position_embeddings", position_embedding, WEIGHT),
    MODEL("distilbert.embeddings.LayerNorm", embedding_norm, NORM),
    BLOCKS("distilbert.transformer.layer"),
    MODEL("pre_classifier", head_dense, LINEAR),
    MODEL("vocab_transform", head_dense, LINEAR),
    MODEL("vocab_layer_norm", head_norm, NORM),
    MODEL("vocab_projector", head, HEAD),
    MODEL("classifier", head, CLASSIFIER),
    MODEL("qa_outputs", head, CLASSIFIER),
    {0}};
const struct module plim_modernbert_model[] = {
    MODEL("model.embeddings.tok_embeddings", embedding, WEIGHT),
    MODEL("model.embeddings.norm", embedding_norm, NORM),
    BLOCKS("model.layers"),
    MODEL("model.final_norm", final_norm, NORM),
    MODEL("head.dense", head_dense, LINEAR),
    MODEL("head.norm", head_norm, NORM),
    MODEL("decoder", head, HEAD),
    MODEL("classifier", head, CLASSIFIER),
    {0}};
const struct module plim_deberta_model[] = {
    MODEL("deberta.embeddings.word_embeddings", embedding, WEIGHT),
    MODEL("deberta.embeddings.position_embeddings", position_embedding, WEIGHT),
    MODEL("deberta.embeddings.token_type_embeddings", type_embedding, WEIGHT),
    MODEL("deberta.embeddings.LayerNorm", embedding_norm, NORM),
    BLOCKS("deberta.encoder.layer"),
    MODEL("deberta.encoder.rel_embeddings", distance_embedding, WEIGHT),
    MODEL("deberta.encoder.LayerNorm", distance_norm, NORM),
    MODEL("head.dense", head_dense, LINEAR),
    MODEL("head.LayerNorm", head_norm, NORM),
    MODEL("head.decoder", head, HEAD),
    MODEL("classifier", head, CLASSIFIER),
    MODEL("qa_outputs", head, CLASSIFIER),
    {0}};
const struct module plim_albert_model[] = {
    MODEL("albert.embeddings.word_embeddings", embedding, WEIGHT),
    MODEL("albert.embeddings.position_embeddings", position_embedding, WEIGHT),
    MODEL("albert.embeddings.token_type_embeddings", type_embedding, WEIGHT),
    MODEL("albert.embeddings.LayerNorm", embedding_norm, NORM),
    MODEL("albert.encoder.embedding_hidden_mapping_in", project_in, LINEAR),
    BLOCKS("albert.encoder.albert_layer_groups"),
    MODEL("head.LayerNorm", head_norm, NORM),
    MODEL("head.dense", head_dense, LINEAR),
    MODEL("head.decoder", head, HEAD),
    MODEL("classifier", head, CLASSIFIER),
    MODEL("qa_outputs", head, CLASSIFIER),
    {0}};
const struct module plim_mpnet_model[] = {
    MODEL("mpnet.embeddings.word_embeddings", embedding, WEIGHT),
    MODEL("mpnet.embeddings.position_embeddings", position_embedding, WEIGHT),
    MODEL("mpnet.embeddings.LayerNorm", embedding_norm, NORM),
    BLOCKS("mpnet.encoder.layer"),
    MODEL("mpnet.encoder.relative_attention_bias", distance_embedding, WEIGHT),
    MODEL("head.dense", head_dense, LINEAR),
    MODEL("head.layer_norm", head_norm, NORM),
    MODEL("head.decoder", head, HEAD),
    MODEL("classifier", head, CLASSIFIER),          /* of tokens */
    MODEL("classifier.out_proj", head, CLASSIFIER), /* of rows */
    MODEL("qa_outputs", head, CLASSIFIER),
    {0}};
const struct module plim_esm_model[] = {
    MODEL("esm.embeddings.word_embeddings", embedding, WEIGHT),
    MODEL("esm.embeddings.layer_norm", embedding_norm, NORM),
    MODEL("esm.embeddings.position_embeddings", position_embedding, WEIGHT),
    BLOCKS("esm.encoder.layer"),
    MODEL("esm.encoder.emb_layer_norm_after", final_norm, NORM),
    MODEL("esm.contact_head.regression", contacts, LINEAR),
    MODEL("head.dense", head_dense, LINEAR),
    MODEL("head.layer_norm", head_norm, NORM),
    MODEL("head.decoder", head, HEAD),
    MODEL("classifier", head, CLASSIFIER),          /* of tokens */
    MODEL("classifier.out_proj", head, CLASSIFIER), /* of rows */
    {0}};
const struct module plim_vit_model[] = {MODEL("vit.embeddings.cls_token", class_token, PARAMETER),
                                        BLOCKS("vit.layers"),
                                        MODEL("vit.layernorm", final_norm, NORM),
                                        MODEL("classifier", head, CLASSIFIER),
                                        {0}};

/* Prefixes that replace those in the lists above. The first match counts. */
static const struct renamed {
    enum plim_family family;
    enum plim_task task; /* PLIM_TASK_COUNT: any */
    const char *from, *to;
} renamed[] = {
    {PLIM_FAMILY_BERT, PLIM_TASK_MASKED_LM, "head.decoder", "cls.predictions.decoder"},
    {PLIM_FAMILY_BERT, PLIM_TASK_MASKED_LM, "head.", "cls.predictions.transform."},
    {PLIM_FAMILY_BERT, PLIM_TASK_CLASSIFICATION, "head.", "bert.pooler."},
    {PLIM_FAMILY_DEBERTA_V2, PLIM_TASK_MASKED_LM, "head.decoder", "cls.predictions.decoder"},
    {PLIM_FAMILY_DEBERTA_V2, PLIM_TASK_MASKED_LM, "head.", "cls.predictions.transform."},
    {PLIM_FAMILY_DEBERTA_V2, PLIM_TASK_CLASSIFICATION, "head.", "pooler."},
    {PLIM_FAMILY_ROBERTA, PLIM_TASK_MASKED_LM, "head.LayerNorm", "lm_head.layer_norm"},
    {PLIM_FAMILY_ROBERTA, PLIM_TASK_MASKED_LM, "head.", "lm_head."},
    {PLIM_FAMILY_ROBERTA, PLIM_TASK_CLASSIFICATION, "head.", "classifier."},
    {PLIM_FAMILY_ROBERTA, PLIM_TASK_COUNT, "bert.", "roberta."},
    {PLIM_FAMILY_XLM_ROBERTA, PLIM_TASK_MASKED_LM, "head.LayerNorm", "lm_head.layer_norm"},
    {PLIM_FAMILY_XLM_ROBERTA, PLIM_TASK_MASKED_LM, "head.", "lm_head."},
    {PLIM_FAMILY_XLM_ROBERTA, PLIM_TASK_CLASSIFICATION, "head.", "classifier."},
    {PLIM_FAMILY_XLM_ROBERTA, PLIM_TASK_COUNT, "bert.", "roberta."},
    {PLIM_FAMILY_ALBERT, PLIM_TASK_MASKED_LM, "head.", "predictions."},
    {PLIM_FAMILY_ALBERT, PLIM_TASK_CLASSIFICATION, "head.dense", "albert.pooler"},
    {PLIM_FAMILY_MPNET, PLIM_TASK_MASKED_LM, "head.", "lm_head."},
    {PLIM_FAMILY_MPNET, PLIM_TASK_CLASSIFICATION, "head.", "classifier."},
    {PLIM_FAMILY_ESM, PLIM_TASK_MASKED_LM, "head.", "lm_head."},
    {PLIM_FAMILY_ESM, PLIM_TASK_CLASSIFICATION, "head.", "classifier."},
    {PLIM_FAMILY_ELECTRA, PLIM_TASK_MASKED_LM, "head.decoder", "generator_lm_head"},
    {PLIM_FAMILY_ELECTRA, PLIM_TASK_MASKED_LM, "head.", "generator_predictions."},
    {PLIM_FAMILY_ELECTRA, PLIM_TASK_CLASSIFICATION, "head.", "classifier."},
    {PLIM_FAMILY_ELECTRA, PLIM_TASK_COUNT, "bert.", "electra."},
};

const char *encoder_module_begins(const struct decoder *m, const char *path, size_t *replaced)
{
    for (size_t i = 0; i < sizeof(renamed) / sizeof(renamed[0]); i++) {
        const struct renamed *r = &renamed[i];
        bool is_task = r->task == PLIM_TASK_COUNT || r->task == m->config->task;
        *replaced = strlen(r->from);
        if (r->family == m->config->family && is_task && !strncmp(path, r->from, *replaced)) return r->to;
    }
    *replaced = 0;
    return "";
}
