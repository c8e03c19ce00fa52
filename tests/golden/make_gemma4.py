"""What training allocates of gemma4's text, case by case, on plimsoll's virtual GPU: writes the cases, and joins them with
the figures.

    python make_gemma4.py > gemma4_cases.jsonl
    PYTHONHASHSEED=0 plimsoll exec --device sim:GPU,placement=ascending --observe -- VENV/bin/python \\
        ../virtual/programs/golden.py gemma4_cases.jsonl ID [ID ...]       and with torchrun as make_trl.py says
    python make_gemma4.py --join FIGURES > gemma4.jsonl      FIGURES: those lines

VENV as of make_trl.py. The fields are those of families.jsonl. Rotary embeddings of both kinds of layers are made in the
order of a Python set: PYTHONHASHSEED=0. The models: `x-gemma4` is dense as the 31B, `-moe` has experts beside its MLPs as
the 26B, `-e` embeddings for each layer and shared keys and values as E2B; `-odd` turns round what the first leaves, and
`-wide` has heads as they are published.
"""
import functools
import json
import sys

import make_families
import make_trl
from make_vision import BF16, EAGER, FULL, MIXED, TRAINER

OWN = ['per_layer_input_gate', 'per_layer_projection', 'per_layer_model_projection']
MODELS = {'x-gemma4': [], 'x-gemma4-moe': ['router.proj'], 'x-gemma4-e': OWN}  # and linears of their own
ATTENTION = ['q_proj', 'k_proj', 'v_proj', 'o_proj']
ALL = ATTENTION + ['gate_proj', 'up_proj', 'down_proj']
NF4 = {'weights': 'bf16', 'quantization': {'type': 'nf4', 'double': True, 'compute': 'bf16'}}


def of_odd(model, own):
    case, lora = make_families.case, make_families.lora
    for more in ({}, MIXED, {**MIXED, **FULL}, {**BF16, **FULL, **EAGER}):
        yield case(model, 2, 100, **more)
    yield case(model, 3, 64, **BF16, padded=True)
    yield case(model, 2, 96, **BF16, **FULL, **lora(3, own))
    yield case(model, 2, 65, **TRAINER, **MIXED)
    yield case(model, 2, 64, **TRAINER, **MIXED, **FULL, **NF4, **lora(8, own))


def of_each(model):
    case, lora = make_families.case, make_families.lora
    for more in ({}, MIXED, BF16, {'precision': 'fp16-mixed'}, FULL, {**MIXED, **FULL}, {**BF16, **FULL}, EAGER,
                 {**MIXED, **EAGER, **FULL}, {**BF16, **EAGER}, {**BF16, 'optimizer': 'sgd', 'accumulation': 3}):
        yield case(model, 2, 100, **more)
    yield case(model, 1, 33, **MIXED)  # shorter than the window
    yield case(model, 3, 257, **BF16, **FULL)
    yield case(model, 2, 77, **MIXED, compute_capability=90)
    yield case(model, 3, 64, **MIXED, padded=True)
    yield case(model, 3, 64, **BF16, **FULL, padded=True, made_on='host')
    yield case(model, 2, 96, **lora(6, ATTENTION))
    yield case(model, 2, 96, **MIXED, **FULL, weights='bf16', made_on='host', **lora(8, ALL))
    yield case(model, 2, 65, **TRAINER, **MIXED)
    yield case(model, 2, 65, **TRAINER, **BF16, **FULL)
    yield case(model, 2, 65, **TRAINER, **MIXED, **FULL, weights='bf16', made_on='loaded', **lora(8, ATTENTION[:2]))
    yield case(model, 2, 64, **TRAINER, **MIXED, **FULL, **NF4, **lora(8, ALL))
    yield case(model, 2, 64, **TRAINER, **MIXED, sharding='ddp', world=2)
    yield case(model, 2, 64, **TRAINER, **MIXED, evaluation={'batch': 8})


def of_shared():
    """The 12B's class, whose last layers share keys and values without embeddings for each layer; and reentrant checkpointing."""
    case, lora = make_families.case, make_families.lora
    for more in ({}, {**MIXED, **FULL}, {**BF16, **EAGER}):
        yield case('x-gemma4-unified', 2, 100, **more)
    yield case('x-gemma4-unified', 2, 96, **BF16, **FULL, made_on='host', **lora(8, ATTENTION))
    reentrant = {**FULL, 'use_reentrant': True}
    for model in ('x-gemma4-unified', 'x-gemma4', 'x-gemma4-moe'):
        yield case(model, 2, 100, **BF16, **reentrant)
        yield case(model, 2, 65, **TRAINER, **MIXED, **reentrant, **lora(4, ALL))
    yield case('x-gemma4-wide', 2, 100, **MIXED, **FULL)
    yield case('x-gemma4-wide', 2, 77, **MIXED, compute_capability=90)
    yield case('x-gemma4-wide', 3, 64, **BF16, padded=True)


