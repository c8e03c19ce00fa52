"""The Trainer of transformers on rows as a tokenizer gives them.

    python masks_trainer.py --kind causal|bidirectional --mask none|ones|padded [--answered]

--answered: what transformers asks of the mask is answered by the host, as on a real GPU.
"""
import argparse
import tempfile

import torch
from transformers import (BertConfig, BertForMaskedLM, LlamaConfig, LlamaForCausalLM, Trainer,
                          TrainingArguments, masking_utils)

import peaks

SIZES = dict(hidden_size=128, num_hidden_layers=2, num_attention_heads=2, intermediate_size=256,
             vocab_size=2000, max_position_embeddings=512)
KINDS = {'causal': lambda: LlamaForCausalLM(LlamaConfig(num_key_value_heads=2, use_cache=False, **SIZES)),
         'bidirectional': lambda: BertForMaskedLM(BertConfig(**SIZES))}


def rows(mask, count, length):
    for i in range(count):
        tokens = torch.arange(i, i + length).remainder(2000)
        row = {'input_ids': tokens, 'labels': tokens}
        if mask != 'none':
            row['attention_mask'] = torch.ones_like(tokens)
        if mask == 'padded':
            row['attention_mask'][length - i % 3 * 8:] = 0
        yield row


def answer(hides):
    """The work on the GPU stays the same; only what the host makes of it is fixed."""
    find, every, both = (masking_utils.find_packed_sequence_indices, masking_utils.fast_all,
                         masking_utils._ignore_bidirectional_mask_sdpa)
    masking_utils.find_packed_sequence_indices = lambda positions: (find(positions), None)[1]
    masking_utils.fast_all = lambda mask: (bool(every(mask)), not hides)[1]
    masking_utils._ignore_bidirectional_mask_sdpa = lambda *all, **named: (both(*all, **named), not hides)[1]


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--kind', choices=KINDS, default='causal')
    parser.add_argument('--mask', choices=('none', 'ones', 'padded'), default='none')
    parser.add_argument('--answered', action='store_true')
    options = parser.parse_args()
    if options.answered:
        answer(options.mask == 'padded')
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            output_dir=folder, max_steps=3, bf16=True, per_device_train_batch_size=8, logging_steps=1,
            save_strategy='no', report_to='none', disable_tqdm=True)
        Trainer(model=KINDS[options.kind](), args=arguments,
                train_dataset=list(rows(options.mask, 24, 512))).train()
    peaks.report()


main()
