"""The small models of make_losses.py, as keys of their config.json, and their adapters."""

GPT2 = dict(model_type="gpt2", vocab_size=97, n_positions=48, n_embd=32, n_layer=2, n_head=4)
ROTARY = dict(vocab_size=101, hidden_size=32, intermediate_size=56, num_hidden_layers=2,
              num_attention_heads=4, max_position_embeddings=64, pad_token_id=None, bos_token_id=1,
              eos_token_id=2)
LLAMA = dict(ROTARY, model_type="llama", num_key_value_heads=2)


LORA = dict(gpt2=dict(r=4, target_modules=["c_attn"]),
            llama=dict(r=4, target_modules=["q_proj", "v_proj"]))


def default_rope(**more):
    return dict(rope_type="default", rope_theta=10000.0, **more)


FAMILIES = [
    dict(ROTARY, model_type="mistral", num_key_value_heads=2, sliding_window=None),
    dict(ROTARY, model_type="mistral", num_key_value_heads=2, sliding_window=16),
    dict(ROTARY, model_type="qwen2", num_key_value_heads=2, tie_word_embeddings=True),
    dict(ROTARY, model_type="qwen3", num_key_value_heads=2, head_dim=8),
    dict(ROTARY, model_type="phi3", num_key_value_heads=2, rms_norm_eps=1e-6, sliding_window=None),
    dict(ROTARY, model_type="phi", rope_parameters=default_rope(partial_rotary_factor=0.5)),
    dict(ROTARY, model_type="gemma2", num_key_value_heads=2, head_dim=8, query_pre_attn_scalar=8,
         sliding_window=16, attn_logit_softcapping=50.0, final_logit_softcapping=30.0),
    dict(ROTARY, model_type="gemma3_text", num_key_value_heads=2, head_dim=8,
         query_pre_attn_scalar=8, sliding_window=16,
         rope_parameters=dict(sliding_attention=default_rope(), full_attention=default_rope())),
    dict(ROTARY, model_type="gpt_neox", rope_parameters=default_rope(partial_rotary_factor=0.25)),
    dict(model_type="opt", vocab_size=101, hidden_size=32, ffn_dim=56, num_hidden_layers=2,
         num_attention_heads=4, max_position_embeddings=64, word_embed_proj_dim=32, layerdrop=0.0),
    dict(model_type="bloom", vocab_size=101, hidden_size=30, n_layer=2, n_head=5),
    dict(ROTARY, model_type="olmo2", num_key_value_heads=2, rms_norm_eps=1e-6),
]


