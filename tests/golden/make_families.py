"""What training allocates of decoders of further families, case by case, on plimsoll's virtual GPU: writes the cases, and
joins them with the figures.

    python make_families.py [FAMILY ...] > families_cases.jsonl
    export PYTHONPATH=flash2                             the stand-in for the package flash-attn (make_flash2.py)
    plimsoll exec --device sim:GPU,placement=ascending --observe -- VENV/bin/python ../virtual/programs/golden.py \\
        families_cases.jsonl ID [ID ...]                 and with torchrun as make_trl.py says
    python make_families.py --join FIGURES > families.jsonl      FIGURES: those lines

VENV as of make_trl.py. The fields are those of more.jsonl, trainer.jsonl and trl.jsonl. Each family has a small odd model, and
another that turns round what the first leaves at its default. olmo3 makes the positions of its
kinds of layers in the order of a Python set: PYTHONHASHSEED=0 has those of full attention first.
"""
import json
import sys

import make_trl

MIXED, FULL = {'precision': 'bf16-mixed', 'optimizer': 'adamw-fused'}, {'checkpointing': 'full'}
GATED = ['gate_proj', 'up_proj', 'down_proj']
UNGATED = GATED[1:]
ATTENTION = ['q_proj', 'k_proj', 'v_proj', 'o_proj']
QUERIES = ['q_proj', 'v_proj']
LATENT = ['kv_b_proj', 'q_a_proj', 'q_b_proj', 'q_proj', 'kv_a_proj_with_mqa', 'o_proj']
LINEAR = ['in_proj_qkv', 'in_proj_z', 'in_proj_b', 'in_proj_a', 'out_proj']
FAMILIES = {  # what peft adapts where nothing is said (or a usual choice, where it has none), all linears
    'gemma': (QUERIES, ATTENTION + GATED),
    'starcoder2': (QUERIES, [*ATTENTION, 'c_fc', 'c_proj']),
    'smollm3': (QUERIES, ATTENTION + GATED),
    'granite': (QUERIES, ATTENTION + GATED),
    'olmo': (QUERIES, ATTENTION + GATED),
    'olmo3': (QUERIES, ATTENTION + GATED),
    'stablelm': (QUERIES, ATTENTION + GATED),
    'cohere': (QUERIES, ATTENTION + GATED),
    'cohere2': (QUERIES, ATTENTION + GATED),
    'glm': (QUERIES, [*ATTENTION, 'gate_up_proj', 'down_proj']),
    'glm4': (QUERIES, [*ATTENTION, 'gate_up_proj', 'down_proj']),
    'qwen3-5': (QUERIES, [*ATTENTION, *GATED, *LINEAR]),
    'qwen3-5-moe': (QUERIES, [*ATTENTION, *GATED, *LINEAR, 'shared_expert_gate']),
    'olmoe': (QUERIES, ATTENTION),
    'qwen3-next': (QUERIES, [*ATTENTION, 'in_proj_qkvz', 'in_proj_ba', 'out_proj', 'shared_expert_gate']),
    'ministral3': (QUERIES, ATTENTION + GATED),
    'ministral': (QUERIES, ATTENTION + GATED),
    'arcee': (QUERIES, ATTENTION + UNGATED),
    'nemotron': (QUERIES, ATTENTION + UNGATED),
    'exaone4': (QUERIES, ATTENTION + GATED),
    'seed-oss': (QUERIES, ATTENTION + GATED),
    'ernie4-5': (QUERIES, ATTENTION + GATED),
    'hunyuan': (QUERIES, ATTENTION + GATED),
    'lfm2': (QUERIES, [*ATTENTION[:3], 'in_proj', 'out_proj', 'w1', 'w3', 'w2']),
    'falcon': (['query_key_value'], ['query_key_value', 'dense', 'dense_h_to_4h', 'dense_4h_to_h']),
    'granitemoe': (QUERIES, ATTENTION),
    'bigcode': (['c_attn'], ['c_attn', 'c_proj', 'c_fc']),
    'glm4-moe': (QUERIES, ATTENTION),
    'deepseek-v2': (LATENT[:1], LATENT),
    'deepseek-v3': (LATENT[:1], LATENT),
    'glm4-moe-lite': (LATENT[:1], LATENT),
}
FEWER = ('ernie4-5', 'hunyuan', 'falcon', 'granitemoe', 'bigcode', 'glm4-moe', 'deepseek-v2', 'deepseek-v3',
         'glm4-moe-lite')  # runs
