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


SMALLEST = 27  # all that are of a Hopper GPU


def golden(root, machine, small):
    """The smallest cases of the GPU's own generation, else of 8.0's; none whose answers depend on
    whether a row is packed, which only the GPU's own memory tells."""
    folder = os.path.join(root, 'tests', 'golden')
    capability, total = machine['gpu']['compute_capability'], machine['gpu']['total_bytes']
    if small:
        losses = read(os.path.join(root, 'tests', 'losses', 'losses.jsonl'))
        return [case for case in losses if case['id'].startswith('gpt2/fp32/adamw/sdpa')][:2]
    cases = []
    for name in ('cases.jsonl', 'more.jsonl'):
        for case in read(os.path.join(folder, name)):
            case['config'] = os.path.join(folder, case['config'])
            if 'steps' in case and not case.get('packed') and largest(case) < 0.7 * total:
                cases.append(case)
    own = [case for case in cases if case['compute_capability'] == capability]
    return sorted(own or [case for case in cases if case['compute_capability'] == 80],
                  key=largest)[:SMALLEST]


def differences(ours, theirs):
    """[step, figure, ours, theirs] of the figures that are not equal."""
    found = []
    for number, (a, b) in enumerate(zip(ours, theirs), 1):
        found += [[number, name, a[name], b[name]] for name in FIGURES if a[name] != b[name]]
    if len(ours) != len(theirs):
        found.append([0, 'steps', len(ours), len(theirs)])
    return found


LORA = {'r': 16, 'target_modules': ['q_proj', 'v_proj']}
# Tunes: subject, options, memory. The first is for a CPU behind a pretended GPU, whose budget of 34 MiB
# is soon used up.
SHORT_TUNE = ('tiny-gpt2', ['--seq', '16', '--precision', 'bf16-mixed', '--optimizer', 'adamw',
                            '--margin', '0', '--overhead', '990MiB', '--budget', '6s'], '1GiB')
TUNE = ('gpt2-124m', ['--seq', '1024', '--precision', 'bf16-mixed', '--budget', '45s'], None)
LONGER_TUNE = ('gpt2-124m', ['--seq', '256', '--precision', 'bf16-mixed', '--budget', '20s'], '8GiB')

# No margin: the very edge. `case`: the same by PyTorch.
EDGE = ['--margin', '0', '--budget', '30s']
CAPPED_TUNES = [
    {'subject': 'gpt2-124m', 'memory': '24GiB', 'case': {'config': 'gpt2.json'},
     'options': ['--seq', '1024', '--precision', 'bf16-mixed', *EDGE]},
    {'subject': 'tinyllama-1.1b', 'memory': '24GiB', 'case': {'config': 'tinyllama-1.1b.json'},
     'options': ['--seq', '2048', '--precision', 'bf16', *EDGE]},
    {'subject': 'mistral-7b', 'memory': '24GiB', 'case': {'config': 'mistral-7b.json', 'lora': LORA},
     'options': ['--seq', '2048', '--precision', 'bf16', '--lora', 'r=16,targets=q_proj+v_proj',
                 '--checkpointing', 'full', *EDGE]},
]
SMALL_TUNES = [{'subject': SHORT_TUNE[0], 'memory': SHORT_TUNE[2], 'case': {'config': 'gpt2.json'},
                'options': SHORT_TUNE[1] + ['--effective-batch', '8', '--budget', '20s']}]

# Seconds of a step. GPT-2's own dropout is 0.1.
STEPS = [
    {'id': 'gpt2/bf16-mixed/dropout', 'config': 'gpt2.json', 'batch': 8, 'seq': 1024,
     'precision': 'bf16-mixed', 'optimizer': 'adamw', 'checkpointing': 'none'},
    {'id': 'tinyllama/bf16', 'config': 'tinyllama-1.1b.json', 'batch': 4, 'seq': 2048,
     'precision': 'bf16', 'optimizer': 'adamw', 'checkpointing': 'none'},
    {'id': 'gpt2/bf16-mixed', 'config': 'gpt2.json', 'batch': 8, 'seq': 1024, 'dropout': 0,
     'precision': 'bf16-mixed', 'optimizer': 'adamw', 'checkpointing': 'none'},
    {'id': 'gpt2/fp32', 'config': 'gpt2.json', 'batch': 8, 'seq': 1024, 'dropout': 0,
     'precision': 'fp32', 'optimizer': 'adamw', 'checkpointing': 'none'},
]
OPERATIONS = 60  # of a step, those that take longest
# Our operations (devices/op.h) and PyTorch's of the same work, as its profiler names them.
SAME = {
    'matmul': ('aten::mm', 'aten::addmm', 'aten::bmm', 'aten::baddbmm'),
    'attention': ('aten::_flash_attention_forward', 'aten::_efficient_attention_forward',
                  'aten::_cudnn_attention_forward', 'aten::_scaled_dot_product_cudnn_attention'),
    'attention_backward': ('aten::_flash_attention_backward', 'aten::_efficient_attention_backward',
                           'aten::_cudnn_attention_backward',
                           'aten::_scaled_dot_product_cudnn_attention_backward'),
    'layer_norm': ('aten::native_layer_norm',),
    'layer_norm_backward, layer_norm_backward_params': ('aten::native_layer_norm_backward',),
    'embedding': ('aten::index_select', 'aten::embedding'),
    'embedding_backward': ('aten::embedding_dense_backward',),
    'log_softmax': ('aten::_log_softmax',),
    'log_softmax_backward': ('aten::_log_softmax_backward_data',),
    'nll_loss, nll_loss_backward': ('aten::nll_loss_forward', 'aten::nll_loss_backward'),
    'dropout': ('aten::native_dropout',),
    'optimizer, foreach': ('aten::_fused_adamw_', 'aten::_foreach_add_', 'aten::_foreach_mul_',
                           'aten::_foreach_lerp_', 'aten::_foreach_addcmul_', 'aten::_foreach_addcdiv_',
                           'aten::_foreach_sqrt', 'aten::_foreach_div_'),
    'copy': ('aten::copy_',),
}


def beside_pytorch(ours, theirs):
    """{our operations: seconds of a step, ours, the clock's, PyTorch's} where both ran something."""
    table = {}
    for names, same in SAME.items():
        mine = [row for row in ours if row['op'].split()[0] in names.split(', ')]
        seconds = sum(row['seconds'] for row in theirs if row['op'] in same)
        if mine and seconds:
            table[names] = {'ours': sum(row['seconds'] for row in mine), 'pytorch': seconds,
                            'clock': sum(row['clock_seconds'] for row in mine)}
    return table
TINY = {'id': 'tiny', 'spec': 'tiny-gpt2', 'batch': 1, 'seq': 16, 'precision': 'bf16-mixed',
        'optimizer': 'adamw', 'checkpointing': 'none'}

# A question as people ask it.
SEARCH_SEQS = (256, 512, 1024)
SEARCH = {'subject': 'gpt2-124m', 'memory': '24GiB',
          'options': ['--seq', ','.join(map(str, SEARCH_SEQS)), '--checkpointing', 'none,full',
                      '--precision', 'bf16-mixed', '--optimizer', 'adamw']}
SEARCH_CASE = {'config': 'gpt2.json', 'precision': 'bf16-mixed', 'optimizer': 'adamw'}


def with_config(root, case):
    """Paths are whole: cases are written to a folder of their own."""
    return dict(case, config=os.path.join(root, 'tests', 'golden', 'configs', case['config']))
