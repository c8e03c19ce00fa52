"""What adapters as LoraConfig describes them allocate, case by case, on plimsoll's virtual GPU: writes the cases, and joins
them with the figures, as make_trl.py does, whose commands and installation are the same:

    python make_adapters.py > adapters_cases.jsonl
    plimsoll exec ... golden.py adapters_cases.jsonl ID
    python make_adapters.py FIGURES > adapters.jsonl

Fields of `lora` besides `dropout` and `dora` are LoraConfig's: a `target_modules` that is a text is a regular expression.
"""
import json
import sys

from make_trl import ALL, FULL, QUERIES, joined, quantized

BASE = {'kind': 'lm', 'attention': 'sdpa', 'compute_capability': 80, 'loop': 'plain', 'clip': 1.0, 'checkpointing': 'none',
        'made_on': 'host', 'optimizer': 'adamw-fused', 'precision': 'bf16-mixed', 'packing': 'no'}
SMALL = 'x-llama-odd'
TRAINER, TRL = {'loop': 'trainer'}, {'loop': 'trl-sft'}
LOW = {'weights': 'bf16'}
EAGER = {'attention': 'eager'}


def lora(rank=8, targets=QUERIES, **more):
    return {'lora': {'r': rank, 'target_modules': targets, **more}}


def case(name, config, batch, seq, *parts):
    made = {**BASE, 'config': f'configs/{config}.json', 'batch': batch, 'seq': seq}
    for part in parts:
        made.update(part)
    marks = [name, config, made['loop'], made['precision'], made.get('weights'), made['checkpointing'],
             made.get('quantization', {}).get('type'), 'sharding' in made and f'{made["sharding"]}{made["world"]}']
    return {'id': '/'.join(str(mark) for mark in marks if mark), **made}


def ranks(sharding, world=2):
    return {'sharding': sharding, 'world': world}


def chosen():
    """By expressions, ends of names, layers and ranks of their own"""
    yield case('regex', SMALL, 2, 64, lora(8, r'model.layers.[\d]+.(mlp|self_attn).(up|down|gate|q|k|v|o)_proj'))
    yield case('regex-one-layer', 'x-llama-2l', 2, 64, lora(8, r'.*\.1\.self_attn\.(q|v)_proj'))
    yield case('regex-one-layer', 'x-llama-2l', 2, 64, FULL, LOW, TRAINER, lora(8, r'.*\.1\.self_attn\.(q|v)_proj'))
    yield case('dotted', 'x-phi', 2, 64, LOW, lora(8, ['self_attn.q_proj', 'model.layers.0.mlp.fc1']))
    yield case('dotted', 'x-gpt2-odd', 2, 60, FULL, lora(8, ['mlp.c_proj', 'c_attn']))
    yield case('layers', 'x-llama-2l', 2, 64, FULL, TRL, LOW, lora(8, ALL, layers_to_transform=[1]))
    yield case('layers', 'x-llama-2l', 2, 64, TRAINER, lora(8, ALL, layers_to_transform=[0], layers_pattern=['layers']))
    yield case('ranks', SMALL, 2, 64, lora(8, ALL, rank_pattern={'q_proj': 32, r'.*mlp.*': 4, 'v_proj': 2}))
    yield case('exclude', SMALL, 2, 64, FULL, LOW, TRL, lora(8, ALL, exclude_modules=['mlp.up_proj', 'k_proj'],
                                                             rank_pattern={'self_attn.o_proj': 64}, dropout=0.05))
    yield case('layers', 'x-llama-2l', 2, 64, FULL, LOW, quantized('nf4', compute='bf16', double=True, prepare=True),
               {'made_on': 'gpu'}, lora(16, ALL, layers_to_transform=[1]))
    yield case('ranks-layers', 'x-llama-2l', 2, 64, FULL, LOW, TRAINER, ranks('ddp'),
               lora(8, ALL, layers_to_transform=[1], rank_pattern={'q_proj': 32}))
    for sharding in ('fsdp', 'zero2', 'zero3'):
        yield case('ranks-layers', 'x-llama-2l', 2, 64, FULL, LOW, TRAINER, ranks(sharding),
                   {'use_reentrant': sharding == 'zero3'},
                   lora(8, ALL, layers_to_transform=[1], rank_pattern={'q_proj': 32}))
    yield case('encoder-regex', 'x-bert-class', 3, 40, {'kind': 'classify', 'padded': True},
               lora(8, r'(bert\.encoder\.layer\.0\.attention\.self\.(query|value)|bert\.pooler\.dense)'))


