"""Small programs that hang on values of the GPU:  steered.py NAME

Each looks itself whether it went the way it would go on a real GPU.
"""
import math
import sys

import torch
import torch.nn.functional as F
from torch import nn

import peaks


def learn(model, loss):
    loss.backward()
    torch.optim.AdamW(model.parameters(), fused=True).step()


def distributions():
    """A step of PPO, as stable-baselines3 and cleanrl make it: distributions check what they get."""
    policy = nn.Sequential(nn.Linear(8, 64), nn.Tanh(), nn.Linear(64, 4)).cuda()
    seen = torch.randn(128, 8, device='cuda')
    chance = torch.distributions.Categorical(logits=policy(seen))
    action = chance.sample()
    spread = torch.distributions.Normal(policy(seen), torch.ones(4, device='cuda'))
    moved = spread.sample()
    gain = chance.log_prob(action) + spread.log_prob(moved).sum(-1)
    ratio = (gain - gain.detach()).exp()
    loss = -(ratio.clamp(0.8, 1.2)).mean() - chance.entropy().mean()
    learn(policy, loss)
    print('clipped', ((ratio - 1).abs() > 0.2).float().mean().item())


def unique():
    """Rows of an embedding that a batch uses."""
    tokens = torch.arange(512).remainder(37).view(4, 128).cuda()
    rows, back = tokens.unique(return_inverse=True)
    assert rows.numel() == 37 and back.shape == tokens.shape
    table = nn.Embedding(1000, 64).cuda()
    learn(table, table(rows)[back].square().mean())


def finite():
    """Training ends where the loss is no number."""
    model, done = nn.Linear(64, 64).cuda(), 0
    while done < 4:
        loss = model(torch.randn(8, 64, device='cuda')).square().mean()
        if not torch.isfinite(loss):
            sys.exit('the loss is no number')
        if not math.isfinite(loss.item()):
            sys.exit('the loss is no number')
        learn(model, loss)
        done += 1
    if torch.isnan(model(torch.randn(40000, 64, device='cuda'))).any():  # more than are looked at one by one
        sys.exit('an output is no number')
    count_operations(model)


def count_operations(model):
    """What a distribution checks while operations are counted, as Lightning's summary does."""
    from torch.utils.flop_counter import FlopCounterMode
    with FlopCounterMode(display=False), torch.no_grad():
        rates = F.softplus(model(torch.randn(8, 64, device='cuda')))
        torch.distributions.Gamma(rates, torch.ones_like(rates))


class Assigner(nn.Module):
    """Boxes to anchors, as ultralytics' TaskAlignedAssigner: the best ten of each box that lie in it."""

    def forward(self, boxes, anchors, wanted, is_box, topk=10):
        inside = self.inside(anchors, wanted) * is_box
        mask = inside.bool()
        n, boxes_most, count = boxes.shape[0], wanted.shape[1], anchors.shape[0]
        overlaps = torch.zeros(n, boxes_most, count, device='cuda')
        a = wanted.unsqueeze(2).expand(-1, -1, count, -1)[mask]
        b = boxes.unsqueeze(1).expand(-1, boxes_most, -1, -1)[mask]
        overlaps[mask] = (torch.minimum(a, b).sum(-1) / torch.maximum(a, b).sum(-1)).clamp(0)
        best = overlaps.topk(topk, dim=-1).indices
        best.masked_fill_(~is_box.expand(-1, -1, topk).bool(), 0)
        counts = torch.zeros(n, boxes_most, count, dtype=torch.int8, device='cuda')
        for k in range(topk):
            counts.scatter_add_(-1, best[:, :, k:k + 1], torch.ones_like(best[:, :, :1], dtype=torch.int8))
        counts.masked_fill_(counts > 1, 0)
        taken = counts.float() * inside
        owners = taken.sum(-2)
        if owners.max() > 1:  # any
            first = F.one_hot(overlaps.argmax(1), boxes_most).permute(0, 2, 1).float()
            taken = torch.where((owners.unsqueeze(1) > 1).expand(-1, boxes_most, -1), first, taken)
            owners = taken.sum(-2)
        return owners > 0, taken.argmax(-2)

    @staticmethod
    def inside(anchors, wanted):
        low, high = wanted[:, :, None, :2], wanted[:, :, None, 2:]
        return torch.cat((anchors - low, high - anchors), -1).amin(-1).gt(1e-9).float()


