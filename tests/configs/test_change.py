#!/usr/bin/env python3
"""What apply and revert do to files as such: test_change.py PLIMSOLL KILL_AT.so [FAIL_ALLOCATION.so]

All or none over crashes at every call that changes a file, over allocations that fail, and over 200 kills at any time; links,
modes, owners, hard links, special files; what was changed since; backups and records.
"""
import json
import os
import random
import signal
import stat
import subprocess
import sys
import tempfile
import time

PROGRAM, KILL_AT = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
FAIL = os.path.abspath(sys.argv[3]) if len(sys.argv) > 3 else None
BEFORE = b'# stage\nper_device_train_batch_size: 16\ngradient_accumulation_steps: 2\n'
AFTER = BEFORE.replace(b': 16', b': 4').replace(b': 2\n', b': 8\n')
STAGES = [f'stage {n}.yaml' for n in range(4)]
APPLY = ['apply', '--micro-batch', '4', '--accumulation', '8']


def run(folder, *arguments, **variables):
    environment = {**os.environ, **{k: str(v) for k, v in variables.items()}}
    return subprocess.run([PROGRAM, *arguments], cwd=folder, capture_output=True, text=True, env=environment)


def write(folder, name, data=BEFORE):
    with open(os.path.join(folder, name), 'wb') as file:
        file.write(data)


def read(folder, name):
    with open(os.path.join(folder, name), 'rb') as file:
        return file.read()


def stages(folder):
    for name in STAGES:
        write(folder, name, BEFORE + name.encode() + b': 1\n')


def states(folder):
    return {'before' if read(folder, name) == BEFORE + name.encode() + b': 1\n' else
            'after' if read(folder, name) == AFTER + name.encode() + b': 1\n' else 'broken' for name in STAGES}


def expect(truth, what):
    if not truth:
        raise AssertionError(what)


def recover(folder, what):
    """After a crash: never half a file, and revert brings all back; a new apply then works."""
    mixed = states(folder)
    expect('broken' not in mixed, f'{what}: a file is broken')
    if any(name.endswith('.plimsoll.json') for name in os.listdir(folder)):
        if len(mixed) == 2:
            expect(run(folder, *APPLY, *STAGES).returncode == 2, f'{what}: a second change was begun over half of one')
        back = run(folder, 'revert', *STAGES)
        expect(back.returncode == 0, f'{what}: {back.stderr}')
        expect(states(folder) == {'before'}, f'{what}: not all are back: {back.stdout}')
    expect(len(states(folder)) == 1, f'{what}: some are changed and some are not')
    expect(run(folder, *APPLY, *STAGES).returncode == 0, f'{what}: no apply is possible afterwards')
    expect(run(folder, 'revert', *STAGES).returncode == 0 and states(folder) == {'before'}, f'{what}: revert')
    return len(mixed) == 2


def preload(folder, library):
    """LD_PRELOAD takes no name with a blank in it."""
    link = os.path.join('/tmp', f'plimsoll-{os.getpid()}-{os.path.basename(library)}')
    if not os.path.islink(link):
        os.symlink(library, link)
    return link


def test_a_crash_at_any_call_leaves_all_or_none():
    mixed = number = 0
    while True:
        number += 1
        with tempfile.TemporaryDirectory(prefix='a blank ') as folder:
            stages(folder)
            result = run(folder, *APPLY, *STAGES, LD_PRELOAD=preload(folder, KILL_AT), PLIM_KILL_AT=number)
            if result.returncode != -signal.SIGKILL:
                break
            mixed += recover(folder, f'killed at call {number}')
    expect(number > 40 and mixed >= len(STAGES) - 1, f'{number} calls, {mixed} in between')


def test_a_crash_of_revert_can_be_reverted():
    number = 0
    while True:
        number += 1
        with tempfile.TemporaryDirectory(prefix='a blank ') as folder:
            stages(folder)
            expect(run(folder, *APPLY, *STAGES).returncode == 0, 'apply')
            result = run(folder, 'revert', *STAGES, LD_PRELOAD=preload(folder, KILL_AT), PLIM_KILL_AT=number)
            if result.returncode != -signal.SIGKILL:
                break
            if any(name.endswith('.plimsoll.json') for name in os.listdir(folder)):
                expect(run(folder, 'revert', *STAGES).returncode == 0, f'revert killed at call {number}')
            expect(states(folder) == {'before'}, f'revert killed at call {number}')
    expect(number > 8, f'{number} calls')


