"""What ms-swift's `swift rlhf` allocates, case by case, on plimsoll's virtual GPU.

    export HF_HUB_OFFLINE=1 MODELSCOPE_CACHE=FOLDER
    plimsoll exec --device sim:A100-SXM4-80GB,placement=ascending --observe -- \\
        VENV/bin/python make_swift_rlhf.py FIGURES ID [ID ...]    adds the cases and their figures to FIGURES, as lines of swift_rlhf.jsonl
    python make_swift_rlhf.py                                     the ids

VENV, and what is ms-swift's own, as of make_swift.py: here it is SwiftRLHF of a command line, and TRL is 1.16. A sample is two rows of one length, a
chosen and a rejected one; with `padded` the last row of a batch is a token short. In KTO it is one row, and another of which the KL is
estimated; the first half of a batch is desirable.
"""
import json
import os
import sys
import tempfile

from make_swift import DDP, FLASH, HERE, KINDS, LINEARS, NF4, QUERIES, add_tokenizer, lora, words_of as words_of_sft
from named_cases import by_name, merged

STEPS = 4
BASE = {'kind': 'lm', 'attention': 'sdpa', 'compute_capability': 80, 'clip': 1.0, 'optimizer': 'adamw-fused',
        'precision': 'bf16-mixed', 'weights': 'bf16', 'made_on': 'loaded', 'batch': 1, 'seq': 104}
CHECKPOINTED, WHOLE = {'checkpointing': 'full', 'use_reentrant': True}, {'checkpointing': 'none', 'use_reentrant': False}
FULL = {}
FP32 = {'precision': 'fp32', 'weights': 'fp32', 'arguments': {'bf16': False, 'fp16': False}}
DPO, KTO, ORPO, CPO = {'loop': 'swift-dpo'}, {'loop': 'swift-kto', 'batch': 2}, {'loop': 'swift-orpo'}, {'loop': 'swift-cpo'}
SIMPO = {**CPO, 'preference_loss': 'simpo'}
RPO, IPO = {'arguments': {'rpo_alpha': 0.1}}, {'preference_loss': 'ipo'}
CENTRED = {'arguments': {'center_rewards_coefficient': 0.01}}
RM = {'loop': 'swift-rm', 'kind': 'classify', 'labels': 1}


def evaluated(batch, batches, every):
    return {'evaluation': {'batch': batch, 'batches': batches, 'every': every}}


def cases():
    yield 'x-llama-odd', DPO, WHOLE, lora()
    yield 'x-llama-odd', DPO, CHECKPOINTED, lora()
    yield 'x-llama-odd', DPO, WHOLE, FULL
    yield 'x-llama-odd', DPO, CHECKPOINTED, FULL, {'prompt': 41}
    yield 'x-llama-odd', DPO, CHECKPOINTED, lora(), NF4, {'batch': 2}
    yield 'x-llama-2l', DPO, CHECKPOINTED, lora(), {'accumulation': 3, 'seq': 200, 'prompt': 7}
    yield 'x-llama-2l', DPO, CHECKPOINTED, FULL, {'batch': 2, 'padded': True}
    yield 'x-llama-2l', DPO, WHOLE, lora(QUERIES), evaluated(1, 2, 1)
    yield 'x-qwen3', DPO, CHECKPOINTED, lora(QUERIES, 16, 0.0), {'batch': 3, 'padded': True, 'prompt': 30}
    yield 'x-qwen3', DPO, WHOLE, FULL, {'batch': 2, 'accumulation': 2}, evaluated(3, 2, 2)
    yield 'x-llama-odd', DPO, CHECKPOINTED, lora(), FLASH, {'batch': 2, 'padded': True}
    yield 'x-qwen3', DPO, WHOLE, FULL, FLASH
    yield 'x-llama-odd', DPO, CHECKPOINTED, FULL, FP32, {'prompt': 20}
    yield 'x-llama-odd', DPO, RPO, CHECKPOINTED, lora(), {'prompt': 20}
    yield 'x-qwen3', DPO, RPO, WHOLE, FULL, {'batch': 2, 'padded': True, 'accumulation': 2}
    yield 'x-llama-2l', DPO, RPO, CHECKPOINTED, lora(), evaluated(3, 2, 1)
    yield 'x-llama-odd', DPO, IPO, CHECKPOINTED, lora(), {'batch': 2, 'padded': True}
    yield 'x-llama-2l', DPO, IPO, RPO, WHOLE, FULL, {'prompt': 30}, evaluated(1, 2, 2)
    yield 'x-llama-odd', DPO, CHECKPOINTED, lora(), DDP, {'padded': True}
    yield 'x-qwen3', DPO, WHOLE, FULL, DDP, {'accumulation': 2, 'prompt': 9}


    yield 'x-llama-odd', KTO, CHECKPOINTED, lora()
    yield 'x-llama-odd', KTO, WHOLE, FULL, {'prompt': 41}
    yield 'x-qwen3', KTO, CHECKPOINTED, FULL, {'batch': 3, 'padded': True}
    yield 'x-llama-2l', KTO, WHOLE, lora(QUERIES), evaluated(3, 2, 1)
    yield 'x-llama-odd', KTO, CHECKPOINTED, lora(), NF4
    yield 'x-llama-odd', KTO, WHOLE, lora(), {'batch': 1}
    yield 'x-llama-odd', KTO, WHOLE, FULL, {'batch': 1, 'accumulation': 2, 'prompt': 20}
    yield 'x-llama-2l', KTO, CHECKPOINTED, lora(), {'accumulation': 2}
    yield 'x-llama-odd', KTO, CHECKPOINTED, lora(), DDP
    yield 'x-llama-odd', ORPO, CHECKPOINTED, lora()
    yield 'x-llama-odd', ORPO, WHOLE, FULL, {'prompt': 41}
    yield 'x-llama-odd', ORPO, CHECKPOINTED, lora(), NF4, {'accumulation': 2}
    yield 'x-qwen3', ORPO, CHECKPOINTED, FULL, {'batch': 3, 'padded': True}
    yield 'x-llama-2l', ORPO, WHOLE, lora(QUERIES), {'batch': 2}, evaluated(3, 2, 1)
    yield 'x-llama-odd', ORPO, CHECKPOINTED, FULL, DDP
    yield 'x-llama-odd', CPO, CHECKPOINTED, lora()
    yield 'x-llama-odd', CPO, WHOLE, FULL, {'prompt': 41}
    yield 'x-qwen3', CPO, CHECKPOINTED, FULL, {'batch': 3, 'padded': True}
    yield 'x-llama-odd', SIMPO, CHECKPOINTED, lora(), {'prompt': 20}
    yield 'x-llama-2l', SIMPO, WHOLE, lora(QUERIES), {'batch': 2}, evaluated(3, 2, 1)
    yield 'x-llama-odd', SIMPO, CHECKPOINTED, lora(), DDP, {'padded': True}
    yield 'x-llama-odd', RM, CHECKPOINTED, lora()
    yield 'x-llama-odd', RM, WHOLE, FULL
    yield 'x-qwen3', RM, CHECKPOINTED, FULL, {'batch': 3, 'padded': True}
    yield 'x-llama-odd', RM, CHECKPOINTED, lora(), NF4, {'accumulation': 2}
    yield 'x-llama-2l', RM, WHOLE, lora(QUERIES), {'batch': 2}, evaluated(3, 2, 1)
    yield 'x-qwen3', RM, CHECKPOINTED, FULL, CENTRED, {'accumulation': 2}
    yield 'x-llama-odd', RM, CHECKPOINTED, lora(), DDP
    yield 'x-llama-odd', RM, CHECKPOINTED, FULL, DDP, {'batch': 2}


