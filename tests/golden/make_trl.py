"""What TRL's SFTTrainer, DPOTrainer, KTOTrainer and GRPOTrainer allocate, case by case, on plimsoll's virtual GPU: writes the cases, and joins them
with the figures.

    python make_trl.py sft > trl_cases.jsonl               or dpo, kto or grpo, here and below
    plimsoll exec --device sim:GPU,placement=ascending --observe -- VENV/bin/python ../virtual/programs/golden.py \\
        trl_cases.jsonl ID [ID ...]                          one GPU, that of the cases' compute capability
    plimsoll exec --device sim:GPU,placement=ascending --gpus N --observe -- VENV/bin/torchrun --nproc_per_node N \\
        ../virtual/programs/golden.py trl_cases.jsonl ID     several: a line of each rank
    python make_trl.py sft FIGURES > trl.jsonl               FIGURES: those lines; of dpo: dpo.jsonl, ..

VENV: tests/virtual/install.sh's with trl 1.16.0, datasets, liger-kernel 0.8.5 and (zero1 to zero3) deepspeed 0.18.9. The fields are those of
trainer.jsonl; quantised bases are not prepared for training by peft, as SFTTrainer does not do it either. `made_on`: `loaded` is
from_pretrained() with a device_map, of a checkpoint in the type of the weights or in that of `checkpoint`; `cast`: so in
16 bits, and then each weight becomes fp32. DPOTrainer's `batch` counts pairs, of which the first `prompt` tokens of each row
are no answer; its reference is loaded by it, `none` beside adapters, or `precomputed`. With `padded` the last row of a batch is
one token shorter. GRPOTrainer's fields are `prompt`, `generations` (num_generations), `updates` (steps_per_generation
over accumulation), `iterations` (num_iterations), `rewards` (functions), `vllm` (vllm_mode; `none`: use_vllm is not true)
and `vllm_sleeps` (vllm_enable_sleep_mode); `arguments` are GRPOConfig's.
"""
import json
import sys

BASE = {'kind': 'lm', 'attention': 'sdpa', 'compute_capability': 80, 'loop': 'trl-sft', 'clip': 1.0,
        'checkpointing': 'none', 'made_on': 'host', 'optimizer': 'adamw-fused', 'precision': 'bf16-mixed'}
QUERIES = ['q_proj', 'v_proj']
ALL = ['q_proj', 'k_proj', 'v_proj', 'o_proj', 'gate_proj', 'up_proj', 'down_proj']
FULL = {'checkpointing': 'full'}
SMOOTHED = {'arguments': {'label_smoothing_factor': 0.1}}


def lora(rank, targets=QUERIES, **more):
    return {'lora': {'r': rank, 'target_modules': targets, **more}}


def quantized(kind, **more):
    return {'quantization': {'type': kind, 'prepare': False, **more}}


def name_of(case):
    marks = [case.get('preference_loss', case['loop']), case['config'].split('/')[-1][:-5], case['precision'], case['optimizer'],
             case['checkpointing'], case.get('weights'), 'lora' in case and f'lora{case["lora"]["r"]}',
             case.get('lora', {}).get('dora') and 'dora', case.get('prompt') and f'p{case["prompt"]}', case.get('reference'), case.get('vllm'), case.get('vllm_sleeps') and 'sleeps', case.get('updates') and f'u{case["updates"]}', case.get('iterations') and f'i{case["iterations"]}',
             *(map(str, case.get('arguments', {}).values()) if case['loop'] == 'trl-grpo' else ()),
             case.get('padded') and 'padded', case.get('use_reentrant') and 're', case.get('liger') and 'liger',
             case.get('quantization', {}).get('type'), case['attention'] != 'sdpa' and case['attention'],
             'sharding' in case and f'{case["sharding"]}{case["world"]}',
             case['compute_capability'] != 80 and f'cc{case["compute_capability"]}',
             case['made_on'] == 'loaded' and f'loaded-{case.get("checkpoint", "same")}',
             case['made_on'] == 'cast' and 'cast', f'b{case["batch"]}',
             f's{case["seq"]}', f'a{case.get("accumulation", 1)}', 'evaluation' in case and 'eval',
             case.get('evaluation', {}).get('keeps'),
             'label_smoothing_factor' in case.get('arguments', {}) and 'smoothed', 'fsdp_config' in case and 'efficient']
    return '/'.join(str(mark) for mark in marks if mark)


def case(config, batch, seq, **more):
    made = {**BASE, 'config': f'configs/{config}.json', 'batch': batch, 'seq': seq, **more}
    return {'id': name_of(made), **made}


