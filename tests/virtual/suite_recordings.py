"""Programs that are recorded at a few sizes: at a size that was not, the recording has to say what a
trial of the program says, to the byte. The seconds of a recorded model have to be those of the engine's."""
import functools
import json
import lzma
import os
import subprocess
import tempfile

from suite_exec import PROGRAMS

SEQS = ('--seq', '64,128,192,256')

# Command, needed packages, options of record, what is asked at another size, is it quick.
RECORDED = (
    ('nanogpt.py --model tiny --seq 128 --max-steps 100 --batch-size {batch}', ('torch',), (),
     {'batch': 13}, False),
    ('nanogpt.py --model tiny --max-steps 100 --batch-size {batch} --seq {seq}', ('torch',), SEQS,
     {'batch': 7, 'seq': 320}, False),
    ('nanogpt.py --model tiny --seq 128 --max-steps 100 --batch-size {batch} --grad-accum {accumulation}',
     ('torch',), (), {'batch': 7, 'accumulation': 6}, False),
    ('side_streams.py --batch-size {batch}', ('torch',), (), {'batch': 13}, False),
    ('critics.py --batch-size {batch}', ('torch>=2.5',), ('--batch', '4,6,8'), {'batch': 700}, False),
    ('biases.py --batch-size {batch}', ('torch',), ('--batch', '2,3,4'), {'batch': 300}, True),
    ('biases.py --batch-size {batch} --grad-accum {accumulation}', ('torch',), (),
     {'batch': 300, 'accumulation': 4}, False),
)

# Two layers each, wide enough for the GPU to decide. Below 3,072 tokens PyTorch's embeddings do otherwise.
TIMED = {
    'llama': {'model_type': 'llama', 'vocab_size': 32000, 'hidden_size': 2048, 'intermediate_size': 5632,
              'num_hidden_layers': 2, 'num_attention_heads': 32, 'num_key_value_heads': 4,
              'tie_word_embeddings': False, 'torch_dtype': 'bfloat16'},
    'gpt2': {'model_type': 'gpt2', 'vocab_size': 50257, 'n_embd': 1024, 'n_layer': 2, 'n_head': 16,
             'n_positions': 1024, 'resid_pdrop': 0, 'embd_pdrop': 0, 'attn_pdrop': 0},
}
TIMED_PRECISION = {'llama': 'bf16', 'gpt2': 'bf16-mixed'}
MOST_OFF = 0.1


def ask(exec_, arguments):
    ended = subprocess.run([exec_.plimsoll, *arguments], capture_output=True, text=True,
                           cwd=PROGRAMS, stdin=subprocess.DEVNULL)
    if ended.returncode:
        return None, f'{arguments[0]}: exit code {ended.returncode}\n{ended.stderr[-1500:]}'
    return ended.stdout, ''


def explained(exec_, path, sizes):
    """The report on a recording."""
    text, problem = ask(exec_, ['explain', path, '--device', 'sim:A100-SXM4-80GB', '--margin', '0',
                                '--overhead', '0', '--json', '--quiet',
                                *(f'--{name}={value}' for name, value in sizes.items())])
    return (None, problem) if problem else (json.loads(text), '')


def compare(exec_, command, options, sizes, path):
    words = command.split()
    said, problem = ask(exec_, ['record', '--quiet', '-o', path, *options, '--',
                                exec_.installation.python, *words])
    if problem:
        return problem
    with lzma.open(path, 'rt', encoding='utf-8') as file:
        if 'allocator: pytorch\n' not in file.read():
            return f'the recording does not prove itself\n{said}'
    report, problem = explained(exec_, path, sizes)
    if problem:
        return problem
    recorded = report['peak']['reserved_bytes']
    run = exec_.run([word.format(**sizes) for word in words])
    if run.status:
        return f'exit code {run.status} of exec\n{run.tail()}'
    tried = run.report['choice']['peak']['reserved_bytes']
    return '' if recorded == tried else f'{recorded}, a trial took {tried} ({recorded - tried:+d})'


