#!/usr/bin/env python3
"""What emit writes, read by apply: read_back.py PLIMSOLL

Every form of every framework is emitted with sizes that are prime, and `apply --check` finds in it that they are right already;
of other sizes it says that the file would change. Also: the tables' forms without a key of a batch, --emit of a plan, and env.
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
RESULT = os.path.join(HERE, 'result.json')
SIZES = ['--accumulation', '5', '--dp', '2', '--seq', '704']
ONCE = ['--accumulation', '1', '--dp', '2', '--seq', '704']  # where nothing is accumulated

# Forms that hold no batch (launchers), or count tokens: what has to be in them instead.
OTHERS = {
    'accelerate.env': ['ACCELERATE_GRADIENT_ACCUMULATION_STEPS=5'],
    'accelerate.cli': ['--num_processes 2', '--gradient_accumulation_steps 5'],
    'accelerate.yaml': ['num_processes: 2'],
    'accelerate.python': ['batch_size = 3 ', 'gradient_accumulation_steps=5,'],
    'nanochat.cli': ['--device-batch-size=3', f'--total-batch-size={3 * 5 * 2 * 704}'],
    'oumi.yaml': ['per_device_train_batch_size: 3', 'gradient_accumulation_steps: 5', 'model_max_length: 704'],
    'sbatch.header': ['#SBATCH --ntasks-per-node=2', 'export PLIMSOLL_MICRO_BATCH=3', 'export PLIMSOLL_GLOBAL_BATCH=30'],
    'sbatch.torchrun': ['#SBATCH --ntasks-per-node=1', '#SBATCH --gpus-per-node=2', 'export PLIMSOLL_ACCUMULATION=5'],
    'torchrun.cli': ['--nnodes 1 --nproc-per-node 2'],
    'torchtitan.tokens': [f'dp_rank {3 * 704}', f'train_step {3 * 5 * 2 * 704}'],
}
SUFFIXES = {'yaml': '.yaml', 'json': '.json', 'toml': '.toml', 'ini': '.cfg', 'gin': '.gin', 'python': '.py', 'cli': '.sh'}


def run(program, *arguments):
    return subprocess.run([program, *arguments], capture_output=True, text=True, check=False)


def forms(program):
    for line in run(program, 'emit', '--list').stdout.splitlines():
        name, rest = line[:16].strip(), line[42:].split()
        yield from (f'{name}.{form}' for form in rest)


def read_back(program, form, folder):
    """None, or what is wrong."""
    name, kind = form.rsplit('.', 1)
    sizes = SIZES
    said = run(program, 'emit', '--micro-batch', '3', *sizes, form)
    if said.returncode and 'makes an optimizer step of every batch' in said.stderr:
        sizes = ONCE
        said = run(program, 'emit', '--micro-batch', '3', *sizes, form)
    if said.returncode or not said.stdout.endswith('\n'):
        return f'exit {said.returncode}: {said.stdout}{said.stderr}'
    if form in OTHERS:
        missing = [text for text in OTHERS[form] if text not in said.stdout]
        return f'{missing} not in {said.stdout}' if missing else None
    path = os.path.join(folder, form.replace('.', '-') + SUFFIXES[kind])
    with open(path, 'w', encoding='utf-8') as file:
        file.write(('python train.py ' if kind == 'cli' else '') + said.stdout)
    right = run(program, 'apply', '--check', '--framework', name, '--micro-batch', '3', *sizes, path)
    other = run(program, 'apply', '--check', '--framework', name, '--micro-batch', '7', *sizes, path)
    if right.returncode or other.returncode != 7:
        return f'apply: {right.returncode} and {other.returncode}: {said.stdout}{right.stdout}{right.stderr}{other.stderr}'
    return None


def same_from_everywhere(program, folder):
    """A plan, its result, and env with the result print the same."""
    result = os.path.join(folder, 'result.json')
    question = ['gpt2-124m', '--device', 'sim:RTX-4090', '--effective-batch', '32', '--batch', '4']
    plan = run(program, 'plan', *question, '--emit', 'hf.cli', '-o', result)
    texts = [plan.stdout, run(program, 'emit', result, 'hf.cli').stdout, run(program, 'env', result, '--emit', 'hf.cli').stdout]
    if plan.returncode or len(set(texts)) > 1 or '--per_device_train_batch_size 4 --gradient_accumulation_steps 8 ' not in texts[0]:
        return f'{texts}: {plan.stderr}'
    fleet = os.path.join(folder, 'fleet.json')
    devices = run(program, 'plan', *question[:1], '--device', 'sim:T4,sim:RTX-4090', *question[3:], '--json', '-o', fleet)
    for name in ('rtx-4090', 'sim:RTX-4090'):
        of_one = run(program, 'emit', fleet, 'hf.cli', '--device', name)
        if devices.returncode or of_one.stdout != texts[0]:
            return f'{name} of a fleet: {of_one.stdout} {of_one.stderr}'
    for arguments, text in ((), 'one of T4, RTX-4090'), (('--device', 'L4'), 'no answer for the device L4; it has some for T4'):
        for command in ('emit', fleet, 'hf.cli'), ('apply', fleet, fleet):
            said = run(program, *command, *arguments)
            if said.returncode != 2 or text not in said.stderr:
                return f'{command} {arguments}: {said.stderr}'
    liger = run(program, 'plan', 'llama-3.2-1b', '--device', 'sim:L40S', '--seq', '1024', '--liger', 'true', '--emit', 'hf.yaml')
    if 'use_liger_kernel: true' not in liger.stdout or 'liger' in texts[0]:
        return f'{liger.stdout} {texts[0]}'
    some = run(program, 'plan', 'llama-3.2-1b', '--device', 'sim:L40S', '--seq', '1024', '--liger', 'true', '--set',
               'train.liger_kernels.rope=false', '--emit', 'hf.yaml')
    if 'does not say:' not in some.stderr or 'liger_kernels.rope false' not in some.stderr:
        return some.stderr
    cut = run(program, 'plan', 'llama-3.2-1b', '--device', 'sim:L40S', '--seq', '1024', '--precision', 'bf16', '--set',
              'train.cut_cross_entropy=true', '--set', 'train.upcast=undone', '--emit', 'hf.yaml')
    if 'cut_cross_entropy true' not in cut.stderr or 'upcast undone' not in cut.stderr:
        return cut.stderr
    nothing = run(program, 'plan', 'llama-3-8b', '--device', 'sim:4GiB', '--emit', 'hf')
    if nothing.returncode != 1 or nothing.stdout or 'fits' not in nothing.stderr:
        return f'nothing fits: {nothing.returncode} {nothing.stdout} {nothing.stderr}'
    return None


def offloaded(program):
    """What DeepSpeed keeps on the host, in its words and in accelerate's; without it nothing of that is said."""
    wanted = {'deepspeed': '"zero_optimization": {"stage": 3, "offload_optimizer": {"device": "cpu"}, "offload_param": {"device": "cpu"}}',
              'accelerate.cli': '--zero_stage 3 --offload_optimizer_device cpu --offload_param_device cpu',
              'accelerate.env': 'export ACCELERATE_DEEPSPEED_OFFLOAD_PARAM_DEVICE=cpu',
              'accelerate.yaml': 'zero_stage: 3, offload_optimizer_device: cpu, offload_param_device: cpu, gradient',
              'accelerate.python': '(zero_stage=3, offload_optimizer_device="cpu", offload_param_device="cpu", gradient'}
    question = ('plan', 'gpt2-124m', '--device', 'sim:RTX-4090', '--batch', '2', '--world', '4', '--sharding', 'zero3')
    both = ('--set', 'train.zero.offload_optimizer=cpu', '--set', 'train.zero.offload_param=cpu')
    for form, text in wanted.items():
        with_both, without = (run(program, *question, *options, '--emit', form) for options in (both, ()))
        if text not in with_both.stdout or 'offload' in with_both.stderr:
            return f'{form}: {with_both.stdout} {with_both.stderr}'
        if without.returncode or 'offload' in without.stdout.lower():
            return f'{form} without: {without.stdout} {without.stderr}'
    return None