def dpo_cases():
    small, dpo = 'x-llama-odd', {'loop': 'trl-dpo'}
    for precision in ('bf16-mixed', 'fp32', 'bf16', 'fp16-mixed'):
        yield case(small, 2, 64, **dpo, precision=precision)
    yield case(small, 2, 64, **dpo, prompt=16)
    yield case(small, 3, 2048, **dpo, prompt=1000)  # 6,288 labels: more than one tile of rows
    yield case(small, 3, 2048, **dpo, **FULL)
    yield case(small, 2, 300, **dpo, **FULL, accumulation=3, weights='bf16', prompt=100)
    yield case(small, 2, 300, **dpo, **FULL, **lora(8), weights='bf16')
    yield case(small, 2, 300, **dpo, **lora(8, dropout=0.05), prompt=50)
    yield case(small, 2, 300, **dpo, reference='precomputed', prompt=50,
               arguments={'precompute_ref_log_probs': True})
    yield case(small, 2, 100, **dpo, **FULL, padded=True, prompt=20)
    yield case(small, 2, 100, **dpo, **FULL, **lora(8), weights='bf16', padded=True)
    # Threads load the reference beside one another: of x-opt another order of its weights takes 2 MiB more.
    for config in ('x-gpt2-odd', 'x-phi', 'x-qwen2-window'):
        yield case(config, 2, 60, **dpo, **FULL)
    for config in ('x-bloom', 'x-gemma2'):
        yield case(config, 2, 64, **dpo, attention='eager', prompt=9)
    yield case(small, 2, 300, **dpo, **FULL, **lora(8), weights='bf16', **quantized('nf4', compute='bf16', double=True))
    yield case(small, 2, 100, **dpo, **lora(16, dora=True), weights='bf16')
    yield case(small, 2, 300, **dpo, **FULL, use_reentrant=True)
    yield case(small, 2, 300, **dpo, **FULL, use_reentrant=True, **lora(8), weights='bf16')
    yield case(small, 2, 300, **dpo, **FULL, accumulation=2, compute_capability=90)
    yield case('x-llama-2l', 2, 100, **dpo, **FULL, optimizer='sgd')
    yield case('smollm2-135m', 4, 1024, **dpo, **FULL, prompt=512)
    yield case('qwen2.5-0.5b', 2, 1024, **dpo, **FULL, **lora(16), weights='bf16', prompt=512)
    yield case('qwen2.5-0.5b', 2, 1024, **dpo, **FULL, prompt=512, weights='bf16', optimizer='adamw-8bit')
    yield case('llama-3.2-1b', 2, 1024, **dpo, **FULL, **lora(16), weights='bf16', prompt=300)
    yield case('gpt2', 2, 1024, **dpo, **FULL)
    yield case(small, 3, 200, **dpo, evaluation={'batch': 2, 'batches': 3, 'every': 2}, prompt=30)
    yield case(small, 3, 200, **dpo, **lora(8), evaluation={'batch': 8, 'batches': 2, 'every': 2}, prompt=30)
    yield case(small, 2, 100, **dpo, **FULL, made_on='loaded')
    yield case(small, 2, 100, **dpo, **FULL, **lora(8), made_on='loaded', weights='bf16')
    yield case(small, 2, 100, **dpo, **FULL, sharding='ddp', world=2, accumulation=2, prompt=20)
    yield case(small, 2, 100, **dpo, sharding='ddp', world=2)  # find_unused_parameters: outputs are copied
    yield case(small, 2, 100, **dpo, **FULL, **lora(8), weights='bf16', sharding='ddp', world=3)
    yield case(small, 2, 100, **dpo, **lora(8), weights='bf16', sharding='zero1', world=2, prompt=10)
    yield case(small, 2, 100, **dpo, **FULL, **lora(8), weights='bf16', sharding='zero2', world=2, accumulation=2)
    yield case(small, 2, 100, **dpo, **FULL, **lora(8), weights='bf16', sharding='zero3', world=2, use_reentrant=True)
    yield case(small, 2, 100, **dpo, **lora(8), weights='bf16', sharding='fsdp', world=2)
    yield case(small, 2, 100, **dpo, **FULL, **lora(8), weights='bf16', sharding='fsdp', world=2, accumulation=2, prompt=20)
    yield case('x-gpt2-odd', 2, 60, **dpo, **FULL, **lora(8, ['c_attn']), weights='bf16', sharding='fsdp', world=2)
    yield case(small, 2, 100, **dpo, **FULL, **lora(8), weights='bf16', sharding='fsdp', world=3, prompt=20,
               evaluation={'batch': 2, 'batches': 2, 'every': 2})
    for stage in ('zero1', 'zero2'):  # whole models, whose reference DeepSpeed casts, too
        yield case(small, 2, 100, **dpo, **FULL, sharding=stage, world=2)
    yield case(small, 2, 100, **dpo, sharding='zero2', world=2, accumulation=2, prompt=20)
    yield case(small, 3, 200, **dpo, **FULL, sharding='zero2', world=3, padded=True)
    yield case(small, 2, 100, **dpo, **FULL, sharding='zero2', world=2, precision='fp32')
    yield case(small, 2, 100, **dpo, **FULL, sharding='zero1', world=2, precision='fp16-mixed', accumulation=2)
    yield case('x-gpt2-odd', 2, 60, **dpo, **FULL, sharding='zero2', world=2, prompt=10,
               evaluation={'batch': 2, 'batches': 2, 'every': 2})
    # x-gpt2-odd so: 1,200 bytes more at the peak
    yield case(small, 2, 100, **dpo, **FULL, **lora(8), weights='bf16', sharding='zero3', world=2, use_reentrant=True, accumulation=2)
    yield case(small, 2, 100, **dpo, **lora(8), weights='bf16', sharding='zero3', world=2)
    yield case(small, 2, 100, **dpo, **FULL, **lora(8), weights='bf16', sharding='zero3', world=2, use_reentrant=True, prompt=20,
               evaluation={'batch': 2, 'batches': 2, 'every': 2})


