"""Golden training runs: what PyTorch allocates in each of four optimizer steps.

    python golden.py CASES.jsonl ID [ID ...] [--batch N]

Prints a JSON line for each ID with the measured figures, in bytes, peaks reset before each step.
With several IDs each runs in a child of its own, so that nothing cached survives; with one ID it
runs here, so that an OutOfMemoryError ends the program.

The order of what is done to the GPU is that of the cases' own script and part of the data: the
same allocations in another order give other figures.
"""
import argparse
import json
import os
import sys
import tempfile
import warnings

os.environ.setdefault('HF_HUB_OFFLINE', '1')
warnings.filterwarnings('ignore')
import torch
import transformers

from children import in_child
from rows import ANSWER, Rows, pad

transformers.logging.set_verbosity_error()

AUTO_CLASS = {'lm': 'AutoModelForCausalLM', 'mlm': 'AutoModelForMaskedLM',
              'classify': 'AutoModelForSequenceClassification', 'tokens': 'AutoModelForTokenClassification',
              'answers': 'AutoModelForQuestionAnswering',
              'image-text': 'AutoModelForImageTextToText', 'seq2seq': 'AutoModelForSeq2SeqLM', 'image': 'AutoModelForImageClassification',
              'speech': 'AutoModelForSpeechSeq2Seq'}
PARAMETER_TYPE = {'bf16': torch.bfloat16, 'fp16': torch.float16}
STEPS = 4


class ImageLoss(torch.nn.Module):
    """A torchvision model with a loss, called as those of transformers are."""

    def __init__(self, network):
        super().__init__()
        self.network = network

    def forward(self, pixel_values, labels):
        scores = self.network(pixel_values)
        # A class of its own is a cycle: as in the cases, the loss lives until Python collects.
        return type('Output', (), {'loss': torch.nn.functional.cross_entropy(scores, labels)})


def without_dropout(config):
    names = [n for n in ('text_config', 'vision_config') if hasattr(config, n)]
    parts = [config] + [getattr(config, n) for n in names]
    for part in parts:
        for name, value in list(vars(part).items()):
            if 'drop' in name and isinstance(value, float):
                setattr(part, name, 0.0)


def make_model(case, folder):
    model, config = load_model(case, folder)
    if case.get('freeze_vision'):
        for name, parameter in model.named_parameters():
            parameter.requires_grad_(not any(part in name for part in ('.visual.', '.vision_tower.', '.multi_modal_projector.')))
    if case.get('freeze_encoder'):
        model.freeze_encoder()
    if case['kind'] == 'classify' and config.pad_token_id is None and not case.get('no_padding'):
        model.config.pad_token_id = 0  # as programs take the tokenizer's: transformers wants one for several rows
    return model, config


def load_model(case, folder):
    dtype = PARAMETER_TYPE.get(case.get('weights', case['precision']), torch.float32)
    if case['config'].startswith('torchvision:'):
        import torchvision
        with torch.device('cuda'):
            network = torchvision.models.get_model(case['config'].removeprefix('torchvision:'))
        return ImageLoss(network.to(dtype)), None
    from masks import answer_masks  # here: imports move the moments at which Python collects
    if not case.get('padded') and case.get('packing') != 'one-row':  # the virtual GPU finds what masks hide there
        answer_masks(case.get('packed', False))
    with open(os.path.join(folder, case['config'])) as file:
        keys = json.load(file)
    from linear_packages import take
    take(case)
    config = transformers.AutoConfig.for_model(keys.pop('model_type'), **keys)
    if case.get('dropout') == 0:
        without_dropout(config)
    if 'labels' in case:
        config.num_labels = case['labels']
    attention = case.get('attention', 'sdpa')
    config._attn_implementation = attention
    for part in (config, getattr(config, 'text_config', None)):
        if hasattr(part, 'use_cache') and case.get('vllm') != 'none' and not case.get('use_cache'):
            part.use_cache = False
    if case.get('cut_cross_entropy'):
        from cut_head import patch
        patch(config.model_type)
    auto = getattr(transformers, AUTO_CLASS[case['kind']])
    if case['kind'] == 'seq2seq' and not keys.get('tie_word_embeddings', True):  # as from_pretrained leaves published ones
        transformers.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING[type(config)]._tied_weights_keys.pop('lm_head.weight', None)
    if 'quantization' in case:
        from quantized import load
        return load(case, auto, config, dtype), config
    if case.get('made_on') in ('loaded', 'cast'):
        from quantized import checkpoint_of, published_as
        kept = torch.bfloat16 if case['made_on'] == 'cast' else dtype
        checkpoint = checkpoint_of(published_as(case, auto), config, PARAMETER_TYPE.get(case.get('checkpoint'), kept))
        model = auto.from_pretrained(checkpoint, config=config, dtype=kept, attn_implementation=attention,
                                     device_map={'': int(os.environ.get('LOCAL_RANK', 0))})
        for name, parameter in model.named_parameters() if case['made_on'] == 'cast' else ():
            if not (case.get('freeze_vision') and '.visual.' in name):  # LLaMA-Factory's _setup_full_tuning()
                parameter.data = parameter.data.to(dtype)
        if 'upcast' in case:
            from axolotl_model import cast_around
            cast_around(case, model, None, dtype)
        return model, config
    torch.set_default_dtype(dtype)
    with torch.device('cpu' if case.get('made_on') == 'host' else 'cuda'):
        model = auto.from_config(config, attn_implementation=attention)
    if case.get('made_on') == 'host':  # as from_pretrained() keeps them, where a model says so
        for name, buffer in model.named_buffers():
            if name.split('.')[-1] in (model._keep_in_fp32_modules_strict or ()):
                buffer.data = buffer.data.float()
    torch.set_default_dtype(torch.float32)
    return model, config


