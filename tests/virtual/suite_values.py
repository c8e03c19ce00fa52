"""What the virtual GPU knows of values: PyTorch's own operators on the CPU are the judge of operations,
and programs look themselves whether they went the way that they go on a real GPU."""
import functools
import json
import os

from suite_exec import PROGRAMS, first_difference

# Of some 700, those whose last bits are the GPU's (exp, softmax ...) and a few rare ones are not known; before
# PyTorch 2.11 some more.
MOST_UNKNOWN, MOST_UNKNOWN_BEFORE = 23, 46

HF = ('torch', 'transformers')
TRAINER = HF + ('accelerate',)
CHECKED = {'uncertain': False, 'uses': {'checked'}}
KNOWN = {'uncertain': False, 'uses': set()}
UNKNOWN = {'uncertain': True, 'uses': {'decides'}}

# The program, options of exec, needed packages, what has to be in the report, and whether it is in
# the quick selection. Boxes with a score are as many as --assume says.
STEERED = (
    ('steered.py distributions', '', ('torch',), KNOWN, False),
    ('steered.py unique', '', ('torch',), KNOWN, False),
    ('steered.py finite', '', ('torch',), CHECKED, False),
    ('steered.py norms', '', ('torch',), {**KNOWN, 'assumed': 'learned numbers are finite'}, False),
    ('steered.py masked_head', '', HF, KNOWN, False),
    ('steered.py experts', '', HF, {**KNOWN, 'assumed': 'the largest of learned numbers are spread evenly, as routing is'}, False),
    ('steered.py switch', '', ('torch',), {**KNOWN, 'assumed': 'the largest of learned numbers are spread evenly, as routing is'}, False),
    ('steered.py binned', '', ('torch',), {**CHECKED, 'assumed': 'values counted by bincount are less than its minlength'}, False),
    ('steered.py packed', '', ('torch',), KNOWN, False),
    ('steered.py pooled', '', ('torch',), {**KNOWN, 'assumed': 'the largest of learned numbers are spread evenly, as routing is'}, False),
    ('steered.py dropped', '', ('torch',), {**KNOWN, 'assumed': 'random numbers are those of some seed'}, False),
    ('steered.py converged', '', ('torch',), {**UNKNOWN, 'turned': [3]}, False),
    ('steered.py converged', '--assume steered.py:{until}=false*4,true', ('torch',), {'uncertain': False, 'uses': {'given'}}, False),
    ('steered.py watched', '', ('torch',), {**KNOWN, 'assumed': ''}, True),
    ('steered.py detection', '', ('torch',), UNKNOWN, False),
    ('steered.py detection', '--assume steered.py:{any}=1 --assume steered.py:{some}=30 --assume steered.py:{has}=30',
     ('torch',), {'uncertain': False, 'uses': {'given'}}, True),
    ('steered.py detr', '', HF + ('scipy',), CHECKED, False),
    ('steered.py llava', '', HF, KNOWN, False),
    ('steered.py qwen2_vl', '', HF, KNOWN, False),
    ('steered.py early_stopping', '', TRAINER, KNOWN, False),
    ('steered.py generate', '', HF,
     {'uncertain': False, 'assumed': 'generated text has its maximum length'}, False),
    ('steered.py beams', '', HF,
     {**KNOWN, 'assumed': 'learned numbers are finite; the largest of learned numbers are spread evenly, as routing is; '
                          'generated text has its maximum length'}, False),
    ('steered.py boxes_with_a_score', '', ('torch',), UNKNOWN, False),
    ('steered.py hard_examples', '', ('torch',), UNKNOWN, False),
    ('steered.py any_selected', '', ('torch',), {**UNKNOWN, 'turned': [1]}, False),
    ('steered.py offloaded', '', ('torch',), {**KNOWN, 'idle': {'kept'}}, False),
    ('steered.py returned', '', ('torch',), UNKNOWN, True),
    ('steered.py sampled', '', ('torch',),
     {'uncertain': True, 'uses': {'checked', 'decides'},
      'assumed': 'learned numbers are finite; random numbers are those of some seed; masks of learned numbers select '
                 'all that they may'}, True),
    ('steered.py divided', '', ('torch',), {'uncertain': False, 'idle': {'shown'}}, True),
    ('steered.py pruned', '', ('torch',), UNKNOWN, False),
    ('steered.py patience', '', ('torch',), UNKNOWN, False),
    ('ppo.py', '', ('torch',), KNOWN, True),
    ('ppo.py --continuous', '', ('torch',), CHECKED, False),
    ('ppo.py --target-kl 0.01', '', ('torch',), UNKNOWN, False),
    ('stable_baselines.py', '', ('torch', 'stable_baselines3'), UNKNOWN, False),
    ('yolo.py', '', ('torch', 'ultralytics'), UNKNOWN, False),
)

