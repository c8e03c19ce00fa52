#!/usr/bin/env python3
"""Real programs on the virtual GPU: suite.py --plimsoll BIN --python VENV/bin/python

Prints TAP, and a summary at the end. Parts:
    golden    golden training runs: every figure of four steps equal to the byte
    fit       the largest batch of a GPU, searched by exec
    programs  nanoGPT, transformers, Lightning, timm, torch.compile, LoRA, accelerate, JAX
    launchers   torchrun, accelerate launch, commands that start the program again
    recordings  a size that was not recorded, against a trial
    ranks     DDP and FSDP on 2 and 8 ranks
    runtimes  a small program with each of CUDA's runtimes from 11.8 to 13, shared and linked in
    steps     programs whose steps are recognised from little
    values    operations and programs that hang on values which the GPU computes
    seeds     five training systems that people have, and their measured cases
    jobs      configs of transformers' Trainer, read as a spec
    measured  programs and operations as a real GPU ran them, peaks and blocks
What an installation lacks is skipped, and said. install.sh makes one.
"""
import argparse
import concurrent.futures
import os
import re
import sys
import time
import traceback

sys.dont_write_bytecode = True  # nothing is left in the tree
from suite_exec import Exec, Installation
from suite_golden import fit, golden
from suite_jobs import jobs
from suite_launchers import launchers
from suite_measured import measured
from suite_programs import programs, ranks
from suite_recordings import recordings
from suite_runtimes import runtimes
from suite_seeds import seeds
from suite_steps import steps
from suite_values import values

PARTS = {'golden': golden, 'fit': fit, 'programs': programs, 'launchers': launchers, 'recordings': recordings,
         'ranks': ranks, 'runtimes': runtimes, 'steps': steps, 'values': values, 'seeds': seeds,
         'jobs': jobs, 'measured': measured}
# Of what the virtual GPU says it does not know, what no program can be kept from asking.
SAID = ('are estimates', 'RNNs is an estimate', 'has ended', 'batch normalization with channels last',
        'convolutions have cuDNN')


class Options:
    """What is to be run."""

    def __init__(self, arguments):
        self.quick, self.all = arguments.quick, arguments.all
        self.pattern = re.compile(arguments.match) if arguments.match else None

    def wants(self, name, is_quick):
        if self.pattern and not self.pattern.search(name):
            return False
        return is_quick or not self.quick


class Tap:
    def __init__(self):
        self.count = self.failed = self.skipped = 0

    def line(self, name, problem, skipped):
        self.count += 1
        self.failed += bool(problem)
        self.skipped += bool(skipped and not problem)
        name = name.replace('#', ' ')
        said = f' # SKIP {skipped}' if skipped else ''
        print(f'{"not ok" if problem else "ok"} {self.count} - {name}{said}')
        for line in problem.splitlines():
            print(f'# {line}')
        sys.stdout.flush()


def timed(task):
    """What a task says, and the seconds that it took. A fault of its own is a failed test, and the others go on."""
    started = time.monotonic()
    try:
        results = list(task())
    except Exception:  # pylint: disable=broad-exception-caught
        results = [('the suite itself', traceback.format_exc(), '')]
    return results, time.monotonic() - started


def run_parts(names, exec_, options, tap, jobs):
    """All tasks of the parts, some beside each other, said in their order; and which took the longest."""
    took = []
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        tasks = [pool.submit(timed, task) for name in names for task in PARTS[name](exec_, options)]
        for task in tasks:
            results, seconds = task.result()
            for result in results:
                tap.line(*result)
            if results:
                took.append((seconds, results[0][0]))
    for seconds, name in sorted(took, reverse=True)[:10]:
        print(f'# {seconds:.0f} s: {name}')


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--plimsoll', required=True)
    parser.add_argument('--python', required=True, help='of the installation under test')
    parser.add_argument('--only', nargs='+', choices=PARTS, default=list(PARTS), metavar='PART')
    parser.add_argument('--quick', action='store_true', help='a selection, about three minutes')
    parser.add_argument('--all', action='store_true', help='every case there is: hours')
    parser.add_argument('--match', metavar='REGEX', help='only tests whose name has this')
    parser.add_argument('--jobs', type=int, default=1, help='programs at once')
    arguments = parser.parse_args()
    started = time.monotonic()
    if not os.access(arguments.plimsoll, os.X_OK):
        sys.exit(f'suite: {arguments.plimsoll} is no program')
    installation = Installation(os.path.abspath(arguments.python))
    exec_ = Exec(os.path.abspath(arguments.plimsoll), installation)
    tap, options = Tap(), Options(arguments)
    print('# ' + ', '.join(f'{name} {version}' for name, version in installation.versions.items()))
    if not installation.versions.keys() & {'torch', 'jax'}:
        print(f'1..0 # SKIP {arguments.python} has neither torch nor jax')
        return 0
    run_parts(arguments.only, exec_, options, tap, arguments.jobs)
    unanswered = [f'{note} ({", ".join(sorted(seen))})'
                  for note, seen in sorted(exec_.notes.items())
                  if not any(word in note for word in SAID)]
    tap.line('nothing was asked that the virtual GPU does not know', '\n'.join(unanswered), '')
    print(f'1..{tap.count}')
    print(f'# {tap.count - tap.failed - tap.skipped} passed, {tap.failed} failed, '
          f'{tap.skipped} skipped, {time.monotonic() - started:.0f} seconds')
    return 1 if tap.failed else 0


sys.exit(main())
