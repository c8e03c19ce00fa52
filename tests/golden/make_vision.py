"""What training allocates of models of images and text, case by case, on plimsoll's virtual GPU: writes the cases, and
joins them with the figures.

    python make_vision.py > vision_cases.jsonl
    export PYTHONPATH=flash2                             the stand-in for the package flash-attn (make_flash2.py)
    plimsoll exec --device sim:GPU,placement=ascending --assume ops.py:232=false --observe -- VENV/bin/python \\
        ../virtual/programs/golden.py vision_cases.jsonl ID [ID ...]     and with torchrun as make_trl.py says
    python make_vision.py --join FIGURES > vision.jsonl      FIGURES: those lines

What is assumed: activations have no outliers (bitsandbytes/backends/cuda/ops.py), of which a plan in 8 bits knows none.
VENV as of make_trl.py. The fields are those of families.jsonl; besides `images` in each row, of `image_height` and
`image_width` pixels (16 of the cases of mistral3 and of mixtures of experts have not been run; ../virtual/programs/pictures.py makes the rows).
"""
import functools
import json
import sys

import make_families
import make_trl

MIXED, BF16 = {'precision': 'bf16-mixed', 'optimizer': 'adamw-fused'}, {'precision': 'bf16'}
FULL = {'checkpointing': 'full'}
EAGER = {'attention': 'eager'}
TRAINER = {'loop': 'trainer', 'accumulation': 2}
TEXT = ['q_proj', 'k_proj', 'v_proj', 'o_proj', 'gate_proj', 'up_proj', 'down_proj']
TOWER = ['qkv', 'attn.proj', 'linear_fc1', 'linear_fc2']
OLDER_TOWER = ['qkv', 'attn.proj', 'fc1', 'fc2', 'mlp.0', 'mlp.2']


def case(config, batch, seq, images, height=128, width=256, **more):
    made = make_families.case(config, batch, seq, kind='image-text', images=images, image_height=height, image_width=width, **more)
    marks = [*(['frozen'] if made.get('freeze_vision') else []), *(['saved'] if 'modules_to_save' in made.get('lora', {}) else []),
             f'i{images}x{height}x{width}'] + ([f'cc{made["compute_capability"]}'] if made['compute_capability'] != 80 else [])
    return {**made, 'id': '/'.join([made['id'], *marks, *wraps_text(made)])}


def wraps_text(made):
    """A mark of a case in which the text's blocks alone are units of FSDP2"""
    return ['text'] if len(made.get('fsdp_config', {}).get('transformer_layer_cls_to_wrap', [])) == 1 else []


def sft_cases(small):
    """TRL's own collator makes the rows."""
    sft, adapted = {'loop': 'trl-sft', 'accumulation': 2}, make_families.lora(8, TEXT)
    for more in (MIXED, {'precision': 'fp32'}, BF16, {**MIXED, **FULL}, {**MIXED, **EAGER}):
        yield case(small, 2, 200, 1, **sft, **more)
    for more in ({**MIXED, 'accumulation': 1}, {**BF16, **FULL, 'accumulation': 3}):
        yield case(small, 1, 200, 2, 96, 224, **{**sft, **more})
    yield case(small, 3, 200, 1, **sft, **MIXED, padded=True)
    yield case(small, 2, 100, 0, **sft, **MIXED)
    yield case(small, 2, 200, 1, **sft, **MIXED, **FULL, freeze_vision=True)
    yield case(small, 2, 200, 1, **sft, **MIXED, **FULL, weights='bf16', made_on='loaded', **adapted)
    yield case(small, 2, 200, 1, **sft, **MIXED, **FULL, weights='bf16', **make_families.lora(4, TEXT + TOWER))
    yield case(small, 2, 100, 0, **sft, **MIXED, **FULL, **adapted)
    quantization = {'type': 'nf4', 'double': True, 'compute': 'bf16', 'prepare': False}
    yield case(small, 2, 200, 1, **sft, **MIXED, **FULL, weights='bf16', quantization=quantization, **adapted)
    yield case(small, 2, 200, 1, **sft, **MIXED, weights='bf16', quantization={'type': 'int8', 'prepare': False}, **make_families.lora(4, TEXT + TOWER))
    yield case('qwen3-vl-odd', 2, 150, 1, 224, 160, **sft, **MIXED)
    yield case('qwen3-vl-odd', 2, 150, 1, 224, 160, **sft, **MIXED, **FULL, weights='bf16', quantization=quantization, **make_families.lora(4, TOWER))
    yield case('qwen3-vl-odd', 2, 150, 1, 224, 160, **sft, **MIXED, **FULL, use_reentrant=True)
    yield case(small, 1, 200, 2, 96, 224, **sft, **MIXED, **FULL, sharding='ddp', world=2)
    yield case(small, 1, 200, 2, 96, 224, **sft, **MIXED, **FULL, weights='bf16', sharding='ddp', world=2, **adapted)


