/* The configuration classes of transformers 5.17 for each model family: keys, defaults, rules.
 *
 * A family is a table of rows; a row is one key of its config.json with the class's default. The
 * rows are checked against transformers itself by tests/unit/data/spec/make_hf_defaults.py.
 */
#ifndef PLIM_WORKLOADS_SPEC_FAMILY_H
#define PLIM_WORKLOADS_SPEC_FAMILY_H

#include "spec.h"
#include "value.h"

/* Every field of struct plim_model_config that comes from a key. The name is the usual one in
 * config.json; a family may use another one (n_embd). Limits keep every product of a model within
 * int64_t (plim_model_check() checks the sum).
 *
 * suffix, member, value type, minimum, maximum, usual name, unit, what it is */
#define PLIM_FIELD_MAP(X)                                                                                             \
    X(TASK, task, TASK, 0, 0, "task", "",                                                                             \
      "what is trained, which determines the head; a config.json says it in architectures")                           \
    X(TEXT, text, FAMILY, 0, 0, "text_model_type", "", "model_type of the text_config: qwen2 or qwen3")               \
    X(LABELS, labels, INT, 1, 1 << 24, "num_labels", "labels",                                                        \
      "classes of a classification head; a config.json's default: those of id2label; 1 with trl-reward")              \
    X(VOCAB_SIZE, vocab_size, INT, 1, 1 << 26, "vocab_size", "tokens", "rows of the embedding and of the head")       \
    X(HIDDEN_SIZE, hidden_size, INT, 1, 1 << 20, "hidden_size", "elements", "width of the residual stream")           \
    X(INTERMEDIATE_SIZE, intermediate_size, INT, 1, 1 << 22, "intermediate_size", "elements", "width of the MLP")     \
    X(LAYERS, layers, INT, 1, PLIM_MAX_LAYERS, "num_hidden_layers", "layers", "number of blocks")                     \
    X(ROTARY_DIM, rotary_dim, INT, 2, 1 << 16, "rotary_dim", "elements",                                              \
      "elements at the start of a head that get rotary embeddings")                                                   \
    X(LAYER_GROUPS, groups, INT, 1, PLIM_MAX_LAYERS, "num_hidden_groups", "layers",                                   \
      "layers with weights of their own, each of which runs as num_hidden_layers / num_hidden_groups blocks")         \
    X(DECODER_LAYERS, decoder_layers, INT, 1, PLIM_MAX_LAYERS, "num_decoder_layers", "layers",                        \
      "blocks of the decoder; null: as many as of the encoder")                                                       \
    X(DECODER_HEADS, decoder_heads, INT, 1, 1 << 16, "decoder_attention_heads", "heads",                              \
      "query heads of the decoder")                                                                                   \
    X(DECODER_INTERMEDIATE, decoder_intermediate, INT, 1, 1 << 22, "decoder_ffn_dim", "elements",                     \
      "width of the decoder's MLP")                                                                                   \
    X(SOURCE_POSITIONS, source_positions, INT, 1, 1 << 20, "max_source_positions", "positions",                       \
      "positions of the encoder: half the number of audio frames, which is the same for all rows")                    \
    X(MEL_BINS, mel_bins, INT, 1, 1 << 16, "num_mel_bins", "bins", "mel bins of an audio frame")                      \
    X(HEADS, heads, INT, 1, 1 << 16, "num_attention_heads", "heads", "query heads")                                   \
    X(KV_HEADS, kv_heads, INT, 1, 1 << 16, "num_key_value_heads", "heads",                                            \
      "key and value heads; null: as many as query heads")                                                            \
    X(HEAD_DIM, head_dim, INT, 1, 1 << 16, "head_dim", "elements", "width of a head; null: hidden_size / heads")      \
    X(POSITIONS, positions, INT, 1, INT32_MAX, "max_position_embeddings", "tokens",                                   \
      "longest sequence the model was made for; a hard limit if positions are learned")                               \
    X(WORD_EMBED_PROJ_DIM, word_embed_proj_dim, INT, 1, 1 << 20, "word_embed_proj_dim", "elements",                   \
      "width of the embedding; null: hidden_size")                                                                    \
    X(TYPE_VOCAB_SIZE, type_vocab_size, INT, 1, 1 << 20, "type_vocab_size", "types",                                  \
      "token types: rows of their embedding")                                                                         \
    X(TOKEN_TYPES, type_vocab_size, INT, 0, 1 << 20, "type_vocab_size", "types",                                      \
      "token types: rows of their embedding; 0: there is none")                                                       \
    X(RELATIVE_ATTENTION, relative_attention, BOOL, 0, 0, "relative_attention", "",                                   \
      "attention scores depend on relative positions, too (disentangled attention)")                                  \
    X(ABSOLUTE_POSITIONS, absolute_positions, BOOL, 0, 0, "position_biased_input", "",                                \
      "learned absolute positions are added to the embeddings")                                                       \
    X(POSITION_SCORES, position_scores, POSITION_SCORES, 0, 0, "pos_att_type", "",                                    \
      "terms of disentangled attention: content to position (c2p), position to content (p2c)")                        \
    X(SHARES_PROJECTIONS, shares_projections, BOOL, 0, 0, "share_att_key", "",                                        \
      "relative positions use the tokens' query and key projections")                                                 \
    X(DISTANCE_NORM, distance_norm, DISTANCE_NORM, 0, 0, "norm_rel_ebd", "",                                          \
      "normalisation of the relative positions' embeddings")                                                          \
    X(POSITION_BUCKETS, position_buckets, INT, -1, 1 << 20, "position_buckets", "buckets",                            \
      "log-bucketed relative positions of each direction; -1: one for each distance")                                 \
    X(RELATIVE_POSITIONS, relative_positions, INT, -1, 1 << 24, "max_relative_positions", "tokens",                   \
      "largest relative position; -1: max_position_embeddings")                                                       \
    X(POSITION_KIND, position_kind, POSITION_KIND, 0, 0, "position_embedding_type", "",                               \
      "learned absolute positions, or rotary embeddings")                                                             \
    X(NORMS_EMBEDDINGS, norms_embeddings, BOOL, 0, 0, "emb_layer_norm_before", "",                                    \
      "LayerNorm before the first block")                                                                             \
    X(TOKEN_DROPOUT, token_dropout, BOOL, 0, 0, "token_dropout", "",                                                  \
      "embeddings of masked tokens are zero, and the others are rescaled for it")                                     \
    X(MASK_TOKEN, mask_token_id, INT, 0, (1 << 26) - 1, "mask_token_id", "token", "the mask token")                   \
    X(ACTIVATION, activation, ACTIVATION, 0, 0, "hidden_act", "", "activation function of the MLP")                   \
    X(TIE_WORD_EMBEDDINGS, tie_word_embeddings, BOOL, 0, 0, "tie_word_embeddings", "",                                \
      "the head shares the embedding's weight")                                                                       \
    X(ATTENTION_BIAS, attention_bias, BOOL, 0, 0, "attention_bias", "", "biases in the attention's projections")      \
    X(ATTENTION_OUT_BIAS, attention_out_bias, BOOL, 0, 0, "attention_out_bias", "",                                   \
      "bias in the attention's output projection")                                                                    \
    X(MLP_BIAS, mlp_bias, BOOL, 0, 0, "mlp_bias", "", "biases in the MLP")                                            \
    X(ENABLE_BIAS, enable_bias, BOOL, 0, 0, "enable_bias", "", "biases in all linear layers of a block")              \
    X(NORM_BIAS, norm_bias, BOOL, 0, 0, "norm_bias", "", "biases in the LayerNorms")                                  \
    X(DECODER_BIAS, decoder_bias, BOOL, 0, 0, "decoder_bias", "", "bias of the masked-language-model head")           \
    X(CLASSIFIER_BIAS, classifier_bias, BOOL, 0, 0, "classifier_bias", "", "bias of the head's first linear layer")   \
    X(CLASSIFIER_ACTIVATION, classifier_activation, ACTIVATION, 0, 0, "classifier_activation", "",                    \
      "activation function of the head")                                                                              \
    X(CLASSIFIER_POOLING, classifier_pooling, POOLING, 0, 0, "classifier_pooling", "",                                \
      "what a classification head reads of a row: the first token, or the mean of all")                               \
    X(RELATIVE_BUCKETS, relative_buckets, INT, 4, 1 << 20, "relative_attention_num_buckets", "buckets",               \
      "buckets of the relative position bias")                                                                        \
    X(RELATIVE_DISTANCE, relative_distance, INT, 2, INT32_MAX, "relative_attention_max_distance", "tokens",           \
      "distance from which on all relative positions share the last bucket")                                          \
    X(FEED_FORWARD, feed_forward, FEED_FORWARD, 0, 0, "feed_forward_proj", "",                                        \
      "activation function of the MLP; gated-: of one with a gate")                                                   \
    X(SCALES_EMBEDDINGS, scales_embeddings, BOOL, 0, 0, "scale_embedding", "",                                        \
      "embeddings are multiplied by sqrt(hidden_size)")                                                               \
    X(USE_CACHE, use_cache, BOOL, 0, 0, "use_cache", "",                                                              \
      "the decoder fills a key-value cache in training, too, but not with checkpointing; Trainer turns it off, "      \
      "except t5's")                                                                                                  \
    X(DECODER_START, decoder_start, INT, 0, (1 << 26) - 1, "decoder_start_token_id", "token",                         \
      "first token of the decoder's input")                                                                           \
    X(SINUSOIDAL_POSITIONS, sinusoidal_positions, BOOL, 0, 0, "sinusoidal_pos_embds", "",                             \
      "learned positions are initialised with sines and cosines")                                                     \
    X(LAYER_NORM_AFFINE, layer_norm_elementwise_affine, BOOL, 0, 0, "layer_norm_elementwise_affine", "",              \
      "LayerNorms have weights")                                                                                      \
    X(LAYER_NORM_BEFORE, do_layer_norm_before, BOOL, 0, 0, "do_layer_norm_before", "",                                \
      "LayerNorm before attention and MLP; false: after them")                                                        \
    X(REMOVE_FINAL_LAYER_NORM, remove_final_layer_norm, BOOL, 0, 0, "_remove_final_layer_norm", "",                   \
      "no LayerNorm after the last block")                                                                            \
    X(PARALLEL_RESIDUAL, parallel_residual, BOOL, 0, 0, "use_parallel_residual", "",                                  \
      "attention and MLP read the same input (parallel residual)")                                                    \
    X(QK_LAYERNORM, qk_layernorm, BOOL, 0, 0, "qk_layernorm", "", "queries and keys are normalised")                  \
    X(POST_LAYERNORM_RESIDUAL, apply_residual_connection_post_layernorm, BOOL, 0, 0,                                  \
      "apply_residual_connection_post_layernorm", "",                                                                 \
      "the residual connection starts after the LayerNorm")                                                           \
    X(SCALE_ATTN_WEIGHTS, scale_attn_weights, BOOL, 0, 0, "scale_attn_weights", "",                                   \
      "attention scores are scaled by 1 / sqrt(head_dim)")                                                            \
    X(SCALE_ATTN_BY_LAYER, scale_attn_by_inverse_layer_idx, BOOL, 0, 0, "scale_attn_by_inverse_layer_idx", "",        \
      "attention scores are scaled by 1 / (layer + 1), too")                                                          \
    X(REORDER_AND_UPCAST, reorder_and_upcast_attn, BOOL, 0, 0, "reorder_and_upcast_attn", "",                         \
      "attention scores are computed in fp32")                                                                        \
    X(PARTIAL_ROTARY, partial_rotary_factor, NUMBER, 0.001, 1, "partial_rotary_factor", "share",                      \
      "share of a head that gets rotary embeddings")                                                                  \
    X(ROPE_ORIGINAL_POSITIONS, rope_original_positions, INT, 1, INT32_MAX,                                            \
      "original_max_position_embeddings", "tokens",                                                                   \
      "sequence length before long-context scaling")                                                                  \
    X(EMBEDDING_MULTIPLIER, embedding_multiplier, NUMBER, 1e-9, 1e9, "embedding_multiplier", "",                      \
      "factor of the embeddings")                                                                                     \
    X(RESIDUAL_MULTIPLIER, residual_multiplier, NUMBER, 1e-9, 1e9, "residual_multiplier", "",                         \
      "factor of what is added to the residual stream")                                                               \
    X(ATTENTION_MULTIPLIER, attention_multiplier, NUMBER, 1e-9, 1e9, "attention_multiplier", "",                      \
      "factor of the attention scores, instead of 1 / sqrt(head_dim)")                                                \
    X(LOGITS_SCALING, logits_scaling, NUMBER, 1e-9, 1e9, "logits_scaling", "", "divisor of the logits")               \
    X(LOGIT_SCALE, logit_scale, NUMBER, 1e-9, 1e9, "logit_scale", "", "factor of the logits")                         \
    X(CLIP_QKV, clip_qkv, NUMBER, 1e-9, 1e9, "clip_qkv", "",                                                          \
      "queries, keys and values are clamped to this magnitude; null: they are not")                                   \
    X(ATTN_SOFTCAP, attn_logit_softcapping, NUMBER, 1e-6, 1e9, "attn_logit_softcapping", "",                          \
      "tanh soft cap of attention scores (eager attention only)")                                                     \
    X(FINAL_SOFTCAP, final_logit_softcapping, NUMBER, 1e-6, 1e9, "final_logit_softcapping", "",                       \
      "tanh soft cap of the logits")                                                                                  \
    X(IMAGE_SIZE, image_size, INT, 1, 1 << 14, "image_size", "pixels", "width and height of an image")                \
    X(PATCH_SIZE, patch_size, INT, 1, 1 << 14, "patch_size", "pixels", "width and height of a patch")                 \
    X(CHANNELS, channels, INT, 1, 1 << 10, "num_channels", "channels", "channels of an image")                        \
    X(VISION_LAYERS, vision.layers, INT, 1, PLIM_MAX_LAYERS, "vision_depth", "layers", "blocks of the vision tower")  \
    X(VISION_HIDDEN, vision.hidden_size, INT, 1, 1 << 20, "vision_hidden_size", "elements",                           \
      "width of the vision tower")                                                                                    \
    X(VISION_INTERMEDIATE, vision.intermediate_size, INT, 1, 1 << 22, "vision_intermediate_size", "elements",         \
      "width of the vision tower's MLP")                                                                              \
    X(VISION_HEADS, vision.heads, INT, 1, 1 << 16, "vision_num_heads", "heads", "heads of the vision tower")          \
    X(VISION_ACTIVATION, vision.activation, ACTIVATION, 0, 0, "vision_hidden_act", "",                                \
      "activation function of the vision tower's MLP")                                                                \
    X(VISION_CHANNELS, vision.channels, INT, 1, 1 << 10, "vision_in_channels", "channels", "channels of an image")    \
    X(VISION_PATCH, vision.patch_size, INT, 1, 1 << 10, "vision_patch_size", "pixels",                                \
      "width and height of a patch")                                                                                  \
    X(VISION_FRAMES, vision.frames, INT, 1, 1 << 10, "vision_temporal_patch_size", "frames",                          \
      "frames of a patch; an image is repeated so often")                                                             \
    X(VISION_MERGE, vision.merge_size, INT, 1, 1 << 10, "vision_spatial_merge_size", "patches",                       \
      "width and height of the square of patches that is merged into one token")                                      \
    X(VISION_OUT, vision.out_hidden_size, INT, 1, 1 << 20, "vision_out_hidden_size", "elements",                      \
      "width of the vision tower's output: the text model's hidden_size")                                             \
    X(VISION_POSITIONS, vision.positions, INT, 1, 1 << 24, "vision_num_position_embeddings", "positions",             \
      "learned positions of patches, a square number")                                                                \
    X(VISION_IMAGE, vision.image_size, INT, 1, 1 << 14, "vision_image_size", "pixels",                                \
      "width and height of all images")                                                                               \
    X(IMAGE_TOKENS, vision.image_tokens, INT, 1, 1 << 24, "mm_tokens_per_image", "tokens",                            \
      "tokens of an image in the text")                                                                               \
    X(VISION_BIAS, vision.attention_bias, BOOL, 0, 0, "vision_attention_bias", "",                                    \
      "biases in the vision tower's query, key and value projections")                                                \
    X(VISION_RATIO, vision.mlp_ratio, INT, 1, 1 << 10, "vision_mlp_ratio", "",                                        \
      "width of the vision tower's MLP as a multiple of its own")                                                     \
    X(VISION_WINDOW, vision.window_size, INT, 1, 1 << 16, "vision_window_size", "pixels",                             \
      "width and height of the attention windows of most vision blocks")                                              \
    X(VISION_KV_HEADS, vision.kv_heads, INT, 1, 1 << 16, "vision_num_key_value_heads", "heads",                       \
      "key and value heads of the vision tower")                                                                      \
    X(VISION_HEAD_DIM, vision.head_dim, INT, 1, 1 << 16, "vision_head_dim", "elements",                               \
      "width of a head of the vision tower")                                                                          \
    X(VISION_CLIPS, vision.clips, BOOL, 0, 0, "vision_use_clipped_linears", "",                                       \
      "the vision tower's linear layers clamp inputs and outputs")                                                    \
    X(VISION_STANDARDIZES, vision.standardizes, BOOL, 0, 0, "vision_standardize", "",                                 \
      "the vision tower's output is standardised with a bias and a scale, which are buffers")                         \
    X(AUDIO_LAYERS, audio.layers, INT, 1, PLIM_MAX_LAYERS, "audio_num_hidden_layers", "layers",                       \
      "blocks of the audio tower, whose weights are loaded although rows have no audio; null: no audio tower")        \
    X(AUDIO_HIDDEN, audio.hidden_size, INT, 4, 1 << 20, "audio_hidden_size", "elements", "width of the audio tower")  \
    X(AUDIO_HEADS, audio.heads, INT, 1, 1 << 16, "audio_num_attention_heads", "heads", "heads of the audio tower")    \
    X(AUDIO_CHANNELS, audio.channels[0], INT, 4, 1 << 12, "audio_conv_channels_0", "channels",                        \
      "output channels of the first subsampling convolution (subsampling_conv_channels)")                             \
    X(AUDIO_MORE_CHANNELS, audio.channels[1], INT, 1, 1 << 12, "audio_conv_channels_1", "channels",                   \
      "output channels of the second subsampling convolution")                                                        \
    X(AUDIO_KERNEL, audio.kernel_size, INT, 1, 1 << 10, "audio_conv_kernel_size", "frames",                           \
      "kernel size of a block's convolution")                                                                         \
    X(AUDIO_OUT, audio.out_size, INT, 1, 1 << 20, "audio_output_proj_dims", "elements",                               \
      "width of the audio tower's output")                                                                            \
    X(AUDIO_CLIPS, audio.clips, BOOL, 0, 0, "audio_use_clipped_linears", "",                                          \
      "the audio tower's linear layers clamp inputs and outputs")                                                     \
    X(SEEING, seeing, SEEING, 0, 0, "use_bidirectional_attention", "",                                                \
      "vision: tokens of an image attend to each other in both directions in sliding-window layers")                  \
    X(EXPERTS, experts, INT, 1, 1023, "num_experts", "experts", "experts of a layer")                                 \
    X(ANY_EXPERTS, experts, INT, 0, 1023, "num_experts", "experts", "experts of a layer; 0: none")                    \
    X(EXPERTS_PER_TOKEN, experts_per_token, INT, 1, 1023, "num_experts_per_tok", "experts",                           \
      "experts that a token is routed to")                                                                            \
    X(ANY_EXPERTS_PER_TOKEN, experts_per_token, INT, 0, 1023, "num_experts_per_tok", "experts",                       \
      "experts that a token is routed to; without experts: not read")                                                 \
    X(EXPERT_SIZE, expert_size, INT, 1, 1 << 22, "moe_intermediate_size", "elements", "width of an expert's MLP")     \
    X(SHARED_EXPERT_SIZE, shared_expert_size, INT, 1, 1 << 22, "shared_expert_intermediate_size", "elements",         \
      "width of the shared expert, an MLP that reads every token")                                                    \
    X(SPARSE_STEP, sparse_step, INT, 1, 1 << 20, "decoder_sparse_step", "layers",                                     \
      "every n-th layer has experts, the others an MLP")                                                              \
    X(QUERY_RANK, query_rank, INT, 1, 1 << 20, "q_lora_rank", "elements",                                             \
      "rank of the compressed queries (multi-head latent attention); null: they are not compressed")                  \
    X(KEY_RANK, key_rank, INT, 1, 1 << 20, "kv_lora_rank", "elements", "rank of the compressed keys and values")      \
    X(ROPE_DIM, head_dim, INT, 1, 1 << 16, "qk_rope_head_dim", "elements", "rotary part of a query or key head")      \
    X(PLAIN_DIM, plain_dim, INT, 1, 1 << 16, "qk_nope_head_dim", "elements",                                          \
      "part of a query or key head without rotary embeddings")                                                        \
    X(VALUE_DIM, value_dim, INT, 1, 1 << 16, "v_head_dim", "elements", "width of a value head")                       \
    X(ROPE_PAIRS, rope_pairs, BOOL, 0, 0, "rope_interleave", "",                                                      \
      "rotary embeddings rotate adjacent elements; false: the halves of a head")                                      \
    X(DENSE_LAYERS, dense_layers, INT, 0, 1 << 20, "first_k_dense_replace", "layers",                                 \
      "number of first layers with an MLP instead of experts")                                                        \
    X(LAST_SPARSE, last_sparse, INT, -1, 1 << 20, "moe_layer_end_index", "layer",                                     \
      "last layer that may have experts; -1: the model's last")                                                       \
    X(SHARED_EXPERTS, shared_experts, INT, 1, 1023, "n_shared_experts", "experts",                                    \
      "shared experts, which read every token, as one MLP")                                                           \
    X(ANY_SHARED_EXPERTS, shared_experts, INT, 0, 1023, "moe_num_shared_experts", "experts",                          \
      "shared experts, which read every token, as one MLP; 0: none")                                                  \
    X(ROUTED_SCALING, routed_scaling, NUMBER, 1e-9, 1e9, "routed_scaling_factor", "",                                 \
      "factor of a token's routing weights")                                                                          \
    X(EXPERT_GROUPS, expert_groups, INT, 1, 1023, "n_group", "groups", "groups of experts")                           \
    X(GROUPS_PER_TOKEN, groups_per_token, INT, 1, 1023, "topk_group", "groups",                                       \
      "groups among whose experts a token's are chosen")                                                              \
    X(TOP_K, top_k, TOP_K, 0, 0, "topk_method", "",                                                                   \
      "how a token's experts are chosen: among all, or among those of the best groups")                               \
    X(CORRECTS_EXPERTS, corrects_experts, BOOL, 0, 0, "use_expert_bias", "",                                          \
      "the router adds a bias to the scores by which it chooses experts")                                             \
    X(NORMALIZED_ROUTING, normalized_routing, BOOL, 0, 0, "norm_topk_prob", "",                                       \
      "a token's routing weights are normalised to a sum of 1")                                                       \
    X(GLOBAL_HEAD_DIM, global_head_dim, INT, 1, 1 << 16, "global_head_dim", "elements",                               \
      "width of a head of full-attention layers")                                                                     \
    X(GLOBAL_KV_HEADS, global_kv_heads, INT, 1, 1 << 16, "num_global_key_value_heads", "heads",                       \
      "key and value heads of full-attention layers with attention_k_eq_v; null: as in the others")                   \
    X(KEYS_ARE_VALUES, keys_are_values, BOOL, 0, 0, "attention_k_eq_v", "",                                           \
      "full-attention layers have one projection for keys and values")                                                \
    X(SHARED_KV_LAYERS, shared_kv_layers, INT, 0, PLIM_MAX_LAYERS, "num_kv_shared_layers", "layers",                  \
      "number of last layers that reuse the keys and values of layers before them")                                   \
    X(DOUBLE_WIDE, double_wide, BOOL, 0, 0, "use_double_wide_mlp", "",                                                \
      "layers that reuse keys and values have MLPs of twice the width")                                               \
    X(PER_LAYER_SIZE, per_layer_size, INT, 0, 1 << 20, "hidden_size_per_layer_input", "elements",                     \
      "width of the per-layer embeddings; 0: none")                                                                   \
    X(PER_LAYER_VOCAB, per_layer_vocab, INT, 1, 1 << 26, "vocab_size_per_layer_input", "tokens",                      \
      "rows of the per-layer embedding")                                                                              \
    X(HAS_EXPERTS, has_experts, BOOL, 0, 0, "enable_moe_block", "", "layers have experts beside their MLP")           \
    X(AUX_LOSS_COEF, aux_loss_coef, NUMBER, 0, 1e9, "router_aux_loss_coef", "",                                       \
      "coefficient of the load-balancing loss, which TRL's SFTTrainer adds")                                          \
    X(SLIDING_WINDOW, sliding_window, INT, 1, INT32_MAX, "sliding_window", "tokens",                                  \
      "tokens that a sliding-window layer looks back; null: no such layers")                                          \
    X(LOCAL_ATTENTION, local_attention, INT, 2, INT32_MAX, "local_attention", "tokens",                               \
      "window of local attention, both directions together")                                                          \
    X(USE_SLIDING_WINDOW, use_sliding_window, BOOL, 0, 0, "use_sliding_window", "", "is sliding_window used?")        \
    X(MAX_WINDOW_LAYERS, max_window_layers, INT, 0, 1 << 20, "max_window_layers", "layers",                           \
      "first layer with a sliding window")                                                                            \
    X(SLIDING_PATTERN, sliding_window_pattern, INT, 1, 1 << 20, "sliding_window_pattern", "layers",                   \
      "every n-th layer has full attention, modernbert's from the first on")                                          \
    X(NO_ROPE_INTERVAL, no_rope_interval, INT, 1, 1 << 20, "no_rope_layer_interval", "layers",                        \
      "every n-th layer has no rotary embeddings")                                                                    \
    X(LINEAR_KERNEL, linear_kernel, INT, 1, 1 << 10, "linear_conv_kernel_dim", "tokens",                              \
      "kernel size of linear attention's convolution")                                                                \
    X(LINEAR_KEY_HEADS, linear_key_heads, INT, 1, 1 << 16, "linear_num_key_heads", "heads",                           \
      "query and key heads of linear attention")                                                                      \
    X(LINEAR_VALUE_HEADS, linear_value_heads, INT, 1, 1 << 16, "linear_num_value_heads", "heads",                     \
      "value heads of linear attention")                                                                              \
    X(LINEAR_KEY_DIM, linear_key_dim, INT, 1, 1 << 16, "linear_key_head_dim", "elements",                             \
      "width of a query or key head of linear attention")                                                             \
    X(LINEAR_VALUE_DIM, linear_value_dim, INT, 1, 1 << 16, "linear_value_head_dim", "elements",                       \
      "width of a value head of linear attention")                                                                    \
    X(MAMBA_HEADS, linear_value_heads, INT, 1, 1 << 16, "mamba_n_heads", "heads", "heads of a Mamba-2 layer")         \
    X(MAMBA_GROUPS, linear_key_heads, INT, 1, 1 << 16, "mamba_n_groups", "groups",                                    \
      "groups of a Mamba-2 layer's heads, which share B and C")                                                       \
    X(MAMBA_STATE, linear_key_dim, INT, 1, 1 << 16, "mamba_d_state", "elements",                                      \
      "state size of a Mamba-2 layer")                                                                                \
    X(MAMBA_HEAD_DIM, linear_value_dim, INT, 1, 1 << 16, "mamba_d_head", "elements",                                  \
      "width of a Mamba-2 head; auto: mamba_expand * hidden_size / mamba_n_heads")                                    \
    X(MAMBA_STEP_MIN, mamba_step_min, NUMBER, 0, 1e9, "time_step_min", "",                                            \
      "lower bound of a Mamba-2 layer's step sizes")                                                                  \
    X(RESCALES_RESIDUAL, rescales_residual, BOOL, 0, 0, "rescale_prenorm_residual", "",                               \
      "initial weights of output projections are rescaled, which takes memory while the model is made")               \
    X(MAMBA_KERNEL, linear_kernel, INT, 1, 1 << 10, "mamba_d_conv", "tokens",                                         \
      "kernel size of a Mamba-2 layer's convolution")                                                                 \
    X(MAMBA_EXPAND, mamba_expand, INT, 1, 1 << 10, "mamba_expand", "",                                                \
      "width of a Mamba-2 layer over hidden_size")                                                                    \
    X(MAMBA_WIDTH, mamba_width, INT, 1, 1 << 22, "mamba_d_ssm", "elements",                                           \
      "width of a Mamba-2 layer; null: mamba_expand * hidden_size")                                                   \
    X(MAMBA_OUT_BIAS, mamba_out_bias, BOOL, 0, 0, "projectors_bias", "",                                              \
      "bias of a Mamba-2 layer's output projection")                                                                  \
    X(MAMBA_CHUNK, mamba_chunk, INT, 1, 1 << 20, "mamba_chunk_size", "tokens",                                        \
      "tokens of a chunk in a Mamba-2 layer's scan, whose largest tensors grow with it")                              \
    X(MAMBA_CONV_BIAS, mamba_conv_bias, BOOL, 0, 0, "mamba_conv_bias", "",                                            \
      "bias of a Mamba-2 layer's convolution")                                                                        \
    X(MAMBA_PROJ_BIAS, mamba_proj_bias, BOOL, 0, 0, "mamba_proj_bias", "",                                            \
      "biases of a Mamba-2 layer's projections")                                                                      \
    X(POSITION_USE, position_use, POSITION_USE, 0, 0, "position_embedding_type", "",                                  \
      "rotary embeddings (rope), or no positions")                                                                    \
    X(FULL_INTERVAL, full_interval, INT, 1, 1 << 20, "full_attention_interval", "layers",                             \
      "every n-th layer has full attention, the others linear attention")                                             \
    X(NEW_ARCHITECTURE, new_architecture, BOOL, 0, 0, "new_decoder_architecture", "",                                 \
      "falcon's newer layout, in which each group of queries is followed by its key and value")                       \
    X(MULTI_QUERY, multi_query, BOOL, 0, 0, "multi_query", "",                                                        \
      "one key and value head for all queries (falcon: unless new_decoder_architecture)")                             \
    X(NORMS_IN_PARALLEL, norms_in_parallel, INT, 1, 2, "num_ln_in_parallel_attn", "norms",                            \
      "LayerNorms before attention and MLP that run in parallel; null: 2 with new_decoder_architecture, else 1")      \
    X(ADJUSTS_WIDTH, adjusts_width, BOOL, 0, 0, "block_auto_adjust_ff_dim", "",                                       \
      "the MLP's width is 2/3 of intermediate_size, times block_ffn_dim_multiplier, rounded up to a multiple of "     \
      "block_multiple_of")                                                                                            \
    X(WIDTH_MULTIPLE, width_multiple, INT, 1, 1 << 20, "block_multiple_of", "elements",                               \
      "multiple to which the MLP's width is rounded up")                                                              \
    X(WIDTH_MULTIPLIER, width_multiplier, NUMBER, 1e-6, 1e6, "block_ffn_dim_multiplier", "",                          \
      "factor of the MLP's width")                                                                                    \
    X(PAD_TOKEN, pad_token_id, INT, -(1 << 26), (1 << 26) - 1, "pad_token_id", "token",                               \
      "padding_idx of the embedding")                                                                                 \
    X(DROPOUT_EMBEDDING, dropout_embedding, NUMBER, 0, 1, "embd_pdrop", "probability",                                \
      "dropout after the embedding")                                                                                  \
    X(DROPOUT_ATTENTION, dropout_attention, NUMBER, 0, 1, "attention_dropout", "probability",                         \
      "dropout of attention probabilities")                                                                           \
    X(DROPOUT_RESIDUAL, dropout_residual, NUMBER, 0, 1, "resid_pdrop", "probability",                                 \
      "dropout before each addition to the residual stream")                                                          \
    X(DROPOUT_MLP, dropout_mlp, NUMBER, 0, 1, "mlp_dropout", "probability", "dropout inside the MLP")                 \
    X(DROPOUT_CLASSIFIER, dropout_classifier, NUMBER, 0, 1, "classifier_dropout", "probability",                      \
      "dropout of a classification head; null: as before additions to the residual stream")                           \
    X(DROPOUT_ANSWERS, dropout_answers, NUMBER, 0, 1, "qa_dropout", "probability",                                    \
      "dropout before the question-answering head")                                                                   \
    X(DROPOUT_POOLER, dropout_pooler, NUMBER, 0, 1, "pooler_dropout", "probability",                                  \
      "dropout of the pooled output that a classification head reads")                                                \
    X(LAYERDROP, layerdrop, NUMBER, 0, 1, "layerdrop", "probability", "probability that a block is skipped")

