"""What training allocates with what axolotl (0.19.0) makes of a model, its fused LoRA functions and its casts of embeddings,
norms and the head, case by case, on plimsoll's virtual GPU: writes the cases, and joins them with the figures.

    python make_axolotl.py > axolotl_cases.jsonl
    export PYTHONPATH=flash2:AXOLOTL     AXOLOTL: the unpacked wheel, and beside it addict and colorama (pip --target)
    plimsoll exec --device sim:GPU,placement=ascending --observe -- VENV/bin/python ../virtual/programs/golden.py \\
        axolotl_cases.jsonl ID [ID ...]                 and with torchrun as make_trl.py says
    python make_axolotl.py --join FIGURES > axolotl.jsonl      FIGURES: those lines

VENV as of make_trl.py. The fields are those of make_families.py; `kernels` of an adapter are the functions that stand in the
place of peft's modules, `upcast` is train.upcast. olmo3: PYTHONHASHSEED=0, as there.
"""
import json
import sys

import make_gemma3
import make_trl
import make_vision
from make_families import ATTENTION, FULL, GATED, MIXED, QUERIES, case, lora

HALF = {**MIXED, 'weights': 'bf16', 'loop': 'trainer', 'made_on': 'loaded'}
NF4 = {'quantization': {'type': 'nf4', 'double': True, 'compute': 'bf16'}, 'upcast': 'undone'}
FLASH = {'attention': 'flash_attention_2'}
ROW = {**FLASH, 'packing': 'one-row', 'documents': 2}
KERNELS = ['mlp', 'qkv', 'o']
LINEARS = ATTENTION + GATED
REENTERS = {**FULL, 'use_reentrant': True}
DDP = {'sharding': 'ddp', 'world': 2, 'ddp': {'find_unused_parameters': False}}  # as axolotl has it


def fused(rank=8, targets=LINEARS, kernels=KERNELS, **more):
    return lora(rank, targets, kernels=kernels, **more)


def kernels():
    dense = ('x-llama-2l', 'x-llama-odd', 'x-mistral-window', 'x-qwen2-window', 'x-qwen3', 'x-gemma', 'x-gemma2', 'x-gemma3',
             'x-granite', 'x-smollm3', 'x-cohere2')
    for at, config in enumerate(dense):
        yield case(config, 2, 128, **HALF, **fused(dropout=0.05))
        yield case(config, 3, 65, **HALF, **fused(16), **(REENTERS if at % 2 else FULL), accumulation=2)
        yield case(config, 2, 64, **HALF, **fused(), **NF4, **(FULL if at % 2 else REENTERS))
    for config, targets in (('x-glm', [*ATTENTION, 'down_proj']), ('x-glm4', ATTENTION), ('x-mixtral', ATTENTION),
                            ('x-qwen2-moe', ATTENTION), ('x-qwen3-moe', ATTENTION), ('x-gpt-oss', ATTENTION)):
        eager = {'attention': 'eager'} if config == 'x-gpt-oss' else {}
        experts = {'made_on': 'host'} if config in ('x-mixtral', 'x-qwen2-moe', 'x-qwen3-moe', 'x-gpt-oss') else {}
        yield case(config, 2, 64, **{**HALF, **experts}, **eager, **fused(8, targets, dropout=0.1))


def parts():
    """One function alone, and beside projections that have no adapters"""
    for number, one in enumerate((['mlp'], ['qkv'], ['o'], ['qkv', 'o'])):
        yield numbered(case('x-qwen3', 2, 96, **HALF, **fused(8, LINEARS, one)), number)
    yield numbered(case('x-llama-odd', 2, 96, **HALF, **fused(8, QUERIES)), 4)
    yield numbered(case('x-qwen3', 2, 96, **HALF, **fused(8, QUERIES)), 5)
    yield numbered(case('x-gemma3', 2, 96, **HALF, **fused(8, ['o_proj', *GATED])), 6)
    yield numbered(case('x-olmo2', 2, 96, **HALF, **fused(8, LINEARS, ['mlp'])), 7)
    yield numbered(case('x-stablelm', 2, 96, **{**HALF, 'precision': 'bf16'}, **fused(8, LINEARS, ['mlp'], dropout=0.1)), 8)
    yield numbered(case('x-starcoder2', 2, 96, **{**HALF, 'precision': 'bf16'}, **fused(8, ATTENTION, dropout=0.1)), 9)
    yield numbered(case('x-qwen3-5', 2, 96, **HALF, **fused(8, [*ATTENTION, 'up_proj', 'down_proj'])), 10)


def numbered(made, number):
    return {**made, 'id': f'{made["id"]}/part{number}'}


