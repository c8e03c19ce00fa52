"""Ten steps of a small model, and a few before them: plimsoll --framework-python runs this on a virtual GPU.

The model is far too small for a GPU to have any work with it, so that a step is what the host takes for it:
Python, PyTorch's dispatcher, autograd and the optimizer.
"""
import torch

STEPS, LAYERS, WIDTH, TOKENS, VOCABULARY = 14, 4, 64, 32, 256


class Small(torch.nn.Module):
    """Where transformers is not installed."""

    def __init__(self):
        super().__init__()
        self.embed = torch.nn.Embedding(VOCABULARY, WIDTH)
        self.blocks = torch.nn.ModuleList(torch.nn.TransformerEncoderLayer(
            WIDTH, 4, 4 * WIDTH, activation='gelu', batch_first=True, norm_first=True) for _ in range(LAYERS))
        self.head = torch.nn.Linear(WIDTH, VOCABULARY, bias=False)

    def forward(self, tokens):
        hidden = self.embed(tokens)
        for block in self.blocks:
            hidden = block(hidden)
        return torch.nn.functional.cross_entropy(self.head(hidden).flatten(0, 1).float(), tokens.flatten())


def make():
    try:
        from transformers import GPT2Config, GPT2LMHeadModel
    except ImportError:
        return Small(), lambda model, tokens: model(tokens)
    config = GPT2Config(n_layer=LAYERS, n_embd=WIDTH, n_head=4, n_positions=TOKENS, vocab_size=VOCABULARY)
    return GPT2LMHeadModel(config), lambda model, tokens: model(input_ids=tokens, labels=tokens).loss


model, loss_of = make()
model = model.cuda().train()
optimizer = torch.optim.AdamW(model.parameters())
tokens = torch.zeros(1, TOKENS, dtype=torch.long, device='cuda')
for _ in range(STEPS):
    with torch.autocast('cuda', torch.bfloat16):
        loss = loss_of(model, tokens)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
