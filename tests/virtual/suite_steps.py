"""Programs whose training steps are recognised from little: how many, and by what."""
import functools
import json
import re
import subprocess

from suite_exec import PROGRAMS, TO_ITS_END

# Mode of stepping.py, the steps that have to be seen, by what, and whether it is in the quick selection. Of
# twelve the last is seen whole where an optimizer says so, and the first by which a rule shows are not counted.
STEPPING = (
    ('convolutions', '12', "its optimizer's own word", False),
    ('by_hand', '9', 'writes to weights', True),
    ('recurrent', '9', 'writes to weights', False),
    ('functional', '232', 'repeated launches', True),
)


# Modes of epochs.py, what they need, and whether each is in the quick selection.
EPOCHS = (
    ('loader', (), True),
    ('workers', (), False),
    ('endless', (), False),
    ('left', (), False),
    ('accelerate', ('accelerate',), False),
    ('lightning', ('lightning',), False),
    ('trainer epoch', ('transformers', 'accelerate'), False),
    ('trainer steps', ('transformers', 'accelerate'), False),
)
NOT_SEEN = 'was not seen; --epoch-steps 5 covers it'


def check_epochs(exec_, mode, needs):
    """Short epochs have the peak of whole ones; a trial that ends within the first says what it did not see."""
    key = f'epochs.py {mode}'
    lacks = exec_.installation.lacks('torch>=2.5', *needs)
    if lacks:
        return [(key, '', lacks)]
    runs = [exec_.run(['epochs.py', *mode.split()], more=more) for more in (
        ['--repetitions', '5'], ['--repetitions', '5', '--epoch-steps', '5'], ['--repetitions', str(TO_ITS_END)])]
    for run in runs:
        if run.status:
            return [(key, f'exit code {run.status} of exec\n{run.tail()}', '')]
    first, short, whole = (run.report['choice']['peak']['reserved_bytes'] for run in runs)
    said = [NOT_SEEN in ' '.join(run.report.get('why', [])) for run in runs]
    problem = ''
    if not first < short == whole:
        problem = f'peaks of {first} bytes in the first epoch, {short} with short epochs, {whole} in all'
    elif mode in ('loader', 'workers') and not re.search(
            r'after ([6-9]|1\d) batches, the last of 8: 25 evaluated', runs[1].log):
        problem = f'not all of what ends an epoch:\n{runs[1].tail()}'
    elif said != [True, False, False]:
        problem = f'said that an epoch\'s end was not seen: {said}'
    return [(key, problem, '')]


def check_without_epochs(exec_, arguments):
    """A program without a loader ends as if it had not been asked for short epochs, and that is said."""
    key = f'{" ".join(arguments)} --epoch-steps'
    lacks = exec_.installation.lacks('torch>=2.5')
    if lacks:
        return [(key, '', lacks)]
    run = exec_.run(arguments, more=['--repetitions', '5', '--epoch-steps', '5'])
    said = ' '.join(run.report.get('why', []))
    if 'its peak had stopped growing' in said and '--epoch-steps had no effect' in said:
        return [(key, '', '')]
    return [(key, f'exit code {run.status} of exec, it says: {said}\n{run.tail()}', '')]


def check_turns(exec_, arguments):
    """A trial waits for the first step of each optimizer, but not for ever, and not of one around another."""
    key = f'turns.py {" ".join(arguments)}'.strip()
    lacks = exec_.installation.lacks('torch>=2.5')
    if lacks:
        return [(key, '', lacks)]
    short, whole = (exec_.run(['turns.py', *arguments], more=['--repetitions', str(steps)]) for steps in (5, TO_ITS_END))
    for run in (short, whole):
        if run.status:
            return [(key, f'exit code {run.status} of exec\n{run.tail()}', '')]
    peaks = [run.report['choice']['peak']['reserved_bytes'] for run in (short, whole)]
    said, done = ' '.join(short.report.get('why', [])), len(re.findall(r'^step \d+$', short.log, re.MULTILINE))
    problem = f'peaks of {peaks[0]} bytes, {peaks[1]} in all' if peaks[0] != peaks[1] else ''
    if 'its peak had stopped growing' not in said or not (45 if arguments else 20) < done < 120:
        problem = f'{done} steps: {said}'
    elif ("1 of the program's optimizers had not stepped" in said) != bool(arguments):
        problem = said
    return [(key, problem, '')]


def check_asked_steps(exec_, arguments):
    """--steps counts no micro-steps: a trial sees what the optimizer keeps from its first step on."""
    key = f'{" ".join(arguments)} --steps 2'
    lacks = exec_.installation.lacks('torch>=2.5')
    if lacks:
        return [(key, '', lacks)]
    runs = [exec_.run(arguments, more=more) for more in (['--steps', '2'], ['--repetitions', str(TO_ITS_END)])]
    for run in runs:
        if run.status:
            return [(key, f'exit code {run.status} of exec\n{run.tail()}', '')]
    peaks = [run.report['choice']['peak']['reserved_bytes'] for run in runs]
    return [(key, '' if peaks[0] == peaks[1] else f'a peak of {peaks[0]} bytes, {peaks[1]} in all', '')]