def evaluated_cases(small):
    """Predictions are logits and rope_deltas, of which a program's argmax takes the first."""
    adapted, nf4 = make_families.lora(8, TEXT), {'quantization': {'type': 'nf4', 'double': True, 'compute': 'bf16'}}
    kept = {'batch': 4, 'keeps': 'logits', 'batches': 3}
    yield case(small, 2, 200, 1, **TRAINER, **MIXED, evaluation={'batch': 3})
    yield case(small, 2, 200, 1, **TRAINER, **BF16, **FULL, evaluation=kept)
    yield case(small, 2, 200, 1, **TRAINER, **MIXED, evaluation={'batch': 2, 'keeps': 'argmax', 'batches': 3, 'accumulation': 2})
    yield case(small, 1, 200, 2, 96, 224, **TRAINER, **MIXED, **FULL, evaluation={'batch': 5, 'every': 2, 'batches': 3}, padded=True)
    yield case(small, 2, 200, 1, **TRAINER, **MIXED, **FULL, evaluation={'batch': 8}, arguments={'eval_on_start': True}, **adapted)
    yield case(small, 2, 100, 0, **TRAINER, **MIXED, evaluation={'batch': 3, 'keeps': 'logits'})
    yield case(small, 2, 200, 1, **TRAINER, **MIXED, **FULL, weights='bf16', **nf4, **adapted, evaluation={'batch': 8})
    yield case('qwen3-vl-odd', 2, 150, 1, 224, 160, **TRAINER, **MIXED, **EAGER, evaluation={'batch': 3, 'keeps': 'logits', 'batches': 2, 'accumulation': 1})
    yield case(small, 2, 200, 1, loop='trl-sft', **MIXED, evaluation={'batch': 4})
    yield case(small, 2, 200, 1, loop='trl-sft', **MIXED, **FULL, **adapted, evaluation=kept)
    yield case(small, 1, 200, 2, 96, 224, **TRAINER, **MIXED, sharding='ddp', world=2, evaluation=kept)


def parallel_cases(small):
    """Of text alone the tower gets no gradients, which DistributedDataParallel is told or finds."""
    ddp = {**MIXED, 'sharding': 'ddp', 'world': 2}
    finds = {'ddp': {'find_unused_parameters': True}}
    yield case(small, 2, 100, 0, **TRAINER, **ddp)
    yield case(small, 2, 100, 0, **TRAINER, **ddp, **FULL, **finds)
    yield case(small, 2, 100, 0, **TRAINER, **ddp, **FULL, freeze_vision=True)
    yield case(small, 2, 100, 0, **TRAINER, **ddp, **make_families.lora(8, TEXT))
    yield case(small, 2, 100, 0, **TRAINER, **ddp, **make_families.lora(4, TEXT + TOWER))
    yield case(small, 2, 100, 0, loop='trl-sft', accumulation=2, **ddp, **FULL)
    yield case('qwen3-vl-odd', 3, 77, 0, **TRAINER, **{**ddp, 'world': 3})


def flash_cases(small):
    """The tower is one call for all images."""
    flash, adapted = {'attention': 'flash_attention_2'}, make_families.lora(8, TEXT)
    yield case(small, 2, 200, 1, **BF16, **flash)
    yield case(small, 1, 200, 2, 96, 224, **BF16, **FULL, **flash)
    yield case(small, 3, 200, 1, **MIXED, weights='bf16', **flash, padded=True)
    yield case(small, 2, 200, 1, **flash, precision='fp16', compute_capability=90)
    yield case(small, 2, 200, 1, **TRAINER, **MIXED, **FULL, weights='bf16', made_on='loaded', **flash, **adapted)
    yield case(small, 2, 200, 1, **TRAINER, **MIXED, **FULL, use_reentrant=True, weights='bf16', **flash, **make_families.lora(4, TEXT + TOWER))
    yield case(small, 2, 100, 0, **TRAINER, **MIXED, weights='bf16', **flash)
    yield case(small, 2, 200, 1, **TRAINER, **MIXED, **FULL, weights='bf16', **flash, **adapted,
               quantization={'type': 'nf4', 'double': True, 'compute': 'bf16'})
    yield case(small, 5, 400, 5, 64, 64, loop='trl-sft', accumulation=2, **MIXED, weights='bf16', **flash)
    yield case('qwen3-vl-odd', 2, 150, 1, 224, 160, **BF16, **flash)
    yield case('qwen3-vl-odd', 2, 150, 1, 224, 160, **TRAINER, **MIXED, **FULL, weights='bf16', **flash, evaluation={'batch': 3})


