"""What LLaMA-Factory's sft stage allocates, case by case, on plimsoll's virtual GPU.

    export PYTHONPATH=LLAMAFACTORY:TRL DISABLE_VERSION_CHECK=1
    plimsoll exec --device sim:A100-SXM4-80GB,placement=ascending --observe -- \\
        VENV/bin/python make_llamafactory.py ID              prints a case with its figures, a line of llamafactory.jsonl

VENV: tests/virtual/install.sh's. LLAMAFACTORY: llamafactory 0.9.5 (pip install --no-deps --target) with omegaconf and whatever
else it imports; TRL: trl 0.24.0. The model is loaded as its loader.py does it: bf16, onto the GPU, by a device_map; its own functions
turn checkpointing on (reentrant is its default), make what is trained fp32 or add adapters, and its own trainer runs the
steps. Rows have no attention mask: its collator's would be B x S x 8 bytes more in each batch.
"""
import json
import os
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(HERE, '..', 'virtual', 'programs'))

BASE = {'kind': 'lm', 'attention': 'sdpa', 'compute_capability': 80, 'loop': 'trainer', 'clip': 1.0, 'checkpointing': 'full',
        'use_reentrant': True, 'optimizer': 'adamw-fused', 'precision': 'bf16-mixed', 'config': 'configs/x-llama-odd.json',
        'batch': 2, 'seq': 104}
CASES = {
    'llamafactory/full': {'made_on': 'cast', 'weights': 'fp32'},
    'llamafactory/lora': {'made_on': 'loaded', 'weights': 'bf16',
                          'lora': {'r': 8, 'target_modules': ['q_proj', 'v_proj']}},
}
STEPS = 4


def load(case, factory):
    """As load_model() of llamafactory/model/loader.py."""
    import torch
    import transformers
    from llamafactory.model.adapter import init_adapter
    from llamafactory.model.model_utils.checkpointing import prepare_model_for_training
    from quantized import checkpoint_of
    with open(os.path.join(HERE, case['config'])) as file:
        keys = json.load(file)
    config = transformers.AutoConfig.for_model(keys.pop('model_type'), **keys)
    config.use_cache = False
    auto = transformers.AutoModelForCausalLM
    path = checkpoint_of(auto, config, torch.bfloat16)
    model = auto.from_pretrained(path, config=config, torch_dtype='auto', device_map={'': 0}, low_cpu_mem_usage=True)
    from llamafactory.hparams import ModelArguments
    prepare_model_for_training(model, ModelArguments(model_name_or_path=path))
    model = init_adapter(config, model, ModelArguments(model_name_or_path=path), factory, True)
    return model.train(), config


def run(case):
    import torch
    import transformers
    from golden_trainer import Steps
    from llamafactory.hparams import FinetuningArguments
    from llamafactory.hparams.training_args import TrainingArguments
    from llamafactory.train.sft.trainer import CustomSeq2SeqTrainer
    from masks import answer_masks
    from rows import Rows
    torch.manual_seed(0)
    answer_masks(False)
    lora = case.get('lora')
    factory = FinetuningArguments(stage='sft', finetuning_type='lora' if lora else 'full',
                                  lora_target=','.join(lora['target_modules']) if lora else 'all',
                                  lora_rank=lora['r'] if lora else 8)
    with tempfile.TemporaryDirectory() as output:
        arguments = TrainingArguments(output_dir=output, max_steps=STEPS, bf16=True, optim='adamw_torch_fused',
                                      per_device_train_batch_size=case['batch'], report_to='none', disable_tqdm=True,
                                      logging_strategy='no', save_strategy='no', remove_unused_columns=False)
        model, config = load(case, factory)
        allocated, steps = torch.cuda.memory_allocated(), Steps(0)
        CustomSeq2SeqTrainer(finetuning_args=factory, processor=None, tokenizer=None, model=model, args=arguments,
                             train_dataset=Rows(case['batch'] * STEPS, case['seq'], config.vocab_size), callbacks=[steps],
                             data_collator=transformers.default_data_collator).train()
        counts = [(p.numel(), p.requires_grad) for p in model.parameters()]
        return {'parameters': sum(count for count, _ in counts),
                'trainable_parameters': sum(count for count, is_trained in counts if is_trained),
                'parameters_allocated': allocated, 'steps': steps.figures}


if __name__ == '__main__':
    chosen = {**BASE, **CASES[sys.argv[1]]}
    print(json.dumps({'id': sys.argv[1], **chosen, **run(chosen)}))
