"""What training on one row of several documents allocates, case by case, on plimsoll's virtual GPU: writes the cases, and
joins them with the figures.

    python make_onerow.py > onerow_cases.jsonl
    export PYTHONPATH=flash2                             the stand-in for the package flash-attn (make_flash2.py)
    plimsoll exec --device sim:GPU,placement=ascending --observe -- VENV/bin/python ../virtual/programs/golden.py \\
        onerow_cases.jsonl ID [ID ...]                   and with torchrun as make_trl.py says
    python make_onerow.py FIGURES > onerow.jsonl         FIGURES: those lines

VENV as of make_trl.py. The fields are those of trl.jsonl and trainer.jsonl; `batch` samples of `seq` tokens are one row, each
of `documents` documents (1) of one length, which position ids tell: a plain loop is given them, Trainer by transformers'
DataCollatorWithFlattening, SFTTrainer by its own collator: with padding_free, or, of several documents, with packing.
"""
import json
import sys

import make_trl

FLASH = {'attention': 'flash_attention_2'}
FULL, QUERIES = make_trl.FULL, make_trl.QUERIES
lora, quantized = make_trl.lora, make_trl.quantized


def name_of(case):
    parts = [make_trl.name_of(case), f'd{case["documents"]}' if 'documents' in case else None,
             case.get('evaluation', {}).get('keeps')]
    return '/'.join(part for part in parts if part)


def case(loop, config, batch, seq, **more):
    made = {**make_trl.BASE, 'packing': 'one-row', **FLASH, 'loop': loop, 'config': f'configs/{config}.json', 'batch': batch,
            'seq': seq, **more}
    if loop == 'plain':
        made = {**made, 'made_on': made.get('made_on', 'host'), 'clip': False}
    return {'id': name_of(made), **made}


def cases():
    small = 'x-llama-odd'  # grouped heads of 64
    for loop in ('plain', 'trainer', 'trl-sft'):
        yield case(loop, small, 2, 64)
        yield case(loop, small, 1, 64)  # a document alone
        yield case(loop, small, 3, 300, documents=4)
        yield case(loop, small, 3, 300, documents=4, **FULL)
        yield case(loop, small, 2, 300, documents=3, **FULL, use_reentrant=True)
        yield case(loop, small, 2, 300, documents=20, **FULL, accumulation=3, weights='bf16')
        yield case(loop, small, 2, 300, documents=4, **FULL, **lora(8), weights='bf16')
        yield case(loop, small, 2, 300, documents=4, **lora(8, dropout=0.05))
        yield case(loop, small, 2, 300, documents=2, precision='bf16')
        yield case(loop, small, 3, 200, documents=2, attention='sdpa')
        yield case(loop, small, 3, 200, documents=2, attention='sdpa', **FULL)
        yield case(loop, small, 3, 200, attention='eager')
        for family in ('x-gpt2-odd', 'x-opt', 'x-phi', 'x-gemma2', 'x-qwen2-window'):
            yield case(loop, family, 2, 60, documents=2)
            if family != 'x-gemma2' and (family, loop) != ('x-opt', 'trl-sft'):
                yield case(loop, family, 2, 60, documents=2, attention='sdpa')
    for loop in ('trainer', 'trl-sft'):
        yield case(loop, small, 2, 300, documents=4, **FULL, **lora(8), weights='bf16',
                   **quantized('nf4', compute='bf16', double=True))
        yield case(loop, small, 2, 300, documents=4, **FULL, liger=True)
        yield case(loop, small, 2, 300, documents=4, evaluation={'batch': 5, 'batches': 3, 'every': 2})
        yield case(loop, small, 2, 300, documents=4, **FULL, sharding='ddp', world=2, accumulation=2)
        yield case(loop, small, 2, 300, documents=4, sharding='ddp', world=2)
        yield case(loop, small, 2, 300, documents=4, **FULL, **lora(8), weights='bf16', sharding='ddp', world=2)
        yield case(loop, small, 2, 300, documents=4, **FULL, sharding='zero2', world=2)
        yield case(loop, 'smollm2-135m', 4, 1024, documents=8, **FULL)
        yield case(loop, 'qwen2.5-0.5b', 4, 1024, documents=8, **FULL, **lora(16, dropout=0.05), weights='bf16')
        yield case(loop, 'llama-3.2-1b', 2, 4096, documents=32, **FULL, **lora(16, dropout=0.05), weights='bf16')
    yield case('trainer', small, 2, 300, documents=4, evaluation={'batch': 5, 'batches': 3, 'every': 2, 'keeps': 'logits'})
    for rope in ('x-dynamic', 'x-phi3-longrope'):
        yield case('trainer', rope, 3, 200, documents=2)
        yield case('plain', rope, 3, 100, documents=2)  # of a row, but of no document, are more than 64 tokens


if __name__ == '__main__':
    for made in make_trl.joined(sys.argv[1], cases()) if len(sys.argv) > 1 else cases():
        print(json.dumps(made))
