"""The programs whose streams of launches the tests of devices/virtual/steps/steps.c read.

    record_programs.py NAME     runs one; cudaProfilerStart marks the end of each optimizer step
    record_programs.py          lists them

They are small, and as people write them. Each trains, but for those whose names begin with "never".
"""
import contextlib
import sys
import torch
import torch.nn as nn
import torch.nn.functional as F

PROGRAMS = {}
DEVICE = 'cuda'


def program(function):
    PROGRAMS[function.__name__] = function
    return function


def mark():
    torch.cuda.cudart().cudaProfilerStart()


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.heads, self.drop = heads, nn.Dropout(0.1)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = (y.view(b, t, self.heads, -1).transpose(1, 2) for y in self.qkv(self.ln_1(x)).split(c, 2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(b, t, c)
        x = x + self.drop(self.proj(y))
        return x + self.drop(self.down(F.gelu(self.up(self.ln_2(x)))))


class GPT(nn.Module):
    def __init__(self, layers=4, width=128, vocabulary=512, checkpoint=False):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(vocabulary, width), nn.Embedding(256, width)
        self.blocks = nn.ModuleList(Block(width, 4) for _ in range(layers))
        self.ln, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)
        self.checkpoint = checkpoint

    def forward(self, ids, labels=None):
        x = self.wte(ids) + self.wpe(torch.arange(ids.shape[1], device=ids.device))
        for block in self.blocks:
            if self.checkpoint:
                x = torch.utils.checkpoint.checkpoint(block, x, use_reentrant=False)
            else:
                x = block(x)
        logits = self.head(self.ln(x))
        return logits if labels is None else F.cross_entropy(logits.flatten(0, 1), labels.flatten())


def tokens(batch=4, length=64):
    return torch.randint(0, 512, (batch, length)).to(DEVICE)


def train(model, optimizer, steps=8, accumulation=1, autocast=None, scaler=None, clip=None, clip_always=False,
          lengths=None, after=None, length=64, batch=4):
    micro = 0
    for step in range(steps):
        for _ in range(accumulation):
            ids = tokens(batch, lengths[micro % len(lengths)] if lengths else length)
            micro += 1
            with torch.autocast('cuda', autocast) if autocast else contextlib.nullcontext():
                loss = model(ids, ids) / accumulation
            (scaler.scale(loss) if scaler else loss).backward()
            if clip_always:
                nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        if scaler and clip:
            scaler.unscale_(optimizer)
        if clip:
            nn.utils.clip_grad_norm_(model.parameters(), clip)
        if scaler:
            scaler.step(optimizer)
            scaler.update()
        else:
            optimizer.step()
        mark()
        optimizer.zero_grad()
        if after:
            after(step)


def gpt(**options):
    return GPT(**options).to(DEVICE)


def adamw(model, **options):
    return torch.optim.AdamW(model.parameters(), lr=1e-3, **options)


@program
def nanogpt():
    model = gpt()
    train(model, adamw(model, fused=True), autocast=torch.bfloat16, clip=1.0)


@program
def nanogpt_accumulation_8():
    model = gpt()
    train(model, adamw(model, fused=True), steps=6, accumulation=8, autocast=torch.float16,
          scaler=torch.amp.GradScaler('cuda'), clip=1.0)


@program
def adamw_foreach():
    model = gpt()
    train(model, adamw(model))


@program
def adamw_foreach_accumulation_4():
    model = gpt()
    train(model, adamw(model), steps=6, accumulation=4)


@program
def adamw_loop():
    model = gpt()
    train(model, adamw(model, foreach=False), steps=6, clip=1.0)


@program
def adamw_loop_autocast_accumulation_4():
    model = gpt()
    train(model, adamw(model, foreach=False), steps=6, accumulation=4, autocast=torch.bfloat16)


@program
def sgd_foreach():
    model = gpt()
    train(model, torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9))


@program
def sgd_loop_accumulation_4():
    model = gpt()
    train(model, torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, foreach=False), accumulation=4)