def kto_cases():
    """A sample is a row, the first half of a batch is desirable; with each come other rows, of which the KL is estimated."""
    small, kto = 'x-llama-odd', {'loop': 'trl-kto'}
    for precision in ('bf16-mixed', 'fp32', 'bf16', 'fp16-mixed'):
        yield case(small, 2, 64, **kto, precision=precision)
    yield case(small, 3, 64, **kto, prompt=16)
    yield case(small, 4, 2048, **kto, prompt=1000)
    yield case(small, 6, 2048, **kto, **FULL)  # more than one tile of rows
    yield case(small, 4, 300, **kto, **FULL, accumulation=3, weights='bf16', prompt=100)
    yield case(small, 4, 300, **kto, **FULL, **lora(8), weights='bf16')
    yield case(small, 5, 300, **kto, **lora(8, dropout=0.05), prompt=50)
    yield case(small, 4, 300, **kto, reference='precomputed', prompt=50, arguments={'precompute_ref_log_probs': True})
    yield case(small, 4, 300, **kto, **FULL, reference='precomputed', **lora(8), arguments={'precompute_ref_log_probs': True})
    yield case(small, 4, 100, **kto, **FULL, padded=True, prompt=20)
    yield case(small, 3, 100, **kto, **FULL, **lora(8), weights='bf16', padded=True)
    for config in ('x-gpt2-odd', 'x-phi', 'x-qwen2-window'):
        yield case(config, 4, 60, **kto, **FULL)
    for config in ('x-bloom', 'x-gemma2'):
        yield case(config, 4, 64, **kto, attention='eager', prompt=9)
    yield case(small, 4, 300, **kto, **FULL, **lora(8), weights='bf16', **quantized('nf4', compute='bf16', double=True))
    yield case(small, 4, 100, **kto, **lora(8), weights='bf16', **quantized('nf4', compute='bf16', double=True), padded=True)
    yield case(small, 4, 100, **kto, **lora(16, dora=True), weights='bf16')
    yield case(small, 4, 300, **kto, **FULL, use_reentrant=True)
    yield case(small, 4, 300, **kto, **FULL, use_reentrant=True, **lora(8), weights='bf16')
    yield case(small, 4, 300, **kto, **FULL, accumulation=2, compute_capability=90)
    yield case('x-llama-2l', 4, 100, **kto, **FULL, optimizer='sgd')
    yield case('x-qwen3', 4, 100, **kto, **FULL, prompt=40, padded=True)
    yield case('smollm2-135m', 8, 1024, **kto, **FULL, prompt=512)
    yield case('qwen2.5-0.5b', 4, 1024, **kto, **FULL, **lora(16), weights='bf16', prompt=512)
    yield case('qwen2.5-0.5b', 4, 1024, **kto, **FULL, prompt=512, weights='bf16', optimizer='adamw-8bit')
    yield case(small, 3, 200, **kto, evaluation={'batch': 2, 'batches': 3, 'every': 2}, prompt=30)
    yield case(small, 3, 200, **kto, **lora(8), evaluation={'batch': 8, 'batches': 2, 'every': 2}, prompt=30)
    yield case(small, 4, 100, **kto, **FULL, made_on='loaded')
    yield case(small, 4, 100, **kto, **FULL, **lora(8), made_on='loaded', weights='bf16')
    yield case(small, 4, 100, **kto, **FULL, sharding='ddp', world=2, accumulation=2, prompt=20)
    yield case(small, 4, 100, **kto, sharding='ddp', world=2)  # find_unused_parameters: outputs are copied
    yield case(small, 4, 100, **kto, **FULL, **lora(8), weights='bf16', sharding='ddp', world=3, padded=True)
    yield case('x-gpt2-odd', 4, 60, **kto, **FULL, sharding='ddp', world=2)


