#!/usr/bin/env python3
"""Records PyTorch's own losses on the CPU: small models, 20 optimizer steps, one JSON line a case.

    make_losses.py > losses.jsonl        (needs torch and transformers; no GPU)
    make_losses.py experts [FAMILY ...] > experts.jsonl
    make_losses.py further [FAMILY ...] > further.jsonl
    make_losses.py vision > vision.jsonl                (rows with images)
    make_losses.py gemma4 > gemma4.jsonl                (gemma4's text, and whole models)
    make_losses.py seq2seq > seq2seq.jsonl              (an encoder and a decoder; speech, barts: some of them)
    make_losses.py deberta > deberta.jsonl
    make_losses.py mamba > mamba.jsonl                  (layers of Mamba-2)
    make_losses.py classifiers > classifiers.jsonl      (decoders whose last token that is no padding is classified)
    make_losses.py encoders [CLASS ...] > encoders.jsonl   (encoders' tasks that are not in losses.jsonl, and later encoders)

Weights, tokens and data are those of the engine: Philox4x32-10 streams (devices/random.h), the n-th
parameter by seed n, the tokens by seed 2^30. test_losses.c trains the same models and compares.
"""
import json
import os
import sys

os.environ["TRANSFORMERS_VERBOSITY"] = "error"
import numpy as np
import torch
import transformers
from small_models import (ADAPTERS, CLASSIFIERS, DEBERTA, ENCODER_MODELS, EXPERTS, FAMILIES, FURTHER, FURTHER_ENCODERS,
                          GPT2, LABELS, LLAMA, LORA, ROTARY, STACKED, default_rope)
from streams import LIMIT, TOKEN_SEED, tokens, weights, words
from vision_cases import BY_IDS, unused, vision, with_images

STEPS = 20
FROM_ONE = ("qwen3_5_text", "qwen3_5_moe_text", "qwen3_next", "qwen3_5", "qwen3_5_moe")  # whose norms multiply by 1 + weight, as gemma's


