"""fragments.py SEED STEPS: every step allocates the same blocks and gives them back in the same order, some of them one
step later; PyTorch's allocator lays them out anew for many steps, until a piece is missing."""
import random
import sys

import torch

seed, steps = map(int, sys.argv[1:])
chance = random.Random(seed)
sizes = [chance.randrange(1, 60 << 20) if chance.randrange(8) else chance.randrange(1, 1 << 20) for _ in range(60)]
order = chance.sample(range(60), 60)
layer = torch.nn.Linear(64, 64, device='cuda')
optimizer = torch.optim.SGD(layer.parameters(), 0.1)
kept = {}
most = 0
for step in range(steps):
    held = {}
    for i, size in enumerate(sizes):
        held[i] = torch.empty(size, dtype=torch.uint8, device='cuda')
        if i % 5 == 4:
            del held[i - 2]
    layer(torch.ones(8, 64, device='cuda')).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
    for i in order:
        if i in held:
            if i >= 48:
                kept[i] = held[i]
            del held[i]
    if torch.cuda.max_memory_reserved() > most:
        most = torch.cuda.max_memory_reserved()
        print(f'step {step}: {most} bytes reserved', flush=True)
