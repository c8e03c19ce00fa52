"""Runs measured cases of one of these systems: python case.py FOLDER ID [ID ...] [--more 1]

Prints a JSON line for each case with what FOLDER/measure.py measured, or {"oom": text}, each in a
child. With --batch a case runs here, so that an OutOfMemoryError ends the program. Under torchrun
a case is one ID, and every rank prints its own line.
"""
import argparse
import importlib
import json
import os
import sys
import warnings

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))

from children import in_child


def main():
    warnings.filterwarnings('ignore')
    os.environ.setdefault('HF_HUB_OFFLINE', '1')
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('folder')
    parser.add_argument('id', nargs='+')
    parser.add_argument('--batch', type=int, help='instead of the case\'s own')
    parser.add_argument('--more', type=int, default=0,
                        help='so many above the largest batch of a case that has one')
    options = parser.parse_args()
    folder = os.path.join(HERE, options.folder)
    with open(os.path.join(folder, 'cases.jsonl')) as file:
        cases = {case['id']: case for case in map(json.loads, file)}
    sys.path.insert(0, folder)
    measure = importlib.import_module('measure')
    for name in options.id:
        case, batch = cases[name], options.batch
        if options.more:
            batch = case['fit']['largest_batch'] + options.more

        def work():
            return measure.figures(case, batch)

        found = work() if options.batch or 'RANK' in os.environ else in_child(work)
        print(json.dumps({'id': name, 'rank': int(os.environ.get('RANK', 0)), **found}), flush=True)


if __name__ == '__main__':
    main()