def check_growing(exec_):
    """A trial goes as far as --steps says, though its peak had not grown for long."""
    key = 'stepping.py late --steps 60'
    lacks = exec_.installation.lacks('torch')
    if lacks:
        return [(key, '', lacks)]
    reports = []
    for more in ([], ['--steps', '60']):
        ended = subprocess.run([exec_.plimsoll, 'exec', '--device', 'sim:24GiB', '--json', '--quiet', *more, '--',
                                exec_.installation.python, 'stepping.py', 'late'],
                               capture_output=True, text=True, cwd=PROGRAMS, stdin=subprocess.DEVNULL)
        if ended.returncode:
            return [(key, f'exit code {ended.returncode} of exec\n{ended.stderr[-1500:]}', '')]
        reports.append(json.loads(ended.stdout))
    peaks = [report['choice']['peak']['reserved_bytes'] for report in reports]
    said = ' '.join(reports[0]['why'])
    problem = '' if peaks[1] >= peaks[0] + (200 << 20) else f'a peak of {peaks[1]} bytes, {peaks[0]} without it'
    return [(key, problem or ('' if 'Later steps were not seen' in said else said), '')]


# Seed of fragments.py, options of the allocator, is it quick: memory grows in step 13 and in step 134, each after steps
# that did not.
FRAGMENTS = ((6, '', False), (31, 'expandable_segments:True', True))


def check_fragments(exec_, seed, config):
    """A trial waits for the step in which PyTorch's allocator will be short of a piece."""
    key = f'fragments.py {seed} 300'
    lacks = exec_.installation.lacks('torch')
    if lacks:
        return [(key, '', lacks)]
    environment = ['--env', f'PYTORCH_CUDA_ALLOC_CONF={config}']
    runs = [exec_.run(['fragments.py', seed, 300], more=['--repetitions', str(steps), *environment], placement='driver')
            for steps in (5, TO_ITS_END)]
    for run in runs:
        if run.status:
            return [(key, f'exit code {run.status} of exec\n{run.tail()}', '')]
    peaks = [run.report['choice']['peak']['reserved_bytes'] for run in runs]
    said = ' '.join(runs[0].report['why'])
    problem = '' if peaks[0] == peaks[1] else f'a peak of {peaks[0]} bytes, {peaks[1]} in all'
    return [(key, problem or ('' if 'its peak had stopped growing' in said else said), '')]


def check_workspaces(exec_):
    """What a convolution does without is told from what the program does without."""
    key = 'stepping.py convolutions_of_a_full_gpu'
    lacks = exec_.installation.lacks('torch')
    if lacks:
        return [(key, '', lacks)]
    run = exec_.run(['stepping.py', 'convolutions_of_a_full_gpu'], memory=1438 << 20)
    said = ' '.join(run.report.get('why', []))
    is_right = not run.status and "Where a convolution's workspace is refused" in said
    return [(key, '' if is_right else f'exit code {run.status} of exec\n{said}\n{run.tail()}', '')]


def check_limit(exec_):
    """PyTorch refuses what is beyond the program's own limit; the GPU never sees that."""
    key = 'stepping.py over_its_own_limit'
    lacks = exec_.installation.lacks('torch')
    if lacks:
        return [(key, '', lacks)]
    run = exec_.run(['stepping.py', 'over_its_own_limit', '{batch}'], memory=16 << 30, more=['--batch', '8'])
    said = ' '.join(run.report.get('why', []))
    is_right = run.status == 1 and 'over PyTorch\'s memory fraction' in said
    return [(key, '' if is_right else f'exit code {run.status} of exec\n{said}\n{run.tail()}', '')]


def check_steps(exec_, mode, *expected):
    key = f'stepping.py {mode}'
    lacks = exec_.installation.lacks('torch')
    if lacks:
        return [(key, '', lacks)]
    run = exec_.run(['stepping.py', mode])
    if run.status:
        return [(key, f'exit code {run.status} of exec\n{run.tail()}', '')]
    said = ' '.join(run.report.get('why', []))
    found = re.search(r'(\w+) training steps were recognised(?:, by ([^.]*))?', said)
    problem = '' if found and found.groups() == expected else f'{found and found[0]}, expected {expected}'
    return [(key, problem, '')]


def steps(exec_, options):
    for mode, count, rule, is_quick in STEPPING:
        if options.wants(f'stepping.py {mode}', is_quick):
            yield functools.partial(check_steps, exec_, mode, count, rule)
    if options.wants('stepping.py late --steps 60', True):
        yield functools.partial(check_growing, exec_)
    if options.wants('stepping.py convolutions_of_a_full_gpu', False):
        yield functools.partial(check_workspaces, exec_)
    if options.wants('stepping.py over_its_own_limit', True):
        yield functools.partial(check_limit, exec_)
    for seed, config, is_quick in FRAGMENTS:
        if options.wants(f'fragments.py {seed} 300', is_quick):
            yield functools.partial(check_fragments, exec_, seed, config)
    for mode, needs, is_quick in EPOCHS:
        if options.wants(f'epochs.py {mode}', is_quick):
            yield functools.partial(check_epochs, exec_, mode, needs)
    for arguments in ([], ['never']):
        if options.wants(' '.join(['turns.py', *arguments]), not arguments):
            yield functools.partial(check_turns, exec_, arguments)
    micro_steps = ['nanogpt.py', '--batch-size', '1', '--seq', '128', '--grad-accum', '16', '--max-steps', '4']
    if options.wants(' '.join(micro_steps), False):
        yield functools.partial(check_asked_steps, exec_, micro_steps)
    without = ['nanogpt.py', '--model', 'tiny', '--seq', '128', '--max-steps', '1000000']
    if options.wants(' '.join(without), False):
        yield functools.partial(check_without_epochs, exec_, without)
