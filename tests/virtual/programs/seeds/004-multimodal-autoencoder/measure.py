"""What PyTorch allocates in four optimizer steps of train.py with the settings of a case, on one card or as one of the ranks of torchrun.

A run that ends early says so in `ended`: step, phase, exception, bytes.
"""
import shlex
import time
import warnings

import torch

import train

warnings.filterwarnings("ignore")


def figures(case, batch=None):
    if "alloc_conf" in case:
        torch.cuda.memory._set_allocator_settings(case["alloc_conf"])
    o = train.options(shlex.split(case["settings"]) + (["--batch", str(batch)] if batch else []))
    with torch.device("meta"):
        res = dict(parameters=sum(p.numel() for p in train.Autoencoder(o).parameters()))
    phase, now, stats = "build", {}, torch.cuda.memory_stats
    steps = res["steps"] = []
    tensors = lambda ts: sum(t.numel() * t.element_size() for t in ts)

    def watch(event, model=None, optimizer=None):
        nonlocal phase
        phase = dict(built="forward", step="forward", forward="backward", backward="optimizer", optimizer="optimizer", end="forward")[event]
        here = torch.cuda.memory_allocated()
        if event == "built":
            res["parameters_allocated"] = here
        elif event == "step":
            torch.cuda.reset_peak_memory_stats()
        elif event == "forward":
            now["after_forward"] = here
        elif event == "backward":
            now["after_backward"] = here
            if o.sharding == "none" and len(steps) == 1:
                res["breakdown"] = dict(parameters_bytes=tensors(model.parameters()), gradients_bytes=tensors(p.grad for p in model.parameters()))
        elif event == "optimizer" and "breakdown" in res and len(steps) == 1:
            states = {id(t): t for s in optimizer.state.values() for t in s.values() if torch.is_tensor(t) and t.is_cuda}
            res["breakdown"]["optimizer_bytes"] = tensors(states.values())
        elif event == "end":
            s = stats()
            steps.append(dict(now, peak_allocated=s["allocated_bytes.all.peak"], peak_reserved=s["reserved_bytes.all.peak"], end_allocated=s["allocated_bytes.all.current"]))
            now.clear()
            if o.sharding in ("ddp", "zero1") and len(steps) == 1:
                torch.cuda.synchronize()
                time.sleep(1)                                    # until the watchdog has seen that the collectives are over
    try:
        train.train(o, watch)
    except Exception as e:
        kind = "out of memory" if isinstance(e, torch.OutOfMemoryError) else type(e).__name__
        res["ended"] = dict(step=len(steps) + 1, phase=phase, what=kind, message=str(e).split(" GPU ")[0].split("\n")[0][:200], allocated=torch.cuda.memory_allocated(), reserved=torch.cuda.memory_reserved())
    return res