# Programs whose peaks are those with the host's answer, and whether they are in the quick selection.
ANSWERED = (
    ('masks_trainer.py --kind causal --mask none', TRAINER, False),
    ('masks_trainer.py --kind causal --mask ones', TRAINER, False),
    ('masks_trainer.py --kind causal --mask padded', TRAINER, False),
    ('masks_trainer.py --kind bidirectional --mask none', TRAINER, False),
    ('masks_trainer.py --kind bidirectional --mask ones', TRAINER, False),
    ('masks_trainer.py --kind bidirectional --mask padded', TRAINER, False),
    ('counted.py --model bert', HF, True),
    ('counted.py --model mixtral', HF, False),
    ('labelled.py', ('torch',), True),
)


def check_operations(exec_):
    name = 'values operations.py'
    lacks = exec_.installation.lacks('torch')
    if lacks:
        return [(name, '', lacks)]
    run = exec_.run(['operations.py'])
    found = run.lines[-1] if run.lines else {}
    problems = found.get('wrong', [f'it did not come to its end\n{run.tail()}'])
    unknown = found.get('unknown', [])
    is_before = exec_.installation.lacks('torch>=2.11')
    if len(unknown) > (MOST_UNKNOWN_BEFORE if is_before else MOST_UNKNOWN):
        problems.append(f'{len(unknown)} are not known: {", ".join(unknown)}')
    if not is_before and found.get('lost'):
        problems.append(f'operands are not known after {", ".join(found["lost"])}')
    return [(name, '\n'.join(problems), '')]


def places():
    """Lines of steered.py, by the mark that they end with."""
    with open(os.path.join(PROGRAMS, 'steered.py')) as file:
        lines = file.read().splitlines()
    return {mark: 1 + next(i for i, line in enumerate(lines) if line.endswith(f'# {mark}'))
            for mark in ('any', 'some', 'has', 'until')}


def check_steered(exec_, key, program, options, needed, expected):
    lacks = exec_.installation.lacks(*needed)
    if lacks:
        return [(key, '', lacks)]
    run = exec_.run(program.split(), more=options.split())
    if run.status:
        return [(key, f'exit code {run.status} of exec\n{run.tail()}', '')]
    found = {'uncertain': run.report.get('uncertain'),
             'uses': {read['use'] for read in run.report.get('unknown_reads', [])},
             'idle': {read['use'] for read in run.report.get('shown_reads', [])},
             'turned': [read['turned'] for read in run.report.get('unknown_reads', []) if read['turned']],
             'assumed': run.report.get('assumptions', '')}
    unread = [why for why in run.report['why'] if 'had no effect' in why]
    if unread:
        return [(key, unread[0], '')]
    return [(key, first_difference(found, expected), '')]


def check_answered(exec_, key, needed):
    """Peaks are those of the same program when the host answers what is asked of the GPU."""
    lacks = exec_.installation.lacks(*needed)
    if lacks:
        return [(key, '', lacks)]
    asked, answered = exec_.run(key.split()), exec_.run(key.split() + ['--answered'])
    for run in (asked, answered):
        if run.status or not run.lines:
            return [(key, f'exit code {run.status} of exec\n{run.tail()}', '')]
    if asked.report['unknown_reads']:
        return [(key, json.dumps(asked.report['unknown_reads']), '')]
    return [(key, first_difference(asked.lines[-1], answered.lines[-1]), '')]


def values(exec_, options):
    if options.wants('values operations.py', True):
        yield lambda: check_operations(exec_)
    marks = places()
    for program, more, needed, expected, is_quick in STEERED:
        key = f'{program} {more}'.strip()
        if options.wants(key, is_quick):
            yield functools.partial(check_steered, exec_, key, program, more.format(**marks), needed,
                                    expected)
    for key, needed, is_quick in ANSWERED:
        if options.wants(key, is_quick):
            yield functools.partial(check_answered, exec_, key, needed)
