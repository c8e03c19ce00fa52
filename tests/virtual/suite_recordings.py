"""Programs that are recorded at a few sizes: at a size that was not, the recording has to say what a
trial of the program says, to the byte."""
import functools
import json
import os
import subprocess
import tempfile

from suite_exec import PROGRAMS

SEQS = ('--seq', '64,128,192,256')

# Command, needed packages, options of record, what is asked at another size, is it quick.
RECORDED = (
    ('nanogpt.py --model tiny --seq 128 --max-steps 100 --batch-size {batch}', ('torch',), (),
     {'batch': 13}, True),
    ('nanogpt.py --model tiny --max-steps 100 --batch-size {batch} --seq {seq}', ('torch',), SEQS,
     {'batch': 7, 'seq': 320}, False),
    ('nanogpt.py --model tiny --seq 128 --max-steps 100 --batch-size {batch} --grad-accum {accumulation}',
     ('torch',), (), {'batch': 7, 'accumulation': 6}, False),
)


def ask(exec_, arguments):
    ended = subprocess.run([exec_.plimsoll, *arguments], capture_output=True, text=True,
                           cwd=PROGRAMS, stdin=subprocess.DEVNULL)
    if ended.returncode:
        return None, f'{arguments[0]}: exit code {ended.returncode}\n{ended.stderr[-1500:]}'
    return ended.stdout, ''


def explained(exec_, path, sizes):
    text, problem = ask(exec_, ['explain', path, '--device', 'sim:A100-SXM4-80GB', '--margin', '0',
                                '--overhead', '0', '--json', '--quiet',
                                *(f'--{name}={value}' for name, value in sizes.items())])
    return (None, problem) if problem else (json.loads(text)['peak']['reserved_bytes'], '')


def compare(exec_, command, options, sizes, path):
    words = command.split()
    said, problem = ask(exec_, ['record', '--quiet', '-o', path, *options, '--',
                                exec_.installation.python, *words])
    if problem:
        return problem
    with open(path) as file:
        if 'allocator: pytorch\n' not in file.read():
            return f'the recording does not prove itself\n{said}'
    recorded, problem = explained(exec_, path, sizes)
    if problem:
        return problem
    run = exec_.run([word.format(**sizes) for word in words])
    if run.status:
        return f'exit code {run.status} of exec\n{run.tail()}'
    tried = run.report['choice']['peak']['reserved_bytes']
    return '' if recorded == tried else f'{recorded}, a trial took {tried} ({recorded - tried:+d})'


def run_recorded(exec_, command, needed, options, sizes):
    name = f'{command} recorded, at {sizes}'
    lacks = exec_.installation.lacks(*needed)
    if lacks:
        return [(name, '', lacks)]
    with tempfile.TemporaryDirectory(prefix='plimsoll-suite-') as folder:
        return [(name, compare(exec_, command, options, sizes, os.path.join(folder, 'job.plim')), '')]


def recordings(exec_, options):
    for command, needed, more, sizes, is_quick in RECORDED:
        if options.wants(command, is_quick):
            yield functools.partial(run_recorded, exec_, command, needed, more, sizes)
