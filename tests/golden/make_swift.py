"""What ms-swift's `swift sft` allocates, case by case, on plimsoll's virtual GPU.

    export HF_HUB_OFFLINE=1 MODELSCOPE_CACHE=FOLDER
    plimsoll exec --device sim:A100-SXM4-80GB,placement=ascending --observe -- \\
        VENV/bin/python make_swift.py FIGURES ID [ID ...]    adds the cases and their figures to FIGURES, as lines of swift.jsonl;
                                                             each of several in a child of its own, which need not import all again
    python make_swift.py                                     the ids

VENV: as tests/virtual/install.sh makes it, with ms-swift 4.6.0 and what it requires (uv pip install ms-swift==4.6.0
--override FILE, in which stand the versions of torch, transformers and peft that are there; with torchrun for cases of several
ranks). Everything is ms-swift's own: SwiftSft of a command line, which loads the model, adds adapters and makes its trainer,
and its collator. Rows are numbers already, of which the first is no label, or the first `prompt`; with `padded` the last one of a
batch is a token short. `arguments` are more words of the command line.
"""
import json
import os
import sys
import tempfile

from named_cases import by_name, merged

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(HERE, '..', 'virtual', 'programs'))
os.environ['HF_DEACTIVATE_ASYNC_LOAD'] = '1'  # else four threads load, and which is first is chance

STEPS = 4
BASE = {'kind': 'lm', 'loop': 'swift-sft', 'attention': 'sdpa', 'compute_capability': 80, 'clip': 1.0, 'optimizer': 'adamw-fused',
        'precision': 'bf16-mixed', 'weights': 'bf16', 'made_on': 'loaded', 'batch': 1, 'seq': 104}
CHECKPOINTED, WHOLE = {'checkpointing': 'full', 'use_reentrant': True}, {'checkpointing': 'none', 'use_reentrant': False}
DDP = {'sharding': 'ddp', 'world': 2, 'use_reentrant': False}  # beside which ms-swift's checkpointing is not reentrant
# Its own files, of which `auto` comes to so much for a model of 320 hidden numbers (x-llama-odd)
ZERO2 = {'sharding': 'zero2', 'world': 2, 'arguments': {'deepspeed': 'zero2'}, 'zero': {'overlap_comm': False, 'reduce_bucket_size': 200000000}}
ZERO3 = {'sharding': 'zero3', 'world': 2, 'arguments': {'deepspeed': 'zero3'}, 'made_on': 'host',
         'zero': {'overlap_comm': False, 'reduce_bucket_size': 102400, 'stage3_prefetch_bucket_size': 92160, 'stage3_param_persistence_threshold': 3200}}
LINEARS = ['q_proj', 'k_proj', 'v_proj', 'o_proj', 'gate_proj', 'up_proj', 'down_proj']


def lora(targets=LINEARS, rank=8, dropout=0.05):
    return {'lora': {'r': rank, 'target_modules': targets, 'dropout': dropout}}


FULL = {}
FLASH = {'attention': 'flash_attention_2'}
PACKED = {**FLASH, 'packing': 'one-row', 'documents': 4}
PADDING_FREE = {**FLASH, 'packing': 'one-row', 'documents': 1}


QUERIES = ['q_proj', 'v_proj']
NF4 = {'made_on': 'gpu', 'quantization': {'type': 'nf4', 'double': True, 'compute': 'bf16', 'prepare': False}}