enum plim_field {
#define PLIM_FIELD_ENUM(name, ...) PLIM_FIELD_##name,
    PLIM_FIELD_MAP(PLIM_FIELD_ENUM)
#undef PLIM_FIELD_ENUM
    PLIM_FIELD_COUNT
};

struct plim_field_info {
    const char *name;       /* the usual name in config.json */
    size_t offset;          /* in struct plim_model_config */
    struct plim_value value;
    const char *unit, *help;
};

/* One key of a family's config.json. */
struct plim_family_key {
    const char *name;
    const char *alias; /* another name, which takes precedence if both are given. NULL: none */
    enum plim_field field;
    bool nullable;          /* may be null; the field is 0 then (PLIM_NO_TOKEN for a token) */
    const char *fallback;   /* the class's default, as YAML; NULL: derived from others */
};

enum { PLIM_FAMILY_MAX_LINEARS = 20, PLIM_FAMILY_MAX_TEXTS = 2 };

/* Which layers attend only to a window. */
enum plim_sliding_rule {
    PLIM_SLIDING_NONE,
    PLIM_SLIDING_ALL,        /* every layer, when sliding_window is given */
    PLIM_SLIDING_ALTERNATE,  /* layers 0, 2, 4, ... */
    PLIM_SLIDING_PATTERN,    /* all but every sliding_window_pattern-th */
    PLIM_SLIDING_TAIL,       /* from max_window_layers on, when use_sliding_window */
    PLIM_SLIDING_HEAD,       /* 0, 2, 4, ... below max_window_layers, when use_sliding_window */
    PLIM_SLIDING_FOURTH,     /* all but layers 3, 7, 11, ... */
    PLIM_SLIDING_SIXTH,      /* all but layers 5, 11, 17, ... and the last one, even if layer_types says otherwise */
    PLIM_SLIDING_NOPE,       /* those without rotary positions, when use_sliding_window */
    PLIM_SLIDING_BETWEEN     /* all but layers 0, n, 2n, ..., n = sliding_window_pattern */
};

