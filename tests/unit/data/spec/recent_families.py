"""Configurations of the families that came last, for make_hf_defaults.py: each key of their own."""
OWN = {
    'ernie4_5_moe': dict(moe_k=(1, 4), moe_num_experts=(5,), moe_num_shared_experts=(0, 1), moe_layer_start_index=(0, 3),
                         moe_layer_end_index=(-1, 2, 9), moe_layer_interval=(1, 2), use_bias=(None,)),
    'afmoe': dict(num_dense_layers=(0, 2, 9), num_shared_experts=(1, 3), route_scale=(2.5,), mup_enabled=(True,),
                  global_attn_every_n_layers=(1, 2), sliding_window=(None,)),
    'lfm2_moe': dict(num_dense_layers=(0, 1, 9), use_expert_bias=(False,), routed_scaling_factor=(2.5,), tie_embedding=(False,),
                     conv_L_cache=(1, 2), full_attn_idxs=([1],), layer_types=(['conv'] * 4, ['full_attention'] * 4, ['conv', 'full_attention'])),
}


def of_lfm2(put):
    for attending in ([1, 3], [0, 9], [], None):
        yield f'full_attn_idxs={attending}', put(full_attn_idxs=attending)
        yield f'full_attn_idxs={attending}-one-layer', put(full_attn_idxs=attending, num_hidden_layers=1)
    types = ['conv', 'full_attention', 'full_attention', 'conv']
    yield 'layer_types', put(layer_types=types, full_attn_idxs=[0])
    yield 'layer_types-null', put(layer_types=None, full_attn_idxs=[0])
    yield 'layer_types-too-short', put(layer_types=types[:2])
    yield 'all-conv', put(layer_types=['conv'] * 4)
    for width in (96, 100, 256, 1000):
        for more in (dict(), dict(block_multiple_of=7), dict(block_ffn_dim_multiplier=1.3), dict(block_auto_adjust_ff_dim=False)):
            yield f'width-{width}-{more}', put(intermediate_size=width, **more)
    yield 'older-names', put(block_ff_dim=300, tie_embedding=False)
    for tokens in (1, 2, 4):
        yield f'conv_L_cache={tokens}', put(conv_L_cache=tokens)


def variations(family, put):
    if family == 'lfm2':
        yield from of_lfm2(put)
    for key, values in OWN.get(family, {}).items():
        for value in values:
            yield f'{key}={value}', put(**{key: value})
