"""Hard examples, sixteen times as many, as long as the loss is above a bound: a value that only a real GPU knows."""
import argparse

import torch

parser = argparse.ArgumentParser()
parser.add_argument('--batch-size', type=int, default=4)
batch = parser.parse_args().batch_size
model = torch.nn.Linear(1024, 1024).cuda()
optimizer = torch.optim.AdamW(model.parameters())
for step in range(80):
    x = torch.randn(batch * 256, 1024, device='cuda')
    loss = model(x).pow(2).mean()
    if loss.item() > 1e-3:  # bound
        loss = loss + model(torch.cat([x] * 16)).pow(2).mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
