"""TRL's trainers for golden_trainer.py: SFTTrainer (`loop: trl-sft`), DPOTrainer (`trl-dpo`), KTOTrainer (`trl-kto`),
ORPOTrainer (`trl-orpo`), CPOTrainer (`trl-cpo`) and RewardTrainer (`trl-reward`)."""
from datasets import Dataset
from tokenizers import Tokenizer, models
from transformers import PreTrainedTokenizerFast, ProcessorMixin
from trl import DPOConfig, DPOTrainer, KTOConfig, KTOTrainer, RewardConfig, RewardTrainer, SFTConfig, SFTTrainer
from trl.experimental.cpo import CPOConfig, CPOTrainer
from trl.experimental.orpo import ORPOConfig, ORPOTrainer
from trl.trainer.utils import global_then_local_main_first

from pictures import rows_with_images
from quantized import reference_of


def tokenizer():
    """One that is asked for nothing but its tokens of padding and of ends: rows are numbers already."""
    return PreTrainedTokenizerFast(tokenizer_object=Tokenizer(models.WordLevel({'<end>': 0}, '<end>')),
                                   eos_token='<end>', pad_token='<end>', unk_token='<end>')


class Arguments(SFTConfig):
    """The length of rows is the case's own."""

    def __init__(self, **named):
        super().__init__(**{'max_length': None, **named})


def shorter(case, i):
    """By how many tokens the row is: with `padded` the last of each batch, whose rows come in their order, by one."""
    return int(bool(case.get('padded')) and (i + 1) % case['batch'] == 0)


def as_dataset(case, rows):
    return rows and Dataset.from_list([{'input_ids': rows[i]['input_ids'].tolist()[shorter(case, i):]}
                                       for i in range(len(rows))])


class Processor(ProcessorMixin):
    """Of images and text, whose chats and images come to numbers that are there already."""

    def __init__(self, case, config):
        self.tokenizer, self.chat_template, self.case, self.config = tokenizer(), None, case, config

    def apply_chat_template(self, chats, **_):
        batch = rows_with_images(self.case, self.config, len(chats))
        del batch['labels']
        return batch


def as_chats(rows):
    return rows and Dataset.from_list([{'images': [0], 'messages': [{'role': 'user', 'content': ''}]}] * len(rows))


def make(case, train_dataset, eval_dataset, data_collator, model, **named):
    """Of images and text TRL's own collator asks a processor for what the chats of a batch come to."""
    sees = case['kind'] == 'image-text'
    rows = [as_chats(rows) if case.get('images') else as_dataset(case, rows) for rows in (train_dataset, eval_dataset)]
    return SFTTrainer(model=model, train_dataset=rows[0], eval_dataset=rows[1],
                      processing_class=Processor(case, model.config) if sees else tokenizer(), **named)


class PairArguments(DPOConfig):
    def __init__(self, **named):
        super().__init__(**{'max_length': None, **named})


class Tokenized(DPOTrainer):
    """Pairs are numbers already."""

    def _prepare_dataset(self, dataset, *_):
        with global_then_local_main_first():
            return dataset


def as_pairs(case, rows):
    """Two answers to a prompt of `prompt` tokens."""
    prompt = case.get('prompt', 0)
    pairs = []
    for i in range(len(rows)):
        ids = rows[i]['input_ids'].tolist()
        pairs.append({'prompt_ids': ids[:prompt], 'chosen_ids': ids[prompt:],
                      'rejected_ids': ids[prompt:len(ids) - shorter(case, i)]})
    return Dataset.from_list(pairs)


class RatedArguments(KTOConfig):
    def __init__(self, **named):
        super().__init__(**{'max_length': None, 'train_sampling_strategy': 'sequential', **named})


class Rated(KTOTrainer):
    """Rows are numbers already."""

    def _prepare_dataset(self, dataset, *_):
        with global_then_local_main_first():
            return dataset


