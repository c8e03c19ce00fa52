"""A data set of random tokens; their labels are the tokens again, or a class of each row."""
import torch


class Rows(torch.utils.data.Dataset):
    def __init__(self, count, length, vocabulary, classifies=False):
        self.count, self.length, self.vocabulary, self.classifies = count, length, vocabulary, classifies

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        chance = torch.Generator().manual_seed(index)
        tokens = torch.randint(self.vocabulary, (self.length,), generator=chance)
        return {'input_ids': tokens, 'labels': 0 if self.classifies else tokens}