def orpo_cases():
    """ORPOTrainer, CPOTrainer, and SimPO, which is CPOTrainer's loss_type."""
    small, orpo, cpo = 'x-llama-odd', {'loop': 'trl-orpo'}, {'loop': 'trl-cpo'}
    simpo = {**cpo, 'preference_loss': 'simpo'}
    for loop in (orpo, cpo, simpo):
        yield case(small, 2, 64, **loop, prompt=16)
        yield case(small, 2, 300, **loop, **FULL, prompt=20)
        yield case(small, 3, 300, **loop, **FULL, **lora(8), weights='bf16', padded=True, prompt=9)
        yield case('x-qwen3', 2, 100, **loop, **FULL, accumulation=3)
        yield case(small, 2, 100, **loop, **FULL, **lora(8), weights='bf16', sharding='ddp', world=2, prompt=20)
    for loop in (orpo, cpo):
        yield case(small, 2, 64, **loop, precision='fp32', prompt=5)
        yield case(small, 2, 64, **loop, weights='bf16', prompt=5)
        yield case(small, 3, 2048, **loop, **FULL, prompt=1000)
        yield case(small, 1, 300, **loop, **lora(8, dropout=0.05), prompt=50)
        yield case(small, 2, 300, **loop, **FULL, use_reentrant=True, prompt=3)
        yield case(small, 3, 200, **loop, evaluation={'batch': 2, 'batches': 3, 'every': 2}, prompt=30)
        yield case(small, 2, 100, **loop, **FULL, sharding='ddp', world=2, accumulation=2, prompt=20)
        yield case(small, 2, 100, **loop, sharding='ddp', world=2)
        for config in ('x-gpt2-odd', 'x-phi'):
            yield case(config, 2, 60, **loop, **FULL)
        yield case('qwen2.5-0.5b', 2, 512, **loop, **FULL, **lora(16), weights='bf16', prompt=128)


def beta(value=0.04, **more):
    return {'arguments': {'beta': value, **more}}


def grpo_cases():
    """Answers come from a stand-in of a vLLM server (golden_grpo.py)."""
    small, grpo = 'x-llama-odd', {'loop': 'trl-grpo', 'prompt': 16}
    for precision in ('bf16-mixed', 'fp32', 'bf16', 'fp16-mixed'):
        yield case(small, 4, 64, **grpo, precision=precision)
    yield case(small, 4, 2048, **{**grpo, 'prompt': 500})  # 6,192 labels: more than one tile of rows
    yield case(small, 4, 2048, **grpo, **FULL)
    yield case(small, 2, 300, **grpo, **FULL, accumulation=3, weights='bf16')
    yield case(small, 2, 300, **grpo, **FULL, accumulation=2, updates=2)
    yield case(small, 2, 300, **grpo, accumulation=2, updates=2, iterations=2, generations=4)
    yield case(small, 4, 300, **grpo, **FULL, **beta())
    yield case(small, 4, 300, **{**grpo, 'prompt': 200}, **FULL, **beta(), accumulation=2, weights='bf16')
    yield case(small, 4, 100, **grpo, **FULL, padded=True)
    yield case(small, 16, 2048, **grpo, **FULL, rewards=3)
    for loss in ('grpo', 'bnpo', 'dr_grpo'):
        yield case(small, 4, 300, **grpo, arguments={'loss_type': loss}, accumulation=2)
    for mode in ('sequence_truncate', 'token_mask', 'token_truncate'):
        yield case(small, 4, 300, **grpo, arguments={'vllm_importance_sampling_mode': mode})
    uncorrected = {'vllm_importance_sampling_correction': False}
    yield case(small, 4, 300, **grpo, arguments=uncorrected)
    yield case(small, 4, 300, **grpo, arguments=uncorrected, updates=2)
    for config in ('x-gpt2-odd', 'x-phi', 'x-qwen2-window', 'x-opt', 'x-qwen3'):
        yield case(config, 2, 60, **grpo, **FULL)
    for config in ('x-bloom', 'x-gemma2'):
        yield case(config, 2, 64, **grpo, attention='eager')
    yield case('x-llama-2l', 2, 100, **grpo, **FULL, optimizer='sgd')
    yield case(small, 2, 300, **grpo, **FULL, compute_capability=90, accumulation=2)
    yield case(small, 4, 100, **grpo, **FULL, made_on='loaded')
    yield case(small, 4, 100, **grpo, **FULL, made_on='loaded', **beta())
    yield case(small, 2, 300, **grpo, **FULL, **lora(8), weights='bf16')
    yield case(small, 2, 300, **grpo, **lora(8, ALL, dropout=0.05), **beta())
    yield case(small, 2, 300, **grpo, **FULL, **lora(8), weights='bf16', made_on='loaded', accumulation=2, **beta())
    yield case('x-gpt2-odd', 2, 60, **grpo, **FULL, **lora(8, ['c_attn']), weights='bf16')
    yield case(small, 2, 300, **grpo, **FULL, **lora(8), weights='bf16', use_reentrant=True)
    yield case('smollm2-135m', 8, 768, **{**grpo, 'prompt': 256}, **FULL)
    yield case('qwen2.5-0.5b', 4, 768, **{**grpo, 'prompt': 256}, **FULL)  # in two chunks
    yield case('qwen2.5-0.5b', 4, 768, **{**grpo, 'prompt': 256}, **FULL, weights='bf16', optimizer='adamw-8bit', **beta())
    yield case('llama-3.2-1b', 4, 768, **{**grpo, 'prompt': 256}, **FULL, weights='bf16', accumulation=2)
    yield case('llama-3.2-1b', 4, 768, **{**grpo, 'prompt': 256}, **FULL, **lora(16, ALL), weights='bf16', **beta())
    at = {'sharding': 'ddp', 'world': 2}
    yield case(small, 2, 100, **grpo, **FULL, **at)
    yield case(small, 2, 100, **grpo, **at, **beta(), accumulation=2)  # find_unused_parameters: outputs are copied
    yield case(small, 2, 100, **grpo, **FULL, **lora(8), weights='bf16', **at)
    yield case('x-qwen3', 2, 100, **grpo, **FULL, **{**at, 'world': 3}, accumulation=2, updates=2, generations=3)
    at = {'sharding': 'zero2', 'world': 2}
    yield case(small, 2, 100, **grpo, **FULL, **at, accumulation=2)
    yield case(small, 2, 100, **grpo, **FULL, **{**at, 'sharding': 'zero1'}, **beta())
    yield case(small, 2, 100, **grpo, **FULL, **lora(8), weights='bf16', **at)
    yield from colocated_cases(small, {**grpo, 'vllm': 'colocate'})
    yield from generated_cases(small, {**grpo, 'vllm': 'none'})