@program
def adafactor():
    model = gpt()
    train(model, torch.optim.Adafactor(model.parameters(), foreach=False), steps=6, accumulation=4)


@program
def bfloat16_weights():
    model = gpt().bfloat16()
    train(model, adamw(model))


@program
def grad_scaler():
    model = gpt()
    train(model, adamw(model), autocast=torch.float16, scaler=torch.amp.GradScaler('cuda'))


@program
def clipped_each_micro_step():
    model = gpt()
    train(model, adamw(model), steps=5, accumulation=8, clip_always=True)


@program
def averaged_each_micro_step():
    """A second model follows the first one, as in BYOL, in each forward pass."""
    model, follower = gpt(), gpt().requires_grad_(False)
    optimizer = adamw(model)

    def loss(ids, labels):
        with torch.no_grad():
            for a, b in zip(follower.parameters(), model.parameters()):
                a.mul_(0.99).add_(b, alpha=0.01)
            aim = follower(ids)
        return F.mse_loss(model(ids), aim)
    train(loss, optimizer, steps=6, accumulation=8)


class Scan(nn.Module):
    """A recurrence in plain elementwise operations, as state-space models without kernels have it."""

    def __init__(self, width=64):
        super().__init__()
        self.embed, self.into, self.out = nn.Embedding(512, width), nn.Linear(width, 2 * width), nn.Linear(width, 512)

    def forward(self, ids, labels):
        value, gate = self.into(self.embed(ids)).chunk(2, -1)
        states = [value[:, 0]]
        for t in range(1, ids.shape[1]):
            states.append(states[-1] * gate[:, t].sigmoid() + value[:, t])
        return F.cross_entropy(self.out(torch.stack(states, 1)).flatten(0, 1), labels.flatten())


@program
def scan_accumulation_8():
    model = Scan().to(DEVICE)
    train(model, adamw(model), steps=6, accumulation=8, autocast=torch.bfloat16, length=24)


@program
def layers_20_accumulation_3():
    model = gpt(layers=20, width=64)
    train(model, adamw(model), steps=4, accumulation=3)


@program
def checkpointed():
    model = gpt(layers=8, checkpoint=True)
    train(model, adamw(model), steps=6, accumulation=2)


@program
def lengths_vary():
    model = gpt(layers=2)
    generator = torch.Generator().manual_seed(1)
    lengths = torch.randint(16, 200, (400,), generator=generator).tolist()
    train(model, adamw(model), steps=28, lengths=lengths, accumulation=2)


def evaluate(model, batches, batch=4):
    model.eval()
    with torch.no_grad():
        for _ in range(batches):
            ids = tokens(batch)
            model(ids, ids).item()
    model.train()


@program
def evaluates_every_5():
    model = gpt()
    train(model, adamw(model), steps=18, after=lambda step: step % 5 == 4 and evaluate(model, 12))


@program
def evaluates_first():
    model = gpt()
    evaluate(model, 40)
    train(model, adamw(model), steps=12)


@torch.no_grad()
def generate(model, count, batch=1):
    ids = tokens(batch, 8)
    for _ in range(count):
        step = model(ids)[:, -1].argmax(-1, keepdim=True)
        ids = torch.cat((ids, step), 1)[:, -200:]


@program
def never_generates():
    generate(gpt(layers=2).eval(), 120)


@program
def never_evaluates():
    evaluate(gpt(), 300)


@program
def generates_and_trains():
    model = gpt(layers=2)
    optimizer = adamw(model)
    generate(model, 20)
    for _ in range(24):
        generate(model, 10)
        train(model, optimizer, steps=1, accumulation=2)


@program
def optimizer_in_backward():
    model = gpt(layers=24)
    optimizers = {p: torch.optim.AdamW([p], foreach=True) for p in model.parameters()}

    def update(parameter):
        optimizers[parameter].step()
        optimizers[parameter].zero_grad()
    for parameter in model.parameters():
        parameter.register_post_accumulate_grad_hook(update)
    for _ in range(6):
        ids = tokens()
        model(ids, ids).backward()
        mark()


