"""In the place of scripts/gpu/torch_side.py: answers its jobs without PyTorch and without a GPU.

PLIM_ON_GPU: the program that knows bytes, by simulation. PLIM_STAND_IN_HANGS: the `do` of jobs that
never end.
"""
import json
import os
import subprocess
import sys
import tempfile
import time


def figures(job):
    with tempfile.NamedTemporaryFile('w', suffix='.jsonl') as file:
        file.write(json.dumps(job['case']) + '\n')
        file.flush()
        told = subprocess.run([os.environ['PLIM_ON_GPU'], 'golden', 'sim:A100-SXM4-80GB', '--cases',
                               file.name], check=True, stdout=subprocess.PIPE).stdout
    return {'steps': json.loads(told)['steps'], 'taken_bytes': 1}


JOBS = {'figures': figures,
        'time': lambda job: {'step_seconds': 1, 'operations': [{'op': 'aten::mm', 'seconds': 2},
                                                               {'op': 'aten::addmm', 'seconds': 3}]},
        'largest': lambda job: {'largest': job['guess'], 'trials': []},
        'find': lambda job: {'found': [], 'wall_seconds': 100}}

for line in sys.stdin:
    request = json.loads(line)
    while request['do'] == os.environ.get('PLIM_STAND_IN_HANGS'):
        time.sleep(1)
    print(json.dumps(JOBS[request['do']](request)), flush=True)