def test_200_kills_at_any_time_leave_all_or_none():
    chance = random.Random(13)
    for number in range(200):
        with tempfile.TemporaryDirectory() as folder:
            stages(folder)
            child = subprocess.Popen([PROGRAM, *APPLY, *STAGES], cwd=folder, stdout=subprocess.DEVNULL,
                                     stderr=subprocess.DEVNULL)
            time.sleep(chance.random() * 0.02)
            child.kill()
            child.wait()
            recover(folder, f'kill {number}')


def test_memory_that_runs_out_leaves_all_or_none():
    if not FAIL:
        return
    with tempfile.TemporaryDirectory() as folder:
        stages(folder)
        count = os.path.join(folder, 'count')
        run(folder, *APPLY, *STAGES, LD_PRELOAD=preload(folder, FAIL), PLIM_FAIL_AT=0, PLIM_FAIL_COUNT=count)
        with open(count, encoding='ascii') as file:
            allocations = int(file.read())
        expect(allocations > 50, f'{allocations} allocations')
    chance = random.Random(allocations)
    numbers = set(chance.sample(range(1, allocations + 1), 100)) | set(range(allocations - 100, allocations + 1))
    for number in sorted(numbers):
        with tempfile.TemporaryDirectory() as folder:
            stages(folder)
            result = run(folder, *APPLY, *STAGES, LD_PRELOAD=preload(folder, FAIL), PLIM_FAIL_AT=number)
            here = states(folder)
            expect(result.returncode >= 0, f'allocation {number}: signal {-result.returncode}')
            expect(here == ({'after'} if result.returncode == 0 else {'before'}),
                   f'allocation {number}: exit {result.returncode}, {here}: {result.stderr}')
            left = [name for name in os.listdir(folder) if 'plimsoll' in name]
            expect(result.returncode == 0 or not left, f'allocation {number} leaves {left}')


def test_mode_and_owner_stay_and_a_link_stays_a_link():
    with tempfile.TemporaryDirectory() as folder:
        write(folder, 'real.yaml')
        path = os.path.join(folder, 'real.yaml')
        os.chmod(path, 0o640)
        if os.geteuid() == 0:
            os.chown(path, 12345, 12346)
        os.symlink('real.yaml', os.path.join(folder, 'link.yaml'))
        expect(run(folder, *APPLY, 'link.yaml').returncode == 0, 'apply through a link')
        info = os.stat(path)
        expect(os.path.islink(os.path.join(folder, 'link.yaml')) and read(folder, 'real.yaml') == AFTER, 'the link')
        expect(stat.S_IMODE(info.st_mode) == 0o640, oct(info.st_mode))
        expect(os.geteuid() or (info.st_uid, info.st_gid) == (12345, 12346), 'the owner')
        expect(stat.S_IMODE(os.stat(path + '.plimsoll-backup').st_mode) == 0o640, 'the backup is as private')
        expect(run(folder, 'revert', 'link.yaml').returncode == 0 and read(folder, 'real.yaml') == BEFORE, 'revert')
        expect(stat.S_IMODE(os.stat(path).st_mode) == 0o640, 'the mode after revert')


def test_hard_links_and_special_files_are_refused():
    with tempfile.TemporaryDirectory() as folder:
        write(folder, 'a.yaml')
        os.link(os.path.join(folder, 'a.yaml'), os.path.join(folder, 'b.yaml'))
        result = run(folder, *APPLY, 'a.yaml')
        expect(result.returncode == 2 and 'hard link' in result.stderr and read(folder, 'a.yaml') == BEFORE, result.stderr)
        os.mkfifo(os.path.join(folder, 'pipe.yaml'))
        expect(run(folder, *APPLY, 'pipe.yaml').returncode == 2, 'a pipe')
        expect(run(folder, *APPLY, '/dev/null').returncode == 2, 'a device')
        expect(run(folder, *APPLY, '.').returncode == 2, 'a folder')
        expect(run(folder, *APPLY, 'none.yaml').returncode == 2, 'no file')
        expect(sorted(os.listdir(folder)) == ['a.yaml', 'b.yaml', 'pipe.yaml'], 'something is left')