def type_of(case):
    """--rlhf_type"""
    return 'simpo' if case.get('preference_loss') == 'simpo' else case['loop'].removeprefix('swift-')


def all_cases():
    made = []
    for config, *parts in cases():
        case = merged(BASE, {'config': f'configs/{config}.json'}, *parts)
        if case['kind'] == 'classify' and 'lora' in case:  # by peft's task_type
            case['lora'] = {**case['lora'], 'modules_to_save': ['score']}
        words = ['swift', type_of(case), config.removeprefix('x-'),
                 case.get('quantization', {}).get('type', 'lora' if 'lora' in case else 'full'),
                 case['checkpointing'] == 'none' and 'whole', case['precision'] == 'fp32' and 'fp32', case['batch'] > 1 and f'b{case["batch"]}',
                 case['attention'] == 'flash_attention_2' and 'flash2',
                 *(word for word in ('padded', 'prompt', 'evaluation', 'accumulation') if word in case), 'arguments' in case and case['kind'] == 'classify' and 'centred',
                 case.get('preference_loss') == 'ipo' and 'ipo', 'rpo_alpha' in case.get('arguments', {}) and 'rpo',
                 case.get('sharding')]
        made.append((words, case))
    return by_name(made)


# --- a run -------------------------------------------------------------------------------------------------------------

class Pairs:
    def __init__(self, case, count):
        self.case, self.count = case, count

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        case = self.case
        place = i % case['batch']
        is_short = bool(case.get('padded')) and place + 1 == case['batch']
        if case['loop'] == 'swift-kto':  # the second row is one of those that the KL is estimated of
            return {**self.row('chosen', case['seq'] - is_short), **self.row('rejected', case['seq']), 'label': place < (case['batch'] + 1) // 2}
        return {**self.row('chosen', case['seq']), **self.row('rejected', case['seq'] - is_short)}

    def row(self, name, length):
        hidden = self.case.get('prompt', 1)
        if self.case['loop'] == 'swift-rm':
            return {f'{name}_input_ids': [0] * length, f'{name}_length': length}
        return {f'{name}_input_ids': [0] * length, f'{name}_labels': [-100] * hidden + [0] * (length - hidden), f'{name}_length': length}


def words_of(case, kind, path, folder):
    """The command line"""
    loss = ['--loss_type', 'ipo'] if case.get('preference_loss') == 'ipo' else []
    return words_of_sft(case, kind, path, folder) + ['--rlhf_type', type_of(case), *loss]


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
    from swift.pipelines.train.rlhf import SwiftRLHF
    before, steps, world = {}, Steps(steps_to_wait(case)), case.get('world', 1)

    class Job(SwiftRLHF):
        def _prepare_dataset(self):
            evaluation = case.get('evaluation')
            others = Pairs({**case, **evaluation}, evaluation['batch'] * evaluation['batches'] * world) if evaluation else None
            return Pairs(case, case['batch'] * case.get('accumulation', 1) * STEPS * world), others

        @classmethod
        def prepare_model(cls, args, model, **more):
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
    import swift.pipelines.train.rlhf  # here: children have it then
    import swift.rlhf_trainers
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
