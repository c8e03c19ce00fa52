"""GPT-2 of 124 million parameters as people train it who write it themselves (nanoGPT, build-nanogpt), with made-up tokens.

    python gpt.py --batch 16 [--compile yes] [--attention sdpa] [--vocabulary 50304]
"""
import math

import torch
import torch.nn.functional as F
from torch import nn

import training

WIDTH, HEADS, LAYERS, LENGTH = 768, 12, 12, 1024


class Block(nn.Module):
    def __init__(self, is_fused):
        super().__init__()
        self.is_fused = is_fused
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)
        if not is_fused:
            self.register_buffer('seen', torch.tril(torch.ones(LENGTH, LENGTH)).view(1, 1, LENGTH, LENGTH))

    def attention(self, x):
        batch, length, _ = x.shape
        query, key, value = (part.view(batch, length, HEADS, WIDTH // HEADS).transpose(1, 2)
                             for part in self.qkv(x).split(WIDTH, dim=2))
        if self.is_fused:
            y = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        else:
            scores = (query @ key.transpose(-2, -1)) * (1 / math.sqrt(key.shape[-1]))
            shares = F.softmax(scores.masked_fill(self.seen[:, :, :length, :length] == 0, float('-inf')), dim=-1)
            y = shares @ value
        return self.out(y.transpose(1, 2).contiguous().view(batch, length, WIDTH))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.down(F.gelu(self.up(self.norm2(x)), approximate='tanh'))


class GPT(nn.Module):
    def __init__(self, vocabulary, is_fused):
        super().__init__()
        self.tokens, self.places = nn.Embedding(vocabulary, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.blocks = nn.ModuleList(Block(is_fused) for _ in range(LAYERS))
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, vocabulary, bias=False)
        self.tokens.weight = self.head.weight

    def forward(self, tokens, labels):
        x = self.tokens(tokens) + self.places(torch.arange(tokens.shape[1], device=tokens.device))
        for block in self.blocks:
            x = block(x)
        logits = self.head(self.norm(x))
        return F.cross_entropy(logits.view(-1, logits.shape[-1]), labels.view(-1))


def main():
    parser = training.parser(__doc__)
    parser.add_argument('--attention', choices=('written', 'sdpa'), default='written')
    parser.add_argument('--vocabulary', type=int, default=50257)
    parser.add_argument('--compile', choices=('no', 'yes'), default='no')
    options = parser.parse_args()
    torch.set_float32_matmul_precision('high')
    model = GPT(options.vocabulary, options.attention == 'sdpa').cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    forward = torch.compile(model) if options.compile == 'yes' else model
    tokens = torch.randint(0, 50257, (options.batch * LENGTH + 1,))
    for _ in range(options.steps):
        inputs = tokens[:-1].view(options.batch, LENGTH).cuda()
        labels = tokens[1:].view(options.batch, LENGTH).cuda()
        optimizer.zero_grad()
        with torch.autocast('cuda', dtype=torch.bfloat16):
            loss = forward(inputs, labels)
        loss.backward()
        optimizer.step()
        torch.cuda.synchronize()


main()