def sharded_cases(small):
    odd, adapted, everywhere = 'qwen3-vl-odd', make_families.lora(8, TEXT), make_families.lora(4, TEXT + TOWER)
    nf4 = {'quantization': {'type': 'nf4', 'double': True, 'compute': 'bf16'}}
    both = {**TRAINER, **MIXED, 'world': 2}
    zero2, zero3, fsdp = ({**both, 'sharding': sharding} for sharding in ('zero2', 'zero3', 'fsdp'))
    yield case(small, 2, 200, 1, **zero2)
    yield case(small, 1, 200, 2, 96, 224, **zero2, **FULL, weights='bf16', made_on='loaded', freeze_vision=True)
    yield case(small, 2, 200, 1, **zero2, **FULL, weights='bf16', **adapted)
    yield case(small, 2, 100, 0, **{**zero2, 'sharding': 'zero1'})
    yield case(odd, 2, 150, 1, 224, 160, **{**zero2, 'world': 3}, **FULL)
    yield case(small, 2, 200, 1, **zero3)
    yield case(small, 2, 200, 1, **zero3, **FULL)
    yield case(small, 1, 200, 2, 96, 224, **zero3, **FULL, use_reentrant=True, freeze_vision=True)
    yield case(small, 2, 200, 1, **zero3, **FULL, use_reentrant=True, weights='bf16', **adapted)
    yield case(small, 2, 200, 1, **zero3, weights='bf16', **everywhere)
    yield case(small, 2, 100, 0, **zero3)
    yield case(odd, 2, 150, 1, 224, 160, **{**zero3, 'world': 3}, **EAGER)
    yield case(small, 2, 200, 1, **zero2, **FULL, weights='bf16', **nf4, **adapted)
    yield case(small, 2, 200, 1, **zero2, **FULL, use_reentrant=True, made_on='cast', freeze_vision=True)
    floats = {'quantization': {**nf4['quantization'], 'storage': 'bf16'}}
    yield case(small, 2, 200, 1, **fsdp, **FULL, weights='bf16', **floats, **adapted)
    yield case(odd, 2, 150, 1, 224, 160, **fsdp, **FULL, weights='bf16', **nf4, **everywhere)
    yield case(odd, 2, 150, 1, 224, 160, **zero3, **FULL, use_reentrant=True, weights='bf16', **floats, **adapted)
    yield case(small, 2, 200, 1, **fsdp, weights='bf16')
    yield case(small, 2, 200, 1, **fsdp, **FULL)
    yield case(small, 1, 200, 2, 96, 224, **fsdp, **FULL, weights='bf16', freeze_vision=True)
    yield case(small, 2, 200, 1, **fsdp, **FULL, weights='bf16', **adapted)
    yield case(small, 2, 200, 1, **fsdp, weights='bf16', **everywhere)
    yield case(small, 2, 100, 0, **fsdp, **FULL, weights='bf16')
    yield case(odd, 2, 150, 1, 224, 160, **{**fsdp, 'world': 3}, **FULL, use_reentrant=True)
    yield case(small, 2, 200, 1, **fsdp, **FULL, weights='bf16', fsdp_config={'cpu_ram_efficient_loading': True})
    yield case(small, 2, 200, 1, **{**fsdp, 'loop': 'trl-sft'}, **FULL, weights='bf16')
    text = {**fsdp, 'fsdp_config': {'transformer_layer_cls_to_wrap': ['Qwen3VLTextDecoderLayer']}}
    yield case(small, 2, 200, 1, **text, weights='bf16')
    yield case(small, 2, 200, 1, **text, **FULL, weights='bf16', **adapted)
    yield case(odd, 2, 150, 1, 224, 160, **{**text, 'world': 3}, **FULL)
    yield case(small, 2, 100, 0, **text, **FULL, weights='bf16')
    yield case(small, 1, 200, 2, 96, 224, **text, **FULL, weights='bf16', freeze_vision=True)
    yield case(small, 2, 200, 1, **{**text, 'loop': 'trl-sft'}, **FULL, weights='bf16', **everywhere)
    yield case(small, 2, 200, 1, **{**zero2, 'loop': 'trl-sft'}, **FULL)


def liger_cases(small):
    liger, adapted, frozen = {'liger': True}, make_families.lora(8, TEXT), {'freeze_vision': True}
    nf4 = {'quantization': {'type': 'nf4', 'double': True, 'compute': 'bf16'}}
    for more in ({'precision': 'fp32'}, MIXED, {**BF16, **FULL}):
        yield case(small, 2, 200, 1, **liger, **more)
    yield case(small, 1, 200, 2, 96, 224, **TRAINER, **liger, **MIXED)
    yield case(small, 2, 100, 0, **TRAINER, **liger, **MIXED)
    yield case(small, 2, 200, 1, **TRAINER, **liger, **MIXED, **FULL, **frozen)
    yield case(small, 2, 200, 1, **TRAINER, **liger, **MIXED, **FULL, weights='bf16', **adapted, evaluation={'batch': 3})
    yield case(small, 2, 200, 1, **TRAINER, **liger, **MIXED, **FULL, weights='bf16', **nf4, **make_families.lora(4, TEXT + TOWER))
    yield case('qwen3-vl-odd', 2, 150, 1, 224, 160, loop='trl-sft', **liger, **MIXED)
    yield case('qwen3-vl-odd', 2, 150, 1, 224, 160, **TRAINER, **liger, **MIXED, arguments={'liger_kernel_config': {'rope': False}})
    yield case(small, 2, 200, 1, **TRAINER, **liger, **MIXED, sharding='zero2', world=2)
    yield case(small, 2, 200, 1, **TRAINER, **liger, **MIXED, **FULL, weights='bf16', sharding='fsdp', world=2)