def beams():
    """A search by beams goes on to the longest text that there may be: no token that it picks ends one."""
    from transformers import T5Config, T5ForConditionalGeneration
    config = T5Config(vocab_size=32128, d_model=64, d_kv=16, d_ff=128, num_layers=2, num_heads=4, pad_token_id=0,
                      eos_token_id=1, decoder_start_token_id=0)
    model, calls = T5ForConditionalGeneration(config).cuda(), []
    model.register_forward_hook(lambda *_: calls.append(1))
    tokens = torch.randint(2, 2048, (3, 16)).cuda()
    for count, early in ((2, False), (5, False), (5, True), (8, 'never')):
        calls.clear()
        told = model.generate(input_ids=tokens, num_beams=count, max_length=24, early_stopping=early)
        assert len(calls) == 23 and told.shape == (3, 24), (count, len(calls), told.shape)
    learn(model, model(input_ids=tokens, labels=tokens).loss)


def detection():
    """A step of a YOLO: boxes are assigned to anchors, and only those that have one count."""
    torch.manual_seed(0)
    side, classes = 40, 8
    grid = (torch.arange(side) + 0.5).cuda()
    anchors = torch.stack(torch.meshgrid(grid, grid, indexing='ij'), -1).view(-1, 2)
    body = nn.Conv2d(3, 4 + classes, 3, padding=1).cuda()
    out = body(torch.randn(2, 3, side, side, device='cuda')).flatten(2).mT
    boxes, scores = out[..., :4].sigmoid() * side, out[..., 4:].sigmoid()
    wanted = torch.tensor([[[1., 1, 6, 6], [8, 8, 15, 12]], [[3., 3, 9, 9], [0, 0, 0, 0]]]).cuda()
    is_box = wanted.sum(2, keepdim=True).gt_(0)
    has, owner = Assigner()(boxes.detach(), anchors, wanted, is_box)
    loss = F.binary_cross_entropy(scores, torch.zeros_like(scores))
    if has.sum():  # some
        target = wanted.gather(1, owner[..., None].expand(-1, -1, 4))
        near, aim = boxes[has], target[has]  # has
        loss = loss + F.l1_loss(near, aim)
    learn(body, loss)


def detr():
    from transformers import DetrConfig, DetrForObjectDetection, ResNetConfig
    config = DetrConfig(
        use_timm_backbone=False, use_pretrained_backbone=False, backbone=None,
        backbone_config=ResNetConfig(embedding_size=16, hidden_sizes=[16, 32, 32, 64],
                                     depths=[1, 1, 1, 1], out_features=['stage4']),
        d_model=64, encoder_layers=1, decoder_layers=1, encoder_attention_heads=2,
        decoder_attention_heads=2, encoder_ffn_dim=64, decoder_ffn_dim=64, num_queries=20)
    model = DetrForObjectDetection(config).cuda()
    labels = [{'class_labels': torch.tensor([1, 2]).cuda(),
               'boxes': torch.tensor([[.5, .5, .2, .2], [.3, .3, .1, .1]]).cuda()},
              {'class_labels': torch.tensor([3]).cuda(),
               'boxes': torch.tensor([[.4, .6, .2, .3]]).cuda()}]
    out = model(pixel_values=torch.randn(2, 3, 128, 128).cuda(),
                pixel_mask=torch.ones(2, 128, 128, dtype=torch.long).cuda(), labels=labels)
    learn(model, out.loss)


def text_config(**more):
    return dict(hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=2,
                num_key_value_heads=2, vocab_size=1000, **more)


