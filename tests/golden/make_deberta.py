"""What training allocates of deberta-v2, case by case, on plimsoll's virtual GPU: writes the cases, and joins them with the
figures.

    python make_deberta.py > deberta_cases.jsonl
    plimsoll exec --device sim:GPU,placement=ascending --observe -- VENV/bin/python ../virtual/programs/golden.py \\
        deberta_cases.jsonl ID [ID ...]                  and with torchrun as make_trl.py says
    python make_deberta.py FIGURES > deberta.jsonl       FIGURES: those lines

VENV as of make_trl.py. The fields are those of more.jsonl and trainer.jsonl. `kind` is as of make_encoder_tasks.py. A process has TorchScript compile what tells
distances apart in its first forward, so that its first step differs from the others.
"""
import json
import sys

import make_trl

MIXED, FULL, TRAINER = {'precision': 'bf16-mixed', 'optimizer': 'adamw-fused'}, {'checkpointing': 'full'}, {'loop': 'trainer'}
DDP = {**TRAINER, 'world': 2, 'sharding': 'ddp'}
FEW, EVERY = ['query_proj', 'value_proj'], ['query_proj', 'key_proj', 'value_proj', 'dense']
HOST = {'made_on': 'host'}


def lora(rank, targets, **more):
    return {'lora': {'r': rank, 'target_modules': targets, **more}}


def name_of(case):
    options = case.get('lora', {})
    marks = [case['kind'] in ('tokens', 'answers') and case['kind'], make_trl.name_of({**case, 'attention': 'sdpa'}), case['made_on'] == 'host' and 'host', case.get('dropout') == 0 and 'no-dropout',
             case.get('clip') and case['loop'] == 'plain' and 'clip', len(options.get('target_modules', '')) > 2 and 'all',
             'modules_to_save' in options and 'saved', case.get('ddp') and '-'.join(case['ddp']), case.get('evaluation', {}).get('every') and 'every',
             case.get('evaluation', {}).get('start') and 'start']
    return '/'.join(mark for mark in marks if mark)


def case(config, batch, seq, **more):
    classifies = config.endswith('-class') or config == 'deberta-v3-small'
    made = {'kind': more.get('kind', 'classify' if classifies else 'mlm'), 'config': f'configs/{config}.json', 'precision': 'fp32', 'optimizer': 'adamw',
            'checkpointing': 'none', 'attention': 'eager', 'compute_capability': 80, 'batch': batch, 'seq': seq, 'made_on': 'gpu',
            'loop': 'plain', **more}
    if made['loop'] != 'plain':
        made = {**made, 'made_on': more.get('made_on', 'host'), 'clip': 1.0}
    return {'id': name_of(made), **made}


def cases_of(config):
    """Of each model"""
    yield case(config, 2, 64)
    yield case(config, 3, 97, **MIXED)
    yield case(config, 3, 61, **MIXED, **FULL)
    yield case(config, 2, 33, precision='fp16-mixed')
    yield case(config, 2, 100, precision='bf16', optimizer='sgd')
    yield case(config, 3, 75, **MIXED, padded=True)
    yield case(config, 2, 96, **MIXED, **TRAINER, accumulation=2)
    yield case(config, 2, 64, **MIXED, **TRAINER, **FULL, padded=True)
    yield case(config, 2, 40, **MIXED, **TRAINER, evaluation={'batch': 5})


def of_tokens(config, kind):
    """Classes of each token, or where an answer begins and ends"""
    yield case(config, 2, 64, kind=kind)
    yield case(config, 3, 75, kind=kind, **MIXED, **FULL, padded=True)
    yield case(config, 2, 64, kind=kind, precision='bf16', optimizer='sgd')
    yield case(config, 2, 96, kind=kind, **MIXED, **TRAINER, accumulation=2)
    yield case(config, 2, 40, kind=kind, **MIXED, **TRAINER, padded=True, evaluation={'batch': 5})
    yield case(config, 2, 64, kind=kind, **MIXED, **DDP, weights='bf16', **lora(8, FEW))


