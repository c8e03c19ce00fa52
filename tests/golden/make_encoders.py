"""Golden runs of encoders and of images: encoders.jsonl.

    OUT/run VENV/bin/python make_encoders.py CASES.jsonl > RESULTS.jsonl

Works beside the oracle's golden.py (on PYTHONPATH), whose cases it extends:

    kind          classify: a sequence classification head; one label a row. image: `image` says how large it is
    labels        num_labels of the head
    padded        true: the model gets an attention mask (B, S) that hides something, as a real GPU would find it
    weights       fp32 | bf16 | fp16: the type in which the model is made, where the precision has autocast
"""
import sys

import golden
import torch

golden.AUTO["classify"] = "AutoModelForSequenceClassification"
build, batch_of = golden.build, golden.batch_of


def build_in_type(case, root):
    model, config = build(dict(case, precision=case.get("weights", case["precision"])), root)
    return model, config


def batch_with_labels(case, config, model, b):
    if case["kind"] == "classify":
        data = dict(input_ids=torch.zeros(b, case["seq"], dtype=torch.long, device="cuda"),
                    labels=torch.zeros(b, dtype=torch.long, device="cuda"))
    else:
        data = batch_of(case, config, model, b)
    if case.get("padded"):
        data["attention_mask"] = torch.ones(b, case["seq"], dtype=torch.long, device="cuda")
    return data


golden.build, golden.batch_of = build_in_type, batch_with_labels
golden.main(sys.argv[1])
