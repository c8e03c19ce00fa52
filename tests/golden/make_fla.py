"""What training qwen3_5, qwen3_5_moe and qwen3_next with flash-linear-attention and causal-conv1d allocates, case by case, on plimsoll's virtual GPU:
writes the cases, and joins them with the figures.

    python make_fla.py > fla_cases.jsonl
    export PYTHONPATH=PACKAGES
    plimsoll exec --device sim:GPU,placement=ascending --observe -- VENV/bin/python ../virtual/programs/golden.py \\
        fla_cases.jsonl ID [ID ...]                      and with torchrun as make_trl.py says
    python make_fla.py --join FIGURES > fla.jsonl        FIGURES: those lines

VENV as of make_trl.py. PACKAGES: a folder of flash-linear-attention and fla-core 0.6.0, einops and causal-conv1d 1.7.0, which
nvcc builds in minutes for one architecture (80); for the H100 also tilelang 0.1.15, without which flash-linear-attention
stops there. The fields are those of make_families.py;
`linear_attention`: `fla` and `causal_conv1d` say which of them transformers finds. Kernels are not tuned: each run is one whose
kernels were by a run before, which costs no memory.
"""
import json
import sys

import make_trl
from make_families import ATTENTION, FULL, GATED, MIXED, QUERIES, case, lora

FIRST, SECOND, WIDE = 'x-qwen3-5', 'x-qwen3-5-odd', 'x-qwen3-5-wide'
LINEAR = ['in_proj_qkv', 'in_proj_z', 'in_proj_b', 'in_proj_a', 'out_proj']
RULE, CONV = {'linear_attention': 'fla'}, {'causal_conv1d': True}
BOTH = {**RULE, **CONV}
TRAINER = {**MIXED, 'loop': 'trainer'}
SFT = {**MIXED, 'weights': 'bf16', 'loop': 'trl-sft'}
NF4 = {'quantization': {'type': 'nf4', 'double': True, 'compute': 'bf16'}, 'weights': 'bf16', **lora(8, QUERIES)}
BLOCK = {'fsdp_config': {'transformer_layer_cls_to_wrap': ['Qwen3_5DecoderLayer']}}


def by_a_plain_loop():
    for config in (FIRST, SECOND, WIDE):
        yield case(config, 2, 65, **BOTH)
        yield case(config, 2, 257, **MIXED, **FULL, **BOTH)
        yield case(config, 3, 64, precision='bf16', optimizer='adamw-fused', **RULE)
        yield case(config, 2, 100, **MIXED, **CONV)
    yield case(FIRST, 2, 65, **RULE)
    yield case(FIRST, 2, 65, **CONV)
    yield case(SECOND, 2, 33, precision='fp16-mixed', optimizer='adamw', **RULE)
    yield case(WIDE, 1, 500, precision='fp16', optimizer='sgd', compute_capability=75, **RULE)
    yield case(WIDE, 2, 190, precision='bf16', optimizer='adafactor', compute_capability=86, **BOTH)
    yield case(WIDE, 1, 130, **MIXED, compute_capability=89, **FULL, **RULE)
    yield case(WIDE, 2, 150, precision='bf16', optimizer='adamw', compute_capability=90, **RULE)
    yield case(FIRST, 4, 1, precision='bf16', optimizer='adamw', **RULE)
    yield case(FIRST, 2, 128, **MIXED, packed=True, **BOTH)
    yield case(SECOND, 3, 64, **MIXED, padded=True, **BOTH)
    yield case(FIRST, 3, 128, **MIXED, made_on='host', accumulation=2, clip=True, **BOTH)
    yield case(FIRST, 2, 96, **MIXED, **FULL, weights='bf16', made_on='host', **lora(8, QUERIES), **BOTH)
    yield case(SECOND, 2, 128, precision='fp32', **lora(8, [*ATTENTION, *GATED, *LINEAR], dropout=0.1), **BOTH)
    yield case(FIRST, 2, 64, **MIXED, weights='bf16', liger=True, **BOTH)
    yield case(FIRST, 1, 200, precision='bf16', optimizer='adamw-fused', **FULL, use_reentrant=True, **BOTH)


def by_trainers():
    yield case(FIRST, 2, 65, **TRAINER, accumulation=2, **BOTH)
    yield case(SECOND, 3, 64, **TRAINER, padded=True, **RULE)
    yield case(WIDE, 2, 150, **{**TRAINER, 'precision': 'bf16'}, **FULL, **BOTH)
    yield case(SECOND, 2, 64, **TRAINER, **FULL, **NF4, **BOTH)
    yield case(SECOND, 2, 150, **TRAINER, evaluation={'batch': 5}, **BOTH)
    yield case(FIRST, 2, 64, **TRAINER, packing='one-row', documents=2, **BOTH)
    yield case(FIRST, 2, 192, **SFT, packing='one-row', documents=2, **BOTH)
    yield case(SECOND, 1, 190, **SFT, packing='one-row', documents=5, attention='flash_attention_2', **RULE)
    yield case(FIRST, 2, 150, **SFT, **FULL, packing='one-row', documents=3, **BOTH)
    yield case(SECOND, 3, 130, **SFT, packing='one-row', accumulation=2, **CONV)
    yield case(SECOND, 2, 64, **SFT, **FULL, use_reentrant=True, packing='one-row', **BOTH)
    yield case(FIRST, 2, 64, **MIXED, loop='trl-sft', **BOTH)
    yield case(FIRST, 2, 96, **MIXED, **FULL, weights='bf16', loop='trl-sft', **lora(8, [*QUERIES, *LINEAR]), **BOTH)
    yield case(SECOND, 2, 100, **TRAINER, world=2, sharding='ddp', accumulation=2, **BOTH)
    yield case(FIRST, 2, 64, **TRAINER, **FULL, weights='bf16', world=2, sharding='fsdp', **BLOCK, **BOTH)
    yield case(SECOND, 2, 130, **TRAINER, world=2, sharding='zero2', accumulation=2, **BOTH)
    yield case(WIDE, 2, 64, **TRAINER, **FULL, world=2, sharding='zero3', **BOTH)


def of_experts():
    for family in ('qwen3-5-moe', 'qwen3-next'):
        first, wide = f'x-{family}', f'x-{family}-wide'
        yield case(first, 2, 65, **BOTH)
        yield case(wide, 2, 190, **MIXED, **FULL, **BOTH)
        yield case(wide, 3, 64, **TRAINER, padded=True, **RULE)
        yield case(first, 2, 64, **TRAINER, packing='one-row', documents=2, **BOTH)
        yield case(first, 2, 96, **MIXED, **FULL, weights='bf16', loop='trl-sft', **lora(8, QUERIES), **BOTH)


def named(one):
    marks = [one.get('linear_attention'), one.get('causal_conv1d') and 'conv1d']
    return {**one, 'id': '/'.join([one['id'], *(mark for mark in marks if mark)])}


if __name__ == '__main__':
    made = [named(one) for one in [*by_a_plain_loop(), *by_trainers(), *of_experts()]]
    if sys.argv[1:2] == ['--join']:
        made = make_trl.joined(sys.argv[2], made)
    for one in made:
        print(json.dumps(one))
