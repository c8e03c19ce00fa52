"""Eight training steps of a small model that needs one of CUDA's libraries besides cuBLAS and cuDNN.

    python math_libraries.py fft        a Fourier neural operator
    python math_libraries.py solver     losses of Cholesky's factor, eigenvalues, singular values and QR
    python math_libraries.py sparse     a graph's convolution, by a sparse matrix, and a sparse embedding
"""
import sys

import torch
from torch import nn

import peaks

STEPS, BATCH = 8, 16


class Spectral(nn.Module):
    def __init__(self, channels=32, modes=12):
        super().__init__()
        self.modes = modes
        self.weight = nn.Parameter(torch.randn(channels, channels, modes, modes, dtype=torch.cfloat) * 0.02)

    def forward(self, x):
        seen = torch.fft.rfft2(x)
        out = torch.zeros_like(seen)
        kept = seen[..., :self.modes, :self.modes]
        out[..., :self.modes, :self.modes] = torch.einsum('bixy,ioxy->boxy', kept, self.weight)
        return nn.functional.gelu(torch.fft.irfft2(out, s=x.shape[-2:]))


def fft():
    model = nn.Sequential(nn.Conv2d(1, 32, 1), Spectral(), Spectral(), nn.Conv2d(32, 1, 1)).cuda()
    return model, lambda: model(torch.randn(BATCH, 1, 64, 64, device='cuda')).square().mean()


def solver():
    model = nn.Linear(64, 64).cuda()

    def loss():
        seen = model(torch.randn(BATCH, 64, device='cuda'))
        matrix = seen.t() @ seen / BATCH + torch.eye(64, device='cuda')
        return (torch.linalg.cholesky(matrix).diagonal().log().sum() + torch.linalg.eigh(matrix)[0].sum() +
                torch.linalg.svdvals(matrix).sum() + torch.linalg.qr(model.weight)[1].square().mean() +
                torch.linalg.solve(matrix, seen.t()).square().mean())
    return model, loss


def sparse():
    nodes = 2000
    edges = torch.randint(0, nodes, (2, 8 * nodes), generator=torch.Generator().manual_seed(1)).cuda()
    near = torch.sparse_coo_tensor(edges, torch.ones(edges.shape[1], device='cuda'), (nodes, nodes)).coalesce()
    model = nn.Sequential(nn.Embedding(nodes, 64), nn.Linear(64, 16)).cuda()
    return model, lambda: model[1](torch.sparse.mm(near, model[0].weight)).square().mean()


def main():
    torch.manual_seed(0)
    model, loss = {'fft': fft, 'solver': solver, 'sparse': sparse}[sys.argv[1]]()
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(STEPS):
        loss().backward()
        optimizer.step()
        optimizer.zero_grad()
    peaks.report()


main()
