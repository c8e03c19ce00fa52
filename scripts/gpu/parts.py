"""The first call's parts, the most truth first. A function here runs one case (record.py)."""
import functools
import json
import os
import shutil
import sys
import tempfile
import time

import cases
import gpu
import programs
from record import Case, Late, Part


class Bench:
    """What cases run on: our programs, PyTorch, and what is known of the machine."""

    def __init__(self, root, programs, framework, machine, small):
        self.root, self.programs, self.framework = root, programs, framework
        self.machine, self.small = machine, small

    @functools.cached_property
    def sim(self):
        return self.programs.twin(self.machine['gpu'])

    def lacks_torch(self):
        return self.framework.lacks(self.machine)

    def lines(self, verb, case, seconds, **options):
        """What on_gpu says of one case; Late when it was killed."""
        with tempfile.NamedTemporaryFile('w', suffix='.jsonl') as file:
            file.write(json.dumps({k: v for k, v in case.items() if k != 'steps'}) + '\n')
            file.flush()
            lines, code = self.programs.gpu(verb, seconds, cases=file.name, **options)
        if code == 'killed':
            raise Late({'said': lines})
        return lines, code


def beside(bench, result, job, seconds):
    """PyTorch's answer, and its time; what it lacks goes into the result."""
    lacks = bench.lacks_torch()
    if lacks:
        result['skipped'] = lacks
        return None
    try:
        return bench.framework.ask(job, max(0, seconds))
    except Late as late:
        late.result = result
        raise


# --- start ----------------------------------------------------------------------------------------

def run_start(bench, seconds, _):
    begin = time.monotonic()
    case = cases.TINY if bench.small else cases.with_config(bench.root, cases.STEPS[0])
    lines, code = bench.lines('start', case, seconds)
    result = dict(lines[0], ok=code == 0)
    theirs = beside(bench, result, {'do': 'figures', 'case': case}, seconds - (time.monotonic() - begin))
    if theirs:  # nothing else runs on the GPU here
        result['pytorch_taken_bytes'] = theirs.get('taken_bytes')
        result['ok'] = result['ok'] and 'taken_bytes' in theirs
    return result


# --- kernels --------------------------------------------------------------------------------------

def kernels(only, under=()):
    """Operations against the reference, and which engine computed attention."""
    def run(bench, seconds, _):
        lines, code = bench.programs.gpu('kernels', seconds, only=only, under=under)
        tests = [line for line in lines if 'test' in line]
        result = {'failed': [line for line in tests if not line['ok']], 'tests': len(tests),
                  'engines': {line['test']: line['attention_engine'] for line in tests
                              if 'attention_engine' in line}}
        if code == 'killed':
            raise Late(result)
        summary = lines[-1] if lines and 'tests' in lines[-1] else {}
        return dict(result, ok=code == 0 and summary.get('tests', 0) > 0, exit=code, summary=summary)
    return run


def sanitizer(only):
    def run(bench, seconds, results):
        tool = shutil.which('compute-sanitizer')
        if not tool:
            return {'ok': True, 'skipped': 'compute-sanitizer is not here'}
        under = (tool, '--tool', 'memcheck', '--error-exitcode', '9')
        return kernels(only, under)(bench, seconds, results)
    return run


def list_kernels(bench):
    wanted = ('library/attention_with_the_scratch_of_flash', 'kernels_norm') if bench.small else (
        'library', 'kernels_attention')
    checked = 'library/attention_with_the_scratch_of_flash'
    return ([Case(only, 50, kernels(only)) for only in wanted] +
            [Case('compute-sanitizer', 40, sanitizer(checked))])


# --- seconds --------------------------------------------------------------------------------------

