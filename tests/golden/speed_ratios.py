"""The simulated clock beside training speeds that others published (speed-ratios.csv, whose head says what the stacks
are): prints how far off each row is, and fails when the median over a kind of stack is more than is allowed here.

    speed_ratios.py PLIMSOLL CSV [SERIES]     only series that contain SERIES; nothing is checked then

A row of stack E is compared as it is. Rows of E* and C are compared with the other rows of their group: the group's mean
factor, which stands for the stack, is taken out first.
"""
import collections
import csv
import json
import math
import os
import re
import statistics
import subprocess
import sys
import tempfile

MOST = {"E": 0.06, "E*": 0.08, "C": 0.12}  # of the median deviation
PRECISIONS = {"fp32 (tf32 off)": "fp32", "bf16 weights + autocast": "bf16-mixed"}
PRESENT_OPTIMIZERS = {"adam (foreach)": "adamw", "adamw (own loop over parameters)": "adamw", "none": "sgd"}
FULL_SEQ = 8192


def dims_of(text):
    """The sizes in 'L24 d1024 h16 kv4 ff4096 v10000 untied'."""
    return {key: int(value) for key, value in re.findall(r"\b([a-zA-Z]+?)(\d+)\b", text)}


def spec_of(row):
    d = dims_of(row["dims"])
    tied = "untied" not in row["dims"]
    if row["family"] == "llama":
        model = {"family": "llama", "vocab_size": d["v"], "hidden_size": d["d"], "intermediate_size": d["ff"],
                 "num_hidden_layers": d["L"], "num_attention_heads": d["h"],
                 "num_key_value_heads": d.get("kv", d["h"]), "max_position_embeddings": FULL_SEQ}
    elif row["family"] == "opt":
        model = {"family": "opt", "vocab_size": d["v"], "hidden_size": d["d"], "ffn_dim": d["ff"],
                 "num_hidden_layers": d["L"], "num_attention_heads": d["h"], "max_position_embeddings": FULL_SEQ}
    elif row["family"] == "bert":
        model = {"family": "bert", "vocab_size": d["v"], "hidden_size": d["d"], "intermediate_size": d["ff"],
                 "num_hidden_layers": d["L"], "num_attention_heads": d["h"]}
    else:
        model = {"family": "gpt2", "vocab_size": d["v"], "n_embd": d["d"], "n_inner": d["ff"], "n_layer": d["L"],
                 "n_head": d["h"], "n_positions": FULL_SEQ}
    model["tie_word_embeddings"] = str(tied).lower()
    return "name: published\nmodel:\n" + "".join(f"  {key}: {value}\n" for key, value in model.items())


def predict(plimsoll, row, spec):
    """Seconds of what was measured."""
    def step(accumulation):
        command = [plimsoll, "explain", spec, "--device", f"sim:{row['catalogue']},memory=64TiB", "--json",
                   "--batch", row["micro_batch"], "--seq", row["seq_len"], "--accumulation", str(accumulation),
                   "--precision", PRECISIONS.get(row["precision"], row["precision"]),
                   "--weights", "bf16" if row["precision"].startswith("bf16 w") or row["precision"] == "bf16" else "fp32",
                   "--optimizer", PRESENT_OPTIMIZERS.get(row["optimizer"], row["optimizer"]),
                   "--attention", "eager" if row["attn"] == "eager" else "sdpa", "--checkpointing", "none"]
        done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
        return json.loads(done.stdout)["setting"]["step_seconds"]
    accumulation = int(row["grad_accum"])
    if row["optimizer"] == "none":  # forward and backward alone: what one more micro-step takes
        return step(2) - step(1)
    return step(accumulation)


def group_of(row):
    if row["stack"] == "E":
        return None
    if row["stack"] == "C":  # ratios over batches, and over GPUs for one program
        series = re.sub(r"^(lg|rp)/[^/]+", r"\1", row["series"])
        return series, row["precision"], row["attn"]
    return row["series"], row["precision"], row["optimizer"]


def main():
    plimsoll, path = sys.argv[1:3]
    wanted = sys.argv[3] if len(sys.argv) > 3 else ""
    with open(path, encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(line for line in file if line[0] != "#") if wanted in row["series"]]
    groups, logs = collections.defaultdict(list), {}
    with tempfile.TemporaryDirectory() as folder:
        for row in rows:
            spec = os.path.join(folder, "published.yaml")
            with open(spec, "w", encoding="utf-8") as file:
                file.write(spec_of(row))
            logs[row["id"]] = math.log(predict(plimsoll, row, spec) / (float(row["step_ms"]) / 1e3))
            groups[group_of(row)].append(logs[row["id"]])
    deviations = collections.defaultdict(list)
    for row in rows:
        group = groups[group_of(row)]
        if row["stack"] != "E" and len(group) < 2:
            continue
        factor = 0 if row["stack"] == "E" else statistics.mean(group)
        off = math.expm1(logs[row["id"]] - factor)
        deviations[row["stack"]].append(abs(off))
        print(f"{row['id']:8} {row['stack']:2} {off:+7.1%}  {row['series']}, {row['precision']}, {row['attn']}, "
              f"sequence {row['seq_len']}, batch {row['micro_batch']}: {row['step_ms']} ms, factor {math.exp(factor):.2f}")
    failed = False
    for stack, all_of in deviations.items():
        median = statistics.median(all_of)
        failed |= not wanted and median > MOST[stack]
        print(f"{stack}: {len(all_of)} rows, median {median:.1%}, mean {statistics.mean(all_of):.1%}, "
              f"largest {max(all_of):.1%}, allowed {MOST[stack]:.0%}")
    return failed


sys.exit(main())
