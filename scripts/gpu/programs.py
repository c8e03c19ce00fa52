"""Programs as people write them, on the GPU and on the virtual GPU beside it: the same blocks in the same order.

Both runs are made on this machine, with this Python, so that their versions are the same.
"""
import itertools
import json
import os
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

import gpu
from record import Case, Late

HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAMS = (
    *(f'layers.py {model}' for model in ('lstm', 'gru', 'words', 'bags', 'unet1d', 'unet2d', 'unet3d', 'attention',
                                         'warped', 'chosen', 'depthwise3', 'depthwise7')),
    *(f'layers.py {model} --precision bf16 --channels-last' for model in ('unet2d', 'depthwise3', 'depthwise7')),
    *(f'layers.py {model} --precision fp16' for model in ('lstm', 'unet3d', 'attention')),
    'math_libraries.py fft', 'math_libraries.py solver', 'math_libraries.py sparse',
    'timm_train.py --model resnet50 --batch-size 16 --channels-last',
    'timm_train.py --model resnet50 --batch-size 16 --dtype float16',
    'timm_train.py --model vit_base_patch16_224 --batch-size 16 --average',
    'timm_train.py --model convnext_tiny --batch-size 16 --channels-last',
    'nanogpt.py --batch-size 8 --grad-accum 2', 'hf_trainer.py --batch-size 4 --grad-accum 2 --checkpointing',
    'lightning_fit.py --batch-size 16 --grad-accum 2', 'lightning_fit.py --batch-size 16 --precision 16-mixed',
    'counted.py --model bert', 'counted.py --model mixtral', 'compile_train.py --mode graph',
    'compile_train.py', 'compile_train.py --mode reduce-overhead', 'nanogpt.py --model tiny --seq 256 --compile',
    'side_streams.py --batch-size 8', 'jax_train.py', 'drawn.py',
)
# Alone on the GPU, for the seconds of a step: `plimsoll explain RECORDING` of each says ours.
ALONE = (
    'nanogpt.py --batch-size 8 --max-steps 20',
    'nanogpt.py --model tiny --seq 64 --batch-size 1 --max-steps 30',
    'timm_train.py --model resnet50 --batch-size 64 --channels-last --max-steps 20',
    'timm_train.py --model resnet50 --batch-size 64 --dtype float32 --max-steps 20',
    'timm_train.py --model vit_base_patch16_224 --batch-size 64 --max-steps 20',
    'timm_train.py --model convnext_tiny --batch-size 64 --channels-last --max-steps 20',
    'hf_trainer.py --batch-size 8 --max-steps 20',
    'layers.py lstm --batch 64 --steps 20', 'layers.py unet3d --batch 16 --steps 20 --precision bf16',
)
# torch.compile tries kernels by their speed, which the virtual GPU has not.
MAY_DIFFER = ('--compile', 'compile_train.py', 'jax_train.py')
CONTEXT = 3  # events before the first that differs
SETTINGS = {'OMP_NUM_THREADS': '1', 'HF_HUB_OFFLINE': '1', 'PYTHONDONTWRITEBYTECODE': '1',
            'XLA_PYTHON_CLIENT_PREALLOCATE': 'false', 'XLA_FLAGS': '--xla_gpu_autotune_level=0'}


def in_order(events):
    """Autocast gives its copies back in the order of their addresses on the host, which is another each
    time: what is given back in one go stands by its size."""
    ordered = []
    for is_free, some in itertools.groupby(events, lambda event: event[0].startswith('free')):
        ordered += sorted(some, key=lambda event: event[:2]) if is_free else some
    return ordered


def first_difference(real, virtual):
    """The first event in which they differ, with those around it; None if there is none."""
    real, virtual = in_order(real), in_order(virtual)
    for i, (a, b) in enumerate(zip(real, virtual)):
        if a[:2] != b[:2]:
            break
    else:
        if len(real) == len(virtual):
            return None
        i = min(len(real), len(virtual))
    around = slice(max(0, i - CONTEXT), i + CONTEXT + 1)
    return {'event': i, 'real': real[around], 'virtual': virtual[around]}


def told(log):
    """The last line that is JSON."""
    return (gpu.json_lines(log) or [None])[-1]


def run_one(command, path, seconds, env):
    """What measured.py found, with the last line of the program itself."""
    code, out, err = gpu.run(command, seconds, env)
    if code == 'killed':
        raise Late({'command': command[:3]})
    log = os.path.join(os.path.dirname(path), 'trial-1.log')
    if command[1] == 'exec' and os.path.exists(log):
        with open(log, encoding='utf-8', errors='replace') as file:
            out = file.read()
    if not os.path.exists(path):
        raise gpu.Failed(f'{command[0]}: exit code {code}: {(out + err)[-1500:]}')
    with open(path, encoding='utf-8') as file:
        return dict(json.load(file), said=told(out))