def others():
    plain = {'made_on': 'gpu', 'loop': 'plain', 'weights': 'bf16'}
    yield case('x-llama-odd', 2, 65, **fused(), **MIXED, **plain)
    yield case('x-qwen3', 2, 65, **fused(dropout=0.1), precision='fp32')
    yield case('x-llama-odd', 3, 64, **fused(dropout=0.1), precision='bf16', **FULL)
    yield case('x-llama-odd', 2, 100, precision='fp16-mixed', optimizer='adamw-fused', weights='fp16', loop='trainer',
               made_on='loaded', compute_capability=75, **fused())
    yield case('x-llama-2l', 2, 128, **HALF, **FLASH, **fused(dropout=0.05), compute_capability=90)
    yield case('x-mistral-window', 2, 128, **HALF, **ROW, **fused(dropout=0.05), **REENTERS)
    yield case('x-qwen3', 2, 256, **HALF, **ROW, **fused(32, dropout=0.05), **NF4, **REENTERS, accumulation=2)
    yield case('x-llama-2l', 2, 64, **HALF, **fused(), padded=True)
    yield case('x-llama-2l', 2, 64, **HALF, **fused(dropout=0.05), evaluation={'batch': 4}, **FULL)
    yield case('x-llama-2l', 2, 64, **{**HALF, 'optimizer': 'adamw-8bit'}, **fused(), **NF4, **REENTERS)
    yield case('x-llama-2l', 2, 64, **HALF, **fused(), quantization={'type': 'nf4', 'compute': 'bf16', 'storage': 'bf16'},
               upcast='undone')
    yield case('x-llama-2l', 2, 64, **HALF, **fused(dropout=0.05), liger=True)
    yield case('x-llama-2l', 2, 64, **{**HALF, 'made_on': 'host'}, **fused(dropout=0.05), **FULL, **DDP)
    yield case('x-qwen3', 2, 64, **{**HALF, 'made_on': 'host'}, **fused(), **REENTERS, **DDP, accumulation=2)
    yield case('x-llama-2l', 2, 64, **HALF, **fused(dropout=0.05), sharding='zero2', world=2)
    yield case('x-llama-2l', 2, 64, **HALF, **fused(), **REENTERS, sharding='zero1', world=2, accumulation=2)


def casts():
    for config in ('x-llama-odd', 'x-qwen2-window', 'x-gemma2', 'x-phi', 'x-gpt2-odd', 'x-neox', 'x-olmo2', 'x-cohere2'):
        few = {'x-gpt2-odd': ['c_attn'], 'x-neox': ['query_key_value']}.get(config, QUERIES)
        yield case(config, 2, 65, **HALF, upcast='kept')
        yield case(config, 2, 96, **HALF, **lora(8, few), upcast='undone')
        if config != 'x-gpt2-odd':
            yield case(config, 2, 64, **HALF, **lora(8, few), **NF4, **REENTERS)
    yield case('x-llama-odd', 2, 64, **HALF, **FULL, upcast='kept', accumulation=2)
    yield case('x-llama-odd', 2, 64, **HALF, **FLASH, upcast='undone')
    yield case('x-llama-odd', 3, 64, **{**HALF, 'optimizer': 'adamw'}, upcast='kept')
    yield case('x-qwen3', 3, 64, **{**HALF, 'optimizer': 'adamw-8bit'}, upcast='kept', compute_capability=90)
    yield case('x-llama-odd', 2, 64, **HALF, upcast='kept', sharding='zero2', world=2)
    yield case('x-llama-odd', 2, 64, **HALF, **lora(8, QUERIES), upcast='undone', sharding='zero1', world=2)
    yield case('x-llama-2l', 2, 64, **HALF, **lora(8, QUERIES, modules_to_save=['embed_tokens', 'lm_head']), upcast='undone')
    yield case('x-llama-2l', 2, 64, **HALF, **lora(8, QUERIES, modules_to_save=['embed_tokens', 'lm_head']), **NF4)


