#!/usr/bin/env python3
"""How long a step of recorded programs is said to take, beside what others published (programs.csv).

    tests/bench/bench_programs.py build-dev/autotune/plimsoll PYTHON [--recordings FOLDER] [--only WORD] [--csv FILE]

PYTHON is one with PyTorch and transformers (tests/virtual/install.sh VENV 13). Each program of programs/ is recorded at
small batches whose kernels are those of the row's, on a virtual A100, or where it has many convolutions on a GPU of the row's
kind; and explained at each row's batch on the row's GPU. Some forty recordings, most of a minute each. They are kept in FOLDER where
it is said, and taken from there again: empty it when the recording itself has changed. No GPU is needed.

Prints each row's estimate, what was published and how far the estimate is off, then medians. Half of the rows, told by a hash of
their names, are held back: no rule of the clock may be chosen by how far these are off.
"""
import argparse
import csv
import hashlib
import os
import statistics
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True  # nothing is left in the tree
from published import told

HERE = os.path.dirname(os.path.abspath(__file__))
# PyTorch for CUDA 13 has no kernels for a V100; cuDNN has no other kinds of convolutions for it than for Turing.
RECORDED_ON = {"V100": "RTX-2080-Ti", "Quadro-RTX": "RTX-2080-Ti", "RTX-2080": "RTX-2080-Ti", "T4": "RTX-2080-Ti",
               "A10": "RTX-3090", "RTX-3090": "RTX-3090", "RTX-A6000": "RTX-3090", "RTX-4090": "RTX-4090",
               "RTX-6000-Ada": "RTX-4090", "L4": "RTX-4090", "H100": "H100-SXM5-80GB", "A100": "A100-SXM4-80GB"}


def is_held_back(row):
    return hashlib.sha256(row["id"].encode()).digest()[0] % 2 == 1


def recorded_on(row):
    """The GPU whose convolutions are those of the row's GPU; products and attention are told alike from any."""
    if not row["program"].startswith("resnet"):
        return "A100-SXM4-80GB"
    return RECORDED_ON[max((card for card in RECORDED_ON if row["card"].startswith(card)), key=len)]


def batches_of(row):
    """Around the row's, or where that is large, such as have the kernels of large ones; alone where no others do alike."""
    batch = int(row["batch"])
    if batch >= 16:
        return "8,16,24,32"
    if row["program"].startswith("bert") and batch >= 8:
        return str(batch)
    return "1,2,3,4" if batch < 8 else f"{batch - 6},{batch - 4},{batch - 2},{batch}"


def recording_of(options, row):
    """The file, or None."""
    program, gpu, batches = row["program"], recorded_on(row), batches_of(row)
    key = hashlib.sha256(" ".join((program, gpu, batches)).encode()).hexdigest()[:12]
    path = os.path.join(options.recordings, key + ".plim")
    if os.path.exists(path):
        return path
    script, *arguments = program.split()
    command = [options.python, os.path.join(HERE, "programs", script), "--batch", "{batch}", *arguments]
    done = subprocess.run([options.plimsoll, "record", "-o", path, "--quiet", "--batch", batches,
                           *([] if "," in batches else ["--each-batch"]),
                           "--device", f"sim:{gpu},memory=64TiB", "--", *command], capture_output=True, text=True, check=False)
    if done.returncode:
        print(program, "cannot be recorded:", (done.stderr or done.stdout).strip()[:200], file=sys.stderr)
    return path if os.path.exists(path) else None


def estimate(options, row):
    """Samples a second, or None."""
    path = recording_of(options, row)
    if not path:
        return None
    explanation = told(options.plimsoll,
                       [path, "--device", f'sim:{row["card"]},memory=64TiB', "--batch", row["batch"]], row)
    return explanation and explanation["setting"]["samples_per_second"]


def rows_of(options):
    with open(os.path.join(HERE, "programs.csv"), encoding="utf-8") as file:
        lines = [line for line in file if not line.startswith("#")]
    return [row for row in csv.DictReader(lines) if options.only in row["id"]]


def print_medians(done):
    groups = {}
    for row, deviation in done:
        half = "held back" if is_held_back(row) else "tuned"
        family = row["model"].split("-")[0]
        for group in ("all", half, family, f"{family}, {half}", row["card"], row["id"].split("-")[0] + " (source)",
                      f'{family}, {"fp32 or tf32" if "32" in row["program"].split("--precision ")[1][:4] else "fp16"}'):
            groups.setdefault(group, []).append(deviation)
    for group, off in sorted(groups.items()):
        print(f"{group:24} {len(off):4} rows, {sum(abs(x) <= 0.2 for x in off):3} within 20 %, median off by "
              f"{100 * statistics.median(abs(x) for x in off):5.1f} %, in the middle {100 * statistics.median(off):+6.1f} %")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("plimsoll")
    parser.add_argument("python")
    parser.add_argument("--recordings")
    parser.add_argument("--only", default="", help="rows whose id has this in it")
    parser.add_argument("--csv", help="write id, estimate, published and ratio to this file")
    options = parser.parse_args()
    os.environ["PLIMSOLL_STORE"] = "off"
    done = []
    with tempfile.TemporaryDirectory() as folder:
        options.recordings = options.recordings or folder
        os.makedirs(options.recordings, exist_ok=True)
        print(f'{"row":34} {"half":9} {"batch":>5} {"estimate":>9} {"published":>9} {"ratio":>6}')
        for row in rows_of(options):
            ours, published = estimate(options, row), float(row["samples_per_second"])
            if ours is None:
                continue
            done.append((row, ours / published - 1))
            print(f'{row["id"]:34} {"held back" if is_held_back(row) else "tuned":9} {row["batch"]:>5} {ours:9.1f} '
                  f'{published:9.1f} {ours / published:6.3f}', flush=True)
    if options.csv:
        with open(options.csv, "w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows((row["id"], f"{1 + off:.4f}") for row, off in done)
    if done:
        print_medians(done)


if __name__ == "__main__":
    main()
