"""GPT-2 with the Trainer of transformers, from scratch, on synthetic text.

    python hf_trainer.py --batch-size 8 --grad-accum 4 [--model gpt2-124m] [--seq 1024]
"""
import argparse
import tempfile

import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

import peaks
from rows import Rows

SIZES = {'gpt2-124m': {}, 'tiny': {'n_layer': 2, 'n_head': 2, 'n_embd': 64}}


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--model', choices=SIZES, default='gpt2-124m')
    parser.add_argument('--batch-size', type=int, default=8)
    parser.add_argument('--grad-accum', type=int, default=1)
    parser.add_argument('--seq', type=int, default=1024)
    parser.add_argument('--max-steps', type=int, default=4)
    parser.add_argument('--checkpointing', action='store_true')
    options = parser.parse_args()

    config = GPT2Config(n_positions=options.seq, use_cache=False, **SIZES[options.model])
    samples = options.batch_size * options.grad_accum * options.max_steps
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            output_dir=folder, max_steps=options.max_steps, bf16=True, learning_rate=6e-4,
            per_device_train_batch_size=options.batch_size,
            gradient_accumulation_steps=options.grad_accum,
            gradient_checkpointing=options.checkpointing,
            logging_steps=1, save_strategy='no', report_to='none', disable_tqdm=True)
        trainer = Trainer(model=GPT2LMHeadModel(config), args=arguments,
                          train_dataset=Rows(samples, options.seq, config.vocab_size))
        trainer.train()
    peaks.report(steps=trainer.state.global_step)


main()
