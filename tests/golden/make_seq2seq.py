"""What training allocates of models of an encoder and a decoder, case by case, on plimsoll's virtual GPU: writes the cases,
and joins them with the figures.

    python make_seq2seq.py > seq2seq_cases.jsonl
    plimsoll exec --device sim:GPU,placement=ascending --observe -- VENV/bin/python ../virtual/programs/golden.py \\
        seq2seq_cases.jsonl ID [ID ...]                  and with torchrun as make_trl.py says
    python make_seq2seq.py FIGURES > seq2seq.jsonl       FIGURES: those lines

VENV as of make_trl.py. The fields are those of more.jsonl and trainer.jsonl, with these more: `seq` counts the tokens of a
row's source, which the encoder reads, `target_seq` those of its target, whose labels are not the source's; `use_cache`: the
configuration says so, as published ones do, and the decoder keeps keys and values while it trains. Trainer's batches are of
DataCollatorForSeq2Seq, which knows the model (`../virtual/programs/rows.py`); where they are `padded` the last row's source
and its target are one token short.
"""
import json
import sys

import make_trl

MIXED, FULL, CACHE = {'precision': 'bf16-mixed', 'optimizer': 'adamw-fused'}, {'checkpointing': 'full'}, {'use_cache': True}
EAGER, TRAINER = {'attention': 'eager'}, {'loop': 'trainer'}
DDP = {**TRAINER, 'world': 2, 'sharding': 'ddp'}
FEW, EVERY = ['q', 'v'], ['q', 'k', 'v', 'o', 'wi', 'wi_0', 'wi_1', 'wo']
BARTS = ['q_proj', 'v_proj'], ['k_proj', 'v_proj', 'q_proj', 'out_proj', 'fc1', 'fc2']


def lora(rank, targets, **more):
    return {'lora': {'r': rank, 'target_modules': targets, **more}}


def name_of(case):
    marks = [make_trl.name_of(case), f't{case["target_seq"]}', case.get('use_cache') and 'cache', case['made_on'] == 'host' and 'host',
             case.get('clip') and case['loop'] == 'plain' and 'clip', len(case.get('lora', {}).get('target_modules', '')) > 2 and 'all',
             case.get('ddp') and '-'.join(case['ddp']), case.get('evaluation', {}).get('every') and 'every']
    return '/'.join(mark for mark in marks if mark)


def case(config, batch, seq, target, **more):
    made = {'kind': 'seq2seq', 'config': f'configs/{config}.json', 'precision': 'fp32', 'optimizer': 'adamw',
            'checkpointing': 'none', 'attention': 'sdpa', 'compute_capability': 80, 'batch': batch, 'seq': seq,
            'target_seq': target, 'made_on': 'gpu', 'loop': 'plain', **more}
    if made['loop'] != 'plain':
        made = {**made, 'made_on': more.get('made_on', 'host'), 'clip': 1.0}
    return {'id': name_of(made), **made}


