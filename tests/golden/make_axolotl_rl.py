"""What axolotl's trainers of rewards and preferences allocate, case by case, on plimsoll's virtual GPU.

    export PYTHONPATH=AXOLOTL:OTHERS HF_HUB_OFFLINE=1
    plimsoll exec --device sim:A100-SXM4-80GB,placement=ascending --observe -- \\
        VENV/bin/python make_axolotl_rl.py FIGURES ID        adds the case and its figures to FIGURES, as a line of axolotl_rl.jsonl
    python make_axolotl_rl.py                                the ids

VENV as of make_trl.py. AXOLOTL: the unpacked wheel of 0.19.0; OTHERS (pip install --no-deps --target): trl 1.9.0, which it asks for,
addict, colorama, numba, llvmlite, posthog and distro. The model is loaded onto the GPU and cast as its loader does it
(golden.py's load_model()), and its own trainer runs the steps: AxolotlRewardTrainer, or AxolotlDPOTrainer, whose pairs begin with one token that is no label.
`preference_loss` is its `rl: ipo`.
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
BASE = {'attention': 'sdpa', 'compute_capability': 80, 'clip': 1.0, 'optimizer': 'adamw-fused', 'precision': 'bf16-mixed',
        'weights': 'bf16', 'made_on': 'loaded', 'batch': 2, 'seq': 104}
CHECKPOINTED, WHOLE = {'checkpointing': 'full'}, {'checkpointing': 'none'}
REENTERS = {**CHECKPOINTED, 'use_reentrant': True}
KEPT, UNDONE = {'upcast': 'kept'}, {'upcast': 'undone'}
REWARD = {'kind': 'classify', 'labels': 1, 'loop': 'trl-reward'}
DPO = {'kind': 'lm', 'loop': 'axolotl-dpo'}
IPO = {'preference_loss': 'ipo'}
NF4 = {'quantization': {'type': 'nf4', 'double': True, 'compute': 'bf16', 'storage': 'bf16'}}
LINEARS = ['q_proj', 'k_proj', 'v_proj', 'o_proj', 'gate_proj', 'up_proj', 'down_proj']


def lora(targets, rank=8, **more):
    return {'lora': {'r': rank, 'target_modules': targets, **more}}


def cases():
    yield 'reward', 'x-llama-odd', REWARD, KEPT, CHECKPOINTED
    yield 'reward', 'x-qwen3', REWARD, KEPT, WHOLE, {'arguments': {'center_rewards_coefficient': 0.01}, 'accumulation': 3}
    yield 'reward', 'x-gemma2', REWARD, KEPT, REENTERS, {'attention': 'eager', 'padded': True}
    yield 'reward', 'x-qwen3', REWARD, UNDONE, REENTERS, {'optimizer': 'adamw-8bit', 'padded': True}
    yield 'dpo', 'x-llama-odd', DPO, UNDONE, REENTERS, lora(['q_proj', 'v_proj'])
    yield 'dpo', 'x-llama-odd', DPO, KEPT, WHOLE
    yield 'dpo', 'x-llama-odd', DPO, UNDONE, REENTERS, lora(['q_proj', 'v_proj'], dropout=0.1), NF4
    yield 'dpo', 'x-qwen3', DPO, UNDONE, CHECKPOINTED, lora(LINEARS, 16), {'padded': True, 'accumulation': 2, 'batch': 3}
    yield 'dpo', 'x-qwen3', DPO, KEPT, REENTERS, {'padded': True, 'batch': 1, 'seq': 256, 'evaluation': {'batch': 2, 'batches': 2, 'every': 1}}
    yield 'dpo', 'x-gemma2', DPO, UNDONE, REENTERS, lora(['q_proj', 'v_proj']), {'attention': 'eager'}
    yield 'ipo', 'x-llama-odd', DPO, IPO, UNDONE, REENTERS, lora(['q_proj', 'v_proj']), {'padded': True}


def all_cases():
    made = []
    for stage, config, *parts in cases():
        case = merged(BASE, {'config': f'configs/{config}.json'}, *parts)
        words = ['axolotl', stage, config.removeprefix('x-'), 'nf4' if 'quantization' in case else 'lora' if 'lora' in case else 'full', case['upcast'],
                 *(word for word in ('padded', 'accumulation', 'evaluation') if word in case), case.get('sharding')]
        made.append((words, case))
    return by_name(made)


# --- a run -------------------------------------------------------------------------------------------------------------

def pairs_of(case, count):
    """Two rows, of which with `padded` the last one of a batch is a token shorter"""
    from datasets import Dataset
    row, made = [0] * case['seq'], []
    for i in range(count):
        other = row[int(bool(case.get('padded')) and (i + 1) % case['batch'] == 0):]
        made.append({'chosen_ids': row, 'rejected_ids': other} if case['loop'] == 'trl-reward' else
                    {'prompt_ids': row[:1], 'chosen_ids': row[1:], 'rejected_ids': other[1:]})
    return Dataset.from_list(made)


def tokenizer():
    """One that is asked for nothing but its tokens of padding and of ends"""
    from tokenizers import Tokenizer, models
    from transformers import PreTrainedTokenizerFast
    return PreTrainedTokenizerFast(tokenizer_object=Tokenizer(models.WordLevel({'<end>': 0}, '<end>')),
                                   eos_token='<end>', pad_token='<end>', unk_token='<end>')


def run(case):
    import torch
    from golden import count, lora_of, make_model
    from golden_trainer import OPTIMIZERS, Steps, steps_to_wait
    torch.manual_seed(0)
    from axolotl.core.training_args import AxolotlRewardConfig
    from axolotl.core.trainers.dpo.args import AxolotlDPOConfig
    from axolotl.core.trainers.dpo.trainer import AxolotlDPOTrainer
    from axolotl.core.trainers.trl import AxolotlRewardTrainer

    class Numbers(AxolotlDPOTrainer):
        """Pairs are numbers already."""

        def _prepare_dataset(self, dataset, *_):
            return dataset

    is_dpo, world, evaluation = case['loop'] == 'axolotl-dpo', case.get('world', 1), case.get('evaluation')
    asked = {'loss_type': ['ipo']} if 'preference_loss' in case else {}
    if evaluation:
        asked |= {'eval_strategy': 'steps', 'eval_steps': evaluation['every'], 'per_device_eval_batch_size': evaluation['batch']}
    with tempfile.TemporaryDirectory() as folder:
        arguments = (AxolotlDPOConfig if is_dpo else AxolotlRewardConfig)(
            output_dir=folder, max_steps=STEPS, bf16=True, optim=OPTIMIZERS[case['optimizer']], max_length=None,
            per_device_train_batch_size=case['batch'], gradient_accumulation_steps=case.get('accumulation', 1),
            gradient_checkpointing=case['checkpointing'] == 'full', max_grad_norm=float(case['clip']),
            gradient_checkpointing_kwargs={'use_reentrant': case.get('use_reentrant', False)},
            train_sampling_strategy='sequential', report_to='none', disable_tqdm=True, logging_strategy='no', save_strategy='no',
            **asked, **case.get('arguments', {}))
        model, _ = make_model(case, HERE)
        before = {**count(model), 'parameters_allocated': torch.cuda.memory_allocated()}
        own = {}
        if is_dpo:
            own = {'ref_model': make_model(case, HERE)[0] if 'lora' not in case else None,
                   'peft_config': lora_of(case['lora']) if 'lora' in case else None}
        steps = Steps(steps_to_wait(case))
        trainer = (Numbers if is_dpo else AxolotlRewardTrainer)(
            model=model, args=arguments, callbacks=[steps], processing_class=tokenizer(),
            eval_dataset=pairs_of({**case, **evaluation}, evaluation['batch'] * evaluation['batches'] * world) if evaluation else None,
            train_dataset=pairs_of(case, case['batch'] * case.get('accumulation', 1) * STEPS * world), **own)
        if 'lora' in case:
            before = {**before, **count(trainer.model)}
        trainer.train()
        return {**before, 'steps': steps.figures}


if __name__ == '__main__':
    if len(sys.argv) < 3:
        sys.exit('\n'.join(all_cases()))
    chosen = all_cases()[sys.argv[2]]
    made = {**chosen, **run(chosen)}
    if not int(os.environ.get('RANK', 0)):
        with open(sys.argv[1], 'a') as figures:
            figures.write(json.dumps(made) + '\n')
