"""What training with cut cross entropy allocates, as axolotl 0.19's plugin patches models, case by case, on plimsoll's virtual
GPU: writes the cases, and joins them with the figures.

    python make_cut_cross_entropy.py > cut_cases.jsonl
    export PYTHONPATH=CUT TORCHINDUCTOR_CACHE_DIR=...    CUT: axolotl-ai-cloud/ml-cross-entropy at 5f0c7a7
    plimsoll exec --device sim:GPU,placement=ascending --observe -- VENV/bin/python ../virtual/programs/golden.py \\
        cut_cases.jsonl ID [ID ...]                      and with torchrun as make_trl.py says
    python make_cut_cross_entropy.py --join FIGURES > cut_cross_entropy.jsonl      FIGURES: those lines

VENV as of make_trl.py. Its kernels of Triton are compiled and not run; each is a second run, which finds those of
TorchInductor in its cache. The fields are those of make_families.py. A whole model has weights in 16 bits, without which
backward fails ("Backwards requires embeddings to be bf16 or fp16"), or gets them from DeepSpeed and FSDP. With ZeRO 3 all
fail ("Cannot free a ZeRO-3 parameter while it is still active in submodules").
"""
import json
import sys

import make_trl
from make_families import FULL, MIXED, QUERIES, case, lora

CUT = {'cut_cross_entropy': True}
TRAINER = {**MIXED, **CUT, 'loop': 'trainer', 'weights': 'bf16'}
PLAIN = {**CUT, 'precision': 'bf16'}
NF4 = {'quantization': {'type': 'nf4', 'double': True, 'compute': 'bf16', 'prepare': False}}
ZERO = {name: {'world': 2, 'sharding': name} for name in ('zero1', 'zero2')}
DDP, FSDP = {'world': 2, 'sharding': 'ddp'}, {'world': 2, 'sharding': 'fsdp'}
# scaled before the head or capped behind it, a bias, experts, and those that have the forward of llama
FAMILIES = ('mistral-window', 'qwen2-window', 'qwen3', 'gemma', 'gemma2', 'gemma3', 'phi', 'phi3', 'starcoder2', 'smollm3',
            'granite', 'olmo', 'olmo2', 'olmo3', 'stablelm', 'cohere', 'cohere2', 'glm', 'glm4', 'qwen3-5', 'opt', 'mixtral',
            'qwen2-moe', 'qwen3-moe', 'gpt-oss')


def of_family(name):
    config, eager = f'x-{name}', {'attention': 'eager'} if name == 'gpt-oss' else {}
    yield case(config, 2, 65, **PLAIN, **eager)
    yield case(config, 3, 64, **TRAINER, **eager, accumulation=2)
    if FAMILIES.index(name) % 2:
        yield case(config, 2, 64, **TRAINER, **eager, **FULL, **lora(8, QUERIES))


def of_llama():
    for precision in ('bf16', 'fp16'):
        for config in ('x-llama-odd', 'x-llama-2l'):
            yield case(config, 2, 64, **{**PLAIN, 'precision': precision})
    yield case('x-llama-odd', 3, 300, **PLAIN, **FULL, accumulation=2)
    yield case('x-llama-2l', 2, 300, **{**PLAIN, **MIXED}, weights='bf16', **FULL)
    yield case('x-llama-2l', 2, 64, **{**TRAINER, 'precision': 'fp16-mixed', 'weights': 'fp16'}, **lora(8, QUERIES))
    for gpu in (86, 90):
        yield case('x-llama-odd', 2, 64, **{**PLAIN, 'precision': 'fp16'}, compute_capability=gpu)
        yield case('x-llama-2l', 2, 100, **PLAIN, compute_capability=gpu, **lora(8, QUERIES))
    yield case('x-llama-wide', 2, 64, **TRAINER)
    yield case('smollm2-135m', 2, 1024, **TRAINER, **FULL)
    yield case('qwen2.5-0.5b', 2, 2048, **TRAINER, **FULL)
    yield case('llama-3.2-1b', 1, 4096, **TRAINER, **FULL, **lora(16, QUERIES))
    yield case('x-llama-odd', 3, 64, **TRAINER, padded=True)
    yield case('x-llama-2l', 3, 300, **TRAINER, **FULL, padded=True, accumulation=2, **lora(8, QUERIES))
    yield case('x-llama-2l', 2, 128, **TRAINER, packing='one-row', documents=2, attention='flash_attention_2')


def of_loops():
    for config in ('x-llama-odd', 'x-llama-2l'):
        yield case(config, 2, 64, **TRAINER, **FULL, **NF4, **lora(8, QUERIES))
        yield case(config, 2, 100, **TRAINER, evaluation={'batch': 5})
        yield case(config, 2, 100, **TRAINER, evaluation={'batch': 3}, **lora(8, QUERIES))
        yield case(config, 2, 64, **TRAINER, **DDP, accumulation=2)
        yield case(config, 2, 64, **TRAINER, **DDP, **FULL, **lora(8, QUERIES))
        for name in ZERO:
            yield case(config, 2, 64, **TRAINER, **ZERO[name], accumulation=2 if name == 'zero2' else 1)
            yield case(config, 2, 100, **{**TRAINER, 'weights': 'fp32'}, **ZERO[name], **FULL)
        yield case(config, 2, 64, **TRAINER, **FSDP)
        yield case(config, 2, 100, **{**TRAINER, 'weights': 'fp32'}, **FSDP, **FULL, accumulation=2)
    yield case('x-llama-odd', 2, 64, **TRAINER, **FSDP, **lora(8, QUERIES))
    yield case('x-llama-2l', 2, 64, **TRAINER, **lora(8, QUERIES, dora=True))
    yield case('x-llama-2l', 2, 64, **TRAINER, **lora(16, QUERIES, modules_to_save=['lm_head', 'embed_tokens']))
    yield case('x-llama-2l', 2, 64, **TRAINER, **lora(4, [*QUERIES, 'lm_head']))
    yield case('x-llama-2l', 2, 100, **TRAINER, **DDP, evaluation={'batch': 4})
    yield case('x-llama-odd', 2, 64, **TRAINER, **FULL, use_reentrant=True)


def cases():
    yield from of_llama()
    for name in FAMILIES:
        yield from of_family(name)
    yield from of_loops()


if __name__ == '__main__':
    for one in make_trl.joined(sys.argv[2], list(cases())) if sys.argv[1:2] == ['--join'] else cases():
        print(json.dumps(one))
