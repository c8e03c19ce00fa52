"""FSDP over NCCL: torchrun --nproc_per_node=N fsdp.py --batch 4 --steps 3 [--second]

Rank 0 prints its peaks as one line of JSON. --second: fully_shard() instead of the wrapper class.
"""
import argparse
import functools
import os

import torch
import torch.distributed as dist
from torch.distributed.fsdp import FullyShardedDataParallel, MixedPrecision
from torch.distributed.fsdp.wrap import transformer_auto_wrap_policy

from peaks import report
from tiny_gpt import Block, TinyGpt


def shard(model, device, second):
    if second:
        from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
        policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
        model.to(device)
        for block in model.blocks:
            fully_shard(block, mp_policy=policy)
        return fully_shard(model, mp_policy=policy)
    return FullyShardedDataParallel(
        model, device_id=device, sync_module_states=True,
        mixed_precision=MixedPrecision(param_dtype=torch.bfloat16, reduce_dtype=torch.float32),
        auto_wrap_policy=functools.partial(transformer_auto_wrap_policy,
                                           transformer_layer_cls={Block}))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--batch', type=int, default=4)
    parser.add_argument('--steps', type=int, default=3)
    parser.add_argument('--second', action='store_true')
    args = parser.parse_args()
    device = torch.device('cuda', int(os.environ['LOCAL_RANK']))
    torch.cuda.set_device(device)
    dist.init_process_group('nccl')
    rank = dist.get_rank()
    torch.manual_seed(0)
    model = shard(TinyGpt(), device, args.second)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    for _ in range(args.steps):
        tokens = torch.randint(0, 8192, (args.batch, 257), device=device)
        loss = model(tokens[:, :-1], tokens[:, 1:])
        loss.backward()
        if args.second:
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        else:
            model.clip_grad_norm_(1.0)
        optimizer.step()
        optimizer.zero_grad()
        loss.item()
    dist.barrier()
    if rank == 0:
        report()
    dist.destroy_process_group()


main()