def further_cases(small):
    """Trainer's smoothed labels are not shifted: it knows causal models by their names."""
    smoothed = {'arguments': {'label_smoothing_factor': 0.1}}
    saved = make_families.lora(8, TEXT, modules_to_save=['embed_tokens', 'lm_head'])
    yield case(small, 2, 200, 1, **TRAINER, **MIXED, **smoothed)
    yield case(small, 1, 200, 2, 96, 224, **TRAINER, **MIXED, **FULL, **smoothed, **make_families.lora(8, TEXT), evaluation={'batch': 3})
    yield case(small, 2, 100, 0, loop='trl-sft', **MIXED, **smoothed)
    yield case(small, 2, 200, 1, **TRAINER, **MIXED, **FULL, **saved)
    yield case('qwen3-vl-odd', 2, 150, 1, 224, 160, **BF16, **saved)
    yield case('qwen3-vl-odd', 2, 150, 1, 224, 160, loop='trl-sft', **MIXED, weights='bf16', **saved)


def quantized_cases(small):
    """bitsandbytes takes the place of the tower's linears, too."""
    nf4 = {'quantization': {'type': 'nf4', 'double': True, 'compute': 'bf16'}}
    int8 = {'quantization': {'type': 'int8'}}
    for quantization in (nf4, int8):
        for more in ({**BF16, **FULL}, {'precision': 'fp32'}, {**MIXED, 'weights': 'bf16'}):
            yield case(small, 2, 200, 1, **more, **quantization, **make_families.lora(8, TEXT))
        yield case(small, 1, 200, 2, 96, 224, **MIXED, **FULL, weights='bf16', **quantization, **make_families.lora(4, TEXT + TOWER))
        yield case(small, 2, 200, 1, **TRAINER, **MIXED, weights='bf16', **quantization, **make_families.lora(8, TEXT))
        yield case(small, 2, 200, 1, **TRAINER, **MIXED, **FULL, weights='bf16', **quantization, **make_families.lora(4, TEXT + TOWER))
        yield case(small, 3, 100, 0, **TRAINER, **MIXED, **FULL, use_reentrant=True, weights='bf16', **quantization, **make_families.lora(8, TEXT))
        yield case('qwen3-vl-odd', 2, 150, 1, 224, 160, **TRAINER, **MIXED, **FULL, weights='bf16', **quantization, **make_families.lora(8, TEXT))
        yield case('qwen3-vl-odd', 2, 150, 1, 224, 160, **BF16, **EAGER, **quantization, **make_families.lora(4, TOWER))
    yield case(small, 2, 200, 1, **TRAINER, **MIXED, weights='bf16', quantization={'type': 'fp4', 'compute': 'bf16'}, padded=True, **make_families.lora(8, TEXT))
    yield case(small, 2, 200, 1, **BF16, quantization={'type': 'nf4'}, **make_families.lora(8, TEXT + TOWER, dora=True))
    yield case(small, 1, 200, 2, 96, 224, **TRAINER, **MIXED, **FULL, weights='bf16', sharding='ddp', world=2, **nf4, **make_families.lora(8, TEXT))


