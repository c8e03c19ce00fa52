"""The engine's streams of numbers (devices/random.h: Philox4x32-10), of which weights, tokens and pixels are drawn."""
import numpy as np
import torch

TOKEN_SEED = 1 << 30
LIMIT = np.float32(0.02 * 3 ** 0.5)  # uniform with a standard deviation of 0.02


def words(seed, count):
    """The first `count` words of a seed's stream."""
    u64 = np.uint64
    counter = np.arange((count + 3) // 4, dtype=u64)
    low = u64(0xFFFFFFFF)
    c = [counter & low, counter >> u64(32), np.zeros_like(counter), np.zeros_like(counter)]
    k0, k1 = seed & 0xFFFFFFFF, seed >> 32
    for _ in range(10):
        p0, p1 = u64(0xD2511F53) * c[0], u64(0xCD9E8D57) * c[2]
        c = [(p1 >> u64(32)) ^ c[1] ^ u64(k0), p1 & low, (p0 >> u64(32)) ^ c[3] ^ u64(k1), p0 & low]
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return np.stack(c, 1).reshape(-1)[:count]


def weights(seed, shape):
    unit = (words(seed, int(np.prod(shape))) >> np.uint64(8)).astype(np.float32) * np.float32(2**-24)
    return torch.from_numpy((LIMIT * (2 * unit - 1)).astype(np.float32).reshape(shape))


def tokens(vocabulary, batch, seq):
    ids = words(TOKEN_SEED, batch * seq) * np.uint64(vocabulary) >> np.uint64(32)
    return torch.from_numpy(ids.astype(np.int64).reshape(batch, seq))
