"""A GPT and its training loop in one file, as many people write them.

    python nanogpt.py --batch-size 8 --grad-accum 4 [--model gpt2] [--seq 1024] [--compile]
"""
import argparse

import torch
from torch import nn
from torch.nn import functional as F

import peaks

# Layers, heads, width.
SIZES = {'tiny': (2, 2, 64), 'gpt2': (12, 12, 768), 'gpt2-medium': (24, 16, 1024)}
VOCABULARY = 50304


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x):
        q, k, v = (t.unflatten(-1, (self.heads, -1)).transpose(1, 2)
                   for t in self.qkv(x).chunk(3, -1))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.transpose(1, 2).flatten(2))


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.norm1, self.attention = nn.LayerNorm(width), Attention(width, heads)
        self.norm2 = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(approximate='tanh'),
                                 nn.Linear(4 * width, width))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class GPT(nn.Module):
    def __init__(self, layers, heads, width, length):
        super().__init__()
        self.token, self.position = nn.Embedding(VOCABULARY, width), nn.Embedding(length, width)
        self.blocks = nn.Sequential(*[Block(width, heads) for _ in range(layers)])
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, VOCABULARY, bias=False)
        self.head.weight = self.token.weight

    def forward(self, tokens, targets):
        x = self.token(tokens) + self.position(torch.arange(tokens.shape[1], device=tokens.device))
        logits = self.head(self.norm(self.blocks(x)))
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--model', choices=SIZES, default='gpt2')
    parser.add_argument('--batch-size', type=int, default=8)
    parser.add_argument('--grad-accum', type=int, default=1)
    parser.add_argument('--seq', type=int, default=1024)
    parser.add_argument('--max-steps', type=int, default=4)
    parser.add_argument('--compile', action='store_true')
    options = parser.parse_args()

    text = torch.randint(VOCABULARY, (1 << 20,))
    model = GPT(*SIZES[options.model], options.seq).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=6e-4, betas=(0.9, 0.95), fused=True)
    forward = torch.compile(model) if options.compile else model

    def batch():
        starts = torch.randint(len(text) - options.seq - 1, (options.batch_size,))
        tokens = torch.stack([text[s:s + options.seq + 1] for s in starts])
        tokens = tokens.pin_memory().cuda(non_blocking=True)
        return tokens[:, :-1], tokens[:, 1:]

    for step in range(options.max_steps):
        for _ in range(options.grad_accum):
            tokens, targets = batch()
            with torch.autocast('cuda', dtype=torch.bfloat16):
                loss = forward(tokens, targets) / options.grad_accum
            loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        print(f'step {step} loss {loss.item() * options.grad_accum:.4f}', flush=True)
    peaks.report()


main()
