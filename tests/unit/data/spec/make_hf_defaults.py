#!/usr/bin/env python3
"""Asks transformers what many config.json files mean and writes hf_defaults.tsv beside this file.

    python make_hf_defaults.py [GOLDEN_CONFIGS]      (transformers 5.17, torch; no GPU, no network)

One case a line, tab-separated: name, config.json, and what tests/unit/test_hf_config.c must find in
struct plim_model_config as `member=value ...` (what is not named is as in UNNAMED, or 0), or
`refused` where transformers itself refuses the configuration, or cannot build or run its model.
Values come from the configuration object once the model is built, and from the model where the
configuration does not say what it does.
"""
import glob
import json
import os
import random
import sys
import warnings

os.environ.update(TRANSFORMERS_VERBOSITY='error', HF_HUB_OFFLINE='1')
warnings.filterwarnings('ignore')
import recent_families
import torch
import transformers

transformers.logging.set_verbosity_error()

FAMILIES = ['gpt2', 'llama', 'mistral', 'qwen2', 'qwen3', 'phi3', 'phi', 'gemma2', 'gemma3_text',
            'gpt_neox', 'opt', 'bloom', 'olmo2', 'gemma', 'starcoder2', 'smollm3', 'granite', 'olmo', 'olmo3',
            'stablelm', 'cohere', 'cohere2', 'glm', 'glm4', 'qwen3_5_text', 'qwen3_5_moe_text', 'qwen3_next', 'olmoe',
            'ministral3', 'ministral', 'arcee', 'nemotron', 'exaone4', 'seed_oss', 'ernie4_5',
            'hunyuan_v1_dense', 'lfm2', 'falcon', 'granitemoe', 'gpt_bigcode', 'glm4_moe', 'deepseek_v3', 'glm4_moe_lite',
            'gemma4_text', 'gemma4_unified_text', 'deepseek_v2', 'ernie4_5_moe', 'apertus', 'lfm2_moe', 'minimax_m2', 'afmoe']
GEMMA4 = ('gemma4_text', 'gemma4_unified_text')
PAIRS = ('t5', 'mt5', 'whisper', 'bart', 'mbart')  # an encoder and a decoder
LINEAR = ('qwen3_5_text', 'qwen3_5_moe_text', 'qwen3_next')  # with layers of linear attention
EXPERTS = ('qwen3_5_moe_text', 'qwen3_next', 'olmoe', 'granitemoe', 'glm4_moe', 'deepseek_v2', 'deepseek_v3', 'glm4_moe_lite',
           'ernie4_5_moe', 'lfm2_moe', 'minimax_m2', 'afmoe')
GROUPED = ('glm4_moe', 'deepseek_v2', 'deepseek_v3', 'glm4_moe_lite')  # whose experts stand in groups
LATENT = ('deepseek_v2', 'deepseek_v3', 'glm4_moe_lite')
NO_TOKEN = -2**63
ACTIVATIONS = {'swish': 'silu'}
UNNAMED = dict(pad_token_id=NO_TOKEN, partial_rotary_factor=1.0, rope='default')
SMALL = {  # dimensions that build quickly, by the names of each family
    'gpt2': dict(vocab_size=640, n_positions=96, n_embd=48, n_layer=3, n_head=4),
    'gpt_bigcode': dict(vocab_size=640, n_positions=96, n_embd=48, n_layer=3, n_head=4),
    'opt': dict(vocab_size=640, hidden_size=48, ffn_dim=80, num_hidden_layers=3,
                num_attention_heads=4, max_position_embeddings=96),
    'bloom': dict(vocab_size=640, hidden_size=48, n_layer=3, n_head=4),
}
COMMON = dict(vocab_size=640, hidden_size=64, intermediate_size=96, num_hidden_layers=4,
              num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=96)


def small(family, **more):
    base = dict(SMALL.get(family, COMMON))
    if family in ('phi3', 'smollm3', 'glm', 'glm4'):
        base['pad_token_id'] = 0
    if family == 'gemma3_text':
        base['num_hidden_layers'] = 7  # the sixth is its first with full attention
    if family in EXPERTS:
        experts = 'num_local_experts' if family in ('granitemoe', 'minimax_m2') else 'num_experts'
        if family in GROUPED:
            base.update(n_group=2, topk_group=1)
            experts = 'n_routed_experts'
        base.update({experts: 6}, num_experts_per_tok=3, moe_intermediate_size=32)
        if family == 'ernie4_5_moe':
            base.update(moe_num_experts=base.pop('num_experts'), moe_k=base.pop('num_experts_per_tok'))
    if family in GEMMA4:
        base.update(num_hidden_layers=7, hidden_size_per_layer_input=8, vocab_size_per_layer_input=640, head_dim=16, global_head_dim=24)
    if family in LATENT:
        base.update(num_key_value_heads=4, q_lora_rank=24, kv_lora_rank=20, qk_rope_head_dim=8, qk_nope_head_dim=12, v_head_dim=16)
    if family in ('ministral', 'hunyuan_v1_dense'):
        base['head_dim'] = 16
    base.update(more)
    if family == 'lfm2_moe':  # which has no default of them
        base.setdefault('layer_types', ['full_attention', 'conv', 'conv'][:base['num_hidden_layers']] * (base['num_hidden_layers'] or 1))
        base['layer_types'] = base['layer_types'] and base['layer_types'][:base['num_hidden_layers']]
    return dict(model_type=family, **base)


