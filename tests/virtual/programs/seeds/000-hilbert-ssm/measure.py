"""What PyTorch allocates in four optimizer steps of train.py with the setting of a case.

Inputs are made once on the device; all recordings of a batch have the same length.
"""
import os
import sys
import types

import torch
import triton.testing

bench = triton.testing.do_bench          # the package's kernels are tuned at their first call: the timing runs mean nothing here, their 256 MiB buffer stays
triton.testing.do_bench = lambda fn, warmup=25, rep=100, **options: bench(fn, warmup=0.1, rep=0.1, **options)
sys.modules.setdefault("selective_scan_cuda", types.ModuleType("selective_scan_cuda"))   # Mamba-1's kernel, imported by the package, not used here
import train

HERE = os.path.dirname(os.path.abspath(__file__))


def config_of(c, batch):
    config = train.load_config(os.path.join(HERE, "config.yaml"))
    config["TRAINING"]["precision"] = c["precision"]
    config["DATA"]["dataset"]["dataset_init_args"].update(num_vectors=c["num_vectors"], train_ratio_of_vectors=c["train_ratio_of_vectors"])
    config["DATA"]["dataloader"]["batch_size"] = batch
    model = config["MODEL"]["model_init_args"]
    model.update({k: c[k] for k in model if k in c})
    return config


def figures(c, batch=None, steps=4):
    batch = batch or c["batch_size"]
    if c["ssd"] == "fused":
        import mamba_ssm  # noqa: F401
    if "allocator" in c:
        torch._C._accelerator_setAllocatorSettings(c["allocator"])
    config = config_of(c, batch)
    torch.manual_seed(0)
    model, optimizer, scaler, autocast = train.build(config)
    model.train()
    out = dict(parameters=sum(p.numel() for p in model.parameters()), parameters_allocated=torch.cuda.memory_allocated(), steps=[])
    width = 2 * config["DATA"]["dataset"]["dataset_init_args"]["encoding_dim"]
    data = ([torch.zeros(c["length"], width, device="cuda") for _ in range(batch)], [torch.zeros(6, c["length"], dtype=torch.long, device="cuda") for _ in range(batch)],
            torch.zeros(batch, dtype=torch.long, device="cuda"))
    for _ in range(steps):
        torch.cuda.reset_peak_memory_stats()
        for _ in range(c["accumulation"]):
            loss = train.loss_of(model, autocast, data)
            after = torch.cuda.memory_allocated()
            scaler.scale(loss).backward()
            del loss
        train.optimizer_step(optimizer, scaler)
        s = torch.cuda.memory_stats()
        out["steps"].append(dict(after_forward=after, peak_allocated=s["allocated_bytes.all.peak"], peak_reserved=s["reserved_bytes.all.peak"], peak_requested=s["requested_bytes.all.peak"],
                                 end_allocated=s["allocated_bytes.all.current"], end_reserved=s["reserved_bytes.all.current"]))
    return out