def generated_cases(small, grpo):
    """The model that is trained generates its answers itself: of many micro-steps at once, or where adapters alone are
    trained, a generation has the peak."""
    many = {'accumulation': 48}
    for precision in ('bf16-mixed', 'fp32', 'bf16', 'fp16-mixed'):
        yield case(small, 8, 40, **grpo, **many, precision=precision)
    yield case(small, 4, 64, **grpo)
    yield case(small, 2, 300, **grpo, **FULL, accumulation=8, weights='bf16')
    yield case(small, 1, 400, **{**grpo, 'prompt': 350}, **FULL, accumulation=64)
    yield case(small, 4, 100, **{**grpo, 'prompt': 70}, **FULL, padded=True)
    yield case(small, 8, 40, **grpo, **FULL, **beta(), **many)
    yield case(small, 8, 40, **grpo, **many, arguments={'temperature': 0.7})
    yield case(small, 8, 40, **grpo, **FULL, accumulation=16, updates=2)
    yield case(small, 8, 40, **grpo, accumulation=16, updates=2, iterations=2, generations=4)
    yield case(small, 1, 560, **grpo, **FULL, accumulation=2, precision='bf16')  # keys are read in several parts
    for config in ('x-gpt2-odd', 'x-phi', 'x-qwen2-window', 'x-qwen3', 'x-neox', 'x-stablelm', 'x-mistral-window'):
        yield case(config, 8, 40, **grpo, **FULL, **many)
    for config in ('x-gemma2', 'x-gemma3'):
        yield case(config, 8, 40, **grpo, attention='eager', **many)
        yield case(config, 8, 40, **grpo, **many, weights='bf16')
    for config in ('x-phi3', 'x-olmo2', 'x-cohere2', 'x-glm4', 'x-exaone4', 'x-hunyuan', 'x-smollm3', 'x-starcoder2', 'x-nemotron',
                   'x-ernie4-5', 'x-ministral3'):
        yield case(config, 16, 24, **grpo, **FULL, accumulation=8)
    yield case(small, 16, 24, **grpo, **FULL, accumulation=8, liger=True)
    yield case('x-qwen2-window', 8, 90, **{**grpo, 'prompt': 50}, **FULL, **lora(8), weights='bf16', padded=True)
    yield case('x-gemma2', 4, 64, **{**grpo, 'prompt': 40}, **FULL, attention='eager', padded=True)
    yield case(small, 8, 40, **grpo, **FULL, compute_capability=90, **many)
    yield case(small, 8, 40, **grpo, **FULL, compute_capability=75, **many, precision='fp16-mixed')
    yield case(small, 8, 40, **grpo, **FULL, made_on='loaded', **many)
    yield case(small, 8, 40, **grpo, **FULL, **lora(8), weights='bf16', **many)
    yield case(small, 8, 40, **grpo, **lora(8, ALL, dropout=0.05), **beta(), **many)
    yield case(small, 8, 40, **grpo, **FULL, **lora(8), weights='bf16', made_on='loaded', **many, **beta())
    yield case('x-gpt2-odd', 8, 40, **grpo, **FULL, **lora(8, ['c_attn']), weights='bf16', **many)
    yield case('qwen2.5-0.5b', 8, 88, **{**grpo, 'prompt': 64}, **FULL, weights='bf16', accumulation=16)
    yield case('llama-3.2-1b', 8, 88, **{**grpo, 'prompt': 64}, **FULL, **lora(16, ALL), weights='bf16', accumulation=16, **beta())
    codes = quantized('nf4', compute='bf16', double=True)
    yield case(small, 8, 40, **grpo, **FULL, **lora(8), weights='bf16', **codes, **many)
    yield case(small, 8, 40, **grpo, **lora(8, ALL), weights='bf16', **codes, **many, **beta())
    yield case(small, 8, 40, **grpo, **FULL, **lora(8), **quantized('nf4', compute='fp32'), **many)
    yield case(small, 8, 40, **grpo, **FULL, **lora(16, dora=True), weights='bf16', **many)
    yield case('qwen2.5-0.5b', 4, 88, **{**grpo, 'prompt': 64}, **FULL, **lora(16, ALL), weights='bf16', **codes, accumulation=16)
    for config in ('x-qwen3-moe', 'x-mixtral', 'x-qwen2-moe', 'x-olmoe'):  # of each row's experts weights are copied
        yield case(config, 8, 28, **grpo, accumulation=16)
    yield case('x-gpt-oss-odd', 8, 28, **grpo, **FULL, attention='eager', accumulation=16)
    yield case('x-qwen3-moe-odd', 8, 28, **grpo, **FULL, **lora(8), weights='bf16', accumulation=16, **beta())
    at = {'sharding': 'ddp', 'world': 2}
    yield case('x-qwen3-moe', 8, 28, **grpo, **FULL, **at, accumulation=16)
    yield case(small, 8, 40, **grpo, **FULL, **at, **many)
    yield case(small, 8, 40, **grpo, **FULL, **lora(8), weights='bf16', **at, **many)
    at = {'sharding': 'zero2', 'world': 2}
    yield case(small, 8, 40, **grpo, **FULL, **at, **many)
    yield case(small, 8, 40, **grpo, **FULL, **lora(8), weights='bf16', **at, **many)


