"""A golden case as transformers' Trainer runs it (`loop: trainer`), or TRL's SFTTrainer (`trl-sft`), DPOTrainer
(`trl-dpo`), KTOTrainer (`trl-kto`), GRPOTrainer (`trl-grpo`) or RewardTrainer (`trl-reward`): golden.py gives it the model. With torchrun it is one of `world` ranks."""
import functools
import math
import time

import torch
from transformers import Trainer, TrainerCallback, TrainingArguments

from pictures import Pictures, collate, collate_padded
from rows import Images, Pairs, Rows, Sounds, in_one_row, pad, pad_pairs, pad_sounds

OPTIMIZERS = {'adamw': 'adamw_torch', 'adamw-fused': 'adamw_torch_fused', 'sgd': 'sgd', 'adamw-8bit': 'adamw_bnb_8bit',
              'paged-adamw-8bit': 'paged_adamw_8bit', 'paged-adamw-32bit': 'paged_adamw_32bit',
              'adafactor': 'adafactor', 'adamw-torch-8bit': 'adamw_torch_8bit', 'adamw-torch-4bit': 'adamw_torch_4bit'}


class Steps(TrainerCallback):
    """The figures of each step, from behind its batches to its end, of an evaluation behind it, of a checkpoint that is
    saved then, and (`first`) of an evaluation before the first step. `waits`: so many
    steps at first give up what their collectives hold before the next one, for which NCCL's watchdog, which looks ten
    times a second, has to see their end."""

    def __init__(self, waits):
        self.figures, self.waits, self.first = [], waits, {}

    def on_train_begin(self, *_, **__):
        torch.cuda.reset_peak_memory_stats()

    def on_step_begin(self, *_, **__):
        torch.cuda.reset_peak_memory_stats()

    @staticmethod
    def look():
        seen = torch.cuda.memory_stats()
        torch.cuda.reset_peak_memory_stats()
        return {'peak_allocated': seen['allocated_bytes.all.peak'],
                'peak_reserved': seen['reserved_bytes.all.peak'],
                'peak_requested': seen['requested_bytes.all.peak'],
                'end_allocated': seen['allocated_bytes.all.current'],
                'end_reserved': seen['reserved_bytes.all.current']}

    def on_step_end(self, *_, **__):
        self.figures.append(self.look())
        if self.waits:
            torch.cuda.synchronize()
            time.sleep(1)
            self.waits -= 1

    def on_evaluate(self, arguments, state, *_, **__):
        if state.global_step == 0:
            self.first['start'] = self.look()
        elif state.global_step % arguments.eval_steps == 0:  # there is one behind the last step in any case
            self.figures[-1]['evaluation'] = self.look()

    def on_save(self, *_, **__):
        self.figures[-1]['save'] = self.look()


def steps_to_wait(case):
    """Until DistributedDataParallel has made the buckets that stay; ZeRO 3 gathers what persists at the end of each."""
    if 'world' not in case:
        return 0
    if case.get('sharding') == 'zero3':
        return math.inf
    return 2 if case.get('ddp', {}).get('static_graph') else 1


def packs(case):
    return case['loop'] == 'trl-sft' and case.get('documents', 1) > 1


def flattens(case):
    """SFTTrainer puts a batch's samples into one row, packed or as they are."""
    if case['loop'] != 'trl-sft' or case.get('packing') != 'one-row':
        return {}
    return {'packing': True, 'max_length': case['seq']} if packs(case) else {'padding_free': True}


def collator_of(case, model):
    if case['kind'] == 'seq2seq':
        return pad_pairs(model, case.get('padded', False))
    if case['kind'] == 'speech':
        return pad_sounds(case.get('padded', False))
    if case.get('images'):
        return collate_padded if case.get('padded') else collate
    if case['loop'] == 'trainer' and case.get('packing') == 'one-row':
        return in_one_row(case.get('documents', 1))
    return pad if case.get('padded') else None


def gradients_are_finite(case):
    """Whether they are in fp16 a virtual GPU says by what was in that memory before."""
    if case['precision'] != 'fp16-mixed' or not case.get('sharding', '').startswith('zero'):
        return
    from deepspeed.runtime.zero import stage3, stage_1_and_2
    for optimizer in (stage3.DeepSpeedZeroOptimizer_Stage3, stage_1_and_2.DeepSpeedZeroOptimizer):
        optimizer.has_overflow = finite(optimizer.has_overflow)


def finite(has_overflow):
    def asked(*given, **named):
        has_overflow(*given, **named)
        return False
    return asked


def vocabulary_of(config):
    return config.get_text_config().vocab_size