def as_one_row(case, ids):
    """All rows in one, whose positions start again at each document."""
    length = -(-case["seq"] // case["documents"])
    return dict(input_ids=ids.view(1, -1), position_ids=(torch.arange(ids.numel()) % length)[None])


def add_lora(model, lora):
    from peft import LoraConfig, get_peft_model
    return get_peft_model(model, LoraConfig(lora_alpha=2 * lora["r"], lora_dropout=0.0, **lora))


ENCODERS = ("bert", "roberta", "distilbert", "modernbert", "xlm-roberta", "electra", "deberta-v2", "esm", "albert", "mpnet")
UNCHECKED = ("albert", "mpnet")  # which transformers does not checkpoint
HEADS = {"ForSequenceClassification": transformers.AutoModelForSequenceClassification,
         "ForTokenClassification": transformers.AutoModelForTokenClassification,
         "ForQuestionAnswering": transformers.AutoModelForQuestionAnswering}


def head_of(config):
    """The end of the class's name, where it classifies"""
    return next((head for head in HEADS if (config.architectures or [""])[0].endswith(head)), None)


def class_of(config):
    if hasattr(config, "vision_config"):
        return transformers.AutoModelForImageTextToText
    if head_of(config):
        return HEADS[head_of(config)]
    if config.is_encoder_decoder:
        hears = config.model_type == "whisper"
        return transformers.AutoModelForSpeechSeq2Seq if hears else transformers.AutoModelForSeq2SeqLM
    return transformers.AutoModelForMaskedLM if config.model_type in ENCODERS else transformers.AutoModelForCausalLM


def mask_of(ids):
    """Of rows whose last one's last token is hidden"""
    mask = torch.ones_like(ids)
    mask[-1, -1] = 0
    return mask


def with_target(case, config, ids):
    """Labels of a seed of their own; where rows are padded the last one's last token is hidden, of both."""
    count = case["batch"] * case["target_seq"]
    labels = words(TOKEN_SEED - 1, count) * np.uint64(config.vocab_size) >> np.uint64(32)
    inputs = dict(input_ids=ids, labels=torch.from_numpy(labels.astype(np.int64).reshape(case["batch"], -1)))
    if case.get("padded"):
        inputs["labels"][-1, -1] = -100
    return inputs


def numbers(seed, most, shape):
    drawn = words(seed, int(np.prod(shape))) * np.uint64(most) >> np.uint64(32)
    return torch.from_numpy(drawn.astype(np.int64)).view(shape)


def learned_of(config, ids):
    """What the loss is told: the tokens again, classes of rows or of tokens, a number of a row, or where an answer begins and ends"""
    head, rows = head_of(config), ids.shape[:1]
    if head == "ForQuestionAnswering":
        return dict(start_positions=numbers(TOKEN_SEED - 1, ids.shape[1], rows),
                    end_positions=numbers(TOKEN_SEED - 2, ids.shape[1], rows))
    if not head:
        return dict(labels=ids)
    if head == "ForSequenceClassification" and config.num_labels == 1:
        return dict(labels=weights(TOKEN_SEED - 1, rows) / LIMIT)
    return dict(labels=numbers(TOKEN_SEED - 1, config.num_labels, ids.shape if head == "ForTokenClassification" else rows))


def with_sound(case, config):
    """Features, and labels of a seed of their own; where rows are padded the last one's last is hidden."""
    labels = words(TOKEN_SEED - 1, case["batch"] * case["seq"]) * np.uint64(config.vocab_size) >> np.uint64(32)
    labels = torch.from_numpy(labels.astype(np.int64).reshape(case["batch"], -1))
    if case.get("padded"):
        labels[-1, -1] = -100
    shape = case["batch"], config.num_mel_bins, 2 * config.max_source_positions
    return {"input_features": weights(TOKEN_SEED, shape) / LIMIT, "labels": labels}


def own_behind(parameters):
    """Parameters of modules of internvl's tower behind those of their parts, where they are made"""
    own = (".lambda_1", ".lambda_2", ".position_embeddings")
    for name, p in [entry for entry in parameters if ".vision_tower." in entry[0] and entry[0].endswith(own)]:
        parent = name.rsplit(".", 1)[0] + "."
        rest = [entry for entry in parameters if entry[0] != name]
        last = max(n for n, entry in enumerate(rest) if entry[0].startswith(parent))
        parameters = [*rest[:last + 1], (name, p), *rest[last + 1:]]
    return parameters


def as_made(parameters):
    """(name, parameter) in the order of the constructors: attention's sinks behind its linears, what linear attention
    has of its own behind its convolution (and qwen3_next's projections), adapters and a masked-lm head's own bias behind
    the rest."""
    parameters = list(parameters)
    is_linear = any(name.endswith("lm_head.weight") for name, _ in parameters)  # whose bias is made with it
    last = ("cls.predictions.bias", *["lm_head.bias"] * (not is_linear))
    ordered, own = [], []
    for name, p in parameters:
        if name.endswith((".sinks", ".dt_bias", ".A_log", ".mamba.D", ".mixer.D", ".router.scale", ".per_expert_scale", ".per_dim_scale", ".position_embedding_table")):
            own.append((name, p))
            continue
        if not any(part in name for part in (".self_attn.", ".conv1d.", ".mamba.in_proj.", ".mixer.in_proj.", ".in_proj_qkvz.", ".in_proj_ba.", ".router.", ".patch_embedder.")):
            ordered, own = ordered + own, []
        ordered.append((name, p))
    ordered = own_behind(ordered)
    # whose adapters peft makes behind those of modules
    stacked = (".mlp.experts.", ".mlp.gate.", ".block_sparse_moe.", ".feed_forward.experts.", ".feed_forward.gate.")
    return sorted(ordered, key=lambda entry: ("lora_" in entry[0] or entry[0].removeprefix("base_model.model.") in last,
                                              "lora_" in entry[0] and any(part in entry[0] for part in stacked)))


def build(case):
    config = dict(case["hf"])
    cfg = transformers.AutoConfig.for_model(config.pop("model_type"), **config)
    for key, value in list(vars(cfg.get_text_config()).items()):
        if "drop" in key and isinstance(value, float):
            setattr(cfg.get_text_config(), key, 0.0)
    cfg.get_text_config().use_cache = False
    dtype = torch.bfloat16 if case["precision"] == "bf16" else torch.float32
    torch.set_default_dtype(dtype)
    if cfg.is_encoder_decoder and "t5" in cfg.model_type:  # heads of their own, as from_pretrained leaves published ones
        kind = transformers.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING[type(cfg)]
        kind._tied_weights_keys = {f"{part}.weight": "shared.weight" for part in (
            "encoder.embed_tokens", "decoder.embed_tokens", *["lm_head"] * case["hf"].get("tie_word_embeddings", True))}
    model = class_of(cfg).from_config(cfg, attn_implementation=case["attention"])
    torch.set_default_dtype(torch.float32)
    if "lora" in case:
        model = add_lora(model, case["lora"])
    buffers = (".e_score_correction_bias", ".expert_bias")  # a frozen parameter in some classes, which stays 0
    made = [(name, p) for name, p in model.named_parameters() if ".modules_to_save." not in name and not name.endswith(buffers)]
    zeros = ("lora_B", "lora_embedding_A")
    with torch.no_grad():
        for n, (name, p) in enumerate(as_made(made)):
            if ".act_fn.alpha_" in name:
                continue
            if p.ndim > 1 and "norm" not in name:
                p.copy_(torch.zeros(p.shape) if any(zero in name for zero in zeros) else weights(n, tuple(p.shape)))
            else:
                from_one = case["hf"]["model_type"] in FROM_ONE and ".linear_attn." not in name and ".visual." not in name
                from_zero = "gemma" in case["hf"]["model_type"] and "gemma4" not in case["hf"]["model_type"]
                ones = name.endswith(("weight", "scale", "lambda_1", "lambda_2", ".mamba.D", ".mixer.D")) and (not from_zero or ".vision_tower." in name)
                p.fill_(1.0 if ones and not from_one else 0.0)
        for module in model.modules():  # what modules_to_save copies
            if hasattr(module, "modules_to_save") and hasattr(module, "original_module"):
                module.modules_to_save["default"].load_state_dict(module.original_module.state_dict())
    model.train()
    if case["checkpointing"] == "full":
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs=dict(use_reentrant=False))
    return model


