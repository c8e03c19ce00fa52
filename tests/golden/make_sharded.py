"""What data-parallel training allocates on rank 0, case by case, on the oracle's virtual GPU.

    export PYTHONPATH=ORACLE OUT=...                     ORACLE: the folder of golden.py and trace.py; OUT: its build.sh's
    OUT/run VENV/bin/python make_sharded.py CASES.jsonl > ddp.jsonl
    OUT/run VENV/bin/python make_sharded.py CASES.jsonl ID [--stacks]      every allocation of one case (trace.py)
    plimsoll exec --device sim:GPU,placement=ascending,memory=4TiB --gpus N ... -- \
        VENV/bin/torchrun --nproc-per-node N make_sharded.py CASES.jsonl ID  one case on plimsoll's virtual GPUs, by all of
                                                                             its ranks (newer.jsonl: PyTorch 2.15)

The fields, the figures and the loop are golden.py's, with these fields more:

    world      ranks; this process is `rank` of them (0), alone: the others are taken to bring what it brings
    sharding   ddp: DistributedDataParallel(model) with its defaults, made before the optimizer
               fsdp: FSDP2, fully_shard() on each decoder layer and on the model. The model is made on the meta device,
               sharded, and then materialised (to_empty), as torchtitan does, so that no GPU ever holds all of it.
               Mixed precision is MixedPrecisionPolicy(param_dtype, reduce_dtype) and no autocast
    ddp        further arguments of DistributedDataParallel(). With find_unused_parameters the reducer asks whether host
               memory is pinned; where the virtual GPU does not know, cudaPointerGetAttributes() has to say so
    reshard    no: reshard_after_forward=False on the layers (fsdp)
    reduce     the reduce_dtype of mixed precision: fp32 (default), or low: that of the parameters (fsdp)
    reduction  last: all micro-steps but the last run under no_sync() or set_requires_gradient_sync(False), as accelerate
               and transformers do
               each: every micro-step reduces its gradients

Rows are plain (golden.plain_rows): one document fills a row. DDP's collectives of a step hold their buffers until NCCL's
watchdog, which looks ten times a second, has seen them end; that is waited for after the first micro-steps that reduce,
until the buckets are those for good (static_graph: one later). With static_graph the first backward has to reduce: under
no_sync() PyTorch fails (expect_autograd_hooks_ INTERNAL ASSERT).
"""
import contextlib
import json
import os
import sys
import time

RANKS = "LOCAL_RANK" in os.environ  # torchrun started all of them
if RANKS:  # each sees its own GPU alone, as cuda:0
    os.environ["CUDA_VISIBLE_DEVICES"], os.environ["LOCAL_RANK"] = os.environ["LOCAL_RANK"], "0"
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
    model, cfg = build(case, root)
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


def build(case, root):
    """golden.build(); on the meta device where the model is to be sharded before it has memory."""
    if case["sharding"] == "ddp":
        return golden.build(case, root)
    import transformers
    with open(os.path.join(root, case["config"])) as file:
        raw = json.load(file)
    cfg = transformers.AutoConfig.for_model(raw.pop("model_type"), **raw)
    for name in list(vars(cfg)):
        if case.get("dropout") == 0 and "drop" in name and isinstance(getattr(cfg, name), float):
            setattr(cfg, name, 0.0)
    cfg.use_cache = False
    types = {"bf16": torch.bfloat16, "fp16": torch.float16}
    torch.set_default_dtype(types.get(case.get("weights", case["precision"]), torch.float32))
    with torch.device("meta"):
        model = getattr(transformers, golden.AUTO[case["kind"]]).from_config(
            cfg, attn_implementation=case.get("attention", "sdpa"))
    torch.set_default_dtype(torch.float32)
    return model, cfg


def low_type(case):
    return torch.float16 if case["precision"].startswith("fp16") else torch.bfloat16


class Ddp:
    """DistributedDataParallel."""

    def __init__(self, case, model, cfg):
        self.module = torch.nn.parallel.DistributedDataParallel(
            model, device_ids=[0], **case.get("ddp", {}))
        self.first_reductions = 2 if case.get("ddp", {}).get("static_graph") else 1

    def context(self, reduces):
        return contextlib.nullcontext() if reduces else self.module.no_sync()

    def after_backward(self, reduces):
        if reduces and self.first_reductions:
            torch.cuda.synchronize()
            time.sleep(1)
            self.first_reductions -= 1