def beside_cases(small, odd, text, everywhere, **fsdp_config):
    """What Qwen3-VL's many cases have, of another family: `small` and `odd` are cases of two models, `text` and `everywhere` linears
    of the text, and of the tower, too."""
    sft, adapted, all_adapted = {'loop': 'trl-sft', 'accumulation': 2}, make_families.lora(8, text), make_families.lora(4, everywhere)
    low, full = {**MIXED, 'weights': 'bf16'}, {**MIXED, **FULL, 'weights': 'bf16'}
    nf4, plain = ({'quantization': {'type': 'nf4', 'double': True, 'compute': 'bf16', **more}} for more in ({}, {'prepare': False}))
    kept = {'batch': 4, 'keeps': 'logits', 'batches': 3}
    yield small(1, **TRAINER, **full, **nf4, **adapted)
    yield small(1, **TRAINER, **low, quantization={'type': 'int8'}, **all_adapted)
    yield odd(1, **BF16, **EAGER, quantization={'type': 'fp4', 'compute': 'bf16'}, **all_adapted)
    yield odd(1, **TRAINER, **full, use_reentrant=True, **nf4, **adapted)
    yield small(0, **TRAINER, **full, **nf4, **adapted)
    for more in (MIXED, {'precision': 'fp32', **FULL}):
        yield small(1, **sft, **more)
    yield small(1, **sft, **full, **plain, **adapted)
    yield odd(1, **sft, **full, made_on='loaded', **all_adapted)
    yield odd(1, **sft, **BF16, padded=True)
    yield small(0, **sft, **MIXED, **adapted)
    yield small(1, **sft, **full, sharding='ddp', world=2, **adapted)
    yield small(1, **TRAINER, **MIXED, evaluation={'batch': 3})
    yield odd(1, **TRAINER, **BF16, **FULL, evaluation=kept)
    yield small(1, **sft, **MIXED, **FULL, **adapted, evaluation=kept)
    yield small(0, **TRAINER, **MIXED, evaluation={'batch': 3, 'keeps': 'argmax', 'batches': 2, 'accumulation': 1})
    zero2, zero3, fsdp = ({'world': 2, 'sharding': sharding} for sharding in ('zero2', 'zero3', 'fsdp'))
    fsdp = {**fsdp, **({'fsdp_config': fsdp_config} if fsdp_config else {})}
    yield small(1, **TRAINER, **MIXED, **zero2)
    yield odd(1, **TRAINER, **full, **zero2, **nf4, **adapted)
    yield small(1, **TRAINER, **MIXED, **FULL, **zero3)
    yield odd(1, **TRAINER, **full, **zero3, use_reentrant=True, **adapted)
    yield small(0, **TRAINER, **MIXED, **zero3)
    yield small(1, **TRAINER, **full, **fsdp)
    yield odd(1, **TRAINER, **full, **fsdp, **all_adapted)
    yield small(1, **TRAINER, **full, **fsdp, **adapted, quantization={**nf4['quantization'], 'storage': 'bf16'})
    yield small(0, **TRAINER, **MIXED, **FULL, **fsdp, freeze_vision=True)
    yield odd(1, **sft, **full, **fsdp)
    yield small(0, **TRAINER, **MIXED, sharding='ddp', world=2)
    liger, flash = {'liger': True}, {'attention': 'flash_attention_2'}
    yield small(1, **liger, **MIXED)
    yield small(1, **TRAINER, **liger, **full, **adapted, evaluation={'batch': 3})
    yield odd(1, **TRAINER, **liger, **MIXED, **FULL, **zero2, freeze_vision=True)
    yield odd(1, **sft, **liger, **full, **plain, **all_adapted)
    yield small(1, **TRAINER, **liger, **full, **fsdp)
    yield odd(1, **BF16, **flash)
    yield small(1, **TRAINER, **full, **flash, **adapted)
    yield small(1, **TRAINER, **low, **flash, padded=True)
    yield small(1, **sft, **full, **flash, **nf4, **all_adapted)
    smoothed = {'arguments': {'label_smoothing_factor': 0.1}}
    saved = make_families.lora(8, text, modules_to_save=['embed_tokens', 'lm_head'])
    yield small(1, **TRAINER, **MIXED, **smoothed)
    yield odd(1, **TRAINER, **full, **smoothed, **adapted, evaluation={'batch': 3})
    yield small(1, **TRAINER, **MIXED, **FULL, **saved)
    yield odd(1, **sft, **low, **saved)


def cases():
    yield from cases_of_qwen3_vl()
    yield from cases_of_older('qwen2-5-vl', '3b')
    yield from cases_of_older('qwen2-vl', '2b')
    yield from cases_of_qwen3_5('qwen3-5-small', 'qwen3_5', 'gate_proj')
    yield from cases_of_experts('qwen3-vl-moe-small', 'qwen3-vl-moe-odd')
    yield from cases_of_qwen3_5('qwen3-5-moe-vl-small', 'qwen3_5_moe', 'shared_expert_gate')
    yield from cases_of_mistral3('mistral3-small', 'mistral3-odd')