def as_rated(case, rows, batch):
    """A completion of a prompt of `prompt` tokens, and that of the row before, as KTOTrainer rotates them within a batch;
    the first half of a batch is desirable."""
    prompt, made = case.get('prompt', 0), []
    for i in range(len(rows)):
        ids = rows[i]['input_ids'].tolist()
        made.append({'prompt_ids': ids[:prompt], 'completion_ids': ids[prompt:len(ids) - shorter({**case, 'batch': batch}, i)],
                     'label': i % batch < (batch + 1) // 2})
    for i, row in enumerate(made):
        row['KL_completion_ids'] = made[i - 1 if i % batch else i + batch - 1]['completion_ids']
    return Dataset.from_list(made)


def make_kto(case, model, train_dataset, eval_dataset, data_collator, preprocess_logits_for_metrics, **named):
    evaluation = case.get('evaluation', {})
    return make_compared(Rated, case, model, train_dataset=as_rated(case, train_dataset, case['batch']),
                         eval_dataset=eval_dataset and as_rated(case, eval_dataset, evaluation['batch']), **named)


def make_dpo(case, model, train_dataset, eval_dataset, data_collator, preprocess_logits_for_metrics, **named):
    return make_compared(Tokenized, case, model, train_dataset=as_pairs(case, train_dataset),
                         eval_dataset=eval_dataset and as_pairs(case, eval_dataset), **named)


def make_compared(kind, case, model, **named):
    """The reference is loaded from a checkpoint in the type of the weights; beside adapters there is none."""
    if 'lora' not in case:
        model.config._name_or_path = reference_of(case, model)
    from golden import lora_of
    adapters = lora_of(case['lora']) if 'lora' in case else None
    return kind(model=model, peft_config=adapters, processing_class=tokenizer(), **named)


class Numbers:
    """The pairs of ORPOTrainer and CPOTrainer are rows of the case, of which a text says which."""

    def tokenize_row(self, feature, *_, **__):
        row = self.pairs[int(feature['prompt'])]
        rows = {'chosen': row['prompt_ids'] + row['chosen_ids'], 'rejected': row['prompt_ids'] + row['rejected_ids']}
        hidden, made = len(row['prompt_ids']), {}
        for name, ids in rows.items():
            made.update({f'{name}_input_ids': ids, f'{name}_attention_mask': [1] * len(ids),
                         f'{name}_labels': [-100] * hidden + ids[hidden:]})
        return {**made, 'prompt_input_ids': row['prompt_ids'], 'prompt_attention_mask': [1] * hidden}


class Odds(Numbers, ORPOTrainer):
    pass


class Contrast(Numbers, CPOTrainer):
    pass


class OddsArguments(ORPOConfig):
    def __init__(self, **named):
        super().__init__(**{'max_length': 1 << 20, **named})


class ContrastArguments(CPOConfig):
    def __init__(self, **named):
        super().__init__(**{'max_length': 1 << 20, **named})


def make_odds(kind, case, model, train_dataset, eval_dataset, data_collator, **named):
    from golden import lora_of
    kind.pairs = list(as_pairs(case, train_dataset))
    texts = [Dataset.from_list([{'prompt': str(i), 'chosen': '', 'rejected': ''} for i in range(len(rows))]) if rows else None
             for rows in (train_dataset, eval_dataset)]
    return kind(model=model, peft_config=lora_of(case['lora']) if 'lora' in case else None, train_dataset=texts[0],
                eval_dataset=texts[1], processing_class=tokenizer(), **named)


class RewardArguments(RewardConfig):
    def __init__(self, **named):
        super().__init__(**{'max_length': None, **named})


def as_rewarded(case, rows):
    """Two rows of a pair, of which with `padded` the last rejected one of a batch is shorter"""
    ids = [rows[i]['input_ids'].tolist() for i in range(len(rows))]
    return Dataset.from_list([{'chosen_ids': row, 'rejected_ids': row[shorter(case, i):]} for i, row in enumerate(ids)])


def make_reward(case, model, train_dataset, eval_dataset, data_collator, preprocess_logits_for_metrics, **named):
    from golden import lora_of
    adapters = lora_of(case['lora']) if 'lora' in case else None
    return RewardTrainer(model=model, peft_config=adapters, train_dataset=as_rewarded(case, train_dataset),
                         eval_dataset=eval_dataset and as_rewarded(case, eval_dataset), processing_class=tokenizer(),
                         **named)