def optimizer(name, parameters):
    if name == "sgd":
        return torch.optim.SGD(parameters, lr=1e-4, momentum=0.9)
    if name == "adafactor":
        return torch.optim.Adafactor(parameters, lr=1e-4)
    return torch.optim.AdamW(parameters, lr=1e-4, fused=name == "adamw-fused")


def losses(case):
    model = build(case)
    trained = [p for p in model.parameters() if p.requires_grad]
    opt = optimizer(case["optimizer"], trained)
    no_text = model.config.model_type in BY_IDS and case["images"] > 0  # the last token, which stands for images alone
    ids = tokens(model.config.get_text_config().vocab_size - no_text, case["batch"], case["seq"])
    inputs = as_one_row(case, ids) if case.get("packing") == "one-row" else dict(input_ids=ids)
    inputs.update(learned_of(model.config, inputs["input_ids"]))
    if case.get("images"):
        inputs = with_images(case, model.config, ids)
    if model.config.model_type == "whisper":
        inputs = with_sound(case, model.config)
    if "target_seq" in case:
        inputs = with_target(case, model.config, ids)
    if case.get("padded"):
        inputs["attention_mask"] = mask_of(ids)
        if model.config.model_type == "granitemoehybrid":  # a collator of decoders hides the label, too
            inputs["labels"] = torch.where(inputs["attention_mask"] == 0, -100, ids)
    mixed = case["precision"].endswith("-mixed")
    low = torch.float16 if case["precision"] == "fp16-mixed" else torch.bfloat16
    scaler = torch.amp.GradScaler("cpu", enabled=case["precision"] == "fp16-mixed")
    out = []
    for _ in range(STEPS):
        for _ in range(case["accumulation"]):
            with torch.autocast("cpu", dtype=low, enabled=mixed):
                loss = model(**inputs).loss
            scaler.scale(loss).backward()
        if case["clip"]:
            scaler.unscale_(opt)
            torch.nn.utils.clip_grad_norm_(trained, 1.0)
        scaler.step(opt)
        scaler.update()
        opt.zero_grad()
        out.append(loss.item())
    return out


def padding_of(vocabulary):
    """The last token of a row that is in no other place: an embedding's padding_idx, whose gradient PyTorch leaves out"""
    ids = tokens(vocabulary, 3, 37)
    return next(int(last) for last in ids[:, -1] if (ids == last).sum() == 1)


