"""What encoders allocate that classify tokens (`kind`: `tokens`) or find answers (`answers`), and those that came after
encoders.jsonl, in a plain loop and with transformers' Trainer, case by case, on plimsoll's virtual GPU: writes the cases,
and joins them with the figures, as make_trl.py does.

    python make_encoder_tasks.py > encoder_tasks_cases.jsonl
    (golden.py, as make_trl.py says)
    python make_encoder_tasks.py --join FIGURES > encoder_tasks.jsonl

`labels` are the classes of a token or of a row; an answer has two, where it begins and where it ends.
"""
import json
import sys

import make_trl

MIXED, FULL, EAGER = {'precision': 'bf16-mixed'}, {'checkpointing': 'full'}, {'attention': 'eager'}
TRAINER = {'loop': 'trainer'}
ODD = {'x-bert': 'x-bert-untied', 'x-roberta': 'x-roberta-class', 'x-distilbert': 'x-distilbert-class',
       'x-modernbert': 'x-modernbert-odd', 'x-electra': 'x-electra-odd', 'x-esm': 'x-esm-odd',
       'x-albert': 'x-albert-odd', 'x-mpnet': 'x-mpnet-odd'}
QUERIES = {'x-distilbert': ['q_lin', 'v_lin'], 'x-modernbert': ['Wqkv'],
           'x-mpnet': ['q', 'v'], 'x-mpnet-odd': ['q', 'k', 'v', 'o']}


def case(config, kind, batch, seq, **more):
    made = make_trl.case(config, batch, seq, **{'kind': kind, 'loop': 'plain', 'precision': 'fp32', 'made_on': 'gpu',
                                                'optimizer': 'adamw', **(EAGER if 'mpnet' in config else {}), **more})
    if made['loop'] == 'plain':
        made.pop('clip')
    else:
        made['made_on'] = more.get('made_on', 'host')
    adapter = more.get('lora', {})
    marks = [kind, more.get('labels') and f'l{more["labels"]}', adapter.get('task_type'), 'modules_to_save' in adapter and 'saved']
    made['id'] = '/'.join([made['id'], *(mark for mark in marks if mark)])
    return made


def lora(config, **more):
    return {'lora': {'r': 8, 'target_modules': QUERIES.get(config, ['query', 'value']), **more}}


def of_each(config, kind):
    """Plain loops, then Trainer's, of a model and of an odd one"""
    odd = ODD.get(config, config)
    of_tokens = {'labels': 9} if kind == 'tokens' else {}
    of_odd = {'labels': 2} if kind == 'answers' and odd.endswith('-class') else of_tokens  # whose config.json has five
    yield case(config, kind, 4, 64)
    yield case(config, kind, 5, 127, **MIXED, optimizer='adamw-fused', **of_tokens)
    yield case(config, kind, 3, 100, precision='bf16', **EAGER)
    yield case(odd, kind, 4, 64, precision='fp16-mixed', **FULL, **of_odd)
    yield case(odd, kind, 3, 77, **MIXED, **FULL, padded=True, **of_odd)
    yield case(config, kind, 4, 96, padded=True, optimizer='sgd', accumulation=2)
    yield case(odd, kind, 2, 33, compute_capability=90, **of_odd)
    yield case(config, kind, 8, 64, **TRAINER, **MIXED, optimizer='adamw-fused', **of_tokens)
    yield case(odd, kind, 4, 96, **TRAINER, **FULL, optimizer='adamw-fused', accumulation=2, **of_odd)
    yield case(config, kind, 4, 96, **TRAINER, precision='fp16-mixed', padded=True, accumulation=3)
    yield case(config, kind, 3, 64, **TRAINER, weights='bf16', **MIXED, **lora(config, **peft_of(kind)))
    yield case(config, kind, 4, 64, **TRAINER, **MIXED, sharding='ddp', world=2, accumulation=2)
    yield case(config, kind, 4, 64, **TRAINER, **MIXED, evaluation={'batch': 8, 'batches': 3})


def peft_of(kind):
    known = {'tokens': 'TOKEN_CLS', 'answers': 'QUESTION_ANS', 'classify': 'SEQ_CLS'}
    return {'task_type': known[kind]} if kind in known else {}


def of_tokens(config):
    """What a program that measures keeps of an evaluation, smoothed labels, and shards"""
    measured = {'batch': 4, 'batches': 3, 'every': 2}
    yield case(config, 'tokens', 3, 64, **TRAINER, **MIXED, evaluation={**measured, 'keeps': 'logits'}, labels=9)
    yield case(config, 'tokens', 3, 64, **TRAINER, **MIXED, evaluation={**measured, 'keeps': 'argmax'}, labels=9)
    yield case(config, 'tokens', 3, 64, **TRAINER, arguments={'label_smoothing_factor': 0.1})
    for sharding in ('zero2', 'zero3') + (('fsdp',) if config == 'x-distilbert' else ()):
        yield case(config, 'tokens', 4, 64, **TRAINER, **MIXED, **FULL, sharding=sharding, world=2, accumulation=2)


def of_one_label():
    """Regressions of a row"""
    for config in ('x-bert-class', 'x-roberta-class', 'x-modernbert-class', 'x-llama-odd'):
        yield case(config, 'classify', 4, 64, labels=1)
        yield case(config, 'classify', 3, 100, **MIXED, **FULL, labels=1)
        yield case(config, 'classify', 3, 64, **TRAINER, **MIXED, padded=True, accumulation=2, labels=1)
    yield case('x-bert-class', 'classify', 1, 64, precision='fp16-mixed', labels=1)
    yield case('x-bert-class', 'classify', 3, 64, **TRAINER, labels=1,
               evaluation={'batch': 4, 'batches': 3, 'every': 2, 'keeps': 'logits'})


