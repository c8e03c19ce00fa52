"""What training models of images and text (qwen3_5, qwen3_5_moe, gemma3, mistral3, gemma4) allocates of rows of text, case by case, on
plimsoll's virtual GPU: writes the cases, and joins them with the figures.

    python make_text_rows.py > text_rows_cases.jsonl
    export PYTHONPATH=flash2:FLA:AXOLOTL PYTHONHASHSEED=0     as make_flash2.py, make_fla.py and make_axolotl.py say
    plimsoll exec --device sim:GPU,placement=ascending --observe -- VENV/bin/python ../virtual/programs/golden.py \\
        text_rows_cases.jsonl ID [ID ...]                     and with torchrun as make_trl.py says
    python make_text_rows.py --join FIGURES > text_rows.jsonl      FIGURES: those lines

VENV as of make_trl.py. The fields are those of vision.jsonl, trl.jsonl and axolotl.jsonl. Rows with images, and what is done
with gemma3 and mistral3 besides, are in vision.jsonl and gemma3.jsonl.
"""
import json
import sys

import make_axolotl
import make_families
import make_trl
import make_vision
from make_families import ATTENTION, FULL, GATED, MIXED, QUERIES, lora

SMALL, ODD, EXPERTS = 'qwen3-5-small', 'qwen3-5-odd', 'qwen3-5-moe-vl-small'
LINEAR = ['in_proj_qkv', 'in_proj_z', 'out_proj']
LINEARS = [*ATTENTION, *GATED, *LINEAR]
BF16 = {'precision': 'bf16', 'optimizer': 'adamw-fused'}
LOW = {**MIXED, 'weights': 'bf16'}
TRAINER, SFT = {'loop': 'trainer'}, {'loop': 'trl-sft'}
FLASH, ROW = {'attention': 'flash_attention_2'}, {'packing': 'one-row'}
NF4 = {'quantization': {'type': 'nf4', 'double': True, 'compute': 'bf16'}}
NF4_OF_TRL = {'quantization': {**NF4['quantization'], 'prepare': False}}
FLA = {'linear_attention': 'fla'}
SAVED = lora(8, QUERIES, modules_to_save=['embed_tokens', 'lm_head'])
LOADED = {'made_on': 'loaded'}


WHOLE = {SMALL: 'qwen3_5', ODD: 'qwen3_5', EXPERTS: 'qwen3_5_moe'}  # of which AutoModelForCausalLM would build the text alone


def case(config, batch, seq, **more):
    if config in WHOLE:
        more['family'] = WHOLE[config]
    made = make_vision.case(config, batch, seq, 0, **more)
    return {**made, 'id': f'{made["id"]}/{made["linear_attention"]}'} if 'linear_attention' in made else made


def sharded(sharding, world=2):
    return {'sharding': sharding, 'world': world}


def by_attention_and_rows():
    yield case(SMALL, 2, 100, **BF16, **FLASH)
    yield case(ODD, 3, 77, **TRAINER, **LOW, **FULL, **FLASH, padded=True)
    yield case(SMALL, 2, 128, **MIXED, packed=True)
    yield case(ODD, 2, 96, **LOW, **FULL, packed=True, **lora(8, LINEARS))
    yield case(SMALL, 2, 64, **TRAINER, **MIXED, **ROW, documents=2)
    yield case(ODD, 2, 96, **TRAINER, **LOW, **FULL, **FLASH, **ROW, documents=3, **lora(8, LINEARS))
    yield case(SMALL, 2, 192, **SFT, **LOW, **ROW, documents=2)
    yield case(SMALL, 2, 150, **SFT, **LOW, **FULL, **FLASH, **ROW, documents=3, **LOADED, **lora(8, LINEARS))
    yield case(ODD, 3, 130, **SFT, **LOW, **FULL, **ROW, **lora(4, QUERIES), **NF4_OF_TRL)
    yield case(ODD, 2, 96, **SFT, **LOW, **FULL, use_reentrant=True, **FLASH, **ROW, documents=4)
    yield case(SMALL, 2, 100, **TRAINER, **MIXED, arguments={'label_smoothing_factor': 0.1})
    yield case(ODD, 2, 100, **SFT, **MIXED, **FULL, arguments={'label_smoothing_factor': 0.1})
    yield case(SMALL, 2, 100, **SFT, **LOW, **FULL, **SAVED)
    yield case(ODD, 2, 100, **TRAINER, **MIXED, **SAVED)


