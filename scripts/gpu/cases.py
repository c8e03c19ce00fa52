"""What is run: which cases, models and settings."""
import json
import os

FIGURES = ('after_forward', 'peak_allocated', 'peak_reserved', 'peak_requested', 'end_allocated',
           'end_reserved')


def read(path):
    with open(path, encoding='utf-8') as file:
        return [json.loads(line) for line in file if line.strip()]


def largest(case):
    return max(step['peak_reserved'] for step in case['steps'])


def golden(root, machine, small):
    """Cases that the GPU has room for: its own generation first, the small ones first."""
    folder = os.path.join(root, 'tests', 'golden')
    capability, total = machine['gpu']['compute_capability'], machine['gpu']['total_bytes']
    if small:
        losses = read(os.path.join(root, 'tests', 'losses', 'losses.jsonl'))
        return [case for case in losses if case['id'].startswith('gpt2/fp32/adamw/sdpa')][:3]
    cases = []
    for name in ('cases.jsonl', 'more.jsonl'):
        for case in read(os.path.join(folder, name)):
            case['config'] = os.path.join(folder, case['config'])
            if 'steps' in case and largest(case) < 0.7 * total:
                cases.append(case)
    own = [case for case in cases if case['compute_capability'] == capability]
    others = [case for case in cases if case['compute_capability'] == 80 != capability]
    return sorted(own, key=largest) + sorted(others, key=largest)[::6]


def differences(ours, theirs):
    """[step, figure, ours, theirs] of the figures that are not equal."""
    found = []
    for number, (a, b) in enumerate(zip(ours, theirs), 1):
        found += [[number, name, a[name], b[name]] for name in FIGURES if a[name] != b[name]]
    if len(ours) != len(theirs):
        found.append([0, 'steps', len(ours), len(theirs)])
    return found


LORA = {'r': 16, 'target_modules': ['q_proj', 'v_proj']}
# Tunes for their own sake: model, options, memory. The first is for a CPU behind a pretended A100,
# whose budget of 34 MiB is soon used up.
SHORT_TUNE = ('tiny-gpt2', ['--seq', '16', '--precision', 'bf16-mixed', '--optimizer', 'adamw',
                            '--margin', '0', '--overhead', '990MiB', '--budget', '30s'], '1GiB')
LONGER_TUNE = ('gpt2-124m', ['--seq', '256', '--precision', 'bf16-mixed', '--budget', '60s'],
               '8GiB')

# Model, options, PyTorch's configuration, what its settings lack, caps in GiB.
TUNES = [
    ('gpt2-124m', ['--seq', '1024', '--precision', 'bf16-mixed'], 'gpt2.json', {}, (8, 16, 24, 40, 80)),
    ('tinyllama-1.1b', ['--seq', '2048', '--precision', 'bf16'], 'tinyllama-1.1b.json', {},
     (16, 24, 40, 80)),
    ('mistral-7b', ['--seq', '2048', '--precision', 'bf16', '--lora', 'r=16,targets=q_proj+v_proj',
                    '--checkpointing', 'full'], 'mistral-7b.json', {'lora': LORA}, (24, 40, 80)),
]
# No margin: the very edge.
TUNE_OPTIONS = ['--margin', '0', '--budget', '30s']

STEPS = [
    {'id': 'gpt2/bf16-mixed/b8', 'config': 'gpt2.json', 'batch': 8, 'seq': 1024,
     'precision': 'bf16-mixed', 'optimizer': 'adamw', 'checkpointing': 'none'},
    {'id': 'gpt2/bf16-mixed/ckpt/b32', 'config': 'gpt2.json', 'batch': 32, 'seq': 1024,
     'precision': 'bf16-mixed', 'optimizer': 'adamw', 'checkpointing': 'full'},
    {'id': 'gpt2/fp32/b8', 'config': 'gpt2.json', 'batch': 8, 'seq': 1024,
     'precision': 'fp32', 'optimizer': 'adamw', 'checkpointing': 'none'},
    {'id': 'tinyllama/bf16/b4', 'config': 'tinyllama-1.1b.json', 'batch': 4, 'seq': 2048,
     'precision': 'bf16', 'optimizer': 'adamw', 'checkpointing': 'none'},
]

# Part f: a question as people ask it.
SEARCH_SEQS = (256, 512, 1024)
SEARCH_OPTIONS = ['--seq', ','.join(map(str, SEARCH_SEQS)), '--checkpointing', 'none,full',
                  '--precision', 'bf16-mixed', '--optimizer', 'adamw']
SEARCH_CASE = {'config': 'gpt2.json', 'precision': 'bf16-mixed', 'optimizer': 'adamw'}


def with_config(root, case):
    config = os.path.join(root, 'tests', 'golden', 'configs', case['config'])
    return dict(case, config=config)
