"""What PyTorch's DistributedDataParallel allocates on rank 0, case by case, on the oracle's virtual GPU.

    export PYTHONPATH=ORACLE OUT=...                     ORACLE: the folder of golden.py and trace.py; OUT: its build.sh's
    OUT/run VENV/bin/python make_ddp.py CASES.jsonl > ddp.jsonl
    OUT/run VENV/bin/python make_ddp.py CASES.jsonl ID [--stacks]      every allocation of one case (trace.py)

The fields, the figures and the loop are golden.py's, with three fields more:

    world      ranks; this process is rank 0 of them, alone: the others are taken to bring what it brings
    sharding   ddp: DistributedDataParallel(model) with its defaults, made before the optimizer
    reduction  last: all micro-steps but the last run under no_sync(), as accelerate and transformers do
               each: every micro-step reduces its gradients

Rows are plain (golden.plain_rows): one document fills a row. The collectives of a step hold their buffers until NCCL's
watchdog, which looks ten times a second, has seen them end; that is waited for after the first micro-step that reduces.
"""
import contextlib
import json
import os
import sys
import time

os.environ["VGPU_NCCL_ALONE"] = "1"
import golden  # noqa: E402
import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402


class Scaler(torch.amp.GradScaler):
    """Gradients are finite; a virtual GPU, asked for it, reads what was in that memory before."""

    def _maybe_opt_step(self, optimizer, state, *args, **kwargs):
        for found in state["found_inf_per_device"].values():
            found.item()
        return optimizer.step(*args, **kwargs)


def optimizer_of(case, parameters):
    kind = case["optimizer"]
    if kind == "sgd":
        return torch.optim.SGD(parameters, lr=1e-4, momentum=0.9)
    if kind == "adafactor":
        return torch.optim.Adafactor(parameters, lr=1e-4)
    if kind == "adamw-8bit":
        import bitsandbytes
        return bitsandbytes.optim.AdamW8bit(parameters, lr=1e-4)
    return torch.optim.AdamW(parameters, lr=1e-4, fused=kind == "adamw-fused" or None)


def model_of(case, root):
    model, cfg = golden.build(case, root)
    if "lora" in case:
        from peft import LoraConfig, get_peft_model
        lora = case["lora"]
        model = get_peft_model(model, LoraConfig(
            r=lora["r"], lora_alpha=2 * lora["r"], target_modules=lora["target_modules"],
            lora_dropout=lora.get("dropout", 0.0)))
    model.train()
    if case.get("checkpointing") == "full":
        model.gradient_checkpointing_enable(
            gradient_checkpointing_kwargs=dict(use_reentrant=False))
        if "lora" in case:
            model.enable_input_require_grads()
    return model, cfg


def figures(after_forward):
    s = torch.cuda.memory_stats()
    return dict(after_forward=after_forward,
                peak_allocated=s["allocated_bytes.all.peak"],
                peak_reserved=s["reserved_bytes.all.peak"],
                peak_requested=s["requested_bytes.all.peak"],
                end_allocated=s["allocated_bytes.all.current"],
                end_reserved=s["reserved_bytes.all.current"])


def train(case, root, batch, steps, on_step=lambda: None):
    torch.manual_seed(0)
    golden.plain_rows(False)
    dist.init_process_group("nccl", rank=0, world_size=case["world"], store=dist.HashStore())
    model, cfg = model_of(case, root)
    parameters = [p for p in model.parameters() if p.requires_grad]
    out = dict(parameters=sum(p.numel() for p in model.parameters()),
               trainable_parameters=sum(p.numel() for p in parameters),
               parameters_allocated=torch.cuda.memory_allocated(), steps=[])
    ddp = torch.nn.parallel.DistributedDataParallel(model, device_ids=[0])
    optimizer = optimizer_of(case, parameters)
    precision = case["precision"]
    mixed = precision.endswith("-mixed")
    low = torch.float16 if precision.startswith("fp16") else torch.bfloat16
    scaler = Scaler("cuda", enabled=precision == "fp16-mixed")
    data = golden.batch_of(case, cfg, model, batch)
    accumulation = case.get("accumulation", 1)
    waited = False
    for _ in range(steps):
        torch.cuda.reset_peak_memory_stats()
        for i in range(accumulation):
            reduces = case["reduction"] == "each" or i + 1 == accumulation
            with contextlib.nullcontext() if reduces else ddp.no_sync():
                with torch.autocast("cuda", dtype=low, enabled=mixed):
                    loss = ddp(**data).loss
                after = torch.cuda.memory_allocated()
                scaler.scale(loss).backward()
                del loss
            if reduces and not waited:
                torch.cuda.synchronize()
                time.sleep(1)
                waited = True
        if case.get("clip"):
            scaler.unscale_(optimizer)
            torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
        out["steps"].append(figures(after))
        on_step()
    return out


golden.train = train
if __name__ == "__main__":
    if len(sys.argv) == 2:
        golden.main(sys.argv[1])
    else:
        import trace  # noqa: F401  runs it
