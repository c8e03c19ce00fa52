"""What training allocates of the families that came last, case by case, on plimsoll's virtual GPU: writes the cases, and
joins them with the figures.

    python make_recent.py [FAMILY ...] > recent_cases.jsonl
    export PYTHONPATH=flash2                             the stand-in for the package flash-attn (make_flash2.py)
    plimsoll exec --device sim:GPU,placement=ascending --observe -- VENV/bin/python ../virtual/programs/golden.py \\
        recent_cases.jsonl ID [ID ...]                   and with torchrun as make_trl.py says
    python make_recent.py --join FIGURES > recent.jsonl  FIGURES: those lines

VENV as of make_trl.py. The fields are those of families.jsonl. Each family has a small model, and an odd one that turns
round what the first leaves at its default.
"""
import json
import sys

import make_trl
from make_families import ATTENTION, FULL, GATED, MIXED, QUERIES, case, lora

TRAINER, SFT, EAGER, BF16 = {'loop': 'trainer'}, {'loop': 'trl-sft'}, {'attention': 'eager'}, {'precision': 'bf16'}
NF4 = {'weights': 'bf16', 'quantization': {'type': 'nf4', 'double': True, 'compute': 'bf16'}}
FLASH2 = {'attention': 'flash_attention_2'}
FAMILIES = {  # what is adapted of a few linears, and of all; what is not run
    'ernie4-5-moe': (QUERIES, ATTENTION + GATED, ('fsdp', 'zero3')),
    'granitehybrid': (QUERIES, [*ATTENTION, 'input_linear', 'output_linear'], ('packing', 'trl')),
    'mamba': (['in_proj', 'out_proj'], [*ATTENTION, 'in_proj', 'out_proj', 'input_linear', 'output_linear'],
              ('packing', 'trl')),
    'falcon-h1': (['in_proj', 'q_proj'], [*ATTENTION, 'in_proj', *GATED], ('packing', 'trl', 'all-linear')),
    'nemotron-h': (['in_proj', 'q_proj'], [*ATTENTION, 'in_proj', *GATED[1:]], ('packing', 'trl', 'all-linear')),
    'nemotron-moe': (['in_proj', 'q_proj'], ATTENTION, ('packing', 'trl', 'routers', 'stacked')),
    'mamba-moe': (['in_proj', 'out_proj'], ATTENTION, ('packing', 'trl')),
    'lfm2-moe': (QUERIES, [*ATTENTION[:3], 'in_proj', 'out_proj', 'w1', 'w3', 'w2'], ()),
    'minimax-m2': (QUERIES, ATTENTION, ()),
    'afmoe': (QUERIES, ATTENTION, ('packing', 'routers', 'fsdp', 'zero3')),
    'apertus': (QUERIES, ATTENTION + GATED[1:], ()),
}
EXPERTS = {'ernie4-5-moe': 'mlp', 'mamba-moe': 'block_sparse_moe', 'nemotron-moe': 'mixer', 'lfm2-moe': 'feed_forward', 'minimax-m2': 'mlp', 'afmoe': 'mlp'}  # where they stand in a block


def cases_of(family):
    few, every, left_out = FAMILIES[family]
    first, second = f'x-{family}', f'x-{family}-odd'
    yield case(first, 2, 65)
    yield case(second, 2, 65)
    yield case(first, 2, 257, **MIXED, **FULL)
    yield case(second, 2, 33, **EAGER, precision='fp16-mixed')
    yield case(first, 2, 128, **MIXED, packed=True)
    yield case(first, 3, 128, **MIXED, made_on='host', accumulation=2, clip=True)
    yield case(second, 3, 64, **MIXED, padded=True)
    yield case(second, 2, 65, **BF16, optimizer='sgd', accumulation=2)
    yield case(first, 3, 96, **BF16, **FULL, clip=True)
    yield case(second, 2, 77, **MIXED, **FULL, compute_capability=90)
    yield case(first, 2, 96, **MIXED, **FULL, weights='bf16', made_on='host', **lora(8, few))
    yield case(second, 2, 128, precision='fp32', **lora(8, every if family not in EXPERTS else few, dropout=0.1))
    yield case(first, 2, 64, **MIXED, weights='bf16', **FLASH2)
    if 'packing' not in left_out:
        yield case(second, 2, 100, **BF16, **FULL, **FLASH2, packing='one-row', documents=2)
    yield case(first, 2, 65, **MIXED, **TRAINER, accumulation=2)
    yield case(second, 3, 64, **MIXED, **TRAINER, padded=True)
    yield case(first, 2, 64, **MIXED, **TRAINER, evaluation={'batch': 8})
    yield case(second, 2, 64, **MIXED, **TRAINER, arguments={'label_smoothing_factor': 0.1})
    yield case(first, 2, 64, **MIXED, **FULL, **TRAINER, weights='bf16', use_reentrant=True, **lora(8, few))
    yield case(second, 2, 64, **MIXED, **FULL, **TRAINER, **lora(8, few), **NF4)
    yield case(first, 2, 64, **MIXED, **FULL, **TRAINER, **lora(8, few), **NF4, world=2, sharding='ddp')
    yield case(second, 2, 64, **MIXED, **TRAINER, world=2, sharding='ddp', accumulation=2)
    for sharding in ('zero2', 'fsdp', 'zero3'):
        more = {'weights': 'bf16'} if sharding == 'fsdp' else {}
        if sharding not in left_out:
            yield case(second, 2, 64, **MIXED, **FULL, **TRAINER, world=2, sharding=sharding, **more)
    if 'trl' not in left_out:
        yield case(first, 2, 64, **MIXED, **SFT)
        yield case(second, 2, 64, **MIXED, **FULL, weights='bf16', **SFT, **lora(8, few))
    if family in EXPERTS:
        stacked = {'target_parameters': [f'{EXPERTS[family]}.experts.{part}' for part in ('gate_up_proj', 'down_proj')]}
        if 'stacked' not in left_out:
            yield case(first, 2, 64, **MIXED, weights='bf16', **lora(8, few, **stacked))
        if 'routers' not in left_out:
            yield case(second, 2, 64, **MIXED, **FULL, weights='bf16', **TRAINER, **lora(8, 'all-linear'))
        yield case(first, 2, 64, **MIXED, **TRAINER, weights='bf16', made_on='loaded')
    else:
        if 'trl' not in left_out:
            yield case(first, 2, 64, **MIXED, loop='trl-dpo')
        yield case(second, 2, 64, **MIXED, **FULL, **TRAINER, weights='bf16', made_on='loaded', **lora(8, few))
        if 'all-linear' not in left_out:
            yield case(second, 2, 64, **MIXED, **TRAINER, **lora(8, 'all-linear'))
    if family == 'mamba':  # no attention, one head, rows of one chunk
        alone = 'x-mamba-alone'
        yield case(alone, 1, 64)
        yield case(alone, 1, 100, **MIXED)
        yield case(alone, 2, 64, **MIXED, padded=True)


if __name__ == '__main__':
    joins = sys.argv[1:2] == ['--join']
    names = FAMILIES if joins else sys.argv[1:] or FAMILIES
    made = [one for family in names for one in cases_of(family)]
    if joins:
        made = make_trl.joined(sys.argv[2], made)
    for one in made:
        print(json.dumps(one))
