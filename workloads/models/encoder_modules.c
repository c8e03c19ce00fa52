/* The modules of encoders. */
#include "model.h"

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

/* Heads have other names for other tasks, and roberta's modules have its own: see renamed[] of modules.c. */
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
    MODEL("classifier", head, CLASSIFIER),           /* of rows bert's, of tokens all */
    MODEL("classifier.out_proj", head, CLASSIFIER),  /* of rows roberta's and electra's */
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
