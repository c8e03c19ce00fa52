"""What LLaMA-Factory's stages of preferences and rewards (dpo, rm, kto) allocate, case by case, on plimsoll's virtual GPU.

    export PYTHONPATH=LLAMAFACTORY:OTHERS DISABLE_VERSION_CHECK=1 HF_HUB_OFFLINE=1
    plimsoll exec --device sim:A100-SXM4-80GB,placement=ascending --observe -- \\
        VENV/bin/python make_preferences.py FIGURES ID       adds the case and its figures to FIGURES, as a line of preferences.jsonl
    python make_preferences.py                               the ids

VENV as of make_trl.py (with torchrun for those of several ranks). LLAMAFACTORY: llamafactory 0.9.5 (pip install --no-deps
--target); OTHERS, by the same: trl 0.24.0, omegaconf, antlr4-python3-runtime 4.9.3 and torchaudio. Everything is LLaMA-Factory's own,
as run_dpo(), run_rm() and run_kto() put it together: get_train_args() of a config, load_model(), the collator, create_ref_model()
and the trainer. Rows are numbers already, of which `prompt` are no labels; with `padded` the last one of a batch is a token short.
Of kto the first half of a batch is desirable. `arguments` are keys of its config.
"""
import json
import os
import sys
import tempfile

from named_cases import by_name, merged

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(HERE, '..', 'virtual', 'programs'))
os.environ['HF_DEACTIVATE_ASYNC_LOAD'] = '1'  # else four threads load, and which is first is chance

STEPS = 4
BASE = {'kind': 'lm', 'attention': 'sdpa', 'compute_capability': 80, 'clip': 1.0, 'optimizer': 'adamw-fused', 'precision': 'bf16-mixed',
        'batch': 2, 'seq': 104}
CHECKPOINTED, WHOLE = {'checkpointing': 'full', 'use_reentrant': True}, {'checkpointing': 'none', 'use_reentrant': False}
FULL = {'made_on': 'cast', 'weights': 'fp32'}
LINEARS = ['q_proj', 'k_proj', 'v_proj', 'o_proj', 'gate_proj', 'up_proj', 'down_proj']


def lora(targets=LINEARS, rank=8, **more):
    return {'made_on': 'loaded', 'weights': 'bf16', 'lora': {'r': rank, 'target_modules': targets, **more}}


QUERIES = lora(['q_proj', 'v_proj'])
NF4 = {'made_on': 'gpu', 'quantization': {'type': 'nf4', 'double': True, 'compute': 'bf16', 'storage': 'bf16', 'prepare': False}}
PURE = {'made_on': 'loaded', 'weights': 'bf16', 'precision': 'bf16'}
DDP = {'sharding': 'ddp', 'world': 2}
LORA_DDP = {**DDP, 'ddp': {'find_unused_parameters': False}}  # as LLaMA-Factory has it of adapters


def loss(name):
    return {'arguments': {'pref_loss': name}, **({} if name == 'hinge' else {'preference_loss': name})}