def encoders(classes=()):
    plain = dict(precision="fp32", optimizer="adamw", checkpointing="none", attention="sdpa",
                 accumulation=1, clip=False, batch=3, seq=37)
    for name, hf in FURTHER_ENCODERS.items():
        if classes and name not in classes:
            continue
        hf = dict(hf, architectures=[name])
        if hf["model_type"] != "mpnet":
            yield dict(plain, hf=hf)
        yield dict({**plain, "attention": "eager", "checkpointing": "none" if hf["model_type"] in UNCHECKED else "full"}, hf=hf)


def classifiers():
    """The last token of a row is padding: it is the one before that counts."""
    plain = dict(precision="fp32", optimizer="adamw", checkpointing="none", attention="sdpa",
                 accumulation=1, clip=False, batch=3, seq=37)
    for name, hf in CLASSIFIERS.items():
        hf = dict(hf, architectures=[name], **LABELS)
        padding = padding_of(hf["vocab_size"])
        attention = "eager" if hf["model_type"] == "bloom" else "sdpa"
        # gpt2, gpt_neox and bloom have no padding_idx, and their token is not read: it is taken to be 0
        hf["pad_token_id"] = 0 if hf["model_type"] in ("gpt2", "gpt_neox", "bloom") else padding
        yield dict({**plain, "attention": attention}, hf=hf)
        if hf["model_type"] != "llama":
            continue
        yield dict({**plain, "checkpointing": "full"}, hf=hf)
        yield dict({**plain, "batch": 1, "seq": 20}, hf=dict(hf, pad_token_id=None))
        yield dict(plain, hf=hf, lora=dict(r=4, target_modules=["q_proj"], modules_to_save=["score"]))
        yield dict(plain, hf=hf, lora=dict(r=4, target_modules=["q_proj", "score"]))


def deberta():
    """Distances told by their logarithm, and all of them; scores of both kinds, and of one; projections of the tokens' and of
    their own."""
    plain = dict(precision="fp32", optimizer="adamw", checkpointing="none", attention="eager",
                 accumulation=1, clip=False, batch=3, seq=37)
    classifier = dict(architectures=["DebertaV2ForSequenceClassification"], **LABELS)
    own = dict(DEBERTA, share_att_key=False, norm_rel_ebd="none", position_buckets=-1, max_relative_positions=20)
    for hf in (DEBERTA, dict(DEBERTA, **classifier), own, dict(own, pos_att_type=["c2p"], type_vocab_size=2, position_biased_input=True),
               dict(DEBERTA, pos_att_type="p2c", pooler_hidden_act="relu", **classifier), dict(DEBERTA, relative_attention=False)):
        yield dict(plain, hf=hf)
    # a CPU's autocast leaves softmax and norms in bf16, where CUDA's does not
    for change in (dict(checkpointing="full", accumulation=2), dict(clip=True, optimizer="sgd"),
                   dict(lora=dict(r=4, target_modules=["query_proj", "value_proj"])), dict(padded=True)):
        yield dict({**plain, **change}, hf=DEBERTA)
    yield dict({**plain, "checkpointing": "full", "lora": dict(r=4, target_modules=["query_proj", "key_proj", "dense"])},
               hf=dict(DEBERTA, **classifier))


def seq2seq():
    small = dict(model_type="t5", vocab_size=101, d_model=32, d_kv=8, d_ff=56, num_layers=2, num_heads=4,
                 decoder_start_token_id=0, relative_attention_num_buckets=8, relative_attention_max_distance=20)
    odd = dict(small, num_layers=1, num_decoder_layers=3, feed_forward_proj="gated-gelu", tie_word_embeddings=False,
               num_heads=3, decoder_start_token_id=5, pad_token_id=7)
    plain = dict(precision="fp32", optimizer="adamw", checkpointing="none", attention="sdpa", batch=2, seq=33,
                 target_seq=17, accumulation=1, clip=False)
    full, eager = {"checkpointing": "full"}, {"attention": "eager"}
    for hf in (small, odd, dict(small, model_type="mt5", feed_forward_proj="gated-silu")):
        yield dict(plain, hf=hf)
        yield dict(plain, **eager, hf=hf) | full
        yield dict(plain, hf=hf, padded=True) | full
    yield dict(plain, hf=small, padded=True) | eager
    yield dict(plain, hf=small, lora=dict(r=4, target_modules=["q", "v", "wo"])) | full
    yield dict(plain, hf=odd, seq=16, target_seq=40, accumulation=2, clip=True, optimizer="adamw-fused")
    # in other types CUDA rounds log-probabilities to 16 bits where a CPU does not
    yield from barts()
    yield from speech()


