"""What training allocates of the families that liger-kernel 0.8.5 patches, case by case, on plimsoll's virtual GPU: writes
the cases, and joins them with the figures.

    python make_liger_families.py > liger_families_cases.jsonl
    plimsoll exec --device sim:GPU,placement=ascending --observe -- VENV/bin/python ../virtual/programs/golden.py \\
        liger_families_cases.jsonl ID [ID ...]           and with torchrun as make_trl.py says
    python make_liger_families.py --join FIGURES > liger_families.jsonl      FIGURES: those lines

VENV as of make_trl.py. The fields are those of make_families.py. olmo3: PYTHONHASHSEED=0, as there.
"""
import json
import sys

import make_trl
from make_families import FULL, MIXED, QUERIES, case, lora

TRAINER = {**MIXED, 'loop': 'trainer', 'liger': True}
FSDP = {'world': 2, 'sharding': 'fsdp'}
NF4 = {'quantization': {'type': 'nf4', 'double': True, 'compute': 'bf16'}, 'weights': 'bf16', **lora(8, QUERIES)}
FAMILIES = ('gemma', 'smollm3', 'granite', 'olmo2', 'olmo3', 'glm4', 'gpt-oss', 'phi3-part', 'qwen3-5')
ALONE = ('ministral', 'exaone4', 'hunyuan')  # on one GPU


def cases_of(name):
    """On one GPU, by a plain loop and by Trainer, and in one way with several."""
    config = f'x-{name}'
    attention = {'attention': 'eager'} if name == 'gpt-oss' else {}
    fails = name.startswith('olmo')  # a block is recomputed from other types
    yield case(config, 2, 65, **attention, liger=True)
    yield case(config, 2, 128, **{**TRAINER, **attention}, accumulation=2)
    yield case(config, 3, 64, **{**TRAINER, **attention, 'precision': 'bf16'}, **({} if fails else FULL))
    yield case(config, 2, 64, **{**TRAINER, **attention, 'loop': 'trl-sft'})
    if name in ALONE:
        return
    if name == 'gpt-oss':
        yield case(config, 2, 64, **TRAINER, **attention, world=2, sharding='ddp')
    elif FAMILIES.index(name) % 2:
        yield case(config, 2, 64, **TRAINER, **attention, **FSDP)
    else:
        yield case(config, 2, 64, **TRAINER, **attention, world=2, sharding='zero2', accumulation=2)


def some_of(config, number, kernels, seq=64, **more):
    """With a part of the kernels, as Trainer's liger_kernel_config says."""
    made = case(config, 2, seq, **{**TRAINER, **more}, arguments={'liger_kernel_config': kernels})
    return {**made, 'id': f'{made["id"]}/kernels{number}'}


def parts():
    unfused = {'fused_linear_cross_entropy': False}
    of_logits = {**unfused, 'cross_entropy': True}
    yield some_of('x-llama-odd', 1, unfused)
    yield some_of('x-llama-odd', 2, {'rope': False, 'rms_norm': False, 'swiglu': False})
    yield some_of('x-llama-odd', 3, {'rope': False}, evaluation={'batch': 4})
    yield some_of('x-llama-odd', 4, unfused, evaluation={'batch': 4}, **FSDP)
    yield some_of('x-qwen2-window', 5, {**of_logits, 'rms_norm': False}, accumulation=2)
    yield some_of('x-qwen2-window', 6, of_logits, world=2, sharding='zero3')
    yield some_of('x-gemma2', 7, {**of_logits, 'geglu': False, 'rope': False})
    yield some_of('x-mistral-window', 8, of_logits, seq=1000)
    yield some_of('x-qwen3', 9, {'rms_norm': False, 'swiglu': False}, precision='bf16')
    yield some_of('x-granite', 10, {'cross_entropy': False, 'fused_linear_cross_entropy': False})
    for config in ('x-mixtral', 'x-qwen3-moe', 'x-qwen3-5-moe', 'x-qwen3-next'):
        yield some_of(config, 11, {'swiglu': False})


def gathered():
    """With ZeRO 3, which gathers the head's weight where the loss looks at it, of untied heads and of tied ones."""
    zero3 = {**TRAINER, 'world': 2, 'sharding': 'zero3'}
    yield case('x-llama-2l', 2, 64, **zero3, accumulation=2)
    yield case('x-qwen3', 2, 100, **zero3, **FULL)
    yield case('x-llama-2l', 2, 64, **zero3, weights='bf16', **lora(8, QUERIES))
    yield case('x-llama-2l', 2, 64, **zero3, evaluation={'batch': 4})
    yield case('x-llama-odd', 3, 64, **zero3, **FULL)
    yield case('x-qwen2-window', 2, 64, **zero3, **lora(8, QUERIES))


def cases():
    for name in FAMILIES + ALONE:
        yield from cases_of(name)
    yield case('x-granite', 2, 64, **TRAINER, evaluation={'batch': 4})
    yield case('x-granite', 2, 64, **TRAINER, padded=True)
    yield case('x-granite', 2, 64, **{**TRAINER, 'precision': 'fp32'}, **FULL)
    yield case('x-gemma', 2, 64, **TRAINER, **NF4)
    yield case('x-olmo2', 2, 64, **TRAINER, **lora(8, QUERIES))
    yield case('x-smollm3', 2, 64, **TRAINER, world=2, sharding='ddp', accumulation=2)
    yield case('x-gpt-oss', 2, 64, **TRAINER, attention='eager', padded=True)
    for name in ('gpt2-tiny', 'qwen2-moe', 'cohere'):  # Liger knows none of them, and Trainer says so to its log alone
        yield case(f'x-{name}', 2, 64, **TRAINER)
    yield case('x-qwen2-moe', 2, 64, **TRAINER, evaluation={'batch': 4})
    yield from parts()
    yield from gathered()


if __name__ == '__main__':
    for one in make_trl.joined(sys.argv[2], list(cases())) if sys.argv[1:2] == ['--join'] else cases():
        print(json.dumps(one))