def make_batch(case, config, model, size):
    kind, seq = case['kind'], case.get('seq')
    dtype = next(model.parameters()).dtype

    def tokens(length):
        return torch.zeros(size, length, dtype=torch.long, device='cuda')

    if case.get('images'):
        from pictures import rows_with_images
        return {name: values.to('cuda') for name, values in rows_with_images(case, config, size).items()}
    if case.get('packing') == 'one-row':
        documents = case.get('documents', 1)
        ids = torch.zeros(1, size * seq, dtype=torch.long, device='cuda')
        positions = torch.arange(seq // documents).repeat(size * documents)[None]
        return {'input_ids': ids, 'labels': ids, 'position_ids': positions.to('cuda')}
    if kind == 'speech':
        from rows import Sounds, pad_sounds
        rows = Sounds(size, config, seq)
        batch = pad_sounds(case.get('padded', False))([rows[i] for i in range(size)])
        return {'input_features': batch['input_features'].to('cuda', dtype), 'labels': batch['labels'].to('cuda')}
    if kind == 'seq2seq' and case.get('padded'):
        from rows import Pairs, pad_pairs
        rows = Pairs(size, seq, case['target_seq'], config.vocab_size)
        batch = pad_pairs(None, True)([rows[i] for i in range(size)])
        return {name: values.to('cuda') for name, values in batch.items()}
    if case.get('padded'):
        rows = Rows(size, seq, config.get_text_config().vocab_size, Rows.kind_of(case))
        batch = pad([rows[i] for i in range(size)])
        if kind == 'mlm':
            del batch['labels']
        batch = {name: values.to('cuda') for name, values in batch.items()}
        return batch if kind == 'answers' else {'labels': batch['input_ids'], **batch}
    if kind == 'classify':
        dtype = torch.float if Rows.kind_of(case) == 'number' else torch.long
        return {'input_ids': tokens(seq), 'labels': torch.zeros(size, dtype=dtype, device='cuda')}
    if kind == 'answers':
        ids = tokens(seq)
        return {'input_ids': ids, **{name: torch.zeros(size, dtype=torch.long, device='cuda') for name in ANSWER}}
    if kind == 'tokens':
        ids = tokens(seq)
        return {'input_ids': ids, 'labels': tokens(seq)}
    if kind in ('lm', 'mlm', 'image-text'):
        ids = tokens(seq)
        return {'input_ids': ids, 'labels': ids}
    if kind == 'seq2seq':
        ids = tokens(seq)
        return {'input_ids': ids, 'labels': tokens(case['target_seq'])}
    side = case.get('image', 224)
    return {'pixel_values': torch.zeros(size, 3, side, side, dtype=dtype, device='cuda'),
            'labels': torch.zeros(size, dtype=torch.long, device='cuda')}


def lora_of(options):
    """`dropout` and `dora` have names of their own, `kernels` are axolotl's, the others are LoraConfig's."""
    from peft import LoraConfig
    others = {name: value for name, value in options.items() if name not in ('dropout', 'dora', 'kernels')}
    if 'kernels' in options:  # they ask for it, and axolotl always says it
        others['task_type'] = 'CAUSAL_LM'
    return LoraConfig(lora_alpha=2 * options['r'], lora_dropout=options.get('dropout', 0.0), use_dora=options.get('dora', False),
                      **others)


def with_lora(model, options):
    from peft import get_peft_model
    model = get_peft_model(model, lora_of(options))
    if 'kernels' in options:
        from axolotl_model import patch
        return patch(model, options['kernels'])
    return model


def make_optimizer(name, parameters):
    rate = 1e-4
    if name == 'adamw-8bit':
        import bitsandbytes
        return bitsandbytes.optim.AdamW8bit(parameters, lr=rate)
    if name.startswith('adamw-torch'):
        import torchao.optim
        return {'8bit': torchao.optim.AdamW8bit, '4bit': torchao.optim.AdamW4bit}[name[-4:]](parameters, lr=rate)
    return {'adamw': lambda: torch.optim.AdamW(parameters, lr=rate),
            'adamw-fused': lambda: torch.optim.AdamW(parameters, lr=rate, fused=True),
            'sgd': lambda: torch.optim.SGD(parameters, lr=rate, momentum=0.9),
            'adafactor': lambda: torch.optim.Adafactor(parameters, lr=rate)}[name]()


def elements(parameter):
    """Of the whole, or of what a quantised one stands for."""
    state = getattr(parameter, 'quant_state', None)
    return state.shape.numel() if state else getattr(parameter, 'ds_numel', parameter.numel())


def count(model):
    counts = [(elements(p), p.requires_grad) for p in model.parameters()]
    return {'parameters': sum(count for count, _ in counts),
            'trainable_parameters': sum(count for count, is_trained in counts if is_trained)}


def run_by_trainer(case, folder, size):
    """Trainer moves the model, makes the optimizer and runs the steps. Its arguments come first: with ZeRO 3 they are
    why the model is partitioned as it is created. DPOTrainer, GRPOTrainer and RewardTrainer give it the adapters
    themselves."""
    from golden_trainer import make_arguments, train
    with tempfile.TemporaryDirectory() as output:
        arguments = make_arguments(case, output, size, STEPS)
        model, config = make_model(case, folder)
        gives_adapters = case['loop'] in ('trl-dpo', 'trl-kto', 'trl-orpo', 'trl-cpo', 'trl-grpo', 'trl-reward')
        if 'lora' in case and not gives_adapters:
            model = with_lora(model, case['lora'])
        rank = {'rank': int(os.environ['RANK'])} if case.get('sharding') else {}
        before = {**count(model), 'parameters_allocated': torch.cuda.memory_allocated()}
        figures = train(case, arguments, model, config, size, STEPS)
        return {**rank, **before, **(count(model) if gives_adapters else {}), **figures}


def loading_peaks(case):
    """What loading and quantising the model took at most"""
    if 'quantization' not in case:
        return {}
    seen = torch.cuda.memory_stats()
    return {'loading_peak_allocated': seen['allocated_bytes.all.peak'], 'loading_peak_reserved': seen['reserved_bytes.all.peak']}


def run(case, folder, size):
    torch.manual_seed(0)
    if case.get('loop', 'plain') != 'plain':
        return run_by_trainer(case, folder, size)
    model, config = make_model(case, folder)
    if case.get('channels_last'):
        model = model.to(memory_format=torch.channels_last)
    if case.get('liger'):
        from liger_kernel.transformers import _apply_liger_kernel_to_instance
        _apply_liger_kernel_to_instance(model=model)
    if 'lora' in case:
        model = with_lora(model, case['lora'])
    model.to('cuda').train()
    loading = loading_peaks(case)
    if case.get('checkpointing') == 'full':
        reenters = case.get('use_reentrant', False)
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={'use_reentrant': reenters})
        if 'lora' in case:
            model.enable_input_require_grads()
    trained = [p for p in model.parameters() if p.requires_grad]
    optimizer = make_optimizer(case['optimizer'], trained)
    is_mixed = case['precision'].endswith('-mixed')
    half = torch.float16 if case['precision'].startswith('fp16') else torch.bfloat16
    scaler = torch.amp.GradScaler('cuda') if case['precision'] == 'fp16-mixed' else None
    batch = make_batch(case, config, model, size)
    if case.get('channels_last'):
        batch['pixel_values'] = batch['pixel_values'].to(memory_format=torch.channels_last)
    figures = {**count(model), 'parameters_allocated': torch.cuda.memory_allocated(), **loading, 'steps': []}
    for _ in range(STEPS):
        torch.cuda.reset_peak_memory_stats()
        for _ in range(case.get('accumulation', 1)):
            with torch.autocast('cuda', dtype=half, enabled=is_mixed):
                loss = model(**batch).loss
            after_forward = torch.cuda.memory_allocated()
            (scaler.scale(loss) if scaler else loss).backward()
            del loss
        if case.get('clip'):
            if scaler:
                scaler.unscale_(optimizer)
            torch.nn.utils.clip_grad_norm_(trained, 1.0)
        if scaler:
            scaler.step(optimizer)
            scaler.update()
        else:
            optimizer.step()
        optimizer.zero_grad()
        seen = torch.cuda.memory_stats()
        figures['steps'].append({'after_forward': after_forward,
                                 'peak_allocated': seen['allocated_bytes.all.peak'],
                                 'peak_reserved': seen['reserved_bytes.all.peak'],
                                 'peak_requested': seen['requested_bytes.all.peak'],
                                 'end_allocated': seen['allocated_bytes.all.current'],
                                 'end_reserved': seen['reserved_bytes.all.current']})
    return figures


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('cases')
    parser.add_argument('id', nargs='+')
    parser.add_argument('--batch', type=int, help='instead of the case\'s own')
    options = parser.parse_args()
    with open(options.cases) as file:
        cases = {case['id']: case for case in map(json.loads, file)}
    folder = os.path.dirname(os.path.abspath(options.cases))
    for name in options.id:
        if name not in cases:
            sys.exit(f'no case {name} in {options.cases}')
        case = cases[name]

        def work():
            return run(case, folder, options.batch or case['batch'])

        figures = work() if len(options.id) == 1 else in_child(work)
        print(json.dumps({'id': name, **figures}), flush=True)


if __name__ == '__main__':
    main()
