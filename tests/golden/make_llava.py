"""What training allocates of llava and internvl, case by case, on plimsoll's virtual GPU: writes the cases, and joins them with the
figures.

    python make_llava.py > llava_cases.jsonl
    plimsoll exec --device sim:GPU,placement=ascending --observe --logs DIR -- VENV/bin/python \\
        ../virtual/programs/golden.py llava_cases.jsonl ID [ID ...]      and with torchrun as make_trl.py says
    PYTHONPATH=flash2 is set for the stand-in for the package flash-attn (make_flash2.py)
    python make_llava.py --join FIGURES > llava.jsonl       FIGURES: those lines, of the logs

VENV as of make_trl.py. The fields are those of families.jsonl; besides `images` in each row, which are all of the tower's
size, or (internvl) canvases of tiles of that size, of `image_height` x `image_width` pixels
(../virtual/programs/pictures.py makes the rows).
"""
import json
import sys

import make_families
import make_trl
from named_cases import by_name, merged

MIXED, BF16, HALF = {'precision': 'bf16-mixed', 'optimizer': 'adamw-fused'}, {'precision': 'bf16'}, {'precision': 'fp16-mixed'}
FULL, REENTRANT = {'checkpointing': 'full'}, {'checkpointing': 'full', 'use_reentrant': True}
EAGER, PADDED, FROZEN = {'attention': 'eager'}, {'padded': True}, {'freeze_vision': True}
TRAINER, SFT = {'loop': 'trainer', 'accumulation': 2}, {'loop': 'trl-sft', 'accumulation': 2}
DDP = {**TRAINER, 'sharding': 'ddp', 'world': 2}
TEXT = ['q_proj', 'k_proj', 'v_proj', 'o_proj', 'gate_proj', 'up_proj', 'down_proj']
TOWER = ['fc1', 'fc2', 'linear_1', 'linear_2']
OF_TEXT = make_families.lora(8, TEXT, exclude_modules='.*vision_tower.*')
NF4 = {'weights': 'bf16', 'quantization': {'type': 'nf4', 'double': True, 'compute': 'bf16'}}
SMOOTHED = {'arguments': {'label_smoothing_factor': 0.1}}
LOADED = {'weights': 'bf16', 'made_on': 'loaded'}
PACKED = {'packing': 'one-row', 'documents': 4}


def case(config, batch, seq, images, *parts):
    made = make_families.case(config, batch, seq, kind='image-text', images=images, **merged(*parts))
    adapted = made.get('lora', {})
    return [made.pop('id'), 'exclude_modules' in adapted and 'text', *adapted.get('modules_to_save', []),
            made.get('freeze_vision') and 'frozen', 'zero' in made and 'pieces',
            f'i{images}' + (f'x{made["image_height"]}x{made["image_width"]}' if 'image_height' in made else '')], made


