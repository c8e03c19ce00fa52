/* The modules of vision towers. */
#include "model.h"

const struct module plim_qwen2_vl_block[] = {BLOCK("attn.qkv", qkv, LINEAR),
                                             BLOCK("attn.proj", o, LINEAR),
                                             BLOCK("mlp.fc1", fc1, LINEAR),
                                             BLOCK("mlp.fc2", fc2, LINEAR),
                                             BLOCK("norm1", norm[0], NORM),
                                             BLOCK("norm2", norm[1], NORM),
                                             {0}};
const struct module plim_qwen2_5_vl_block[] = {BLOCK("attn.qkv", qkv, LINEAR),
                                               BLOCK("attn.proj", o, LINEAR),
                                               BLOCK("mlp.gate_proj", gate, LINEAR),
                                               BLOCK("mlp.up_proj", up, LINEAR),
                                               BLOCK("mlp.down_proj", down, LINEAR),
                                               BLOCK("norm1", norm[0], NORM),
                                               BLOCK("norm2", norm[1], NORM),
                                               {0}};
const struct module plim_qwen2_vl_merger[] = {
    {"ln_q", offsetof(struct vision_merger, norm), MODULE_NORM},
    {"mlp.0", offsetof(struct vision_merger, fc1), MODULE_LINEAR},
    {"mlp.2", offsetof(struct vision_merger, fc2), MODULE_LINEAR},
    {0}};
const struct module plim_vision_block[] = {BLOCK("attn.qkv", qkv, LINEAR),
                                           BLOCK("attn.proj", o, LINEAR),
                                           BLOCK("mlp.linear_fc1", fc1, LINEAR),
                                           BLOCK("mlp.linear_fc2", fc2, LINEAR),
                                           BLOCK("norm1", norm[0], NORM),
                                           BLOCK("norm2", norm[1], NORM),
                                           {0}};
const struct module plim_vision_merger[] = {
    {"norm", offsetof(struct vision_merger, norm), MODULE_NORM},
    {"linear_fc1", offsetof(struct vision_merger, fc1), MODULE_LINEAR},
    {"linear_fc2", offsetof(struct vision_merger, fc2), MODULE_LINEAR},
    {0}};

/* In the order of SiglipEncoderLayer. */
const struct module plim_siglip_block[] = {BLOCK("layer_norm1", norm[0], NORM),
                                           BLOCK("self_attn.k_proj", k, LINEAR),
                                           BLOCK("self_attn.v_proj", v, LINEAR),
                                           BLOCK("self_attn.q_proj", q, LINEAR),
                                           BLOCK("self_attn.out_proj", o, LINEAR),
                                           BLOCK("layer_norm2", norm[1], NORM),
                                           BLOCK("mlp.fc1", fc1, LINEAR),
                                           BLOCK("mlp.fc2", fc2, LINEAR),
                                           {0}};
/* In the order of CLIPEncoderLayer. */
const struct module plim_clip_block[] = {BLOCK("self_attn.k_proj", k, LINEAR),
                                         BLOCK("self_attn.v_proj", v, LINEAR),
                                         BLOCK("self_attn.q_proj", q, LINEAR),
                                         BLOCK("self_attn.out_proj", o, LINEAR),
                                         BLOCK("layer_norm1", norm[0], NORM),
                                         BLOCK("mlp.fc1", fc1, LINEAR),
                                         BLOCK("mlp.fc2", fc2, LINEAR),
                                         BLOCK("layer_norm2", norm[1], NORM),
                                         {0}};
/* In the order of InternVLVisionLayer. */
const struct module plim_internvit_block[] = {BLOCK("lambda_1", scales[0], PARAMETER),
                                              BLOCK("lambda_2", scales[1], PARAMETER),
                                              BLOCK("attention.q_proj", q, LINEAR),
                                              BLOCK("attention.k_proj", k, LINEAR),
                                              BLOCK("attention.v_proj", v, LINEAR),
                                              BLOCK("attention.projection_layer", o, LINEAR),
                                              BLOCK("mlp.fc1", fc1, LINEAR),
                                              BLOCK("mlp.fc2", fc2, LINEAR),
                                              BLOCK("layernorm_before", norm[0], NORM),
                                              BLOCK("layernorm_after", norm[1], NORM),
                                              {0}};
/* In the order of Gemma4VisionEncoderLayer. */
const struct module plim_gemma4_tower_block[] = {BLOCK("self_attn.q_proj.linear", q, LINEAR),
                                                 BLOCK("self_attn.k_proj.linear", k, LINEAR),
                                                 BLOCK("self_attn.v_proj.linear", v, LINEAR),
                                                 BLOCK("self_attn.o_proj.linear", o, LINEAR),
                                                 BLOCK("self_attn.q_norm", q_norm, NORM),
                                                 BLOCK("self_attn.k_norm", k_norm, NORM),
                                                 BLOCK("mlp.gate_proj.linear", gate, LINEAR),
                                                 BLOCK("mlp.up_proj.linear", up, LINEAR),
                                                 BLOCK("mlp.down_proj.linear", down, LINEAR),
                                                 BLOCK("input_layernorm", norm[0], NORM),
                                                 BLOCK("post_attention_layernorm", norm[1], NORM),
                                                 BLOCK("pre_feedforward_layernorm", norm[2], NORM),
                                                 BLOCK("post_feedforward_layernorm", norm[3], NORM),
                                                 {0}};
/* In the order of PixtralAttentionLayer. */
const struct module plim_pixtral_block[] = {BLOCK("attention_norm", norm[0], NORM),
                                            BLOCK("feed_forward.gate_proj", gate, LINEAR),
                                            BLOCK("feed_forward.up_proj", up, LINEAR),
                                            BLOCK("feed_forward.down_proj", down, LINEAR),
                                            BLOCK("attention.k_proj", k, LINEAR),
                                            BLOCK("attention.v_proj", v, LINEAR),
                                            BLOCK("attention.q_proj", q, LINEAR),
                                            BLOCK("attention.o_proj", o, LINEAR),
                                            BLOCK("ffn_norm", norm[1], NORM),
                                            {0}};
#define PROJECTOR_LINEARS \
    {"linear_1", offsetof(struct vision_merger, fc1), MODULE_LINEAR}, \
    {"linear_2", offsetof(struct vision_merger, fc2), MODULE_LINEAR}
const struct module plim_mistral3_projector[] = {
    {"norm", offsetof(struct vision_merger, norm), MODULE_NORM},
    {"patch_merger.merging_layer", offsetof(struct vision_merger, merging), MODULE_LINEAR},
    PROJECTOR_LINEARS,
    {0}};
const struct module plim_llava_projector[] = {PROJECTOR_LINEARS, {0}};
const struct module plim_internvl_projector[] = {
    {"layer_norm", offsetof(struct vision_merger, norm), MODULE_NORM}, PROJECTOR_LINEARS, {0}};
const struct module plim_gemma3_projector[] = {
    {"mm_soft_emb_norm", offsetof(struct vision_merger, norm), MODULE_NORM}, {0}};