def llava():
    from transformers import CLIPVisionConfig, LlamaConfig, LlavaConfig, LlavaForConditionalGeneration
    config = LlavaConfig(
        vision_config=CLIPVisionConfig(hidden_size=64, intermediate_size=128, num_hidden_layers=2,
                                       num_attention_heads=2, image_size=56, patch_size=14),
        text_config=LlamaConfig(**text_config()), image_token_index=999)
    model = LlavaForConditionalGeneration(config).cuda()
    tokens = torch.tensor([[1] + [999] * 16 + [5, 6, 7]] * 2)
    out = model(input_ids=tokens.cuda(), pixel_values=torch.randn(2, 3, 56, 56).cuda(),
                attention_mask=torch.ones_like(tokens).cuda(), labels=tokens.cuda())
    learn(model, out.loss)


def qwen2_vl():
    from transformers import Qwen2VLConfig, Qwen2VLForConditionalGeneration
    config = Qwen2VLConfig(
        text_config=text_config(rope_scaling={'type': 'mrope', 'mrope_section': [4, 6, 6]}),
        vision_config=dict(depth=2, embed_dim=64, hidden_size=64, num_heads=2, patch_size=14),
        image_token_id=999, vision_start_token_id=998, vision_end_token_id=997, video_token_id=996)
    model = Qwen2VLForConditionalGeneration(config).cuda()
    tokens = torch.tensor([[1, 998] + [999] * 4 + [997, 5, 6]] * 2)
    out = model(input_ids=tokens.cuda(), attention_mask=torch.ones_like(tokens).cuda(),
                pixel_values=torch.randn(32, 1176).cuda(), labels=tokens.cuda(),
                image_grid_thw=torch.tensor([[1, 4, 4]] * 2).cuda(), mm_token_type_ids=(tokens == 999).int().cuda())
    learn(model, out.loss)


def norms():
    """A norm of gradients is neither infinite nor below zero, as DeepSpeed looks."""
    model, out = learned()
    out.square().mean().backward()
    norms = [parameter.grad.double().norm(2) for parameter in model.parameters()]
    total = torch.stack(norms).pow(2).sum().float().pow(0.5)
    total.masked_fill_(total.isinf() | total.isnan(), -1)
    for norm in (total, torch.stack(norms).norm(), torch.stack(norms).to(torch.bfloat16), out.mean().abs()):
        if bool((~torch.isfinite(norm) | (norm < 0)).any()):
            raise SystemExit('a norm below zero')
        if not (norm >= 0).all():
            del model
    torch.optim.AdamW(model.parameters(), fused=True).step()


def early_stopping():
    """The Trainer of transformers, which stops when the loss does not get less."""
    import tempfile
    from transformers import (EarlyStoppingCallback, GPT2Config, GPT2LMHeadModel, Trainer,
                              TrainingArguments)
    rows = [{'input_ids': torch.arange(32), 'labels': torch.arange(32)}] * 32
    model = GPT2LMHeadModel(GPT2Config(n_layer=1, n_head=2, n_embd=64, vocab_size=1000, use_cache=False))
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            output_dir=folder, num_train_epochs=6, per_device_train_batch_size=8, eval_strategy='epoch',
            save_strategy='epoch', load_best_model_at_end=True, metric_for_best_model='loss',
            report_to='none', disable_tqdm=True, save_total_limit=1)
        trainer = Trainer(model=model, args=arguments, train_dataset=rows, eval_dataset=rows[:8],
                          callbacks=[EarlyStoppingCallback(2)])
        trainer.train()
    assert trainer.state.global_step == 12, trainer.state.global_step  # three of six epochs


def generate():
    """Evaluation generates text, until the end token or the most that is allowed; as in reinforcement learning, what
    stands behind an end token does not count."""
    from transformers import GPT2Config, GPT2LMHeadModel
    model = GPT2LMHeadModel(GPT2Config(n_layer=2, n_head=2, n_embd=64, vocab_size=5000)).cuda()
    prompt = torch.arange(10)[None].expand(2, -1).cuda()
    for sampled, least in ((False, 0), (True, 0), (False, 5)):
        out = model.generate(prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=20, min_new_tokens=least,
                             do_sample=sampled, pad_token_id=0, eos_token_id=4999)
        assert out.shape == (2, 30), out.shape
        ends = torch.isin(out, torch.tensor([0, 4999], device='cuda'))[:, 10:]
        kept = [row[mask].tolist() for row, mask in zip(out[:, 10:].cpu(), ~ends.cpu())]
        assert [len(row) for row in kept] == [20, 20], kept


