"""The parts: each fills its entry of the record step by step, and returns why it was skipped."""
import contextlib
import importlib.util
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import namedtuple

import gpu
import cases

Part = namedtuple('Part', 'what seconds run')
GIB = 1 << 30


class Context:
    def __init__(self, root, programs, machine, small):
        self.root, self.programs, self.machine, self.small = root, programs, machine, small

    def file_of(self, lines):
        """A file of cases, which goes with the context."""
        file = tempfile.NamedTemporaryFile('w', suffix='.jsonl', delete=False)
        for line in lines:
            file.write(json.dumps({k: v for k, v in line.items() if k != 'steps'}) + '\n')
        file.close()
        return file.name

    def torch_lacks(self):
        """Why there is no PyTorch to ask; None: there is."""
        lacking = [name for name in ('torch', 'transformers')
                   if importlib.util.find_spec(name) is None]
        if lacking:
            return f'python3 has no {" and no ".join(lacking)}'
        return 'a pretended GPU has no PyTorch' if self.machine['simulated_gpu'] else None

    def torch(self, job, seconds):
        """Answers of torch_side.py, as many as there was time for."""
        script = os.path.join(self.root, 'scripts', 'gpu', 'torch_side.py')
        code, out, err = gpu.run([sys.executable, '-B', script], seconds, stdin=json.dumps(job))
        lines = gpu.json_lines(out)
        if code not in (0, 'killed') and not lines:
            raise gpu.Failed(err.strip().splitlines()[-1] if err.strip() else f'exit code {code}')
        return lines


# --- a: kernels -----------------------------------------------------------------------------------

def run_kernels(context, entry):
    suites = ('kernels_attention', 'kernels_elementwise', 'kernels_embedding', 'kernels_lists',
              'kernels_norm', 'kernels_reduce', 'kernels_softmax', 'library')
    few = ('kernels_embedding', 'kernels_norm', 'library/attention')
    for only in few if context.small else suites:
        if entry.has(only):
            continue
        lines, code = context.programs.gpu('kernels', entry.left(), only=only)
        bad = [line for line in lines if line.get('ok') is False]
        whole = bool(lines) and 'tests' in lines[-1]
        entry.put(only, {'ok': code == 0 and whole and lines[-1]['tests'] > 0, 'exit': code,
                         'summary': lines[-1] if whole else None, 'failed': bad,
                         'seconds': sum(line.get('seconds', 0) for line in lines)})


# --- b: golden cases ------------------------------------------------------------------------------

def compare_golden(case, line, machine):
    """What the engine did on the GPU beside `sim` and the case file, without the long lists."""
    result = {key: line[key] for key in ('verdict', 'why', 'error', 'as_simulated', 'taken_bytes',
                                         'seconds') if key in line}
    result['ok'] = bool(line.get('as_simulated'))
    if line.get('simulated'):
        result['differs_from_sim'] = cases.differences(line['steps'], line['simulated']['steps'])
    same_kind = case.get('compute_capability') == machine['gpu']['compute_capability']
    if same_kind and 'steps' in case and line.get('steps'):
        found = cases.differences(line['steps'], case['steps'])
        result.update(differs_from_golden=found, ok=result['ok'] and not found)
    if line.get('steps'):
        result['peak_reserved'] = line['steps'][-1]['peak_reserved']
        result['step_seconds'] = line['steps'][-1]['seconds']
    return result


def run_golden(context, entry):
    wanted = [case for case in cases.golden(context.root, context.machine, context.small)
              if not entry.has(case['id'])]
    path = context.file_of(wanted)
    lines, code = context.programs.gpu('golden', entry.left(), cases=path,
                                        seconds=max(1, entry.left() - 45))
    os.unlink(path)
    for case, line in zip(wanted, lines):
        entry.put(case['id'], compare_golden(case, line, context.machine))
    if code == 'killed' or not lines:
        raise gpu.Failed(f'on_gpu golden ended with {code} after {len(lines)} cases')
    entry.data['cases_left'] = len(wanted) - len(lines)
    run_losses(context, entry)


def run_losses(context, entry):
    """Bounds as in tests/losses/test_losses.c, for steps of a loss of about 4.6."""
    path = os.path.join(context.root, 'tests', 'losses', 'losses.jsonl')
    only = {'only': 'gpt2/fp32/adamw/eager'} if context.small else {}
    lines, code = context.programs.gpu('losses', entry.left(), cases=path, **only)
    bounds = {'fp32': 1e-5, 'bf16-mixed': 2e-4}
    precision = {case['id']: case['precision'] for case in cases.read(path)}
    bad = [line['id'] for line in lines
           if line.get('largest_difference') is None
           or line['largest_difference'] > bounds[precision[line['id']]]]
    entry.put('losses', {'ok': code == 0 and not bad and bool(lines), 'beyond_bounds': bad,
                         'largest_differences': {line['id']: line.get('largest_difference')
                                                 for line in lines}})


# --- c: the same by PyTorch -----------------------------------------------------------------------