def by_packages():
    yield case(SMALL, 2, 65, **BF16, **FLA)
    yield case(ODD, 2, 130, **TRAINER, **LOW, **FULL, **FLA, **lora(8, LINEARS))
    yield case(SMALL, 2, 150, **SFT, **LOW, **FULL, **ROW, documents=3, **FLASH, **FLA, **lora(8, LINEARS))
    yield case(ODD, 2, 100, **SFT, **LOW, liger=True, **FLA)
    yield case(SMALL, 2, 100, **TRAINER, **MIXED, **FULL, liger=True)
    yield case(ODD, 2, 64, **TRAINER, **LOW, **FULL, **FLA, evaluation={'batch': 5})


def sharded_cases():
    for config in (SMALL, ODD):
        yield case(config, 2, 100, **TRAINER, **MIXED, **FULL, **sharded('zero2'))
        yield case(config, 2, 100, **TRAINER, **LOW, **FULL, **sharded('zero3'), **lora(8, LINEARS), use_reentrant=True)
        yield case(config, 2, 100, **TRAINER, **LOW, **FULL, **sharded('fsdp'), **lora(8, LINEARS))
    yield case(SMALL, 2, 100, **TRAINER, **MIXED, **sharded('zero3'))
    yield case(ODD, 2, 100, **SFT, **MIXED, **FULL, **sharded('zero3'))
    yield case(SMALL, 2, 100, **SFT, **LOW, **FULL, **sharded('fsdp'))
    yield case(ODD, 2, 100, **TRAINER, **MIXED, **sharded('fsdp'))
    yield case(SMALL, 2, 96, **SFT, **LOW, **FULL, **ROW, documents=2, **FLASH, **sharded('ddp'), **lora(8, LINEARS))


def preferences():
    """DPOTrainer and GRPOTrainer, whose answers come from a stand-in of a vLLM server"""
    dpo, grpo = {'loop': 'trl-dpo', 'prompt': 20}, {'loop': 'trl-grpo', 'prompt': 16}
    yield case(SMALL, 2, 100, **dpo, **MIXED)
    yield case(ODD, 2, 100, **dpo, **LOW, **FULL, **lora(8, LINEARS))
    yield case(SMALL, 2, 64, **dpo, **LOW, **FULL, **lora(8, QUERIES), **NF4_OF_TRL)
    yield case(ODD, 2, 64, **dpo, **LOW, **FULL, **FLASH, **LOADED, **lora(8, QUERIES))
    yield case(SMALL, 2, 100, **dpo, **LOW, **FULL, **sharded('ddp'), **lora(8, QUERIES))
    yield case(SMALL, 4, 64, **grpo, **MIXED)
    yield case(ODD, 2, 100, **grpo, **LOW, **FULL, **lora(8, LINEARS))
    yield case(SMALL, 2, 100, **grpo, **LOW, **FULL, **LOADED, arguments={'beta': 0.04}, **lora(8, QUERIES))


def by_axolotl():
    half = make_axolotl.HALF
    for config, more in ((SMALL, {}), (ODD, {**FULL, 'use_reentrant': True})):
        yield case(config, 2, 96, **half, **more, **FLA, upcast='undone', **make_axolotl.fused(8, LINEARS))
        yield case(config, 2, 96, **half, **FULL, upcast='kept')
    yield case(SMALL, 2, 96, **half, **FULL, **FLASH, **make_axolotl.NF4, **make_axolotl.fused(8, LINEARS))