MULTIMODAL = {'qwen3-5': 'Qwen3_5DecoderLayer', 'qwen3-5-moe': 'Qwen3_5MoeDecoderLayer'}
EXPERTS = ('qwen3-5-moe', 'olmoe', 'qwen3-next', 'granitemoe', 'glm4-moe', 'deepseek-v2', 'deepseek-v3', 'glm4-moe-lite')
LATENTS = ('deepseek-v2', 'deepseek-v3', 'glm4-moe-lite')
SLIDING = ('starcoder2', 'smollm3', 'olmo3', 'cohere2', 'ministral3', 'ministral')


def lora(rank, targets, **more):
    return {'lora': {'r': rank, 'target_modules': targets, **more}}


def name_of(case):
    name = make_trl.name_of(case)
    return '/'.join([name, *(mark for mark in ('packed', 'clip') if case.get(mark)),
                     *([f'd{case["documents"]}'] if 'documents' in case else [])])


def case(config, batch, seq, **more):
    made = {'kind': 'lm', 'config': f'configs/{config}.json', 'precision': 'fp32', 'optimizer': 'adamw',
            'checkpointing': 'none', 'attention': 'sdpa', 'compute_capability': 80, 'batch': batch, 'seq': seq,
            'made_on': 'gpu', 'loop': 'plain', **more}
    if made['loop'] != 'plain':
        made = {**made, 'made_on': more.get('made_on', 'host'), 'clip': 1.0}
    return {'id': name_of(made), **made}


