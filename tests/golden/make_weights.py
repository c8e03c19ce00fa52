"""Golden runs whose weights have a type of their own: weights.jsonl.

    OUT/run VENV/bin/python make_weights.py CASES.jsonl > RESULTS.jsonl

Works beside the oracle's golden.py (on PYTHONPATH), whose cases it extends by one field:

    weights       fp32 | bf16 | fp16: the type in which the model is made, as from_pretrained makes it
                  in the type of its config.json; `precision` then only says which autocast there is
"""
import sys

import golden

build = golden.build


def build_in_type(case, root):
    return build(dict(case, precision=case.get('weights', case['precision'])), root)


golden.build = build_in_type
golden.main(sys.argv[1])
