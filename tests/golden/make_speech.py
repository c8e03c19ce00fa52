"""What training allocates of whisper, case by case, on plimsoll's virtual GPU: writes the cases, and joins them with the
figures.

    python make_speech.py > speech_cases.jsonl
    plimsoll exec --device sim:GPU,placement=ascending --observe -- VENV/bin/python ../virtual/programs/golden.py \\
        speech_cases.jsonl ID [ID ...]                   and with torchrun as make_trl.py says
    python make_speech.py --join FIGURES > speech.jsonl  FIGURES: those lines

VENV as of make_trl.py. The fields are those of seq2seq.jsonl, but that `seq` counts the tokens of a row's target: the sound,
which the encoder hears, is as long as the model's positions. `freeze_encoder`: the model's method of this name was called, as
examples do. Trainer's batches are features in fp32 and labels (`../virtual/programs/rows.py`), of which the model makes what
its decoder reads; where they are `padded` the last row's labels are one token short. The models: `x-whisper` is as the
published ones, `-odd` has stacks of different sizes, dropouts and another activation.
"""
import json
import sys

import make_trl
from make_seq2seq import DDP
from named_cases import by_name, merged

MIXED, FULL, CACHE = {'precision': 'bf16-mixed', 'optimizer': 'adamw-fused'}, {'checkpointing': 'full'}, {'use_cache': True}
EAGER, TRAINER, FROZEN = {'attention': 'eager'}, {'loop': 'trainer'}, {'freeze_encoder': True}
HALF = {**MIXED, 'precision': 'fp16-mixed'}
FEW, EVERY = ['q_proj', 'v_proj'], ['k_proj', 'v_proj', 'q_proj', 'out_proj', 'fc1', 'fc2']


def lora(rank, targets=FEW, **more):
    return {'lora': {'r': rank, 'target_modules': targets, **more}}


def quantized(kind, **more):
    return {'weights': 'bf16', 'quantization': {'type': kind, **more}}


NF4 = quantized('nf4', double=True, compute='bf16')


def case(config, batch, seq, *parts, **more):
    made = {'kind': 'speech', 'config': f'configs/{config}.json', 'precision': 'fp32', 'optimizer': 'adamw',
            'checkpointing': 'none', 'attention': 'sdpa', 'compute_capability': 80, 'batch': batch, 'seq': seq,
            'made_on': 'gpu', 'loop': 'plain', **merged(*parts), **more}
    if made['loop'] != 'plain':
        made = {**made, 'made_on': more.get('made_on', 'host'), 'clip': 1.0}
    words = [make_trl.name_of(made), made.get('use_cache') and 'cache', made.get('freeze_encoder') and 'frozen',
             made.get('made_on') == 'host' and 'host', len(made.get('lora', {}).get('target_modules', '')) > 2 and 'all',
             made.get('clip') and made['loop'] == 'plain' and 'clip', made.get('evaluation', {}).get('every') and 'every']
    return words, made


def of_each(model):
    yield case(model, 2, 33)
    yield case(model, 2, 32, CACHE)
    yield case(model, 3, 40, MIXED, CACHE)
    yield case(model, 3, 40, MIXED, FULL, CACHE)
    yield case(model, 2, 65, EAGER, HALF, CACHE)
    yield case(model, 2, 30, CACHE, precision='bf16', optimizer='sgd')
    yield case(model, 2, 24, MIXED, CACHE, padded=True)
    yield case(model, 3, 17, MIXED, FULL, padded=True)
    yield case(model, 2, 40, MIXED, FROZEN, CACHE)
    yield case(model, 2, 24, MIXED, TRAINER, CACHE, accumulation=2)
    yield case(model, 2, 32, HALF, TRAINER, FULL, CACHE)
    yield case(model, 3, 32, MIXED, TRAINER, FULL, FROZEN, CACHE)
    yield case(model, 2, 32, MIXED, TRAINER, CACHE, weights='bf16', padded=True)
    yield case(model, 2, 32, MIXED, TRAINER, CACHE, lora(8))
    yield case(model, 2, 32, MIXED, TRAINER, FULL, CACHE, lora(8), weights='bf16')
    yield case(model, 2, 32, MIXED, TRAINER, FULL, CACHE, NF4, lora(8))
    yield case(model, 3, 24, MIXED, DDP, CACHE, accumulation=2)
    yield case(model, 2, 32, MIXED, DDP, FULL, CACHE, lora(8), weights='bf16')
    yield case(model, 2, 32, MIXED, TRAINER, CACHE, evaluation={'batch': 5})


def cases():
    first, second = 'x-whisper', 'x-whisper-odd'
    for model in (first, second):
        yield from of_each(model)
    yield case(first, 1, 1, CACHE)
    yield case(first, 1, 100, FULL, CACHE)
    yield case(second, 1, 9, EAGER, FULL, precision='bf16')
    yield case(first, 5, 16, EAGER, MIXED, FULL, CACHE)
    yield case(first, 2, 64, MIXED, CACHE, compute_capability=90)
    yield case(second, 2, 64, MIXED, FULL, CACHE, compute_capability=90)
    yield case(first, 2, 64, FULL, CACHE, precision='bf16', compute_capability=90)
    yield case(first, 2, 63, HALF, FULL, CACHE, compute_capability=75)
    yield case(first, 2, 50, CACHE, precision='fp16')
    yield case(second, 2, 50, MIXED, CACHE, weights='fp16')
    yield case(second, 2, 50, CACHE, precision='bf16', optimizer='adamw-8bit', compute_capability=86)
    yield case(first, 3, 50, FULL, EAGER, precision='bf16', optimizer='adafactor', made_on='host')
    yield case(first, 3, 32, MIXED, CACHE, made_on='host', accumulation=2, clip=True)
    yield case(first, 2, 32, MIXED, CACHE, lora(8, EVERY, dropout=0.1), weights='bf16', made_on='host')
    yield case(first, 2, 32, FULL, CACHE, lora(4, EVERY), precision='bf16')
    yield case(first, 2, 32, CACHE, lora(8, dora=True))
    yield case(first, 2, 32, MIXED, CACHE, lora(16), NF4)
    yield case(second, 2, 32, HALF, FULL, TRAINER, CACHE, lora(16, EVERY), NF4)
    yield case(first, 2, 32, MIXED, DDP, FULL, CACHE)
    yield case(second, 2, 32, MIXED, DDP, FROZEN, CACHE)
    yield case(second, 2, 32, MIXED, TRAINER, FULL, CACHE, padded=True, evaluation={'batch': 7, 'every': 2})
    yield case(second, 3, 32, MIXED, TRAINER, optimizer='adafactor', padded=True, evaluation={'batch': 3})
    yield case(second, 2, 32, TRAINER, EAGER, CACHE)
    yield case('whisper-tiny', 2, 100)
    yield case('whisper-tiny', 8, 128, MIXED, TRAINER, CACHE)
    yield case('whisper-small', 8, 225, HALF, TRAINER, FULL, CACHE)
    yield case('whisper-large-v3-turbo', 4, 128, MIXED, TRAINER, FULL, CACHE, lora(32))


if __name__ == '__main__':
    made = by_name(cases())
    if len(sys.argv) > 1:
        print('\n'.join(json.dumps(one) for one in make_trl.joined(sys.argv[2], list(made.values()))))
    else:
        print('\n'.join(map(json.dumps, made.values())))
