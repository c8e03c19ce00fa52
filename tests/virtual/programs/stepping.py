"""Twelve training steps, which are to be recognised from what little each of these shows.

    python stepping.py convolutions     nothing but convolutions, and an evaluation that is longer than a step
"""
import sys

import torch
from torch import nn

import peaks

STEPS = 12


def convolutions():
    model = nn.Sequential(*[nn.Conv2d(8, 8, 3, padding=1, bias=False) for _ in range(6)]).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    images = torch.randn(2, 8, 32, 32, device='cuda')
    for step in range(STEPS):
        model(images).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        with torch.no_grad():
            for _ in range(20 if step % 5 == 4 else 0):
                model(images)


def main():
    globals()[sys.argv[1]]()
    peaks.report()


main()
