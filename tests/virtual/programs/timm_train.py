"""An image model of timm: mixed precision, channels_last, an average of the weights.

    python timm_train.py --model resnet50 --batch-size 64 [--dtype float16] [--channels-last]
"""
import argparse
import contextlib

import timm.loss
import timm.optim
import timm.utils
import torch

import peaks


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--model', default='resnet50', help='any of timm')
    parser.add_argument('--batch-size', type=int, default=64)
    parser.add_argument('--grad-accum', type=int, default=1)
    parser.add_argument('--max-steps', type=int, default=4)
    parser.add_argument('--dtype', choices=('float32', 'bfloat16', 'float16'), default='bfloat16')
    parser.add_argument('--channels-last', action='store_true')
    parser.add_argument('--average', action='store_true', help='keep an average of the weights')
    options = parser.parse_args()

    dtype = getattr(torch, options.dtype)
    layout = torch.channels_last if options.channels_last else torch.contiguous_format
    model = timm.create_model(options.model, num_classes=1000).cuda().to(memory_format=layout)
    average = timm.utils.ModelEmaV3(model) if options.average else None
    optimizer = timm.optim.create_optimizer_v2(model, opt='adamw', lr=1e-3, weight_decay=0.05)
    scaler = torch.cuda.amp.GradScaler(enabled=dtype == torch.float16)
    loss_of = timm.loss.LabelSmoothingCrossEntropy()

    def amp():
        if dtype == torch.float32:
            return contextlib.nullcontext()
        return torch.autocast('cuda', dtype=dtype)

    for step in range(options.max_steps):
        for _ in range(options.grad_accum):
            images = torch.rand(options.batch_size, 3, 224, 224).cuda().to(memory_format=layout)
            labels = torch.randint(1000, (options.batch_size,)).cuda()
            with amp():
                loss = loss_of(model(images), labels) / options.grad_accum
            scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
        if average:
            average.update(model, step)
    peaks.report(model=options.model)


main()