def colocated_cases(small, grpo):
    """vLLM's engine is in the process, awake or asleep while others compute."""
    for how in (grpo, {**grpo, 'vllm_sleeps': True}):
        yield case(small, 4, 64, **how)
        yield case(small, 2, 300, **how, **FULL, accumulation=2, updates=2, iterations=2, generations=4)
        yield case(small, 4, 300, **how, **FULL, **beta(), weights='bf16')
        yield case(small, 2, 300, **how, **lora(8, ALL), weights='bf16', **beta())
        yield case('x-gpt2-odd', 2, 60, **how, **FULL, **lora(8, ['c_attn']), weights='bf16', made_on='loaded')
        yield case('qwen2.5-0.5b', 4, 768, **{**how, 'prompt': 256}, **FULL)
        yield case('qwen2.5-0.5b', 2, 24, **how, **FULL, **lora(8, ALL), weights='bf16')  # adapters are merged at the peak
        yield case(small, 2, 100, **how, **FULL, sharding='ddp', world=2, accumulation=2)
        yield case(small, 2, 100, **how, **lora(8), weights='bf16', sharding='zero2', world=2)


def sft_cases():
    small = 'x-llama-odd'
    for precision in ('bf16-mixed', 'fp32', 'bf16', 'fp16-mixed'):
        yield case(small, 2, 64, precision=precision)
    yield case(small, 3, 200, padded=True)
    yield case(small, 2, 100, **FULL, **lora(8), weights='bf16', padded=True)
    yield case(small, 3, 2048)  # 6,141 labels: more than one tile of rows, and a mask of more than one block of CUB's
    yield case(small, 3, 2048, **FULL)
    yield case(small, 2, 300, **FULL, accumulation=3, weights='bf16')
    yield case(small, 2, 300, **FULL, **lora(8), weights='bf16')
    yield case(small, 2, 300, **FULL, **lora(8))
    yield case('x-gpt2-odd', 2, 60, **FULL)
    yield case('x-phi', 2, 64)  # a bias in the head
    yield case('x-opt', 2, 64)
    yield case('x-bloom', 2, 64, attention='eager')
    yield case('x-gemma2', 2, 64, attention='eager')
    yield case('x-qwen2-window', 2, 128, **FULL)
    yield case(small, 2, 300, **FULL, **lora(8), weights='bf16', **quantized('nf4', compute='bf16', double=True))
    yield case(small, 2, 100, **FULL, **lora(16, ALL, dropout=0.05), **quantized('nf4', compute='fp32'))
    yield case(small, 2, 100, **lora(16, dora=True), weights='bf16')
    yield case(small, 2, 300, **FULL, use_reentrant=True)
    yield case(small, 2, 300, **FULL, use_reentrant=True, **lora(8), weights='bf16')
    yield case(small, 2, 300, **FULL, accumulation=2, compute_capability=90)
    yield case('x-qwen2-window', 4, 600, **FULL, compute_capability=86)
    yield case('x-llama-2l', 2, 100, **FULL, liger=True)  # all of it but the loss
    yield case('smollm2-135m', 4, 1024, **FULL)
    yield case('qwen2.5-0.5b', 4, 1024, **FULL, **lora(16, dropout=0.05), weights='bf16')
    yield case('qwen2.5-0.5b', 6, 1024, **FULL)  # five parts of the vocabulary
    yield case('qwen3-0.6b', 4, 1024, **FULL, weights='bf16')
    yield case('llama-3.2-1b', 4, 2048, **FULL, **lora(16, dropout=0.05), weights='bf16')
    yield case('gpt2', 4, 1024, **FULL)
    yield case(small, 3, 200, evaluation={'batch': 2, 'batches': 3, 'every': 2})
    yield case(small, 2, 100, **FULL, made_on='loaded')
    yield case(small, 2, 100, **FULL, made_on='loaded', checkpoint='bf16')
    yield case('smollm2-135m', 4, 1024, **FULL, made_on='loaded', checkpoint='bf16')
    yield case(small, 2, 100, **FULL, **lora(8), weights='bf16', made_on='loaded', loop='trainer')
    yield case(small, 2, 100, **FULL, sharding='ddp', world=2, accumulation=2)
    yield case(small, 2, 100, sharding='ddp', world=2)  # find_unused_parameters: outputs are copied
    yield case(small, 2, 100, **FULL, **lora(8), weights='bf16', sharding='ddp', world=3)
    yield case(small, 2, 100, **FULL, sharding='zero1', world=2)
    yield case(small, 2, 100, **FULL, sharding='zero2', world=2, accumulation=2)
    for sharding in ('fsdp', 'zero3'):
        yield from sharded(sharding)
    yield from of_experts()
    yield from taken_by_deepspeed()
    yield from sent_by_the_first()
    yield from measured()
    yield from quantized_on_ranks()
    yield case(small, 2, 100, **lora(16, dora=True), weights='bf16', **quantized('nf4', compute='bf16'))  # of two types
    yield case(small, 2, 100, **SMOOTHED)
    yield case(small, 2, 100, **FULL, **SMOOTHED, accumulation=2)
    yield case(small, 2, 100, **SMOOTHED, sharding='ddp', world=2)
    for sharding in ('ddp', 'zero2', 'fsdp', 'zero3'):
        yield case(small, 2, 100, **FULL, **SMOOTHED, sharding=sharding, world=2, accumulation=2)
    yield case('x-gpt2-odd', 2, 60, **SMOOTHED, precision='fp32', evaluation={'batch': 2, 'batches': 3, 'every': 2})