def cases_of(small, odd, *of_tower):
    adapts_all = make_families.lora(4, [*TEXT, *of_tower, *TOWER])
    for more in ((), (MIXED,), (BF16,), (HALF,), (FULL,), (MIXED, FULL), (BF16, FULL), (EAGER,), (MIXED, EAGER, FULL), (BF16, EAGER)):
        yield case(small, 2, 200, 1, *more)
    yield case(small, 2, 200, 1, BF16, {'optimizer': 'sgd', 'accumulation': 3})
    yield case(small, 2, 200, 1, BF16, {'compute_capability': 90})
    yield case(small, 2, 200, 1, {'compute_capability': 75})
    for more in ((), (MIXED, FULL), (BF16, EAGER)):
        yield case(odd, 2, 150, 1, *more)
        yield case(odd, 1, 333, 3, *more)
        yield case(small, 2, 100, 0, *more)
    for more in ((), (MIXED, TRAINER), (EAGER, FULL)):
        yield case(small, 2, 200, 1, PADDED, *more)
    yield case(odd, 2, 200, 0, PADDED, TRAINER, MIXED)
    for more in ((), (MIXED,), (MIXED, FULL), (BF16, REENTRANT)):
        yield case(small, 2, 200, 1, TRAINER, *more)
        yield case(odd, 2, 150, 0, TRAINER, *more)
    for adapted in (OF_TEXT, adapts_all):
        yield case(small, 2, 200, 1, adapted)
        yield case(odd, 2, 150, 1, TRAINER, BF16, FULL, adapted)
        yield case(small, 2, 200, 1, MIXED, TRAINER, LOADED, FULL, adapted)
    yield case(small, 2, 200, 1, MIXED, make_families.lora(2, [*TEXT, *of_tower, *TOWER], dora=True))
    yield case(odd, 2, 150, 1, MIXED, TRAINER, REENTRANT, OF_TEXT)
    yield case(small, 2, 100, 0, MIXED, FULL, OF_TEXT)
    for more in ((BF16, FULL), (TRAINER, MIXED), (TRAINER, MIXED, REENTRANT)):
        yield case(small, 2, 200, 1, FROZEN, *more)
    yield case(odd, 2, 150, 0, FROZEN, TRAINER, MIXED)
    yield case(small, 2, 200, 1, MIXED, TRAINER, LOADED)
    for images in (0, 1):
        yield case(small, 2, 200, images, TRAINER, MIXED, FULL, NF4, OF_TEXT)
        yield case(odd, 2, 150, images, SFT, MIXED)
        yield case(small, 2, 200, images, SFT, MIXED, FULL, LOADED, OF_TEXT)
        yield case(small, 2, 200, images, TRAINER, MIXED, SMOOTHED)
        yield case(small, 2, 200, images, DDP, MIXED)
        yield case(odd, 1, 150, images, DDP, BF16, FULL, OF_TEXT)
        yield case(small, 2, 200, images, DDP, MIXED, FULL, FROZEN)
        yield case(small, 2, 200, images, TRAINER, MIXED, {'evaluation': {'batch': 3}})
    yield case(odd, 2, 150, 1, MIXED, NF4, adapts_all)
    yield case(small, 2, 200, 1, SFT, MIXED, FULL, {**NF4, 'quantization': {**NF4['quantization'], 'prepare': False}}, adapts_all)
    yield case(small, 2, 200, 1, TRAINER, BF16, FULL, {'evaluation': {'batch': 4, 'keeps': 'logits', 'batches': 3}})
    for more in ((MIXED,), (BF16, FULL), (MIXED, EAGER), (TRAINER, MIXED, FULL), (SFT, MIXED, OF_TEXT)):
        yield case(small, 2, 200, 0, PACKED, *more)


def cases_of_tiles(small, odd):
    """Images of several tiles, and of the whole image"""
    wide, high, square = ({'image_height': rows, 'image_width': columns} for rows, columns in ((112, 224), (336, 112), (168, 168)))
    for more in ((), (MIXED, FULL), (BF16, EAGER), (TRAINER, MIXED), (SFT, MIXED, FULL, LOADED, OF_TEXT), (TRAINER, BF16, FULL, FROZEN)):
        yield case(small, 2, 200, 1, wide, *more)
    yield case(small, 1, 200, 2, high, BF16, FULL)
    for more in ((), (MIXED,), (TRAINER, MIXED, FULL)):
        yield case(odd, 2, 250, 2, square, *more)


def fsdp_of(blocks):
    return {'sharding': 'fsdp', 'world': 2, **({'fsdp_config': {'transformer_layer_cls_to_wrap': blocks}} if blocks else {})}