def barts():
    bart = dict(model_type="bart", vocab_size=101, d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
                decoder_attention_heads=4, encoder_ffn_dim=56, decoder_ffn_dim=56, max_position_embeddings=50, pad_token_id=99,
                decoder_start_token_id=100, bos_token_id=99, eos_token_id=99)
    mbart = dict(bart, model_type="mbart", encoder_layers=1, decoder_layers=3, decoder_attention_heads=2, decoder_ffn_dim=41,
                 scale_embedding=True, activation_function="relu", decoder_start_token_id=None)
    plain = dict(precision="fp32", optimizer="adamw", checkpointing="none", attention="sdpa", batch=2, seq=33,
                 target_seq=17, accumulation=1, clip=False)
    for hf in (bart, mbart):
        yield dict(plain, hf=hf)
        yield dict(plain, hf=hf, checkpointing="full", attention="eager", padded=True)
    yield dict(plain, hf=bart, checkpointing="full", lora=dict(r=4, target_modules=["q_proj", "v_proj", "fc1"]))


def speech():
    small = dict(model_type="whisper", vocab_size=101, d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
                 decoder_attention_heads=4, encoder_ffn_dim=56, decoder_ffn_dim=56, num_mel_bins=10, max_source_positions=20,
                 max_target_positions=50, pad_token_id=99, decoder_start_token_id=100, bos_token_id=99, eos_token_id=99)
    odd = dict(small, encoder_layers=1, decoder_layers=3, decoder_attention_heads=2, decoder_ffn_dim=41, num_mel_bins=7,
               max_source_positions=13, activation_function="relu")
    plain = dict(precision="fp32", optimizer="adamw", checkpointing="none", attention="sdpa", batch=2, seq=17, accumulation=1,
                 clip=False)
    full, eager = {"checkpointing": "full"}, {"attention": "eager"}
    for hf in (small, odd):
        yield dict(plain, hf=hf)
        yield dict(plain, **eager, hf=hf, padded=True) | full
    yield dict(plain, hf=small, padded=True, lora=dict(r=4, target_modules=["q_proj", "v_proj", "fc1"]))
    yield dict(plain, hf=odd, seq=40, accumulation=2, clip=True, optimizer="adamw-fused")


GEMMA4 = dict(ROTARY, model_type="gemma4_text", num_key_value_heads=2, head_dim=8, global_head_dim=12, num_global_key_value_heads=1,
              attention_k_eq_v=True, sliding_window=16, hidden_size_per_layer_input=0, final_logit_softcapping=3.0,
              layer_types=["sliding_attention", "full_attention"], rope_parameters=dict(
                  sliding_attention=default_rope(),
                  full_attention=dict(rope_type="proportional", rope_theta=10000.0, partial_rotary_factor=0.25)))


