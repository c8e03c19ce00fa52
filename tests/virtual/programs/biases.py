"""Linear layers with biases, whose gradients are sums over all rows: PyTorch takes memory for these from some 2,000 rows
on, which small batches do not have."""
import argparse

import torch
from torch import nn

ROWS, WIDTH = 64, 512


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--batch-size', type=int, default=4)
    parser.add_argument('--grad-accum', type=int, default=1)
    args = parser.parse_args()
    layers = (nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH), nn.LayerNorm(WIDTH))
    model = nn.Sequential(*layers).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(16):
        for _ in range(args.grad_accum):
            rows = torch.randn(args.batch_size, ROWS, WIDTH, device='cuda')
            model(rows).pow(2).mean().backward()
        optimizer.step()
        optimizer.zero_grad()


if __name__ == '__main__':
    main()