def module_p(model, *names):
    """The p of the first dropout module of that name, wherever it stands."""
    for name, module in model.named_modules():
        if name.split('.')[-1] in names and isinstance(module, torch.nn.Dropout):
            return float(module.p)
    return 0.0


def experts_of(get):
    shared = get('n_shared_experts', get('moe_num_shared_experts', get('num_shared_experts')))
    top_k = get('topk_method', '')  # which alone looks at groups where there is one
    return dict(experts=get('num_experts', get('num_local_experts', get('n_routed_experts', get('moe_num_experts')))), experts_per_token=get('num_experts_per_tok', get('moe_k')),
                expert_size=get('moe_intermediate_size', get('intermediate_size')), normalized_routing=get('norm_topk_prob'),
                shared_expert_size=get('shared_expert_intermediate_size') or shared * get('moe_intermediate_size'),
                sparse_step=get('decoder_sparse_step', get('moe_layer_interval', 1)), last_sparse=get('moe_layer_end_index'), aux_loss_coef=float(get('router_aux_loss_coef')),
                dense_layers=get('first_k_dense_replace', get('num_dense_layers', get('moe_layer_start_index', 1 if get('mlp_layer_types', None) else 0))), shared_experts=shared, corrects_experts=get('use_expert_bias'),
                routed_scaling=float(get('routed_scaling_factor', get('route_scale'))), scales_embeddings=get('mup_enabled'), expert_groups=0 if top_k == 'greedy' else get('n_group'),
                groups_per_token=0 if top_k == 'greedy' else get('topk_group') or 0, **({'top_k': top_k} if top_k else {}), query_rank=get('q_lora_rank') or 0, key_rank=get('kv_lora_rank'),
                plain_dim=get('qk_nope_head_dim'), value_dim=get('v_head_dim'), rope_pairs=bool(get('rope_interleave')))


def gemma4_of(config, raw):
    """What its __post_init__ and its modules make of layers that see all"""
    full = [n for n, kind in enumerate(config.layer_types) if kind == 'full_attention'][0]
    experts = getattr(config, 'enable_moe_block', None) if config.model_type == 'gemma4_text' else None
    return dict(head_dim=raw.get('head_dim', 256), global_head_dim=config.per_layer_config[full].head_dim, global_kv_heads=config.per_layer_config[full].num_key_value_heads,
                keys_are_values=config.attention_k_eq_v, shared_kv_layers=config.num_kv_shared_layers,
                double_wide=config.use_double_wide_mlp, per_layer_size=getattr(config, 'hidden_size_per_layer_input', 0) if experts is not None else 0,
                per_layer_vocab=config.vocab_size_per_layer_input if experts is not None else 0, experts=config.num_experts if experts else 0,
                experts_per_token=config.top_k_experts if experts else 0, expert_size=config.moe_intermediate_size if experts else 0,
                sparse_step=1 if experts else 0)


