"""A GAN whose critic steps twice for each step of its generator: critics.py --batch-size N"""
import argparse

import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument('--batch-size', type=int, default=8)
options = parser.parse_args()


def layers(*widths):
    return nn.Sequential(*[nn.Sequential(nn.Linear(a, b), nn.SiLU()) for a, b in zip(widths, widths[1:])]).cuda()


generator, critic = layers(128, 1024, 4096), layers(4096, 1024, 256)
of_generator, of_critic = (torch.optim.Adam(m.parameters(), 1e-4) for m in (generator, critic))
for _ in range(100):
    for _ in range(2):
        real, noise = (torch.randn(options.batch_size, width, device='cuda') for width in (4096, 128))
        loss = critic(generator(noise).detach()).mean() - critic(real).mean()
        of_critic.zero_grad()
        loss.backward()
        of_critic.step()
    of_generator.zero_grad()
    (-critic(generator(torch.randn(options.batch_size, 128, device='cuda'))).mean()).backward()
    of_generator.step()
