"""Golden training runs on the virtual GPU: every figure of every step, and largest batches."""
import functools
import os

from suite_exec import HERE, PROGRAMS, UNLIMITED, first_difference, load_cases

GPUS = {75: 'Quadro-RTX-6000', 80: 'A100-SXM4-80GB', 86: 'RTX-3090', 89: 'L40S',
         90: 'H100-SXM5-80GB'}
VERSIONS = {'torch': '2.11.0', 'transformers': '5.17.0'}
FIGURES = ('parameters', 'trainable_parameters', 'parameters_allocated', 'steps')
AT_ONCE = 16  # cases of one start of Python

QUICK = ('gpt2/bf16-mixed/adamw/b1/s64', 'tinyllama-1.1b/bf16-mixed/adamw/b2/s1024/lora')


def files(options):
    golden = os.path.join(HERE, '..', 'golden')
    found = [os.path.join(golden, 'cases.jsonl'), os.path.join(PROGRAMS, 'golden', 'cases.jsonl')]
    return found + ([os.path.join(golden, 'more.jsonl')] if options.all else [])


def chosen(path, options, is_fit):
    return [case for case in load_cases(path) if ('fit' in case) == is_fit and 'steps' in case
            and options.wants(case['id'], case['id'] in QUICK)]


def needs(case):
    names = ['torch', 'transformers']
    names += ['torchvision'] if case['config'].startswith('torchvision:') else []
    names += ['peft'] if 'lora' in case else []
    return names + (['bitsandbytes'] if case['optimizer'] == 'adamw-8bit' else [])


def problems_of(exec_, path, cases, gpu):
    """Of each case what differs, all run by one start of Python."""
    run = exec_.run(['golden.py', path, *[case['id'] for case in cases]], gpu=gpu, memory=UNLIMITED)
    found = {line['id']: line for line in run.lines if 'id' in line}
    problems = {}
    for case in cases:
        figures = found.get(case['id'], {})
        expected = {key: case[key] for key in FIGURES}
        failed = figures.get('error') or figures.get('oom') or ('' if figures else run.tail())
        problems[case['id']] = failed or first_difference(figures, expected)
    return problems


def compare(exec_, path, cases, gpu):
    """(name, problem, why skipped) for each case. What differs is run once more, and named so: autograd's thread lets go of the
    gradient that it began with, 512 bytes, when backward() may have returned, on a busy machine later than usual."""
    installed = exec_.installation
    able = [case for case in cases if not installed.lacks(*needs(case))]
    for case in cases:
        if case not in able:
            yield f'golden {case["id"]}', '', installed.lacks(*needs(case))
    if not able:
        return
    first = problems_of(exec_, path, able, gpu)
    again = [case for case in able if first[case['id']]]
    problems = {**first, **(problems_of(exec_, path, again, gpu) if again else {})}
    for name, problem in problems.items():
        was = f' (run again, first: {first[name].splitlines()[0]})' if first[name] and not problem else ''
        yield f'golden {name}{was}', problem, ''


def golden(exec_, options):
    other = exec_.installation.differs(**VERSIONS)
    if other:
        yield lambda: [('golden', '', other)]
        return
    for path in files(options):
        cases = chosen(path, options, False)
        for capability, gpu in GPUS.items():
            mine = [case for case in cases if case['compute_capability'] == capability]
            for i in range(0, len(mine), AT_ONCE):
                yield functools.partial(compare, exec_, path, mine[i:i + AT_ONCE], gpu)


def search(exec_, path, case):
    """The largest batch that exec finds."""
    name, lacks = f'fit {case["id"]}', exec_.installation.lacks(*needs(case))
    if lacks:
        return [(name, '', lacks)]
    wanted = case['fit']['largest_batch']
    run = exec_.run(['golden.py', path, case['id'], '--batch', '{batch}'],
                    gpu=GPUS[case['compute_capability']], memory=case['fit']['capacity_bytes'],
                    more=['--batch', '1:512'])
    found = run.report.get('largest_fit', {}).get('micro_batch')
    problem = first_difference(found, wanted, 'largest batch')
    return [(name, f'{problem}\n{run.tail()}' if problem else '', '')]


def fit(exec_, options):
    other = exec_.installation.differs(**VERSIONS)
    if other:
        yield lambda: [('fit', '', other)]
        return
    for path in files(options):
        for case in chosen(path, options, True):
            yield functools.partial(search, exec_, path, case)