def resolved(raw):
    raw = dict(raw)
    family = raw.pop('model_type')
    config = transformers.AutoConfig.for_model(family, **raw)
    tiny = config.vocab_size < 1000 and config.hidden_size < 1000
    with torch.device('cpu' if tiny else 'meta'):
        model = transformers.AutoModelForCausalLM.from_config(config)
    if tiny:  # some configurations are refused by the first forward pass only
        with torch.no_grad():
            model.train()(torch.zeros(1, 8, dtype=torch.long))
    fields = type(config).__dataclass_fields__  # other keys of a config.json become attributes, too
    get = lambda name, default=0: getattr(config, name, default) if name in fields else default
    number = lambda value: 0 if value is None else value
    heads, hidden, layers = config.num_attention_heads, config.hidden_size, config.num_hidden_layers
    rope = get('rope_parameters', None) or {}
    if family in ('gemma3_text', 'olmo3', *GEMMA4):
        rope = rope['full_attention']
    scaled = rope.get('rope_type') in ('longrope', 'yarn', 'llama3')
    pad = config.pad_token_id
    padding = model.get_input_embeddings().padding_idx is not None
    embedding_dropout = {'gpt2': ['drop'], 'gpt_bigcode': ['drop'], 'gpt_neox': ['emb_dropout'], 'phi': ['embed_dropout']}
    residual_dropout = {'starcoder2': 'residual_dropout', 'seed_oss': 'residual_dropout', 'stablelm': 'hidden_dropout', 'gpt2': 'resid_pdrop', 'gpt_bigcode': 'resid_pdrop', 'phi3': 'resid_pdrop', 'phi': 'resid_pdrop',
                        'gpt_neox': 'hidden_dropout', 'falcon': 'hidden_dropout', 'opt': 'dropout', 'bloom': 'hidden_dropout'}
    # bloom has its own function and no key
    activation = get('activation') if family == 'falcon' else get('hidden_act', get('activation_function', get('hidden_activation', 'silu' if family in ('lfm2', 'lfm2_moe') else 'gelu')))
    if family in ('mistral', 'phi3', 'starcoder2', 'ministral3'):
        sliding = [config.sliding_window is not None] * layers
    else:
        sliding = [t == 'sliding_attention' for t in get('layer_types', None) or ['full'] * layers]
    partial = family in (*GEMMA4, 'phi', 'phi3', 'gpt_neox', 'stablelm', 'glm', 'glm4', 'nemotron', 'glm4_moe', 'minimax_m2', *LINEAR)
    linear = [t in ('linear_attention', 'conv') for t in get('layer_types', None) or []]
    mlp_width = model.model.layers[0].feed_forward.w1.out_features if family == 'lfm2' else 0
    takes_head_dim = family not in (*GEMMA4, 'gpt2', 'gpt_bigcode', 'opt', 'bloom', 'gpt_neox', 'stablelm', 'falcon')
    nope = [not turns for turns in get('no_rope_layers', None) or []][:layers]
    if family in ('cohere2', 'afmoe') or (family == 'exaone4' and config.sliding_window is not None):
        nope = [not s for s in sliding]
    residual = residual_dropout.get(family)
    kv_heads = raw.get('num_key_value_heads', 4) if family in GEMMA4 else get('num_key_value_heads', get('num_kv_heads', heads))
    if get('multi_query', False) and not get('new_decoder_architecture', False):
        kv_heads = 1
    return dict(
        family=family, vocab_size=config.vocab_size, hidden_size=hidden,
        intermediate_size=mlp_width or (number(get('intermediate_size', get('ffn_dim', get('ffn_hidden_size', get('n_inner')))))
                           or 4 * hidden),
        width_multiple=get('block_multiple_of'), width_multiplier=float(get('block_ffn_dim_multiplier')),
        layers=layers, heads=heads, kv_heads=kv_heads,
        **({} if family in GEMMA4 else dict(head_dim=(getattr(config, 'head_dim', None) if takes_head_dim else None) or hidden // heads)),
        positions=get('max_position_embeddings', get('n_positions')),
        word_embed_proj_dim=get('word_embed_proj_dim'),
        activation=ACTIVATIONS.get(activation, activation),
        tie_word_embeddings=config.tie_word_embeddings,
        attention_bias=bool(get('attention_bias', get('use_bias', get('use_qkv_bias', get('bias', False))))),
        attention_out_bias=get('attention_out_bias', False),
        mlp_bias=bool(get('mlp_bias', get('use_bias', get('bias', False)))),
        enable_bias=get('enable_bias', False),
        layer_norm_elementwise_affine=get('layer_norm_elementwise_affine', False),
        do_layer_norm_before=get('do_layer_norm_before', False),
        remove_final_layer_norm=get('_remove_final_layer_norm', False),
        parallel_residual=get('use_parallel_residual', get('parallel_attn', False)),
        new_architecture=get('new_decoder_architecture', False), multi_query=get('multi_query', False),
        norms_in_parallel=number(get('num_ln_in_parallel_attn')),
        qk_layernorm=get('use_qk_norm', get('qk_layernorm', False)),
        apply_residual_connection_post_layernorm=get('apply_residual_connection_post_layernorm'),
        scale_attn_weights=get('scale_attn_weights', False),
        scale_attn_by_inverse_layer_idx=get('scale_attn_by_inverse_layer_idx', False),
        reorder_and_upcast_attn=get('reorder_and_upcast_attn', False),
        partial_rotary_factor=rope.get('partial_rotary_factor', 1.0) if partial else 1.0,
        rope=rope.get('rope_type', 'default'),
        rope_original_positions=rope.get('original_max_position_embeddings', 0) if scaled or family == 'ministral3' else 0,
        **{name: number(get(name)) for name in ('embedding_multiplier', 'residual_multiplier', 'attention_multiplier',
                                        'logits_scaling', 'logit_scale')},
        clip_qkv=number(get('clip_qkv')), no_rope_interval=get('no_rope_layer_interval'),
        attn_logit_softcapping=number(get('attn_logit_softcapping')),
        final_logit_softcapping=number(get('final_logit_softcapping')),
        sliding_window=number(get('sliding_window')),
        use_sliding_window=get('use_sliding_window', False),
        max_window_layers=get('max_window_layers'),
        sliding_window_pattern=(config._sliding_window_pattern if family == 'gemma3_text' else
                                raw.get('sliding_window_pattern', 4) if family == 'cohere2' else
                                config.global_attn_every_n_layers if family == 'afmoe' else
                                (not raw.get('layer_types') and raw.get('sliding_window_pattern')) or 4
                                if family == 'exaone4' else 0),
        layer_is_sliding=''.join('01'[s] for s in sliding).rstrip('0') or 0,
        layer_is_nope=''.join('01'[n] for n in nope).rstrip('0') or 0,
        layer_is_linear=''.join('01'[n] for n in linear).rstrip('0') or 0,
        linear_kernel=get('linear_conv_kernel_dim', get('conv_L_cache')), linear_key_heads=get('linear_num_key_heads'),
        linear_value_heads=get('linear_num_value_heads'), linear_key_dim=get('linear_key_head_dim'),
        linear_value_dim=get('linear_value_head_dim'),
        full_interval=raw.get('full_attention_interval', 4) if family in LINEAR else 0,
        **(experts_of(get) if family in EXPERTS else {}), **(gemma4_of(config, raw) if family in GEMMA4 else {}),
        pad_token_id=pad if padding else NO_TOKEN, has_padding_idx=padding,
        dropout_embedding=float(get('embedding_dropout')) or module_p(model, *embedding_dropout.get(family, [])),
        dropout_attention=float(get('attn_pdrop', get('attention_dropout', 0.0))),
        dropout_residual=float(get(residual)) if residual else 0.0,
        layerdrop=float(get('layerdrop')),
        parameters=sum(p.numel() for p in model.parameters()))


def resolved_pair(raw):
    """The same of an encoder and a decoder, whose layers are counted together."""
    raw = dict(raw)
    family = raw.pop('model_type')
    config = transformers.AutoConfig.for_model(family, **raw)
    is_tied = raw.get('tie_word_embeddings', True)  # what published checkpoints have, whatever the class does
    tiny = config.vocab_size < 1000 and config.d_model < 1000
    with torch.device('cpu' if tiny else 'meta'):
        model = transformers.AutoModelForSeq2SeqLM.from_config(config)
    if tiny:
        row = torch.zeros(1, 8, dtype=torch.long)
        model.train()(row, labels=row)
    head = 0 if is_tied else model.lm_head.weight.numel()
    rate = float(config.dropout_rate)
    return dict(
        family=family, task='seq2seq-lm', vocab_size=config.vocab_size, hidden_size=config.d_model,
        intermediate_size=config.d_ff, layers=config.num_layers + config.num_decoder_layers,
        decoder_layers=config.num_decoder_layers, heads=config.num_heads, kv_heads=config.num_heads, head_dim=config.d_kv,
        activation=ACTIVATIONS.get(config.dense_act_fn, config.dense_act_fn), tie_word_embeddings=is_tied,
        relative_buckets=config.relative_attention_num_buckets, relative_distance=config.relative_attention_max_distance,
        feed_forward=config.feed_forward_proj, use_cache=config.use_cache, decoder_start=config.decoder_start_token_id,
        pad_token_id=config.pad_token_id, dropout_embedding=rate, dropout_attention=rate, dropout_residual=rate,
        dropout_mlp=rate, parameters=sum(p.numel() for p in model.parameters()) + head)


def resolved_layered(raw):
    """The same of whisper, bart and mbart, whose stacks have sizes of their own."""
    raw = dict(raw)
    config = transformers.AutoConfig.for_model(raw.pop('model_type'), **raw)
    tiny, hears = config.vocab_size < 1000, config.model_type == 'whisper'
    if not hears and not config.tie_word_embeddings:
        raise ValueError('not in plimsoll')
    with torch.device('cpu' if tiny else 'meta'):
        auto = transformers.AutoModelForSpeechSeq2Seq if hears else transformers.AutoModelForSeq2SeqLM
        model = auto.from_config(config)
    if tiny:
        row = torch.ones(1, 8, dtype=torch.long) * 3
        model.train()(torch.zeros(1, config.num_mel_bins, 2 * config.max_source_positions) if hears else row, labels=row)
    start = config.decoder_start_token_id
    own = dict(positions=config.max_target_positions, source_positions=config.max_source_positions, mel_bins=config.num_mel_bins,
               use_cache=config.use_cache) if hears else dict(positions=config.max_position_embeddings,
                                                              scales_embeddings=config.scale_embedding)
    return dict(
        family=config.model_type, task='seq2seq-lm', vocab_size=config.vocab_size, hidden_size=config.d_model,
        intermediate_size=config.encoder_ffn_dim, decoder_intermediate=config.decoder_ffn_dim,
        layers=config.encoder_layers + config.decoder_layers, decoder_layers=config.decoder_layers,
        heads=config.encoder_attention_heads, kv_heads=config.encoder_attention_heads, decoder_heads=config.decoder_attention_heads,
        head_dim=config.d_model // config.encoder_attention_heads, **own,
        activation=ACTIVATIONS.get(config.activation_function, config.activation_function),
        tie_word_embeddings=config.tie_word_embeddings, decoder_start=NO_TOKEN if start is None else start,
        pad_token_id=config.pad_token_id, has_padding_idx=True, dropout_embedding=float(config.dropout),
        dropout_residual=float(config.dropout), dropout_attention=float(config.attention_dropout),
        dropout_mlp=float(config.activation_dropout), parameters=sum(p.numel() for p in model.parameters()))


def layered_variations(family):
    own = dict(num_mel_bins=10, max_source_positions=20, max_target_positions=30) if family == 'whisper' else dict(
        max_position_embeddings=30)
    base = dict(model_type=family, vocab_size=640, d_model=48, encoder_layers=2, decoder_layers=3, encoder_attention_heads=4,
                decoder_attention_heads=4, encoder_ffn_dim=80, decoder_ffn_dim=60, pad_token_id=5, decoder_start_token_id=6,
                **own)
    yield 'defaults', dict(model_type=family)
    for changed in (
            dict(), dict(encoder_attention_heads=6), dict(decoder_attention_heads=3), dict(decoder_attention_heads=5),
            dict(encoder_attention_heads=5), dict(encoder_layers=1, decoder_layers=1), dict(decoder_layers=5), dict(d_model=51),
            dict(hidden_size=24), dict(num_attention_heads=2), dict(num_hidden_layers=4), dict(activation_function='relu'),
            dict(dropout=0.25), dict(attention_dropout=0.25), dict(activation_dropout=0.25), dict(dropout=0),
            dict(tie_word_embeddings=True), dict(use_cache=False), dict(pad_token_id=639), dict(pad_token_id=640),
            dict(pad_token_id=None), dict(decoder_start_token_id=0), dict(scale_embedding=True),
            *(dict(num_mel_bins=128), dict(max_source_positions=7), dict(max_target_positions=8), dict(max_target_positions=448),
              dict(apply_spec_augment=False))[:5 if family == 'whisper' else 0],
            *(dict(max_position_embeddings=8), dict(decoder_start_token_id=None), dict(tie_word_embeddings=False))[
                3 if family == 'whisper' else 0:],
            dict(encoder_layerdrop=0.0, decoder_layerdrop=0.0)):
        yield ' '.join(f'{key}={value}' for key, value in changed.items()) or 'small', dict(base, **changed)


def pair_variations(family):
    if family in FIND and FIND[family] is resolved_layered:
        yield from layered_variations(family)
        return
    base = dict(model_type=family, vocab_size=640, d_model=48, d_kv=12, d_ff=80, num_layers=2, num_heads=4,
                decoder_start_token_id=0)
    yield 'defaults', dict(model_type=family, decoder_start_token_id=0)
    yield 'no-start', dict(model_type=family, vocab_size=640)
    for changed in (
            dict(num_decoder_layers=5), dict(num_decoder_layers=None), dict(num_layers=1), dict(d_kv=7), dict(num_heads=5),
            dict(feed_forward_proj='relu'), dict(feed_forward_proj='gated-gelu'), dict(feed_forward_proj='gelu'),
            dict(feed_forward_proj='gated-silu'), dict(feed_forward_proj='gated-relu'), dict(feed_forward_proj='gelu_new'),
            dict(feed_forward_proj='gated-gelu_new'), dict(feed_forward_proj='silu'), dict(feed_forward_proj='a-b-c'),
            dict(feed_forward_proj='other-gelu'), dict(tie_word_embeddings=True), dict(tie_word_embeddings=False),
            dict(use_cache=False), dict(dropout_rate=0.0), dict(dropout_rate=0.25), dict(dropout_rate=0),
            dict(relative_attention_num_buckets=16), dict(relative_attention_max_distance=64), dict(pad_token_id=3),
            dict(pad_token_id=640), dict(pad_token_id=None), dict(decoder_start_token_id=None), dict(decoder_start_token_id=7),
            dict(hidden_size=24), dict(num_attention_heads=2), dict(head_dim=9),
            dict(intermediate_size=40), dict(hidden_act='relu'), dict(attention_dropout=0.5)):
        yield ' '.join(f'{key}={value}' for key, value in changed.items()), dict(base, **changed)


def gemma4_variations(family):
    layers = ['sliding_attention', 'full_attention'] * 3 + ['full_attention']
    experts = dict(num_experts=4, top_k_experts=2, moe_intermediate_size=16)
    full, sliding = dict(rope_type='proportional', rope_theta=1e6), dict(rope_type='default', rope_theta=1e4)
    yield 'defaults', dict(model_type=family)
    for more in (dict(global_head_dim=8), dict(global_head_dim=9), dict(head_dim=9), dict(attention_k_eq_v=True),
                 dict(attention_k_eq_v=True, num_global_key_value_heads=1), dict(num_global_key_value_heads=1),
                 dict(attention_k_eq_v=True, num_global_key_value_heads=3), dict(num_kv_shared_layers=1),
                 dict(num_kv_shared_layers=3, use_double_wide_mlp=True, layer_types=layers), dict(num_kv_shared_layers=7),
                 dict(num_kv_shared_layers=2, layer_types=layers[:2]), dict(layer_types=['sliding_attention'] * 7),
                 dict(hidden_size_per_layer_input=0), dict(enable_moe_block=True), dict(enable_moe_block=True, **experts), dict(experts),
                 dict(pad_token_id=None, tie_word_embeddings=False, attention_bias=True, final_logit_softcapping=15.5),
                 dict(use_bidirectional_attention='vision', rope_scaling=dict(rope_type='linear', factor=2.0)),
                 dict(rope_parameters=dict(full_attention=dict(full, partial_rotary_factor=0.5), sliding_attention=sliding)),
                 dict(rope_parameters=dict(full_attention=full, sliding_attention=sliding))):
        yield ' '.join(f'{key}={value}' for key, value in more.items()), small(family, **more)


def variations(family):
    """Names and configurations; keys that a family does not have must be ignored, too."""
    def put(**more):
        return small(family, **more)

    if family in GEMMA4:
        yield from gemma4_variations(family)
        return
    letters = family in ('gpt2', 'bloom', 'gpt_bigcode')  # n_layer rather than num_hidden_layers
    yield 'defaults', dict(model_type=family)
    for key in ('tie_word_embeddings',):
        for value in (True, False):
            yield f'{key}={value}', put(**{key: value})
    for pad in (None, 0, 5, -1, 639, 640):
        yield f'pad_token_id={pad}', put(pad_token_id=pad)
    phi3_pad = dict(pad_token_id=32000) if family == 'phi3' else {}
    yield 'vocab-below-default-pad', put(vocab_size=777, **phi3_pad)
    yield 'one-layer', put(**{'n_layer' if letters else 'num_hidden_layers': 1})
    for key in ('hidden_act', 'activation_function', 'hidden_activation'):
        yield f'{key}=relu', put(**{key: 'relu'})
    acts = ('gelu', 'gelu_new', 'gelu_pytorch_tanh', 'silu', 'swish')
    for act in acts if family in ('gpt2', 'llama') else ():
        yield f'act={act}', put(hidden_act=act, activation_function=act)
    # names of other families: taken as aliases by some, ignored by the rest
    others = dict(n_embd=32, n_layer=2, n_head=8, n_positions=48, n_inner=40, n_embed=32,
                  hidden_size=32, num_hidden_layers=2, num_attention_heads=8,
                  max_position_embeddings=48, ffn_dim=40, intermediate_size=40,
                  word_embed_proj_dim=24, num_key_value_heads=4, head_dim=32)
    for key, value in others.items():
        yield f'{key}={value}', put(**{key: value})
    for key in ('n_inner', 'num_key_value_heads', 'head_dim', 'word_embed_proj_dim', 'n_embed',
                'hidden_size', 'sliding_window', 'vocab_size', 'layer_types',
                'attn_logit_softcapping', 'final_logit_softcapping', 'rope_parameters',
                'rope_scaling', 'num_hidden_layers'):
        yield f'{key}=null', put(**{key: None})
    base = put()
    base.pop('num_key_value_heads', None)
    if family not in ('qwen2', 'qwen3', 'mistral', 'gemma', 'starcoder2', 'stablelm', 'glm', 'glm4', *LINEAR,
                      'ministral3', 'ministral', 'exaone4', 'seed_oss', 'lfm2', 'lfm2_moe', 'minimax_m2'):  # their defaults do not divide 4 heads
        yield 'without-kv-heads', base
    wide = {} if letters else dict(num_attention_heads=32, hidden_size=256)
    yield 'without-kv-heads-32', dict(base, **wide)
    for key in ('attention_bias', 'mlp_bias', 'enable_bias', 'layer_norm_elementwise_affine',
                'do_layer_norm_before', '_remove_final_layer_norm', 'use_parallel_residual',
                'qk_layernorm', 'scale_attn_weights', 'apply_residual_connection_post_layernorm',
                'scale_attn_by_inverse_layer_idx', 'reorder_and_upcast_attn'):
        for value in (True, False):
            if (family, key, value) != ('stablelm', 'qk_layernorm', True):  # not in plimsoll
                yield f'{key}={value}', put(**{key: value})
    for key in ('attn_pdrop', 'embd_pdrop', 'resid_pdrop', 'attention_dropout', 'hidden_dropout',
                'dropout', 'layerdrop'):
        for value in (0, 0.25):
            yield f'{key}={value}', put(**{key: value})
    for window in (None, 16, 4096):
        yield f'sliding_window={window}', put(sliding_window=window)
        for use in (True, False) if family in ('qwen2', 'qwen3', 'smollm3') else ():
            for first in (0, 2, 4, 28):
                yield f'window-{window}-{use}-{first}', put(
                    sliding_window=window, use_sliding_window=use, max_window_layers=first)
    yield 'default-window', put(use_sliding_window=True, max_window_layers=1)
    for pattern in (1, 2, 3, 6, 100) if family in ('gemma3_text', 'cohere2', 'exaone4') else (2,):
        deep = {} if letters else dict(num_hidden_layers=13)
        yield f'sliding_window_pattern={pattern}', put(sliding_window_pattern=pattern, **deep)
    for layers in ([1, 0, 0, 1], [0, 1, 1, 0, 1], [0], None) if family == 'smollm3' else ():
        yield f'no_rope_layers={layers}', put(no_rope_layers=layers)
        yield f'no_rope_layers={layers}-window', put(
            no_rope_layers=layers, use_sliding_window=True, sliding_window=32, no_rope_layer_interval=3)
    for key in ('embedding_multiplier', 'residual_multiplier', 'attention_multiplier', 'logits_scaling', 'logit_scale',
                'clip_qkv', 'no_rope_layer_interval'):
        if family in ('granite', 'granitemoe', 'olmo', 'olmoe', 'cohere', 'cohere2', 'smollm3'):
            value = 2 if family in ('granite', 'granitemoe') or key == 'no_rope_layer_interval' else 2.5  # a strict float
            yield f'{key}={value}', put(**{key: value})
            yield f'{key}=null', put(**{key: None})
    for key in ('use_bias', 'use_qkv_bias', 'use_qk_norm') if family in (
            'starcoder2', 'stablelm', 'cohere', 'ernie4_5', 'ernie4_5_moe') else ():
        yield f'{key}=True', put(**{key: True})
        yield f'{key}=False', put(**{key: False})
    for key in ('residual_dropout', 'embedding_dropout') if family in ('starcoder2', 'seed_oss') else ():
        yield f'{key}=0.25', put(**{key: 0.25})
    if family == 'seed_oss':
        yield 'attention_out_bias', put(attention_out_bias=True)
    if family == 'ernie4_5':
        yield 'use_bias=null', put(use_bias=None)
    yield from recent_families.variations(family, put)
    if family == 'ministral3':
        for rope in ('default', 'yarn', 'linear'):
            yield f'rope-scaled-queries-{rope}', put(rope_parameters=dict(
                rope_type=rope, rope_theta=1e4, factor=2.0, llama_4_scaling_beta=0.1, original_max_position_embeddings=32))
        yield 'rope-without-positions', put(rope_parameters=dict(
            rope_type='default', rope_theta=1e4, llama_4_scaling_beta=0.1))
    if family == 'hunyuan_v1_dense':
        yield 'rope-alpha', put(rope_scaling=dict(type='dynamic', alpha=1000.0, factor=1.0))
    if family == 'exaone4':
        layers = ['sliding_attention', 'full_attention'] * 2
        for pattern in ('LLLG', None, 0, 2):
            yield f'pattern={pattern}', put(sliding_window_pattern=pattern)
            yield f'pattern={pattern}-layer_types', put(sliding_window_pattern=pattern, layer_types=layers)
        yield 'all-full', put(sliding_window=None, sliding_window_pattern=None, layer_types=['full_attention'] * 4)
    if family in ('qwen2', 'qwen3', 'gemma2', 'gemma3_text', 'smollm3', 'olmo3', 'cohere2', 'ministral', 'exaone4', 'afmoe'):
        types = ['sliding_attention', 'full_attention', 'full_attention', 'sliding_attention']
        yield 'layer_types', put(
            num_hidden_layers=4, layer_types=types, use_sliding_window=True, sliding_window=32)
        yield 'layer_types-too-short', put(num_hidden_layers=4, layer_types=types[:2])
    if family in LINEAR:
        for key in ('linear_conv_kernel_dim', 'linear_key_head_dim', 'linear_value_head_dim', 'linear_num_key_heads',
                    'full_attention_interval'):
            for value in (1, 2, 8):
                yield f'{key}={value}', put(**{key: value})
        for value in (16, 24, 48):
            yield f'linear_num_value_heads={value}', put(linear_num_value_heads=value)
        types = ['linear_attention', 'full_attention', 'full_attention', 'linear_attention']
        yield 'linear-layers', put(layer_types=types)
        yield 'linear-layers-too-short', put(layer_types=types[:2])
        yield 'all-full', put(layer_types=['full_attention'] * 4)
    if family == 'falcon':
        for new in (True, False):
            for queries in (True, False):
                for heads in (None, 1, 2, 4):
                    yield f'heads-{new}-{queries}-{heads}', put(
                        new_decoder_architecture=new, multi_query=queries, num_kv_heads=heads)
            for parallel in (True, False):
                for norms in (None, 1, 2):
                    yield f'norms-{new}-{parallel}-{norms}', put(
                        new_decoder_architecture=new, parallel_attn=parallel, num_ln_in_parallel_attn=norms)
        for size in (None, 40):
            yield f'ffn_hidden_size={size}', put(ffn_hidden_size=size)
        for value in (True, False):
            yield f'bias={value}', put(bias=value)
        yield 'activation=relu', put(activation='relu')
    for key in ('num_experts', 'num_local_experts', 'num_experts_per_tok', 'moe_intermediate_size',
                'shared_expert_intermediate_size') if family in EXPERTS else ():
        yield f'{key}=4', put(**{key: 4})
    for key, value in (('n_group', 1), ('n_group', 3), ('n_group', 6), ('n_group', 4), ('topk_group', 2), ('topk_group', 3),
                       ('first_k_dense_replace', 0), ('first_k_dense_replace', 2), ('first_k_dense_replace', 9),
                       ('n_shared_experts', 3), ('routed_scaling_factor', 1.5), ('use_qk_norm', True), ('num_mtp_layers', 0),
                       ('n_routed_experts', 10)) if family in GROUPED else ():
        yield f'{key}={value}', put(**{key: value})
    for key, value in (('q_lora_rank', None), ('q_lora_rank', 9), ('kv_lora_rank', 7), ('qk_rope_head_dim', 5), ('qk_rope_head_dim', 4),
                       ('qk_nope_head_dim', 3), ('v_head_dim', 5), ('rope_interleave', False)) if family in LATENT else ():
        yield f'{key}={value}', put(**{key: value})
    if family == 'deepseek_v2':
        for groups in (None, 1, 2, 3, 6):
            for best in (None, 1, 2):
                yield f'groups-{groups}-{best}', put(topk_method='group_limited_greedy', n_group=groups, topk_group=best)
        yield 'topk_method=noaux_tc', put(topk_method='noaux_tc')
        yield 'num_experts_per_tok=null', put(num_experts_per_tok=None)
    for coef in (0.0, 0.05) if family in EXPERTS else ():
        yield f'router_aux_loss_coef={coef}', put(router_aux_loss_coef=coef)
        yield f'norm_topk_prob={coef > 0}', put(norm_topk_prob=coef > 0)
    yield 'softcaps', put(attn_logit_softcapping=20.0, final_logit_softcapping=15.5)
    # rotary embeddings, old names and new ones
    if family == 'gpt_bigcode':
        for value in (True, False):
            yield f'multi_query={value}', put(multi_query=value)
    if family in ('gpt2', 'opt', 'bloom', 'gpt_bigcode'):
        return
    half = {'gemma': 128, 'stablelm': 2, 'glm': 32, 'glm4': 32, 'qwen3': 64, 'gemma2': 128, 'gemma3_text': 128, 'phi': 4, 'gpt_neox': 2,
            'qwen3_5_text': 32, 'qwen3_5_moe_text': 32, 'qwen3_next': 32, 'ministral3': 64, 'nemotron': 4, 'seed_oss': 64,
            'ernie4_5': 64, 'minimax_m2': 64, 'afmoe': 64}.get(family, 8)
    longrope = dict(short_factor=[1.0] * half, long_factor=[2.0] * half)
    yield 'rope-linear-old', put(rope_scaling=dict(type='linear', factor=2.0))
    yield 'rope-linear', put(rope_scaling=dict(rope_type='linear', factor=2.0))
    yield 'rope-dynamic', put(rope_scaling=dict(rope_type='dynamic', factor=2.0))
    lists = dict(short_factor=[1.0] * 8, long_factor=[1.0] * 8) if family == 'phi3' else {}
    yield 'rope-yarn', put(rope_scaling=dict(rope_type='yarn', factor=2.0, **lists))
    if family != 'phi3':
        yield 'rope-yarn-original', put(rope_scaling=dict(
            rope_type='yarn', factor=2.0, original_max_position_embeddings=48))
    yield 'rope-longrope', put(rope_scaling=dict(rope_type='longrope', factor=2.0, **longrope))
    yield 'rope-longrope-original', put(rope_scaling=dict(
        rope_type='longrope', factor=2.0, original_max_position_embeddings=48, **longrope))
    yield 'rope-longrope-key', put(original_max_position_embeddings=40, rope_scaling=dict(
        rope_type='longrope', factor=2.0, **longrope))
    yield 'rope-llama3', put(rope_theta=500000.0, rope_scaling=dict(
        rope_type='llama3', factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
        original_max_position_embeddings=48))
    yield 'rope-unknown', put(rope_scaling=dict(rope_type='spiral', factor=8.0))
    yield 'rope-new', put(rope_parameters=dict(rope_type='linear', factor=2.0, rope_theta=1e6))
    yield 'rope-empty', put(rope_parameters={})
    yield 'rope-both', put(
        rope_parameters=dict(rope_type='dynamic', factor=3.0, rope_theta=1e4),
        rope_scaling=dict(rope_type='linear', factor=2.0))
    yield 'rope-theta', put(rope_theta=1e6)
    if family in ('phi', 'phi3', 'gpt_neox', 'stablelm', 'glm', 'glm4', 'nemotron', 'glm4_moe', 'minimax_m2', *LINEAR):
        yield 'partial', put(partial_rotary_factor=0.25)
        yield 'partial-inside', put(partial_rotary_factor=0.25, rope_parameters=dict(
            rope_type='default', rope_theta=1e4, partial_rotary_factor=0.75))
        yield 'rotary_pct', put(rotary_pct=1.0)
        yield 'rotary_pct-and-partial', put(rotary_pct=1.0, partial_rotary_factor=0.5)
    if family in ('gemma3_text', 'olmo3'):
        yield 'rope-nested', put(rope_parameters=dict(
            full_attention=dict(rope_type='linear', factor=8.0, rope_theta=1e6),
            sliding_attention=dict(rope_type='default', rope_theta=1e4)))


def random_cases(family):
    for n in range(6):  # everything at once
        rng = random.Random(f'{family}{n}')
        heads = rng.choice([1, 2, 4, 6])
        width = heads * rng.choice([8, 10, 12])
        more = dict(hidden_size=width, num_attention_heads=heads,
                    num_hidden_layers=rng.randint(1, 9), vocab_size=rng.randint(40, 900),
                    intermediate_size=rng.randint(1, 200), ffn_dim=rng.randint(1, 200),
                    tie_word_embeddings=rng.random() < .5, pad_token_id=rng.choice([None, 1, 30]))
        if family in ('qwen2', 'qwen3', 'mistral', 'gemma2', 'gemma3_text') or rng.random() < .5:
            groups = [k for k in (1, 2, 3, heads) if heads % k == 0]
            more['num_key_value_heads'] = rng.choice(groups)
        if rng.random() < .4:
            more['head_dim'] = rng.choice([6, 16, 34])
        raw = small(family, **more)
        for own in ('n_layer', 'n_head', 'n_embd'):
            raw.pop(own, None)
        yield f'random-{n}', raw


def cases(golden):
    for path in sorted(glob.glob(os.path.join(golden, '*.json'))):
        with open(path) as file:
            raw = json.load(file)
        if raw['model_type'] in (*FAMILIES, *PAIRS):
            yield os.path.basename(path), raw
    for family in FAMILIES:
        for name, raw in [*variations(family), *(random_cases(family) if family not in GEMMA4 else ())]:
            if family in ('falcon', *LATENT) and 'head_dim' in raw:
                continue  # a property of the class, or what it makes of others: another one fails
            yield f'{family}/{name}', raw
    for family in PAIRS:
        for name, raw in pair_variations(family):
            yield f'{family}/{name}', raw


def text(value):
    if isinstance(value, float):
        return repr(value)
    return str(int(value) if isinstance(value, bool) else value)


FIND = {'t5': resolved_pair, 'mt5': resolved_pair, **dict.fromkeys(('whisper', 'bart', 'mbart'), resolved_layered)}


def main():
    golden = sys.argv[1] if len(sys.argv) > 1 else 'tests/golden/configs'
    refused, seen, lines = 0, set(), []
    for name, raw in cases(golden):
        line = json.dumps(raw)
        if line in seen:
            continue
        seen.add(line)
        try:
            find = FIND.get(raw['model_type'], resolved)
            values = find(json.loads(line)).items()
            named = [pair for pair in values if pair[1] != UNNAMED.get(pair[0], 0)]
            want = ' '.join(f'{key}={text(value)}' for key, value in named)
        except Exception as error:  # any refusal counts, whatever its type
            print(f'{name}: {type(error).__name__}: {" ".join(str(error).split())[:150]}')
            want, refused = 'refused', refused + 1
        lines.append(f'{name}\t{line}\t{want}\n')
    folder = os.path.dirname(os.path.abspath(__file__))
    with open(os.path.join(folder, 'hf_defaults.tsv'), 'w') as file:
        file.write(f'# transformers {transformers.__version__}; written by make_hf_defaults.py\n')
        file.writelines(lines)
    print(f'{len(lines)} cases, {refused} of them refused')


main()
