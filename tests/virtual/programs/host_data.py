"""Makes its data in the training loop, which takes the host a time for each sample.

    python host_data.py --batch-size 8 [--milliseconds 1.5] [--max-steps 100]
"""
import argparse
import time

import torch

import peaks


def make(count, milliseconds):
    """By processor time, so that what else runs on the machine changes nothing."""
    end = time.thread_time() + 1e-3 * milliseconds * count
    while time.thread_time() < end:
        pass
    return torch.ones(count, 256)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--batch-size', type=int, default=8)
    parser.add_argument('--milliseconds', type=float, default=1.5)
    parser.add_argument('--max-steps', type=int, default=100)
    options = parser.parse_args()

    model = torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.ReLU(), torch.nn.Linear(256, 8)).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(options.max_steps):
        loss = model(make(options.batch_size, options.milliseconds).cuda()).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    peaks.report()


main()