def of_experts():
    adapted = lora(8, [*ATTENTION, *LINEAR])
    yield case(EXPERTS, 2, 100, **SFT, **LOW, **FULL)
    yield case(EXPERTS, 2, 100, **SFT, **LOW, **FULL, **FLA, **adapted)
    yield case(EXPERTS, 2, 64, **TRAINER, **MIXED, **ROW, documents=2)
    yield case(EXPERTS, 2, 64, **TRAINER, **LOW, **FULL, **FLASH, **adapted)
    yield case(EXPERTS, 2, 64, **TRAINER, **LOW, **FULL, **NF4, **adapted)
    yield case(EXPERTS, 2, 100, **TRAINER, **MIXED, evaluation={'batch': 3})
    yield case(EXPERTS, 2, 100, loop='trl-dpo', prompt=20, **LOW, **FULL, **adapted)
    yield case(EXPERTS, 2, 64, loop='trl-dpo', prompt=20, **MIXED)
    yield case(EXPERTS, 2, 100, loop='trl-grpo', prompt=16, **LOW, **FULL, **adapted)
    yield case(EXPERTS, 2, 100, **TRAINER, **MIXED, **FULL, **sharded('zero2'))
    yield case(EXPERTS, 2, 100, **TRAINER, **LOW, **FULL, **sharded('zero3'), **adapted, use_reentrant=True)
    yield case(EXPERTS, 2, 100, **TRAINER, **LOW, **FULL, **sharded('fsdp'), **adapted)


def of_another(small, odd):
    """What was not compared of rows of text of gemma3 and mistral3, whose towers' modules are called like the text's"""
    text = lora(8, [*ATTENTION, *GATED], exclude_modules='.*vision_tower.*')
    queries = lora(4, QUERIES, exclude_modules='.*vision_tower.*')
    yield case(small, 2, 128, **MIXED, packed=True)
    yield case(small, 2, 64, **TRAINER, **MIXED, **ROW, documents=2)
    yield case(odd, 2, 96, **TRAINER, **LOW, **FULL, **FLASH, **ROW, documents=3, **text)
    yield case(small, 2, 150, **SFT, **LOW, **FULL, **FLASH, **ROW, documents=3, **LOADED, **text)
    yield case(odd, 3, 130, **SFT, **LOW, **FULL, **ROW, **queries, **NF4_OF_TRL)
    yield case(small, 2, 192, **SFT, **LOW, **ROW, documents=2)
    dpo, grpo = {'loop': 'trl-dpo', 'prompt': 20}, {'loop': 'trl-grpo', 'prompt': 16}
    yield case(small, 2, 100, **dpo, **MIXED)
    yield case(odd, 2, 100, **dpo, **LOW, **FULL, **text)
    yield case(small, 2, 64, **dpo, **LOW, **FULL, **queries, **NF4_OF_TRL)
    yield case(odd, 2, 64, **dpo, **LOW, **FULL, **FLASH, **LOADED, **queries)
    yield case(small, 4, 64, **grpo, **MIXED)
    yield case(odd, 2, 100, **grpo, **LOW, **FULL, **text)
    yield case(small, 2, 100, **grpo, **LOW, **FULL, **LOADED, arguments={'beta': 0.04}, **queries)
    yield case(small, 2, 100, **TRAINER, **MIXED, **sharded('zero3'))
    yield case(odd, 2, 100, **TRAINER, **LOW, **FULL, **sharded('zero3'), **text, use_reentrant=True)
    yield case(small, 2, 100, **dpo, **LOW, **FULL, **sharded('ddp'), **queries)