def sharded_cases(small, odd, blocks, *of_tower):
    """By several ranks with DeepSpeed's ZeRO and with FSDP2: whole models, adapters of the text and of all, codes, the tower
    frozen. Of llava accelerate must be told the blocks."""
    adapts_all = make_families.lora(4, [*TEXT, *of_tower, *TOWER])
    low, floats = {'weights': 'bf16'}, {**NF4, 'quantization': {**NF4['quantization'], 'storage': 'bf16'}}
    zero1, zero2, zero3 = ({**TRAINER, **MIXED, 'sharding': f'zero{stage}', 'world': 2} for stage in (1, 2, 3))
    fsdp = {**TRAINER, **MIXED, **fsdp_of(blocks)}
    for more in ((), (FULL, REENTRANT), (FULL, LOADED, FROZEN), (FULL, low, OF_TEXT), (FULL, NF4, OF_TEXT), (low, adapts_all)):
        yield case(small, 2, 200, 1, zero2, *more)
    yield case(small, 2, 200, 1, zero2, FULL, REENTRANT, FROZEN, {'made_on': 'cast'})
    yield case(odd, 2, 150, 1, {**zero2, 'world': 3}, FULL)
    yield case(odd, 2, 150, 0, zero2)
    yield case(small, 2, 200, 1, zero2, SFT, FULL)
    yield case(small, 2, 200, 1, zero1)
    yield case(odd, 2, 150, 1, zero1, FULL, low, OF_TEXT)
    for more in ((), (FULL,), (FULL, REENTRANT), (FULL, REENTRANT, FROZEN), (FULL, REENTRANT, low, OF_TEXT), (low, adapts_all),
                 (PADDED, EAGER)):
        yield case(small, 2, 200, 1, zero3, *more)
    pieces = {**zero3, 'zero': {'stage3_param_persistence_threshold': 1000, 'stage3_prefetch_bucket_size': 30000,
                                'stage3_max_reuse_distance': 10000}}  # so small that the tower's weights are gathered, too
    for more in ((), (FULL,), (FULL, REENTRANT, FROZEN), (FULL, REENTRANT, low, OF_TEXT), (low, adapts_all)):
        yield case(small, 2, 200, 1, pieces, *more)
    yield case(odd, 2, 150, 1, {**pieces, 'world': 3}, EAGER)
    yield case(odd, 2, 150, 1, {**zero3, 'world': 3}, EAGER)
    yield case(odd, 2, 150, 1, zero3, FULL, REENTRANT, floats, OF_TEXT)
    yield case(small, 2, 200, 1, zero3, FULL, REENTRANT, low, OF_TEXT, {'evaluation': {'batch': 3}})
    yield case(small, 2, 200, 0, zero3)
    yield case(odd, 2, 150, 0, zero3, FULL, FROZEN)
    yield case(small, 2, 200, 1, zero3, SFT, FULL, REENTRANT, low, OF_TEXT)
    for more in ((FULL,), (low,), (FULL, low, FROZEN), (FULL, low, OF_TEXT), (low, adapts_all), (FULL, floats, OF_TEXT)):
        yield case(small, 2, 200, 1, fsdp, *more)
    yield case(odd, 2, 150, 1, {**fsdp, 'world': 3}, FULL, REENTRANT)
    yield case(odd, 2, 150, 0, fsdp, FULL, low)
    yield case(small, 2, 200, 1, fsdp, FULL, low, {'evaluation': {'batch': 3}})
    yield case(odd, 2, 150, 1, fsdp, SFT, FULL, low)
    ddp = {**MIXED, 'sharding': 'ddp', 'world': 2}
    for more in ((), (FULL,), (FULL, low, OF_TEXT), (FULL, REENTRANT, FROZEN)):
        yield case(small, 2, 200, 1, ddp, SFT, *more)
    yield case(odd, 2, 150, 0, ddp, SFT, FULL)
    yield case(odd, 2, 150, 1, {**ddp, 'world': 3}, SFT)


