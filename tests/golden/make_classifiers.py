"""What decoders allocate as sequence classifiers, in a plain loop, with transformers' Trainer and with TRL's RewardTrainer, case by
case, on plimsoll's virtual GPU: writes the cases, and joins them with the figures, as make_trl.py does.

    python make_classifiers.py classifiers > classifier_cases.jsonl                or reward, here and below
    (golden.py, as make_trl.py says)
    python make_classifiers.py classifiers FIGURES > classifiers.jsonl             of reward: reward.jsonl

`labels` are the classes, one alone with RewardTrainer, whose `batch` counts pairs of rows. transformers takes the last token that is
no padding: `no_padding` leaves it without a token for that, which it knows for one row alone. With `padded` the last row of a
batch is one token shorter. The score of a checkpoint is made anew, as that is a causal language model's. With `task_type`
SEQ_CLS peft trains a copy of it beside the adapters.
"""
import json
import sys

from make_trl import ALL, FULL, case as case_of, joined, lora, quantized

# Its loss takes the place of the forward, and fails.
KERNELS = {'liger': True, 'arguments': {'liger_kernel_config': {'fused_linear_cross_entropy': False}}}
SCORED = {'task_type': 'SEQ_CLS'}


def case(config, batch, seq, **more):
    made = case_of(config, batch, seq, **{'kind': 'classify', **more})
    marks = [more.get('labels') and f'l{more["labels"]}', more.get('no_padding') and 'unpadded',
             more.get('lora', {}).get('task_type') and 'scored',
             'center_rewards_coefficient' in more.get('arguments', {}) and 'centered']
    made['id'] = '/'.join([made['id'], *(mark for mark in marks if mark)])
    return made


def plain(config, batch, seq, **more):
    return case(config, batch, seq, **{'loop': 'plain', 'precision': 'fp32', 'clip': None, 'made_on': 'gpu', **more})


def classifier_cases():
    small, tied = 'x-llama-2l', 'x-llama-odd'
    for precision in ('fp32', 'bf16', 'bf16-mixed', 'fp16-mixed'):
        yield plain(tied, 4, 64, precision=precision)
    yield plain(small, 3, 100, labels=7, optimizer='adamw')
    yield plain(small, 1, 100)
    yield plain(small, 1, 100, no_padding=True)
    yield plain(small, 2, 300, **FULL, precision='bf16-mixed', accumulation=2)
    yield plain(small, 3, 200, padded=True)
    yield plain(tied, 3, 200, **FULL, padded=True, precision='bf16')
    yield plain(tied, 4, 2048, **FULL, precision='bf16-mixed')
    yield plain(tied, 2, 100, **FULL, **lora(8), precision='bf16')
    yield plain(tied, 2, 100, **lora(8, **SCORED), precision='bf16')
    yield plain(small, 2, 100, **lora(8, ALL, dropout=0.05, **SCORED), precision='bf16-mixed')
    yield plain(small, 2, 100, **FULL, **lora(8, **SCORED), **quantized('nf4', compute='bf16', double=True),
                precision='bf16-mixed', weights='bf16')
    yield plain(small, 2, 100, **FULL, **lora(8, 'all-linear', **SCORED), **quantized('nf4'), precision='bf16')
    for config in ('x-qwen2-window', 'x-qwen3', 'x-phi', 'x-phi3', 'x-opt', 'x-opt-350', 'x-neox', 'x-gpt2-odd', 'x-gemma', 'x-gemma3-small',
                   'x-olmo', 'x-olmo2', 'x-olmo3', 'x-starcoder2', 'x-smollm3', 'x-stablelm', 'x-glm', 'x-glm4', 'x-mixtral',
                   'x-qwen2-moe', 'x-qwen3-moe', 'x-gpt-oss', 'x-qwen3-5', 'x-mistral-window', 'x-qwen3-next', 'x-ministral3',
                   'x-ministral', 'x-arcee', 'x-nemotron', 'x-exaone4', 'x-seed-oss', 'x-hunyuan', 'x-falcon', 'x-bigcode'):
        attention = 'eager' if config == 'x-gpt-oss' else 'sdpa'
        yield plain(config, 2, 60, precision='bf16-mixed', attention=attention)
    for config in ('x-bloom', 'x-gemma2'):
        yield plain(config, 2, 64, attention='eager')
    trainer = {'loop': 'trainer'}
    for precision in ('bf16-mixed', 'fp32', 'bf16', 'fp16-mixed'):
        yield case(tied, 4, 64, **trainer, precision=precision)
    yield case(small, 2, 300, **trainer, **FULL, accumulation=3, labels=5)
    yield case(small, 3, 200, **trainer, padded=True)
    yield case(small, 1, 200, **trainer, no_padding=True)
    yield case(tied, 2, 100, **trainer, **FULL, **lora(8, **SCORED), weights='bf16')
    yield case(small, 2, 100, **trainer, **lora(8, **SCORED), **quantized('nf4', compute='bf16', double=True), weights='bf16')
    yield case(small, 2, 100, **trainer, made_on='loaded', weights='bf16', **FULL)
    yield case(tied, 2, 100, **trainer, made_on='loaded', weights='bf16', **lora(8, **SCORED))
    yield case(small, 3, 100, **trainer, evaluation={'batch': 4, 'batches': 3, 'every': 2, 'keeps': 'logits'})
    yield case(small, 3, 100, **trainer, arguments={'label_smoothing_factor': 0.1})
    yield case(small, 2, 100, **trainer, **FULL, **KERNELS)
    for config in ('x-gpt2-odd', 'x-neox', 'x-opt', 'x-qwen3', 'x-falcon', 'x-bigcode'):
        yield case(config, 2, 60, **trainer, **FULL)
    yield case('x-bloom', 2, 64, **trainer, attention='eager')
    yield case('qwen2.5-0.5b', 4, 1024, **trainer, **FULL)
    yield case('llama-3.2-1b', 4, 1024, **trainer, **FULL, **lora(16, ALL, **SCORED), weights='bf16')
    yield from on_ranks(trainer)
    yield case(tied, 2, 100, **trainer, **FULL, weights='bf16', made_on='loaded', sharding='zero2', world=2)


