"""Cut cross entropy as axolotl 0.19's plugin has it: with the package cut-cross-entropy of its fork, whose forward of llama
stands in the place of a causal model's own where it has none for the family."""
import importlib

import transformers


def patch(family):
    from cut_cross_entropy.transformers import llama, patch as package
    if family in package.PATCH_FNS:
        package.cce_patch(family)
        return
    package.cce_patch('llama')  # its options are those of every forward of this module
    module = importlib.import_module(f'transformers.models.{family}.modeling_{family}')
    name = transformers.models.auto.modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES[family]
    getattr(module, name).forward = llama.cce_forward