def of_mistral3(small, odd):
    text = lora(8, [*ATTENTION, *GATED], exclude_modules='.*vision_tower.*')
    yield case(small, 2, 100, **SFT, **MIXED)
    yield case(odd, 2, 100, **SFT, **LOW, **FULL, **LOADED, **text)
    yield case(small, 2, 100, **SFT, **LOW, **FULL, **text, **NF4_OF_TRL)
    yield case(odd, 3, 77, **TRAINER, **LOW, **FULL, **FLASH, padded=True)
    yield case(small, 2, 100, **TRAINER, **MIXED, evaluation={'batch': 3})
    yield case(odd, 2, 100, **SFT, **LOW, **FULL, **text, evaluation={'batch': 5})
    for config in (small, odd):
        yield case(config, 2, 100, **TRAINER, **MIXED, **FULL, **sharded('zero2'))
        yield case(config, 2, 100, **SFT, **LOW, **FULL, **sharded('fsdp'), **text)
    yield case(odd, 2, 100, **TRAINER, **LOW, **sharded('fsdp'))
    yield case(small, 2, 100, **SFT, **LOW, **FULL, **SAVED)
    yield case(odd, 2, 100, **TRAINER, **MIXED, arguments={'label_smoothing_factor': 0.1})


def of_gemma4(model, case=case, **adapted):
    """peft stops at the linears of towers, which are modules around linears."""
    text, queries = lora(8, [*ATTENTION, *GATED], **adapted), lora(4, QUERIES, **adapted)
    yield case(model, 2, 64, **TRAINER, **MIXED, **ROW, documents=2)
    yield case(model, 2, 150, **SFT, **LOW, **FULL, **ROW, documents=3, **LOADED, **text)
    yield case(model, 3, 130, **SFT, **LOW, **FULL, **ROW, **queries, **NF4_OF_TRL)
    yield case(model, 2, 100, loop='trl-dpo', prompt=20, **LOW, **FULL, **text)
    yield case(model, 2, 64, loop='trl-dpo', prompt=20, **LOW, **FULL, **queries, **NF4_OF_TRL)
    yield case(model, 2, 100, loop='trl-grpo', prompt=16, **LOW, **FULL, **text)
    yield case(model, 2, 100, **TRAINER, **MIXED, arguments={'label_smoothing_factor': 0.1})
    yield case(model, 2, 100, **SFT, **LOW, **FULL, **lora(8, QUERIES, modules_to_save=['embed_tokens', 'lm_head'], **adapted))
    yield case(model, 2, 100, **SFT, **LOW, **FULL, **sharded('ddp'), **text)
    yield case(model, 2, 100, **TRAINER, **MIXED, **FULL, **sharded('zero2'))
    yield case(model, 2, 100, **TRAINER, **LOW, **FULL, **sharded('zero3'), **text, use_reentrant=True)
    yield case(model, 2, 100, **SFT, **LOW, **FULL, **sharded('fsdp'), **text)


def cases():
    for some in (by_attention_and_rows, by_packages, sharded_cases, preferences, by_axolotl, of_experts):
        yield from some()
    for small, odd in (('gemma3-vl-small', 'gemma3-vl-odd'), ('mistral3-small', 'mistral3-odd')):
        yield from of_another(small, odd)
    yield from of_mistral3('mistral3-small', 'mistral3-odd')
    for model in ('x-gemma4-vl', 'x-gemma4-vl-e', 'x-gemma4-vl-moe'):
        yield from of_gemma4(model, exclude_modules='.*(vision_tower|audio_tower).*')
    yield from of_gemma4('x-gemma4-unified-vl')
    for model in ('x-gemma4', 'x-gemma4-e', 'x-gemma4-moe', 'x-gemma4-unified'):  # text models, with nothing beside them
        yield from of_gemma4(model, make_families.case)


if __name__ == '__main__':
    made = list(cases())
    assert len({one['id'] for one in made}) == len(made)
    if sys.argv[1:2] == ['--join']:
        made = make_trl.joined(sys.argv[2], made)
    for one in made:
        print(json.dumps(one))