def cases_of_mistral3(small, odd):
    """The text is mistral's, or (odd) ministral3's, whose tower has odd patches, heads and images."""
    projector, sizes = ['merging_layer', 'linear_1', 'linear_2'], (224, 160)
    text = {'exclude_modules': '.*vision_tower.*'}
    for more in ({}, MIXED, {**BF16, **FULL}, {'precision': 'fp16-mixed'}, {**MIXED, **FULL}, EAGER, {**MIXED, **EAGER, **FULL},
                 {**BF16, 'optimizer': 'sgd', 'accumulation': 3}, {**BF16, 'compute_capability': 90}):
        yield case(small, 2, 200, 1, 196, 252, **more)
    for more in ({}, {**MIXED, **FULL}, {**BF16, **EAGER}):
        yield case(odd, 2, 150, 1, *sizes, **more)
    for more in ({}, {**BF16, **FULL}):
        yield case(small, 1, 200, 2, 140, 224, **more)
        yield case(small, 3, 333, 4, 56, 84, **more)
        yield case(small, 2, 100, 0, **more)
    for more in (MIXED, {**TRAINER, **MIXED}, EAGER):
        yield case(small, 2, 200, 1, 196, 252, padded=True, **more)
    yield case(odd, 2, 200, 0, padded=True, **TRAINER, **MIXED)
    for rank, targets, more in ((8, TEXT, {}), (16, TEXT, text), (4, TEXT + projector, {}), (6, projector, {})):
        adapted = make_families.lora(rank, targets, **more)
        yield case(small, 2, 200, 1, 196, 252, **adapted)
        yield case(odd, 2, 150, 1, *sizes, **TRAINER, **BF16, **FULL, **adapted)
    yield case(small, 2, 200, 1, 196, 252, **MIXED, **make_families.lora(2, TEXT + projector, dora=True))
    yield case(small, 2, 100, 0, **MIXED, **FULL, **make_families.lora(4, TEXT))
    for more in (MIXED, {**BF16, **FULL, 'use_reentrant': True}):
        yield case(small, 2, 200, 1, 196, 252, **TRAINER, **more)
        yield case(odd, 2, 150, 0, **TRAINER, **more)
    yield case(odd, 2, 150, 1, *sizes, **TRAINER, **MIXED, **FULL, use_reentrant=True, **make_families.lora(4, TEXT, **text))
    frozen = {'freeze_vision': True}
    yield case(small, 2, 200, 1, 196, 252, **BF16, **FULL, **frozen)
    yield case(small, 1, 200, 2, 140, 224, **TRAINER, **MIXED, **frozen)
    yield case(small, 2, 200, 1, 196, 252, **TRAINER, **MIXED, **FULL, use_reentrant=True, **frozen)
    loaded = {**TRAINER, **MIXED, 'made_on': 'loaded', 'weights': 'bf16'}
    yield case(small, 2, 200, 1, 196, 252, **loaded)
    yield case(odd, 2, 150, 0, **loaded, **FULL, **make_families.lora(8, TEXT))
    yield case(odd, 2, 150, 1, *sizes, **loaded, **FULL, **make_families.lora(4, TEXT, **text))
    yield case(small, 1, 200, 2, 140, 224, **TRAINER, **MIXED, sharding='ddp', world=2)
    yield case(odd, 1, 150, 1, *sizes, **TRAINER, **BF16, **FULL, sharding='ddp', world=2, **make_families.lora(8, TEXT, **text))
    nf4 = {'weights': 'bf16', 'quantization': {'type': 'nf4', 'double': True, 'compute': 'bf16'}}
    for images in (0, 1):
        yield case(small, 2, 200, images, 196, 252, **TRAINER, **MIXED, **FULL, **nf4, **make_families.lora(8, TEXT))
    yield case(odd, 2, 150, 1, *sizes, **MIXED, **nf4, **make_families.lora(4, TEXT + projector))


def cases_of_older(family, published):
    """qwen2_5_vl, whose images have windows, whole ones and parts, and qwen2_vl"""
    small, odd, size = f'{family}-small', f'{family}-odd', (140, 252)
    for more in ({}, MIXED, BF16, {'precision': 'fp16-mixed'}, FULL, {**MIXED, **FULL}, {**BF16, **FULL}, EAGER,
                 {**MIXED, **EAGER, **FULL}, {**BF16, 'optimizer': 'sgd', 'accumulation': 3},
                 {**BF16, 'compute_capability': 90}, {'compute_capability': 75}):
        yield case(small, 2, 200, 1, *size, **more)
    for more in ({}, {**MIXED, **FULL}, BF16):
        yield case(small, 1, 200, 2, 112, 224, **more)
        yield case(small, 3, 100, 1, 56, 84, **more)
        yield case(small, 2, 100, 0, *size, **more)
    yield case(small, 5, 400, 5, 140, 112, **BF16, **FULL)
    for more in ({}, {**TRAINER, **MIXED}):
        yield case(small, 2, 200, 1, *size, padded=True, **more)
    for rank, targets in ((8, TEXT[:4]), (16, TEXT), (4, TEXT + OLDER_TOWER)):
        adapted = make_families.lora(rank, targets)
        yield case(small, 2, 200, 1, *size, **adapted)
        yield case(small, 2, 200, 1, *size, **TRAINER, **BF16, **FULL, **adapted)
    yield case(small, 2, 200, 1, *size, **MIXED, **make_families.lora(2, TEXT + OLDER_TOWER, dora=True))
    yield case(small, 2, 200, 1, *size, **TRAINER, **BF16, **FULL, use_reentrant=True)
    yield case(small, 2, 200, 0, *size, **TRAINER, **BF16)
    yield case(small, 2, 200, 1, *size, **BF16, **FULL, freeze_vision=True)
    yield case(small, 2, 200, 1, *size, **TRAINER, **MIXED, freeze_vision=True)
    loaded = {**TRAINER, **MIXED, 'made_on': 'loaded', 'weights': 'bf16'}
    yield case(small, 2, 200, 1, *size, **loaded)
    yield case(odd, 2, 200, 1, *size, **loaded, **FULL, **make_families.lora(8, TEXT))
    yield case(small, 1, 200, 2, 84, 140, **TRAINER, **MIXED, sharding='ddp', world=2)
    for more in (BF16, {**MIXED, **FULL}, {**BF16, **EAGER}, {**TRAINER, **MIXED}):
        yield case(odd, 2, 150, 1, 224, 168, **more)
    yield case(f'{family}-{published}', 1, 512, 1, 448, 448, **BF16, **FULL)
    yield from beside_cases(functools.partial(case, small, 2, 200, height=140, width=252),
                            functools.partial(case, odd, 2, 150, height=224, width=168), TEXT, TEXT + OLDER_TOWER)


