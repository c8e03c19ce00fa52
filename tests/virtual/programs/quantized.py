"""A golden case's model with weights in 4 or 8 bits (`quantization`), as from_pretrained() of transformers and peft's
prepare_model_for_kbit_training() make it, from a checkpoint whose values do not matter."""
import functools
import hashlib
import os
import shutil
import tempfile

import torch
import transformers
from transformers.integrations import deepspeed

TYPES = {'fp32': torch.float32, 'bf16': torch.bfloat16, 'fp16': torch.float16, 'uint8': torch.uint8}


def checkpoint_of(auto, config, dtype):
    """Made once; the ranks of a job may make it beside each other."""
    name = hashlib.sha256(f'{auto.__name__} {config.to_json_string(use_diff=False)} {dtype}'.encode()).hexdigest()[:16]
    folder = os.path.join(tempfile.gettempdir(), f'plim-checkpoint-{name}')
    if os.path.exists(folder):
        return folder
    part = tempfile.mkdtemp(prefix='plim-checkpoint-')
    zero3, deepspeed._hf_deepspeed_config_weak_ref = deepspeed._hf_deepspeed_config_weak_ref, None  # else it is cut
    torch.set_default_dtype(dtype)
    model = auto.from_config(config)
    torch.set_default_dtype(torch.float32)
    model.save_pretrained(part)
    deepspeed._hf_deepspeed_config_weak_ref = zero3
    try:
        os.rename(part, folder)
    except OSError:  # another rank was faster
        shutil.rmtree(part)
    return folder


def published_as(case, auto):
    """A classification is trained from a causal language model's checkpoint, which has no score."""
    return transformers.AutoModelForCausalLM if case['kind'] == 'classify' else auto


def reference_of(case, model):
    """A checkpoint of the model's class, as create_model_from_path() loads a reference."""
    auto = 'AutoModelForImageTextToText' if case['kind'] == 'image-text' else 'AutoModelForCausalLM'
    return checkpoint_of(getattr(transformers, auto), model.config, model.dtype)


def how(case):
    asked = case['quantization']
    if asked['type'] == 'int8':
        return transformers.BitsAndBytesConfig(load_in_8bit=True)
    return transformers.BitsAndBytesConfig(
        load_in_4bit=True, bnb_4bit_quant_type=asked['type'], bnb_4bit_use_double_quant=asked.get('double', False),
        bnb_4bit_compute_dtype=TYPES[asked.get('compute', 'fp32')],
        bnb_4bit_quant_storage=TYPES[asked.get('storage', 'uint8')])


def load(case, auto, config, dtype):
    from peft import prepare_model_for_kbit_training
    on_host = case['quantization'].get('loaded_on') == 'host'
    where = {'': 'cpu' if on_host else int(os.environ.get('LOCAL_RANK', 0))}
    if deepspeed.is_deepspeed_zero3_enabled():
        where = None  # it refuses one
    model = auto.from_pretrained(checkpoint_of(published_as(case, auto), config, dtype), config=config, dtype=dtype,
                                 attn_implementation=case.get('attention', 'sdpa'), quantization_config=how(case),
                                 device_map=where)
    if case['quantization'].get('prepare', True):
        prepare = functools.partial(prepare_model_for_kbit_training,
                                    use_gradient_checkpointing=case.get('checkpointing') == 'full')
    else:
        prepare = None
    if 'upcast' in case:
        from axolotl_model import cast_around
        return cast_around(case, model, prepare, dtype)
    return prepare(model) if prepare else model
