"""Seconds of recorded steps that torch.compile made kernels for, and their ratio to those of the step before a change
(eager PyTorch, attention that is written out), beside what was measured or published (compiled.csv, whose head says how its
recordings were made): prints both, and fails where the median ratio is further off than is allowed here, or where a peak is
another than was measured.

    compiled_ratios.py PLIMSOLL CSV
"""
import csv
import json
import os
import statistics
import subprocess
import sys

MOST = 0.12  # of the median deviation of ratios


def told(plimsoll, path, row):
    """Milliseconds, and bytes that are reserved."""
    command = [plimsoll, "explain", path, "--device", f"sim:{row['catalogue']},memory=64TiB", "--batch", row["batch"],
               "--json"]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    explanation = json.loads(done.stdout)
    return 1e3 * explanation["setting"]["step_seconds"], explanation["peak"]["reserved_bytes"]


def main():
    plimsoll, path = sys.argv[1:3]
    folder = os.path.join(os.path.dirname(os.path.abspath(path)), "compiled")
    with open(path, encoding="utf-8") as file:
        rows = list(csv.DictReader(line for line in file if line[0] != "#"))
    deviations, failed = [], False
    for row in rows:
        ours = []
        for which in ("first", "second"):
            milliseconds, reserved = told(plimsoll, os.path.join(folder, row[which] + ".plim"), row)
            ours.append(milliseconds)
            if row[which + "_reserved"] and int(row[which + "_reserved"]) != reserved:
                print(f"{row[which]}: {reserved} bytes reserved, measured {row[which + '_reserved']}")
                failed = True
        theirs = [float(row[which + "_ms"]) for which in ("first", "second")]
        off = ours[1] / ours[0] / (theirs[1] / theirs[0]) - 1
        deviations.append(abs(off))
        print(f"{row['id']:16} {row['first']} {ours[0]:.1f} ms, {theirs[0]:g} measured; {row['second']} {ours[1]:.1f}, "
              f"{theirs[1]:g}; ratio {ours[1] / ours[0]:.3f}, {theirs[1] / theirs[0]:.3f}: {off:+.1%}")
    median = statistics.median(deviations)
    print(f"{len(rows)} rows, median {median:.1%}, largest {max(deviations):.1%}, allowed {MOST:.0%}")
    return failed or median > MOST


sys.exit(main())
