"""Training steps of small models, each of layers that others have not:

    python layers.py MODEL [--precision fp32|bf16|fp16] [--channels-last] [--batch N] [--steps N]
"""
import argparse
import contextlib

import torch
import torch.nn.functional as F
from torch import nn

import peaks


class Recurrent(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.layers = kind(80, 256, 2, bidirectional=True, batch_first=True, dropout=0.1)
        self.head = nn.Linear(512, 40)

    def forward(self, x):
        return self.head(self.layers(x)[0])


class Words(nn.Module):
    """Sequences of several lengths, and a loss over their alignments."""

    def __init__(self):
        super().__init__()
        self.layers = nn.LSTM(80, 256, 2, bidirectional=True, batch_first=True)
        self.head = nn.Linear(512, 40)

    def forward(self, x):
        lengths = torch.arange(len(x), 0, -1) * (x.shape[1] // len(x))
        packed = nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True)
        y, lengths = nn.utils.rnn.pad_packed_sequence(self.layers(packed)[0], batch_first=True)
        targets = torch.ones(len(x), 4, dtype=torch.long, device=x.device)
        return F.ctc_loss(self.head(y).log_softmax(-1).transpose(0, 1), targets, lengths,
                          torch.full((len(x),), 4))


class Bags(nn.Module):
    def __init__(self):
        super().__init__()
        self.bags = nn.ModuleList(nn.EmbeddingBag(50000, 64, mode=mode) for mode in ('sum', 'mean', 'max'))
        self.head = nn.Sequential(nn.Linear(192, 512), nn.ReLU(), nn.Linear(512, 1))

    def forward(self, x):
        return self.head(torch.cat([bag(x) for bag in self.bags], 1))


class UNet(nn.Module):
    """Down by strides, up by transposed convolutions, in two or three dimensions."""

    def __init__(self, dimensions, norm, channels=16):
        super().__init__()
        conv = (nn.Conv1d, nn.Conv2d, nn.Conv3d)[dimensions - 1]
        up = (nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d)[dimensions - 1]
        self.enter = nn.Sequential(conv(3, channels, 3, padding=1), norm(channels), nn.SiLU())
        self.down = nn.Sequential(conv(channels, 2 * channels, 3, stride=2, padding=1), norm(2 * channels), nn.SiLU())
        self.up = up(2 * channels, channels, 2, stride=2)
        self.leave = conv(2 * channels, 2, 1)

    def forward(self, x):
        wide = self.enter(x)
        return self.leave(torch.cat([wide, self.up(self.down(wide))], 1))


class Attention(nn.Module):
    """The same by a mask, by causality and with fewer keys' heads."""

    def __init__(self):
        super().__init__()
        self.project = nn.Linear(256, 3 * 256)

    def forward(self, x):
        q, k, v = (part.unflatten(-1, (4, 64)).transpose(1, 2) for part in self.project(x).chunk(3, -1))
        mask = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool, device=x.device).tril()
        masked = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        causal = F.scaled_dot_product_attention(q, k, v, is_causal=True, dropout_p=0.1)
        grouped = F.scaled_dot_product_attention(q, k[:, :2], v[:, :2], enable_gqa=True)
        return masked + causal + grouped


class Warped(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 16, 3, padding=1)
        self.theta = nn.Parameter(torch.eye(2, 3)[None])

    def forward(self, x):
        grid = F.affine_grid(self.theta.expand(len(x), -1, -1), x.shape, align_corners=False)
        y = self.conv(F.grid_sample(x, grid, align_corners=False))
        y = F.interpolate(y, scale_factor=2, mode='bilinear', align_corners=False)
        return F.adaptive_avg_pool2d(F.max_pool2d(y, 3, 2), 7) + F.pixel_shuffle(y.mean((2, 3))[:, :, None, None], 1)


class Chosen(nn.Module):
    """Sorting, the largest, running sums, drawn indices, sums by index."""

    def __init__(self):
        super().__init__()
        self.project = nn.Linear(256, 256)

    def forward(self, x):
        y = self.project(x)
        top = y.topk(32, dim=-1).values.sum(-1, keepdim=True)
        rank = y.sort(-1).values.cumsum(-1)
        drawn = torch.multinomial(y.detach().flatten(0, 1).float().softmax(-1), 8)
        picked = y.flatten(0, 1).gather(1, drawn).mean()
        summed = torch.zeros_like(y[0]).index_add(0, drawn[:, 0] % len(y[0]), y.flatten(0, 1))
        return top + rank + picked + summed + torch.logsumexp(y, -1, keepdim=True)


def images(batch, size=64):
    return torch.randn(batch, 3, size, size, device='cuda')


def depthwise(kernel):
    return nn.Sequential(nn.Conv2d(3, 64, 4, 4), nn.Conv2d(64, 64, kernel, padding=kernel // 2, groups=64),
                         nn.GroupNorm(8, 64), nn.GELU(), nn.Conv2d(64, 64, 3, padding=2, dilation=2, groups=4),
                         nn.BatchNorm2d(64), nn.ReLU(inplace=True), nn.Conv2d(64, 8, 1, bias=False))


MODELS = {
    'lstm': (lambda: Recurrent(nn.LSTM), lambda n: torch.randn(n, 100, 80, device='cuda')),
    'gru': (lambda: Recurrent(nn.GRU), lambda n: torch.randn(n, 100, 80, device='cuda')),
    'words': (Words, lambda n: torch.randn(n, 128, 80, device='cuda')),
    'bags': (Bags, lambda n: torch.arange(64 * n, device='cuda').view(-1, 4)),
    'unet1d': (lambda: UNet(1, nn.BatchNorm1d), lambda n: torch.randn(n, 3, 4096, device='cuda')),
    'unet2d': (lambda: UNet(2, nn.BatchNorm2d), images),
    'unet3d': (lambda: UNet(3, nn.InstanceNorm3d), lambda n: torch.randn(n, 3, 32, 48, 48, device='cuda')),
    'attention': (Attention, lambda n: torch.randn(n, 333, 256, device='cuda')),
    'warped': (Warped, images),
    'chosen': (Chosen, lambda n: torch.randn(n, 200, 256, device='cuda')),
    'depthwise3': (lambda: depthwise(3), lambda n: images(n, 128)),
    'depthwise7': (lambda: depthwise(7), lambda n: images(n, 128)),
}
TYPES = {'fp32': None, 'bf16': torch.bfloat16, 'fp16': torch.float16}


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('model', choices=MODELS)
    parser.add_argument('--batch', type=int, default=8)
    parser.add_argument('--steps', type=int, default=4)
    parser.add_argument('--precision', choices=TYPES, default='fp32')
    parser.add_argument('--channels-last', action='store_true')
    options = parser.parse_args()
    torch.manual_seed(0)
    make_model, make_data = MODELS[options.model]
    order = torch.channels_last if options.channels_last else torch.contiguous_format
    model = make_model().cuda().to(memory_format=order)
    optimizer = torch.optim.AdamW(model.parameters())
    low = TYPES[options.precision]
    cast = torch.autocast('cuda', low) if low else contextlib.nullcontext()
    for _ in range(options.steps):
        data = make_data(options.batch)
        data = data.to(memory_format=order) if data.dim() == 4 else data
        with cast:
            loss = model(data).float().square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    peaks.report()


main()