FURTHER = [
    dict(ROTARY, model_type="granitemoehybrid", num_key_value_heads=2, shared_intermediate_size=56, num_local_experts=0,
         position_embedding_type="rope", layer_types=["attention"] * 2, mamba_n_heads=4, embedding_multiplier=3.0,
         residual_multiplier=0.5, attention_multiplier=0.25, logits_scaling=2.0),
    dict(ROTARY, model_type="falcon_h1", num_key_value_heads=2, head_dim=12, rms_norm_eps=1e-6, pad_token_id=None,
         attention_bias=True, mlp_bias=True, mamba_d_ssm=40, mamba_n_heads=4, mamba_d_state=10, mamba_n_groups=2,
         mamba_chunk_size=16, projectors_bias=True, rope_parameters=default_rope()),
    dict(ROTARY, model_type="nemotron_h", num_hidden_layers=4, hybrid_override_pattern="M*-M", num_key_value_heads=2,
         head_dim=12, layer_norm_epsilon=1e-6, mlp_bias=True, mamba_num_heads=4, mamba_head_dim=10, ssm_state_size=6,
         n_groups=2, chunk_size=16, time_step_min=0.7, use_bias=True),
    dict(ROTARY, model_type="apertus", num_key_value_heads=2, hidden_act="xielu", rms_norm_eps=1e-6, attention_bias=True,
         rope_parameters=default_rope()),
    dict(model_type="gptj", vocab_size=101, n_positions=64, n_embd=32, n_inner=56, n_layer=2, n_head=4, rotary_dim=4),
    dict(ROTARY, model_type="gemma", num_key_value_heads=1, head_dim=12),
    dict(ROTARY, model_type="starcoder2", num_key_value_heads=2, tie_word_embeddings=False),
    dict(ROTARY, model_type="smollm3", num_key_value_heads=2, no_rope_layer_interval=2, use_sliding_window=True,
         sliding_window=16),
    dict(ROTARY, model_type="granite", num_key_value_heads=2, embedding_multiplier=12.0, residual_multiplier=0.5,
         attention_multiplier=0.7, logits_scaling=0.25),
    dict(ROTARY, model_type="olmo", num_key_value_heads=2, clip_qkv=0.2),
    dict(ROTARY, model_type="olmo3", num_key_value_heads=2, rms_norm_eps=1e-6, sliding_window=16,
         layer_types=["sliding_attention", "full_attention"]),
    dict(ROTARY, model_type="stablelm", num_key_value_heads=2, use_qkv_bias=True),
    dict(ROTARY, model_type="stablelm", num_key_value_heads=2, use_parallel_residual=True, partial_rotary_factor=0.5),
    dict(ROTARY, model_type="cohere", num_key_value_heads=2, use_qk_norm=True, logit_scale=3.0),
    dict(ROTARY, model_type="cohere2", num_key_value_heads=2, logit_scale=0.7, sliding_window=16,
         layer_types=["sliding_attention", "full_attention"]),
    dict(ROTARY, model_type="glm", num_key_value_heads=2, head_dim=8, partial_rotary_factor=0.5, rms_norm_eps=1e-6),
    dict(ROTARY, model_type="glm4", num_key_value_heads=2, head_dim=12, partial_rotary_factor=1.0, rms_norm_eps=1e-6),
    dict(ROTARY, model_type="qwen3_5_text", num_key_value_heads=2, head_dim=16, rms_norm_eps=1e-6,
         linear_key_head_dim=6, linear_value_head_dim=10, linear_num_key_heads=2, linear_num_value_heads=4,
         layer_types=["linear_attention", "full_attention"]),
    dict(ROTARY, model_type="ministral3", num_key_value_heads=2, head_dim=64, rms_norm_eps=1e-6, rope_parameters=dict(
        rope_type="default", rope_theta=10000.0, llama_4_scaling_beta=0.1, original_max_position_embeddings=3)),
    dict(ROTARY, model_type="ministral", num_key_value_heads=2, head_dim=12, sliding_window=16,
         layer_types=["sliding_attention", "full_attention"]),
    dict(ROTARY, model_type="arcee", num_key_value_heads=2, mlp_bias=True, rms_norm_eps=1e-6),
    dict(ROTARY, model_type="nemotron", num_key_value_heads=2, head_dim=16, partial_rotary_factor=0.5),
    dict(ROTARY, model_type="exaone4", num_key_value_heads=2, rms_norm_eps=1e-6, sliding_window=16,
         sliding_window_pattern=2),
    dict(ROTARY, model_type="seed_oss", num_key_value_heads=2, head_dim=12, attention_out_bias=True, rms_norm_eps=1e-6,
         attention_dropout=0.0, residual_dropout=0.0),
    dict(ROTARY, model_type="ernie4_5", num_key_value_heads=2, head_dim=8, use_bias=True, rms_norm_eps=1e-6),
    dict(ROTARY, model_type="hunyuan_v1_dense", num_key_value_heads=2, head_dim=12, rms_norm_eps=1e-6),
    dict(ROTARY, model_type="falcon", ffn_hidden_size=56, bias=True),
    dict(ROTARY, model_type="falcon", new_decoder_architecture=True, num_kv_heads=2, ffn_hidden_size=56),
    dict(ROTARY, model_type="falcon", multi_query=False, parallel_attn=False, ffn_hidden_size=56, tie_word_embeddings=False),
    dict(GPT2, model_type="gpt_bigcode"),
    dict(GPT2, model_type="gpt_bigcode", multi_query=False, scale_attn_weights=False, tie_word_embeddings=False),
    dict(ROTARY, model_type="lfm2", num_key_value_heads=2, norm_eps=1e-6, block_multiple_of=8, tie_word_embeddings=False,
         layer_types=["conv", "full_attention"]),
]


LATENT = dict(ROTARY, model_type="deepseek_v3", num_key_value_heads=4, kv_lora_rank=12, qk_rope_head_dim=8,
              qk_nope_head_dim=12, v_head_dim=16, n_routed_experts=8, num_experts_per_tok=3, moe_intermediate_size=24,
              n_shared_experts=1, first_k_dense_replace=1)