def sharded(sharding):
    """By FSDP2, whose head is whole (in one unit with the norm behind the blocks, or with a tied embedding) or gathered
    (with adapters), and by ZeRO 3, with which SFTTrainer has adapters checkpointed reentrantly."""
    small, at = 'x-llama-odd', {'sharding': sharding, 'world': 2}
    adapted = {**FULL, **lora(8), 'weights': 'bf16', 'use_reentrant': sharding == 'zero3'}
    yield case(small, 2, 100, **FULL, **at)
    yield case(small, 2, 100, **FULL, **at, accumulation=2)
    yield case(small, 2, 100, **{**at, 'world': 3}, precision='fp32')
    yield case(small, 2, 100, **adapted, **at)
    yield case(small, 2, 100, **adapted, **{**at, 'world': 3}, accumulation=3)
    yield case('x-gpt2-odd', 2, 60, **at)
    yield case('x-opt', 2, 64, **at)
    yield case('x-phi', 2, 64, **{**at, 'world': 3})
    yield case('x-llama-2l', 2, 100, **FULL, **at)
    yield case('x-gemma3-small', 2, 64, **at, accumulation=2)
    yield case('x-gemma3-small', 2, 64, **at, **lora(8), weights='bf16')
    yield case(small, 2, 100, **FULL, **at, evaluation={'batch': 2, 'batches': 3, 'every': 2})
    yield case('qwen2.5-0.5b', 4, 1024, **FULL, **at)
    yield case('llama-3.2-1b', 4, 1024, **{**adapted, **lora(16)}, **{**at, 'world': 4})
    yield case('x-qwen3', 2, 64, **at, precision='fp16-mixed')


def taken_by_deepspeed():
    """Of Trainer: loaded onto the GPU, as LLaMA-Factory and axolotl do it, and then in ZeRO's flat tensors"""
    small, zero1, zero2 = 'x-llama-odd', {'sharding': 'zero1', 'world': 2}, {'sharding': 'zero2', 'world': 2}
    loaded, cast = {'loop': 'trainer', 'made_on': 'loaded'}, {'loop': 'trainer', 'made_on': 'cast', 'weights': 'fp32'}
    yield case(small, 2, 100, **FULL, **loaded, **zero1)
    yield case(small, 2, 100, **FULL, **loaded, **zero2, **lora(8), weights='bf16')
    yield case(small, 2, 100, **cast, **zero2, accumulation=2)
    yield case('smollm2-135m', 4, 512, **FULL, **loaded, **zero2, weights='bf16')
    yield case('x-gpt2-odd', 2, 60, **loaded, **zero1)
    yield case('x-gemma3-small', 2, 64, **cast, **zero2)


