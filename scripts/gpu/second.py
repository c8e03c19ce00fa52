"""The second call's parts: what takes longer, or needs the first to be true."""
import contextlib
import os
import signal
import subprocess
import time

import cases
import gpu
import programs
from parts import beside, kernels, tune_result
from record import Case, Late, Part


# --- caps -----------------------------------------------------------------------------------------

def capped_tune(tune):
    def run(bench, seconds, _):
        device = f'{bench.programs.device},memory={tune["memory"]}'
        answer = bench.programs.tune(tune['subject'], tune['options'], seconds, device)
        return tune_result(bench, tune['subject'], tune['options'], device, answer)
    return run


def edge(tune, id):
    """PyTorch's largest batch where ours is `largest_fit`; the target: equal, or ours one below."""
    def run(bench, seconds, results):
        report = results.get(id, {}).get('report')
        if not report or not report.get('largest_fit'):
            return {'ok': False, 'why': f'{id} found nothing to compare with'}
        ours = report['largest_fit']
        same = {name: ours[name] for name in ('seq', 'precision', 'weights', 'optimizer',
                                              'checkpointing', 'attention', 'accumulation')}
        case = dict(cases.with_config(bench.root, tune['case']), **same)
        case['accumulation'] = min(case['accumulation'], 2)
        result = {'ok': True, 'ours': ours['micro_batch'],
                  'cap': 'set_per_process_memory_fraction of our budget'}
        theirs = beside(bench, result, {'do': 'largest', 'case': case, 'guess': ours['micro_batch'],
                                        'budget_bytes': report['limit']['budget_bytes']}, seconds)
        if theirs:
            result['pytorch'] = theirs
            result['ok'] = 'largest' in theirs and 0 <= theirs['largest'] - ours['micro_batch'] <= 1
        return result
    return run


def list_caps(bench):
    wanted = []
    for tune in cases.SMALL_TUNES if bench.small else cases.CAPPED_TUNES:
        id = f'{tune["subject"]}/{tune["memory"]}'
        wanted += [Case(id, 40, capped_tune(tune)), Case(f'{id}/edge', 60, edge(tune, id))]
    return wanted


# --- torch.compile --------------------------------------------------------------------------------

def compiled(case):
    """Seconds of a step by torch.compile, which no clock of ours models yet."""
    def run(bench, seconds, _):
        result = {'ok': True}
        theirs = beside(bench, result, {'do': 'time', 'case': case, 'compile': True}, seconds)
        return dict(result, compiled=theirs, ok='step_seconds' in theirs) if theirs else result
    return run


def list_compiled(bench):
    steps = [cases.TINY] if bench.small else [cases.with_config(bench.root, c) for c in cases.STEPS]
    return [Case(case['id'], 60, compiled(case)) for case in steps]


# --- operations and losses ------------------------------------------------------------------------

def run_losses(bench, seconds, _):
    """Bounds as in tests/losses/test_losses.c, for steps of a loss of about 4.6."""
    path = os.path.join(bench.root, 'tests', 'losses', 'losses.jsonl')
    only = {'only': 'gpt2/fp32/adamw/eager/b3/s37'} if bench.small else {}
    lines, code = bench.programs.gpu('losses', seconds, cases=path, **only)
    bounds = {'fp32': 1e-5, 'bf16': 2e-3}  # others are mixed
    precision = {case['id']: case['precision'] for case in cases.read(path)}
    bad = [line['id'] for line in lines
           if line.get('largest_difference') is None
           or line['largest_difference'] > bounds.get(precision[line['id']], 2e-4)]
    return {'ok': code == 0 and not bad and bool(lines), 'beyond_bounds': bad,
            'largest_differences': {line['id']: line.get('largest_difference') for line in lines}}


# The tests of kernels but those of attention, which belong to the first call.
SUITES = ('kernels_elementwise', 'kernels_embedding', 'kernels_lists', 'kernels_norm', 'kernels_reduce',
          'kernels_softmax', 'kernels_indexed', 'kernels_ranking', 'kernels_quantized', 'kernels_gated',
          'kernels_linear_loss', 'kernels_statistics', 'kernels_torchao', 'kernels_convolution', 'kernels_solve',
          'kernels_causal_conv', 'kernels_delta')


def list_operations(bench):
    return [*(Case(only, 40, kernels(only)) for only in (SUITES[1:2] if bench.small else SUITES)),
            Case('losses', 40, run_losses)]


# --- search ---------------------------------------------------------------------------------------

def search(bench, seconds, _):
    """A question as people ask it, under a cap that finders can cope with."""
    tune = cases.SMALL_TUNES[0] if bench.small else cases.SEARCH
    return capped_tune(tune)(bench, seconds, None)


