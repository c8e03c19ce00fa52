"""A training program that allocates on other CUDA streams: inputs that are copied ahead, as apex's example and
timm's loader do, and an average of the weights that is kept beside. After a first pass and at the end of each step it
gives back what PyTorch keeps.

    side_streams.py --batch-size N [--steps N]
"""
import argparse

import torch

parser = argparse.ArgumentParser()
parser.add_argument('--batch-size', type=int, required=True)
parser.add_argument('--steps', type=int, default=40)
arguments = parser.parse_args()

WIDTH = 1024
model = torch.nn.Sequential(*(torch.nn.Sequential(torch.nn.Linear(WIDTH, 4 * WIDTH), torch.nn.GELU(),
                                                  torch.nn.Linear(4 * WIDTH, WIDTH)) for _ in range(4))).cuda()
optimizer = torch.optim.AdamW(model.parameters())
loading, averaging = torch.cuda.Stream(), torch.cuda.Stream()
average = None


def ahead():
    """The next inputs, normalised on the side."""
    with torch.cuda.stream(loading):
        raw = torch.ones(arguments.batch_size, 37, WIDTH, dtype=torch.uint8).cuda(non_blocking=True)
        return raw.float().div_(255).sub_(0.5)


def warm_up():
    model(torch.ones(arguments.batch_size, 100, WIDTH, device='cuda')).sum().backward()
    optimizer.zero_grad()
    torch.cuda.empty_cache()


warm_up()
following = ahead()
for step in range(arguments.steps):
    torch.cuda.current_stream().wait_stream(loading)
    inputs = following
    inputs.record_stream(torch.cuda.current_stream())
    following = ahead()
    loss = model(inputs).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    averaging.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(averaging):
        weights = [p.detach().float().mul(0.01) for p in model.parameters()]
        average = average or [torch.zeros_like(p) for p in model.parameters()]
        for mean, weight in zip(average, weights):
            mean.mul_(0.99).add_(weight)
    torch.cuda.current_stream().wait_stream(averaging)
    torch.cuda.empty_cache()
