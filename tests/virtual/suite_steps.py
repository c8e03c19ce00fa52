"""Programs whose training steps are recognised from little: how many, and by what."""
import functools
import re

# Mode of stepping.py, the steps that have to be seen, by what, and whether it is in the quick selection. Of
# twelve the last is never seen whole, and the first by which a rule shows are not counted.
STEPPING = (
    ('convolutions', '11', "its optimizer's own word", True),
    ('by_hand', '9', 'writes to weights', True),
    ('recurrent', '9', 'writes to weights', False),
)


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
