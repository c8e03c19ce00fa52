"""What training with flash-attention-2's package allocates, case by case, on the oracle's virtual GPU.

    export PYTHONPATH=ORACLE:tests/golden/flash2 OUT=...     ORACLE: the folder of golden.py; OUT: its build.sh's
    OUT/run VENV/bin/python make_flash2.py CASES.jsonl > flash2.jsonl

The package itself needs hours of nvcc and a GPU. flash2/flash_attn stands in for it: it allocates what the package's
source allocates, in its order, and computes nothing. It was read off that source, and never compared with the package on
a GPU. The fields, the figures and the loop are those of make_finetune.py; attention is flash_attention_2.
"""
import sys

import golden
import make_finetune
import transformers.masking_utils as masking

model_of = make_finetune.model_of


def model_in_type(case, root):
    """A model that is not quantised is made in the type of its weights from the start, as from_pretrained makes it."""
    if "weights" in case and "quantization" not in case:
        case = dict(case, precision=case["weights"])
        del case["weights"]
    return model_of(case, root)


def nothing_hidden(batch_size, q_length, kv_length, attention_mask=None, **kwargs):
    """flash_attention_mask(), answered as on a real GPU: a mask of ones hides nothing, once the host has read that."""
    if attention_mask is not None:
        bool(attention_mask[:, -kv_length:].all())


make_finetune.model_of = model_in_type
masking.ALL_MASK_ATTENTION_FUNCTIONS.register("flash_attention_2", nothing_hidden)
golden.main(sys.argv[1])
