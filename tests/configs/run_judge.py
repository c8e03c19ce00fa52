#!/usr/bin/env python3
"""Applies sizes to the real configs of ../shared/configs and lets their judge decide: run_judge.py PLIMSOLL [CASE...]

Their variants (BOM, CRLF, LF, no final newline, a line of emoji on top) are tried too. The files belong to others and are
in no checkout: where they are not, the test is skipped (exit 77).
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
SHARED = os.environ.get('PLIMSOLL_CONFIGS', os.path.join(HERE, '../../../shared/configs'))
JUDGE = os.path.join(SHARED, 'tools/judge.py')


def copy(source, folder):
    target = os.path.join(folder, os.path.basename(source))
    shutil.copyfile(source, target)


def apply(program, case, sources):
    """Applies what the case asks for to copies of its files; the folder, which the caller removes, and the exit code."""
    folder = tempfile.mkdtemp(prefix='a blank ')
    for source in sources:
        copy(source, folder)
    command = [program, 'apply', '--micro-batch', str(case['ask'][0]), '--accumulation', str(case['ask'][1]),
               '--dp', str(case['dp'])]
    if case['select']:
        command += ['--select', case['select']]
    result = subprocess.run(command + case['files'], cwd=folder, capture_output=True, text=True)
    return folder, result


def judge_case(program, name):
    with open(os.path.join(SHARED, name, 'case.json'), encoding='utf-8') as file:
        case = json.load(file)
    folder, result = apply(program, case, [os.path.join(SHARED, name, f) for f in case['files']])
    verdict = subprocess.run([sys.executable, JUDGE, os.path.join(SHARED, name), folder, '--exit', str(result.returncode)],
                             capture_output=True, text=True)
    shutil.rmtree(folder)
    return None if verdict.returncode == 0 else f'{verdict.stdout}{verdict.stderr[-400:]}{result.stdout}{result.stderr}'


def lines(path):
    with open(path, 'rb') as file:
        return sorted(line.rstrip(b'\r') for line in file.read().removeprefix(b'\xef\xbb\xbf').split(b'\n'))


def judge_variant(program, variants, variant):
    """The same lines; an added one may stand elsewhere, as the judge has it."""
    name = variant.rsplit('-', 1)[0]
    with open(os.path.join(SHARED, name, 'case.json'), encoding='utf-8') as file:
        case = json.load(file)
    base = os.path.join(variants, variant)
    changed = [f for f in case['files'] if os.path.exists(os.path.join(base, 'in', f))]
    folder, result = apply(program, case, [os.path.join(base, 'in', f) if f in changed else os.path.join(SHARED, name, f)
                                           for f in case['files']])
    wrong = [f for f in changed if lines(os.path.join(folder, f)) != lines(os.path.join(base, 'out', f))]
    shutil.rmtree(folder)
    return f'{wrong}: {result.stdout}{result.stderr}' if wrong else None


def main(arguments):
    if not os.path.exists(JUDGE):
        print(f'SKIPPED: {SHARED} is not there (real configs of others)')
        sys.exit(77)
    try:
        import yaml  # noqa: F401 (the judge reads with it)
    except ImportError:
        print('SKIPPED: the judge needs PyYAML')
        sys.exit(77)
    program, chosen = os.path.abspath(arguments[0]), arguments[1:]
    names = [n for n in sorted(os.listdir(SHARED)) if os.path.exists(os.path.join(SHARED, n, 'case.json'))]
    names = [n for n in names if not chosen or any(c in n for c in chosen)]
    problems = {name: judge_case(program, name) for name in names}
    with tempfile.TemporaryDirectory() as variants:
        subprocess.run([sys.executable, JUDGE, '--variants', variants], check=True, capture_output=True)
        for variant in sorted(os.listdir(variants)):
            if variant.rsplit('-', 1)[0] in names:
                problems[variant] = judge_variant(program, variants, variant)
    failed = {name: problem for name, problem in problems.items() if problem}
    for name, problem in failed.items():
        print(f'{name}: {problem}')
    print(f'{len(problems) - len(failed)} of {len(problems)}')
    sys.exit(bool(failed) or not problems)


if __name__ == '__main__':
    main(sys.argv[1:])
