"""A small transformer under torch.compile, or with its training step as a CUDA graph.

    python compile_train.py --batch-size 16 [--mode default|reduce-overhead|graph]
"""
import argparse

import torch
from torch import nn

import peaks


def make_model(layers, width):
    layer = nn.TransformerEncoderLayer(width, width // 64, 4 * width, dropout=0.1,
                                       batch_first=True, norm_first=True)
    encoder = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
    return nn.Sequential(encoder, nn.Linear(width, 1)).cuda()


def train_graph(model, optimizer, x, steps):
    """The whole step captured once and replayed."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())

    def step():
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast('cuda', dtype=torch.bfloat16, cache_enabled=False):
            loss = model(x).square().mean()
        loss.backward()
        optimizer.step()

    with torch.cuda.stream(side):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    for _ in range(steps):
        x.copy_(torch.randn(x.shape))
        graph.replay()


def train_compiled(model, optimizer, x, steps, mode):
    forward = torch.compile(model, mode=mode)
    for _ in range(steps):
        with torch.autocast('cuda', dtype=torch.bfloat16):
            loss = forward(x).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--mode', default='default')
    parser.add_argument('--batch-size', type=int, default=16)
    parser.add_argument('--seq', type=int, default=512)
    parser.add_argument('--layers', type=int, default=2)
    parser.add_argument('--width', type=int, default=256)
    parser.add_argument('--max-steps', type=int, default=4)
    options = parser.parse_args()

    model = make_model(options.layers, options.width)
    graph = options.mode == 'graph'
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, capturable=graph)
    x = torch.randn(options.batch_size, options.seq, options.width, device='cuda')
    if graph:
        train_graph(model, optimizer, x, options.max_steps)
    else:
        train_compiled(model, optimizer, x, options.max_steps, options.mode)
    torch.cuda.synchronize()
    peaks.report(mode=options.mode)


main()
