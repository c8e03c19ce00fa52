"""What fine-tuning on a quantised or otherwise changed model allocates, case by case, on the oracle's virtual GPU.

    export PYTHONPATH=ORACLE OUT=...                     ORACLE: the folder of golden.py and trace.py; OUT: its build.sh's
    OUT/run VENV/bin/python make_finetune.py CASES.jsonl > finetune.jsonl
    OUT/run VENV/bin/python make_finetune.py CASES.jsonl ID [--stacks]      every allocation of one case (trace.py)

The fields, the figures and the loop are golden.py's, with these fields more:

    weights       the type that from_pretrained loads the model in, where the precision is mixed
    quantization  {"type": "nf4" | "fp4" | "int8", "double": bool, "compute": "fp32" | "bf16" | "fp16", "storage": "uint8" | ...}
                  from_pretrained(quantization_config=BitsAndBytesConfig(...)) from a checkpoint on disk, and
                  prepare_model_for_kbit_training() unless "prepare" is false; checkpointing is then the Trainer's, without reentry
    lora          besides r, target_modules, dropout: "dora": true
    optimizer     besides golden.py's: paged-adamw-32bit | paged-adamw-8bit (bitsandbytes)
"""
import json
import os
import sys

import golden  # noqa: E402  the oracle's, not that of tests/virtual/programs
import torch  # noqa: E402
import transformers  # noqa: E402

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "virtual", "programs"))
import quantized  # noqa: E402
from quantized import TYPES as DTYPES  # noqa: E402


def config_of(case, root):
    raw = json.load(open(os.path.join(root, case["config"])))
    cfg = transformers.AutoConfig.for_model(raw.pop("model_type"), **raw)
    if case.get("dropout") == 0:
        for key in list(vars(cfg)):
            if "drop" in key and isinstance(getattr(cfg, key), float):
                setattr(cfg, key, 0.0)
    cfg.use_cache = False
    return cfg


def weights_of(case):
    precision = case["precision"]
    if precision.endswith("-mixed"):
        return DTYPES[case.get("weights", "fp32")]
    return DTYPES.get(precision, torch.float32)


def load(case, root):
    """quantized.load(), and the Trainer's checkpointing."""
    cfg = config_of(case, root)
    model = quantized.load(case, transformers.AutoModelForCausalLM, cfg, weights_of(case))
    if case.get("checkpointing") == "full":
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs=dict(use_reentrant=False))
    return model, cfg


def model_of(case, root):
    if "quantization" in case:
        model, cfg = load(case, root)
    else:
        model, cfg = golden.build(case, root)
        if "weights" in case:
            model = model.to(weights_of(case))
    if "lora" in case:
        from peft import LoraConfig, get_peft_model
        lora = case["lora"]
        model = get_peft_model(model, LoraConfig(
            r=lora["r"], lora_alpha=2 * lora["r"], target_modules=lora["target_modules"],
            lora_dropout=lora.get("dropout", 0.0), use_dora=lora.get("dora", False)))
    model.train()
    if case.get("checkpointing") == "full" and "quantization" not in case:
        model.gradient_checkpointing_enable(
            gradient_checkpointing_kwargs=dict(use_reentrant=False))
        if "lora" in case:
            model.enable_input_require_grads()
    return model, cfg


def optimizer_of(case, parameters):
    kind = case["optimizer"]
    if kind == "sgd":
        return torch.optim.SGD(parameters, lr=1e-4, momentum=0.9)
    if kind == "adafactor":
        return torch.optim.Adafactor(parameters, lr=1e-4)
    if kind in ("adamw", "adamw-fused"):
        return torch.optim.AdamW(parameters, lr=1e-4, fused=kind == "adamw-fused" or None)
    import bitsandbytes as bnb
    return dict(zip(("adamw-8bit", "paged-adamw-32bit", "paged-adamw-8bit"),
                    (bnb.optim.AdamW8bit, bnb.optim.PagedAdamW32bit, bnb.optim.PagedAdamW8bit)))[kind](parameters, lr=1e-4)


def elements(parameter):
    """Of the weight that a quantised one stands for."""
    state = getattr(parameter, "quant_state", None)
    return state.shape.numel() if state else parameter.numel()


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
    golden.plain_rows(case.get("packed", False))
    model, cfg = model_of(case, root)
    parameters = [p for p in model.parameters() if p.requires_grad]
    stats = torch.cuda.memory_stats()
    out = dict(parameters=sum(elements(p) for p in model.parameters()),
               trainable_parameters=sum(p.numel() for p in parameters),
               parameters_allocated=stats["allocated_bytes.all.current"],
               loading_peak_allocated=stats["allocated_bytes.all.peak"],
               loading_peak_reserved=stats["reserved_bytes.all.peak"], steps=[])
    optimizer = optimizer_of(case, parameters)
    precision = case["precision"]
    mixed = precision.endswith("-mixed")
    low = torch.float16 if precision.startswith("fp16") else torch.bfloat16
    scaler = torch.amp.GradScaler("cuda", enabled=precision == "fp16-mixed")
    data = golden.batch_of(case, cfg, model, batch)
    for _ in range(steps):
        torch.cuda.reset_peak_memory_stats()
        for _ in range(case.get("accumulation", 1)):
            with torch.autocast("cuda", dtype=low, enabled=mixed):
                loss = model(**data).loss
            after = torch.cuda.memory_allocated()
            scaler.scale(loss).backward()
            del loss
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
