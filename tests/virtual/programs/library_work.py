"""What NVIDIA's libraries ask for besides their operands, operation by operation:

    python library_work.py [KIND ...]        conv, rnn, fft, solver, sparse, pairs (of sparse matrices)

A JSON line for each operation: its name and the bytes of every block that it asked for, in their order.
"""
import itertools
import json
import sys
import warnings

import torch
from torch import nn

d = 'cuda'
warnings.filterwarnings('ignore')


def convs():
    shapes = [(8, 64, 56, 64, 3, 1, 1), (8, 64, 56, 128, 1, 1, 1), (8, 128, 28, 128, 3, 2, 1), (8, 3, 112, 64, 7, 2, 1),
              (8, 256, 14, 256, 3, 1, 1), (8, 96, 28, 96, 7, 1, 96), (4, 32, 64, 32, 3, 1, 32), (2, 16, 64, 2, 1, 1, 1),
              (8, 64, 32, 64, 3, 1, 4), (1, 512, 7, 2048, 1, 1, 1)]
    types = [(torch.float32, False), (torch.bfloat16, True), (torch.float16, False), (torch.float32, True)]
    for (n, c, size, out, kernel, stride, groups), (dtype, last) in itertools.product(shapes, types):
        order = torch.channels_last if last else torch.contiguous_format
        layer = nn.Conv2d(c, out, kernel, stride, kernel // 2, groups=groups).to(d, dtype, memory_format=order)
        x = torch.randn(n, c, size, size, device=d, dtype=dtype, requires_grad=True).to(memory_format=order)
        yield f'conv {n}x{c}x{size} to {out} k{kernel} s{stride} g{groups} {dtype} last={last}', layer, x
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        x = torch.randn(2, 8, 16, 32, 32, device=d, dtype=dtype, requires_grad=True)
        yield f'conv3d {dtype}', nn.Conv3d(8, 16, 3, padding=1).to(d, dtype), x
        yield f'transposed3d {dtype}', nn.ConvTranspose3d(8, 4, 2, 2).to(d, dtype), x
        x = torch.randn(8, 32, 1000, device=d, dtype=dtype, requires_grad=True)
        yield f'conv1d {dtype}', nn.Conv1d(32, 64, 5, padding=2).to(d, dtype), x
        x = torch.randn(8, 64, 28, 28, device=d, dtype=dtype, requires_grad=True)
        yield f'transposed {dtype}', nn.ConvTranspose2d(64, 32, 4, 2, 1).to(d, dtype), x


class First(nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, x):
        return self.layer(x)[0]


def rnns():
    for kind, (n, t, inputs, hidden, layers, both, drop), dtype in itertools.product(
            (nn.LSTM, nn.GRU, nn.RNN),
            ((8, 100, 80, 256, 2, True, 0.1), (8, 100, 80, 256, 1, False, 0), (32, 50, 256, 256, 2, False, 0),
             (64, 128, 512, 1024, 2, False, 0.2), (3, 17, 40, 72, 3, True, 0), (16, 64, 128, 128, 1, True, 0)),
            (torch.float32, torch.float16)):
        layer = kind(inputs, hidden, layers, bidirectional=both, batch_first=True, dropout=drop).to(d, dtype)
        x = torch.randn(n, t, inputs, device=d, dtype=dtype, requires_grad=True)
        yield f'{kind.__name__} {n}x{t}x{inputs} h{hidden} l{layers} both={both} drop={drop} {dtype}', First(layer), x
    layer = nn.LSTM(64, 128, 2, batch_first=True, proj_size=48).to(d)
    yield 'LSTM projected', First(layer), torch.randn(8, 40, 64, device=d, requires_grad=True)


def ffts():
    sizes = ((8, 1024), (8, 1000), (8, 1009), (3, 4096), (1, 1 << 20), (64, 65536), (16, 331), (5, 30030), (2, 127 * 8), (2, 131 * 8))
    for (n, size), dtype in itertools.product(sizes, (torch.float32, torch.float64)):
        x = torch.randn(n, size, device=d, dtype=dtype)
        for name in ('rfft', 'fft', 'ifft'):
            yield f'{name} {n}x{size} {dtype}', getattr(torch.fft, name), x
        half = torch.fft.rfft(x)
        yield f'irfft {n}x{size} {dtype}', lambda h, size=size: torch.fft.irfft(h, n=size), half
    for shape in ((16, 32, 64, 64), (4, 3, 96, 100), (2, 2, 256, 256), (2, 1, 37, 53), (1, 1, 1024, 1024), (4, 20, 64, 65)):
        x = torch.randn(shape, device=d)
        yield f'rfft2 {shape}', torch.fft.rfft2, x
        yield f'fft2 {shape}', torch.fft.fft2, x
        yield f'irfft2 {shape}', lambda h, shape=shape: torch.fft.irfft2(h, s=shape[-2:]), torch.fft.rfft2(x)
    x = torch.randn(2, 4, 32, 32, 32, device=d)
    yield 'rfftn', lambda x: torch.fft.rfftn(x, dim=(2, 3, 4)), x
    yield 'stft', lambda x: torch.stft(x, 512, 128, window=torch.hann_window(512, device=d), return_complex=True), torch.randn(4, 16000, device=d)


def solvers():
    for (batch, n), dtype in itertools.product(((1, 64), (1, 500), (16, 64), (4, 300), (1, 33), (100, 8), (1, 1500)),
                                               (torch.float32, torch.float64)):
        a = torch.randn(batch, n, n, device=d, dtype=dtype).squeeze(0)
        s = a @ a.mT + n * torch.eye(n, device=d, dtype=dtype)
        names = ('cholesky', 'eigh', 'eigvalsh', 'svdvals', 'qr', 'inv', 'det', 'lu_factor', 'svd', 'slogdet', 'inv_ex')
        for name in names:
            if n == 1500 and 'sv' in name:
                continue
            function = getattr(torch.linalg, name)
            yield f'{name} {batch}x{n} {dtype}', function, s
        yield f'solve {batch}x{n} {dtype}', lambda s: torch.linalg.solve(s, s), s
        yield f'triangular {batch}x{n} {dtype}', lambda s: torch.linalg.solve_triangular(s, s, upper=False), s
        yield f'cholesky_solve {batch}x{n} {dtype}', lambda s: torch.cholesky_solve(s, s), s
        yield f'lstsq {batch}x{n} {dtype}', lambda s: torch.linalg.lstsq(s, s), s


def sparse():
    for n, k, width in ((1000, 8000, 128), (5000, 20000, 64), (300, 300, 16), (20000, 200000, 32)):
        torch.manual_seed(n)
        index = torch.randint(0, n, (2, k), device=d)
        coo = torch.sparse_coo_tensor(index, torch.randn(k, device=d), (n, n))
        x = torch.randn(n, width, device=d)
        yield f'coalesce {n} {k}', lambda c: c.coalesce(), coo
        one = coo.coalesce()
        yield f'coo mm {n} {k} {width}', lambda x, one=one: torch.sparse.mm(one, x), x
        csr = one.to_sparse_csr()
        yield f'csr mm {n} {k} {width}', lambda x, csr=csr: csr @ x, x
        yield f'csr mv {n} {k}', lambda x, csr=csr: csr @ x[:, 0].contiguous(), x
        yield f'to csr {n} {k}', lambda c: c.to_sparse_csr(), one
        yield f'sddmm {n} {k} {width}', lambda x, csr=csr: torch.sparse.sampled_addmm(csr, x, x.mT.contiguous()), x


def pairs():
    for n, k in ((1000, 8000), (5000, 20000), (300, 300)):
        torch.manual_seed(n)
        index = torch.randint(0, n, (2, k), device=d)
        one = torch.sparse_coo_tensor(index, torch.randn(k, device=d), (n, n)).coalesce()
        yield f'csr csr {n} {k}', lambda c: c @ c, one.to_sparse_csr()
        yield f'coo coo {n} {k}', lambda c: torch.sparse.mm(c, c), one


KINDS = {'conv': convs, 'rnn': rnns, 'fft': ffts, 'solver': solvers, 'sparse': sparse, 'pairs': pairs}


def asked(before):
    trace = torch.cuda.memory._snapshot()['device_traces'][0]
    return [t['size'] for t in trace[before:] if t['action'] == 'alloc']


def events():
    return len(torch.cuda.memory._snapshot()['device_traces'][0])


def main():
    torch.manual_seed(0)
    for kind in sys.argv[1:] or KINDS:
        for name, function, x in KINDS[kind]():
            torch.cuda.memory._record_memory_history(None)
            torch.cuda.memory._record_memory_history(context=None, max_entries=100000)
            begin = events()
            try:
                y = function(x)
                forward = asked(begin)
                backward = None
                if isinstance(function, nn.Module):
                    middle = events()
                    y.sum().backward()
                    backward = asked(middle)
                print(json.dumps({'op': name, 'forward': forward, 'backward': backward}), flush=True)
            except Exception as error:
                print(json.dumps({'op': name, 'error': str(error)[:200]}), flush=True)


main()