def saved():
    """Modules that are trained in full besides: embeddings and heads, tied or not, and norms"""
    both = ['embed_tokens', 'lm_head']
    yield case('saved', SMALL, 2, 64, lora(modules_to_save=both))
    yield case('saved', SMALL, 2, 64, FULL, LOW, TRAINER, lora(modules_to_save=both))
    yield case('saved', SMALL, 2, 64, FULL, LOW, TRL, lora(modules_to_save=['lm_head']))
    yield case('saved-norm', SMALL, 2, 64, lora(modules_to_save=['model.norm', 'embed_tokens']), {'made_on': 'gpu'})
    yield case('saved', 'x-qwen2-window', 2, 64, FULL, TRAINER, lora(modules_to_save=both))  # tied
    yield case('saved-embedding', 'x-qwen2-window', 2, 64, LOW, lora(modules_to_save=['embed_tokens']))
    yield case('saved-tied', 'x-qwen2-window', 2, 64, FULL, LOW, TRAINER,
               lora(modules_to_save=['lm_head'], ensure_weight_tying=True))
    yield case('saved', 'x-gpt2-odd', 2, 60, TRAINER, lora(8, ['c_attn'], modules_to_save=['wte', 'ln_f', 'lm_head']))
    yield case('saved', 'x-gemma3-small', 2, 64, FULL, TRAINER, {'attention': 'eager'}, lora(modules_to_save=both))
    yield case('saved', 'x-phi', 2, 64, FULL, {'optimizer': 'adamw-8bit'}, TRAINER, lora(modules_to_save=both))
    yield case('saved', SMALL, 2, 64, FULL, LOW, quantized('nf4', compute='bf16', double=True, prepare=True), {'made_on': 'gpu'},
               lora(16, ALL, modules_to_save=both))
    yield case('saved', SMALL, 2, 64, FULL, LOW, TRL, quantized('nf4', compute='bf16'), lora(16, ALL, modules_to_save=both))
    yield case('saved', 'x-llama-2l', 2, 64, LOW, TRAINER, {'made_on': 'loaded', 'accumulation': 2}, lora(modules_to_save=both))
    yield case('saved', 'x-bert-class', 3, 40, {'kind': 'classify', 'padded': True}, lora(8, ['query'], modules_to_save=['classifier']))
    yield case('saved', SMALL, 2, 64, FULL, LOW, TRAINER, ranks('ddp'), lora(modules_to_save=both))
    yield case('saved', SMALL, 2, 64, FULL, LOW, TRL, ranks('zero2'), lora(modules_to_save=both))


def embedded():
    """Adapters of embeddings and heads"""
    both = QUERIES + ['embed_tokens', 'lm_head']
    yield case('embedded', SMALL, 2, 64, lora(8, both))
    yield case('embedded', SMALL, 2, 64, FULL, LOW, lora(8, both), {'precision': 'bf16'})
    yield case('embedded', SMALL, 2, 64, FULL, LOW, TRAINER, lora(8, both))
    yield case('head-drop', SMALL, 2, 64, FULL, LOW, TRAINER, lora(8, both, dropout=0.05))
    yield case('embedded-drop', SMALL, 2, 64, FULL, LOW, TRAINER, lora(8, QUERIES + ['embed_tokens'], dropout=0.05))
    yield case('embedded', SMALL, 2, 64, FULL, LOW, TRL, lora(8, QUERIES + ['embed_tokens']))  # it refuses those of a head
    yield case('embedded', 'x-qwen2-window', 2, 64, FULL, TRAINER, lora(16, ['embed_tokens', 'q_proj']))  # tied
    yield case('embedded', 'x-gpt2-odd', 2, 60, lora(8, ['c_attn', 'wte']))
    yield case('embedded', 'x-gemma3-small', 2, 64, TRAINER, LOW, {'attention': 'eager'}, lora(8, both))
    yield case('head', 'x-llama-2l', 2, 64, {'precision': 'fp32'}, lora(8, ['lm_head', 'up_proj']))
    yield case('embedded', SMALL, 2, 64, FULL, LOW, quantized('nf4', compute='bf16', double=True, prepare=True),
               {'made_on': 'gpu'}, lora(16, both))
    yield case('embedded', SMALL, 2, 64, FULL, LOW, TRAINER, ranks('ddp'), lora(8, both))
    yield case('embedded', SMALL, 2, 64, FULL, LOW, TRAINER, ranks('zero2'), lora(8, both))


