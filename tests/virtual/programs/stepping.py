"""Twelve training steps, which are to be recognised from what little each of these shows.

    python stepping.py convolutions     nothing but convolutions, and an evaluation that is longer than a step
    python stepping.py by_hand          two layers without an optimizer, two micro-steps to a step
    python stepping.py recurrent        the same of an LSTM
    python stepping.py functional       weights that are not updated in place
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


def functional():
    """Weights are new tensors after each step, and every tenth one shows a loss."""
    weights, momenta = [[make(64, 64, device='cuda') for _ in range(6)] for make in (torch.randn, torch.zeros)]
    for step in range(20 * STEPS):
        hidden = torch.randn(16, 64, device='cuda')
        leaves = [weight.requires_grad_() for weight in weights]
        for weight in leaves:
            hidden = torch.tanh(hidden @ weight)
        gradients = torch.autograd.grad(hidden.square().mean(), leaves)
        momenta = [0.9 * momentum + gradient for momentum, gradient in zip(momenta, gradients)]
        weights = [(weight - 0.1 * momentum).detach() for weight, momentum in zip(leaves, momenta)]
        if step % 10 == 0:
            print(hidden.abs().max().item())
    time.sleep(0.5)  # PyTorch's thread aborts where it gives back gradients while Python ends


def convolutions_of_a_full_gpu():
    """Workspaces that a small GPU refuses; PyTorch catches that itself."""
    model = nn.Sequential(nn.Conv2d(3, 64, 3, padding=1), nn.ReLU(), nn.Conv2d(64, 64, 3, padding=1), nn.ReLU(),
                          nn.Conv2d(64, 64, 3, 2, 1)).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(STEPS):
        model(torch.randn(240, 3, 64, 64, device='cuda')).mean().backward()
        optimizer.step()
        optimizer.zero_grad()


def over_its_own_limit():
    """Half of the rows go into the share of the GPU that it may use."""
    torch.cuda.set_per_process_memory_fraction(0.1)
    model = nn.Linear(256, 256).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    rows = 1 << 22
    for _ in range(STEPS):
        try:
            model(torch.randn(rows, 256, device='cuda')).square().mean().backward()
        except torch.cuda.OutOfMemoryError:
            rows //= 8
            continue
        optimizer.step()
        optimizer.zero_grad()


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
