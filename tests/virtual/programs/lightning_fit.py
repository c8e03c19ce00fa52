"""An image classifier with Lightning's Trainer: bf16, accumulation, clipping, a validation pass.

    python lightning_fit.py --batch-size 64 --grad-accum 2 [--precision bf16-mixed]
"""
import argparse

import lightning
import torch
import torchvision
from torch.utils.data import DataLoader

import peaks


class Classifier(lightning.LightningModule):
    def __init__(self, name):
        super().__init__()
        self.network = torchvision.models.get_model(name, num_classes=100)

    def loss(self, batch):
        images, labels = batch
        return torch.nn.functional.cross_entropy(self.network(images), labels)

    def training_step(self, batch, index):
        loss = self.loss(batch)
        self.log('loss', loss)
        return loss

    def validation_step(self, batch, index):
        self.log('validation_loss', self.loss(batch))

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=1e-3)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--model', default='resnet18')
    parser.add_argument('--batch-size', type=int, default=64)
    parser.add_argument('--grad-accum', type=int, default=1)
    parser.add_argument('--max-steps', type=int, default=4)
    parser.add_argument('--precision', default='bf16-mixed')
    options = parser.parse_args()

    count = options.batch_size * options.grad_accum * options.max_steps
    images = torchvision.datasets.FakeData(count, (3, 224, 224), 100,
                                           torchvision.transforms.ToTensor())
    few = torch.utils.data.Subset(images, range(options.batch_size))
    trainer = lightning.Trainer(
        accelerator='gpu', devices=1, precision=options.precision, max_steps=options.max_steps,
        accumulate_grad_batches=options.grad_accum, gradient_clip_val=1.0, logger=False,
        enable_checkpointing=False, enable_progress_bar=False)
    trainer.fit(Classifier(options.model), DataLoader(images, options.batch_size, shuffle=True),
                DataLoader(few, options.batch_size))
    peaks.report(steps=trainer.global_step)


main()