def on_gpu(kind, **more):
    """A quantised base is loaded there."""
    return {'made_on': 'gpu', **LOW, **quantized(kind, **more)}


def beside_experts():
    """Adapters of attention and of a shared expert, of bases whose linears are in 4 or 8 bits and whose experts are not"""
    nf4 = {'compute': 'bf16', 'double': True}
    shared = [*QUERIES, 'gate_proj', 'shared_expert_gate', 'down_proj']
    yield case('experts', 'x-mixtral-wide', 2, 64, on_gpu('nf4', prepare=True, **nf4), lora())
    yield case('experts', 'x-mixtral-wide', 2, 64, FULL, on_gpu('nf4', **nf4), lora())
    yield case('experts', 'x-mixtral-wide', 2, 64, FULL, on_gpu('int8', prepare=True), lora())
    yield case('experts', 'x-qwen2-moe', 2, 100, on_gpu('nf4', compute='bf16'), lora(8, shared))
    yield case('experts', 'x-qwen2-moe', 2, 100, FULL, on_gpu('int8'), lora(8, shared))
    yield case('experts', 'x-qwen2-moe-window', 3, 100, FULL, on_gpu('fp4', prepare=True), lora(8, shared), {'precision': 'bf16'})
    yield case('experts', 'x-qwen3-moe-odd', 2, 100, on_gpu('nf4', prepare=True, **nf4), lora(8, ['q_proj', 'o_proj']))
    yield case('experts', 'x-qwen3-moe', 2, 300, FULL, on_gpu('nf4', **nf4), lora(8, ['q_proj', 'o_proj']), {'compute_capability': 90})
    yield case('experts', 'x-gpt-oss', 2, 64, on_gpu('nf4', prepare=True, **nf4), lora(), EAGER)
    yield case('experts', 'x-gpt-oss-odd', 2, 64, FULL, on_gpu('int8'), lora(), EAGER)
    yield case('experts', 'x-mixtral-wide', 2, 64, FULL, TRAINER, on_gpu('nf4', prepare=True, **nf4), lora(), {'accumulation': 2})
    yield case('experts', 'x-qwen2-moe', 2, 100, TRAINER, on_gpu('int8'), lora(8, shared))
    yield case('experts', 'x-gpt-oss', 2, 64, FULL, TRAINER, on_gpu('nf4', **nf4), lora(), EAGER)
    yield case('experts', 'x-qwen3-moe', 2, 100, FULL, TRL, on_gpu('nf4', **nf4), lora(8, ['q_proj', 'o_proj']))
    yield case('experts', 'x-mixtral-wide', 2, 64, TRL, on_gpu('nf4', prepare=True, **nf4), lora())
    for config, targets in (('x-mixtral-wide', QUERIES), ('x-qwen2-moe', shared), ('x-qwen3-moe', QUERIES)):
        yield case('experts', config, 2, 64, FULL, TRAINER, ranks('ddp'), on_gpu('nf4', prepare=True, **nf4), lora(8, targets))
    yield case('experts', 'x-gpt-oss', 2, 64, FULL, TRL, ranks('ddp'), on_gpu('nf4', **nf4), lora(), EAGER)
    yield case('experts', 'x-mixtral-wide', 2, 64, FULL, TRAINER, ranks('fsdp'), on_gpu('nf4', storage='bf16', **nf4), lora())
    yield case('experts', 'x-qwen2-moe', 2, 64, FULL, TRAINER, ranks('zero2'), on_gpu('nf4', **nf4), lora(8, shared))
    yield case('experts', 'x-mixtral-wide', 2, 64, FULL, TRAINER, ranks('zero3'), on_gpu('nf4', storage='bf16', **nf4), lora(),
               {'use_reentrant': True})