FIGURES = ('peak_allocated', 'peak_reserved', 'peak_requested', 'reserved', 'retries', 'process_bytes')


def compare(program, real, virtual):
    difference = first_difference(real['events'], virtual['events'])
    same = all(real.get(name) == virtual.get(name) for name in FIGURES[:3])
    is_free = any(word in program for word in MAY_DIFFER)
    return {'ok': is_free or (same and not difference), 'equal': same and not difference,
            'events': len(real['events']), 'differs': difference,
            'step_milliseconds': real['step_milliseconds'][-8:], 'segments': real.get('segments'),
            'said': None if real['said'] == virtual['said'] else [real['said'], virtual['said']],
            'real': {name: real.get(name) for name in FIGURES},
            'virtual': {name: virtual.get(name) for name in FIGURES}}


def with_torch(run):
    """A case that is skipped where nothing real can be trained."""
    def checked(bench, seconds, results):
        lacks = bench.lacks_torch() or ('a stand-in trains nothing' if bench.framework.is_stand_in else None)
        return {'ok': True, 'skipped': lacks} if lacks else run(bench, seconds, results)
    return checked


def words(bench, program):
    name, *arguments = program.split()
    return [os.path.join(bench.root, 'tests', 'virtual', 'programs', name), *arguments]


def measured(file, *options):
    return [sys.executable, os.path.join(HERE, 'measured.py'), *options, file]


def program_of(program):
    @with_torch
    def run(bench, seconds, _):
        with tempfile.TemporaryDirectory(prefix='gpu-suite-') as folder:
            files = [os.path.join(folder, kind) for kind in ('real.json', 'virtual.json')]
            plain, under = ([*measured(file), *words(bench, program)] for file in files)
            exec_ = [bench.programs.plimsoll, 'exec', '--device', bench.sim, '--margin', '0',
                     '--overhead', '0', '--repetitions', '1000000', '--logs', folder, '--quiet', '--json', '--']
            envs = [dict(bench.programs.env, **SETTINGS, TORCHINDUCTOR_CACHE_DIR=os.path.join(folder, kind, 'inductor'),
                         TRITON_CACHE_DIR=os.path.join(folder, kind, 'triton')) for kind in ('r', 'v')]
            with ThreadPoolExecutor() as pool:
                real, virtual = pool.map(run_one, (plain, exec_ + under), files, (seconds, seconds), envs)
            return compare(program, real, virtual)
    return run


def list_programs(bench):
    return [Case(program, 100, program_of(program)) for program in PROGRAMS]


def alone(program):
    @with_torch
    def run(bench, seconds, _):
        with tempfile.TemporaryDirectory(prefix='gpu-suite-') as folder:
            path = os.path.join(folder, 'real.json')
            found = run_one([*measured(path, '--seconds'), *words(bench, program)], path, seconds, dict(bench.programs.env, **SETTINGS))
        steps = found['step_milliseconds']
        return {'ok': len(steps) > 8, 'step_milliseconds': sorted(steps[5:])[len(steps[5:]) // 2],
                'steps': steps, **{name: found.get(name) for name in FIGURES}}
    return run


@with_torch
def run_driver_costs(bench, seconds, _):
    code, out, err = gpu.run([sys.executable, os.path.join(HERE, 'driver_costs.py')], seconds, bench.programs.env)
    return {'ok': code == 0, **(told(out) or {'why': err[-500:]})}


SEARCHED = '12GiB'
SEARCH = ['--batch', '4:16', '--steps', '5', '--json', '--quiet', '--margin', '0']


def search_on(bench, device, seconds):
    program = [sys.executable, *words(bench, 'nanogpt.py --max-steps 100 --batch-size {batch}')]
    command = [bench.programs.plimsoll, 'exec', '--device', f'{device},memory={SEARCHED}', *SEARCH, '--', *program]
    begin = time.monotonic()
    code, out, err = gpu.run(command, seconds, dict(bench.programs.env, **SETTINGS))
    report = None if code == 'killed' else told(out.replace('\n', ' '))
    return {'seconds': time.monotonic() - begin, 'report': report, 'stderr': err[-1000:]}


@with_torch
def search_by_exec(bench, seconds, _):
    """The largest batch of a program, searched on the GPU and meanwhile on the virtual one."""
    with ThreadPoolExecutor() as pool:
        found = list(pool.map(search_on, (bench, bench), (bench.programs.device, bench.sim), (seconds, seconds)))
    result = dict(zip(('real', 'virtual'), found))
    if not all(one['report'] for one in found):
        raise Late(result)
    largest = [(one['report'].get('largest_fit') or {}).get('micro_batch') for one in found]
    return {'ok': bool(largest[0]) and largest[0] == largest[1], 'largest': largest, **result}


def list_alone(_):
    return [Case('driver', 15, run_driver_costs), *(Case(program, 40, alone(program)) for program in ALONE),
            Case('exec', 75, search_by_exec)]
