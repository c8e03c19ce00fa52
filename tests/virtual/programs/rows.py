"""Data sets: of random tokens, whose labels are the tokens again, or a class of each row or token, or where an answer
begins and ends; of images, of one class; of sounds. And collators, which pad."""
import torch

ANSWER = ('start_positions', 'end_positions')


class Rows(torch.utils.data.Dataset):
    def __init__(self, count, length, vocabulary, kind='lm'):
        self.count, self.length, self.vocabulary, self.kind = count, length, vocabulary, kind

    def __len__(self):
        return self.count

    @staticmethod
    def kind_of(case):
        """A classification of one class is a regression, but for a reward."""
        is_number = case['kind'] == 'classify' and case.get('labels') == 1 and case['loop'] in ('plain', 'trainer')
        return 'number' if is_number else case['kind']

    def __getitem__(self, index):
        chance = torch.Generator().manual_seed(index)
        tokens = torch.randint(self.vocabulary, (self.length,), generator=chance)
        if self.kind == 'answers':
            return {'input_ids': tokens, **dict.fromkeys(ANSWER, 0)}
        labels = {'classify': 0, 'number': 0.0, 'tokens': torch.zeros_like(tokens)}
        return {'input_ids': tokens, 'labels': labels.get(self.kind, tokens)}


def pad(rows):
    """A batch whose last row is one token short, as collators make it: an attention mask hides what was added, which is no
    label."""
    ids = torch.stack([row['input_ids'] for row in rows])
    mask = torch.ones_like(ids)
    mask[-1, -1] = 0
    of_rows = {name: torch.tensor([row[name] for row in rows]) for name, value in rows[0].items() if isinstance(value, (int, float))}
    if not of_rows:
        labels = torch.stack([row['labels'] for row in rows])
        of_rows = {'labels': labels.masked_fill(mask == 0, -100)}
    return {'input_ids': ids, 'attention_mask': mask, **of_rows}


class Pairs(Rows):
    """Rows with a target of its own, as a tokenizer makes them"""

    def __init__(self, count, length, target, vocabulary):
        super().__init__(count, length, vocabulary)
        self.target = target

    def __getitem__(self, index):
        tokens = super().__getitem__(index)['input_ids']
        chance = torch.Generator().manual_seed(index)
        labels = torch.randint(self.vocabulary, (self.target,), generator=chance)
        return {'input_ids': tokens, 'attention_mask': torch.ones_like(tokens), 'labels': labels}


class Tokenizer:
    """What DataCollatorForSeq2Seq asks of one, whose last row is one token short where it `hides`."""
    padding_side = 'right'

    def __init__(self, hides):
        self.hides = hides

    def pad(self, rows, **_):
        batch = {name: torch.stack([row[name] for row in rows]) for name in rows[0]}
        if self.hides:
            batch['attention_mask'][-1, -1] = 0
        return batch


def pad_pairs(model, hides):
    """DataCollatorForSeq2Seq, which shifts the labels where it knows the model. Where it `hides`, the last row's source and
    target are one token short."""
    from transformers import DataCollatorForSeq2Seq
    collate = DataCollatorForSeq2Seq(Tokenizer(hides), model=model)

    def collated(rows):
        if hides:
            rows = [*rows[:-1], {**rows[-1], 'labels': torch.cat([rows[-1]['labels'][:-1], torch.tensor([-100])])}]
        return collate([{**row, 'labels': row['labels'].tolist()} for row in rows])
    return collated


class Sounds(torch.utils.data.Dataset):
    """What whisper's feature extractor makes of sounds, which are all as long as the model's, with a target of tokens"""

    def __init__(self, count, config, length):
        self.count, self.length, self.vocabulary = count, length, config.vocab_size
        self.features = config.num_mel_bins, 2 * config.max_source_positions

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        chance = torch.Generator().manual_seed(index)
        return {'input_features': torch.zeros(self.features),
                'labels': torch.randint(self.vocabulary, (self.length,), generator=chance)}


def pad_sounds(hides):
    """The collator of fine-tuning speech models (DataCollatorSpeechSeq2SeqWithPadding): features are of one length, and
    labels padded with -100; where it `hides`, the last row's are one token short."""
    def collate(rows):
        batch = {name: torch.stack([row[name] for row in rows]) for name in rows[0]}
        if hides:
            batch['labels'][-1, -1] = -100
        return batch
    return collate


def in_one_row(documents):
    """A collator that puts all rows into one, each of so many documents of one length."""
    from transformers import DataCollatorWithFlattening
    flatten = DataCollatorWithFlattening()

    def collate(rows):
        return flatten([{'input_ids': part} for row in rows for part in row['input_ids'].chunk(documents)])
    return collate


class Images(torch.utils.data.Dataset):
    def __init__(self, count, side):
        self.count, self.side = count, side

    def __len__(self):
        return self.count

    def __getitem__(self, _):
        return {'pixel_values': torch.zeros(3, self.side, self.side), 'labels': 0}
