#!/usr/bin/env python3
"""Applies sizes to configs of our own and compares every byte: run_cases.py PLIMSOLL [--plain] [CASE...]

A case is a file of `cases`: lines `name: value`, then files after `=== NAME`, then what becomes of them after `--- NAME`:
`N: text` for line N, `N+: text` for a line behind it. No such section: the file stays as it is.

    args      of `plimsoll apply`, besides the files; default: --micro-batch 4 --accumulation 8, with a plan nothing
    plan      of `plimsoll plan`: its answer is the result that is applied
    exit      default: 0
    says      text that stderr has to have; `prints` the same of stdout; `keeps` text that stderr must not have; all may be
              repeated
    with      crlf, bom, nofinal: what is done to every file, before and after
    files     the order of the files; default: as they stand
Every case is tried as it is, with CRLF, with a byte order mark (not scripts) and without its last newline; `revert` has to
bring every byte back, and a second `apply` must not write. --plain tries every case as it is only.
"""
import os
import shlex
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
BOM = b'\xef\xbb\xbf'


def read_case(path):
    case = {'exit': '0', 'says': [], 'prints': [], 'keeps': [], 'with': ''}
    files, changes, into = {}, {}, None
    with open(path, encoding='utf-8') as file:
        for line in file.read().split('\n')[:-1]:
            if line.startswith('=== '):
                into = files.setdefault(line[4:], [])
            elif line.startswith('--- ') and line[4:] in files:
                into = changes.setdefault(line[4:], [])
            elif into is not None:
                into.append(line)
            elif line and not line.startswith('#'):
                name, value = line.split(':', 1)
                value = value.strip()
                if name in ('says', 'prints', 'keeps'):
                    case[name].append(value)
                else:
                    case[name] = value
    return case, files, changes


def changed(lines, changes):
    out = list(lines)
    for change in reversed(changes):
        place, text = change.split(': ', 1) if ': ' in change else (change[:-1], '')
        number = int(place.rstrip('+'))
        out[number - 1 + place.endswith('+'):number] = [text]
    return out


def as_bytes(lines, dress):
    data = '\n'.join(lines + ['']).encode()
    if 'nofinal' in dress:
        data = data.rstrip(b'\n')
    if 'crlf' in dress:
        data = data.replace(b'\n', b'\r\n')
    return BOM + data if 'bom' in dress else data


def run(program, command, folder):
    return subprocess.run([program] + command, cwd=folder, capture_output=True, text=True)


def read(folder, name):
    with open(os.path.join(folder, name), 'rb') as file:
        return file.read()


def try_case(program, path, dress):
    case, files, changes = read_case(path)
    dress = dress + case['with'].split()
    order = case['files'].split() if 'files' in case else list(files)
    args = shlex.split(case.get('args', '' if 'plan' in case else '--micro-batch 4 --accumulation 8'))
    with tempfile.TemporaryDirectory(prefix='a blank ') as folder:
        before = {name: as_bytes(lines, dress) for name, lines in files.items()}
        after = {name: as_bytes(changed(lines, changes.get(name, [])), dress) for name, lines in files.items()}
        for name, data in before.items():
            os.makedirs(os.path.dirname(os.path.join(folder, name)), exist_ok=True)
            with open(os.path.join(folder, name), 'wb') as file:
                file.write(data)
        if 'plan' in case:
            planned = run(program, ['plan', '--quiet', '--out', 'result.json'] + shlex.split(case['plan']), folder)
            if planned.returncode:
                return f'plan: {planned.stderr}'
            order = ['result.json'] + order
        result = run(program, ['apply'] + args + order, folder)
        if result.returncode != int(case['exit']):
            return f'exit {result.returncode}, expected {case["exit"]}: {result.stdout}{result.stderr}'
        for name in files:
            here = read(folder, name)
            if here != after[name]:
                return f'{name} is {here!r}, expected {after[name]!r}\n{result.stdout}{result.stderr}'
        for kind, text in (('says', result.stderr), ('prints', result.stdout)):
            for wanted in case[kind]:
                if wanted not in text:
                    return f'{kind} {text!r}, expected {wanted!r}'
        for unwanted in case['keeps']:
            if unwanted in result.stderr:
                return f'says {result.stderr!r}, expected it to keep {unwanted!r} to itself'
        touched = [name for name in files if before[name] != after[name]]
        if not touched:
            return None if not [f for f in os.listdir(folder) if 'plimsoll' in f] else 'left something behind'
        inodes = [os.stat(os.path.join(folder, name)).st_ino for name in touched]
        again = run(program, ['apply'] + args + order, folder)
        if again.returncode or inodes != [os.stat(os.path.join(folder, name)).st_ino for name in touched]:
            return f'a second apply did something: {again.stdout}{again.stderr}'
        back = run(program, ['revert'] + touched, folder)
        if back.returncode or any(read(folder, name) != data for name, data in before.items()):
            return f'revert: {back.stdout}{back.stderr}'
        left = [f for _, _, names in os.walk(folder) for f in names if 'plimsoll' in f]
        return f'left behind: {left}' if left else None


def dresses(path):
    files = read_case(path)[1]
    script = any(name.endswith(('.sh', '.slurm', '.sbatch')) for name in files)
    return [[], ['nofinal']] if script else [[], ['nofinal'], ['crlf'], ['bom']]


def main(arguments):
    program = os.path.abspath(arguments[0])
    plain = '--plain' in arguments
    chosen = [a for a in arguments[1:] if a != '--plain']
    failed = count = 0
    for name in sorted(os.listdir(os.path.join(HERE, 'cases'))):
        if not name.endswith('.case') or (chosen and not any(a in name for a in chosen)):
            continue
        path = os.path.join(HERE, 'cases', name)
        for dress in [[]] if plain else dresses(path):
            count += 1
            problem = try_case(program, path, dress)
            if problem:
                failed += 1
                print(f'{name} {" ".join(dress)}: {problem}')
    print(f'{count - failed} of {count}')
    sys.exit(failed > 0 or not count)


if __name__ == '__main__':
    main(sys.argv[1:])