def test_the_same_file_twice_is_refused():
    with tempfile.TemporaryDirectory() as folder:
        write(folder, 'a.yaml')
        os.symlink('a.yaml', os.path.join(folder, 'b.yaml'))
        result = run(folder, *APPLY, 'a.yaml', 'b.yaml')
        expect(result.returncode == 2 and 'same file' in result.stderr and read(folder, 'a.yaml') == BEFORE, result.stderr)


def test_check_prints_the_diff_and_writes_nothing():
    with tempfile.TemporaryDirectory() as folder:
        write(folder, 'a.yaml', BEFORE + b'x: 1\n' * 30)
        result = run(folder, *APPLY, '--check', 'a.yaml')
        expect(result.returncode == 7 and os.listdir(folder) == ['a.yaml'], f'exit {result.returncode}')
        expect(read(folder, 'a.yaml').startswith(BEFORE), 'it was written')
        patched = subprocess.run(['patch', '-s', 'a.yaml'], cwd=folder, input=result.stdout, text=True)
        expect(patched.returncode == 0 and read(folder, 'a.yaml').startswith(AFTER), 'patch makes the same of it')
        expect(run(folder, *APPLY, '--check', 'a.yaml').returncode == 0, 'already right')


def test_a_file_that_is_right_is_not_written():
    with tempfile.TemporaryDirectory() as folder:
        write(folder, 'a.yaml', AFTER)
        os.chmod(os.path.join(folder, 'a.yaml'), 0o444)
        before = os.stat(os.path.join(folder, 'a.yaml'))
        result = run(folder, *APPLY, 'a.yaml')
        after = os.stat(os.path.join(folder, 'a.yaml'))
        expect(result.returncode == 0 and 'already right' in result.stdout, result.stdout)
        expect((before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns), 'it was written')
        expect(os.listdir(folder) == ['a.yaml'], 'something is left')


def test_revert_wants_the_file_as_apply_left_it():
    with tempfile.TemporaryDirectory() as folder:
        write(folder, 'a.yaml')
        expect(run(folder, 'revert', 'a.yaml').returncode == 2, 'nothing to revert')
        expect(run(folder, *APPLY, 'a.yaml').returncode == 0, 'apply')
        write(folder, 'a.yaml', AFTER + b'mine: 1\n')
        result = run(folder, 'revert', 'a.yaml')
        expect(result.returncode == 2 and '--force' in result.stderr, result.stderr)
        expect(read(folder, 'a.yaml') == AFTER + b'mine: 1\n', 'it was restored')
        expect(run(folder, 'revert', '--force', 'a.yaml').returncode == 0 and read(folder, 'a.yaml') == BEFORE, 'force')
        expect(os.listdir(folder) == ['a.yaml'], 'something is left')


def test_after_two_changes_revert_restores_what_the_user_had():
    with tempfile.TemporaryDirectory() as folder:
        write(folder, 'a.yaml')
        expect(run(folder, *APPLY, 'a.yaml').returncode == 0, 'first')
        expect(run(folder, 'apply', '--micro-batch', '2', '--accumulation', '16', 'a.yaml').returncode == 0, 'second')
        expect(b'batch_size: 2\n' in read(folder, 'a.yaml'), 'the second')
        expect(run(folder, 'revert', 'a.yaml').returncode == 0 and read(folder, 'a.yaml') == BEFORE, 'revert')


def test_a_backup_of_another_text_is_not_overwritten():
    with tempfile.TemporaryDirectory() as folder:
        write(folder, 'a.yaml')
        write(folder, 'a.yaml.plimsoll-backup', b'dear to somebody\n')
        expect(run(folder, *APPLY, 'a.yaml').returncode == 2, 'it was overwritten')
        expect(read(folder, 'a.yaml') == BEFORE and read(folder, 'a.yaml.plimsoll-backup') == b'dear to somebody\n', 'bytes')