def masked_head():
    """BERT whose head sees only the tokens that are masked, as in NVIDIA's and MosaicML's examples."""
    from transformers import BertConfig, BertModel
    config = BertConfig(hidden_size=64, num_hidden_layers=2, num_attention_heads=2,
                        intermediate_size=128, vocab_size=1000)
    body, head = BertModel(config, add_pooling_layer=False).cuda(), nn.Linear(64, 1000).cuda()
    tokens = torch.arange(512).remainder(1000).view(4, 128)
    labels = torch.where(tokens % 7 == 0, tokens, -100)
    hidden = body(tokens.cuda(), attention_mask=torch.ones_like(tokens).cuda()).last_hidden_state
    wanted = labels.cuda()
    chosen = wanted != -100
    scores = head(hidden[chosen])
    assert len(scores) == int((labels != -100).sum()), scores.shape
    learn(head, F.cross_entropy(scores, wanted[chosen]))


def experts():
    """Mixtral as transformers runs its experts one after the other: each has as many tokens as any."""
    from transformers import MixtralConfig, MixtralForCausalLM
    config = MixtralConfig(**text_config(), num_local_experts=4, num_experts_per_tok=2,
                           output_router_logits=True)
    config._experts_implementation = 'eager'
    model, seen, plain = MixtralForCausalLM(config).cuda(), [], F.linear

    def linear(values, weight, bias=None):
        if values.dim() == 2 and values.shape[1] == 128:  # the second half of an expert
            seen.append(len(values))
        return plain(values, weight, bias)
    tokens = torch.arange(512).view(4, 128).cuda()
    F.linear = linear
    loss = model(input_ids=tokens, labels=tokens).loss
    F.linear = plain
    assert seen == [256] * 8, seen  # 512 tokens, 2 of 4 experts each, 2 layers
    learn(model, loss)


def switch():
    """Each token goes to the expert with the largest number, which takes its own by counts that the host reads."""
    router, experts = nn.Linear(64, 4).cuda(), nn.ModuleList([nn.Linear(64, 64) for _ in range(4)]).cuda()
    tokens = torch.randn(512, 64, device='cuda')
    numbers, chosen = router(tokens).max(-1)
    again = router(tokens).argmax(-1)
    counts = torch.bincount(chosen, minlength=4).tolist()
    assert counts == torch.bincount(again, minlength=4).tolist() == [128] * 4, counts
    parts = tokens[chosen.argsort()].split(counts)
    loss = sum(expert(part).square().mean() for expert, part in zip(experts, parts)) + numbers.mean()
    learn(nn.ModuleList([router, experts]), loss)


def binned():
    """A loss weighs each sample by how many have the same of 8 learned numbers."""
    model, out = learned()
    bins = out.detach()[:, 0].sigmoid().mul(8).long()
    counts = torch.bincount(bins, minlength=8)
    assert counts.shape == (8,), counts.shape
    learn(model, (out.square().mean(1) / (1 + counts)[bins]).mean())


def packed():
    """Documents in one row: where each ends is known behind the attention between them, too."""
    model, ends = nn.Linear(64, 192).cuda().half(), torch.tensor([0, 100, 300, 512], dtype=torch.int32).cuda()
    for _ in range(2):
        q, k, v = model(torch.randn(512, 64, device='cuda').half()).view(512, 3, 1, 64).unbind(1)
        out = torch.ops.aten._flash_attention_forward(q, k, v, ends, ends, 212, 212, 0.0, True, False)[0]
        keep = torch.ones(512, dtype=torch.bool, device='cuda')
        keep[ends[1:].long() - 1] = False
        assert len(out[keep]) == 509, out[keep].shape
        learn(model, out[keep].float().square().mean())
        assert ends.tolist() == [0, 100, 300, 512], ends