def convolutions(*widths):
    return nn.Sequential(*(m for a, b in zip(widths, widths[1:])
                           for m in (nn.Conv2d(a, b, 3, 2, 1), nn.BatchNorm2d(b), nn.LeakyReLU(0.2))))


def gan(critic_steps, steps):
    maker = nn.Sequential(nn.Linear(64, 3 * 256), nn.Unflatten(1, (3, 16, 16)), convolutions(3, 32, 3),
                          nn.Upsample(scale_factor=4)).to(DEVICE)
    critic = nn.Sequential(convolutions(3, 32, 64), nn.Flatten(), nn.Linear(1024, 1)).to(DEVICE)
    optimizers = [torch.optim.Adam(m.parameters(), 2e-4) for m in (critic, maker)]
    for step in range(steps):
        for _ in range(critic_steps):
            fake = maker(torch.randn(8, 64, device=DEVICE)).detach()
            loss = critic(fake).mean() - critic(torch.randn(8, 3, 16, 16).to(DEVICE)).mean()
            optimizers[0].zero_grad()
            loss.backward()
            optimizers[0].step()
        loss = -critic(maker(torch.randn(8, 64, device=DEVICE))).mean()
        optimizers[1].zero_grad()
        loss.backward()
        optimizers[1].step()
        mark()


@program
def gan_alternating():
    gan(1, 10)


@program
def gan_critic_5():
    gan(5, 8)


@program
def muon():
    model = gpt()
    matrices = [p for n, p in model.named_parameters() if p.ndim == 2 and 'w' != n[0]]
    others = [p for n, p in model.named_parameters() if p.ndim != 2 or 'w' == n[0]]
    optimizers = [torch.optim.Muon(matrices, lr=0.02), torch.optim.AdamW(others, fused=True)]

    class Both:
        def step(self):
            for optimizer in optimizers:
                optimizer.step()

        def zero_grad(self):
            for optimizer in optimizers:
                optimizer.zero_grad()
    train(model, Both(), steps=5, accumulation=4)


@program
def adam_8bit():
    import bitsandbytes
    model = gpt()
    train(model, bitsandbytes.optim.AdamW8bit(model.parameters(), min_8bit_size=1024), steps=6, accumulation=2)


class Lion(torch.optim.Optimizer):
    def __init__(self, parameters):
        super().__init__(parameters, {})

    @torch.no_grad()
    def step(self):
        for p in self.param_groups[0]['params']:
            state = self.state[p]
            if not state:
                state['mean'] = torch.zeros_like(p)
            p.mul_(0.999)
            p.add_(state['mean'].mul(0.9).add_(p.grad, alpha=0.1).sign_(), alpha=-1e-4)
            state['mean'].mul_(0.99).add_(p.grad, alpha=0.01)


@program
def own_optimizer():
    model = gpt()
    train(model, Lion(model.parameters()), steps=6, accumulation=4)


@program
def own_optimizer_autocast():
    model = gpt()
    train(model, Lion(model.parameters()), steps=200, autocast=torch.bfloat16)


@program
def own_optimizer_autocast_accumulation_16():
    model = gpt(layers=2)
    train(model, Lion(model.parameters()), steps=12, accumulation=16, autocast=torch.bfloat16)


@program
def optimizer_on_the_host():
    model = gpt()
    masters = [p.detach().cpu().clone().requires_grad_() for p in model.parameters()]
    optimizer = torch.optim.AdamW(masters)
    for _ in range(6):
        for _ in range(2):
            ids = tokens()
            model(ids, ids).backward()
        for master, p in zip(masters, model.parameters()):
            master.grad = p.grad.cpu()
        optimizer.step()
        with torch.no_grad():
            for master, p in zip(masters, model.parameters()):
                p.copy_(master)
        mark()
        model.zero_grad()


