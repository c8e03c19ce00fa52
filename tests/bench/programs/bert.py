"""BERT: for question answering as NVIDIA's example has it, or transformers' for pretraining.

    python bert.py --size large --batch 16 [--seq 384] [--head squad|lm]

NVIDIA's keeps the length in front of the batch, so that heads are batched products without a copy.
"""
import math

import torch
import torch.nn.functional as F
from torch import nn

import training

SIZES = {'base': (768, 12, 12), 'large': (1024, 24, 16)}
VOCABULARY, POSITIONS = 30522, 512


class Layer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value = (nn.Linear(width, width) for _ in range(3))
        self.out, self.norm1 = nn.Linear(width, width), nn.LayerNorm(width, eps=1e-12)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.norm2 = nn.LayerNorm(width, eps=1e-12)

    def attention(self, x, mask):
        length, batch, width = x.shape
        size = width // self.heads

        def heads_of(y):
            return y.view(length, batch * self.heads, size)

        query, value = heads_of(self.query(x)).transpose(0, 1), heads_of(self.value(x)).transpose(0, 1)
        key = heads_of(self.key(x)).permute(1, 2, 0)
        scores = torch.bmm(query, key).view(batch, self.heads, length, length) / math.sqrt(size)
        shares = F.dropout(F.softmax(scores + mask, dim=-1), 0.1)
        out = torch.bmm(shares.view(batch * self.heads, length, length), value)
        return out.transpose(0, 1).contiguous().view(length, batch, width)

    def forward(self, x, mask):
        x = self.norm1(F.dropout(self.out(self.attention(x, mask)), 0.1) + x)
        y = self.down(F.gelu(self.up(x), approximate='tanh'))
        return self.norm2(F.dropout(y, 0.1) + x)


class Squad(nn.Module):
    def __init__(self, width, layers, heads):
        super().__init__()
        self.words, self.types = nn.Embedding(VOCABULARY, width, padding_idx=0), nn.Embedding(2, width)
        self.positions = nn.Embedding(POSITIONS, width)
        self.norm = nn.LayerNorm(width, eps=1e-12)
        self.layers = nn.ModuleList(Layer(width, heads) for _ in range(layers))
        self.head = nn.Linear(width, 2)

    def forward(self, tokens, types, seen):
        mask = ((1.0 - seen[:, None, None].to(self.head.weight.dtype)) * -10000.0)
        places = torch.arange(tokens.shape[1], device='cuda').expand_as(tokens)
        x = (self.words(tokens.t()) + self.positions(places.t())) + self.types(types.t())
        x = F.dropout(self.norm(x), 0.1)
        for layer in self.layers:
            x = layer(x, mask)
        start, end = self.head(x.transpose(0, 1)).split(1, dim=-1)
        return start.squeeze(-1), end.squeeze(-1)


def squad(options, width, layers, heads):
    model = Squad(width, layers, heads).cuda()
    if options.precision == 'fp16-weights':
        model.half()
    shape = options.batch, options.seq
    tokens, types = torch.randint(1, VOCABULARY, shape), torch.zeros(shape, dtype=torch.long)
    seen, place = torch.ones(shape, dtype=torch.long), torch.randint(options.seq, (options.batch,))

    def loss_of():
        start, end = model(tokens.cuda(), types.cuda(), seen.cuda())
        at = place.cuda()
        return (F.cross_entropy(start.float(), at) + F.cross_entropy(end.float(), at)) / 2

    return model, loss_of


def language_model(options, width, layers, heads):
    import transformers
    config = transformers.BertConfig(vocab_size=VOCABULARY, hidden_size=width, num_hidden_layers=layers,
                                     num_attention_heads=heads, intermediate_size=4 * width)
    model = transformers.BertForPreTraining._from_config(config, attn_implementation='eager').cuda()
    tokens = torch.ones(options.batch, options.seq, dtype=torch.long, device='cuda')

    def loss_of():
        logits = model(tokens).prediction_logits
        return F.cross_entropy(logits.view(-1, logits.size(-1)), tokens.view(-1))

    return model, loss_of


def main():
    parser = training.parser(__doc__)
    parser.add_argument('--size', choices=SIZES, default='base')
    parser.add_argument('--seq', type=int, default=384)
    parser.add_argument('--head', choices=('squad', 'lm'), default='squad')
    options = parser.parse_args()
    training.allow_tf32(options)
    make = squad if options.head == 'squad' else language_model
    model, loss_of = make(options, *SIZES[options.size])
    model.train()
    training.train(options, model, loss_of)


main()
