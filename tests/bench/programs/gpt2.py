"""transformers' GPT-2 of 124 million parameters with its dropout, as scripts/gpu/torch_side.py times it.

    python gpt2.py --batch 8 [--compile yes]
"""
import torch
import transformers

import training


def main():
    parser = training.parser(__doc__)
    parser.add_argument('--compile', choices=('no', 'yes'), default='no')
    options = parser.parse_args()
    config = transformers.GPT2Config(use_cache=False)
    with torch.device('cuda'):
        model = transformers.AutoModelForCausalLM.from_config(config, attn_implementation='sdpa')
    model.train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    forward = torch.compile(model) if options.compile == 'yes' else model
    tokens = torch.randint(0, config.vocab_size, (options.batch, 1024)).cuda()
    for _ in range(options.steps):
        with torch.autocast('cuda', dtype=torch.bfloat16):
            loss = forward(input_ids=tokens, labels=tokens).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()


main()
