"""Twelve training steps, which are to be recognised from what little each of these shows.

    python stepping.py convolutions     nothing but convolutions, and an evaluation that is longer than a step
    python stepping.py by_hand          two layers without an optimizer, two micro-steps to a step
    python stepping.py recurrent        the same of an LSTM
"""
import sys
import time

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


def update(model, batch):
    """A step without an optimizer, of two micro-steps."""
    model.zero_grad()
    for _ in range(2):
        out = model(batch)
        (out[0] if isinstance(out, tuple) else out).square().mean().backward()
    for parameter in model.parameters():
        parameter.data.add_(parameter.grad, alpha=-0.1)


def by_hand():
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64)).cuda()
    for _ in range(STEPS):
        update(model, torch.randn(16, 64, device='cuda'))


def recurrent():
    model = nn.LSTM(64, 64).cuda()
    for _ in range(STEPS):
        update(model, torch.randn(16, 8, 64, device='cuda'))


def late():
    """Steps that need more from the 40th on."""
    model = nn.Linear(256, 256).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(80):
        time.sleep(0.1 if step < 40 else 0)  # a trial is looked at from time to time
        rows = torch.randn(16 if step < 40 else 1 << 18, 256, device='cuda')
        model(rows).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()


def main():
    globals()[sys.argv[1]]()
    peaks.report()


main()