def sent_by_the_first():
    """Of ranks of which the first alone has the weights (accelerate's cpu_ram_efficient_loading): most are Trainer's."""
    at = {'sharding': 'fsdp', 'world': 3, 'fsdp_config': {'cpu_ram_efficient_loading': True}}
    yield case('x-llama-odd', 2, 100, **FULL, **{**at, 'world': 2}, loop='trainer')
    yield case('x-gpt2-odd', 2, 60, **{**at, 'world': 2}, loop='trainer')
    yield case('x-gemma3-small', 2, 64, **at, loop='trainer')
    yield case('x-llama-odd', 2, 100, **FULL, **at, **lora(8), weights='bf16')
    yield case('x-qwen3-moe-odd', 2, 64, **at, loop='trainer', weights='bf16')


def quantized_on_ranks():
    """A base in 4 bits, beside which SFTTrainer has adapters in bf16"""
    adapted, codes = {**FULL, **lora(8), 'weights': 'bf16', 'world': 2}, {'compute': 'bf16', 'storage': 'bf16'}
    yield case('x-llama-odd', 2, 100, **adapted, **quantized('nf4', **codes), sharding='fsdp')
    yield case('x-llama-odd', 2, 100, **adapted, **quantized('nf4', compute='bf16', double=True), sharding='ddp')
    yield case('x-llama-odd', 2, 100, **adapted, **quantized('nf4', compute='bf16', double=True), sharding='zero2')
    yield case('x-llama-odd', 2, 100, **adapted, **quantized('nf4', **codes), sharding='zero3', use_reentrant=True)


def measured():
    """Evaluations of a program with a compute_metrics(), which needs the logits"""
    kept = {'batch': 2, 'batches': 3, 'every': 2, 'keeps': 'logits'}
    yield case('x-llama-odd', 3, 200, evaluation=kept)
    yield case('x-llama-odd', 2, 100, **FULL, evaluation={**kept, 'keeps': 'argmax', 'accumulation': 1})
    for sharding in ('ddp', 'fsdp', 'zero3'):
        yield case('x-llama-odd', 2, 100, **FULL, sharding=sharding, world=2, evaluation=kept)


def of_experts():
    """With the loss that balances them (router_aux_loss_coef of their configurations)"""
    yield case('x-mixtral', 2, 64)
    yield case('x-mixtral', 2, 300, **FULL, accumulation=2)
    yield case('x-mixtral', 2, 64, evaluation={'batch': 2, 'batches': 3, 'every': 2})
    yield case('x-mixtral', 2, 64, precision='fp16-mixed')
    yield case('x-mixtral', 2, 100, sharding='zero3', world=2, **FULL)
    yield case('x-qwen2-moe', 2, 64, precision='fp32')
    yield case('x-qwen2-moe', 2, 64, precision='bf16')
    yield case('x-qwen2-moe', 2, 100, sharding='zero2', world=2)
    yield case('x-qwen3-moe', 3, 200, **FULL, weights='bf16')
    yield case('x-qwen3-moe', 2, 100, **FULL, use_reentrant=True)
    yield case('x-qwen3-moe', 2, 100, sharding='ddp', world=2)
    yield case('x-qwen3-moe', 2, 100, sharding='fsdp', world=2, **FULL)
    yield case('x-qwen3-moe', 2, 100, sharding='zero3', world=2, accumulation=2)
    yield case('x-qwen3-moe-odd', 2, 64, **lora(8), weights='bf16')
    yield case('x-qwen3-moe-odd', 2, 100, sharding='fsdp', world=3, accumulation=2)
    adapted = {**FULL, **lora(8), 'weights': 'bf16', 'world': 2}
    yield case('x-qwen3-moe-odd', 2, 100, **adapted, sharding='fsdp')
    yield case('x-qwen3-moe-odd', 2, 100, **adapted, sharding='zero3', use_reentrant=True)
    yield case('qwen3-moe-small', 4, 1024, **FULL)


def joined(path, made, every_rank=False):
    """Of several ranks the first, and those that hold something else, or each. `made`: the cases."""
    made = list(made)
    known, seen = {case['id']: case for case in made}, {}
    assert len(known) == len(made)
    with open(path) as file:
        for line in map(json.loads, file):
            seen.setdefault(line['id'], {})[line.get('rank', 0)] = line
    for ident, ranks in seen.items():
        first = None
        for rank in sorted(ranks):
            figures = {key: value for key, value in ranks[rank].items() if key != 'id'}
            told = [figures['parameters_allocated'], figures['steps']]
            if rank and told == first and not every_rank:
                continue
            first = first or told
            yield {**known[ident], **figures, 'id': ident + (f'/r{rank}' if rank else '')}


if __name__ == '__main__':
    asked = {'sft': sft_cases, 'dpo': dpo_cases, 'kto': kto_cases, 'orpo': orpo_cases, 'grpo': grpo_cases}[sys.argv[1]]()
    for made in joined(sys.argv[2], asked) if len(sys.argv) > 2 else asked:
        print(json.dumps(made))