EXPERTS = [
    dict(ROTARY, model_type="mixtral", num_key_value_heads=2, num_local_experts=5, num_experts_per_tok=2,
         rms_norm_eps=1e-6, rope_parameters=default_rope()),
    dict(ROTARY, model_type="qwen2_moe", num_key_value_heads=2, num_experts=6, num_experts_per_tok=3,
         moe_intermediate_size=16, shared_expert_intermediate_size=40, decoder_sparse_step=2),
    dict(ROTARY, model_type="qwen3_moe", num_key_value_heads=2, head_dim=8, num_experts=8, num_experts_per_tok=3,
         moe_intermediate_size=24, norm_topk_prob=True),
    dict(ROTARY, model_type="gpt_oss", num_key_value_heads=2, head_dim=8, num_local_experts=6, num_experts_per_tok=3,
         sliding_window=16, rms_norm_eps=1e-6, rope_parameters=default_rope()),
    dict(ROTARY, model_type="olmoe", num_key_value_heads=2, rms_norm_eps=1e-6, clip_qkv=0.2, num_experts=6,
         num_experts_per_tok=2),
    dict(ROTARY, model_type="granitemoe", num_key_value_heads=2, num_local_experts=6, num_experts_per_tok=3,
         embedding_multiplier=12.0, residual_multiplier=0.5, attention_multiplier=0.7, logits_scaling=0.25),
    dict(ROTARY, model_type="qwen3_next", num_key_value_heads=2, head_dim=16, rms_norm_eps=1e-6,
         linear_key_head_dim=6, linear_value_head_dim=10, linear_num_key_heads=2, linear_num_value_heads=4,
         layer_types=["linear_attention", "full_attention"], num_experts=6, num_experts_per_tok=2,
         moe_intermediate_size=24, shared_expert_intermediate_size=40, decoder_sparse_step=2),
    dict(ROTARY, model_type="qwen3_5_moe_text", num_key_value_heads=2, head_dim=16, rms_norm_eps=1e-6,
         linear_key_head_dim=6, linear_value_head_dim=10, linear_num_key_heads=2, linear_num_value_heads=4,
         layer_types=["linear_attention", "full_attention"], num_experts=6, num_experts_per_tok=2,
         moe_intermediate_size=24, shared_expert_intermediate_size=40),
    dict(ROTARY, model_type="glm4_moe", num_key_value_heads=2, head_dim=12, use_qk_norm=True, attention_bias=True,
         rms_norm_eps=1e-6, n_routed_experts=8, num_experts_per_tok=3, moe_intermediate_size=24, n_shared_experts=2,
         n_group=2, topk_group=1, routed_scaling_factor=1.5, first_k_dense_replace=1),
    dict(LATENT, q_lora_rank=16, n_group=4, topk_group=2),
    dict(LATENT, q_lora_rank=None, rope_interleave=False, attention_bias=True, n_group=1, topk_group=1,
         norm_topk_prob=False, first_k_dense_replace=0),
    dict({key: value for key, value in LATENT.items() if key != "first_k_dense_replace"}, model_type="glm4_moe_lite",
         q_lora_rank=16, qk_nope_head_dim=8, rms_norm_eps=1e-6),
    dict(LATENT, model_type="deepseek_v2", q_lora_rank=16, n_group=4, topk_group=2, topk_method="group_limited_greedy",
         routed_scaling_factor=2.5, rms_norm_eps=1e-6, mlp_bias=True),
    dict(LATENT, model_type="deepseek_v2", q_lora_rank=None, attention_bias=True, first_k_dense_replace=0,
         rms_norm_eps=1e-6),
    dict(ROTARY, model_type="ernie4_5_moe", num_key_value_heads=2, use_bias=True, rms_norm_eps=1e-6, moe_num_experts=5,
         moe_k=2, moe_intermediate_size=24, moe_num_shared_experts=2, tie_word_embeddings=False),
    dict(ROTARY, model_type="lfm2_moe", num_key_value_heads=2, norm_eps=1e-6, num_experts=8, num_experts_per_tok=3,
         moe_intermediate_size=24, num_dense_layers=1, layer_types=["full_attention", "conv"], routed_scaling_factor=1.5,
         tie_word_embeddings=False, rope_parameters=default_rope()),
    dict(ROTARY, model_type="minimax_m2", num_key_value_heads=2, head_dim=12, rms_norm_eps=1e-6, num_local_experts=8,
         num_experts_per_tok=3, rope_parameters=default_rope(partial_rotary_factor=0.5)),
    dict(ROTARY, model_type="afmoe", num_key_value_heads=2, head_dim=12, rms_norm_eps=1e-6, num_experts=8, num_dense_layers=1,
         num_experts_per_tok=3, moe_intermediate_size=24, num_shared_experts=2, route_scale=1.5, mup_enabled=True,
         global_attn_every_n_layers=2, sliding_window=16, rope_parameters=default_rope()),
    dict(ROTARY, model_type="nemotron_h", num_hidden_layers=4, hybrid_override_pattern="EM*E", num_key_value_heads=2,
         head_dim=12, layer_norm_epsilon=1e-6, mamba_num_heads=4, mamba_head_dim=10, ssm_state_size=6, n_groups=2,
         chunk_size=16, n_routed_experts=8, num_experts_per_tok=3, moe_intermediate_size=24,
         moe_shared_expert_intermediate_size=40, routed_scaling_factor=2.5, n_group=2, topk_group=1),
]