def cases_of_experts(small, odd):
    """qwen3_vl_moe: every second layer has experts, or each"""
    attention, size = TEXT[:4], (224, 160)
    for more in ({}, MIXED, {**BF16, **FULL}, {'precision': 'fp16-mixed'}, EAGER, {**MIXED, **EAGER, **FULL},
                 {**BF16, 'optimizer': 'sgd', 'accumulation': 3}, {**BF16, 'compute_capability': 90}):
        yield case(small, 2, 200, 1, **more)
    for more in ({}, {**BF16, **FULL}):
        yield case(small, 1, 200, 2, 96, 224, **more)
        yield case(small, 3, 200, 1, 320, 128, **more)
        yield case(small, 2, 100, 0, **more)
        yield case(odd, 2, 150, 1, *size, **(more or MIXED))
    for more in (MIXED, {**TRAINER, **MIXED}, EAGER):
        yield case(small, 2, 200, 1, padded=True, **more)
    for rank, targets in ((8, attention), (16, TEXT), (4, TEXT + TOWER), (6, TOWER)):
        adapted = make_families.lora(rank, targets)
        yield case(small, 2, 200, 1, **adapted)
        yield case(small, 2, 200, 1, **TRAINER, **BF16, **FULL, **adapted)
    stacks = {'target_parameters': ['mlp.experts.gate_up_proj', 'mlp.experts.down_proj']}
    yield case(small, 2, 200, 1, **MIXED, **make_families.lora(2, TEXT + TOWER, dora=True))
    yield case(small, 2, 200, 1, **MIXED, **make_families.lora(4, attention, **stacks))
    yield case(odd, 2, 150, 1, *size, **TRAINER, **BF16, **FULL, **make_families.lora(4, attention, **stacks))
    yield case(small, 2, 200, 1, **TRAINER, **MIXED)
    yield case(small, 2, 200, 1, **TRAINER, **BF16, **FULL, use_reentrant=True)
    yield case(odd, 2, 150, 1, *size, **TRAINER, **MIXED, **FULL, use_reentrant=True, **make_families.lora(4, attention + TOWER))
    yield case(small, 2, 100, 0, **TRAINER, **MIXED)
    yield case(small, 2, 200, 1, **BF16, **FULL, freeze_vision=True)
    yield case(small, 2, 200, 1, **TRAINER, **MIXED, freeze_vision=True)
    loaded = {**TRAINER, **MIXED, 'made_on': 'loaded', 'weights': 'bf16'}
    yield case(small, 2, 200, 1, **loaded)
    yield case(odd, 2, 150, 1, *size, **loaded, **FULL, **make_families.lora(8, attention))
    yield case(small, 1, 200, 2, 96, 224, **TRAINER, **MIXED, sharding='ddp', world=2)
    yield case(odd, 1, 150, 1, *size, **TRAINER, **BF16, **FULL, sharding='ddp', world=2, **make_families.lora(8, attention))


def cases_of_qwen3_5(small, family, *mlp):
    """The whole model (`family`), whose config.json stands for its text otherwise"""
    targets = ['q_proj', 'o_proj', 'in_proj_qkv', 'out_proj', *mlp]
    loaded = {**TRAINER, **MIXED, 'made_on': 'loaded', 'weights': 'bf16'}
    for seq, images, size, more in (
            (200, 1, (128, 256), {}), (200, 1, (128, 256), {**BF16, **FULL}), (200, 1, (128, 256), {**TRAINER, **MIXED}),
            (100, 0, (128, 256), BF16), (200, 2, (96, 224), {**MIXED, **FULL}),
            (200, 1, (128, 256), {**TRAINER, **BF16, **FULL, **make_families.lora(8, targets)}), (200, 1, (128, 256), EAGER),
            (200, 1, (128, 256), {**MIXED, 'padded': True}), (200, 1, (128, 256), make_families.lora(4, targets + TOWER)),
            (200, 1, (128, 256), {**BF16, **FULL, 'freeze_vision': True}), (100, 0, (128, 256), {**TRAINER, **MIXED}),
            (200, 1, (128, 256), loaded)):
        yield case(small, 1 if images == 2 else 2, seq, images, *size, family=family, **more)
    if family == 'qwen3_5':
        yield from beside_cases(functools.partial(case, small, 2, 200, family=family),
                                functools.partial(case, 'qwen3-5-odd', 2, 150, height=224, width=160, family=family),
                                targets, targets + TOWER)


