#!/usr/bin/env python3
"""Asks peft 0.21.2 which modules LoraConfig means, and writes lora_modules.jsonl beside this file: {"modules": names},
and then {"lora": fields of LoraConfig, "ranks": {name of a module that has an adapter: its rank}} a line.

    python make_lora_modules.py
"""
import json
import os
import random
import warnings

from peft import LoraConfig
from peft.tuners.tuners_utils import check_target_module_exists
from peft.utils.other import get_pattern_key

warnings.simplefilter('ignore')
MODULES = ([f'model.layers.{i}.{part}' for i in (0, 1, 3, 10, 12) for part in
            ('self_attn.q_proj', 'self_attn.v_proj', 'mlp.down_proj', 'mlp.gate_proj')] +
           ['model.embed_tokens', 'lm_head', 'q_proj', 'layers.1.q_proj', 'layers.1.self_attn.q_proj', 'transformer.h.1.attn.c_attn',
            'model.layers.3.mlp.experts.1.down_proj', 'bert.encoder.layer.1.output.dense', 'bert.pooler.dense',
            'visual.blocks.3.attn.q_proj'])
NAMES = ['q_proj', 'v_proj', 'self_attn.q_proj', 'down_proj', 'mlp.down_proj', 'proj', 'lm_head', 'layers.1.q_proj', 'dense',
         'model.layers.3.self_attn.q_proj', 'model.layers.3', 'c_attn', 'attn.c_attn', 'embed_tokens', 'd_proj']
EXPRESSIONS = [r'.*\.(q|v)_proj', r'model\.layers\.(1|3)\..*', r'.*self_attn.*', r'(?!visual).*q_proj', r'model.layers.[\d]+.mlp.\w+',
               'q_proj', r'.*', r'.*(?<!mlp)\.down_proj', r'[a-z]+\.layers\.\d{2}\.self_attn\.q_proj|lm_head']
RANKS = ['q_proj', 'v_proj', r'.*mlp.*', r'layers\.1\..*', r'^model\.layers\.3.*', 'self_attn.q_proj', r'down_proj|q_proj', 'j_proj']


def some(of, least=1, most=3):
    return random.sample(of, random.randint(least, min(most, len(of))))


def config():
    asked = {'r': 8}
    if random.random() < .5:
        asked['target_modules'] = random.choice(EXPRESSIONS)
    else:
        asked['target_modules'] = some(NAMES, 1, 4)
        if random.random() < .5:
            asked['layers_to_transform'] = some([0, 1, 3, 10, 12])
            if random.random() < .5:
                asked['layers_pattern'] = some(['layers', 'h', 'layer', 'blocks', 'experts', 'model.layers'], 1, 2)
    if random.random() < .4:
        asked['exclude_modules'] = random.choice([random.choice(EXPRESSIONS), some(NAMES)])
    if random.random() < .5:
        asked['rank_pattern'] = {name: 16 + i for i, name in enumerate(some(RANKS))}
    return asked


def rank(asked, lora, module):
    if not check_target_module_exists(lora, module):
        return 0
    return asked.get('rank_pattern', {}).get(get_pattern_key(lora.rank_pattern.keys(), module), asked['r'])


def main():
    random.seed(1)
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), 'lora_modules.jsonl'), 'w') as file:
        file.write(json.dumps({'modules': MODULES}) + '\n')
        for _ in range(200):
            asked = config()
            lora = LoraConfig(**asked)
            ranks = {name: rank(asked, lora, name) for name in MODULES}
            file.write(json.dumps({'lora': asked, 'ranks': {name: r for name, r in ranks.items() if r}}) + '\n')


if __name__ == '__main__':
    main()