def data_of(case, config, count):
    if case.get('images'):
        return Pictures(count, case, config)
    if case['kind'] == 'speech':
        return Sounds(count, config, case['seq'])
    if case['kind'] == 'image':
        return Images(count, config.image_size)
    if packs(case):  # SFTTrainer makes the samples
        count, case = count * case['documents'], dict(case, seq=case['seq'] // case['documents'])
    if case['kind'] == 'seq2seq':
        return Pairs(count, case['seq'], case['target_seq'], config.vocab_size)
    return Rows(count, case['seq'], vocabulary_of(config), Rows.kind_of(case))


def sharded(case):
    """FSDP2, whose plan is accelerate's; or DeepSpeed's ZeRO."""
    sharding = case.get('sharding', '')
    if sharding == 'fsdp':
        return {'fsdp': True, 'fsdp_config': {'reshard_after_forward': case.get('reshard') != 'no',
                                              **case.get('fsdp_config', {})}}
    if not sharding.startswith('zero'):
        return {}
    return {'deepspeed': {'train_micro_batch_size_per_gpu': 'auto', 'gradient_accumulation_steps': 'auto',
                          'gradient_clipping': 'auto', 'bf16': {'enabled': 'auto'}, 'fp16': {'enabled': 'auto'},
                          'zero_allow_untested_optimizer': True,
                          'zero_optimization': {'stage': int(sharding[-1]), **case.get('zero', {})}}}


def evaluates(case):
    """An evaluation every few steps; a program that measures something of the predictions keeps them."""
    asked = case.get('evaluation')
    if not asked:
        return {}
    return {'eval_strategy': 'steps', 'eval_steps': asked.get('every', 1), 'per_device_eval_batch_size': asked['batch'],
            'eval_accumulation_steps': asked.get('accumulation')}


def classes_of(case):
    """The class of the arguments, and what makes a trainer of them."""
    if case['loop'] == 'trl-sft':
        from golden_trl import Arguments, make
        return Arguments, functools.partial(make, case)
    if case['loop'] == 'trl-dpo':
        from golden_trl import PairArguments, make_dpo
        return PairArguments, functools.partial(make_dpo, case)
    if case['loop'] == 'trl-kto':
        from golden_trl import RatedArguments, make_kto
        return RatedArguments, functools.partial(make_kto, case)
    if case['loop'] in ('trl-orpo', 'trl-cpo'):
        from golden_trl import Contrast, ContrastArguments, Odds, OddsArguments, make_odds
        if case['loop'] == 'trl-orpo':
            return OddsArguments, functools.partial(make_odds, Odds, case)
        loss = case.get('preference_loss', 'sigmoid')
        return functools.partial(ContrastArguments, loss_type=loss), functools.partial(make_odds, Contrast, case)
    if case['loop'] == 'trl-reward':
        from golden_trl import RewardArguments, make_reward
        return RewardArguments, functools.partial(make_reward, case)
    if case['loop'] == 'trl-grpo':
        from golden_grpo import Arguments, make_grpo
        return functools.partial(Arguments, case), functools.partial(make_grpo, case)
    return TrainingArguments, Trainer


def make_arguments(case, folder, size, count):
    """For `count` steps of micro-batches of `size` samples."""
    asked = {'logging_strategy': 'no', 'save_strategy': 'no', **case.get('arguments', {})}
    if case.get('padded') and case['loop'] in ('trl-sft', 'trl-dpo', 'trl-orpo', 'trl-cpo', 'trl-reward'):  # else a batch may have several short rows
        asked['train_sampling_strategy'] = 'sequential'
    return classes_of(case)[0](
        output_dir=folder, max_steps=count, bf16=case['precision'] == 'bf16-mixed', fp16=case['precision'] == 'fp16-mixed',
        per_device_train_batch_size=size, gradient_accumulation_steps=case.get('accumulation', 1),
        gradient_checkpointing=case.get('checkpointing') == 'full',
        gradient_checkpointing_kwargs={'use_reentrant': True} if case.get('use_reentrant') else None, optim=OPTIMIZERS[case['optimizer']],
        max_grad_norm=1.0 if case.get('clip') else 0.0, report_to='none',
        use_liger_kernel=case.get('liger', False), disable_tqdm=True,
        **{f'ddp_{name}': value for name, value in case.get('ddp', {}).items()}, **sharded(case), **evaluates(case),
        **flattens(case), **asked)


def measured(_, compute_result=True):
    return {}


def largest(predictions, _):
    logits = predictions[0] if isinstance(predictions, tuple) else predictions
    return logits.argmax(dim=-1)


def train(case, arguments, model, config, size, count):
    """Figures of the steps, and of what comes before them."""
    gradients_are_finite(case)
    steps = Steps(steps_to_wait(case))
    rows = data_of(case, config, size * case.get('accumulation', 1) * count * case.get('world', 1))
    asked = case.get('evaluation', {})
    others = data_of(case, config, asked['batch'] * asked.get('batches', 2) * case.get('world', 1)) if asked else None
    keeps = asked.get('keeps')
    measure = measured if keeps in ('logits', 'argmax') or asked.get('measures') else None
    if case.get('fsdp_plan') == 'axolotl':
        from axolotl_model import shard
        shard(case)
    make = classes_of(case)[1]
    make(model=model, args=arguments, train_dataset=rows, eval_dataset=others, compute_metrics=measure,
         preprocess_logits_for_metrics=largest if keeps == 'argmax' else None,
         data_collator=collator_of(case, model), callbacks=[steps]).train()
    return {**steps.first, 'steps': steps.figures}
