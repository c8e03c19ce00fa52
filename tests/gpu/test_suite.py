"""scripts/gpu-suite on stand-ins, with deadlines: test_suite.py WITH-STAND-INS SUITE BUILD FOLDER"""
import glob
import json
import os
import subprocess
import sys
import time

WITH_STAND_INS, SUITE, BUILD, FOLDER = sys.argv[1:]
HERE = os.path.dirname(os.path.abspath(__file__))
OUT = os.path.join(FOLDER, 'stand-in.json')
CALL_SECONDS = 540

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(SUITE), 'gpu'))
import parts  # noqa: E402
import second  # noqa: E402


def suite(*options, hangs='', gpu='A100-SXM4-80GB'):
    """(exit code, seconds, parts of the record)"""
    env = dict(os.environ, PLIM_STAND_IN_HANGS=hangs,
               PLIM_ON_GPU=os.path.join(BUILD, 'tests', 'gpu', 'on_gpu'))
    begin = time.monotonic()
    code = subprocess.run([WITH_STAND_INS, '--gpu', gpu, '--memory', '2GiB', '--build', BUILD, '--', SUITE, '--small',
                           '--build', BUILD, '--out', OUT, '--torch-side',
                           os.path.join(HERE, 'torch_stand_in.py'), *options], env=env).returncode
    with open(OUT, encoding='utf-8') as file:
        return code, time.monotonic() - begin, json.load(file)['parts']


def expect(what, seen, wanted):
    if seen != wanted:
        sys.exit(f'{what}: {seen}, expected {wanted}')


def deadlines_leave_room_in_a_call():
    for table in (parts.FIRST, second.SECOND):
        total = sum(part.seconds for part in table.values())
        expect(f'{total} s in a call of {CALL_SECONDS} s', total <= CALL_SECONDS, True)


def all_kernels_are_tested():
    files = glob.glob(os.path.join(HERE, '..', 'unit', 'test_kernels_*.c'))
    names = {os.path.basename(file)[len('test_'):-len('.c')] for file in files}
    expect('tests of kernels', sorted(second.SUITES), sorted(names - {'kernels_attention'}))


def what_hangs_is_cut_short_and_done_later():
    code, seconds, found = suite('--parts', 'seconds', '--limit', '5', hangs='time')
    expect('a part that hangs', found['seconds']['status'], 'late')
    expect('its first case', found['seconds']['results']['tiny']['late'], True)
    expect('our half of it', found['seconds']['results']['tiny']['attention_engine'], 'tensor cores')
    expect('exit code', code, 1)
    expect(f'{seconds:.0f} s, a part of 5 s', seconds < 15, True)
    code, _, again = suite('--parts', 'seconds', '--resume')
    expect('exit code when resumed', code, 0)
    expect('resumed', again['seconds']['status'], 'ok')
    expect('what was left', again['seconds']['left'], [])
    return again


def operations_stand_beside_pytorchs(found):
    table = found['seconds']['results']['tiny/operations']['beside_pytorch']
    expect('operations that both have', list(table), ['matmul'])
    expect('seconds of PyTorch\'s products', table['matmul']['pytorch'], 5)
    expect('seconds of ours', 0 < table['matmul']['clock'] < table['matmul']['ours'], True)


def all_parts_find_what_they_look_for(before):
    for options, table in (((), parts.FIRST), (('--second',), second.SECOND)):
        code, _, found = suite('--resume', *options)
        statuses = {name: found[name]['status'] for name in table}
        lacking = dict.fromkeys(('kernels', 'tune', 'programs', 'alone'), 'skipped')  # compute-sanitizer, PyTorch
        expect('statuses', statuses, {name: lacking.get(name, 'ok') for name in table})
        expect('exit code', code, 0)
        expect('not run again', found['seconds']['results'], before['seconds']['results'])
    expect('a ring of one GPU', found['ring']['results'], {})


def gpus_of_a_kind_have_a_ring():
    code, _, found = suite('--parts', 'ring', gpu='A100-SXM4-80GB,T4,A100-SXM4-80GB')
    expect('exit code with several GPUs', code, 0)
    expect('GPUs in the ring', found['ring']['results']['2 GPUs']['all_reduce']['gpus'], 2)


deadlines_leave_room_in_a_call()
all_kernels_are_tested()
FOUND = what_hangs_is_cut_short_and_done_later()
operations_stand_beside_pytorchs(FOUND)
all_parts_find_what_they_look_for(FOUND)
gpus_of_a_kind_have_a_ring()