def run_pytorch(context, entry):
    lacks = context.torch_lacks()
    if lacks:
        return lacks
    wanted = [case for case in cases.golden(context.root, context.machine, False)
              if case['compute_capability'] == context.machine['gpu']['compute_capability']
              and not case.get('packed') and not entry.has(case['id'])]
    path = context.file_of(wanted)
    ours, _ = context.programs.gpu('golden', entry.left(), cases=path, seconds=60)
    os.unlink(path)
    ours = {line['id']: line for line in ours}
    job = {'do': 'figures', 'cases': [case for case in wanted if case['id'] in ours]}
    for line in context.torch(job, entry.left()):
        case = next(case for case in wanted if case['id'] == line['id'])
        result = {key: line[key] for key in ('oom', 'error', 'taken_bytes', 'seconds')
                  if key in line}
        if 'steps' in line:
            own = ours[line['id']].get('steps', [])
            result['differs_from_ours'] = cases.differences(own, line['steps'])
            result['differs_from_golden'] = cases.differences(line['steps'], case['steps'])
            result['our_taken_bytes'] = ours[line['id']].get('taken_bytes')
        result['ok'] = 'steps' in line and not result['differs_from_ours']
        entry.put(line['id'], result)
    missing = [case['id'] for case in wanted if case['id'] not in entry.results]
    return None if not missing else entry.data.update(cases_left=len(missing))


# --- d: tunes under caps --------------------------------------------------------------------------

def list_tunes(context):
    """(key, subject, options, PyTorch's case or None, cap in bytes or None, device)."""
    device, total = context.programs.device, context.machine['gpu']['total_bytes']
    if context.small:
        subject, options, memory = cases.SHORT_TUNE
        return [(f'{subject}/{name}', subject, options + more, None, f'{device},memory={memory}')
                for name, more in (('plain', []), ('effective', ['--effective-batch', '8']))]
    tunes = []
    for subject, options, config, more, caps in cases.TUNES:
        for cap in caps:
            full = cap * GIB >= total
            at = device if full else f'{device},memory={cap}GiB'
            case = dict(more, config=config)
            tunes.append((f'{subject}/{cap}GiB', subject, options + cases.TUNE_OPTIONS, case, at))
    return tunes


def run_tunes(context, entry):
    """Reports are kept whole: tests replay the search on them."""
    for key, subject, options, case, device in list_tunes(context):
        known = entry.results.get(key, {})
        if not known.get('ok'):
            report, code, wall, err = context.programs.tune(subject, options, entry.left(), device)
            known = {'ok': report is not None and code in (0, 1), 'exit': code,
                     'request': {'subject': subject, 'device': device, 'options': options},
                     'wall_seconds': wall, 'stderr': err[-2000:], 'report': report}
            entry.put(key, known)
        largest = (known.get('report') or {}).get('largest_fit')
        if case and largest and 'pytorch' not in known and not context.torch_lacks():
            known['pytorch'] = bisect(context, entry, case, known['report'])
            entry.put(key, known)


def bisect(context, entry, case, report):
    """PyTorch's largest batch where ours is `largest_fit`; the target: equal, or ours one below."""
    largest = report['largest_fit']
    same = {name: largest[name] for name in ('seq', 'precision', 'weights', 'optimizer',
                                             'checkpointing', 'attention', 'accumulation')}
    case = dict(cases.with_config(context.root, case), **same)
    case['accumulation'] = min(case['accumulation'], 2)
    lines = context.torch({'do': 'largest', 'case': case, 'guess': largest['micro_batch'],
                           'budget_bytes': report['limit']['budget_bytes']}, entry.left())
    if not lines:
        return {'why': 'there was not time enough'}
    theirs = lines[0]['largest']
    return {'largest': theirs, 'ours': largest['micro_batch'], 'trials': lines[0]['trials'],
            'cap': 'set_per_process_memory_fraction of our budget',
            'on_target': 0 <= theirs - largest['micro_batch'] <= 1}


# --- e: seconds of a step -------------------------------------------------------------------------

def run_times(context, entry):
    lacks = context.torch_lacks()
    if lacks:
        return lacks
    wanted = [cases.with_config(context.root, case) for case in cases.STEPS]
    path = context.file_of(wanted)
    lines, _ = context.programs.gpu('time', entry.left(), cases=path)
    os.unlink(path)
    ours = {line['id']: line for line in lines}
    for compiled in (False, True):
        for line in context.torch({'do': 'time', 'cases': wanted, 'compile': compiled},
                                  entry.left()):
            result = dict(entry.results.get(line['id'], {}), ours=ours.get(line['id']))
            result['compiled' if compiled else 'eager'] = line
            mine, theirs = (result['ours'] or {}).get('step_seconds'), line.get('step_seconds')
            if mine and theirs:
                result[f'{"compiled" if compiled else "eager"}_over_ours'] = theirs / mine
            entry.put(line['id'], result)
    return None


# --- f: seconds of a tune -------------------------------------------------------------------------