def cases():
    yield 'dpo', 'x-llama-odd', CHECKPOINTED, QUERIES
    yield 'dpo', 'x-llama-odd', CHECKPOINTED, FULL
    yield 'dpo', 'x-llama-odd', CHECKPOINTED, QUERIES, {'padded': True, 'prompt': 40}
    yield 'dpo', 'x-llama-odd', CHECKPOINTED, QUERIES, loss('orpo')
    yield 'dpo', 'x-llama-odd', CHECKPOINTED, FULL, loss('simpo')
    yield 'dpo', 'x-llama-odd', WHOLE, QUERIES, loss('ipo'), {'accumulation': 2}
    yield 'dpo', 'x-llama-odd', CHECKPOINTED, QUERIES, NF4
    yield 'dpo', 'x-llama-odd', WHOLE, FULL
    yield 'dpo', 'x-qwen3', CHECKPOINTED, lora(dropout=0.1), {'batch': 1, 'seq': 256, 'accumulation': 3}, loss('hinge')
    yield 'dpo', 'x-qwen3', WHOLE, lora(), NF4, loss('orpo')
    yield 'dpo', 'x-qwen3', CHECKPOINTED, FULL, {'evaluation': {'batch': 3, 'batches': 2, 'every': 1}}
    yield 'dpo', 'x-gemma2', CHECKPOINTED, lora(), {'attention': 'eager', 'padded': True}
    yield 'dpo', 'x-gpt2-odd', CHECKPOINTED, FULL, loss('ipo'), {'seq': 64}
    yield 'dpo', 'x-gpt2-odd', WHOLE, lora(['c_attn'], dropout=0.2), {'seq': 64, 'evaluation': {'batch': 2, 'batches': 2, 'every': 2}}
    yield 'dpo', 'x-llama-2l', CHECKPOINTED, PURE, {'clip': 0}
    yield 'dpo', 'x-llama-2l', WHOLE, FULL, loss('orpo'), {'padded': True}
    yield 'dpo', 'x-llama-2l', CHECKPOINTED, lora(), {'liger': True, 'batch': 3}
    yield 'rm', 'x-llama-odd', CHECKPOINTED, QUERIES
    yield 'rm', 'x-llama-odd', CHECKPOINTED, FULL
    yield 'rm', 'x-llama-odd', WHOLE, QUERIES, NF4, {'padded': True, 'prompt': 40}
    yield 'rm', 'x-qwen3', CHECKPOINTED, lora(dropout=0.1), {'batch': 1, 'seq': 256, 'accumulation': 3}
    yield 'rm', 'x-qwen3', WHOLE, FULL, {'padded': True}
    yield 'rm', 'x-llama-2l', CHECKPOINTED, FULL, {'accumulation': 2}
    yield 'rm', 'x-llama-2l', CHECKPOINTED, PURE
    yield 'rm', 'x-gpt2-odd', WHOLE, lora(['c_attn'], dropout=0.2), {'seq': 64}
    yield 'rm', 'x-gpt2-odd', CHECKPOINTED, FULL, {'seq': 64}
    yield 'rm', 'x-gemma2', CHECKPOINTED, lora(), {'attention': 'eager'}
    yield 'rm', 'x-llama-2l', CHECKPOINTED, FULL, {'evaluation': {'batch': 3, 'batches': 3, 'every': 1}}
    yield 'rm', 'x-qwen3', WHOLE, lora(), {'evaluation': {'batch': 4, 'batches': 2, 'every': 2}}
    yield 'rm', 'x-qwen3', CHECKPOINTED, lora(rank=4), {'batch': 1, 'evaluation': {'batch': 1, 'batches': 3, 'every': 1}}
    yield 'kto', 'x-llama-odd', CHECKPOINTED, QUERIES
    yield 'kto', 'x-llama-odd', CHECKPOINTED, FULL
    yield 'kto', 'x-llama-odd', WHOLE, QUERIES, NF4, {'padded': True, 'prompt': 40, 'batch': 3}
    yield 'kto', 'x-qwen3', CHECKPOINTED, lora(dropout=0.1), {'batch': 1, 'seq': 256, 'accumulation': 3}
    yield 'kto', 'x-qwen3', WHOLE, FULL, {'padded': True}
    yield 'kto', 'x-llama-2l', CHECKPOINTED, PURE, {'accumulation': 2}
    yield 'kto', 'x-gpt2-odd', WHOLE, lora(['c_attn'], dropout=0.2), {'seq': 64, 'batch': 4, 'evaluation': {'batch': 3, 'batches': 2, 'every': 1}}
    yield 'kto', 'x-gemma2', CHECKPOINTED, lora(), {'attention': 'eager'}
    yield 'kto', 'x-llama-odd', CHECKPOINTED, QUERIES, LORA_DDP
    yield 'rm', 'x-llama-odd', CHECKPOINTED, QUERIES, LORA_DDP
    yield 'dpo', 'x-llama-odd', CHECKPOINTED, QUERIES, LORA_DDP
    yield 'dpo', 'x-qwen3', CHECKPOINTED, FULL, DDP, {'accumulation': 2}
    yield 'dpo', 'x-qwen3', WHOLE, FULL, DDP, loss('simpo')


def all_cases():
    made = []
    for stage, config, *parts in cases():
        case = merged(BASE, {'loop': f'llamafactory-{stage}', 'config': f'configs/{config}.json'}, *parts)
        words = ['llamafactory', stage, config.removeprefix('x-'), 'nf4' if 'quantization' in case else 'lora' if 'lora' in case else 'full',
                 case.get('arguments', {}).get('pref_loss'), case['precision'] == 'bf16' and 'pure', case['checkpointing'] == 'none' and 'whole',
                 *(word for word in ('padded', 'liger', 'evaluation', 'accumulation') if word in case), case.get('sharding')]
        made.append((words, case))
    return by_name(made)


# --- a run -------------------------------------------------------------------------------------------------------------

class Samples:
    """Pairs of rows, or of kto rows beside those that its KL is of"""

    def __init__(self, case, count):
        self.case, self.count = case, count

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        case, sample = self.case, {'images': None, 'videos': None, 'audios': None}
        sample['kto_tags'] = i % case['batch'] < (case['batch'] + 1) // 2
        names = ('', 'kl_') if case['loop'].endswith('kto') else ('chosen_', 'rejected_')
        for name in names:
            is_last = (i + 1) % case['batch'] == 0 and name == names[len(names) - 1 if names[0] else 0]
            length = case['seq'] - int(bool(case.get('padded')) and is_last)
            hidden = case.get('prompt', 0)
            sample |= {f'{name}input_ids': [0] * length, f'{name}attention_mask': [1] * length,
                       f'{name}labels': [-100] * hidden + [0] * (length - hidden)}
        return sample


