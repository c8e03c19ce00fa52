"""Training whose epochs end in what no training step takes: a smaller batch, an evaluation that takes more memory, and
gathers what it gets (the loops of its own) or not (Lightning's, transformers').

    epochs.py loader|workers|endless|left|accelerate|lightning|trainer [epoch|steps]
"""
import os
import sys
import tempfile
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, IterableDataset

ROWS, BATCH = 1000, 16
EVALUATED_ROWS, EVALUATED_BATCH = 10000, 400
WIDTH, CLASSES, EPOCHS = 512, 1000, 8


class Rows(Dataset):
    def __init__(self, count=ROWS):
        self.row, self.count = torch.ones(WIDTH), count

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        return self.row, i % CLASSES


class Stream(IterableDataset):
    def __iter__(self):
        return map(Rows().__getitem__, range(ROWS))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, CLASSES))

    def forward(self, rows, labels=None):
        if torch.is_grad_enabled():
            time.sleep(0.01)  # an epoch is long beside the time until its steps are looked at
        scores = self.layers(rows)
        if labels is None:
            return scores
        return {'loss': nn.functional.cross_entropy(scores, labels), 'logits': scores}


def loaders(kind):
    workers = {'num_workers': 2, 'persistent_workers': True} if kind == 'workers' else {}
    train = DataLoader(Stream() if kind == 'endless' else Rows(), BATCH, shuffle=kind != 'endless', **workers)
    return train, DataLoader(Rows(EVALUATED_ROWS), EVALUATED_BATCH, **workers)


def loop(kind):
    model, (train, test) = Model().cuda(), loaders(kind)
    optimizer = torch.optim.AdamW(model.parameters())
    if kind == 'accelerate':
        from accelerate import Accelerator
        accelerator = Accelerator(gradient_accumulation_steps=2)
        model, optimizer, train, test = accelerator.prepare(model, optimizer, train, test)
    for _ in range(EPOCHS):
        for i, (rows, labels) in enumerate(train):
            if kind == 'left' and i == 40:  # steps of an epoch, by a limit of the program's own
                break
            loss = model(rows.cuda(), labels.cuda())['loss']
            if kind == 'accelerate':
                with accelerator.accumulate(model):
                    accelerator.backward(loss)
                    optimizer.step()
                    optimizer.zero_grad()
            else:
                loss.backward()
                optimizer.step()
                optimizer.zero_grad()
        with torch.no_grad():
            scores = [model(some.cuda()) for some, _ in test]
        print(f'after {i + 1} batches, the last of {len(rows)}: {len(scores)} evaluated', flush=True)


def trainer(when):
    from transformers import Trainer, TrainingArguments

    def collate(rows):
        return {'rows': torch.stack([row for row, _ in rows]), 'labels': torch.tensor([label for _, label in rows])}

    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            folder, per_device_train_batch_size=BATCH, per_device_eval_batch_size=EVALUATED_BATCH, num_train_epochs=EPOCHS,
            gradient_accumulation_steps=2, eval_strategy=when, eval_steps=60, save_strategy='no', report_to=[])
        Trainer(Model(), arguments, collate, Rows(), Rows(EVALUATED_ROWS)).train()


def lightning():
    import lightning

    class Module(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.model = Model()

        def training_step(self, batch, _):
            return self.model(*batch)['loss']

        def validation_step(self, batch, _):
            self.log('loss', self.model(*batch)['loss'])

        def configure_optimizers(self):
            return torch.optim.AdamW(self.parameters())

    with tempfile.TemporaryDirectory() as folder:
        lightning.Trainer(max_epochs=EPOCHS, num_sanity_val_steps=0, default_root_dir=folder, logger=False,
                          enable_progress_bar=False).fit(Module(), *loaders('lightning'))


os.environ['TOKENIZERS_PARALLELISM'] = 'false'
if sys.argv[1] == 'trainer':
    trainer(sys.argv[2])
elif sys.argv[1] == 'lightning':
    lightning()
else:
    loop(sys.argv[1])
