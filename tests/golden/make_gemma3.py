"""What training allocates of gemma3 with its vision tower, case by case, on plimsoll's virtual GPU: writes the cases, and
joins them with the figures.

    python make_gemma3.py > gemma3_cases.jsonl
    PYTHONHASHSEED=0 plimsoll exec --device sim:GPU,placement=ascending --observe -- VENV/bin/python \\
        ../virtual/programs/golden.py gemma3_cases.jsonl ID [ID ...]       and with torchrun as make_trl.py says
    python make_gemma3.py --join FIGURES > gemma3.jsonl      FIGURES: those lines

VENV as of make_trl.py. The fields are those of families.jsonl; besides `images` in each row, all of one size
(../virtual/programs/pictures.py makes the rows). Rotary embeddings of both kinds of layers are made in the order of a
Python set: PYTHONHASHSEED=0.
"""
import functools
import json
import sys

import make_families
import make_trl
from make_vision import BF16, EAGER, FULL, MIXED, TEXT, TRAINER, beside_cases, wraps_text

TOWER = ['out_proj', 'fc1', 'fc2']


def case(batch, seq, images, config='gemma3-vl-small', **more):
    made = make_families.case(config, batch, seq, kind='image-text', images=images, **more)
    marks = [*(['frozen'] if made.get('freeze_vision') else []), f'i{images}']
    return {**made, 'id': '/'.join([made['id'], *marks, *wraps_text(made)])}


def cases():
    for more in ({}, MIXED, BF16, {'precision': 'fp16-mixed'}, FULL, {**MIXED, **FULL}, {**BF16, **FULL}, EAGER,
                 {**MIXED, **EAGER, **FULL}, {**BF16, **EAGER}, {**BF16, 'optimizer': 'sgd', 'accumulation': 3},
                 {**BF16, 'compute_capability': 90}, {'compute_capability': 75}):
        yield case(2, 200, 1, **more)
    for more in ({}, MIXED, {**BF16, **FULL}):
        yield case(1, 50, 2, **more)  # shorter than the window
        yield case(3, 333, 4, **more)
        yield case(2, 100, 0, **more)
        yield case(2, 150, 1, 'gemma3-vl-odd', **more)
    for more in ({}, MIXED, {**BF16, **FULL}, {**TRAINER, **MIXED}, {**EAGER}):
        yield case(2, 200, 1, padded=True, **more)
    yield case(2, 200, 0, padded=True, **TRAINER, **MIXED)
    for rank, targets in ((6, ['o_proj', 'gate_proj']), (8, TEXT), (4, TEXT + TOWER)):
        adapted = make_families.lora(rank, targets)
        yield case(2, 200, 1, **adapted)
        yield case(2, 200, 1, **BF16, **FULL, **adapted)
        yield case(1, 200, 2, **MIXED, **adapted)
        yield case(2, 200, 1, **TRAINER, **BF16, **FULL, **adapted)
    yield case(2, 200, 1, **make_families.lora(2, TEXT + TOWER, dora=True))
    yield case(2, 100, 0, **BF16, **make_families.lora(4, TEXT))
    yield case(2, 200, 1, **TRAINER, **MIXED, **make_families.lora(3, TEXT, exclude_modules='.*vision_tower.*'))
    yield case(2, 200, 1, **TRAINER, **BF16, **FULL, use_reentrant=True, **make_families.lora(4, TEXT))
    for more in ({}, MIXED, {**MIXED, **FULL}, {**BF16, **FULL, 'use_reentrant': True}):
        yield case(2, 200, 1, **TRAINER, **more)
        yield case(2, 200, 0, **TRAINER, **more)
    frozen = {'freeze_vision': True}
    yield case(2, 200, 1, **frozen)
    yield case(2, 200, 1, **BF16, **FULL, **frozen)
    yield case(2, 200, 1, **TRAINER, **MIXED, **FULL, use_reentrant=True, **frozen)
    yield case(2, 200, 0, **TRAINER, **MIXED, **frozen)
    loaded = {**TRAINER, **MIXED, 'made_on': 'loaded', 'weights': 'bf16'}
    yield case(2, 200, 1, **loaded)
    yield case(2, 200, 0, **loaded, **FULL, **make_families.lora(8, TEXT))
    yield case(2, 200, 1, **loaded, **FULL, **make_families.lora(4, TEXT))
    nf4, prepared = ({'weights': 'bf16', 'quantization': {'type': 'nf4', 'double': True, 'compute': 'bf16', **more}}
                     for more in ({'prepare': False}, {}))
    yield case(2, 200, 1, **MIXED, **prepared, **make_families.lora(4, TEXT + TOWER))
    sft = {'loop': 'trl-sft', 'accumulation': 2}
    yield case(2, 200, 0, **sft, **MIXED)
    yield case(2, 200, 0, **sft, **MIXED, **FULL, weights='bf16', made_on='loaded', **make_families.lora(8, TEXT))
    yield case(2, 200, 0, **sft, **MIXED, **FULL, **nf4, **make_families.lora(8, TEXT))
    yield case(2, 200, 0, **TRAINER, **MIXED, **FULL, evaluation={'batch': 8}, **make_families.lora(8, TEXT))
    yield case(1, 200, 2, **TRAINER, **MIXED, sharding='ddp', world=2)
    yield case(1, 200, 2, **TRAINER, **BF16, **FULL, sharding='ddp', world=2, **make_families.lora(8, TEXT))
    yield case(1, 600, 1, 'gemma-3-4b-short', **BF16, **FULL)
    yield from beside_cases(functools.partial(case, 2, 200), functools.partial(case, 2, 150, config='gemma3-vl-odd'),
                            TEXT, TEXT + TOWER,
                            transformer_layer_cls_to_wrap=['Gemma3DecoderLayer', 'SiglipEncoderLayer'])
    text = {'world': 2, 'sharding': 'fsdp', 'fsdp_config': {'transformer_layer_cls_to_wrap': ['Gemma3DecoderLayer']}}
    yield case(2, 200, 1, **TRAINER, **MIXED, **FULL, weights='bf16', **text)
    yield case(2, 150, 1, 'gemma3-vl-odd', **TRAINER, **MIXED, weights='bf16', **text, **make_families.lora(8, TEXT))


if __name__ == '__main__':
    for made in make_trl.joined(sys.argv[2], cases()) if sys.argv[1:2] == ['--join'] else cases():
        print(json.dumps(made))
