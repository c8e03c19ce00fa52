"""What PyTorch allocates in four optimizer steps of train.py with the setting of a case."""
import sys

sys.modules["bitsandbytes"] = None      # not used, and peft's import of it would initialise CUDA before the processes are forked
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
    keep = ("data_loader", "model", "loss", "training")
    return {k: cfg[k] for k in keep} | dict(seed=cfg["seed"], text_curriculum={k: cfg["text_curriculum"][k] for k in ("n_positives", "n_negatives")})


def figures(case, batch=None):
    cfg = configure(case["settings"])
    if batch:
        cfg["data_loader"]["batch_size"] = batch
    t = train.Trainer(cfg)
    out = dict(parameters=sum(p.numel() for p in t.model.parameters()), trainable_parameters=sum(p.numel() for p in t.parameters),
               lora_parameters=sum(p.numel() for n, p in t.model.named_parameters() if "lora_" in n),
               parameters_allocated=torch.cuda.memory_allocated(), steps=[])
    for _ in range(STEPS):
        torch.cuda.reset_peak_memory_stats()
        seen = []
        t.step(lambda: seen.append((torch.cuda.memory_allocated(), torch.cuda.max_memory_allocated())))
        out["steps"].append(dict(forward_peak=seen[0][1], after_forward=seen[-1][0], peak_allocated=torch.cuda.max_memory_allocated(),
                                 peak_reserved=torch.cuda.max_memory_reserved(), end_allocated=torch.cuda.memory_allocated(),
                                 end_reserved=torch.cuda.memory_reserved()))
    return out
