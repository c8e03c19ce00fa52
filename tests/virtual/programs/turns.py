"""Two models that take turns: after each twenty steps of the small one's optimizer the large one's has its first.

    turns.py [never]     an optimizer that never steps, too
"""
import sys
import time

import torch
from torch import nn

import peaks

STEPS, TURNS, ROWS, WIDTH = 120, 20, 1024, 512


def layers(count):
    return nn.Sequential(*[nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU()) for _ in range(count)]).cuda()


class Around(torch.optim.Optimizer):
    """As Lookahead or SAM: around another, with its parameters; it is not stepped itself."""

    def __init__(self, inner):
        super().__init__(inner.param_groups, {})
        self.inner = inner

    def update(self):
        self.inner.step()
        self.inner.zero_grad()


def main():
    small, large, idle = layers(2), layers(12), layers(1)
    of_small, of_large = Around(torch.optim.AdamW(small.parameters())), torch.optim.AdamW(large.parameters())
    others = [torch.optim.AdamW(idle.parameters())] if 'never' in sys.argv else []
    for step in range(STEPS):
        small(torch.randn(ROWS, WIDTH, device='cuda')).mean().backward()
        of_small.update()
        if step % TURNS == TURNS - 1:
            small(large(torch.randn(ROWS, WIDTH, device='cuda'))).mean().backward()
            of_large.step()
            of_large.zero_grad()
            small.zero_grad()
        print('step', step, flush=True)
        time.sleep(0.1)  # trials are looked at some times a second
    peaks.report()
    return others


main()