def refusals(program):
    wanted = {
        ('emit', RESULT, 'hg'): 'did you mean hf?',
        ('emit', RESULT, 'hf.toml'): 'hf.python, hf.yaml, hf.json, hf.cli',
        ('emit', RESULT, 'mmdetection.yaml'): 'mmengine.python, mmengine.cli',
        ('emit', '--micro-batch', '4', 'megatron-lm'): '--dp N',
        ('emit', '--micro-batch', '4', '--accumulation', '2', 'detectron2'): 'every batch',
        ('emit', '--micro-batch', '4', '--dp', '12', 'torchrun'): '--gpus-per-node N',
        ('emit', RESULT): 'emit RESULT NAME',
        ('emit', HERE, 'hf'): HERE,
        ('plan', 'gpt2-124m', '--emit', 'huf'): 'did you mean hf?',
        ('plan', 'gpt2-124m', '--emit', 'hf', '--device', 'sim:L4,sim:T4'): 'one --device',
        ('plan', 'gpt2-124m', '--emit', 'hf', '--json'): 'expected one',
    }
    for arguments, text in wanted.items():
        said = run(program, *arguments)
        if said.returncode != 2 or text not in said.stderr or said.stdout:
            return f'{arguments}: {said.returncode} {said.stdout} {said.stderr}'
    return None