def kernel_cases(small, odd, *of_tower):
    """With flash-attention-2's package (the stand-in), and with liger-kernel"""
    adapts_all, low = make_families.lora(4, [*TEXT, *of_tower, *TOWER]), {'weights': 'bf16'}
    flash, liger = {'attention': 'flash_attention_2'}, {'liger': True}
    yield case(small, 2, 200, 1, BF16, flash)
    yield case(small, 2, 200, 1, {'precision': 'fp16', 'compute_capability': 90}, flash)
    yield case(odd, 1, 333, 3, BF16, FULL, flash)
    yield case(small, 3, 200, 1, MIXED, low, flash, PADDED)
    yield case(small, 2, 200, 1, TRAINER, MIXED, FULL, LOADED, flash, OF_TEXT)
    yield case(odd, 2, 150, 1, TRAINER, MIXED, REENTRANT, low, flash, adapts_all)
    yield case(small, 2, 200, 1, TRAINER, MIXED, FULL, NF4, flash, OF_TEXT)
    yield case(odd, 2, 150, 0, TRAINER, MIXED, low, flash)
    yield case(small, 2, 200, 0, SFT, MIXED, low, flash, PACKED)
    yield case(small, 2, 200, 1, TRAINER, MIXED, FULL, low, flash, FROZEN, {'evaluation': {'batch': 3}})
    for more in ((), (MIXED,), (BF16, FULL)):
        yield case(small, 2, 200, 1, liger, *more)
    yield case(odd, 1, 333, 3, TRAINER, liger, MIXED)
    yield case(odd, 2, 150, 0, TRAINER, liger, MIXED, FULL)
    yield case(small, 2, 200, 1, TRAINER, liger, MIXED, FULL, FROZEN)
    yield case(small, 2, 200, 1, TRAINER, liger, MIXED, FULL, low, OF_TEXT, {'evaluation': {'batch': 3}})
    yield case(small, 2, 200, 1, TRAINER, liger, MIXED, FULL, NF4, adapts_all)
    yield case(odd, 2, 150, 1, SFT, liger, MIXED)
    yield case(small, 2, 200, 1, TRAINER, liger, MIXED, {'sharding': 'zero2', 'world': 2})


def further_cases(small, odd, *of_tower):
    """Bases in 8 bits and in fp4, and modules that are trained in full beside adapters"""
    adapts_all = make_families.lora(4, [*TEXT, *of_tower, *TOWER])
    int8 = {'weights': 'bf16', 'quantization': {'type': 'int8'}}
    fp4 = {'weights': 'bf16', 'quantization': {'type': 'fp4', 'compute': 'bf16'}}
    saved = make_families.lora(8, TEXT, exclude_modules='.*vision_tower.*', modules_to_save=['embed_tokens', 'lm_head'])
    projector = make_families.lora(4, TEXT, exclude_modules='.*vision_tower.*', modules_to_save=['multi_modal_projector'])
    yield case(small, 2, 200, 1, TRAINER, MIXED, FULL, int8, OF_TEXT)
    yield case(odd, 2, 150, 1, BF16, EAGER, int8, adapts_all)
    yield case(small, 2, 200, 0, SFT, MIXED, int8, adapts_all)
    yield case(small, 2, 200, 1, TRAINER, MIXED, fp4, PADDED, OF_TEXT)
    yield case(odd, 2, 150, 1, BF16, FULL, fp4, adapts_all)
    for more in (saved, projector):
        yield case(small, 2, 200, 1, TRAINER, MIXED, FULL, more)
        yield case(odd, 2, 150, 1, BF16, more)
        yield case(odd, 2, 150, 1, SFT, MIXED, {'weights': 'bf16'}, more)
    yield case(small, 2, 200, 0, TRAINER, MIXED, FULL, NF4, saved)
    for sharding in ('ddp', 'zero2'):
        yield case(small, 2, 200, 1, TRAINER, MIXED, FULL, {'weights': 'bf16', 'sharding': sharding, 'world': 2}, projector)


def cases():
    yield from cases_of('x-llava', 'x-llava-odd', 'out_proj')
    yield from cases_of('x-internvl', 'x-internvl-odd', 'projection_layer')
    yield from cases_of_tiles('x-internvl', 'x-internvl-odd')
    for of in (('x-llava', 'x-llava-odd', ['LlamaDecoderLayer', 'CLIPEncoderLayer'], 'out_proj'),
               ('x-internvl', 'x-internvl-odd', None, 'projection_layer')):
        yield from sharded_cases(*of)
        yield from kernel_cases(*of[:2], of[3])
        yield from further_cases(*of[:2], of[3])
    for small in ('x-llava', 'x-internvl'):  # llava is published in fp16
        yield case(small, 2, 200, 1, {'precision': 'fp16', 'optimizer': 'sgd'})
        yield case(small, 2, 200, 1, TRAINER, HALF, FULL, {**LOADED, 'weights': 'fp16'}, OF_TEXT)


if __name__ == '__main__':
    known = by_name(cases()).values()
    for made in make_trl.joined(sys.argv[2], known) if sys.argv[1:2] == ['--join'] else known:
        print(json.dumps(made))
