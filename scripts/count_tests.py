#!/usr/bin/env python3
"""Counts the tests in meson's testlog.json files: count_tests.py [--failed-steps "A B"] -- LOG...

Each line of a TAP program counts, not the program; a program that died although its lines are
fine (a leak, a crash at exit) counts as one failure more. Prints the failures, then the last line.
Exit code 1 when anything failed, or nothing passed in the LOGs.
"""
import argparse
import json
import re
import sys

TAP_LINE = re.compile(r'^(ok|not ok)\b(?: +\d+)?(?: - )?(.*)$')
SKIPPED = re.compile(r'# *skip', re.IGNORECASE)
PASSED_RESULTS = ('OK', 'EXPECTEDFAIL')


class Count:
    def __init__(self):
        self.passed = self.skipped = 0
        self.failures = []

    def add_tap(self, program, lines):
        """The lines of one program; True if there was a failure among them."""
        any_failed = False
        for verdict, name in lines:
            if verdict == 'not ok':
                self.failures.append(f'{program}: {name.strip()}')
                any_failed = True
            elif SKIPPED.search(name):
                self.skipped += 1
            else:
                self.passed += 1
        return any_failed

    def add_program(self, program, run):
        lines = []
        if 'TAP version' in run.get('stdout', ''):
            lines = [m.groups() for m in map(TAP_LINE.match, run['stdout'].splitlines()) if m]
        any_failed = self.add_tap(program, lines)
        if run['result'] == 'SKIP':
            self.skipped += not lines
        elif run['result'] in PASSED_RESULTS:
            self.passed += not lines
        elif not any_failed:
            self.failures.append(f'{program}: {run["result"]}, exit status {run["returncode"]}')


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--failed-steps', default='')
    parser.add_argument('logs', nargs='*')
    arguments = parser.parse_args()

    count = Count()
    for path in arguments.logs:
        with open(path, encoding='utf-8') as log:
            for line in log:
                run = json.loads(line)
                count.add_program(f'{path.split("/")[0]} {run["name"]}', run)
    count.failures += [f'{step}: failed' for step in arguments.failed_steps.split()]

    for failure in count.failures:
        print('FAILED', failure)
    print(f'{count.passed} passed, {len(count.failures)} failed, {count.skipped} skipped')
    return 1 if count.failures or (arguments.logs and not count.passed) else 0


if __name__ == '__main__':
    sys.exit(main())