def notes(program):
    """What the text has no word for is said, and nothing of an answer is written that could be a command."""
    said = run(program, 'emit', RESULT, 'hf')
    if 'hf.python does not say: sequence 704, weights fp32, attention sdpa, sharding ddp' not in said.stderr:
        return said.stderr
    with open(RESULT, encoding='utf-8') as file:
        text = file.read().replace('"gpt2-124m"', '"x\\n; rm -rf $(HOME)"').replace('"adamw-fused"', '"$(touch x)"')
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, 'hostile.json')
        with open(path, 'w', encoding='utf-8') as file:
            file.write(text)
        said = run(program, 'emit', path, 'hf.yaml')
    lines = said.stdout.splitlines()
    hostile = [line for line in lines[1:] if '$' in line or ';' in line]
    wrong = hostile or len(lines) < 4 or not lines[0].startswith('# x\\x0a; rm')
    return f'{said.stdout}{said.stderr}' if wrong else None


def held_for(program):
    """What an answer holds for beyond the settings, and for which no form has a word: LoRA, quantization, ZeRO's, evaluations."""
    cases = {'axolotl': (('--lora', 'r=16', '--quantization', 'nf4,compute=bf16', '--precision', 'bf16'),
                         ('attention sdpa', 'LoRA r=16 on q_proj, v_proj', 'quantization nf4')),
             'hf.json': (('--world', '4', '--sharding', 'zero2', '--set', 'train.zero.overlap_comm=yes'),
                         ('sharding zero2, overlap_comm yes', 'attention sdpa')),
             'hf.cli': (('--loop', 'trainer', '--evaluation', 'batch=4,every=100'),
                        ('evaluation batch=4,every=100', 'attention sdpa')),
             'trl.cli': (('--sharding', 'zero2', '--optimizer', 'adamw',
                          '--use-reentrant', 'true', '--set', 'train.zero.offload_optimizer=cpu'),
                         ('use_reentrant true', 'offload_optimizer cpu'))}
    with tempfile.TemporaryDirectory() as folder:
        result, config = os.path.join(folder, 'result.json'), os.path.join(folder, 'axolotl.yml')
        with open(config, 'w', encoding='utf-8') as file:
            file.write('micro_batch_size: 1\ngradient_accumulation_steps: 4\n')
        for form, (options, held) in cases.items():
            run(program, 'plan', 'llama-3.2-1b', '--device', 'sim:A100-SXM4-40GB', '--batch', '2', '--seq', '1024',
                '--checkpointing', 'full', '-o', result, *options)
            said = run(program, 'apply', '--check', result, config).stderr
            if not all(part in said for part in held):
                return f'apply, {options}: {said}'
            said = run(program, 'emit', result, form).stderr
            if not all(part in said for part in held[1:]) or held[0].split(', ')[-1] not in said:
                return f'emit {form}, {options}: {said}'
    return None


def reentrant(program):
    """How a block is recomputed decides what it takes, and is written where it is: frameworks' defaults differ."""
    words = {'hf.python': '"use_reentrant": {}', 'hf.yaml': '{{use_reentrant: {}}}', 'hf.json': '{{"use_reentrant": {}}}',
             'trl.yaml': '{{use_reentrant: {}}}', 'axolotl.yaml': '{{use_reentrant: {}}}',
             'llama-factory.yaml': 'use_reentrant_gc: {}\n', 'llama-factory.cli': '--use_reentrant_gc {}'}
    with tempfile.TemporaryDirectory() as folder:
        result = os.path.join(folder, 'result.json')
        for checkpointing, value in ('full', 'true'), ('full', 'false'), ('full', None), ('none', None):
            asked = ('--use-reentrant', value) if value else ()
            run(program, 'plan', 'gpt2-124m', '--device', 'sim:L4', '--batch', '2', '--seq', '256', '--precision', 'bf16-mixed',
                '--checkpointing', checkpointing, '-o', result, *asked)
            for form, word in words.items():
                said = run(program, 'emit', result, form)
                text = value or 'false'
                word = word.format(text.capitalize() if form.endswith('python') else text)
                is_there = word in said.stdout if checkpointing == 'full' else 'reentrant' in said.stdout
                if is_there != (checkpointing == 'full') or 'reentrant' in said.stderr:
                    return f'{form}, {checkpointing}, {value}: {said.stdout}{said.stderr}'
    return None


