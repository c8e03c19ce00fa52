"""The record of a run: one JSON file, complete at every moment, and the loop that fills it.

A part is a list of cases, each with the seconds that it may take and a function that returns its result,
an object with `ok`. A case that is done is not run again. `left` says which a part has not come to.

    status   ok       every case is done and went well
             skipped  the same, but for halves that lack something here (`skipped` of their results)
             late     the part's time ended before its cases did, or one was killed at its end
             failed   a case went wrong
"""
import datetime
import json
import os
import re
import sys
import threading
import time
import traceback
from collections import namedtuple
from concurrent.futures import ThreadPoolExecutor

# cases(bench): a list of Case. at_once: how many run side by side; 1 where seconds are measured.
Part = namedtuple('Part', 'call what seconds cases at_once', defaults=(1,))
Case = namedtuple('Case', 'id seconds run')  # run(bench, seconds, results of its part so far)

BEGIN_NOTHING_SECONDS = 1  # before a part's end


class Late(Exception):
    """A program was killed when its time was over. `result`: what it had found out by then."""

    def __init__(self, result=None):
        super().__init__('its time is over')
        self.result = result or {}


def default_path(root, machine):
    name = re.sub(r'[^A-Za-z0-9]+', '-', machine['gpu'].get('name', 'unknown')).strip('-').lower()
    today = datetime.date.today().isoformat()
    return os.path.join(root, 'tests', 'gpu', 'records', f'{name}-{today}.json')


def is_done(result):
    return result is not None and result.get('ok', False) and not result.get('skipped')


def status_of(wanted, results):
    found = [results.get(case.id) for case in wanted]
    if any(result and not result['ok'] and not result.get('late') for result in found):
        return 'failed'
    if not all(result and result['ok'] for result in found):
        return 'late'
    return 'skipped' if any(result.get('skipped') for result in found) else 'ok'


def run_case(case, bench, seconds, results):
    begin = time.monotonic()
    try:
        result = case.run(bench, seconds, results)
    except Late as late:
        result = dict(late.result, ok=False, late=True, why=str(late))
    except Exception as error:  # recorded; the next case runs
        traceback.print_exc()
        result = {'ok': False, 'why': f'{type(error).__name__}: {error}'}
    result['case_seconds'] = time.monotonic() - begin
    return result


class Record:
    def __init__(self, path, machine, resume):
        self.path, self.lock = path, threading.Lock()
        self.data = {'schema': 'plimsoll.gpu/2', 'parts': {}}
        if resume and os.path.exists(path):
            with open(path, encoding='utf-8') as file:
                self.data = json.load(file)
        self.data.update(machine)
        self.save()

    def save(self):
        folder = os.path.dirname(os.path.abspath(self.path))
        os.makedirs(folder, exist_ok=True)
        with open(self.path + '.new', 'w', encoding='utf-8') as file:
            json.dump(self.data, file, indent=1)
            file.write('\n')
        os.replace(self.path + '.new', self.path)

    def run(self, name, part, bench, end):
        """What is missing of a part, until its own time is over or, for all parts, `end`."""
        begin = time.monotonic()
        end = min(end, begin + part.seconds)
        entry = self.data['parts'].setdefault(name, {})
        results = entry.setdefault('results', {})
        entry['what'] = part.what
        wanted = part.cases(bench)

        def run(case):
            left = end - time.monotonic()
            if left < BEGIN_NOTHING_SECONDS:
                return
            result = run_case(case, bench, min(left, case.seconds), results)
            with self.lock:
                results[case.id] = result
                entry['status'] = status_of(wanted, results)
                self.save()

        with ThreadPoolExecutor(part.at_once) as pool:
            list(pool.map(run, [case for case in wanted if not is_done(results.get(case.id))]))
        entry['status'] = status_of(wanted, results)
        entry['left'] = [case.id for case in wanted if case.id not in results]
        entry['seconds'] = entry.get('seconds', 0) + time.monotonic() - begin
        self.save()
        self.tell(name, part, wanted)

    def tell(self, name, part, wanted):
        entry = self.data['parts'][name]
        print(f'{name}: {entry["status"]} in {entry["seconds"]:.1f} s, {part.what}', file=sys.stderr)
        for case in wanted:
            result = entry['results'].get(case.id)
            why = 'not begun' if not result else result.get('why') or result.get('skipped')
            if not is_done(result):
                print(f'    {case.id}: {why or "failed: see the record"}', file=sys.stderr)

    def exit_code(self, names):
        bad = ('failed', 'late')
        return int(any(self.data['parts'][name]['status'] in bad for name in names))
