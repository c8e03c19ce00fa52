"""What PyTorch allocates in four optimizer steps of train.py with the setting of a case.

The tokens are made once on the device. distributed: ddp is one rank of four in a single process:
DistributedDataParallel's first broadcast and its gradient buckets, made here by its own functions;
none is a single process without them.
"""
import os

import torch
import torch.distributed as dist
from torch.distributed.utils import _sync_module_states
from torch.testing._internal.distributed.fake_pg import FakeStore

import train

HERE = os.path.dirname(os.path.abspath(__file__))


def config_of(c, batch):
    config = train.load_config(os.path.join(HERE, "pretrain_512m_low_memory.yaml"))
    for section in (config["model"], config["model"]["gsa"], config["training"]):
        section.update({k: c[k] for k in section if k in c})
    config["training"]["micro_batch_size"] = batch
    return config


def one_rank_of_four(model):             # what DistributedDataParallel allocates: the coalesced broadcast, then a flat tensor for each bucket
    dist.init_process_group("fake", rank=0, world_size=4, store=FakeStore())
    _sync_module_states(model, dist.group.WORLD, 250 << 20, 0, set())
    parameters = list(model.parameters())
    buckets, _ = dist._compute_bucket_assignment_by_size(parameters, [dist._DEFAULT_FIRST_BUCKET_BYTES, 25 << 20], [False] * len(parameters))
    used = torch.zeros(len(parameters), dtype=torch.int32, device="cuda")
    return used, [torch.empty(sum(parameters[i].numel() for i in b), device="cuda") for b in reversed(buckets)]


def figures(c, batch=None, steps=4):
    batch = batch or c["micro_batch_size"]
    if c["expandable_segments"]:
        torch._C._accelerator_setAllocatorSettings("expandable_segments:True")
    config = config_of(c, batch)
    torch.manual_seed(0)
    model, optimizer, scaler = train.build(config)
    model.train()
    out = dict(parameters=sum(p.numel() for p in model.parameters()), parameters_allocated=torch.cuda.memory_allocated(), steps=[])
    held = one_rank_of_four(model) if c["distributed"] == "ddp" else None
    tokens = torch.zeros(batch, c["max_seq_len"], dtype=torch.long, device="cuda")
    for _ in range(steps):
        torch.cuda.reset_peak_memory_stats()
        for _ in range(c["gradient_accumulation_steps"]):
            loss = train.loss_of(model, config, tokens)
            after = torch.cuda.memory_allocated()
            scaler.scale(loss).backward()
            del loss
        train.optimizer_step(model, optimizer, scaler, config)
        s = torch.cuda.memory_stats()
        out["steps"].append(dict(after_forward=after, peak_allocated=s["allocated_bytes.all.peak"], peak_reserved=s["reserved_bytes.all.peak"], peak_requested=s["requested_bytes.all.peak"],
                                 end_allocated=s["allocated_bytes.all.current"], end_reserved=s["reserved_bytes.all.current"]))
    del held
    return out