def cases():
    yield 'x-llama-odd', CHECKPOINTED, lora()
    yield 'x-llama-odd', WHOLE, FULL
    yield 'x-llama-odd', WHOLE, FULL, {'batch': 3}
    yield 'x-llama-odd', WHOLE, FULL, {'prompt': 41}
    yield 'x-llama-odd', WHOLE, FULL, {'batch': 2, 'prompt': 41}
    yield 'x-llama-odd', CHECKPOINTED, FULL
    yield 'x-llama-odd', WHOLE, lora()
    yield 'x-llama-odd', CHECKPOINTED, lora(), NF4
    yield 'x-llama-2l', CHECKPOINTED, lora(), {'accumulation': 3, 'seq': 200, 'prompt': 7}
    yield 'x-llama-2l', CHECKPOINTED, FULL, {'batch': 2, 'padded': True}
    yield 'x-llama-2l', WHOLE, FULL, {'evaluation': {'batch': 1, 'batches': 2, 'every': 1}}
    yield 'x-qwen3', CHECKPOINTED, lora(QUERIES, 16, 0.0), {'batch': 2}
    yield 'x-qwen3', WHOLE, FULL, {'batch': 2, 'evaluation': {'batch': 3, 'batches': 2, 'every': 2}}
    yield 'x-qwen3', CHECKPOINTED, lora(), NF4, {'batch': 2, 'padded': True, 'prompt': 30}
    yield 'x-llama-odd', CHECKPOINTED, lora(), DDP
    yield 'x-qwen3', WHOLE, FULL, DDP, {'accumulation': 2, 'prompt': 9}
    yield 'x-llama-odd', CHECKPOINTED, lora(), ZERO2
    yield 'x-llama-odd', CHECKPOINTED, FULL, ZERO2, {'accumulation': 2, 'prompt': 20}
    yield 'x-llama-odd', CHECKPOINTED, FULL, ZERO3, {'prompt': 33}
    yield 'x-llama-odd', CHECKPOINTED, lora(), ZERO3
    yield 'x-llama-odd', CHECKPOINTED, lora(), PACKED
    yield 'x-llama-2l', WHOLE, FULL, PACKED, {'seq': 210, 'documents': 3, 'accumulation': 2}
    yield 'x-qwen3', WHOLE, lora(QUERIES, 16, 0.0), PACKED, {'batch': 2, 'evaluation': {'batch': 1, 'batches': 2, 'every': 2}}
    yield 'x-qwen3', CHECKPOINTED, FULL, PADDING_FREE, {'batch': 3}
    yield 'x-llama-odd', WHOLE, FULL, PADDING_FREE, {'batch': 2, 'prompt': 41}
    yield 'x-llama-2l', CHECKPOINTED, lora(), NF4, PADDING_FREE, {'batch': 2, 'prompt': 9, 'evaluation': {'batch': 3, 'batches': 2, 'every': 2}}
    yield 'x-llama-odd', CHECKPOINTED, FULL, PADDING_FREE
    yield 'x-qwen3', CHECKPOINTED, lora(), DDP, PACKED
    yield 'x-llama-odd', CHECKPOINTED, FULL, ZERO2, PACKED
    yield 'x-llama-odd', CHECKPOINTED, lora(), ZERO3, PADDING_FREE, {'batch': 2}
    yield 'x-llama-odd', CHECKPOINTED, lora(), FLASH, {'batch': 2, 'padded': True}
    yield 'x-qwen3', WHOLE, FULL, FLASH


def packing_of(case):
    """The argument that asks for rows of several documents"""
    return 'packing' in case and ('packing' if case['documents'] > 1 else 'padding_free')


def all_cases():
    made = []
    for config, *parts in cases():
        case = merged(BASE, {'config': f'configs/{config}.json'}, *parts)
        words = ['swift', config.removeprefix('x-'), case.get('quantization', {}).get('type', 'lora' if 'lora' in case else 'full'),
                 case['checkpointing'] == 'none' and 'whole', case['batch'] > 1 and f'b{case["batch"]}',
                 case['attention'] == 'flash_attention_2' and 'flash2',
                 packing_of(case),
                 *(word for word in ('padded', 'prompt', 'liger', 'evaluation', 'accumulation') if word in case), case.get('sharding')]
        made.append((words, case))
    return by_name(made)


# --- a run -------------------------------------------------------------------------------------------------------------

