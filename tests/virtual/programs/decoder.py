"""A causal language model of transformers, trained as its Trainer does: a configuration's, on the GPU.

    python decoder.py --config folder --batch-size 8 [--seq 1024] [--precision bf16-mixed]
"""
import argparse
import contextlib

import torch
import transformers

TYPES = {'fp32': torch.float32, 'bf16': torch.bfloat16, 'bf16-mixed': torch.float32}


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--config', required=True)
    parser.add_argument('--batch-size', type=int, required=True)
    parser.add_argument('--seq', type=int, default=1024)
    parser.add_argument('--precision', choices=TYPES, default='bf16-mixed')
    parser.add_argument('--checkpointing', default='none')
    parser.add_argument('--max-steps', type=int, default=100)
    options = parser.parse_args()

    config = transformers.AutoConfig.from_pretrained(options.config)
    with torch.device('cuda'):
        model = transformers.AutoModelForCausalLM.from_config(config, dtype=TYPES[options.precision])
    if options.checkpointing == 'full':
        model.gradient_checkpointing_enable()
    model.train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    autocast = (torch.autocast('cuda', dtype=torch.bfloat16) if options.precision == 'bf16-mixed'
                else contextlib.nullcontext())
    for _ in range(options.max_steps):
        tokens = torch.randint(config.vocab_size, (options.batch_size, options.seq)).cuda()
        with autocast:
            loss = model(input_ids=tokens, labels=tokens, use_cache=False).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()


main()
