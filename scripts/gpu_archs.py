#!/usr/bin/env python3
"""Lists what kernels are compiled for: gpu_archs.py NVCC ARCHS

Prints compute capabilities as nvcc writes them (86 90), smallest first, on one line.
ARCHS   all: every one that this nvcc knows; native: those of the GPUs that are here, nothing where
        there is none; or a list (80,90)
A GPU that nvcc does not know counts as the next older one that it knows, whose code the driver runs
or translates.
"""
import re
import shutil
import subprocess
import sys


def known_to(nvcc):
    listed = subprocess.run([nvcc, '--list-gpu-code'], stdout=subprocess.PIPE, check=True)
    return [int(n) for n in re.findall(r'\bsm_(\d+)\b', listed.stdout.decode())]


def present():
    """As the driver tells it; CUDA's runtime is not needed."""
    tool = shutil.which('nvidia-smi')
    if not tool:
        return []
    told = subprocess.run([tool, '--query-gpu=compute_cap', '--format=csv,noheader'],
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    lines = told.stdout.decode(errors='replace').split('\n')
    if told.returncode != 0:
        return []
    return [int(n.replace('.', '')) for n in lines if re.fullmatch(r'\d+\.\d', n)]


def listed(text, known):
    names = text.split(',')
    wrong = [name for name in names if name not in map(str, known)]
    if wrong:
        sys.exit(f"gpu_archs: '{wrong[0]}' is none that nvcc knows, expected all, native or some of "
                 + ','.join(map(str, sorted(known))))
    return [int(name) for name in names]


def main(nvcc, archs):
    known = known_to(nvcc)
    if archs == 'all':
        chosen = known
    elif archs == 'native':
        chosen = [max(a for a in known if a <= gpu) for gpu in present() if gpu >= min(known)]
    else:
        chosen = listed(archs, known)
    print(*sorted(set(chosen)))


if __name__ == '__main__':
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