def gemma4():
    """Dense, with experts, and with embeddings for each layer and shared keys and values; adapters of a recomputed forward."""
    plain = dict(precision="fp32", optimizer="adamw", checkpointing="none", attention="sdpa", accumulation=1, clip=False, batch=3, seq=37)
    experts = dict(GEMMA4, enable_moe_block=True, num_experts=6, top_k_experts=2, moe_intermediate_size=24, attention_bias=True)
    small = dict(GEMMA4, attention_k_eq_v=False, hidden_size_per_layer_input=6, vocab_size_per_layer_input=120, num_hidden_layers=5,
                 num_kv_shared_layers=2, use_double_wide_mlp=True, layer_types=GEMMA4["layer_types"] * 2 + ["full_attention"])
    for hf in (GEMMA4, experts, small):
        yield dict(plain, hf=hf)
        yield dict({**plain, "attention": "eager", "checkpointing": "full"}, hf=hf)
        own = ["per_layer_input_gate", "per_layer_model_projection"] if hf is small else ["router.proj"] if hf is experts else []
        yield dict({**plain, "checkpointing": "full"}, hf=hf, lora=dict(r=4, target_modules=["q_proj", "v_proj", "down_proj", *own]))
    vision = dict(model_type="gemma4_vision", num_hidden_layers=2, hidden_size=24, intermediate_size=40, num_attention_heads=3,
                  num_key_value_heads=3, head_dim=8, patch_size=2, pooling_kernel_size=2, position_embedding_size=20)
    audio = dict(model_type="gemma4_audio", num_hidden_layers=1, hidden_size=16, num_attention_heads=2,
                 subsampling_conv_channels=[8, 4], output_proj_dims=20)
    whole = dict(model_type="gemma4", **{f"{kind}_token_id": 99999 + n for n, kind in enumerate(("image", "video", "audio"))})
    pad = unused(GEMMA4["vocab_size"], 2, 41)  # of which PyTorch's embedding learns nothing
    for hf in (dict(whole, text_config=dict(GEMMA4, pad_token_id=pad), vision_config=dict(vision, standardize=True)),
               dict(whole, text_config=dict(small, pad_token_id=pad), vision_config=dict(vision, use_clipped_linears=True), audio_config=audio)):
        # from step 15 on Adam follows gradients that are next to nothing
        bound = dict(bound=3e-4) if "audio_config" in hf else {}
        yield dict({**plain, "batch": 2, "seq": 41}, images=0, **bound, hf=hf)
        yield dict({**plain, "batch": 2, "seq": 41, "attention": "eager", "checkpointing": "full"}, images=0, **bound, hf=hf)


def further(families):
    """By sdpa, and by eager with a recomputed forward."""
    plain = dict(precision="fp32", optimizer="adamw", checkpointing="none", attention="sdpa",
                 accumulation=1, clip=False, batch=3, seq=37)
    for hf in FURTHER:
        if families and hf["model_type"] not in families:
            continue
        if hf["model_type"] in ("gpt_bigcode", "gptj"):
            yield dict({**plain, "attention": "eager" if hf["model_type"] == "gptj" else "sdpa"}, hf=hf)
            yield dict({**plain, "attention": "eager", "checkpointing": "full"}, hf=hf)
            continue
        hf = {"rope_parameters": default_rope(partial_rotary_factor=hf.get("partial_rotary_factor", 0.25)), **hf}
        if hf["model_type"] == "olmo3":
            hf["rope_parameters"] = dict(sliding_attention=default_rope(), full_attention=default_rope())
        yield dict(plain, hf=hf)
        yield dict({**plain, "attention": "eager", "checkpointing": "full"}, hf=hf)
        if hf["model_type"] == "qwen3_5_text":  # chunks of 64
            yield dict({**plain, "batch": 2, "seq": 150}, hf=hf)


def mamba():
    """Rows of one chunk and of several, whole and cut, with groups, biases and experts; masks that hide tokens; adapters."""
    plain = dict(precision="fp32", optimizer="adamw", checkpointing="none", attention="sdpa",
                 accumulation=1, clip=False, batch=3, seq=37)
    hybrid = next(hf for hf in FURTHER if hf["model_type"] == "granitemoehybrid")
    small = dict(hybrid, layer_types=["linear_attention", "full_attention"], position_embedding_type=None,
                 mamba_n_groups=1, mamba_d_state=10, mamba_chunk_size=16, rope_parameters=default_rope())
    odd = dict(small, layer_types=["attention", "mamba"], position_embedding_type="rope", mamba_n_groups=2, mamba_expand=3,
               mamba_n_heads=6, mamba_d_conv=3, mamba_conv_bias=False, mamba_proj_bias=True)
    experts = dict(small, mamba_n_groups=4, intermediate_size=24, num_local_experts=6, num_experts_per_tok=3,
                   mamba_chunk_size=40)
    for hf in (small, odd, experts):
        yield dict(plain, hf=hf)
        yield dict({**plain, "attention": "eager", "checkpointing": "full"}, hf=hf, padded=True)
        yield dict({**plain, "batch": 2, "seq": 48, "clip": True}, hf=hf)
        yield dict({**plain, "checkpointing": "full"}, hf=hf, lora=dict(r=4, target_modules=["q_proj", "in_proj", "out_proj"]))