SHARDED = {
    ('fsdp', 'hf.python'): 'fsdp=True,', ('fsdp', 'hf.cli'): ' --fsdp\n', ('fsdp', 'axolotl.yaml'): 'fsdp_version: 2',
    ('fsdp', 'accelerate.env'): 'FSDP_VERSION=2', ('fsdp', 'accelerate.python'): 'fsdp_version=2',
    ('fsdp', 'torchtitan.toml'): 'data_parallel_shard_degree = -1', ('fsdp', 'lightning.yaml'): 'strategy: fsdp',
    ('zero2', 'hf.json'): '"zero_optimization": {"stage": 2}', ('zero3', 'hf.yaml'): 'zero_optimization: {stage: 3}',
    ('zero1', 'accelerate.env'): 'ZERO_STAGE=1', ('zero3', 'accelerate.python'): 'zero_stage=3',
    ('zero3', 'llama-factory.cli'): '--deepspeed examples/deepspeed/ds_z3_config.json', ('fsdp', 'trl.yaml'): 'fsdp: true',
    ('zero2', 'axolotl.yaml'): 'deepspeed_configs/zero2.json', ('zero3', 'deepspeed.json'): '{"stage": 3}',
    ('zero1', 'deepspeed.json'): '"bf16": {"enabled": true}',
}


def sharded(program):
    """An answer that rests on sharding is none without it."""
    with open(RESULT, encoding='utf-8') as file:
        text = file.read()
    for (sharding, form), word in SHARDED.items():
        with tempfile.NamedTemporaryFile('w', suffix='.json') as file:
            file.write(text.replace('"sharding": "ddp"', f'"sharding": "{sharding}"'))
            file.flush()
            said, plain = run(program, 'emit', file.name, form), run(program, 'emit', RESULT, form)
        if word not in said.stdout or word in plain.stdout or 'sharding' in said.stderr:
            return f'{form} with {sharding}: {said.stdout}{said.stderr}'
        if form.endswith('.json'):
            json.loads(said.stdout)
    return None


def suffixes(program, folder):
    """A file's suffix asks for a form, and one that there is not is refused."""
    path = os.path.join(folder, 'a')
    for name, suffix, word in (('hf', '.yaml', '\nper_device_train_batch_size: '), ('hf', '.json', '{'),
                               ('hf', '.py', 'import TrainingArguments'), ('torchtitan', '.toml', '[training]')):
        said = run(program, 'emit', RESULT, name, '-o', path + suffix)
        with open(path + suffix, encoding='utf-8') as file:
            if said.returncode or word not in file.read():
                return f'{name} into {suffix}: {said.stderr}'
    said = run(program, 'emit', RESULT, 'torchtune', '-o', path + 'b.json')
    if said.returncode != 2 or "no form 'torchtune.json'" not in said.stderr or os.path.exists(path + 'b.json'):
        return f'torchtune into .json: {said.returncode} {said.stderr}'
    return None


def main(program):
    program = os.path.abspath(program)
    os.environ['PLIMSOLL_STORE'] = 'off'
    folder = tempfile.mkdtemp(prefix='plimsoll-emit-')
    names = list(forms(program))
    problems = {form: read_back(program, form, folder) for form in names}
    problems['plan, env'] = same_from_everywhere(program, folder)
    problems['refusals'] = refusals(program)
    problems['notes'] = notes(program)
    problems['held for'] = held_for(program)
    problems['reentrant'] = reentrant(program)
    problems['sharded'] = sharded(program)
    problems['offloaded'] = offloaded(program)
    problems['suffixes'] = suffixes(program, folder)
    shutil.rmtree(folder)
    failed = {name: problem for name, problem in problems.items() if problem}
    for name, problem in failed.items():
        print(f'{name}: {problem}')
    print(f'{len(problems) - len(failed)} of {len(problems)}')
    sys.exit(bool(failed) or len(names) < 60 or set(OTHERS) - set(names) != set())


if __name__ == '__main__':
    main(sys.argv[1])