TEXT = {'exclude_modules': '.*(vision_tower|audio_tower).*'}  # else peft stops at the towers' linears, which are modules around linears


def with_towers(model, images, **more):
    batch, seq = more.pop('batch', 2), more.pop('seq', 200 if images else 100)
    made = make_families.case(model, batch, seq, kind='image-text', images=images, **more)
    marks = ['frozen'] * bool(made.get('freeze_vision')) + [f'i{images}']
    return {**made, 'id': '/'.join([made['id'], *marks])}


def of_whole(model):
    """Rows of text alone, which is what most jobs train the published checkpoints with"""
    def case(**more):
        return with_towers(model, 0, **more)

    lora = make_families.lora
    loaded = {**TRAINER, **MIXED, 'made_on': 'loaded', 'weights': 'bf16'}
    for more in ({}, MIXED, {**MIXED, **FULL}, {**BF16, **FULL, **EAGER}, {'precision': 'fp16-mixed'},
                 {**BF16, 'optimizer': 'sgd', 'accumulation': 3}, {**BF16, 'made_on': 'host'},
                 {**MIXED, 'compute_capability': 90, 'seq': 33}):
        yield case(**more)
    yield case(**MIXED, padded=True, batch=3, seq=64)
    yield case(**TRAINER, **BF16, **FULL, padded=True)
    yield case(**BF16, **FULL, **lora(8, ALL, **TEXT))
    yield case(**MIXED, made_on='host', **lora(4, 'all-linear'))
    yield case(**lora(2, ALL, dora=True, **TEXT))
    for more in (MIXED, {**BF16, **FULL}, loaded, {**loaded, **FULL, **lora(8, ATTENTION, **TEXT)},
                 {**MIXED, **FULL, **NF4, **lora(8, ALL, **TEXT)}, {**MIXED, **NF4, **lora(4, 'all-linear')},
                 {**MIXED, 'freeze_vision': True}, {**MIXED, 'evaluation': {'batch': 8}},
                 {**MIXED, 'sharding': 'ddp', 'world': 2}):
        yield case(**{**TRAINER, **more})


def of_sft(case, adapted):
    """SFTTrainer, whose head makes no logits: of a whole model, of a text alone"""
    sft, lora = {'loop': 'trl-sft', 'accumulation': 2}, make_families.lora
    nf4 = {**NF4, 'quantization': {**NF4['quantization'], 'prepare': False}}
    yield case(**sft, **MIXED)
    yield case(**sft, **BF16, **FULL, **lora(8, ALL, **adapted))
    yield case(**sft, **MIXED, **FULL, weights='bf16', made_on='loaded', **lora(8, ATTENTION, **adapted))
    yield case(**sft, **MIXED, **FULL, **nf4, **lora(8, ALL, **adapted))


def of_unified():
    """The 12B's class, which has linears and norms in the place of towers, and masks of text, too"""
    case, lora = functools.partial(with_towers, 'x-gemma4-unified-vl', 0), make_families.lora
    for more in ({}, {**MIXED, **FULL}, {**BF16, **EAGER}, {**BF16, 'made_on': 'host'}):
        yield case(**more)
    yield case(**MIXED, padded=True, batch=3, seq=64)
    yield case(**BF16, **FULL, made_on='host', **lora(8, 'all-linear'))
    yield case(**TRAINER, **MIXED)
    yield case(**TRAINER, **MIXED, **FULL, weights='bf16', made_on='loaded', **lora(8, ALL))
    yield case(**TRAINER, **MIXED, **FULL, **NF4, **lora(4, 'all-linear'))
    yield case(**TRAINER, **MIXED, sharding='ddp', world=2)
    yield case(loop='trl-sft', accumulation=2, **MIXED, **FULL, weights='bf16', made_on='loaded', **lora(8, ATTENTION))


WHOLE = ('x-gemma4-vl', 'x-gemma4-vl-e', 'x-gemma4-vl-e-odd', 'x-gemma4-vl-moe')


def cases():
    for model in WHOLE:
        yield from of_whole(model)
        if not model.endswith('odd'):
            yield from of_sft(functools.partial(with_towers, model, 0), TEXT)
    yield from of_unified()
    for model in MODELS:
        yield from of_sft(functools.partial(make_families.case, model, 2, 65), {})
    for model, own in MODELS.items():
        yield from of_each(model)
        yield from of_odd(f'{model}-odd', ATTENTION + own)
    yield from of_shared()


if __name__ == '__main__':
    for made in make_trl.joined(sys.argv[2], cases()) if sys.argv[1:2] == ['--join'] else cases():
        print(json.dumps(made))