def pooled():
    """Of each graph of a batch the nodes with the largest numbers are kept, and the edges between them."""
    nodes, kept = torch.arange(1, 41, device='cuda') * 5, torch.arange(1, 41, device='cuda') * 2
    graph = torch.repeat_interleave(torch.arange(40, device='cuda'), nodes)
    model = nn.Sequential(nn.Linear(64, 64), nn.Linear(64, 1)).cuda()
    features = torch.randn(len(graph), 64, device='cuda')
    order = model(features)[:, 0].argsort(descending=True)
    order = order[graph[order].argsort(stable=True)]
    place = torch.arange(len(graph), device='cuda') - (nodes.cumsum(0) - nodes).repeat_interleave(nodes)
    chosen = order[place < kept[graph]]
    assert torch.equal(graph[chosen].bincount(), kept), graph[chosen].bincount()
    assert len(chosen.unique()) == len(chosen)
    learn(model, model(features[chosen]).square().mean())


def dropped():
    """Some at random, by the GPU's generator: those that PyTorch takes on any GPU."""
    torch.manual_seed(0)
    chosen = (torch.rand(8, device='cuda') < 0.5).nonzero()[:, 0]
    assert chosen.tolist() == [0, 2, 6], chosen.tolist()
    orders = [torch.randperm(5000, device='cuda') for _ in range(2)]
    assert not torch.equal(*orders) and torch.equal(orders[0].sort().values, orders[1].sort().values)
    edges = torch.randint(0, 300, (2, 20000), device='cuda')
    edges = edges[:, torch.rand(edges.size(1), device='cuda') >= 0.3]
    assert 13000 < edges.size(1) < 15000, edges.shape
    nodes = nn.Embedding(300, 64).cuda()
    learn(nodes, (nodes(edges[0]) * nodes(edges[1])).mean())


def converged():
    """Goes on until little changes, which the host reads."""
    for _ in range(3):
        (model, last), rounds = learned(), 0
        while True:
            step = model(last.detach())
            rounds, change, last = rounds + 1, (step - last).norm(), step
            if change < 1e-3:  # until
                break
        print('rounds', rounds, flush=True)
        learn(model, last.square().mean())


class Meter:
    def __init__(self):
        self.value, self.sum = 0, 0

    def update(self, value, count):
        self.value = value
        self.sum += value * count

    def __str__(self):
        return '{value:6.2f} {sum:6.2f}'.format(**self.__dict__)


def watched():
    """How often the right class is among the best five, as PyTorch's example for ImageNet counts it; what others
    draw of weights and gradients, of which some are two numbers; a checkpoint."""
    import io
    import numpy
    model, meters = nn.Sequential(nn.Linear(8, 2), nn.Linear(2, 100)).cuda(), [Meter(), Meter()]
    out, wanted = model(torch.randn(16, 8, device='cuda')), torch.arange(16).cuda()
    learn(model, F.cross_entropy(out, wanted))
    is_right = out.topk(5, 1, True, True)[1].t().eq(wanted.view(1, -1).expand(5, -1))
    for meter, most in zip(meters, (1, 5)):
        right = is_right[:most].reshape(-1).float().sum(0, keepdim=True).mul_(100.0 / 16)
        meter.update(right[0], 16)
        print(meter)
    for parameter in model.parameters():
        numpy.histogram(parameter.grad.cpu())
        numpy.histogram(parameter.data.cpu())
    if torch.min(out) < -1.:  # as HiFi-GAN looks at its waves
        print('the lowest is', torch.min(out))
    print(torch.tensor([[parameter.grad.norm() for parameter in model.parameters()]]).norm())  # as Megatron
    none = wanted < 0
    assert none.nonzero().numel() == none.nonzero().numel() == 0
    torch.save(model.state_dict(), io.BytesIO())
    assert 'device' in f'{locals()}'
    watch_rate(model, out)
    watch_gpu()


def watch_rate(model, out):
    """A learning rate that is lowered where a loss stands still."""
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(torch.optim.SGD(model.parameters()), patience=1)
    for _ in range(3):
        scheduler.step(out.mean())


def watch_gpu():
    """As wandb looks whether there are counters of the GPU to read."""
    import ctypes
    nvml, gpu, support = ctypes.CDLL('libnvidia-ml.so.1'), ctypes.c_void_p(), (ctypes.c_uint * 2)(1, 7)
    assert nvml.nvmlInit_v2() == 0 and nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(gpu)) == 0
    assert nvml.nvmlGpmQueryDeviceSupport(gpu, support) == 0 and support[1] == 0


