"""Configs of training jobs: what `explain` says of one, read as a spec, is what the program has that is given it."""
import functools
import json
import os
import subprocess
import tempfile

from suite_exec import UNLIMITED

LLAMA = {'model_type': 'llama', 'architectures': ['LlamaForCausalLM'], 'hidden_size': 256, 'intermediate_size': 688,
         'num_hidden_layers': 3, 'num_attention_heads': 4, 'num_key_value_heads': 2, 'vocab_size': 4096,
         'max_position_embeddings': 2048, 'tie_word_embeddings': False}
GPT2 = {'model_type': 'gpt2', 'architectures': ['GPT2LMHeadModel'], 'n_embd': 128, 'n_layer': 2, 'n_head': 4, 'vocab_size': 5000}
QWEN3 = {'model_type': 'qwen3', 'architectures': ['Qwen3ForCausalLM'], 'hidden_size': 192, 'intermediate_size': 512,
         'num_hidden_layers': 2, 'num_attention_heads': 3, 'num_key_value_heads': 1, 'head_dim': 64, 'vocab_size': 8192}

# Name, needed packages, the model, what the config says, is it quick.
CONFIGS = (
    ('all that is trained, with evaluations', (), LLAMA,
     {'per_device_train_batch_size': 3, 'gradient_accumulation_steps': 2, 'bf16': True, 'max_seq_length': 200,
      'eval_strategy': 'steps', 'eval_steps': 2, 'per_device_eval_batch_size': 7}, True),
    ('checkpointed reentrantly, in 16 bits', (), LLAMA,
     {'per_device_train_batch_size': 5, 'max_seq_length': 256, 'dtype': 'bfloat16', 'optim': 'adamw_torch',
      'gradient_checkpointing': True, 'gradient_checkpointing_kwargs': {'use_reentrant': True}, 'max_grad_norm': 0.5}, False),
    ('smoothed labels and eager attention', (), GPT2,
     {'per_device_train_batch_size': 4, 'max_seq_length': 128, 'label_smoothing_factor': 0.1, 'optim': 'adafactor',
      'attn_implementation': 'eager', 'torch_empty_cache_steps': 2}, False),
    ('LoRA by the names that it is given', ('peft',), QWEN3,
     {'per_device_train_batch_size': 6, 'max_seq_length': 300, 'dtype': 'bfloat16', 'bf16': True, 'use_peft': True,
      'lora_r': 8, 'lora_target_modules': ['q_proj', 'up_proj'], 'gradient_checkpointing': True}, False),
    ('8 bits of states, evaluated in batches', ('bitsandbytes',), GPT2,
     {'per_device_train_batch_size': 2, 'max_seq_length': 96, 'optim': 'adamw_bnb_8bit', 'fp16': True,
      'eval_strategy': 'steps', 'eval_steps': 1, 'eval_on_start': True}, False),
)


def explained(plimsoll, config):
    command = [plimsoll, 'explain', config, '--device', f'sim:A100-SXM4-80GB,placement=ascending,memory={UNLIMITED}',
               '--padding', 'no', '--margin', '0', '--overhead', '0', '--json', '--quiet']  # its rows are all as long
    ended = subprocess.run(command, capture_output=True, text=True)
    return json.loads(ended.stdout) if ended.stdout else {}, ended.stderr


def run_config(exec_, name, needed, model, said):
    title = f'a job of Trainer by its config: {name}'
    lacks = exec_.installation.lacks('torch', 'transformers', 'accelerate', *needed) or \
        exec_.installation.differs(torch='2.11.0')
    if lacks:
        return [(title, '', lacks)]
    with tempfile.TemporaryDirectory() as folder:
        os.mkdir(os.path.join(folder, 'model'))
        config = os.path.join(folder, 'train.json')
        for path, what in ((os.path.join(folder, 'model', 'config.json'), model),
                           (config, dict(said, model_name_or_path=os.path.join(folder, 'model')))):
            with open(path, 'w', encoding='utf-8') as file:
                json.dump(what, file)
        report, problem = explained(exec_.plimsoll, config)
        run = exec_.run(['trainer_job.py', config], memory=UNLIMITED)
    peak = report.get('peak')
    if not peak or not run.lines:
        return [(title, f'{problem}\n{json.dumps(report)[:300]}\n{run.tail()}', '')]
    ours = [max(peak[f'{what}_bytes'], report.get('evaluation', {}).get(f'{what}_bytes', 0)) for what in ('allocated', 'reserved')]
    theirs = [run.lines[-1]['peak_allocated'], run.lines[-1]['peak_reserved']]
    return [(title, '' if ours == theirs else f'allocated and reserved {ours}, the program {theirs}', '')]


def jobs(exec_, options):
    for name, needed, model, said, is_quick in CONFIGS:
        if options.wants(name, is_quick):
            yield functools.partial(run_config, exec_, name, needed, model, said)
