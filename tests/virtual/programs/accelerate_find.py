"""A program that looks for its batch itself: accelerate catches the OOM and tries a smaller one.

    python accelerate_find.py [--start 4096]
"""
import argparse

import torch
from accelerate import Accelerator
from accelerate.utils import find_executable_batch_size
from torch import nn

import peaks

WIDTH = 4096


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--start', type=int, default=4096, help='the batch that is tried first')
    parser.add_argument('--max-steps', type=int, default=4)
    options = parser.parse_args()
    accelerator = Accelerator(mixed_precision='bf16')
    tried = []

    @find_executable_batch_size(starting_batch_size=options.start)
    def train(batch_size):
        tried.append(batch_size)
        accelerator.free_memory()
        layers = [nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.GELU()) for _ in range(8)]
        model = nn.Sequential(*layers)
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
        model, optimizer = accelerator.prepare(model, optimizer)
        for _ in range(options.max_steps):
            x = torch.randn(batch_size, 128, WIDTH, device=accelerator.device)
            loss = model(x).square().mean()
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
        return batch_size

    peaks.report(largest=train(), tried=tried)


main()