def cases_of(family):
    few, every = FAMILIES[family]
    first, second = f'x-{family}', f'x-{family}-odd'
    eager = {'attention': 'eager'}
    yield case(first, 2, 65)
    yield case(second, 2, 65)
    for config in (first,) if family in FEWER else (first, second):
        yield case(config, 2, 257, **MIXED, **FULL)
        yield case(config, 2, 33, **eager, precision='fp16-mixed')
        yield case(config, 2, 128, **MIXED, packed=True)
    yield case(first, 3, 128, **MIXED, made_on='host', accumulation=2, clip=True)
    yield case(first, 2, 96, **MIXED, **FULL, weights='bf16', made_on='host', **lora(8, few))
    if family not in FEWER:
        yield case(second, 1, 200, precision='bf16', optimizer='sgd', compute_capability=90)
        yield case(first, 3, 96, precision='bf16', optimizer='adafactor', **FULL, **eager)
        yield case(first, 2, 64, precision='fp16', optimizer='adamw-8bit', compute_capability=75)
        yield case(first, 2, 100, **eager, packed=True, compute_capability=90)
    yield case(second, 3, 64, **MIXED, padded=True)
    yield case(second, 2, 128, precision='fp32', **lora(8, every, dropout=0.1))
    if family == 'glm4-moe-lite':  # values as wide as keys, which PyTorch's flash kernel takes
        yield case(first, 2, 64, **MIXED, **FULL, compute_capability=90)
        yield case(second, 2, 64, precision='bf16', made_on='host', optimizer='sgd')
    elif family in LATENTS:  # whose heads flash-attention-2 does not take; heads as published, on two GPUs' kernels
        yield case(f'x-{family}-wide', 2, 128, **MIXED)
        yield case(f'x-{family}-wide', 2, 77, **MIXED, **FULL, compute_capability=90)
        yield case(f'x-{family}-wide', 3, 64, **MIXED, padded=True, compute_capability=90)
        yield case(f'x-{family}-wide', 2, 256, **MIXED, **eager)
        yield case(second, 2, 33, **eager, precision='bf16', made_on='host')
        yield case(second, 2, 64, precision='bf16', made_on='host', optimizer='sgd')
    else:
        yield case(first, 2, 64, **MIXED, weights='bf16', attention='flash_attention_2')
        yield case(second, 2, 100, precision='bf16', **FULL, attention='flash_attention_2', packing='one-row', documents=2)
    yield case(first, 2, 65, **MIXED, loop='trainer', accumulation=2)
    yield case(second, 2, 64, **MIXED, **FULL, weights='bf16', loop='trainer', **lora(8, few),
               quantization={'type': 'nf4', 'double': True, 'compute': 'bf16'})
    yield case(second, 2, 64, **MIXED, loop='trainer', world=2, sharding='ddp', accumulation=2)
    fails = family.startswith(('olmo', 'ernie'))  # a block is recomputed from other types
    checkpointed = {} if fails else FULL
    if family in MULTIMODAL:  # accelerate looks for their vision models' blocks, too, unless it is told
        checkpointed = {**FULL, 'fsdp_config': {'transformer_layer_cls_to_wrap': [MULTIMODAL[family]]}}
    yield case(first, 2, 64, **MIXED, loop='trainer', world=2, sharding='fsdp', weights='bf16', **checkpointed)
    if list(FAMILIES).index(family) % 2 and family not in EXPERTS:
        yield case(first, 2, 64, **MIXED, loop='trainer', world=2, sharding='zero2', accumulation=2)
    else:  # without biases, where weights are cut in another order (KNOWN.md)
        yield case(first if family == 'olmo' else second, 2, 64, **MIXED, **FULL, loop='trainer', world=2,
                   sharding='zero3')
    if family in EXPERTS:
        yield from of_experts(family)
    if family == 'qwen3-5':  # and ZeRO 3; padded rows, whose mask layers of linear attention see; and more chunks
        yield case(second, 2, 64, **MIXED, **FULL, loop='trainer', world=2, sharding='zero3')
        yield case(first, 3, 64, **MIXED, loop='trainer', padded=True)
        yield case(second, 1, 500, precision='fp16-mixed', optimizer='adamw', **FULL, compute_capability=86)
        yield case(first, 2, 64, **MIXED, weights='bf16', loop='trl-sft', **lora(8, every))
    if family == 'falcon':  # as falcon-rw is made, but for alibi; and groups of one query, with one norm
        for config in ('x-falcon-rows', 'x-falcon-one'):
            yield case(config, 2, 65, **MIXED, **FULL)
            yield case(config, 2, 33, **eager, precision='bf16')
        yield case(second, 2, 33, **eager, precision='fp16-mixed')
        yield case(first, 2, 64, **MIXED, loop='trainer', world=2, sharding='zero2', accumulation=2)
        yield case('x-falcon-rows', 2, 64, **MIXED, weights='bf16', attention='flash_attention_2')
        yield case('x-falcon-rows', 3, 64, **MIXED, loop='trainer', padded=True)
    if family == 'bigcode':  # whose buffer is as large as its longest row squared
        yield case(second, 2, 33, **eager, precision='fp16-mixed')
        yield case(first, 2, 64, **MIXED, loop='trainer', world=2, sharding='ddp')
        yield case(first, 2, 64, **MIXED, weights='bf16', loop='trainer', made_on='loaded')
        yield case(first, 2, 64, **MIXED, loop='trainer', world=2, sharding='zero2', accumulation=2)
    if family == 'lfm2':  # and ZeRO 3; padded rows, which convolutions see
        yield case(first, 2, 64, **MIXED, loop='trainer', world=2, sharding='zero3')
        yield case(second, 2, 64, **MIXED, **FULL, loop='trainer', world=2, sharding='zero3')
        yield case(first, 3, 64, **MIXED, loop='trainer', padded=True)
        yield case(first, 2, 64, **MIXED, **FULL, weights='bf16', loop='trainer', world=2, sharding='ddp', **lora(8, few),
                   quantization={'type': 'nf4', 'double': True, 'compute': 'bf16'})
        yield case(second, 2, 64, **MIXED, weights='bf16', loop='trl-sft', **lora(8, 'all-linear'))
    yield case(first, 2, 64, **MIXED, loop='trl-sft')
    if family == 'nemotron':  # wide heads, whose turning is what an evaluation holds most at
        yield case('x-nemotron-heads', 1, 64, **MIXED, loop='trainer', evaluation={'batch': 16})
    if family == 'seed-oss':  # whose dropouts are no modules, so that DPOTrainer does not find them
        yield case(first, 2, 64, **MIXED, loop='trl-dpo')
    if family in SLIDING:  # an evaluation's peak has the masks in it
        yield case(second, 2, 500, **MIXED, **eager, loop='trainer', evaluation={'batch': 5})


