"""Programs whose memory hangs on counts that the GPU makes:

    python counted.py --model bert|mixtral [--size tiny|base] [--batch N] [--answered]

bert: its head sees only the tokens that are masked, as in NVIDIA's and MosaicML's examples. mixtral: experts
run one after the other, each on its tokens. With --answered the host says which tokens these are.
"""
import argparse

import torch
import torch.nn.functional as F
from torch import nn

import peaks

SIZES = {'tiny': dict(hidden_size=64, num_hidden_layers=2, num_attention_heads=2, intermediate_size=256, vocab_size=4000),
         'base': dict(hidden_size=768, num_hidden_layers=12, num_attention_heads=12, intermediate_size=3072,
                      vocab_size=30522)}
SEQ = {'tiny': 128, 'base': 512}


class MaskedHead(nn.Module):
    def __init__(self, size, is_answered):
        from transformers import BertConfig, BertModel
        super().__init__()
        config = BertConfig(**SIZES[size])
        self.body = BertModel(config, add_pooling_layer=False)
        self.head = nn.Linear(config.hidden_size, config.vocab_size)
        self.is_answered = is_answered

    def forward(self, tokens, labels):
        wanted = labels.cuda()
        hidden = self.body(tokens.cuda()).last_hidden_state
        if self.is_answered:
            chosen = torch.nonzero(labels.flatten() != -100).cuda().squeeze(1)
        else:
            chosen = torch.nonzero(wanted.flatten() != -100).squeeze(1)
        scores = self.head(hidden.flatten(0, 1).index_select(0, chosen))
        return F.cross_entropy(scores, wanted.flatten()[chosen])


class Experts(nn.Module):
    def __init__(self, size, is_answered):
        from transformers import MixtralConfig, MixtralForCausalLM
        super().__init__()
        sizes = dict(SIZES[size], num_key_value_heads=2)
        config = MixtralConfig(**sizes, num_local_experts=8, num_experts_per_tok=2)
        config._experts_implementation = 'eager'
        self.body = MixtralForCausalLM(config)
        if is_answered:
            for layer in self.body.model.layers:
                layer.mlp.gate.register_forward_hook(self.spread)

    @staticmethod
    def spread(module, given, made):
        """Each expert gets as many tokens as any other."""
        count = made[-1].numel()
        made[-1].data.copy_(torch.arange(count).remainder(8).view(made[-1].shape))

    def forward(self, tokens, labels):
        tokens = tokens.cuda()
        return self.body(input_ids=tokens, labels=tokens).loss


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--model', choices=('bert', 'mixtral'), required=True)
    parser.add_argument('--size', choices=SIZES, default='tiny')
    parser.add_argument('--batch', type=int, default=8)
    parser.add_argument('--answered', action='store_true')
    options = parser.parse_args()
    model = {'bert': MaskedHead, 'mixtral': Experts}[options.model](options.size, options.answered).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    tokens = torch.arange(options.batch * SEQ[options.size]).remainder(4000).view(options.batch, -1)
    labels = torch.where(tokens % 7 == 0, tokens, -100)
    for _ in range(3):
        with torch.autocast('cuda', dtype=torch.bfloat16):
            loss = model(tokens, labels)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    peaks.report()


main()