/* Which layers have no rotary positions. */
enum plim_nope_rule {
    PLIM_NOPE_NONE,
    PLIM_NOPE_INTERVAL, /* every no_rope_layer_interval-th, or as no_rope_layers says */
    PLIM_NOPE_FULL,     /* layers with full attention, if there is a window */
    PLIM_NOPE_KEY       /* all, unless position_embedding_type is rope */
};

struct plim_family_info {
    const struct plim_family_key *keys;
    size_t key_count;
    enum plim_sliding_rule sliding;
    enum plim_nope_rule nope;
    bool layer_types;        /* config.json may list the layers' types */
    bool needs_layer_types;  /* and has to */
    bool linear;             /* layers have linear or full attention; else windowed or full attention */
    bool convolves;          /* layers are short convolutions, or have full attention */
    bool mamba;              /* layers are Mamba-2 layers, or have full attention */
    bool pattern;            /* or are MLPs or experts: layer_pattern */
    enum plim_activation activation; /* of the MLP, if there is no key for it */
    bool learned_positions;  /* a sequence cannot be longer than the table of positions */
    bool counts_positions;   /* positions start after pad_token_id, and count only tokens that are not padding */
    bool images;             /* rows are images; the sequence length is fixed by the model */
    bool vision;             /* it has a vision tower; config.json has vision_config and text_config */
    bool mostly_text;        /* its rows have images only if data.images says so: most jobs of gemma3 have none */
    enum plim_family causal_lm; /* what AutoModelForCausalLM builds of its config.json; 0: it itself */
    enum plim_family texts[PLIM_FAMILY_MAX_TEXTS]; /* with a tower: what text_config may be, with the defaults of its
                              * class, the first one if it does not say; 0 ends them. None: it is the family's own */
    bool flat;               /* with a tower: the text's keys may also be at the top level, beside vision_config */
    int64_t deep[PLIM_MAX_DEEP]; /* the class's default of deepstack_visual_indexes, ended by 0 */
    int64_t full[PLIM_MAX_DEEP]; /* that of fullatt_block_indexes */
    int64_t mrope_section[PLIM_GRIDS]; /* that of rope_parameters' mrope_section */
    bool rotary;
    enum plim_rope rope;     /* if config.json has no rope_parameters, and */
    int64_t rope_original_positions; /* its original_max_position_embeddings; 0: the model's */
    bool rotary_by_layers;   /* rope_parameters has a mapping for each type of layer */
    bool functional_dropout; /* its dropouts are not modules, so that DPOTrainer does not find them */
    bool rotary_rounds_up;   /* the rotating part of a head is rounded up to an even width */
    bool head_dim_floors;    /* hidden_size / heads may leave a remainder */
    bool head_dim_derives;   /* a head_dim must be hidden_size / heads */
    enum plim_field required[2]; /* keys whose null fails in transformers; PLIM_FIELD_TASK: none */
    bool heads_must_divide;  /* hidden_size % heads must be 0 even where head_dim is given */
    unsigned tasks;          /* bit mask of enum plim_task; 0: a causal language model and a classification */
    struct plim_liger_patches liger;
    bool uncut;              /* cut cross entropy does not work: the causal model has no `model` or no `lm_head` */
    bool uncheckpointed;     /* supports_gradient_checkpointing is not set: gradient_checkpointing_enable() fails */
    bool eager_only;         /* _supports_sdpa is not set: sdpa raises a ValueError */
    const char *classifier;  /* the last linear of a classification, by the last part of its name; NULL: a decoder's */
    const char *answers;     /* the same for question answering; NULL: qa_outputs */
    /* The linears that LoRA may target, and peft 0.21's defaults (empty: none); NULL-terminated. */
    const char *linears[PLIM_FAMILY_MAX_LINEARS + 1];
    const char *lora_default[PLIM_FAMILY_MAX_LINEARS + 1];
};

