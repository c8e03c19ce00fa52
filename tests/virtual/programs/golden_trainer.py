"""A golden case as transformers' Trainer runs it (`loop: trainer`): golden.py gives it the model. With torchrun it is one
of `world` ranks."""
import tempfile
import time

import torch
from transformers import Trainer, TrainerCallback, TrainingArguments

from rows import Images, Rows

OPTIMIZERS = {'adamw': 'adamw_torch', 'adamw-fused': 'adamw_torch_fused', 'sgd': 'sgd', 'adamw-8bit': 'adamw_bnb_8bit',
              'adafactor': 'adafactor'}


class Steps(TrainerCallback):
    """The figures of each step, from behind its batches to its end. `waits`: so many steps at first give up their
    reduction's buffers before the next one, for which NCCL's watchdog, which looks ten times a second, has to see its
    end."""

    def __init__(self, waits):
        self.figures, self.waits = [], waits

    def on_step_begin(self, *_, **__):
        torch.cuda.reset_peak_memory_stats()

    def on_step_end(self, *_, **__):
        seen = torch.cuda.memory_stats()
        self.figures.append({'peak_allocated': seen['allocated_bytes.all.peak'],
                             'peak_reserved': seen['reserved_bytes.all.peak'],
                             'peak_requested': seen['requested_bytes.all.peak'],
                             'end_allocated': seen['allocated_bytes.all.current'],
                             'end_reserved': seen['reserved_bytes.all.current']})
        if self.waits:
            torch.cuda.synchronize()
            time.sleep(1)
            self.waits -= 1


def reductions_to_wait_for(case):
    """Until DistributedDataParallel has made the buckets that stay."""
    if 'world' not in case:
        return 0
    return 2 if case.get('ddp', {}).get('static_graph') else 1


def data_of(case, config, count):
    if case['kind'] == 'image':
        return Images(count, config.image_size)
    return Rows(count, case['seq'], config.vocab_size, case['kind'] == 'classify')


def sharded(case):
    """FSDP2, whose plan is accelerate's."""
    if case.get('sharding') != 'fsdp':
        return {}
    return {'fsdp': True, 'fsdp_config': {'reshard_after_forward': case.get('reshard') != 'no'}}


def train(case, model, config, size, count):
    """Figures of `count` steps of micro-batches of `size` samples."""
    accumulation, steps = case.get('accumulation', 1), Steps(reductions_to_wait_for(case))
    rows = data_of(case, config, size * accumulation * count * case.get('world', 1))
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            output_dir=folder, max_steps=count, bf16=case['precision'] == 'bf16-mixed', fp16=case['precision'] == 'fp16-mixed',
            per_device_train_batch_size=size, gradient_accumulation_steps=accumulation,
            gradient_checkpointing=case.get('checkpointing') == 'full', optim=OPTIMIZERS[case['optimizer']],
            max_grad_norm=1.0 if case.get('clip') else 0.0, save_strategy='no', logging_strategy='no', report_to='none',
            use_liger_kernel=case.get('liger', False), disable_tqdm=True,
            **{f'ddp_{name}': value for name, value in case.get('ddp', {}).items()}, **sharded(case))
        Trainer(model=model, args=arguments, train_dataset=rows, callbacks=[steps]).train()
    return steps.figures