def test_the_record_says_what_was_done():
    with tempfile.TemporaryDirectory() as folder:
        write(folder, 'a.yaml')
        run(folder, *APPLY, 'a.yaml')
        with open(os.path.join(folder, 'a.yaml.plimsoll.json'), encoding='utf-8') as file:
            record = json.load(file)
        expect(record['schema'] == 'plimsoll.apply/1' and record['state'] == 'done', record)
        expect(record['sizes'] == {'micro_batch': 4, 'accumulation': 8} and record['framework'] == 'hf', record)
        expect([(c['path'], c['line'], c['old'], c['new']) for c in record['changes']] ==
               [('per_device_train_batch_size', 2, '16', '4'), ('gradient_accumulation_steps', 3, '2', '8')], record)


def test_a_result_of_plan_is_applied():
    with tempfile.TemporaryDirectory() as folder:
        write(folder, 'a.yaml')
        plan = run(folder, 'plan', 'tiny-gpt2', '--device', 'sim:24GiB', '--effective-batch', '64', '--batch', '4',
                   '--seq', '64', '--out', 'result.json', '--quiet')
        expect(plan.returncode == 0, plan.stderr)
        result = run(folder, 'apply', 'result.json', 'a.yaml')
        expect(result.returncode == 0, result.stderr)
        expect(read(folder, 'a.yaml') == BEFORE.replace(b': 16', b': 4').replace(b': 2\n', b': 16\n'), read(folder, 'a.yaml'))


def test_of_tiers_one_is_chosen():
    with tempfile.TemporaryDirectory() as folder:
        write(folder, 'a.yaml')
        plan = run(folder, 'plan', 'gpt2-124m', '--device', 'sim:8GiB', '--seq', '512', '--objective', 'largest-batch',
                   '--tiers', '--out', 'tiers.json', '--out', 'tiers.csv', '--quiet')
        expect(plan.returncode == 0, plan.stderr)
        with open(os.path.join(folder, 'tiers.json'), encoding='utf-8') as file:
            batches = {result['tier']: result['choice']['micro_batch'] for result in json.load(file)['results']}
        expect(len(set(batches.values())) > 1, batches)
        expect(read(folder, 'tiers.csv').startswith(b'spec,device,device_uri,tier,seq,'), 'no tiers in CSV')
        result = run(folder, 'apply', 'tiers.json', 'a.yaml')
        expect(result.returncode == 2 and '8GiB --tier safe, ' in result.stderr, result.stderr)
        for tier, batch in batches.items():
            result = run(folder, 'emit', 'tiers.json', 'hf.cli', '--tier', tier)
            expect(f'--per_device_train_batch_size {batch} ' in result.stdout, f'{tier}: {result.stdout}{result.stderr}')
        expect(run(folder, 'apply', 'tiers.json', 'a.yaml', '--tier', 'max').returncode == 0, 'max')
        expect(f'batch_size: {batches["max"]}\n'.encode() in read(folder, 'a.yaml'), read(folder, 'a.yaml'))
        result = run(folder, 'emit', 'tiers.json', 'hf.cli', '--tier', 'largest')
        expect(result.returncode == 2 and 'no answer for the tier largest' in result.stderr, result.stderr)


def test_mistakes_have_one_clear_line():
    with tempfile.TemporaryDirectory() as folder:
        write(folder, 'a.yaml')
        for arguments in (['a.yaml'], [], ['--micro-batch', '4'], ['--micro-batch', '0', 'a.yaml'],
                          ['--micro-batch', '4', '--framework', 'nobody', 'a.yaml'],
                          ['--micro-batch', '4', '--format', 'nothing', 'a.yaml'],
                          ['--micro-batch', '4', '--set', 'a=b', 'a.yaml'],
                          ['--accumulation', '4', 'a.yaml', 'a.yaml'], ['a.yaml', 'a.yaml']):
            result = run(folder, 'apply', *arguments)
            expect(result.returncode == 2 and result.stderr.count('\n') == 1 and not result.stdout,
                   f'{arguments}: {result.returncode} {result.stderr}')


def main():
    tests = {name: test for name, test in globals().items() if name.startswith('test_')}
    print(f'1..{len(tests)}')
    for number, (name, test) in enumerate(tests.items(), 1):
        try:
            test()
            print(f'ok {number} {name}')
        except AssertionError as problem:
            print(f'not ok {number} {name}: {problem}')
    for library in (KILL_AT, FAIL or ''):
        link = os.path.join('/tmp', f'plimsoll-{os.getpid()}-{os.path.basename(library)}')
        if os.path.islink(link):
            os.unlink(link)


if __name__ == '__main__':
    main()
