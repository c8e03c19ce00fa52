#!/usr/bin/env python3
"""What scripts/reliability and scripts/fuzz found out, kept in tests/reliability.json; tests/RELIABILITY.md shows it.

    scripts/reliability_figures.py fuzzed NAME              seconds of a processor that a target has used until now
    scripts/reliability_figures.py fuzzed NAME INPUTS SECONDS FINDINGS     adds to them
    scripts/reliability_figures.py write                    makes the page anew

Each row has the version and the day it was found out with, so that the parts may be run at different times.
"""
import json
import os
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
KEPT, PAGE = (os.path.join(ROOT, 'tests', name) for name in ('reliability.json', 'RELIABILITY.md'))


def read():
    try:
        with open(KEPT, encoding='utf-8') as file:
            return json.load(file)
    except FileNotFoundError:
        return {'faults': {}, 'fuzzed': {}}


def when():
    """The version that is tried, and today."""
    found = subprocess.run(['git', 'rev-parse', '--short', 'HEAD'], cwd=ROOT, capture_output=True, text=True, check=False)
    return {'version': found.stdout.strip() or 'unknown', 'day': time.strftime('%Y-%m-%d')}


def table(titles, rows):
    align = ['---' if title in ('fault', 'command', 'parser') else '---:' for title in titles]
    lines = [titles, align, *rows]
    return '\n'.join('| ' + ' | '.join(str(cell) for cell in line) + ' |' for line in lines) + '\n'


def replace(path, text):
    """At once: others read while this is written."""
    with open(path + '.new', 'w', encoding='utf-8') as file:
        file.write(text)
    os.replace(path + '.new', path)


def write(kept):
    replace(KEPT, json.dumps(kept, indent=1, sort_keys=True) + '\n')
    faults, fuzzed = kept['faults'], kept['fuzzed']
    tried = sum(row['tried'] for row in faults.values())
    findings = [(name, text) for name, row in faults.items() for text in row['findings']]
    text = ('# Reliability\n\nWritten by `scripts/reliability` and `scripts/fuzz`, not by hand. What counts as surviving '
            'stands at the head\nof the first.\n\n'
            f'## Faults: {tried} tried, {len(findings)} not survived\n\n')
    text += table(['fault', 'command', 'tried', 'not survived', 'version', 'day'],
                  [[name.split(', ')[0], f'`{name.split(", ")[1]}`', row['tried'], len(row['findings']), row['version'],
                    row['day']] for name, row in sorted(faults.items())])
    if findings:
        text += '\nNot survived:\n\n' + ''.join(f'- {name}: {what}\n' for name, what in findings)
    text += (f'\n## Parsers of outside input: {sum(row["inputs"] for row in fuzzed.values())} inputs, '
             f'{sum(row["findings"] for row in fuzzed.values())} findings\n\n')
    text += table(['parser', 'inputs', 'minutes of a processor', 'findings', 'version', 'day'],
                  [[name, row['inputs'], round(row['seconds'] / 60), row['findings'], row['version'], row['day']]
                   for name, row in sorted(fuzzed.items())])
    text += '\nFaults of workers, GPUs and Slurm are in the suites `fault` and `slurm`.\n'
    replace(PAGE, text)


def keep_fault(kept, kind, command, tried, findings):
    kept['faults'][f'{kind}, {command}'] = {'tried': tried, 'findings': findings, **when()}


def keep_fuzzed(kept, name, inputs, seconds, findings):
    old = kept['fuzzed'].get(name, {'inputs': 0, 'seconds': 0, 'findings': 0})
    kept['fuzzed'][name] = {'inputs': old['inputs'] + inputs, 'seconds': old['seconds'] + seconds,
                            'findings': old['findings'] + findings, **when()}


def main(words):
    kept = read()
    if words == ['write']:
        write(kept)
    elif len(words) == 2 and words[0] == 'fuzzed':
        print(kept['fuzzed'].get(words[1], {'seconds': 0})['seconds'])
    elif len(words) == 5 and words[0] == 'fuzzed':
        keep_fuzzed(kept, words[1], *map(int, words[2:]))
        write(kept)
    else:
        sys.exit(__doc__)


if __name__ == '__main__':
    main(sys.argv[1:])
