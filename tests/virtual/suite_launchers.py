"""One program, started in the ways in which people start theirs: each trial has to end by the program's steps, which
never end by themselves, and with the peak that the program has when nothing stands between."""
import functools
import json
import os
import subprocess

from suite_exec import PROGRAMS

PROGRAM = 'nanogpt.py --model tiny --seq 256 --max-steps 1000000'.split()
AGAIN = 'import os, sys; os.execv(sys.executable, [sys.executable, *sys.argv[1:]])'
CHILD = 'import subprocess, sys; sys.exit(subprocess.call([sys.executable, *sys.argv[1:]]))'
MODULE = 'import runpy, sys; del sys.argv[0]; runpy.run_path(sys.argv[0], run_name="__main__")'
WORKERS = """
import sys, runpy, torch
loader = torch.utils.data.DataLoader(list(range(64)), batch_size=4, num_workers=2, persistent_workers=True)
first = next(iter(loader))
del sys.argv[0]
runpy.run_path(sys.argv[0], run_name="__main__")
"""

# Name, needed packages, what stands before the program behind the Python, is it quick.
LAUNCHERS = (
    ('torchrun', ('torch',), ['-m', 'torch.distributed.run', '--standalone', '--nproc_per_node=1'], False),
    ('accelerate launch', ('torch', 'accelerate'),
     ['-m', 'accelerate.commands.launch', '--num_processes=1', '--num_machines=1', '--mixed_precision=no',
      '--dynamo_backend=no'], False),
    ('a command that executes itself again', ('torch',), ['-c', AGAIN], False),
    ('a command that starts another', ('torch',), ['-c', CHILD], False),
    ('a command that runs a script', ('torch',), ['-c', MODULE], False),
    ('a data loader with workers', ('torch',), ['-c', WORKERS], False),
)


def peak_of(exec_, before):
    """Bytes of a trial, and what was wrong with it."""
    command = [exec_.plimsoll, 'exec', '--device', 'sim:A100-SXM4-80GB', '--margin', '0', '--overhead', '0',
               '--timeout', '90s', '--no-store', '--json', '--quiet', '--', exec_.installation.python, *before, *PROGRAM]
    ended = subprocess.run(command, capture_output=True, text=True, cwd=PROGRAMS, stdin=subprocess.DEVNULL,
                           env=dict(os.environ, OMP_NUM_THREADS='1'))
    try:
        report = json.loads(ended.stdout)
    except ValueError:
        report = {}
    if ended.returncode or not report.get('choice'):
        return None, f'exit code {ended.returncode}\n' + '\n'.join(report.get('why', [])) + ended.stderr[-1500:]
    return report['choice']['peak']['reserved_bytes'], ''


def run_launched(exec_, name, needed, before):
    title = f'{PROGRAM[0]} by {name}'
    lacks = exec_.installation.lacks(*needed)
    if lacks:
        return [(title, '', lacks)]
    alone, problem = peak_of(exec_, [])
    if not problem:
        launched, problem = peak_of(exec_, before)
    if not problem and launched != alone:
        problem = f'{launched} bytes, {alone} without it'
    return [(title, problem, '')]


def launchers(exec_, options):
    for name, needed, before, is_quick in LAUNCHERS:
        if options.wants(name, is_quick):
            yield functools.partial(run_launched, exec_, name, needed, before)