def on_ranks(loop):
    small, tied = 'x-llama-2l', 'x-llama-odd'
    for sharding in ('ddp', 'zero1', 'zero2', 'zero3', 'fsdp'):
        at = {**loop, 'sharding': sharding, 'world': 2}
        yield case(small, 2, 100, **FULL, **at, accumulation=2)
        yield case(tied, 2, 100, **at)
        yield case(tied, 2, 100, **FULL, **at, **lora(8), weights='bf16', use_reentrant=sharding == 'zero3')
    yield case(small, 2, 100, **{**loop, 'sharding': 'ddp', 'world': 3}, **FULL, **lora(8, **SCORED), weights='bf16')
    yield case(tied, 2, 100, **{**loop, 'sharding': 'zero2', 'world': 2}, **lora(8, **SCORED), weights='bf16')


def reward_cases():
    small, tied, loop = 'x-llama-2l', 'x-llama-odd', {'loop': 'trl-reward', 'labels': 1}
    for precision in ('bf16-mixed', 'fp32', 'bf16', 'fp16-mixed'):
        yield case(tied, 2, 64, **loop, precision=precision)
    yield case(small, 3, 300, **loop, **FULL)
    yield case(small, 2, 300, **loop, **FULL, accumulation=3, weights='bf16')
    yield case(tied, 2, 100, **loop, **FULL, padded=True)
    yield case(tied, 2, 100, **loop, **FULL, **lora(8), weights='bf16', padded=True)
    yield case(tied, 2, 100, **loop, **FULL, **lora(8, **SCORED), weights='bf16')
    yield case(small, 2, 100, **loop, **lora(8, ALL, dropout=0.05, modules_to_save=['score']), weights='bf16')
    yield case(small, 2, 100, **loop, **FULL, **lora(8, **SCORED), weights='bf16',
               **quantized('nf4', compute='bf16', double=True))
    yield case(tied, 2, 100, **loop, **FULL, **lora(8), weights='bf16', **quantized('nf4', compute='bf16'))
    yield case(tied, 2, 100, **loop, **lora(8, **SCORED), weights='fp32', **quantized('nf4', compute='bf16'))  # the score in bf16
    for precision in ('bf16-mixed', 'bf16'):
        yield case(tied, 2, 64, **loop, precision=precision, arguments={'center_rewards_coefficient': 0.01})
    yield case(tied, 2, 100, **loop, **FULL, accumulation=2, padded=True, arguments={'center_rewards_coefficient': 0.01})
    yield case(small, 2, 300, **loop, **FULL, use_reentrant=True)
    yield case(small, 2, 300, **loop, **FULL, compute_capability=90, accumulation=2)
    yield case(small, 2, 100, **loop, **FULL, made_on='loaded')
    yield case(tied, 2, 100, **loop, **FULL, **lora(8, **SCORED), made_on='loaded', weights='bf16')
    yield case(small, 3, 200, **loop, evaluation={'batch': 2, 'batches': 3, 'every': 2})
    for config in ('x-gpt2-odd', 'x-qwen3', 'x-opt', 'x-qwen2-window'):
        yield case(config, 2, 60, **loop, **FULL)
    yield case('x-gemma2', 2, 64, **loop, attention='eager')
    yield case('qwen2.5-0.5b', 2, 1024, **loop, **FULL)
    yield case('qwen3-0.6b', 2, 1024, **loop, **FULL, weights='bf16', optimizer='adamw-8bit')
    yield case('llama-3.2-1b', 2, 1024, **loop, **FULL, **lora(16, ALL, **SCORED), weights='bf16')
    yield case(small, 2, 100, **loop, **KERNELS)
    yield from on_ranks(loop)


def main():
    made = {'classifiers': classifier_cases, 'reward': reward_cases}[sys.argv[1]]
    cases = list(made())
    for line in joined(sys.argv[2], cases) if len(sys.argv) > 2 else cases:
        print(json.dumps(line))


if __name__ == '__main__':
    main()
