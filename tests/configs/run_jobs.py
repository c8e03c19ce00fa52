#!/usr/bin/env python3
"""Reads trainers' configs of our own as jobs: run_jobs.py PLIMSOLL [CASE...]

A case is a file of `jobs`: lines `name: value`, then files after `=== NAME`, the first of which is the one that is read.

    command   what is asked: default `import`, whose spec is looked at; or `env`, whose variables are; else a command with
              --json, whose report is
    args      behind the file
    exit      default: 0
    has       KEY=VALUE of the spec, or of the report, by its path; may be repeated
    hasnt     KEY that is not there; may be repeated
    says      text that stderr has to have; may be repeated
    silent    text that stderr must not have; may be repeated
    env       NAME=VALUE, with {dir} for the case's folder; may be repeated
"""
import json
import os
import shlex
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
MANY = ('has', 'hasnt', 'says', 'silent', 'env')


def read_case(path):
    case, files, into = {name: [] for name in MANY}, {}, None
    with open(path, encoding='utf-8') as file:
        for line in file.read().split('\n')[:-1]:
            if line.startswith('=== '):
                into = files.setdefault(line[4:], [])
            elif into is not None:
                into.append(line)
            elif line and not line.startswith('#'):
                name, value = (part.strip() for part in line.split(':', 1))
                if name in MANY:
                    case[name].append(value)
                else:
                    case[name] = value
    return case, files


def spec_values(text):
    """The scalars of a written spec by their paths; its mappings are indented by two."""
    values, above = {}, []
    for line in text.split('\n'):
        if not line.strip():
            continue
        depth, (key, value) = (len(line) - len(line.lstrip())) // 2, line.strip().split(':', 1)
        above = above[:depth] + [key]
        if value.strip():
            values['.'.join(above)] = value.strip().strip('"')
    return values


def report_values(node, path, values):
    if isinstance(node, dict):
        for key, value in node.items():
            report_values(value, f'{path}.{key}' if path else key, values)
    elif isinstance(node, list):
        for index, value in enumerate(node):
            report_values(value, f'{path}[{index}]', values)
    else:
        values[path] = json.dumps(node).strip('"')
    return values


def variables(text):
    return dict(line.removeprefix('export ').split('=', 1) for line in text.split('\n') if '=' in line)


READ = {'import': spec_values, 'env': variables}


def run(plimsoll, path):
    case, files = read_case(path)
    wrong = []
    with tempfile.TemporaryDirectory() as folder:
        for name, lines in files.items():
            os.makedirs(os.path.dirname(os.path.join(folder, name)), exist_ok=True)
            with open(os.path.join(folder, name), 'w', encoding='utf-8') as file:
                file.write('\n'.join(lines) + '\n')
        environment = dict(os.environ, PLIMSOLL_STORE='off', HF_HUB_CACHE=os.path.join(folder, 'no-cache'))
        environment.update(entry.replace('{dir}', folder).split('=', 1) for entry in case['env'])
        command = case.get('command', 'import')
        arguments = [command, next(iter(files))] + shlex.split(case.get('args', '')) + ['--json'] * (command not in READ)
        done = subprocess.run([plimsoll] + arguments, cwd=folder, env=environment, capture_output=True, text=True,
                              check=False)
    if done.returncode != int(case.get('exit', '0')):
        wrong.append(f'exit {done.returncode}')
    values = {}
    if done.stdout:
        values = READ[command](done.stdout) if command in READ else report_values(json.loads(done.stdout), '', {})
    for pair in case['has']:
        key, value = pair.split('=', 1)
        if values.get(key) != value:
            wrong.append(f'{key} is {values.get(key)}, expected {value}')
    wrong += [f'{key} is {values[key]}' for key in case['hasnt'] if key in values]
    wrong += [f'not said: {text}' for text in case['says'] if text not in done.stderr]
    wrong += [f'said: {text}' for text in case['silent'] if text in done.stderr]
    if wrong:
        print(f'{os.path.basename(path)}: ' + '; '.join(wrong) + '\n' + done.stderr)
    return not wrong


def main():
    plimsoll = os.path.abspath(sys.argv[1])
    names = sys.argv[2:] or sorted(os.listdir(os.path.join(HERE, 'jobs')))
    right = sum(run(plimsoll, os.path.join(HERE, 'jobs', name)) for name in names)
    print(f'{right} of {len(names)}')
    return 0 if right == len(names) else 1


if __name__ == '__main__':
    sys.exit(main())
