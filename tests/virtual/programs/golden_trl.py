"""TRL's SFTTrainer for golden_trainer.py (`loop: trl-sft`)."""
from datasets import Dataset
from tokenizers import Tokenizer, models
from transformers import PreTrainedTokenizerFast
from trl import SFTConfig, SFTTrainer


def tokenizer():
    """One that is asked for nothing but its tokens of padding and of ends: rows are numbers already."""
    return PreTrainedTokenizerFast(tokenizer_object=Tokenizer(models.WordLevel({'<end>': 0}, '<end>')),
                                   eos_token='<end>', pad_token='<end>', unk_token='<end>')


class Arguments(SFTConfig):
    """The length of rows is the case's own."""

    def __init__(self, **named):
        super().__init__(**{'max_length': None, **named})


def as_dataset(rows):
    return rows and Dataset.from_list([{'input_ids': rows[i]['input_ids'].tolist()} for i in range(len(rows))])


def make(train_dataset, eval_dataset, **named):
    return SFTTrainer(train_dataset=as_dataset(train_dataset), eval_dataset=as_dataset(eval_dataset),
                      processing_class=tokenizer(), **named)
