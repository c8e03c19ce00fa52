#!/usr/bin/env python3
"""The speed of several GPUs beside what others published (FSDP and DDP).

    tests/bench/bench_sharded.py build-dev/autotune/plimsoll ROWS.csv

ROWS.csv has the columns of the project's tables of published speeds (model, gpu, n_gpus, sharding, precision, act_ckpt,
seq_len, micro_batch, grad_accum, throughput, throughput_unit, ...). Taken are the rows that the engine knows: eager
PyTorch, FSDP over whole parameters or DDP, no fp8, no quantised base. MPT's models stand in as gpt2 of their sizes (no
alibi). Prints each row's deviation of tokens a second, and how many lie within 25 %. Nothing here is fitted to a row.

Rows of llm-foundry have `--attn_impl triton`, the default of its scripts/train/benchmarking: a kernel of the first
FlashAttention's generation, which no trainer runs today. Their attention is taken to be as much slower than
FlashAttention-2 as the latter's paper says, and they count by themselves.
"""
import csv
import json
import os
import statistics
import sys
import tempfile

sys.dont_write_bytecode = True  # nothing is left in the tree
from published import told

CONFIGS = os.path.join(os.path.dirname(__file__), "..", "golden", "configs")
GPUS = {"A100-40GB": "A100-SXM4-40GB", "A100-80GB": "A100-SXM4-80GB", "H100-80GB": "H100-SXM5-80GB",
        "H100-96GB": "H100-SXM5-80GB", "H100": "H100-SXM5-80GB", "A100-SXM4-40GB": "A100-SXM4-40GB",
        "V100-32GB (DGX-2 presumed)": "V100-SXM2-32GB", "RTX-4090 x2 (PCIe4 x16)": "RTX-4090",
        "RTX-3090 x2 (no NVLink, slow PCIe)": "RTX-3090"}
MODELS = {"Mistral-7B-v0.1": "mistral-7b", "Llama-3-8B": "llama-3-8b", "Llama-2-7B": "llama-2-7b",
          "Llama-3-8B (torchtitan default; not named in table)": "llama-3-8b", "phi-1.5": "phi-1.5",
          "TinyLlama-1.1B": "tinyllama-1.1b", "gpt2": "gpt2", "gpt2-medium": "gpt2-medium",
          "gpt2-large": "gpt2-large"}
MPT = {"125m": (768, 12, 12), "350m": (1024, 24, 16), "760m": (1536, 24, 12), "1b": (2048, 24, 16),
       "3b": (2560, 32, 20), "7b": (4096, 32, 32), "13b": (5120, 40, 40), "30b": (7168, 48, 56),
       "70b": (8192, 80, 64)}


# FlashAttention-2 is 1.3 to 2.5 times as fast as Triton's FlashAttention (its paper, section 4.1): the middle.
TRITON_SLOWDOWN = 1.9


def has_triton(row):
    return "llm-foundry" in row["framework"]


def model_of(row, folder):
    """A config.json, or None."""
    name = row["model"]
    if name in MODELS:
        return os.path.join(CONFIGS, MODELS[name] + ".json")
    if not name.startswith("MPT-"):
        return None
    width, layers, heads = MPT[name[4:]]
    path = os.path.join(folder, name + ".json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"model_type": "gpt2", "n_embd": width, "n_layer": layers, "n_head": heads,
                   "vocab_size": 50368, "n_positions": 1 << 16, "activation_function": "gelu",
                   "resid_pdrop": 0, "embd_pdrop": 0, "attn_pdrop": 0}, file)
    return path