def of_later(config, kinds, *others):
    """What was compared of a family that came later"""
    odd, measured = ODD[config], {'batch': 4, 'batches': 3, 'every': 2}
    for kind in kinds:
        yield from of_each(config, kind)
    for keeps in ('logits', 'argmax'):
        yield case(config, 'tokens', 3, 64, **TRAINER, **MIXED, evaluation={**measured, 'keeps': keeps}, labels=9)
    for made in (config, odd):
        yield case(made, 'mlm', 3, 64, **TRAINER, arguments={'label_smoothing_factor': 0.1})
        yield case(made, 'mlm', 3, 77, **MIXED, **FULL, **lora(config))
        yield case(made, 'classify', 3, 77, **lora(config, task_type='SEQ_CLS'))
        yield case(made, 'classify', 3, 100, **MIXED, **FULL, labels=1)
        yield case(made, 'mlm', 3, 64, precision='fp16')
    yield case(config, 'classify', 3, 64, **TRAINER, **MIXED, padded=True, accumulation=2, labels=1)
    yield case(config, 'classify', 3, 64, **TRAINER, **FULL, weights='bf16', **MIXED, **lora(config, task_type='SEQ_CLS'))
    yield case(odd, 'classify', 3, 64, **TRAINER, **MIXED, sharding='ddp', world=2)
    yield case(config, 'mlm', 3, 64, compute_capability=75, precision='fp16-mixed', padded=True)
    for other in others:
        yield case(other, 'mlm', 5, 127, **MIXED)
        yield case(other, 'mlm', 4, 96, precision='bf16', **FULL, padded=True)
        yield case(other, 'tokens', 4, 96, **TRAINER, padded=True, accumulation=2)


def of_unchecked(config):
    """Of a family that transformers does not checkpoint"""
    odd, measured = ODD[config], {'batch': 4, 'batches': 3, 'every': 2}
    for kind in ('mlm', 'classify', 'tokens', 'answers'):
        yield case(config, kind, 5, 127, **MIXED, optimizer='adamw-fused')
        yield case(odd, kind, 3, 77, padded=True)
        yield case(config, kind, 4, 96, **TRAINER, padded=True, accumulation=2)
    yield case(config, 'mlm', 3, 100, precision='bf16', attention='eager')
    yield case(odd, 'mlm', 4, 64, precision='fp16-mixed', padded=True, compute_capability=75)
    yield case(odd, 'mlm', 2, 33, precision='fp16', compute_capability=90, optimizer='sgd', accumulation=2)
    yield case(odd, 'mlm', 3, 77, **MIXED, **lora(odd))
    yield case(config, 'mlm', 3, 64, **TRAINER, weights='bf16', **MIXED, **lora(config))
    yield case(config, 'classify', 3, 64, **TRAINER, **MIXED, **lora(config, task_type='SEQ_CLS'))
    yield case(odd, 'mlm', 8, 64, **TRAINER, **MIXED, optimizer='adamw-fused')
    yield case(config, 'mlm', 4, 64, **TRAINER, **MIXED, sharding='ddp', world=2, accumulation=2)
    yield case(odd, 'mlm', 3, 64, **TRAINER, arguments={'label_smoothing_factor': 0.1})
    yield case(config, 'mlm', 4, 64, **TRAINER, precision='fp16-mixed', evaluation={'batch': 8, 'batches': 3})
    yield case(config, 'tokens', 3, 64, **TRAINER, **MIXED, evaluation={**measured, 'keeps': 'argmax'}, labels=9)
    yield case(config, 'classify', 3, 64, **TRAINER, evaluation={**measured, 'keeps': 'logits'}, labels=1)
    yield case(odd, 'classify', 3, 100, **MIXED, labels=1)


def cases():
    for config in ('x-bert', 'x-roberta', 'x-distilbert', 'x-modernbert'):
        for kind in ('tokens', 'answers'):
            yield from of_each(config, kind)
        yield from of_tokens(config)
    for config in ('x-xlm-roberta', 'x-camembert'):  # whose heads are made before the model
        for kind in ('mlm', 'classify', 'tokens', 'answers'):
            yield case(config, kind, 5, 127, **MIXED)
            yield case(config, kind, 4, 96, **TRAINER, padded=True, accumulation=2)
    for config in ('x-roberta-class', 'x-bert-class', 'x-xlm-roberta'):  # the classifier is two linears, or one
        yield case(config, 'classify', 3, 64, **TRAINER, weights='bf16', **MIXED, **lora(config, task_type='SEQ_CLS'))
        yield case(config, 'classify', 3, 64, **TRAINER, **FULL, **lora(config, task_type='SEQ_CLS'))
    for kind in ('mlm', 'classify', 'tokens', 'answers'):
        yield from of_each('x-electra', kind)
    yield from of_one_label()
    yield from of_tokens('x-electra')
    for config in ('x-albert', 'x-mpnet'):
        yield from of_unchecked(config)
    yield from of_later('x-esm', ('mlm', 'classify', 'tokens'), 'x-esm-plain')


if __name__ == '__main__':
    for made in make_trl.joined(sys.argv[2], cases()) if sys.argv[1:2] == ['--join'] else cases():
        print(json.dumps(made))