/* The parts of a model that Liger's kernels replace. */
struct plim_liger_patches plim_family_liger(const struct plim_model_config *config,
                                            const struct plim_train_setting *setting);

/* True if layers have full attention or something else than attention, not a window. */
static inline bool plim_family_mixes(const struct plim_family_info *info)
{
    return info->linear || info->convolves || info->mamba;
}

const struct plim_field_info *plim_field_info(enum plim_field field);
const struct plim_family_info *plim_family_info(enum plim_family family);

/* The family of a model_type; PLIM_FAMILY_COUNT: there is none of this name. */
enum plim_family plim_family_named(const char *name);

/* The row of `name`: its name, its alias or, with `usual`, the field's usual name. NULL: the
 * family has no such key. */
const struct plim_family_key *plim_family_find(enum plim_family family, const char *name,
                                               bool usual);

/* The name of a field in the family's config.json, or its usual name if the family does not have it. */
const char *plim_family_key_name(enum plim_family family, enum plim_field field);

/* The value of a row: its field's, with the row's nullability. */
struct plim_value plim_family_key_value(const struct plim_family_key *key);

/* Reads `node` into the fields of a row (hidden_dropout of gpt_neox has two). */
enum plim_status plim_family_key_read(enum plim_family family, const struct plim_family_key *key,
                                      const struct plim_place *place,
                                      const struct plim_yaml_node *node,
                                      struct plim_model_config *model) PLIM_MUST_CHECK;

