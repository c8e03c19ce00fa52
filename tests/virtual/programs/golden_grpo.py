"""TRL's GRPOTrainer for golden_trainer.py (`loop: trl-grpo`), whose answers vLLM would generate, in a server or (`vllm`:
`colocate`) in the same process. It is not there: modules of vLLM's stand in that allocate what its own do on the GPU of
the training (vllm/distributed/weight_transfer/packed_tensor.py, vllm/distributed/device_communicators/pynccl.py), and a
client or an engine that answers each prompt with as many tokens as the case says. All else is TRL's. What an engine in the
process holds while it is awake is left out: weights and a cache in memory of its own
(vllm/v1/worker/gpu_worker.py), into which load_weights() copies in place."""
import functools
import gc
import sys
import types

import torch
from datasets import Dataset
from trl import import_utils

import_utils.is_vllm_available = lambda min_version=None: True
BUFFER_BYTES = 1 << 30


class Communicator:
    """It is tried out when it is made: an all-reduce of one number."""

    def __init__(self, _=None):
        number = torch.zeros(1, device=torch.cuda.current_device())
        torch.empty_like(number)

    def broadcast(self, *_, **__):
        pass


@functools.cache
def streams():
    return [torch.cuda.Stream() for _ in range(2)]


def chunk_of(parameters):
    """The bytes of the next parameters, up to the one with which they are more than a buffer's; None: there are none."""
    parts, size = [], 0
    for parameter in parameters:
        parts.append(parameter.contiguous().view(torch.uint8).view(-1))
        size += parts[-1].numel()
        if size > BUFFER_BYTES:
            break
    return torch.cat(parts) if parts else None


def send_packed(iterator, group, src, post_iter_func):
    """Two chunks are on their way, each on a stream of its own."""
    parameters, under_way, turn = map(post_iter_func, iterator), [None, None], 0
    while True:
        under_way[turn] = None
        with torch.cuda.stream(streams()[turn]):
            chunk = chunk_of(parameters)
            if chunk is None:
                return
            group.broadcast(chunk, src=src)
            under_way[turn] = chunk
        turn = 1 - turn


def stand_in(name, **contents):
    sys.modules[name] = types.ModuleType(name)
    vars(sys.modules[name]).update(contents)


for package in ('vllm', 'vllm.utils', 'vllm.distributed', 'vllm.distributed.weight_transfer'):
    stand_in(package, LLM=None, RequestOutput=None, SamplingParams=dict)
stand_in('vllm.sampling_params', StructuredOutputsParams=None)
stand_in('vllm.utils.network_utils', get_ip=lambda: '127.0.0.1')
stand_in('vllm.distributed.weight_transfer.nccl_common', trainer_init=Communicator)
stand_in('vllm.distributed.weight_transfer.packed_tensor', packed_nccl_broadcast_producer=send_packed)

from trl import GRPOConfig, GRPOTrainer
from trl.generation import vllm_generation
from trl.generation.vllm_client import VLLMClient

from golden_trl import tokenizer
from quantized import reference_of


class Client(VLLMClient):
    case = token = None

    def __init__(self, **_):
        self.base_url, self.group_port, self._updating_weights, self.communicator = '', 0, False, None

    def get_server_info(self):
        return {'weight_transfer_config': {}, 'model_config': {'logprobs_mode': 'processed_logprobs'}}

    def get_world_size(self):
        return 1

    def _post(self, *_, **__):
        pass

    def reset_prefix_cache(self):
        pass

    def close_communicator(self):
        pass

    def generate(self, prompts, n, **_):
        """Of the last token of the vocabulary, whose number is the longest; with `padded` the last answer is one token
        shorter."""
        tokens = self.case['seq'] - self.case['prompt']
        lengths = [tokens] * (len(prompts) * n)
        lengths[-1] -= bool(self.case.get('padded'))
        return {'prompt_ids': prompts, 'completion_ids': [[self.token] * length for length in lengths],
                'logprobs': [[[0.0] for _ in range(length)] for length in lengths],
                'logprob_token_ids': [[[self.token] for _ in range(length)] for length in lengths]}


class Engine:
    """vllm.LLM; `model`: of its model_runner, too."""

    def __init__(self, **_):
        gc.collect()
        torch.cuda.empty_cache()  # Worker.init_device()
        self.model = self.llm_engine = self.model_executor = self.driver_worker = self.model_runner = self
        self.model_config = types.SimpleNamespace(max_model_len=1 << 20)

    def load_weights(self, weights):
        pass

    def reset_prefix_cache(self):
        pass

    def wake_up(self, tags):
        pass

    def sleep(self, level):
        pass

    def generate(self, prompts, **_):
        client = Client()
        answered = client.generate([prompt['prompt_token_ids'] for prompt in prompts], 1)
        chance = types.SimpleNamespace(logprob=0.0, rank=1)
        return [types.SimpleNamespace(prompt_token_ids=prompt, outputs=[types.SimpleNamespace(
            token_ids=tokens, logprobs=[{client.token: chance} for _ in tokens])])
            for prompt, tokens in zip(answered['prompt_ids'], answered['completion_ids'])]


vllm_generation.VLLMClient, vllm_generation.LLM = Client, Engine


class Arguments(GRPOConfig):
    def __init__(self, case, **named):
        updates = case.get('updates', 1)
        steps = {} if updates == 1 else {'steps_per_generation': updates * named['gradient_accumulation_steps']}
        super().__init__(use_vllm=case.get('vllm') != 'none', vllm_mode=case.get('vllm', 'server').replace('none', 'server'),
                         vllm_enable_sleep_mode=case.get('vllm_sleeps', False), num_generations=case.get('generations', 2),
                         num_iterations=case.get('iterations', 1), max_completion_length=case['seq'] - case['prompt'],
                         **{**steps, **named})


class Numbered(GRPOTrainer):
    """Prompts are numbers already, and answers of the model's own (`vllm`: `none`) are as a client's. Of these with `padded`
    the last prompt is one token shorter, too."""

    def _tokenize_prompts(self, prompts):
        lengths = [int(prompt) for prompt in prompts]
        lengths[-1] -= bool(Client.case.get('padded')) and not self.use_vllm
        return [[Client.token] * length for length in lengths], None, {}

    def _generate_single_turn(self, prompts, *given, **named):
        answered = super()._generate_single_turn(prompts, *given, **named)
        return answered if self.use_vllm else (Client().generate(prompts, 1)['completion_ids'], None)


def reward(completions, **_):
    return [float(i % 2) for i in range(len(completions))]


def make_grpo(case, model, train_dataset, eval_dataset, data_collator, compute_metrics, preprocess_logits_for_metrics,
              **named):
    """A reference (`arguments`: beta) is loaded from a checkpoint in the type of the weights; beside adapters there is
    none."""
    Client.case, Client.token = case, model.config.get_text_config().vocab_size - 1
    model.generation_config.eos_token_id = None  # but the tokenizer's
    if 'lora' not in case and case.get('arguments', {}).get('beta'):
        model.config._name_or_path = reference_of(case, model)
    from golden import lora_of
    adapters = lora_of(case['lora']) if 'lora' in case else None
    prompts = Dataset.from_list([{'prompt': str(case['prompt'])}] * len(train_dataset))
    return Numbered(model=model, peft_config=adapters, reward_funcs=[reward] * case.get('rewards', 1),
                    train_dataset=prompts, processing_class=tokenizer(), **named)