def arguments(row, folder):
    """plimsoll's, or None where the row is none that the engine knows."""
    model, gpu = model_of(row, folder), GPUS.get(row["gpu"])
    precision, sharding = row["precision"], row["sharding"]
    known = (row["micro_batch"].isdigit() and row["seq_len"].isdigit() and "float8" not in precision
             and not row["compile"].startswith("yes") and "nf4" not in precision
             and "autogptq" not in row["framework"] and "bnb" not in row["framework"]
             and "fp8" not in precision and row["throughput_unit"].startswith(("tokens/s", "samples/s")))
    whole = sharding.startswith(("FULL_SHARD", "FSDP FULL_SHARD", "FSDP2 full", "FSDP"))
    data_parallel = "DDP" in sharding and "ZeRO" not in sharding
    if not (model and gpu and known and row["throughput"] and (whole or data_parallel)) or " x " in sharding:
        return None
    low = "fp16" if "fp16" in precision else "bf16"
    plain = "weights" in precision or "base" in precision or "pure" in precision or "true" in precision
    kind = "fp32" if precision == "fp32" else low if plain else low + "-mixed"
    checkpointing = "full" if row["act_ckpt"].startswith(("full", "block")) else "none"
    if row["act_ckpt"].startswith("selective"):
        return None
    out = [model, "--device", f"sim:{gpu},memory=64TiB", "--batch", row["micro_batch"], "--seq", row["seq_len"],
           "--accumulation", row["grad_accum"] if row["grad_accum"].isdigit() else "1", "--precision", kind,
           "--checkpointing", checkpointing, "--world", row["n_gpus"],
           "--sharding", "fsdp" if whole else "ddp", "--optimizer", "adamw-fused"]
    if row["attn"].startswith("eager"):
        out += ["--attention", "eager"]
    if "mixed" in kind:
        out += ["--weights", "fp32"]
    if has_triton(row):
        out += ["--attention", "flash_attention_2"]
    if whole and "mixed" in kind and has_triton(row):
        out += ["--set", "train.reduce_dtype=low"]  # its policy DEFAULT reduces in the low type
    if "lora" in row["method"]:
        targets = "q_proj+k_proj+v_proj+o_proj" if "qkvo" in row["method"] else "q_proj+v_proj"
        out += ["--lora", f"r=16,targets={targets}"]
    return out


def tokens_per_second(row, explanation):
    """Ours, of all GPUs."""
    setting = explanation["setting"]
    slower = (TRITON_SLOWDOWN - 1) * explanation["time"]["attention_seconds"] if has_triton(row) else 0
    return setting["tokens_per_second"] / (1 + slower / setting["step_seconds"])


def published(row):
    """Tokens a second of all GPUs."""
    rate, unit = float(row["throughput"]), row["throughput_unit"]
    if unit.startswith("samples/s"):
        rate *= int(row["seq_len"])
    return rate * (int(row["n_gpus"]) if "GPU" in unit and "total" not in unit else 1)


def main(plimsoll, path):
    off, groups = [], {}
    with tempfile.TemporaryDirectory() as folder, open(path, encoding="utf-8") as file:
        for row in csv.DictReader(file):
            asked = arguments(row, folder)
            if not asked:
                continue
            explanation = told(plimsoll, asked, row)
            if not explanation:
                continue
            off.append(tokens_per_second(row, explanation) / published(row) - 1)
            length = "up to 2048 tokens" if int(row["seq_len"]) <= 2048 else "longer"
            attention = "Triton's attention" if has_triton(row) else "PyTorch's attention"
            for group in (row["gpu"].split(" ")[0], attention, f"{attention}, {length}",
                          row["framework"].split(" ")[0]):
                groups.setdefault(group, []).append(off[-1])
            print(f'{row["id"]:10} {row["model"][:16]:16} {row["gpu"][:12]:12} x{row["n_gpus"]:4} {row["sharding"][:12]:12} '
                  f'{row["precision"][:14]:14} b{row["micro_batch"]:3} s{row["seq_len"]:6} {100 * off[-1]:+6.1f} %', flush=True)
    for group, deviations in sorted(groups.items()):
        print(f"{group:38} {sum(abs(x) <= 0.25 for x in deviations):3} of {len(deviations):3} within 25 %, "
              f"in the middle {100 * statistics.median(deviations):+.1f} %")
    within = sum(abs(x) <= 0.25 for x in off)
    print(f"{within} of {len(off)} within 25 %, median {100 * statistics.median(abs(x) for x in off):.1f} %")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