def cases_of_qwen3_vl():
    small = 'qwen3-vl-small'
    for more in ({}, MIXED, BF16, {'precision': 'fp16-mixed'}, FULL, {**MIXED, **FULL}, {**BF16, **FULL}, EAGER,
                 {**MIXED, **EAGER, **FULL}, {**BF16, **EAGER}, {**BF16, 'optimizer': 'sgd', 'accumulation': 3},
                 {**BF16, 'compute_capability': 90}, {**MIXED, 'compute_capability': 86}, {'compute_capability': 75}):
        yield case(small, 2, 200, 1, **more)
    for more in ({}, MIXED, {**BF16, **FULL}):
        yield case(small, 1, 200, 2, 96, 224, **more)
        yield case(small, 3, 200, 1, 320, 128, **more)
        yield case(small, 5, 400, 5, 64, 64, **more)
        yield case(small, 2, 100, 0, **more)
    for more in ({}, MIXED, {**BF16, **FULL}, {**TRAINER, **MIXED}, {**EAGER}):
        yield case(small, 2, 200, 1, padded=True, **more)
    for rank, targets in ((8, TEXT[:4]), (16, TEXT), (4, TEXT + TOWER)):
        adapted = make_families.lora(rank, targets)
        yield case(small, 2, 200, 1, **adapted)
        yield case(small, 2, 200, 1, **BF16, **FULL, **adapted)
        yield case(small, 1, 200, 2, 96, 224, **MIXED, **adapted)
    yield case(small, 2, 200, 1, **make_families.lora(2, TEXT + TOWER, dora=True))
    yield case(small, 2, 200, 1, **BF16, **make_families.lora(3, ['linear_fc1', 'o_proj'], dropout=0.1))
    yield case(small, 2, 100, 0, **make_families.lora(4, TEXT))
    for more in ({}, MIXED, {**MIXED, **FULL}, {**BF16, **FULL, 'use_reentrant': True}, {**BF16, 'images': 0}):
        images = more.pop('images', 1) if 'images' in more else 1
        yield case(small, 2, 200, images, **TRAINER, **more)
        yield case(small, 2, 200, images, **TRAINER, **more, **make_families.lora(8, TEXT))
        yield case(small, 2, 200, images, **TRAINER, **more, **make_families.lora(4, TEXT + TOWER))
    frozen = {'freeze_vision': True}
    yield case(small, 2, 200, 1, **frozen)
    yield case(small, 2, 200, 1, **BF16, **FULL, **frozen)
    yield case(small, 2, 200, 1, **TRAINER, **MIXED, **FULL, use_reentrant=True, **frozen)
    yield case(small, 2, 200, 0, **TRAINER, **MIXED, **frozen)
    loaded = {**TRAINER, **MIXED, 'made_on': 'loaded', 'weights': 'bf16'}
    yield case(small, 2, 200, 1, **loaded)
    cast = {**TRAINER, **MIXED, **FULL, 'use_reentrant': True, 'made_on': 'cast'}
    yield case(small, 2, 200, 1, **cast)
    yield case(small, 2, 200, 1, **cast, freeze_vision=True)
    yield case(small, 2, 200, 1, **loaded, **FULL, **make_families.lora(8, TEXT))
    yield case(small, 2, 200, 1, **loaded, **FULL, **make_families.lora(4, TEXT + TOWER))
    yield case(small, 1, 200, 2, 96, 224, **TRAINER, **MIXED, sharding='ddp', world=2)
    yield case(small, 1, 200, 2, 96, 224, **TRAINER, **BF16, **FULL, sharding='ddp', world=2, **make_families.lora(8, TEXT))
    yield from quantized_cases(small)
    yield from sft_cases(small)
    yield from liger_cases(small)
    yield from further_cases(small)
    yield from sharded_cases(small)
    yield from flash_cases(small)
    yield from evaluated_cases(small)
    yield from parallel_cases(small)
    yield case('qwen3-vl-2b', 1, 1024, 1, 1024, 768, **BF16, **FULL)
    yield case('qwen3-vl-2b', 1, 512, 1, 512, 512, **MIXED)
    for more in (BF16, {**MIXED, **FULL}, {**BF16, **EAGER}, {**TRAINER, **MIXED}):  # wide enough for cuDNN's usual workspace
        yield case('qwen3-vl-odd', 2, 150, 1, 224, 160, **more)
    yield case('qwen3-vl-odd', 2, 150, 1, 224, 160, **BF16, **make_families.lora(8, TEXT))


if __name__ == '__main__':
    for made in make_trl.joined(sys.argv[2], cases(), every_rank=True) if sys.argv[1:2] == ['--join'] else cases():
        print(json.dumps(made))
