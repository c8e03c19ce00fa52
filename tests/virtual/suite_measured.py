"""What a real GPU was seen to do (tests/gpu/measured), by the virtual GPU of its kind, memory placed as its driver does."""
import functools
import json
import os
import tempfile

from suite_exec import HERE, first_difference, load_cases
from suite_recordings import ask, seconds_of

MEASURED = os.path.join(os.path.dirname(HERE), 'gpu', 'measured')
QUICK = ('layers.py attention', 'drawn.py', 'nanogpt.py --batch-size 8 --grad-accum 2')
NEEDS = {'hf_trainer.py': ('torch', 'transformers', 'accelerate'), 'counted.py': ('torch', 'transformers'),
         'timm_train.py': ('torch', 'timm'), 'lightning_fit.py': ('torch', 'torchvision', 'lightning')}
# How far peaks may be off where cuDNN's choices or workspaces, which only a GPU tells, are in them; 0: to the byte.
NEAR = {'layers.py lstm': 0.01, 'layers.py gru': 0.01, 'layers.py words': 0.03, 'layers.py lstm --precision fp16': 0.02,
        'layers.py unet2d --precision bf16 --channels-last': 0.01, 'layers.py unet3d --precision fp16': 0.01,
        'math_libraries.py solver': 0.05, 'math_libraries.py sparse': 0.01,
        'timm_train.py --model resnet50 --batch-size 16 --dtype float16': 0.003,
        'hf_trainer.py --batch-size 4 --grad-accum 2 --checkpointing': 0.001, 'lightning_fit.py --batch-size 16 --grad-accum 2': 0.005,
        'counted.py --model mixtral': 0.02}  # the last routes by learned values
# Operations of library_work.py that ask for what they asked for on the GPU, block by block, of so many.
EQUAL = {'fft': (80, 100), 'sparse': (24, 24), 'solver': (136, 206)}


def load(name):
    with open(os.path.join(MEASURED, name)) as file:
        return json.load(file)


def check(program, found, expected):
    share = NEAR.get(program, 0)
    if not share:
        return first_difference(found, expected)
    for name in ('peak_allocated', 'peak_reserved'):
        if abs(found[name] - expected[name]) > share * expected[name]:
            return f'{name}: {found[name]}, measured {expected[name]}'
    return ''


def run_program(exec_, measured, program):
    name = f'{program} as on an {measured["gpu"]}'
    lacks = exec_.installation.lacks(*NEEDS.get(program.split()[0], ('torch',)))
    differs = exec_.installation.differs(**measured['versions'])
    if lacks or differs:
        return [(name, '', lacks or differs)]
    run = exec_.run(program.split(), gpu=measured['device'], placement='driver')
    if run.status or not run.lines or 'peak_allocated' not in run.lines[-1]:
        return [(name, f'no figures\n{run.tail()}', '')]
    return [(name, check(program, run.lines[-1], measured['figures'][program]), '')]


def run_libraries(exec_, measured, kind):
    name = f'library_work.py {kind} as on an {measured["gpu"]}'
    differs = exec_.installation.differs(torch=measured['versions']['torch'])
    if differs:
        return [(name, '', differs)]
    expected = {line['op']: line for line in load_cases(os.path.join(MEASURED, 'h200-libraries.jsonl'))}
    run = exec_.run(['library_work.py', kind], gpu=measured['device'], placement='driver')
    equal = sum(line == expected.get(line.get('op')) for line in run.lines)
    least, count = EQUAL[kind]
    problem = '' if equal >= least and len(run.lines) == count else f'{equal} of {len(run.lines)} equal, expected {least} of {count}'
    return [(name, problem, '')]


def run_costs(exec_, measured):
    """What small requests take of the GPU's memory. It needs no PyTorch."""
    script = os.path.join(os.path.dirname(os.path.dirname(HERE)), 'scripts', 'gpu', 'driver_costs.py')
    run = exec_.run_command([exec_.installation.python, script], gpu=measured['device'], placement='driver')
    found = run.lines[-1].get('small') if run.lines else None
    return [(f'driver_costs.py as on an {measured["gpu"]}', first_difference(found, measured['small']), '')]


# Milliseconds of a step at batch 8 on the H100 (tests/gpu/records, part "alone"), of programs that the host does not hold up.
SECONDS = {'nanogpt.py': 28.0, 'hf_trainer.py': 71.1}
MOST_OFF = 0.12


def run_seconds(exec_, program):
    name = f'{program} recorded, its seconds on an H100'
    lacks = exec_.installation.lacks(*NEEDS.get(program, ('torch',)))
    if lacks:
        return [(name, '', lacks)]
    gpu = 'H100-SXM5-80GB'
    with tempfile.TemporaryDirectory(prefix='plimsoll-suite-') as folder:
        path = os.path.join(folder, 'job.plim')
        _, problem = ask(exec_, ['record', '--quiet', '--device', f'sim:{gpu}', '--each-batch', '--batch', '8', '-o', path, '--',
                                 exec_.installation.python, program, '--batch-size', '{batch}', '--max-steps', '100'])
        if not problem:
            seconds, problem = seconds_of(exec_, path, gpu, 8)
    if not problem and abs(1e3 * seconds / SECONDS[program] - 1) > MOST_OFF:
        problem = f'{1e3 * seconds} ms, measured {SECONDS[program]}'
    return [(name, problem, '')]


def measured(exec_, options):
    for program in SECONDS:
        if options.wants(f'{program} seconds', False):
            yield functools.partial(run_seconds, exec_, program)
    h200 = load('h200-programs.json')
    for program in h200['figures']:
        if options.wants(program, program in QUICK):
            yield functools.partial(run_program, exec_, h200, program)
    if options.wants('driver_costs.py', True):
        yield functools.partial(run_costs, exec_, h200)
    for kind in EQUAL:
        if options.wants(f'library_work.py {kind}', kind == 'fft'):
            yield functools.partial(run_libraries, exec_, h200, kind)