def of_gptj():
    """A family that attends by its own products alone"""
    every = ['k_proj', 'v_proj', 'q_proj', 'out_proj', 'fc_in', 'fc_out']
    first, second, eager, trainer = 'x-gptj', 'x-gptj-odd', {'attention': 'eager'}, {'loop': 'trainer'}
    for config in (first, second):
        yield case(config, 2, 65, **eager)
        yield case(config, 2, 129, **MIXED, **FULL, **eager)
        yield case(config, 3, 64, **MIXED, **eager, padded=True)
        yield case(config, 2, 96, precision='bf16', **eager, optimizer='sgd', accumulation=2)
        yield case(config, 2, 65, **MIXED, **trainer, **eager, accumulation=2)
        yield case(config, 2, 64, kind='classify', **MIXED, **eager, labels=5)
    yield case(first, 2, 33, **eager, precision='fp16-mixed', compute_capability=75)
    yield case(second, 1, 100, **eager, precision='bf16', **FULL, compute_capability=90)
    yield case(first, 3, 64, **MIXED, **eager, made_on='host', clip=True)
    yield case(second, 2, 64, **eager, precision='fp16', **FULL)
    yield case(second, 2, 64, **eager, **lora(8, every, dropout=0.1))
    yield case(first, 2, 64, **MIXED, **FULL, **trainer, **eager, weights='bf16', **lora(8, QUERIES))
    yield case(second, 2, 64, **MIXED, **trainer, **eager, world=2, sharding='ddp', accumulation=2)
    yield case(first, 3, 64, **trainer, **eager, padded=True, **FULL)
    yield case(first, 2, 64, **MIXED, **trainer, **eager, evaluation={'batch': 8, 'batches': 3})
    yield case(second, 2, 64, **trainer, **eager, kind='classify', labels=1, padded=True)
    yield case(first, 2, 64, **trainer, **eager, arguments={'label_smoothing_factor': 0.1})
    whole = 'x-gptj-whole'  # all of a head turns
    yield case(whole, 2, 65, **eager)
    yield case(whole, 3, 129, **MIXED, **FULL, **eager)
    yield case(whole, 2, 96, **MIXED, **trainer, **eager, weights='bf16', **lora(8, QUERIES))


def of_experts(family):
    """Adapters of their stacked weights and of routers, and what else a plan of experts has"""
    first, second = f'x-{family}', f'x-{family}-odd'
    block = 'block_sparse_moe' if family == 'granitemoe' else 'mlp'
    few = FAMILIES[family][0]
    stacked = {'target_parameters': [f'{block}.experts.gate_up_proj', f'{block}.experts.down_proj']}
    nf4 = {'type': 'nf4', 'double': True, 'compute': 'bf16'}
    at = {'world': 2, 'loop': 'trainer'}
    yield case(first, 2, 64, **MIXED, weights='bf16', made_on='host' if family in LATENTS else 'gpu', **lora(8, few, **stacked))
    yield case(second, 2, 64, **MIXED, **FULL, weights='bf16', loop='trainer', **lora(8, 'all-linear'))
    yield case(first, 2, 64, **MIXED, **FULL, weights='bf16', **at, sharding='ddp', **lora(8, few), quantization=nf4)
    flat = f'x-{family}-wide' if family.startswith('qwen3') else second  # of odd ones experts lie at no 16 bytes
    yield case(flat, 2, 64, **MIXED, **at, sharding='zero2', accumulation=2)
    yield case(first, 2, 64, **MIXED, **FULL, **at, sharding='zero3')
    yield case(second, 3, 64, **MIXED, loop='trainer', padded=True)
    balanced = first if family == 'granitemoe' else second  # its routers' logits TRL does not find
    yield case(balanced, 2, 64, **MIXED, **FULL, weights='bf16', loop='trl-sft', **lora(8, few))


if __name__ == '__main__':
    names = sys.argv[1:] or [*FAMILIES, 'gptj']
    of_all = {**{family: cases_of(family) for family in FAMILIES}, 'gptj': of_gptj()}
    made = [one for family in names if family in of_all for one in of_all[family]]
    if names[0] == '--join':
        made = make_trl.joined(names[1], [one for cases in of_all.values() for one in cases])
    for one in made:
        print(json.dumps(one))