def seconds_of(case):
    """Seconds of a step: ours, the clock's, eager PyTorch's with its operations."""
    def run(bench, seconds, _):
        begin = time.monotonic()
        lines, code = bench.lines('time', case, seconds, timing=1 if bench.small else 4)
        ours = lines[0]
        engine = ours.get('attention_engine', '')
        result = {'ours': ours, 'attention_engine': engine, 'ok': code == 0 and 'fall-back' not in engine}
        job = {'do': 'time', 'case': case, 'profile': True}
        theirs = beside(bench, result, job, seconds - (time.monotonic() - begin))
        if theirs:
            result['eager'] = theirs
            result['ok'] = result['ok'] and 'step_seconds' in theirs
        if theirs and result['ok']:
            result['eager_over_ours'] = theirs['step_seconds'] / ours['step_seconds']
            result['eager_over_clock'] = theirs['step_seconds'] / ours['clock_seconds']
        return result
    return run


def operations_of(case):
    """Seconds of each operation of a step at its real shapes, ours and the clock's, and sums beside
    those of PyTorch's operations, which the case's own result has."""
    def run(bench, seconds, results):
        lines, code = bench.lines('ops', case, seconds)
        rows = sorted(lines[0].get('ops', []), key=lambda row: -row['seconds'])
        theirs = results.get(case['id'], {}).get('eager', {}).get('operations', [])
        return {'ok': code == 0 and bool(rows), 'operations': rows[:cases.OPERATIONS],
                'beside_pytorch': cases.beside_pytorch(rows, theirs),
                'seconds': sum(row['seconds'] for row in rows),
                'clock_seconds': sum(row['clock_seconds'] for row in rows)}
    return run


def list_seconds(bench):
    steps = [cases.TINY] if bench.small else [cases.with_config(bench.root, c) for c in cases.STEPS]
    return ([Case(case['id'], 40, seconds_of(case)) for case in steps] +
            [Case(f'{case["id"]}/operations', 20, operations_of(case)) for case in steps[:2]])


# --- bytes ----------------------------------------------------------------------------------------

def compare_golden(case, line, machine):
    """What the engine did on the GPU beside `sim` and the case file, without the long lists. That is of a virtual GPU
    whose addresses ascend: of that where memory lies PyTorch knows better."""
    result = {key: line[key] for key in ('verdict', 'why', 'error', 'as_simulated', 'taken_bytes')
              if key in line}
    result['ok'] = bool(line.get('as_simulated'))
    if line.get('simulated'):
        result['differs_from_sim'] = cases.differences(line['steps'], line['simulated']['steps'])
    same_kind = case.get('compute_capability') == machine['gpu']['compute_capability']
    if same_kind and 'steps' in case and line.get('steps'):
        result['differs_from_golden'] = cases.differences(line['steps'], case['steps'])
    if line.get('steps'):
        result['peak_reserved'] = line['steps'][-1]['peak_reserved']
    return result


def bytes_of(case):
    """Bytes of four steps by the engine, and by PyTorch, whose own overhead counts too."""
    def run(bench, seconds, _):
        begin = time.monotonic()
        ours = bench.lines('golden', case, seconds)[0][0]
        result = compare_golden(case, ours, bench.machine)
        theirs = beside(bench, result, {'do': 'figures', 'case': case},
                        seconds - (time.monotonic() - begin))
        if theirs:
            result['pytorch'] = {key: theirs[key] for key in ('oom', 'error', 'taken_bytes')
                                 if key in theirs}
            found = cases.differences(ours.get('steps', []), theirs.get('steps', []))
            result['differs_from_pytorch'] = found
            result['ok'] = result['ok'] and 'steps' in theirs and not found
        return result
    return run


def list_bytes(bench):
    return [Case(case['id'], 20, bytes_of(case))
            for case in cases.golden(bench.root, bench.machine, bench.small)]


# --- memory ---------------------------------------------------------------------------------------

def fill(bench, seconds, _):
    """All memory of the GPU, until the driver itself refuses; a kernel's first load; and on."""
    lines, code = bench.lines('fill', cases.TINY, seconds)
    return dict(lines[-1], ok=code == 0 and lines[-1]['driver_refused'])


def out_of_memory(bench, seconds, _):
    times = 2 if bench.small else 5
    device = f'{bench.programs.device},memory={"24MiB" if bench.small else "1GiB"}'
    lines, code = bench.lines('oom', cases.TINY, seconds, device=device, times=times)
    each = [line for line in lines if 'oom_seconds' in line]
    return {'ok': code == 0 and len(each) == times, 'each': each}


