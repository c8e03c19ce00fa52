"""Seconds and peak memory of whole plimsoll processes, the median of some runs; and, where PyTorch on a virtual GPU is
installed, how long its own training step takes beside the engine's. One line of JSON a figure.

    bench_commands.py PLIMSOLL BENCH_REPLAY
    PLIM_ORACLE: the command that starts Python on the virtual GPU, such as 'OUT/run V/bin/python'
    PLIM_ORACLE_GOLDEN: the oracle's golden.py
"""
import json
import os
import shlex
import statistics
import subprocess
import sys
import tempfile
import time

EVERY_GPU = ("plan gpt2-124m --device all --seq 256,512,1024 --checkpointing none,full "
             "--precision bf16-mixed,fp16-mixed,fp32 --json --effective-batch ")
COMMANDS = {  # name: (runs, arguments, wanted seconds)
    "explain of a 32-layer model": (
        15, "explain llama-3-8b --device sim:H200-SXM-141GB --batch 2 --seq 4096 --precision bf16 "
            "--checkpointing full --json", 0.05),
    "plan on every GPU": (
        5, "plan gpt2-124m --device all --seq 256,512,1024 --checkpointing none,full --precision fp32,bf16-mixed,bf16 "
           "--json", 2.0),
    "plan on every GPU, effective batch": (
        5, EVERY_GPU + "512", 2.0),
    "the same, expandable segments": (3, EVERY_GPU + "512 --alloc-conf expandable_segments:True", 4.0),
    "the same, a batch that few divide": (3, EVERY_GPU + "500", 4.0),
    "the same, LoRA": (3, EVERY_GPU + "512 --lora r=8", 4.0),
    "the same, FSDP": (3, EVERY_GPU + "512 --sharding fsdp --world 8", 4.0),
    "plan with LoRA on every GPU": (
        5, "plan llama-3-8b --device all --lora r=16 --precision bf16 --seq 2048 --effective-batch 64 --json", 2.0),
    "explain of what does not fit": (
        15, "explain llama-3-8b --device sim:RTX-4090 --batch 8 --seq 4096 --precision bf16 --checkpointing full --json",
        0.05),
    "env of an answer that is kept": (
        51, "env llama-3-8b --device sim:H100-SXM5-80GB --effective-batch 256 --precision bf16 --on-miss nothing --strict",
        0.005),
}
KEPT = "plan llama-3-8b --device sim:H100-SXM5-80GB --effective-batch 256 --precision bf16 --quiet"  # what env finds
ENGINE = {"model": "tinyllama-1.1b", "checkpointing": "none"}  # which row of bench_replay PyTorch runs too
STEPS = 4                                                      # of a replay, and of PyTorch
PYTORCH_STEPS = """
import json, os, sys, time
golden_py, root = sys.argv[1], sys.argv[2]
sys.path.insert(0, os.path.dirname(golden_py))
import golden
golden.GPU(80, 1 << 46)
case = dict(kind="lm", config="tinyllama-1.1b.json", precision="bf16", optimizer="adamw",
            checkpointing="none", seq=2048)
at = []
golden.train(case, root, 4, %d, lambda: at.append(time.perf_counter()))
print(json.dumps([b - a for a, b in zip(at, at[1:])]))
""" % STEPS


def measure(arguments):
    """(seconds, peak resident bytes) of one process."""
    start = time.perf_counter()
    process = subprocess.Popen(arguments, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if os.waitstatus_to_exitcode(status) not in (0, 1):  # 1: it does not fit
        sys.exit(f"{shlex.join(arguments)}: wait status {status}")
    return time.perf_counter() - start, usage.ru_maxrss * 1024


def bench_command(plimsoll, name):
    runs, arguments, wanted = COMMANDS[name]
    results = [measure([plimsoll, *arguments.split()]) for _ in range(runs)]
    print(json.dumps({"bench": name, "median_seconds": round(statistics.median(r[0] for r in results), 4),
                      "wanted_seconds": wanted, "peak_rss_bytes": max(r[1] for r in results)}), flush=True)


def bench_pytorch(bench_replay):
    oracle, golden = os.environ.get("PLIM_ORACLE"), os.environ.get("PLIM_ORACLE_GOLDEN")
    if not oracle or not golden:
        print("PyTorch's own step: skipped, PLIM_ORACLE and PLIM_ORACLE_GOLDEN are not set", file=sys.stderr)
        return
    configs = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "golden", "configs")
    pytorch = json.loads(subprocess.run([*shlex.split(oracle), "-c", PYTORCH_STEPS, golden, configs], check=True,
                                        stdout=subprocess.PIPE).stdout)
    rows = map(json.loads, subprocess.run([bench_replay], check=True, stdout=subprocess.PIPE).stdout.splitlines())
    ours = next(row for row in rows if ENGINE.items() <= row.items())["median_ms"] / 1e3 / STEPS
    theirs = statistics.median(pytorch)
    print(json.dumps({"bench": "step of tinyllama-1.1b", "engine_seconds": round(ours, 6),
                      "pytorch_seconds": round(theirs, 4), "times_faster": round(theirs / ours)}))


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    with tempfile.TemporaryDirectory() as store:
        os.environ["PLIMSOLL_STORE"] = store
        measure([sys.argv[1], *KEPT.split()])
        for name in COMMANDS:
            bench_command(sys.argv[1], name)
    bench_pytorch(sys.argv[2])


main()
