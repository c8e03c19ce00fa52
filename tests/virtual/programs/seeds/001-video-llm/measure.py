"""What PyTorch allocates in four optimizer steps of train.py with the setting of a case."""
import torch
import transformers

import train

transformers.logging.set_verbosity_error()
STEPS = 4


def configure(over):
    cfg = train.load_config()
    for path, value in over.items():
        *parents, key = path.split(".")
        node = cfg
        for name in parents:
            node = node[name]
        node[key] = value
    return cfg


def figures(case, batch=None):
    if "alloc_conf" in case:
        torch.cuda.memory._set_allocator_settings(case["alloc_conf"])
    cfg = configure(case["settings"])
    if batch:
        cfg["training"]["batch_size"] = batch
    t = train.Trainer(cfg)
    out = dict(parameters=sum(p.numel() for p in t.model.parameters()), trainable_parameters=sum(p.numel() for p in t.parameters),
               parameters_allocated=torch.cuda.memory_allocated(), steps=[])
    for _ in range(STEPS):
        torch.cuda.reset_peak_memory_stats()
        seen = []
        t.step(lambda: seen.append((torch.cuda.memory_allocated(), torch.cuda.max_memory_allocated())))
        out["steps"].append(dict(forward_peak=seen[0][1], after_forward=seen[-1][0], peak_allocated=torch.cuda.max_memory_allocated(),
                                 peak_reserved=torch.cuda.max_memory_reserved(), end_allocated=torch.cuda.memory_allocated(),
                                 end_reserved=torch.cuda.memory_reserved()))
    return out
