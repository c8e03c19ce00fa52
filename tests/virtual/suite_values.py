"""What the virtual GPU knows of values: PyTorch's own operators on the CPU are the judge."""

# Of some 600, those whose last bits are the GPU's (exp, softmax ...) and a few rare ones are not known.
MOST_UNKNOWN = 40


def check_operations(exec_):
    name = 'values operations.py'
    lacks = exec_.installation.lacks('torch')
    if lacks:
        return [(name, '', lacks)]
    run = exec_.run(['operations.py'])
    found = run.lines[-1] if run.lines else {}
    problems = found.get('wrong', [f'it did not come to its end\n{run.tail()}'])
    unknown = found.get('unknown', [])
    if len(unknown) > MOST_UNKNOWN:
        problems.append(f'{len(unknown)} are not known: {", ".join(unknown)}')
    return [(name, '\n'.join(problems), '')]


def values(exec_, options):
    if options.wants('values operations.py', True):
        yield lambda: check_operations(exec_)