def stacked():
    """Adapters of the experts' stacked weights and of routers (peft's ParamWrapper), by names of old and as target_parameters"""
    nf4 = {'compute': 'bf16', 'double': True}
    both = {'target_parameters': ['mlp.experts.gate_up_proj', 'mlp.experts.down_proj']}
    first = {'target_parameters': ['0.mlp.experts.gate_up_proj', '0.mlp.experts.down_proj']}
    mixtral, qwen, oss, every = 'x-mixtral-wide', 'x-qwen3-moe', 'x-gpt-oss', 'all-linear'
    shared = [*QUERIES, 'gate_proj', 'shared_expert_gate', 'down_proj']
    yield case('stacked', mixtral, 2, 64, LOW, lora(8, **both))
    yield case('stacked-all', 'x-mixtral', 2, 64, FULL, LOW, lora(8, every))
    yield case('stacked-names', 'x-mixtral', 2, 64, lora(8, ['w1', 'w2', 'w3'], rank_pattern={'.*down_proj': 2}))
    yield case('stacked-names', qwen, 2, 100, FULL, LOW, lora(4, ['q_proj', 'gate_proj', 'up_proj', 'down_proj']),
               {'precision': 'bf16', 'compute_capability': 90})
    yield case('stacked-all', 'x-qwen3-moe-odd', 2, 100, LOW, lora(8, every), {'accumulation': 2})
    yield case('stacked-router', 'x-qwen2-moe', 2, 100, FULL, LOW,
               lora(8, shared, target_parameters=[*both['target_parameters'], 'mlp.gate.weight']))
    yield case('stacked-first', oss, 2, 64, LOW, EAGER, lora(8, every, **first))
    yield case('stacked-router', 'x-gpt-oss-odd', 2, 64, FULL, LOW, EAGER,
               lora(8, [], target_parameters=[*both['target_parameters'], 'router.weight']))
    yield case('stacked-down', 'x-mixtral-window', 2, 64, LOW, lora(8, target_parameters=['down_proj']))
    yield case('stacked-gate-up', oss, 2, 64, {'precision': 'fp32'}, EAGER, lora(8, target_parameters=['experts.gate_up_proj']))
    yield case('stacked', mixtral, 2, 64, FULL, on_gpu('nf4', prepare=True, **nf4), lora(8, **both))
    yield case('stacked-all', qwen, 2, 100, on_gpu('nf4', **nf4), lora(8, every))
    yield case('stacked', oss, 2, 64, FULL, EAGER, on_gpu('nf4', **nf4), lora(8, **both))
    yield case('stacked-all', mixtral, 2, 64, FULL, LOW, TRAINER, lora(8, every), {'accumulation': 2})
    yield case('stacked', qwen, 2, 64, LOW, TRAINER, lora(8, **both))
    yield case('stacked', oss, 2, 64, FULL, LOW, EAGER, TRAINER, lora(8, **both))
    yield case('stacked-re', qwen, 2, 64, FULL, LOW, TRAINER, lora(8, **both), {'use_reentrant': True})
    yield case('stacked', mixtral, 2, 64, FULL, TRAINER, on_gpu('nf4', prepare=True, **nf4), lora(8, **both))
    yield case('stacked-all', mixtral, 2, 64, FULL, LOW, TRL, lora(8, every))
    yield case('stacked', qwen, 2, 64, LOW, TRL, lora(8, **both))
    yield case('stacked', oss, 2, 64, FULL, EAGER, TRL, on_gpu('nf4', **nf4), lora(8, every, **both))
    yield case('stacked-router', 'x-qwen2-moe', 2, 64, FULL, TRL, on_gpu('nf4', **nf4),
               lora(8, target_parameters=[*both['target_parameters'], 'mlp.gate.weight']))
    yield case('stacked', mixtral, 2, 64, FULL, LOW, TRAINER, ranks('ddp'), lora(8, **both))
    yield case('stacked', oss, 2, 64, FULL, LOW, EAGER, TRL, ranks('ddp'), lora(8, **both))
    yield case('stacked', qwen, 2, 64, FULL, LOW, TRAINER, ranks('fsdp'), lora(8, **both))
    yield case('stacked-all', mixtral, 2, 64, LOW, TRAINER, ranks('fsdp'), lora(8, every))
    yield case('stacked', mixtral, 2, 64, FULL, TRAINER, ranks('fsdp'), on_gpu('nf4', storage='bf16', **nf4), lora(8, **both))
    yield case('stacked', oss, 2, 64, FULL, LOW, EAGER, TRL, ranks('fsdp'), lora(8, **both))
    yield case('stacked', mixtral, 2, 64, FULL, LOW, TRAINER, ranks('zero2'), lora(8, **both))
    yield case('stacked', oss, 2, 64, LOW, EAGER, TRAINER, ranks('zero1'), lora(8, **both))


def cases():
    yield from chosen()
    yield from saved()
    yield from embedded()
    yield from beside_experts()
    yield from stacked()


if __name__ == '__main__':
    for made in joined(sys.argv[1], cases()) if len(sys.argv) > 1 else cases():
        print(json.dumps(made))