class Fsdp:
    """FSDP2."""

    def __init__(self, case, model, cfg):
        from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
        policy = MixedPrecisionPolicy()
        if case["precision"].endswith("-mixed"):
            low = low_type(case)
            policy = MixedPrecisionPolicy(
                param_dtype=low,
                reduce_dtype=low if case.get("reduce") == "low" else torch.float32)
        layers = next(m for m in model.modules() if isinstance(m, torch.nn.ModuleList)
                      and len(m) == cfg.num_hidden_layers)
        for layer in layers:
            fully_shard(layer, mp_policy=policy,
                        reshard_after_forward=False if case.get("reshard") == "no" else None)
        fully_shard(model, mp_policy=policy)
        model.to_empty(device="cuda")
        (model.get_base_model() if "lora" in case else model).tie_weights()
        self.module = model

    def context(self, reduces):
        self.module.set_requires_gradient_sync(reduces)
        return contextlib.nullcontext()

    def after_backward(self, reduces):
        pass


SHARDING = {"ddp": Ddp, "fsdp": Fsdp}


def figures(after_forward):
    s = torch.cuda.memory_stats()
    return dict(after_forward=after_forward,
                peak_allocated=s["allocated_bytes.all.peak"],
                peak_reserved=s["reserved_bytes.all.peak"],
                peak_requested=s["requested_bytes.all.peak"],
                end_allocated=s["allocated_bytes.all.current"],
                end_reserved=s["reserved_bytes.all.current"])


def join(case):
    """The process group: of all ranks, or of this one alone."""
    if RANKS:
        dist.init_process_group("nccl")
        return
    store = dist.HashStore()
    for group in ["", *(f"{n}//" for n in range(1, 16))] if case.get("rank") else []:
        store.set(f"0//{group}cuda//0", bytes(128).decode())  # what rank 0 would tell of its communicators
    dist.init_process_group("nccl", rank=case.get("rank", 0), world_size=case["world"], store=store)


def train(case, root, batch, steps, on_step=lambda: None):
    torch.manual_seed(0)
    golden.plain_rows(False)
    join(case)
    model, cfg = model_of(case, root)
    out = dict(parameters=sum(p.numel() for p in model.parameters()),
               trainable_parameters=sum(p.numel() for p in model.parameters() if p.requires_grad))
    out["parameters_allocated"] = torch.cuda.memory_allocated()
    sharded = SHARDING[case["sharding"]](case, model, cfg)
    if case["sharding"] != "ddp":
        out["parameters_allocated"] = torch.cuda.memory_allocated()
    parameters = [p for p in model.parameters() if p.requires_grad]
    optimizer = optimizer_of(case, parameters)
    autocast = case["sharding"] == "ddp" and case["precision"].endswith("-mixed")
    scaler = Scaler("cuda", enabled=case["precision"] == "fp16-mixed")
    data = golden.batch_of(case, cfg, model, batch)
    accumulation = case.get("accumulation", 1)
    out["steps"] = []
    for _ in range(steps):
        torch.cuda.reset_peak_memory_stats()
        for i in range(accumulation):
            reduces = case["reduction"] == "each" or i + 1 == accumulation
            with sharded.context(reduces):
                with torch.autocast("cuda", dtype=low_type(case), enabled=autocast):
                    loss = sharded.module(**data).loss
                after = torch.cuda.memory_allocated()
                scaler.scale(loss).backward()
                del loss
            sharded.after_backward(reduces)
        if case.get("clip"):
            scaler.unscale_(optimizer)
            torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
        out["steps"].append(figures(after))
        on_step()
    return out


def run_rank(path, ident):
    """One case, of which all ranks run; that one tells whose case it is."""
    with open(path) as file:
        case = next(case for case in map(json.loads, file) if case["id"] == ident)
    out = train(case, os.path.dirname(os.path.abspath(path)), case["batch"], 4)
    if dist.get_rank() == case.get("rank", 0):
        print(json.dumps({**case, **out}), flush=True)
    dist.barrier()


golden.train = train
if __name__ == "__main__":
    if RANKS:
        run_rank(*sys.argv[1:])
    elif len(sys.argv) == 2:
        golden.main(sys.argv[1])
    else:
        import trace  # noqa: F401  runs it