def run_search(context, entry):
    lacks = context.torch_lacks()
    if lacks:
        return lacks
    if not entry.has('tune'):
        report, code, wall, err = context.programs.tune('gpt2-124m', cases.SEARCH_OPTIONS,
                                                        entry.left())
        entry.put('tune', {'ok': code == 0, 'exit': code, 'wall_seconds': wall,
                           'request': {'subject': 'gpt2-124m', 'device': context.programs.device,
                                       'options': cases.SEARCH_OPTIONS},
                           'stderr': err[-2000:], 'report': report})
    tune = entry.results['tune']
    budget = tune['report']['limit']['budget_bytes'] if tune['report'] else None
    job = {'do': 'finders', 'case': cases.with_config(context.root, cases.SEARCH_CASE),
           'seqs': cases.SEARCH_SEQS, 'checkpointing': ['none', 'full'], 'budget_bytes': budget}
    for finder in ('lightning-binsearch', 'accelerate-half', 'accelerate-0.9'):
        if entry.has(finder):
            continue
        lines = context.torch(dict(job, finders=[finder]), entry.left())
        if lines:
            ratio = lines[0].get('wall_seconds', 0) / tune['wall_seconds']
            entry.put(finder, dict(lines[0], times_slower_than_tune=ratio,
                                   ok='wall_seconds' in lines[0]))
    return None


# --- g: recoveries --------------------------------------------------------------------------------

TINY_CASE = {'id': 'tiny', 'spec': 'tiny-gpt2', 'batch': 1, 'seq': 16, 'precision': 'fp32',
             'optimizer': 'sgd', 'checkpointing': 'none'}


def break_contexts(context, entry, path, times):
    """Each in a process of its own; how soon is a new one at work?"""
    broken = []
    for _ in range(times):
        begin = time.monotonic()
        lines, code = context.programs.gpu('break', entry.left(), cases=path)
        ran = next((line for line in lines if 'ran' in line), {})
        end = next((line for line in lines if 'status' in line), {'status': f'died ({code})'})
        broken.append({'ok': bool(ran.get('ran')) and end['status'] != 'ok', **ran, **end,
                       'process_seconds': time.monotonic() - begin})
    good = all(one['ok'] for one in broken)
    if not context.machine['simulated_gpu']:
        good = good and all(one['status'] == 'device lost' for one in broken)
    entry.put('broken contexts', {'ok': good, 'each': broken})


def children(pid):
    try:
        with open(f'/proc/{pid}/task/{pid}/children', encoding='ascii') as file:
            return [int(word) for word in file.read().split()]
    except OSError:
        return []


def kill_worker(context, entry):
    """A worker that is killed while it works costs the tune a moment, and not its answer."""
    subject, options, memory = cases.SHORT_TUNE if context.small else cases.LONGER_TUNE
    options = options + (['--effective-batch', '2', '--budget', '15s'] if context.small else [])
    device = f'{context.programs.device},memory={memory}'
    calm, code, calm_wall, _ = context.programs.tune(subject, options, entry.left(), device)
    command = [context.programs.plimsoll, 'tune', subject, '--device', device, '--json'] + options
    begin = time.monotonic()
    tune = subprocess.Popen(command, env=context.programs.env, text=True, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE)
    killed, workers = 0, []
    while tune.poll() is None and not workers:
        time.sleep(0.01)
        workers = children(tune.pid)
    time.sleep(0.1 if context.small else 0.3 * calm_wall)  # it works by then
    for worker in workers:
        with contextlib.suppress(ProcessLookupError):
            os.kill(worker, signal.SIGKILL)
            killed += 1
    out, err = tune.communicate(timeout=max(1, entry.left()))
    report = gpu.json_lines(out.replace('\n', ' '))
    entry.put('killed worker', {
        'ok': bool(killed) and code == 0 == tune.returncode, 'killed': killed,
        'exit': tune.returncode, 'calm_seconds': calm_wall, 'seconds': time.monotonic() - begin,
        'calm_choice': calm and calm['choice'] and calm['choice']['micro_batch'],
        'choice': report and report[0]['choice'] and report[0]['choice']['micro_batch'],
        'stderr': err[-500:]})


def run_recoveries(context, entry):
    times = 2 if context.small else 10
    path = context.file_of([TINY_CASE])
    if not entry.has('out of memory'):
        memory = '24MiB' if context.small else '1GiB'
        device = f'{context.programs.device},memory={memory}'
        lines, code = context.programs.gpu('oom', entry.left(), device, cases=path, times=times)
        each = [line for line in lines if 'oom_seconds' in line]
        entry.put('out of memory', {'ok': code == 0 and len(each) == times, 'each': each})
    if not entry.has('broken contexts'):
        break_contexts(context, entry, path, times)
    if not entry.has('killed worker'):
        kill_worker(context, entry)
    os.unlink(path)


PARTS = {
    'a': Part('operations against the reference', 120, run_kernels),
    'b': Part('golden cases by the engine', 120, run_golden),
    'c': Part('golden cases by PyTorch', 240, run_pytorch),
    'd': Part('tunes under memory caps', 400, run_tunes),
    'e': Part('seconds of a step', 240, run_times),
    'f': Part('seconds of a tune', 240, run_search),
    'g': Part('recoveries', 90, run_recoveries),
}
