"""Which products with a 4-bit weight bitsandbytes 0.50.2 makes in one kernel, asked of its own code.

    VENV/bin/python make_fused_4bit.py > fused_4bit.txt        (under the oracle's run, or on a machine with a GPU)

A line: compute capability, multiprocessors, dtype, rows, columns, summed length, and 1 where it is one kernel.
"""
import random

import torch
from bitsandbytes.backends.cuda import ops

GPUS = [(70, 80), (75, 40), (75, 72), (80, 108), (86, 82), (86, 28), (87, 16), (89, 128), (89, 58), (90, 132), (100, 148),
        (110, 20), (120, 170), (120, 84), (121, 48)]
TYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
SIZES = [64, 256, 576, 704, 1024, 1536, 2048, 2560, 3072, 4096, 5120, 8192, 11008, 14336, 28672]
random.seed(1)


def is_fused(gpu, dtype, m, n, k):
    if m > ops._gemm_4bit_custom_max_m or k % 64:
        return False
    ops._gpu_dispatch_props = lambda _: (gpu[1], gpu[0] // 10, gpu[0] % 10)
    return ops._gemm_4bit_use_custom_cuda.__wrapped__(0, TYPES[dtype], m, n, k)


for gpu in GPUS:
    for _ in range(220):
        dtype = random.choice(["bf16", "fp16", "bf16", "fp16", "fp32"])
        m = random.choice([1, 4, 5, 6, 7, 8, 9, 10, 12, 16, 17, 23, 24, 32, 33, 48, 64, 65, 96, 128, 129, 192, 256, 320, 321, 384,
                           512, 513, 1536, 1537])
        n, k = random.choice(SIZES), random.choice(SIZES + [100])
        print(gpu[0], gpu[1], dtype, m, n, k, int(is_fused(gpu, dtype, m, n, k)))
