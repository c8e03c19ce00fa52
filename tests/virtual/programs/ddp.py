"""DistributedDataParallel: torchrun --nproc_per_node=N ddp.py --batch 4 --steps 3 [--zero]

Rank 0 prints its peaks as one line of JSON. --die RANK:STEP: that rank is killed there.
"""
import argparse
import os
import signal
import time

import torch
import torch.distributed as dist
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel

from peaks import report
from tiny_gpt import TinyGpt


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--batch', type=int, default=4)
    parser.add_argument('--steps', type=int, default=3)
    parser.add_argument('--zero', action='store_true', help='ZeroRedundancyOptimizer')
    parser.add_argument('--die', default='-1:0')
    args = parser.parse_args()
    die_rank, die_step = map(int, args.die.split(':'))
    device = torch.device('cuda', int(os.environ['LOCAL_RANK']))
    torch.cuda.set_device(device)
    dist.init_process_group('nccl')
    rank = dist.get_rank()
    torch.manual_seed(rank)
    model = DistributedDataParallel(TinyGpt().to(device), device_ids=[device.index])
    if args.zero:
        optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.AdamW, lr=1e-4)
    else:
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    for step in range(args.steps):
        tokens = torch.randint(0, 8192, (args.batch, 257), device=device)
        with torch.autocast('cuda', torch.bfloat16):
            loss = model(tokens[:, :-1], tokens[:, 1:])
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if rank == die_rank and step == die_step:
            os.kill(os.getpid(), signal.SIGKILL)
        loss.item()
        if step == 0:
            time.sleep(1)  # the first buckets are held until a watchdog has looked
    dist.barrier()
    if rank == 0:
        report()
    dist.destroy_process_group()


main()