class Samples:
    def __init__(self, case, count):
        self.case, self.count = case, count

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        case = self.case
        if case.get('documents', 1) > 1:  # as PackingDataset gives them
            return [self.row(case['seq'] // case['documents'])] * case['documents']
        return self.row(case['seq'] - int(bool(case.get('padded')) and (i + 1) % case['batch'] == 0))

    def row(self, length):
        hidden = self.case.get('prompt', 1)
        return {'input_ids': [0] * length, 'labels': [-100] * hidden + [0] * (length - hidden), 'length': length}


def add_tokenizer(folder):
    """One that pads and is asked for nothing else"""
    from tokenizers import Tokenizer, models
    from transformers import PreTrainedTokenizerFast
    if not os.path.exists(f'{folder}/tokenizer.json'):
        PreTrainedTokenizerFast(tokenizer_object=Tokenizer(models.WordLevel({'<end>': 0}, '<end>')),
                                eos_token='<end>', pad_token='<end>', unk_token='<end>').save_pretrained(folder)


# Of its model's class and template
KINDS = {'llama': ('llama', 'llama3_2'), 'qwen3': ('qwen3', 'qwen3')}


def words_of(case, kind, path, folder):
    """The command line"""
    adapters, evaluation = case.get('lora'), case.get('evaluation')
    model, template = KINDS[kind]
    asked = {'model': path, 'model_type': model, 'template': template, 'dataset': 'none', 'check_model': False, 'output_dir': f'{folder}/output',
             'add_version': False, 'max_steps': STEPS, 'torch_dtype': {'bf16': 'bfloat16', 'fp32': 'float32'}[case['weights']],
             'tuner_type': 'lora' if adapters else 'full', 'per_device_train_batch_size': case['batch'],
             'gradient_accumulation_steps': case.get('accumulation', 1), 'max_grad_norm': float(case['clip']),
             'gradient_checkpointing': case['checkpointing'] == 'full', 'attn_impl': case['attention'],
             'use_liger_kernel': case.get('liger', False), 'train_dataloader_shuffle': False, 'dataloader_num_workers': 0,
             'report_to': 'none', 'disable_tqdm': True, 'logging_strategy': 'no', 'save_strategy': 'no', 'eval_strategy': 'no',
             **case.get('arguments', {})}
    if packing_of(case):
        asked |= {packing_of(case): True}
    if adapters:
        asked |= {'lora_rank': adapters['r'], 'target_modules': adapters['target_modules'], 'lora_dropout': adapters.get('dropout', 0.0)}
    if 'quantization' in case:
        asked |= {'quant_method': 'bnb', 'quant_bits': 8 if case['quantization']['type'] == 'int8' else 4}
    if evaluation:
        asked |= {'split_dataset_ratio': 0.5, 'eval_strategy': 'steps', 'eval_steps': evaluation['every'], 'per_device_eval_batch_size': evaluation['batch']}
    words = []
    for name, value in asked.items():
        values = value if isinstance(value, list) else [value]
        words += [f'--{name}', *(str(value).lower() if isinstance(value, bool) else str(value) for value in values)]
    return words


def run(case):
    import torch
    import transformers
    from golden import count
    from golden_trainer import Steps, steps_to_wait
    from masks import answer_masks
    from quantized import checkpoint_of
    torch.manual_seed(0)
    if not case.get('padded'):
        answer_masks(False)
    with open(os.path.join(HERE, case['config'])) as file:
        keys = json.load(file)
    kind = keys.pop('model_type')
    config = transformers.AutoConfig.for_model(kind, **keys)
    path = checkpoint_of(transformers.AutoModelForCausalLM, config, torch.bfloat16)
    add_tokenizer(path)
    from swift.pipelines.train.sft import SwiftSft
    before, steps, world = {}, Steps(steps_to_wait(case)), case.get('world', 1)

    class Job(SwiftSft):
        def _prepare_dataset(self):
            evaluation = case.get('evaluation')
            self.template.packing = packing_of(case) == 'packing'  # as PackingDataset does
            others = Samples({**case, **evaluation}, evaluation['batch'] * evaluation['batches'] * world) if evaluation else None
            return Samples(case, case['batch'] * case.get('accumulation', 1) * STEPS * world), others

        def prepare_model(self, args, model, **more):
            model = super().prepare_model(args, model, **more)
            before.update(count(model), parameters_allocated=torch.cuda.memory_allocated())
            return model

        def train(self, trainer):
            trainer.add_callback(steps)
            return super().train(trainer)

    with tempfile.TemporaryDirectory() as folder:
        Job(words_of(case, kind, path, folder)).run()
    return {**before, 'steps': steps.figures}


def main(figures, names):
    import torch
    import swift.pipelines.train.sft  # here: children have it then
    from children import in_child
    torch.cuda._is_in_bad_fork = lambda: False  # ms-swift has counted the GPUs, and no more
    known = all_cases()
    for name in names:
        made = {**known[name], **(run(known[name]) if len(names) == 1 else in_child(lambda case=known[name]: run(case)))}
        if not int(os.environ.get('RANK', 0)):
            with open(figures, 'a') as file:
                file.write(json.dumps(made) + '\n')


if __name__ == '__main__':
    if len(sys.argv) < 3:
        sys.exit('\n'.join(all_cases()))
    main(sys.argv[1], sys.argv[2:])
