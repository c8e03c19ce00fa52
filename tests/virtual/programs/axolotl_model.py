"""What axolotl makes of a model: its fused LoRA functions (lora_mlp_kernel, lora_qkv_kernel, lora_o_kernel), by its own code
without what else its packages import, its casts of embeddings, norms and the head (`upcast`), and its own way to shard by
FSDP2 (`fsdp_plan`)."""
import importlib.util
import os
import sys
import tempfile
import types

import torch
import transformers


def bare_packages():
    """Packages whose __init__ imports all of axolotl, as mere folders."""
    folder = importlib.util.find_spec('axolotl').submodule_search_locations[0]
    for name in ('utils', 'utils.callbacks', 'monkeypatch'):
        package = types.ModuleType(f'axolotl.{name}')
        package.__path__ = [os.path.join(folder, *name.split('.'))]
        sys.modules[package.__name__] = package


def patch(model, kernels):
    """`kernels`: of mlp, qkv and o. Attention's class is patched as in axolotl before the model is made, which is the same."""
    bare_packages()
    from axolotl.monkeypatch.lora_kernels import apply_lora_kernel_patches, patch_self_attn_lora
    from axolotl.utils.dict import DictDefault
    chosen = DictDefault({f'lora_{name}_kernel': name in kernels for name in ('mlp', 'qkv', 'o')})
    with tempfile.TemporaryDirectory() as folder:
        kind = model.config.model_type.replace('qwen3_5_text', 'qwen3_5')  # which published ones are
        transformers.AutoConfig.for_model(kind).save_pretrained(folder)
        if set(kernels) & {'qkv', 'o'}:
            patch_self_attn_lora(DictDefault({'base_model': folder}))
    return apply_lora_kernel_patches(model, chosen)


def cast(model, dtype, before):
    """As _convert_embedding_modules_dtype() of its loaders/model.py does (0.19.0), a method of what loads all else."""
    embeddings = ('embed_in', 'embed_out') if model.config.model_type == 'gpt_neox' else ('embed_tokens', 'lm_head')
    for name, module in model.named_modules():
        if 'norm' in name or (before and name.endswith('.gate')):
            module.to(dtype)
        if any(part in name for part in embeddings) and hasattr(module, 'weight'):
            module.to(dtype)


def cast_around(case, model, prepare, dtype):
    """prepare: peft's, or None"""
    upcast = case.get('upcast')
    if upcast:
        cast(model, torch.float32, True)
    if prepare:
        model = prepare(model)
    if upcast == 'undone':
        cast(model, dtype, False)
    return model


def shard(case):
    """Its fsdp2_prepare_model() in the place of accelerate's, and what has quantised weights keep how they are"""
    bare_packages()
    from axolotl.monkeypatch import fsdp2_qlora
    from axolotl.monkeypatch.accelerate.fsdp2 import patch_accelerate_fsdp2
    patch_accelerate_fsdp2()
    if 'quantization' in case:
        fsdp2_qlora.apply_init_sharded_param_patch()
        fsdp2_qlora.apply_init_unsharded_param_patch()
        fsdp2_qlora.apply_init_dtype_attrs_patch()
