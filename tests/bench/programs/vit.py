"""A vision transformer as timm had it before fused attention: its 0.6.6, and with --mae 0.3.2.

    python vit.py --size base --patch 16 --image 224 --batch 32 [--precision fp16-mixed]
"""
import torch
import torch.nn.functional as F
from torch import nn

import training

SIZES = {'small': (384, 12, 6), 'base': (768, 12, 12), 'large': (1024, 24, 16)}


class Block(nn.Module):
    def __init__(self, width, heads, drop_path):
        super().__init__()
        self.heads, self.drop_path = heads, drop_path
        self.norm1, self.norm2 = nn.LayerNorm(width, eps=1e-6), nn.LayerNorm(width, eps=1e-6)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def attention(self, x):
        batch, length, width = x.shape
        size = width // self.heads
        qkv = self.qkv(x).reshape(batch, length, 3, self.heads, size).permute(2, 0, 3, 1, 4)
        query, key, value = qkv.unbind(0)
        shares = ((query @ key.transpose(-2, -1)) * size ** -0.5).softmax(dim=-1)
        return self.out((shares @ value).transpose(1, 2).reshape(batch, length, width))

    def residual(self, x):
        if not self.drop_path:
            return x
        kept = x.new_empty(x.shape[0], 1, 1).bernoulli_(1 - self.drop_path)
        return x.div(1 - self.drop_path) * kept

    def forward(self, x):
        x = x + self.residual(self.attention(self.norm1(x)))
        return x + self.residual(self.down(F.gelu(self.up(self.norm2(x)))))


class Vit(nn.Module):
    def __init__(self, options):
        super().__init__()
        width, layers, heads = SIZES[options.size]
        self.mean = options.mae
        self.patches = nn.Conv2d(3, width, options.patch, options.patch)
        self.first = nn.Parameter(torch.zeros(1, 1, width))
        self.places = nn.Parameter(torch.zeros(1, (options.image // options.patch) ** 2 + 1, width))
        self.blocks = nn.Sequential(*(Block(width, heads, 0.1 if options.mae else 0) for _ in range(layers)))
        self.norm, self.head = nn.LayerNorm(width, eps=1e-6), nn.Linear(width, 1000)

    def forward(self, images):
        x = self.patches(images).flatten(2).transpose(1, 2)
        x = torch.cat((self.first.expand(x.shape[0], -1, -1), x), dim=1) + self.places
        x = self.blocks(x)
        x = self.norm(x[:, 1:].mean(dim=1)) if self.mean else self.norm(x)[:, 0]
        return self.head(x)


def main():
    parser = training.parser(__doc__)
    parser.add_argument('--size', choices=SIZES, default='base')
    parser.add_argument('--patch', type=int, default=16)
    parser.add_argument('--image', type=int, default=224)
    parser.add_argument('--layout', choices=training.LAYOUTS, default='nchw')
    parser.add_argument('--mae', action='store_true', help='fine-tuning as MAE does it')
    options = parser.parse_args()
    training.allow_tf32(options)

    layout = training.LAYOUTS[options.layout]
    model = Vit(options).to('cuda', memory_format=layout).train()
    shape = options.batch, 3, options.image, options.image
    images = torch.randn(shape, device='cuda').to(memory_format=layout)

    def loss_of():
        if options.mae:
            labels = torch.rand(options.batch, 1000, device='cuda')
            mixed = images * 0.8 + images.flip(0) * 0.2
            loss = torch.sum(-labels * F.log_softmax(model(mixed), dim=-1), dim=-1).mean()
            loss.item()
            return loss
        out = model(images)
        return F.cross_entropy(out, torch.empty(options.batch, dtype=torch.long, device='cuda').random_(1000))

    training.train(options, model, loss_of)


main()
