"""The record of a run: one JSON file, complete at every moment."""
import datetime
import json
import os
import re
import sys
import time
import traceback


def default_path(root, machine):
    name = re.sub(r'[^A-Za-z0-9]+', '-', machine['gpu'].get('name', 'unknown')).strip('-').lower()
    today = datetime.date.today().isoformat()
    return os.path.join(root, 'tests', 'gpu', 'records', f'{name}-{today}.json')


class Late(Exception):
    """A part's time is over."""


class Entry:
    """What one part found out: a dictionary that is on disk after every change."""

    def __init__(self, book, name, seconds):
        self.book = book
        self.data = book.data['parts'].setdefault(name, {})
        self.results = self.data.setdefault('results', {})
        self.deadline = time.monotonic() + seconds

    def left(self):
        left = self.deadline - time.monotonic()
        if left <= 0:
            raise Late('its time is over')
        return left

    def has(self, key):
        """Was this step done before, and did it go well?"""
        known = self.results.get(key)
        return known is not None and known.get('ok', True)

    def put(self, key, result):
        self.results[key] = result
        self.book.save()

    def all_ok(self):
        return all(result.get('ok', True) for result in self.results.values())


class Record:
    def __init__(self, path, machine, resume):
        self.path = path
        self.data = {'schema': 'plimsoll.gpu/1', 'parts': {}}
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

    def run(self, name, part, context):
        known = self.data['parts'].get(name, {})
        if known.get('status') == 'ok':
            print(f'{name}: was done before', file=sys.stderr)
            return
        entry = Entry(self, name, part.seconds)
        entry.data['what'] = part.what
        begin = time.monotonic()
        try:
            why = part.run(context, entry)
            entry.data['status'] = 'skipped' if why else 'ok' if entry.all_ok() else 'failed'
        except Late as late:
            entry.data['status'], why = 'late', str(late)
        except Exception as error:  # recorded; the next part runs
            entry.data['status'], why = 'failed', f'{type(error).__name__}: {error}'
            traceback.print_exc()
        entry.data.pop('why', None)
        if why:
            entry.data['why'] = why
        entry.data['seconds'] = entry.data.get('seconds', 0) + time.monotonic() - begin
        self.save()
        print(f'{name}: {entry.data["status"]} in {entry.data["seconds"]:.1f} s, {part.what}'
              f'{": " + why if why else ""}', file=sys.stderr)

    def exit_code(self, names):
        bad = ('failed', 'late')
        return int(any(self.data['parts'][name]['status'] in bad for name in names))
