"""Programs as people write them, run to their end on the virtual GPU.

figures.json holds their peaks with the installation that it names, made on the prototype of the
virtual GPU (CUDA graphs and JAX, which that has not: by ourselves). With the same versions they are equal
to the byte; with others they have to be within half and double of it, but for those of programs
that compile: what compilers allocate when they try kernels differs from version to version.
"""
import functools
import json
import os

from suite_exec import HERE, first_difference

MEMORY = 80 << 30  # bytes of the GPU

HF = ('torch', 'transformers', 'accelerate')
LIGHTNING = ('torch', 'torchvision', 'lightning')
TIMM = ('torch', 'timm')
BNB = ('torch', 'transformers', 'peft', 'bitsandbytes')

# Command, needed packages, ranks, whether it is in the quick selection.
PROGRAMS = (
    ('nanogpt.py --model tiny --seq 256', ('torch',), 0, False),
    ('nanogpt.py --batch-size 8 --grad-accum 2', ('torch',), 0, False),
    ('nanogpt.py --model tiny --seq 256 --compile', ('torch',), 0, False),
    ('hf_trainer.py --model tiny --seq 256', HF, 0, False),
    ('hf_trainer.py --batch-size 4 --grad-accum 2 --checkpointing', HF, 0, False),
    ('lightning_fit.py --batch-size 16 --grad-accum 2', LIGHTNING, 0, False),
    ('lightning_fit.py --batch-size 16 --precision 16-mixed', LIGHTNING, 0, False),
    ('timm_train.py --model resnet50 --batch-size 16 --channels-last', TIMM, 0, False),
    ('timm_train.py --model resnet50 --batch-size 16 --dtype float16', TIMM, 0, False),
    ('timm_train.py --model vit_base_patch16_224 --batch-size 16 --average', TIMM, 0, False),
    ('timm_train.py --model convnext_tiny --batch-size 16 --channels-last', TIMM, 0, False),
    ('compile_train.py', ('torch',), 0, False),
    ('compile_train.py --mode reduce-overhead', ('torch',), 0, False),
    ('compile_train.py --mode graph', ('torch',), 0, True),
    ('lora_bnb.py --model llama-1b', BNB, 0, False),
    ('lora_bnb.py --bits 8', BNB, 0, True),
    ('lora_bnb.py --bits 4 --optimizer PagedAdamW8bit', BNB, 0, False),
    ('accelerate_find.py', ('torch', 'accelerate'), 0, False),
    ('math_libraries.py fft', ('torch',), 0, False),
    ('math_libraries.py solver', ('torch',), 0, False),
    ('math_libraries.py sparse', ('torch',), 0, False),
    ('jax_train.py', ('jax',), 0, False),
)
RANKS = (
    ('objects.py', ('torch>=2.6',), 2, False),
    ('ddp.py', ('torch',), 2, True),
    ('ddp.py --zero', ('torch',), 2, False),
    ('fsdp.py', ('torch',), 2, False),
    ('fsdp.py --second', ('torch>=2.6',), 2, False),
    ('ddp.py', ('torch',), 8, False),
    ('fsdp.py --second', ('torch>=2.6',), 8, False),
)
GIVES_NO_PEAKS = ('objects.py',)
LOOKS_ITSELF = ('accelerate_find.py',)  # exec says that nothing fits: memory was refused


def load_figures():
    with open(os.path.join(HERE, 'programs', 'figures.json')) as file:
        return json.load(file)


def key_of(command, ranks):
    return command + (f' x{ranks}' if ranks else '')


def check_figures(installed, known, key, found):
    expected = known['figures'].get(key)
    if expected is None:
        return f'no figures of {key}: {json.dumps(found)}'
    if not installed.differs(**known['versions']):
        return first_difference(found, expected)
    is_compiled = 'compile' in key and 'graph' not in key  # then peaks are the compiler's
    names = ('end_allocated',) if is_compiled else ('peak_allocated', 'peak_reserved')
    for name in names:
        if not expected[name] / 2 <= found.get(name, 0) <= expected[name] * 2:
            return f'{name}: {found.get(name)}, expected something like {expected[name]}'
    return ''


def run_program(exec_, known, command, needed, ranks):
    key = key_of(command, ranks)
    lacks = exec_.installation.lacks(*needed)
    if lacks:
        return [(key, '', lacks)]
    run = exec_.run(command.split(), memory=MEMORY, ranks=ranks)
    program = command.split()[0]
    if run.status and program not in LOOKS_ITSELF:
        return [(key, f'exit code {run.status} of exec\n{run.tail()}', '')]
    if program in GIVES_NO_PEAKS:
        return [(key, '', '')]
    if not run.lines or 'peak_allocated' not in run.lines[-1]:
        return [(key, f'no figures\n{run.tail()}', '')]
    return [(key, check_figures(exec_.installation, known, key, run.lines[-1]), '')]


def part(table):
    def tasks(exec_, options):
        known = load_figures()
        for command, needed, ranks, is_quick in table:
            if options.wants(key_of(command, ranks), is_quick):
                yield functools.partial(run_program, exec_, known, command, needed, ranks)
    return tasks


programs, ranks = part(PROGRAMS), part(RANKS)