def tokenizer():
    """One that pads and is asked for nothing else"""
    from tokenizers import Tokenizer, models
    from transformers import PreTrainedTokenizerFast
    return PreTrainedTokenizerFast(tokenizer_object=Tokenizer(models.WordLevel({'<end>': 0}, '<end>')),
                                   eos_token='<end>', pad_token='<end>', unk_token='<end>')


def settings(case, path, folder):
    """The config of the job"""
    adapters, evaluation = case.get('lora'), case.get('evaluation')
    asked = {'stage': case['loop'].removeprefix('llamafactory-'), 'do_train': True, 'model_name_or_path': path, 'dataset': 'none', 'template': 'default',
             'finetuning_type': 'lora' if adapters else 'full', 'output_dir': f'{folder}/output', 'max_steps': STEPS,
             'bf16': case['precision'] == 'bf16-mixed', 'pure_bf16': case['precision'] == 'bf16', 'optim': 'adamw_torch_fused',
             'per_device_train_batch_size': case['batch'], 'gradient_accumulation_steps': case.get('accumulation', 1),
             'max_grad_norm': float(case['clip']), 'disable_gradient_checkpointing': case['checkpointing'] == 'none',
             'flash_attn': {'eager': 'disabled'}.get(case['attention'], case['attention']), 'enable_liger_kernel': case.get('liger', False),
             'report_to': 'none', 'disable_tqdm': True, 'logging_strategy': 'no', 'save_strategy': 'no', **case.get('arguments', {})}
    if adapters:
        asked |= {'lora_rank': adapters['r'], 'lora_target': ','.join(adapters['target_modules']), 'lora_dropout': adapters.get('dropout', 0.0)}
    if 'quantization' in case:
        asked['quantization_bit'] = 4
    if asked['stage'] == 'kto':
        asked['disable_shuffling'] = True
    if evaluation:
        asked |= {'eval_strategy': 'steps', 'eval_steps': evaluation['every'], 'per_device_eval_batch_size': evaluation['batch'], 'val_size': 0.5}
    return asked


def run(case):
    import torch
    import transformers
    from golden import count
    from golden_trainer import Steps, steps_to_wait
    from masks import answer_masks
    from quantized import checkpoint_of
    torch.manual_seed(0)
    if not case.get('padded'):
        answer_masks(False)
    with open(os.path.join(HERE, case['config'])) as file:
        keys = json.load(file)
    config = transformers.AutoConfig.for_model(keys.pop('model_type'), **keys)
    path = checkpoint_of(transformers.AutoModelForCausalLM, config, torch.bfloat16)
    from llamafactory.data.collator import KTODataCollatorWithPadding, PairwiseDataCollatorWithPadding
    from llamafactory.data.template import TEMPLATES
    from llamafactory.hparams import get_train_args
    from llamafactory.model import load_model
    from llamafactory.train import trainer_utils
    from llamafactory.train.dpo.trainer import CustomDPOTrainer
    from llamafactory.train.kto.trainer import CustomKTOTrainer
    from llamafactory.train.rm.metric import ComputeAccuracy
    from llamafactory.train.rm.trainer import PairwiseTrainer
    words, evaluation = tokenizer(), case.get('evaluation')
    trainer_utils.load_tokenizer = lambda _: {'tokenizer': words}
    with tempfile.TemporaryDirectory() as folder:
        model_args, _, arguments, factory, _ = get_train_args(settings(case, path, folder))
        model = load_model(words, model_args, factory, True, add_valuehead=factory.stage == 'rm')
        before = {**count(model), 'parameters_allocated': torch.cuda.memory_allocated()}
        collator = KTODataCollatorWithPadding if factory.stage == 'kto' else PairwiseDataCollatorWithPadding
        collator = collator(template=TEMPLATES['default'], model=model, pad_to_multiple_of=8, label_pad_token_id=-100, tokenizer=words)
        own = {'compute_metrics': ComputeAccuracy()} if factory.stage == 'rm' else {'ref_model': None}
        if factory.stage == 'kto' or factory.use_ref_model:
            own['ref_model'] = trainer_utils.create_ref_model(model_args, factory)
        steps, world = Steps(steps_to_wait(case)), case.get('world', 1)
        made = {'dpo': CustomDPOTrainer, 'rm': PairwiseTrainer, 'kto': CustomKTOTrainer}[factory.stage]
        others = Samples({**case, **evaluation}, evaluation['batch'] * evaluation['batches'] * world) if evaluation else None
        made(model=model, args=arguments, finetuning_args=factory, data_collator=collator, callbacks=[steps], processor=None,
             train_dataset=Samples(case, case['batch'] * case.get('accumulation', 1) * STEPS * world), eval_dataset=others,
             tokenizer=words, **own).train()
        return {**before, 'steps': steps.figures}


if __name__ == '__main__':
    if len(sys.argv) < 3:
        sys.exit('\n'.join(all_cases()))
    chosen = all_cases()[sys.argv[2]]
    made = {**chosen, **run(chosen)}
    if not int(os.environ.get('RANK', 0)):
        with open(sys.argv[1], 'a') as figures:
            figures.write(json.dumps(made) + '\n')