BERT = dict(vocab_size=101, hidden_size=32, intermediate_size=56, num_hidden_layers=2, num_attention_heads=4,
            max_position_embeddings=64, pad_token_id=5)  # a token that the data does not have
LABELS = dict(id2label={str(i): f"LABEL_{i}" for i in range(5)})
ENCODER_MODELS = [
    dict(BERT, model_type="bert"),
    dict(BERT, model_type="bert", architectures=["BertForSequenceClassification"], **LABELS),
    dict(BERT, model_type="roberta"),
    dict(BERT, model_type="roberta", architectures=["RobertaForSequenceClassification"], **LABELS),
    dict(model_type="distilbert", vocab_size=101, dim=32, hidden_dim=56, n_layers=2, n_heads=4,
         max_position_embeddings=64, pad_token_id=5),
    dict(model_type="distilbert", vocab_size=101, dim=32, hidden_dim=56, n_layers=2, n_heads=4,
         max_position_embeddings=64, pad_token_id=5, architectures=["DistilBertForSequenceClassification"], **LABELS),
    dict(BERT, model_type="modernbert", local_attention=16,
         rope_parameters=dict(sliding_attention=default_rope(), full_attention=default_rope())),
    dict(BERT, model_type="modernbert", local_attention=16, classifier_pooling="mean",
         rope_parameters=dict(sliding_attention=default_rope(), full_attention=default_rope()),
         architectures=["ModernBertForSequenceClassification"], **LABELS),
]


DISTILBERT, MODERNBERT = ENCODER_MODELS[4], ENCODER_MODELS[6]
ESM = dict(BERT, model_type="esm", mask_token_id=7, token_dropout=True, position_embedding_type="rotary")
ALBERT = dict(BERT, model_type="albert", embedding_size=24, num_hidden_layers=5, num_hidden_groups=2)
MPNET = dict(BERT, model_type="mpnet", vocab_size=160)  # of which the data has no token 1, its padding
ELECTRA = dict(BERT, model_type="electra", embedding_size=24)
FURTHER_ENCODERS = {
    "BertForSequenceClassification": dict(BERT, model_type="bert", id2label={"0": "LABEL_0"}),  # a number
    "BertForTokenClassification": dict(BERT, model_type="bert", **LABELS),
    "BertForQuestionAnswering": dict(BERT, model_type="bert"),
    "DistilBertForTokenClassification": dict(DISTILBERT, **LABELS), "DistilBertForQuestionAnswering": DISTILBERT,
    "ModernBertForTokenClassification": dict(MODERNBERT, **LABELS), "ModernBertForQuestionAnswering": MODERNBERT,
    "XLMRobertaForSequenceClassification": dict(BERT, model_type="xlm-roberta", **LABELS),
    "XLMRobertaForTokenClassification": dict(BERT, model_type="xlm-roberta", **LABELS),
    "ElectraForMaskedLM": ELECTRA, "ElectraForSequenceClassification": dict(ELECTRA, **LABELS),
    "ElectraForQuestionAnswering": dict(ELECTRA, embedding_size=32),
    "AlbertForMaskedLM": ALBERT, "AlbertForTokenClassification": dict(ALBERT, **LABELS),
    "AlbertForSequenceClassification": dict(ALBERT, num_hidden_groups=1, hidden_act="gelu", **LABELS),
    "MPNetForMaskedLM": MPNET, "MPNetForSequenceClassification": dict(MPNET, **LABELS), "MPNetForQuestionAnswering": MPNET,
    "EsmForMaskedLM": ESM, "EsmForTokenClassification": dict(ESM, **LABELS),
    "EsmForSequenceClassification": dict(ESM, position_embedding_type="absolute", emb_layer_norm_before=True, **LABELS),
}