def cases_of(first, second, linears=(FEW, EVERY)):
    few, every = linears
    for config in (first, second):
        yield case(config, 2, 65, 33)
        yield case(config, 2, 64, 32, **CACHE)
        yield case(config, 3, 128, 40, **MIXED, **CACHE)
        yield case(config, 3, 128, 40, **MIXED, **FULL, **CACHE)
        yield case(config, 2, 33, 65, **EAGER, precision='fp16-mixed', **CACHE)
        yield case(config, 2, 100, 30, precision='bf16', optimizer='sgd', **CACHE)
        yield case(config, 2, 96, 24, **MIXED, padded=True, **CACHE)
        yield case(config, 3, 61, 17, **MIXED, **FULL, padded=True)
        yield case(config, 2, 96, 24, **MIXED, **TRAINER, accumulation=2, **CACHE)
        yield case(config, 2, 64, 32, **MIXED, **TRAINER, **FULL, **CACHE)
        yield case(config, 2, 64, 32, **MIXED, **TRAINER, weights='bf16', padded=True, **CACHE)
        yield case(config, 2, 64, 32, **MIXED, **TRAINER, **FULL, weights='bf16', **lora(8, few), **CACHE)
        yield case(config, 3, 40, 24, **MIXED, **DDP, accumulation=2, **CACHE)
        yield case(config, 2, 64, 32, **MIXED, **TRAINER, evaluation={'batch': 5}, **CACHE)
    yield case(first, 1, 1, 1, **CACHE)
    yield case(first, 1, 200, 3)
    yield case(first, 1, 3, 200, **FULL, **CACHE)
    yield case(second, 1, 7, 9, precision='bf16', **EAGER, **FULL)
    yield case(first, 5, 72, 16, **EAGER, **MIXED, padded=True, **FULL, **CACHE)
    yield case(second, 2, 72, 16, **EAGER, **MIXED, padded=True, **CACHE)
    yield case(first, 2, 500, 64, **MIXED, **CACHE, compute_capability=90)
    yield case(second, 2, 300, 64, **MIXED, **FULL, **CACHE, compute_capability=90)
    yield case(first, 2, 129, 64, precision='bf16', **FULL, **CACHE, compute_capability=90)
    yield case(first, 2, 129, 63, precision='fp16-mixed', **FULL, **CACHE, compute_capability=75)
    yield case(first, 3, 100, 50, precision='bf16', optimizer='adafactor', **FULL, **EAGER, made_on='host')
    yield case(second, 2, 100, 50, precision='bf16', optimizer='adamw-8bit', compute_capability=86, **CACHE)
    yield case(first, 3, 128, 32, **MIXED, made_on='host', accumulation=2, clip=True, **CACHE)
    yield case(second, 2, 96, 32, **MIXED, weights='bf16', made_on='host', **lora(8, every, dropout=0.1), **CACHE)
    yield case(first, 2, 96, 32, precision='bf16', **FULL, **lora(4, every), **CACHE)
    yield case(first, 2, 96, 32, precision='fp32', **lora(8, few, dora=True), **CACHE)
    yield case(first, 2, 64, 32, **MIXED, **DDP, **FULL, **CACHE)
    yield case(second, 2, 64, 32, **MIXED, **DDP, weights='bf16', **lora(8, few), **CACHE)
    yield case(first, 2, 64, 32, **MIXED, **DDP, padded=True, ddp={'find_unused_parameters': False}, **CACHE)
    yield case(second, 2, 64, 32, **MIXED, **TRAINER, **FULL, padded=True, evaluation={'batch': 7, 'every': 2}, **CACHE)
    yield case(first, 2, 64, 32, **MIXED, **TRAINER, arguments={'label_smoothing_factor': 0.1}, **CACHE)
    yield case(second, 3, 64, 32, precision='bf16', optimizer='adafactor', **TRAINER, arguments={'label_smoothing_factor': 0.1},
               padded=True, evaluation={'batch': 3})
    yield case(second, 2, 64, 32, precision='fp32', **TRAINER, **EAGER, **CACHE)


def bases_in_4_bits(first, second):
    nf4 = {'weights': 'bf16', 'quantization': {'type': 'nf4', 'double': True, 'compute': 'bf16'}}
    yield case(first, 2, 64, 32, **MIXED, **TRAINER, **FULL, **nf4, **lora(8, BARTS[0]), **CACHE)
    yield case(second, 2, 64, 32, **MIXED, **nf4, **lora(8, BARTS[1]), **CACHE)


def cases():
    yield from cases_of('x-t5', 'x-t5-odd')
    yield case('x-mt5', 2, 65, 33, **MIXED, **CACHE)
    yield case('x-mt5', 2, 64, 32, **MIXED, **TRAINER, **FULL, **CACHE)
    yield case('x-mt5', 2, 64, 32, **EAGER, precision='bf16', **CACHE)
    yield case('t5-small', 8, 512, 128, **MIXED, **TRAINER, **CACHE)
    yield case('flan-t5-base', 4, 512, 128, **MIXED, **TRAINER, **FULL, **CACHE)
    yield from cases_of('x-bart', 'x-bart-odd', BARTS)
    yield from bases_in_4_bits('x-bart', 'x-bart-odd')
    yield case('bart-base', 4, 1024, 128, **MIXED, **TRAINER, **CACHE)
    yield from cases_of_mbart('x-mbart')


def cases_of_mbart(model):
    yield case(model, 2, 65, 33)
    yield case(model, 3, 128, 40, **MIXED, **CACHE)
    yield case(model, 3, 128, 40, **MIXED, **FULL)
    yield case(model, 2, 33, 65, **EAGER, precision='fp16-mixed')
    yield case(model, 2, 100, 30, precision='bf16', optimizer='sgd')
    yield case(model, 2, 50, 30, precision='fp16')
    yield case(model, 2, 96, 24, **MIXED, padded=True)
    yield case(model, 1, 40, 1)
    yield case(model, 2, 96, 24, **MIXED, **TRAINER, accumulation=2, **CACHE)
    yield case(model, 2, 64, 32, **MIXED, **TRAINER, **FULL, padded=True)
    yield case(model, 2, 64, 32, **MIXED, **TRAINER, **FULL, weights='bf16', **lora(8, BARTS[0]))
    yield case(model, 2, 96, 32, precision='bf16', **FULL, **lora(4, BARTS[1]))
    yield case(model, 2, 64, 32, **MIXED, **TRAINER, evaluation={'batch': 5}, **CACHE)
    yield case(model, 2, 64, 32, **MIXED, **TRAINER, arguments={'label_smoothing_factor': 0.1})
    yield case(model, 2, 64, 32, **MIXED, **DDP, **FULL)
    yield from bases_in_4_bits(model, model)


if __name__ == '__main__':
    made = make_trl.joined(sys.argv[1], list(cases())) if len(sys.argv) > 1 else cases()
    for one in made:
        print(json.dumps(one))