def broken_context(bench, seconds, _):
    """It ends with its process; how soon is a new one at work?"""
    lines, code = bench.lines('break', cases.TINY, seconds)
    ran = next((line for line in lines if 'ran' in line), {})
    end = next((line for line in lines if 'status' in line), {'status': f'died ({code})'})
    begin = time.monotonic()
    again, code = bench.lines('start', cases.TINY, seconds)
    good = end['status'] == 'device lost' or (bench.machine['simulated_gpu'] and end['status'] != 'ok')
    return {'ok': bool(ran.get('ran')) and good and code == 0, **ran, **end, 'next': again[0],
            'next_process_seconds': time.monotonic() - begin}


def list_memory(bench):
    return [Case('all of it', 20, fill), Case('out of memory', 15, out_of_memory),
            *(Case(f'broken context {i}', 10, broken_context) for i in (1, 2))]


# --- tune -----------------------------------------------------------------------------------------

def tune_result(bench, subject, options, device, answer):
    """Reports are kept whole: tests replay the search on them. One that its own budget ended (exit
    code 5) has the best answer so far."""
    report, code, wall, err = answer
    messages = err.splitlines()
    result = {'ok': report is not None and code in (0, 1, 5), 'exit': code, 'wall_seconds': wall,
              'request': {'subject': subject, 'device': device, 'options': options},
              'stderr': err[-2000:], 'report': report,
              'new_workers': sum('new worker process' in line or 'worker process was lost' in line
                                 for line in messages)}
    if code == 'killed':
        raise Late(result)
    return result


def run_tune(bench, seconds, _):
    subject, options, memory = cases.SHORT_TUNE if bench.small else cases.TUNE
    device = bench.programs.device + (f',memory={memory}' if memory else '')
    answer = bench.programs.tune(subject, options, seconds, device)
    return tune_result(bench, subject, options, device, answer)


NANOGPT = ['--batch-size', '8', '--max-steps', '60']


@programs.with_torch
def observed(bench, seconds, _):
    """nanoGPT with the observer and without: the same peak, and what the observer costs."""
    program = os.path.join(bench.root, 'tests', 'virtual', 'programs', 'nanogpt.py')
    command = [sys.executable, '-B', program, *NANOGPT]
    begin = time.monotonic()
    code, out, err = gpu.run(command, seconds, bench.programs.env)
    plain = time.monotonic() - begin
    watched = [bench.programs.plimsoll, 'exec', '--observe', '--device', bench.programs.device,
               '--json', '--']
    observed_code, report, observed_err = gpu.run(watched + command, seconds - plain, bench.programs.env)
    if 'killed' in (code, observed_code):
        raise Late({'seconds': plain})
    return {'ok': code == 0 == observed_code, 'seconds': plain,
            'observed_seconds': time.monotonic() - begin - plain, 'pytorch': gpu.json_lines(out)[-1:],
            'observed': gpu.json_lines(report.replace('\n', ' ')), 'stderr': (err + observed_err)[-1000:]}


def list_tune(_):
    return [Case('tune', 55, run_tune), Case('observer', 40, observed)]


FIRST = {
    'start': Part(1, 'driver, libraries, context, first product, first steps', 40,
                  lambda bench: [Case('start', 40, run_start)]),
    'programs': Part(1, 'real programs, and the virtual GPU beside', 120, programs.list_programs, at_once=8),
    'bytes': Part(1, 'golden cases by the engine and by PyTorch', 60, list_bytes, at_once=4),
    'kernels': Part(1, 'attention and libraries against the reference', 60, list_kernels, at_once=3),
    'seconds': Part(1, 'seconds of a step: ours, the clock\'s, PyTorch\'s', 125, list_seconds),
    'memory': Part(1, 'out of memory, broken contexts, and on', 50, list_memory),
    'tune': Part(1, 'a tune; a program observed', 85, list_tune),
}
