"""What training with Liger's kernels allocates, case by case, on the oracle's virtual GPU.

    export PYTHONPATH=ORACLE OUT=...                     ORACLE: the folder of golden.py; OUT: its build.sh's
    OUT/run VENV/bin/python make_liger.py CASES.jsonl > liger.jsonl

liger-kernel 0.8.5 is applied as TrainingArguments(use_liger_kernel=True) does: rotary embedding, RMSNorm, SwiGLU and the fused
linear cross entropy. Its Triton kernels are compiled and not run. The fields, the figures and the loop are those of
make_finetune.py, and of make_sharded.py where a case has a sharding (ddp).
"""
import sys

import golden
import make_finetune
import make_sharded

build, load, model_of = golden.build, make_finetune.load, make_finetune.model_of


def with_liger(make):
    def made(case, root):
        from liger_kernel.transformers import _apply_liger_kernel_to_instance  # asks for the GPU, which comes after the fork
        model, config = make(case, root)
        _apply_liger_kernel_to_instance(model=model)
        return model, config
    return made


def model_in_type(case, root):
    """Made in the type of its weights from the start, as from_pretrained makes it."""
    if "quantization" in case:
        return model_of(case, root)
    case = dict(case, precision=case.get("weights", case["precision"]))
    case.pop("weights", None)
    return model_of(case, root)


def train(case, *args):
    return (make_sharded if "sharding" in case else make_finetune).train(case, *args)


golden.build, make_finetune.load = with_liger(build), with_liger(load)
golden.train, make_finetune.model_of = train, model_in_type
golden.main(sys.argv[1])