DEBERTA = dict(BERT, model_type="deberta-v2", relative_attention=True, position_buckets=8, norm_rel_ebd="layer_norm",
               share_att_key=True, pos_att_type="p2c|c2p", position_biased_input=False)


CLASSIFIERS = {"LlamaForSequenceClassification": dict(LLAMA, tie_word_embeddings=True),
               "Qwen2ForSequenceClassification": FAMILIES[2], "Gemma3TextForSequenceClassification": FAMILIES[7],
               "PhiForSequenceClassification": FAMILIES[5], "OPTForSequenceClassification": FAMILIES[9],
               "GPT2ForSequenceClassification": GPT2, "GPTNeoXForSequenceClassification": FAMILIES[8],
               "BloomForSequenceClassification": FAMILIES[10], "MixtralForSequenceClassification": EXPERTS[0]}


ADAPTERS = [
    dict(r=4, target_modules=["q_proj", "embed_tokens", "lm_head"]),
    dict(r=4, target_modules=["c_attn", "wte"]),
    dict(r=4, target_modules=["q_proj", "up_proj"], modules_to_save=["embed_tokens", "lm_head", "model.norm"]),
    dict(r=4, target_modules=["c_attn"], modules_to_save=["wte", "lm_head"]),
    dict(r=4, target_modules=["c_attn"], modules_to_save=["wte"], ensure_weight_tying=True),
    dict(r=4, target_modules=r".*\.0\..*_proj", rank_pattern={"q_proj": 8}),
]


BOTH = ["mlp.experts.gate_up_proj", "mlp.experts.down_proj"]
STACKED = [  # of EXPERTS
    dict(r=4, target_modules="all-linear"),
    dict(r=4, target_modules=["q_proj"], target_parameters=[*BOTH, "mlp.gate.weight"]),
    dict(r=4, target_modules=["gate_proj", "up_proj"]),
    dict(r=4, target_modules=["q_proj"], target_parameters=BOTH),
    dict(r=4, target_modules="all-linear"),
    dict(r=4, target_modules=["q_proj"], target_parameters=[f"block_sparse_moe.{part}" for part in (
        "experts.gate_up_proj", "experts.down_proj", "router.weight")]),
    dict(r=4, target_modules=["in_proj_qkvz", "q_proj"], target_parameters=BOTH),
    dict(r=4, target_modules=["in_proj_qkv", "up_proj"], target_parameters=BOTH),
    dict(r=4, target_modules="all-linear"),
    dict(r=4, target_modules=["q_a_proj", "kv_b_proj"], target_parameters=[*BOTH, "mlp.gate.weight"]),
    dict(r=4, target_modules=["q_proj", "kv_a_proj_with_mqa", "o_proj"]),
    dict(r=4, target_modules=["q_b_proj", "kv_b_proj", "gate_proj", "up_proj", "down_proj"]),
    dict(r=4, target_modules=["q_a_proj", "kv_b_proj"], target_parameters=[*BOTH, "mlp.gate.weight"]),
    dict(r=4, target_modules="all-linear"),
    dict(r=4, target_modules="all-linear"),
    dict(r=4, target_modules=["q_proj", "in_proj"], target_parameters=[f"feed_forward.{part}" for part in (
        "experts.gate_up_proj", "experts.down_proj", "gate.weight")]),
    dict(r=4, target_modules="all-linear"),
    dict(r=4, target_modules=["q_proj"], target_parameters=BOTH),
    dict(r=4, target_modules=["in_proj", "up_proj"]),
]