def finder(name):
    """One that does not come to its end in time took at least as long: that is an answer too."""
    def run(bench, seconds, results):
        tune = results.get('tune', {})
        if not tune.get('report'):
            return {'ok': False, 'why': 'there is no tune to compare with'}
        result = {'ok': True}
        job = {'do': 'find', 'finder': name, 'case': cases.with_config(bench.root, cases.SEARCH_CASE),
               'seqs': cases.SEARCH_SEQS, 'checkpointing': ['none', 'full'],
               'budget_bytes': tune['report']['limit']['budget_bytes']}
        begin = time.monotonic()
        try:
            theirs = beside(bench, result, job, seconds)
        except Late:
            result['wall_seconds_at_least'] = time.monotonic() - begin
            return result
        if theirs:
            result.update(theirs, ok='wall_seconds' in theirs)
        if theirs and result['ok']:
            result['times_slower_than_tune'] = theirs['wall_seconds'] / tune['wall_seconds']
        return result
    return run


def list_search(_):
    return [Case('tune', 60, search),
            *(Case(name, 60, finder(name))
              for name in ('lightning-binsearch', 'accelerate-half', 'accelerate-0.9'))]


# --- workers --------------------------------------------------------------------------------------

def children(pid):
    """From /proc/PID/stat: not every kernel has lists of children (gVisor has none)."""
    found = []
    for name in filter(str.isdigit, os.listdir('/proc')):
        with contextlib.suppress(OSError), open(f'/proc/{name}/stat', encoding='utf-8') as file:
            if int(file.read().rpartition(')')[2].split()[1]) == pid:
                found.append(int(name))
    return found


def killed_worker(bench, seconds, _):
    """A worker that is killed while it works costs the tune a moment, and not its answer."""
    subject, options, memory = cases.SHORT_TUNE if bench.small else cases.LONGER_TUNE
    options = options + (['--effective-batch', '2'] if bench.small else [])
    device = f'{bench.programs.device},memory={memory}'
    begin = time.monotonic()
    calm, code, calm_wall, _ = bench.programs.tune(subject, options, seconds, device)
    command = [bench.programs.plimsoll, 'tune', subject, '--device', device, '--json'] + options
    tune = subprocess.Popen(command, env=bench.programs.env, text=True, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE)
    workers = []
    while tune.poll() is None and not workers:
        time.sleep(0.01)
        workers = children(tune.pid)
    time.sleep(0.1 if bench.small else 0.3 * calm_wall)  # it works by then
    for worker in workers:
        with contextlib.suppress(ProcessLookupError):
            os.kill(worker, signal.SIGKILL)
    out, err = tune.communicate(timeout=max(1, begin + seconds - time.monotonic()))
    report = gpu.json_lines(out.replace('\n', ' '))
    return {'ok': bool(workers) and code in (0, 5) and tune.returncode in (0, 5), 'killed': len(workers),
            'exit': tune.returncode, 'calm_seconds': calm_wall,
            'calm_choice': calm and calm['choice'] and calm['choice']['micro_batch'],
            'choice': report and report[0]['choice'] and report[0]['choice']['micro_batch'],
            'stderr': err[-500:]}


# --- ring -----------------------------------------------------------------------------------------

def ring_of(count):
    """The all-reduce among all GPUs here, measured, and a data-parallel step that counts it."""
    def run(bench, seconds, _):
        subject, options, memory = cases.SHORT_TUNE if bench.small else cases.LONGER_TUNE
        device = f'{bench.programs.device},memory={memory}'
        report, code, wall, err = bench.programs.tune(
            subject, options + ['--batch', '1', '--world', str(count), '--no-store'], seconds, device)
        if code == 'killed':
            raise Late({'stderr': err[-500:]})
        found = (report or {}).get('all_reduce') or {}
        return {'ok': bool(found.get('measured')) and found['gpus'] > 1, 'all_reduce': found, 'exit': code,
                'step_seconds': report and report['choice'] and report['choice'].get('step_seconds'),
                'wall_seconds': wall, 'stderr': err[-500:]}
    return run


def list_ring(bench):
    """No case where a GPU is alone of its kind."""
    count = bench.programs.alike()
    return [Case(f'{count} GPUs', 30, ring_of(count))] if count > 1 else []


SECOND = {
    'alone': Part(2, 'driver, programs alone on the GPU, exec', 150, programs.list_alone),
    'caps': Part(2, 'tunes under caps, and PyTorch\'s own edge', 120, list_caps),
    'compiled': Part(2, 'seconds of a step by torch.compile', 70, list_compiled),
    'operations': Part(2, 'all other operations against the reference; losses', 30, list_operations, at_once=4),
    'search': Part(2, 'seconds of a search, and of other people\'s finders', 90, list_search),
    'workers': Part(2, 'a worker killed in the middle of a tune', 50,
                    lambda bench: [Case('killed worker', 60, killed_worker)]),
    'ring': Part(2, 'the all-reduce among GPUs of a kind, measured', 30, list_ring),
}