/* A configuration with the family's defaults, before anything is derived. */
enum plim_status plim_family_defaults(enum plim_family family, struct plim_model_config *model,
                                      struct plim_error *err) PLIM_MUST_CHECK;

/* Computes spec->model from spec->model_as_given and spec->layer_types_given: heads, widths and
 * layer types that derive from others, as the classes' __post_init__ does. */
void plim_model_derive(struct plim_spec *spec);

/* Refuses a derived model that PyTorch would refuse. `*culprit` names the key in question then. */
enum plim_status plim_model_check(const struct plim_spec *spec, const char **culprit,
                                  struct plim_error *err) PLIM_MUST_CHECK;

/* Has the family this task? */
bool plim_family_has_task(enum plim_family family, enum plim_task task);
/* Is it a decoder, which may be a causal language model? */
bool plim_family_is_decoder(enum plim_family family);
/* The last linear of a head that classifies, by the last part of its name; NULL: the model's head gives scores of the
 * vocabulary. */
const char *plim_model_classifier(const struct plim_model_config *model);

/* The longest sequence for which a model has positions (roberta's start after the padding
 * token). */
int64_t plim_model_longest(const struct plim_model_config *model);

/* deberta-v2: the distances on either side that have an embedding of their own */
int64_t plim_model_distances(const struct plim_model_config *model);
/* deberta-v2: the farthest distance that is distinguished from larger ones */
int64_t plim_model_farthest(const struct plim_model_config *model);