@program
def leaks():
    model, kept = gpt(), []
    train(model, adamw(model), steps=60, after=lambda step: kept.append(torch.empty(3 << 18, device=DEVICE)))


@program
def tiny_mlp():
    model = nn.Sequential(nn.Linear(64, 256), nn.GELU(), nn.Linear(256, 64)).to(DEVICE)
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(10):
        x = torch.randn(32, 64).to(DEVICE)
        F.mse_loss(model(x), x).backward()
        optimizer.step()
        mark()
        optimizer.zero_grad()


@program
def resnet():
    import torchvision
    model = torchvision.models.resnet18().to(DEVICE)
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9, weight_decay=1e-4)
    for _ in range(6):
        images, labels = torch.randn(8, 3, 64, 64).to(DEVICE), torch.randint(0, 1000, (8,)).to(DEVICE)
        loss = F.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        mark()


@program
def vit_ema():
    import timm
    model = timm.create_model('vit_tiny_patch16_224', depth=4).to(DEVICE)
    average = timm.utils.ModelEmaV3(model)
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(6):
        with torch.autocast('cuda', torch.bfloat16):
            loss = F.cross_entropy(model(torch.randn(2, 3, 224, 224).to(DEVICE)),
                                   torch.randint(0, 1000, (2,)).to(DEVICE))
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        average.update(model)
        mark()
        optimizer.zero_grad()


@program
def compiled():
    model = gpt()
    train(torch.compile(model), adamw(model, fused=True), steps=8, autocast=torch.bfloat16, accumulation=2)


@program
def compiled_optimizer():
    model = gpt()
    optimizer = adamw(model)
    step = torch.compile(lambda: torch.optim.AdamW.step(optimizer))
    for _ in range(8):
        for _ in range(4):
            ids = tokens()
            model(ids, ids).backward()
        step()
        mark()
        optimizer.zero_grad()


def trainer(steps=8, accumulation=1, layers=4, **options):
    import os
    import tempfile
    import transformers
    os.environ['WANDB_DISABLED'] = 'true'

    class Marks(transformers.TrainerCallback):
        def on_optimizer_step(self, *_, **__):
            mark()
    config = transformers.GPT2Config(vocab_size=512, n_positions=128, n_embd=128, n_layer=layers, n_head=4)
    model = transformers.GPT2LMHeadModel(config)
    rows = [{'input_ids': torch.arange(64), 'labels': torch.arange(64)} for _ in range(4 * steps * accumulation)]
    with tempfile.TemporaryDirectory() as folder:
        arguments = transformers.TrainingArguments(
            folder, per_device_train_batch_size=4, gradient_accumulation_steps=accumulation, max_steps=steps,
            report_to=[], save_strategy='no', logging_steps=3, disable_tqdm=True, **options)
        transformers.Trainer(model, arguments, train_dataset=rows, callbacks=[Marks()]).train()


@program
def hf_trainer():
    trainer(steps=12)


@program
def hf_trainer_accumulation_4():
    trainer(steps=8, accumulation=4, layers=2, bf16=True)


@program
def hf_trainer_adafactor():
    trainer(optim='adafactor', bf16=True, steps=20, layers=1)


@program
def lora():
    import peft
    import transformers
    config = transformers.LlamaConfig(vocab_size=512, hidden_size=128, intermediate_size=256, num_hidden_layers=2,
                                      num_attention_heads=4, num_key_value_heads=2)
    model = transformers.LlamaForCausalLM(config).bfloat16().to(DEVICE)
    model = peft.get_peft_model(model, peft.LoraConfig(r=8, target_modules=['q_proj', 'v_proj']))
    train(lambda ids, labels: model(input_ids=ids, labels=labels).loss,
          torch.optim.AdamW([p for p in model.parameters() if p.requires_grad]), steps=6, accumulation=2)


if __name__ == '__main__':
    if len(sys.argv) < 2:
        print('\n'.join(PROGRAMS))
    else:
        torch.manual_seed(0)
        PROGRAMS[sys.argv[1]]()
        torch.cuda.synchronize()
