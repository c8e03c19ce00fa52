"""What DeepSpeed's ZeRO allocates on each rank, case by case, on the oracle's virtual GPU.

    export PYTHONPATH=ORACLE OUT=...                     ORACLE: the folder of golden.py and trace.py; OUT: its build.sh's
    OUT/run VENV/bin/python make_zero.py CASES.jsonl > zero.jsonl
    OUT/run VENV/bin/python make_zero.py CASES.jsonl ID [--stacks]      every allocation of one case (trace.py)

The fields and figures are those of golden.py and make_sharded.py, with these fields more:

    sharding   zero1, zero2, zero3: deepspeed.initialize() with the optimizer of the case
    rank       which of the `world` ranks this is; it runs alone, the others are taken to bring what it brings
    zero       the section "zero_optimization" of DeepSpeed's configuration, but for its stage

The loop is accelerate's: set_gradient_accumulation_boundary(), engine.backward(), and engine.step() after the last
micro-step, which clips and clears the gradients. Mixed precision is DeepSpeed's own ("bf16" or "fp16" enabled): the
weights are cast, and each rank has its part of them in fp32 for the optimizer. The model is made on the host; for
zero3 under deepspeed.zero.Init(), as from_pretrained() makes it.
"""
import contextlib
import json
import os
import sys
import time

os.environ.setdefault("VGPU_NCCL_WAIT", "1")  # for what no rank says that is not there
import make_sharded  # sets the environment
import golden
import torch
import torch.distributed as dist
import transformers


def finite(has_overflow):
    """Gradients are finite; a virtual GPU, asked for it, reads what was in that memory before."""
    def asked(*args, **kwargs):
        has_overflow(*args, **kwargs)
        return False
    return asked


def configuration(case):
    precision = case["precision"].split("-")[0]
    return {"train_micro_batch_size_per_gpu": case["batch"],
            "gradient_accumulation_steps": case.get("accumulation", 1),
            "gradient_clipping": 1.0 if case.get("clip") else 0.0,
            "bf16": {"enabled": precision == "bf16"},
            "fp16": {"enabled": precision == "fp16"},
            "zero_allow_untested_optimizer": True,
            "zero_optimization": {"stage": int(case["sharding"][-1]), **case.get("zero", {})}}


def build(case, root):
    """golden.build() on the host; of zero3 each parameter is sharded as it is made."""
    with open(os.path.join(root, case["config"])) as file:
        raw = json.load(file)
    cfg = transformers.AutoConfig.for_model(raw.pop("model_type"), **raw)
    for name in list(vars(cfg)):
        if case.get("dropout") == 0 and "drop" in name and isinstance(getattr(cfg, name), float):
            setattr(cfg, name, 0.0)
    cfg.use_cache = False
    if case["sharding"] == "zero3":
        cfg.pad_token_id = None  # the row of a weight that is away cannot be cleared
    getattr(transformers, golden.AUTO[case["kind"]])._model_mapping[type(cfg)]  # imports it
    types = {"bf16": torch.bfloat16, "fp16": torch.float16}
    sharded = contextlib.nullcontext()
    if case["sharding"] == "zero3":
        import deepspeed
        sharded = deepspeed.zero.Init(config_dict_or_path=configuration(case))
    torch.set_default_dtype(types.get(case["precision"].split("-")[0], torch.float32))
    with sharded:
        model = getattr(transformers, golden.AUTO[case["kind"]]).from_config(
            cfg, attn_implementation=case.get("attention", "sdpa"))
    torch.set_default_dtype(torch.float32)
    return model, cfg


make_sharded.build = build


def wait(case):
    """Buffers of zero3's collectives are held until NCCL's watchdog, which looks ten times a second, has seen them end."""
    if case["sharding"] == "zero3":
        torch.cuda.synchronize()
        time.sleep(0.3)


def told_the_same(ints):
    """assert_ints_same_as_other_ranks(), where rank 0, which tells its numbers, is not there."""
    for told in len(ints), ints:
        numbers = torch.tensor(told, dtype=int, device="cuda")
        dist.broadcast(numbers, src=0)
        numbers.cpu()


def train(case, root, batch, steps, on_step=lambda: None):
    import deepspeed  # asks the GPU, so not before the process of the case
    from deepspeed.runtime.zero.stage3 import DeepSpeedZeroOptimizer_Stage3
    from deepspeed.runtime.zero.stage_1_and_2 import DeepSpeedZeroOptimizer
    for kind in DeepSpeedZeroOptimizer, DeepSpeedZeroOptimizer_Stage3:
        kind.has_overflow = finite(kind.has_overflow)
    if case["rank"]:
        from deepspeed.runtime.zero import partition_parameters, partitioned_param_coordinator
        for module in partition_parameters, partitioned_param_coordinator:
            module.assert_ints_same_as_other_ranks = told_the_same
    torch.manual_seed(0)
    golden.plain_rows(False)
    os.environ.update(LOCAL_RANK="0", RANK=str(case["rank"]), WORLD_SIZE=str(case["world"]))
    store = dist.HashStore()
    for group in ["", *(f"{n}//" for n in range(1, 16))]:  # what rank 0 would tell of its communicators
        store.set(f"0//{group}cuda//0", bytes(128).decode())
    dist.init_process_group("nccl", rank=case["rank"], world_size=case["world"], store=store)
    deepspeed.init_distributed(dist_backend="nccl", dist_init_required=False)
    model, cfg = make_sharded.model_of(case, root)
    out = dict(parameters=sum(getattr(p, "ds_numel", p.numel()) for p in model.parameters()))
    trained = [p for p in model.parameters() if p.requires_grad]
    out["trainable_parameters"] = sum(getattr(p, "ds_numel", p.numel()) for p in trained)
    engine = deepspeed.initialize(model=model, optimizer=make_sharded.optimizer_of(case, trained),
                                  config=configuration(case))[0]
    out["parameters_allocated"] = torch.cuda.memory_allocated()
    data = golden.batch_of(case, cfg, model, batch)
    accumulation = case.get("accumulation", 1)
    out["steps"] = []
    for _ in range(steps):
        torch.cuda.reset_peak_memory_stats()
        for i in range(accumulation):
            loss = engine(**data).loss
            after = torch.cuda.memory_allocated()
            engine.set_gradient_accumulation_boundary(i + 1 == accumulation)
            engine.backward(loss)
            del loss
            wait(case)
        engine.step()
        wait(case)
        out["steps"].append(make_sharded.figures(after))
        on_step()
    return out


golden.train = train
if __name__ == "__main__":
    if len(sys.argv) == 2:
        golden.main(sys.argv[1])
    else:
        import trace  # noqa: F401  runs it
