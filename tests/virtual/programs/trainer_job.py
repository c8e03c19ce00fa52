"""A job of transformers' Trainer as people write them: all that it does stands in its config.

    python trainer_job.py train.json     of a model whose config.json is there, not of its weights
"""
import dataclasses
import sys
import tempfile

import torch
import transformers

import peaks
from rows import Rows

STEPS = 4


@dataclasses.dataclass
class Model:
    model_name_or_path: str
    max_seq_length: int = 128
    dtype: str = 'float32'
    attn_implementation: str = 'sdpa'
    use_peft: bool = False
    lora_r: int = 16
    lora_dropout: float = 0.05
    lora_target_modules: list[str] = None


def make(said):
    config = transformers.AutoConfig.from_pretrained(said.model_name_or_path)
    kind = {'dtype': getattr(torch, said.dtype), 'attn_implementation': said.attn_implementation}
    model = transformers.AutoModelForCausalLM.from_config(config, **kind)
    if said.use_peft:
        import peft
        model = peft.get_peft_model(model, peft.LoraConfig(
            r=said.lora_r, lora_dropout=said.lora_dropout, target_modules=said.lora_target_modules, task_type='CAUSAL_LM'))
    return model, config.vocab_size


def main():
    parser = transformers.HfArgumentParser((Model, transformers.TrainingArguments))
    said, arguments = parser.parse_json_file(sys.argv[1], allow_extra_keys=True)
    arguments.max_steps, arguments.disable_tqdm, arguments.report_to = STEPS, True, []
    arguments.save_strategy = 'no'
    model, vocabulary = make(said)
    samples = arguments.per_device_train_batch_size * arguments.gradient_accumulation_steps * STEPS
    rows = Rows(samples, said.max_seq_length, vocabulary)
    evaluated = Rows(2 * arguments.per_device_eval_batch_size, said.max_seq_length, vocabulary)
    with tempfile.TemporaryDirectory() as folder:
        arguments.output_dir = folder
        transformers.Trainer(model=model, args=arguments, train_dataset=rows, eval_dataset=evaluated).train()
    peaks.report()


main()
