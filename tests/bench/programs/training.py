"""What the programs beside it share: options, precision, optimizers, the loop over steps.

They train as the published benchmarks did that ../programs.csv names, in eager PyTorch alone; but for
cudnn.benchmark, which a virtual GPU has no times for.
"""
import argparse
import contextlib

import torch

LAYOUTS = {'nchw': torch.contiguous_format, 'nhwc': torch.channels_last}
PRECISIONS = ('fp32', 'tf32', 'fp16', 'fp16-mixed', 'fp16-weights')


def parser(text):
    out = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    out.add_argument('--batch', type=int, required=True)
    out.add_argument('--steps', type=int, default=100)
    out.add_argument('--precision', choices=PRECISIONS, default='fp32',
                     help='fp16: all of it; fp16-mixed: autocast; fp16-weights: with masters in fp32')
    out.add_argument('--no-scaler', action='store_true', help='autocast without a GradScaler')
    out.add_argument('--optimizer', default='sgd',
                     choices=('none', 'sgd', 'adamw', 'bertadam', 'adam-master'))
    return out


def allow_tf32(options):
    torch.backends.cuda.matmul.allow_tf32 = options.precision == 'tf32'
    torch.backends.cudnn.allow_tf32 = options.precision == 'tf32'


# --- optimizers -----------------------------------------------------------------------------------

class BertAdam(torch.optim.Optimizer):
    """Adam as BERT's first PyTorch implementations have it: parameter by parameter, each clipped alone."""

    def __init__(self, parameters):
        super().__init__(parameters, {'lr': 3e-5, 'decay': 0.01})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group['params']:
                if p.grad is None:
                    continue
                state = self.state[p]
                if not state:
                    state['m'], state['v'] = torch.zeros_like(p), torch.zeros_like(p)
                torch.nn.utils.clip_grad_norm_(p, 1.0)
                state['m'].mul_(0.9).add_(p.grad, alpha=0.1)
                state['v'].mul_(0.999).addcmul_(p.grad, p.grad, value=0.001)
                update = state['m'] / (state['v'].sqrt() + 1e-6)
                if group['decay']:
                    update += group['decay'] * p
                p.add_(-(group['lr'] * update))


class MasterAdam:
    """Adam on masters in fp32 of a model in fp16, as apex's amp does at its level O2."""

    def __init__(self, parameters):
        self.model = list(parameters)
        self.masters = [p.detach().float() for p in self.model]
        self.adam = torch.optim.AdamW(self.masters, lr=3e-5, fused=True)
        self.scale = 1024.0

    def step(self):
        used = [i for i, p in enumerate(self.model) if p.grad is not None]
        for i in used:
            if self.masters[i].grad is None:
                self.masters[i].grad = torch.empty_like(self.masters[i])
        gradients = [self.masters[i].grad for i in used]
        torch._foreach_copy_(gradients, [self.model[i].grad for i in used])
        torch._foreach_mul_(gradients, 1 / self.scale)
        norm = torch.stack(torch._foreach_norm(gradients)).norm().item()
        if 1 / (norm + 1e-6) < 1:
            torch._foreach_mul_(gradients, 1 / (norm + 1e-6))
        self.adam.step()
        torch._foreach_copy_([self.model[i].detach() for i in used], [self.masters[i] for i in used])

    def zero_grad(self):
        for p in self.model:
            p.grad = None


def optimizer_of(options, model):
    parameters = list(model.parameters())
    if options.optimizer == 'sgd':
        return torch.optim.SGD(parameters, lr=0.1, momentum=0.9, weight_decay=1e-4, foreach=False)
    if options.optimizer == 'adamw':
        return torch.optim.AdamW(parameters, lr=1e-4, foreach=False)
    if options.optimizer == 'bertadam':
        return BertAdam([p for name, p in model.named_parameters() if 'pooler' not in name])
    if options.optimizer == 'adam-master':
        return MasterAdam(p for name, p in model.named_parameters() if 'pooler' not in name)
    one = torch.zeros(1, device='cuda', requires_grad=True)  # of nothing, so that steps are seen
    one.grad = torch.zeros_like(one)
    return torch.optim.SGD([one], lr=0.0)


# --- steps ----------------------------------------------------------------------------------------

def train(options, model, loss_of):
    """`loss_of()` makes a batch's loss, all of it under autocast where there is any."""
    mixed = options.precision == 'fp16-mixed'
    optimizer = optimizer_of(options, model)
    scaler = torch.amp.GradScaler('cuda', enabled=mixed and not options.no_scaler)
    for _ in range(options.steps):
        with torch.autocast('cuda', dtype=torch.float16) if mixed else contextlib.nullcontext():
            loss = loss_of()
        if isinstance(optimizer, MasterAdam):
            (loss.float() * optimizer.scale).backward()
            optimizer.step()
        else:
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
        if options.optimizer == 'none':
            model.zero_grad()
        else:
            optimizer.zero_grad()
        torch.cuda.synchronize()