def shards():
    """Whole models; of the last with the ranks' parts of other lengths"""
    at = {**MIXED, 'weights': 'bf16', 'loop': 'trainer', 'sharding': 'fsdp', 'world': 2, 'fsdp_plan': 'axolotl'}
    for config in ('x-llama-2l', 'x-qwen3', 'x-llama-odd', 'x-gemma2', 'x-mistral-window', 'x-olmo', 'x-gpt2-odd', 'x-neox'):
        yield case(config, 2, 64, **at)
    for config in ('x-qwen3', 'x-gemma3'):
        yield case(config, 2, 65, **at, **FULL, accumulation=2)
        yield case(config, 2, 64, **at, reshard='no')
        yield case(config, 2, 64, **at, fsdp_config={'cpu_ram_efficient_loading': True})
    yield case('x-llama-2l', 2, 128, **at, **REENTERS, accumulation=2)
    yield case('x-llama-2l', 2, 128, **at, **FLASH, **FULL)
    yield case('x-llama-odd', 2, 64, **{**at, 'weights': 'fp32'})
    yield case('x-qwen3', 2, 64, **at, evaluation={'batch': 4}, compute_capability=90)
    yield case('x-llama-odd', 2, 64, **{**at, 'world': 3}, fsdp_config={'cpu_ram_efficient_loading': True})
    yield case('x-qwen3', 2, 64, **{**at, 'world': 3}, **FULL)
    codes = {'quantization': {'type': 'nf4', 'double': True, 'compute': 'bf16', 'storage': 'bf16', 'prepare': False}}
    for adapters in (fused(), fused(dropout=0.05), lora(8, LINEARS), lora(8, LINEARS, dropout=0.05)):
        drops = 'dropout' in adapters['lora']
        yield case('x-llama-2l', 2, 64, **at, **adapters, **({'accumulation': 2} if drops else {}))
        yield case('x-qwen3', 2, 65, **at, **adapters, **(REENTERS if drops else FULL))
        yield case('x-llama-2l', 2, 128, **at, **adapters, **codes, **({} if drops else FULL))
        yield case('x-llama-odd', 2, 64, **{**at, 'world': 3}, **adapters, **(FULL if drops else {'reshard': 'no'}))
    yield case('x-qwen3', 2, 64, **at, **fused(), fsdp_config={'cpu_ram_efficient_loading': True})
    yield case('x-qwen2-window', 2, 64, **at, **fused(8, [*ATTENTION, 'up_proj']), evaluation={'batch': 4})
    yield case('x-llama-2l', 2, 96, **at, **fused(), **FULL, liger=True, evaluation={'batch': 4})
    yield case('x-llama-2l', 2, 96, **at, **fused(), **FULL, cut_cross_entropy=True, evaluation={'batch': 4})
    yield case('x-llama-2l', 2, 96, **at, cut_cross_entropy=True, accumulation=2)


def towers():
    """Of models with images: functions in the text alone, casts of the tower's norms, too"""
    undone, no_tower = {'upcast': 'undone'}, {'exclude_modules': '.*vision_tower.*'}
    for batch, config, seq, images, more in (
            (2, 'gemma3-vl-small', 200, 1, {**FLASH, **FULL, **NF4, **fused(**no_tower), 'evaluation': {'batch': 3}}),
            (2, 'gemma3-vl-small', 200, 1, {**FULL, **undone, **fused()}),
            (3, 'gemma3-vl-odd', 150, 0, {**REENTERS, **undone, **fused(dropout=0.05, **no_tower)})):
        yield make_gemma3.case(batch, seq, images, config, **{**HALF, **more})
    for config, height, width, more in (
            ('qwen3-vl-small', 128, 256, {**FULL, **undone, **fused()}),
            ('qwen3-vl-odd', 224, 160, {**FLASH, **FULL, **NF4, **fused(dropout=0.05)}),
            ('qwen2-5-vl-small', 140, 252, {**FULL, **undone, **lora(8, LINEARS)}),
            ('qwen2-5-vl-odd', 224, 168, {**FLASH, **FULL, **NF4, **lora(8, ATTENTION)}),
            ('qwen2-5-vl-odd', 224, 168, {'upcast': 'kept'}), ('qwen2-vl-small', 140, 252, {**FULL, 'upcast': 'kept'})):
        yield make_vision.case(config, 2, 150, 1, height, width, **{**HALF, **more})


def cases():
    for made in (*kernels(), *parts(), *others(), *casts(), *shards(), *towers()):
        mark = '/undone' if made.get('upcast') == 'undone' else '/upcast' if 'upcast' in made else ''
        mark += '/axolotl' if 'fsdp_plan' in made else ''
        mark += '/whole' if made.get('reshard') == 'no' else ''
        mark += '/cut' if made.get('cut_cross_entropy') else ''
        kernels_mark = '/fused' if 'kernels' in made.get('lora', {}) else ''
        kernels_mark += '/dropout' if 'fsdp_plan' in made and 'dropout' in made.get('lora', {}) else ''
        yield {**made, 'id': f'{made["id"]}{kernels_mark}{mark}'}


if __name__ == '__main__':
    joins = len(sys.argv) > 1 and sys.argv[1] == '--join'
    for made in make_trl.joined(sys.argv[2], cases()) if joins else cases():
        print(json.dumps(made))