def run_recorded(exec_, command, needed, options, sizes):
    name = f'{command} recorded, at {sizes}'
    lacks = exec_.installation.lacks(*needed)
    if lacks:
        return [(name, '', lacks)]
    with tempfile.TemporaryDirectory(prefix='plimsoll-suite-') as folder:
        return [(name, compare(exec_, command, options, sizes, os.path.join(folder, 'job.plim')), '')]


def seconds_of(exec_, spec, gpu, batch, *options):
    text, problem = ask(exec_, ['explain', spec, '--device', f'sim:{gpu}', '--batch', str(batch), '--json', '--quiet',
                                *options])
    return (None, problem) if problem else (json.loads(text)['setting']['step_seconds'], '')


def compare_seconds(exec_, name, folder):
    path, precision = os.path.join(folder, 'job.plim'), TIMED_PRECISION[name]
    with open(os.path.join(folder, 'config.json'), 'w') as file:
        json.dump(TIMED[name], file)
    _, problem = ask(exec_, ['record', '--quiet', '--batch', '4,5,6', '-o', path, '--', exec_.installation.python,
                             'decoder.py', '--config', folder, '--precision', precision, '--batch-size', '{batch}'])
    for gpu in ('A100-SXM4-80GB', 'RTX-4090', 'H100-SXM5-80GB') if not problem else ():
        for batch in (5, 16):
            recorded, problem = seconds_of(exec_, path, gpu, batch)
            if not problem:
                engine, problem = seconds_of(exec_, folder, gpu, batch, '--seq', '1024', '--precision', precision)
            if not problem and abs(recorded / engine - 1) > MOST_OFF:
                problem = f'{gpu}, batch {batch}: {recorded} s by the recording, {engine} s by the engine'
            if problem:
                return problem
    return problem


def run_timed(exec_, name):
    lacks = exec_.installation.lacks('torch', 'transformers')
    title = f'decoder.py recorded, seconds of {name}'
    if lacks:
        return [(title, '', lacks)]
    with tempfile.TemporaryDirectory(prefix='plimsoll-suite-') as folder:
        return [(title, compare_seconds(exec_, name, folder), '')]

def measure_host(exec_, folder):
    """--framework-python: the same answer at once when it is asked again, and seconds that go with it."""
    store = dict(os.environ, PLIMSOLL_STORE=os.path.join(folder, 'store'))
    words = ['explain', 'gpt2-124m', '--device', 'sim:H100-SXM5-80GB', '--batch', '1', '--seq', '128', '--json']
    results = []
    for more in ([], ['--framework-python', exec_.installation.python], ['--framework-python', exec_.installation.python]):
        ended = subprocess.run([exec_.plimsoll, *words, *more], capture_output=True, text=True, env=store,
                               stdin=subprocess.DEVNULL)
        if ended.returncode:
            return f'exit code {ended.returncode}\n{ended.stderr[-1500:]}'
        results.append((json.loads(ended.stdout), 'ten steps' in ended.stderr))
    (assumed, _), (measured, ran), (again, ran_again) = results
    speed = measured['spec'].get('host_speed', 0)
    if not 0.02 < speed < 20:
        return f'a host_speed of {speed}'
    if not ran or ran_again or again != measured:
        return 'it was not measured once, and kept'
    seconds, slower = (result['setting']['step_seconds'] for result in (assumed, measured))
    return '' if (slower > seconds) == (speed < 1) else f'{seconds} s, and {slower} s at a host_speed of {speed}'


def run_host(exec_):
    name = '--framework-python measures the host'
    lacks = exec_.installation.lacks('torch')
    if lacks:
        return [(name, '', lacks)]
    with tempfile.TemporaryDirectory(prefix='plimsoll-suite-') as folder:
        return [(name, measure_host(exec_, folder), '')]


HOST_WORK_MILLISECONDS = 1.5  # of each sample