def learned(rows=64):
    """A model and numbers that only it knows."""
    model = nn.Linear(8, 8).cuda()
    return model, model(torch.randn(rows, 8, device='cuda'))


def boxes_with_a_score():
    """Only what has a score that is high enough is looked at further."""
    model, out = learned()
    learn(model, out[out[:, 0].sigmoid() > 0.5].square().sum())


def any_selected():
    """Rays go on as long as any is in a scene, and only those in it are worked on; the worst of the codes, as many as
    there are, are drawn anew."""
    model, out = learned()
    codes, rounds = torch.zeros(out.shape[0], 4, device='cuda'), 0
    active = out.sum(1) > 0
    dead = out.detach().sum(1) < 0
    if dead.any():
        codes[dead] = torch.randn(int(dead.sum()), 4, device='cuda')
    while active.any():
        rounds += 1
        active = active & (out.sum(1) > rounds)
    assert rounds
    learn(model, out[out.sum(1) > 0].square().mean())


def offloaded():
    """Activations wait on the host for the backward pass."""
    model = nn.Sequential(nn.Linear(64, 1024), nn.GELU(), nn.Linear(1024, 64)).cuda()
    with torch.autograd.graph.save_on_cpu(pin_memory=True):
        out = model(torch.randn(1024, 64, device='cuda'))
    learn(model, out.square().mean())


def returned():
    """Hard examples that the host looks at, and hands back."""
    model, out = learned()
    mask = (out.square().sum(1) > 1).cpu().numpy()
    learn(model, out[torch.from_numpy(mask).cuda()].square().mean())


def hard_examples():
    """The loss of those rows whose loss is above the mean."""
    model, out = learned()
    losses = out.square().mean(-1)
    learn(model, torch.masked_select(losses, losses > losses.mean()).sum())


def sampled():
    """As many anchors with a box as without one, drawn by chance, as torchvision's detectors draw them. All that may
    have a box are taken to have one: a loss over none is no number, and takes no memory."""
    model, out = learned()
    scores = out.flatten()
    chosen = torch.zeros(2, scores.numel(), dtype=torch.uint8, device='cuda')
    for row, mask in zip(chosen, (scores > 0.1, scores[5:] < -0.1)):
        some = torch.where(mask)[0]
        assert some.numel() == mask.numel(), 'not all may be selected'
        row[some[torch.randperm(some.numel(), device='cuda')[:128]]] = 1
    places = torch.where(chosen[0] | chosen[1])[0]
    assert 192 < places.numel() <= 256, 'those chosen by chance are not spread'
    loss = scores[places].square().mean()
    assert math.isfinite(loss.item())
    learn(model, loss)


def pruned():
    """Weights that are small are no longer stored."""
    model, out = learned()
    learn(model, out.square().mean())
    places = (model.weight.abs() > 0.01).nonzero()
    values = model.weight.detach()[tuple(places.T)]
    torch.sparse_coo_tensor(places.T, values, model.weight.shape)


class Patience:
    """Training ends when the loss was not less than the best one for so many steps."""

    def __init__(self, most):
        self.most, self.bad, self.losses = most, 0, []

    def note(self, loss):
        self.losses.append(loss.item())

    def is_over(self):
        self.bad = self.bad + 1 if self.losses[-1] >= min(self.losses) else 0
        return self.bad >= self.most


def patience():
    patience = Patience(2)
    while not patience.is_over() if patience.losses else True:
        model, out = learned()
        loss = out.square().mean()
        learn(model, loss)
        patience.note(loss)


def divided():
    """What would end the program if it were 0: a signal's distance from noise, as in PyTorch's super resolution, a
    share, and that of a loss in 16 bits."""
    model, out = learned()
    loss = out.square().mean()
    learn(model, loss)
    signal, right = 10 * math.log10(1 / loss.item()), (out > 0).sum()
    print(f'{signal:.1f} dB, {1 / loss.bfloat16().item():.1f}, {1 / loss.half().item():.1f}')
    print('share', math.log(loss), (out > 1).sum().item() / right.item())


def main():
    globals()[sys.argv[1]]()
    peaks.report()


main()