def cases():
    for kind in ('tokens', 'answers'):
        yield from of_tokens('x-deberta', kind)
    for config in ('x-deberta', 'x-deberta-class', 'x-deberta-odd', 'x-deberta-odd-class'):
        yield from cases_of(config)
    first, second, odd = 'x-deberta', 'x-deberta-class', 'x-deberta-odd'
    for config in ('x-deberta-own', 'x-deberta-plain'):
        yield case(config, 2, 80)
        yield case(config, 2, 80, **MIXED, **TRAINER)
    yield case('x-deberta-own', 2, 60, precision='bf16', **FULL)
    yield case('x-deberta-own', 2, 60, **MIXED, **lora(8, EVERY + ['pos_key_proj', 'pos_query_proj']), weights='bf16')
    yield case(first, 1, 1)
    yield case(second, 1, 7, precision='bf16', **FULL)
    yield case(first, 1, 300, **MIXED)
    yield case(first, 6, 256, **MIXED, **FULL, compute_capability=90)
    yield case(second, 4, 130, precision='bf16', compute_capability=90)
    yield case(first, 2, 129, precision='fp16-mixed', **FULL, compute_capability=75)
    yield case(first, 2, 64, **MIXED, dropout=0)
    yield case(second, 2, 64, precision='fp32', dropout=0, **FULL)
    yield case(first, 3, 100, precision='bf16', optimizer='adafactor', **FULL, **HOST)
    yield case(second, 2, 100, precision='bf16', optimizer='adamw-8bit', compute_capability=86)
    yield case(first, 3, 64, **MIXED, **HOST, accumulation=2, clip=True)
    yield case(second, 2, 64, precision='fp16')
    yield case(first, 2, 64, **MIXED, weights='fp16')
    yield case(second, 2, 64, **MIXED, **TRAINER, weights='fp16', padded=True)
    yield case(first, 2, 64, **MIXED, **TRAINER, weights='bf16')
    yield case(first, 2, 96, **MIXED, weights='bf16', **HOST, **lora(8, EVERY, dropout=0.1))
    yield case(second, 2, 96, precision='bf16', **FULL, **lora(4, FEW))
    yield case(first, 2, 96, **lora(8, FEW, dora=True))
    yield case(second, 2, 64, **MIXED, **TRAINER, weights='bf16', **lora(8, FEW, modules_to_save=['classifier']))
    yield case(second, 2, 64, **MIXED, **TRAINER, **FULL, **lora(8, FEW), padded=True)
    yield case(odd, 2, 64, **MIXED, **TRAINER, **lora(8, EVERY, dropout=0.05))
    yield case(first, 3, 40, **MIXED, **DDP, accumulation=2)
    yield case(second, 2, 64, **MIXED, **DDP, **FULL)
    yield case(odd, 2, 64, **MIXED, **DDP, padded=True, ddp={'find_unused_parameters': False})
    yield case(second, 2, 64, **MIXED, **DDP, weights='bf16', **lora(8, FEW))
    yield case(first, 2, 64, precision='fp32', **DDP)
    yield case(second, 2, 64, **MIXED, **TRAINER, **FULL, padded=True, evaluation={'batch': 7, 'every': 2})
    yield case(first, 2, 64, **MIXED, **TRAINER, evaluation={'batch': 3, 'every': 2, 'start': True})
    yield case(second, 2, 64, **MIXED, **TRAINER, evaluation={'batch': 4, 'every': 2, 'keeps': 'argmax'})
    yield case(second, 2, 64, **MIXED, **TRAINER, arguments={'label_smoothing_factor': 0.1})
    yield case(first, 2, 64, **MIXED, **TRAINER, arguments={'label_smoothing_factor': 0.1}, padded=True, evaluation={'batch': 3})
    yield case(first, 2, 64, precision='fp16-mixed', **TRAINER)
    yield case('deberta-v3-small', 8, 128, **MIXED, **TRAINER)
    yield case('deberta-v3-small', 4, 512, precision='fp32', **FULL)


if __name__ == '__main__':
    made = make_trl.joined(sys.argv[1], list(cases())) if len(sys.argv) > 1 else cases()
    for one in made:
        print(json.dumps(one))