/* layer_is_sliding if there is no layer_types list; `is_sliding` has PLIM_MAX_LAYERS. */
void plim_model_sliding_layers(const struct plim_model_config *model, bool *is_sliding);
/* Has the layer experts in the place of its MLP? */
bool plim_model_layer_has_experts(const struct plim_model_config *model, int64_t layer);
/* layer_is_linear if there is no layer_types list; likewise. */
void plim_model_linear_layers(const struct plim_model_config *model, bool *is_linear);
/* layer_is_nope if there is no no_rope_layers list; likewise. */
void plim_model_nope_layers(const struct plim_model_config *model, bool *is_nope);

/* The name in a layer_types list of the layers without full_attention. */
const char *plim_family_other_layers(enum plim_family family);

/* The array that a layer_types list sets: layer_is_linear or layer_is_sliding. */
static inline bool *plim_model_layer_types(struct plim_model_config *model)
{
    const struct plim_family_info *info = plim_family_info(model->family);
    return plim_family_mixes(info) ? model->layer_is_linear : model->layer_is_sliding;
}

/* True if the layer is an MLP or experts alone. */
static inline bool plim_model_layer_feeds(const struct plim_model_config *model, int64_t layer)
{
    return model->layer_pattern[layer] == PLIM_LAYER_MLP || model->layer_pattern[layer] == PLIM_LAYER_EXPERTS;
}

/* True if each block has attention and a Mamba-2 layer side by side. */
static inline bool plim_model_has_parallel_mamba(const struct plim_model_config *model)
{
    return model->mamba_chunk && !plim_family_info(model->family)->mamba;
}

#endif