def of_experts(families):
    """All weights, and adapters with a recomputed forward."""
    plain = dict(precision="fp32", optimizer="adamw", checkpointing="none", accumulation=1, clip=False, batch=3, seq=37)
    for hf in EXPERTS:
        if families and hf["model_type"] not in families:
            continue
        attention = "eager" if hf["model_type"] == "gpt_oss" else "sdpa"
        yield dict({**plain, "attention": attention}, hf=hf)
        yield dict({**plain, "attention": attention, "checkpointing": "full"}, hf=hf, lora=STACKED[EXPERTS.index(hf)])


def cases():
    plain = dict(precision="fp32", optimizer="adamw", checkpointing="none", attention="sdpa",
                 accumulation=1, clip=False, batch=3, seq=37)
    for hf in (GPT2, LLAMA):
        yield dict(plain, hf=hf)
        for change in (dict(precision="bf16-mixed"), dict(attention="eager"),
                       dict(checkpointing="full"), dict(accumulation=3), dict(clip=True),
                       dict(optimizer="adamw-fused"), dict(optimizer="sgd"),
                       dict(optimizer="adafactor"), dict(batch=1, seq=1 + 16),
                       dict(precision="fp16-mixed"), dict(precision="fp16-mixed", clip=True),
                       dict(precision="bf16"), dict(lora=LORA[hf["model_type"]])):
            yield dict({**plain, **change}, hf=hf)
    for hf in FAMILIES:
        attention = "eager" if hf["model_type"] in ("bloom", "gemma2") else "sdpa"
        yield dict({**plain, "attention": attention}, hf=hf)
    for hf in ENCODER_MODELS:
        yield dict(plain, hf=hf)
    row = dict(plain, packing="one-row", documents=4)
    for hf in (GPT2, LLAMA, FAMILIES[1], FAMILIES[8]):
        yield dict(row, hf=hf)
    yield dict({**row, "attention": "eager", "documents": 1}, hf=LLAMA)
    for lora in ADAPTERS:
        yield dict(plain, lora=lora, hf=GPT2 if "wte" in json.dumps(lora) else LLAMA)


def main():
    torch.set_num_threads(1)
    asked = sys.argv[1:]
    kinds = {"speech": speech, "barts": barts, "gemma4": gemma4, "deberta": deberta, "seq2seq": seq2seq, "vision": vision,
             "mamba": mamba, "classifiers": classifiers}
    of_families = {"further": further, "experts": of_experts, "encoders": encoders}
    if asked and asked[0] in of_families:
        made = of_families[asked[0]](asked[1:])
    else:
        made = kinds[asked[0]]() if asked else cases()
    for case in made:
        changed = [case["hf"]["model_type"], case["precision"], case["optimizer"], case["attention"]]
        name = "/".join(changed + [f"b{case['batch']}", f"s{case['seq']}"])
        for key, text in (("checkpointing", "full"), ("clip", True)):
            name += f"/{key}" if case[key] == text else ""
        name += "/classification" if asked[:1] != ["encoders"] and "architectures" in case["hf"] else ""
        name += f"/{case['hf']['architectures'][0]}" if asked[:1] == ["encoders"] else ""
        name += "/lora" if "lora" in case else ""
        name += "-score" if "score" in case.get("lora", {}).get("target_modules", ()) else ""
        if case.get("lora") in ADAPTERS:
            name += f"-{ADAPTERS.index(case['lora']) + 1}"
        name += f"/acc{case['accumulation']}" if case["accumulation"] > 1 else ""
        name += f"/t{case['target_seq']}" if "target_seq" in case else ""
        name += "/" + "".join(case["hf"]["pos_att_type"]) if "pos_att_type" in case["hf"] else ""
        name += "/own" if case["hf"].get("share_att_key") is False else ""
        name += "/plain" if case["hf"].get("relative_attention") is False else ""
        name += "/gated" if case["hf"].get("feed_forward_proj") else ""
        name += f"/groups{case['hf']['mamba_n_groups']}" if "mamba_n_groups" in case["hf"] else ""
        name += "/padded" if case.get("padded") else ""
        name += f"/e{case['hf']['encoder_layers']}" if "encoder_layers" in case["hf"] else ""
        name += f"/i{case['images']}" if "images" in case else ""
        name += f"/row{case['documents']}" if "documents" in case else ""
        name += f"/window{case['hf']['sliding_window']}" if case["hf"].get("sliding_window") else ""
        print(json.dumps(dict(id=name, **case, losses=losses(case))))
        print(name, file=sys.stderr)


if __name__ == "__main__":
    main()