def check_host_work(exec_, path):
    _, problem = ask(exec_, ['record', '--quiet', '--batch', '4,8,16', '-o', path, '--', exec_.installation.python,
                             'host_data.py', '--milliseconds', str(HOST_WORK_MILLISECONDS), '--batch-size', '{batch}'])
    if not problem:
        with lzma.open(path, 'rt', encoding='utf-8') as file:
            problem = '' if 'link-pageable:' in file.read() else 'copies from the host are not recorded as such'
    seconds = {}
    for batch in (4, 32) if not problem else ():
        seconds[batch], problem = seconds_of(exec_, path, 'A100-SXM4-80GB', batch, '--host-speed', 'recorded')
        if problem:
            break
    if problem:
        return problem
    each = 1e3 * (seconds[32] - seconds[4]) / 28
    good = abs(each / HOST_WORK_MILLISECONDS - 1) < 0.1
    return '' if good else f'{each} ms of a sample, expected {HOST_WORK_MILLISECONDS}: {seconds}'


def run_host_work(exec_):
    """What a program does on the host in its training loop is recorded."""
    lacks = exec_.installation.lacks('torch>=2.5')
    name = 'host_data.py recorded, its work on the host'
    if lacks:
        return [(name, '', lacks)]
    with tempfile.TemporaryDirectory(prefix='plimsoll-suite-') as folder:
        return [(name, check_host_work(exec_, os.path.join(folder, 'job.plim')), '')]


def line_of(program, mark):
    with open(os.path.join(PROGRAMS, program), encoding='utf-8') as file:
        return 1 + next(i for i, line in enumerate(file) if line.rstrip().endswith(f'# {mark}'))


def explained_doubts(exec_, folder, *assume):
    """Whether an explained recording of doubtful.py says that it is uncertain, and its peak."""
    path = os.path.join(folder, 'job.plim')
    _, problem = ask(exec_, ['record', '--quiet', '-o', path, *assume, '--', exec_.installation.python,
                             'doubtful.py', '--batch-size', '{batch}'])
    report, problem = (None, problem) if problem else explained(exec_, path, {'batch': 8})
    if problem:
        return None, None, problem
    return any('doubtful.py:' in why for why in report['why']), report['peak']['reserved_bytes'], ''


def check_doubts(exec_, folder):
    assume = ['--assume', f'doubtful.py:{line_of("doubtful.py", "bound")}=true']
    doubts, small, problem = explained_doubts(exec_, folder)
    if not problem:
        still_doubts, large, problem = explained_doubts(exec_, folder, *assume)
    if problem:
        return problem
    if not doubts or still_doubts:
        return f'uncertain: {doubts}, expected True; when it was told: {still_doubts}, expected False'
    run = exec_.run(['doubtful.py', '--batch-size', '8'], more=assume)
    tried = run.report['choice']['peak']['reserved_bytes'] if not run.status else run.tail()
    return '' if large == tried and large > 4 * small else f'{small}, when it was told {large}, a trial took {tried}'


def run_doubts(exec_):
    """A recording knows what decided it that only a real GPU knows; record takes the user's word for it."""
    name, lacks = 'doubtful.py recorded', exec_.installation.lacks('torch')
    if lacks:
        return [(name, '', lacks)]
    with tempfile.TemporaryDirectory(prefix='plimsoll-suite-') as folder:
        return [(name, check_doubts(exec_, folder), '')]


def recordings(exec_, options):
    if options.wants('doubtful.py', False):
        yield functools.partial(run_doubts, exec_)
    if options.wants('host_data.py', True):
        yield functools.partial(run_host_work, exec_)
    if options.wants('--framework-python', True):
        yield functools.partial(run_host, exec_)
    for name in TIMED:
        if options.wants(f'decoder.py {name}', False):
            yield functools.partial(run_timed, exec_, name)
    for command, needed, more, sizes, is_quick in RECORDED:
        if options.wants(command, is_quick):
            yield functools.partial(run_recorded, exec_, command, needed, more, sizes)
