"""Segmentation where only labelled pixels count, of which there are millions:

    python labelled.py [--batch N] [--side N] [--answered]

A batch without any is skipped, and only theirs go through the loss. With --answered the host says which they are.
"""
import argparse

import torch
import torch.nn.functional as F
from torch import nn

import peaks

CLASSES, UNLABELLED = 5, 255


def make_labels(batch, side):
    """Of ten pixels three have a label; of the last batch none."""
    pixels = torch.arange(batch * side * side).view(batch, side, side)
    labels = torch.where(pixels * 7919 % 10 < 3, pixels % CLASSES, UNLABELLED)
    return [labels, labels.roll(1), torch.full_like(labels, UNLABELLED)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--batch', type=int, default=2)
    parser.add_argument('--side', type=int, default=1024)
    parser.add_argument('--answered', action='store_true')
    options = parser.parse_args()
    model = nn.Conv2d(3, CLASSES, 3, padding=1).cuda()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    images = torch.zeros(options.batch, 3, options.side, options.side)
    done = 0
    for labels in make_labels(options.batch, options.side):
        x, y = images.cuda(), labels.cuda()
        valid = y != UNLABELLED
        share = valid.float().mean().item()
        if options.answered:
            share = (labels != UNLABELLED).float().mean().item()
        if share == 0 or valid.sum().item() == 0:
            continue
        places = (labels != UNLABELLED).nonzero().cuda() if options.answered else valid.nonzero()
        places = places.unbind(1)
        scores = model(x).permute(0, 2, 3, 1)[places]
        loss = F.cross_entropy(scores, y[places])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        done += 1
    assert done == 2, done
    peaks.report()


main()
