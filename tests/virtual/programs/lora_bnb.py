"""LoRA on a Llama with peft and an 8-bit optimizer of bitsandbytes; the base in 4 or 8 bits too.

    python lora_bnb.py --batch-size 4 [--model tiny|llama-1b] [--bits 4]
"""
import argparse

import bitsandbytes as bnb
import torch
from peft import LoraConfig, get_peft_model, prepare_model_for_kbit_training
from torch import nn
from transformers import LlamaConfig, LlamaForCausalLM

import peaks

SIZES = {'tiny': dict(hidden_size=256, intermediate_size=704, num_hidden_layers=2,
                      num_attention_heads=4, num_key_value_heads=2, vocab_size=32000),
         'llama-1b': dict(hidden_size=2048, intermediate_size=8192, num_hidden_layers=16,
                          num_attention_heads=32, num_key_value_heads=8, vocab_size=128256,
                          tie_word_embeddings=True)}


def quantize(model, bits):
    """The decoder's linear layers become those of bitsandbytes; .cuda() quantizes their weights."""
    for name, layer in list(model.model.named_modules()):
        if not isinstance(layer, nn.Linear):
            continue
        shape = layer.in_features, layer.out_features
        if bits == 4:
            new = bnb.nn.Linear4bit(*shape, bias=False, compute_dtype=torch.bfloat16,
                                    quant_type='nf4')
            new.weight = bnb.nn.Params4bit(layer.weight.data, requires_grad=False,
                                           quant_type='nf4')
        else:
            new = bnb.nn.Linear8bitLt(*shape, bias=False, has_fp16_weights=False)
            new.weight = bnb.nn.Int8Params(layer.weight.data, requires_grad=False,
                                           has_fp16_weights=False)
        parent, _, child = name.rpartition('.')
        setattr(model.model.get_submodule(parent), child, new)
    setattr(model, f'is_loaded_in_{bits}bit', True)
    return model


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--model', choices=SIZES, default='tiny')
    parser.add_argument('--batch-size', type=int, default=4)
    parser.add_argument('--seq', type=int, default=512)
    parser.add_argument('--max-steps', type=int, default=4)
    parser.add_argument('--bits', type=int, choices=(4, 8, 16), default=16, help='of the base')
    parser.add_argument('--optimizer', default='AdamW8bit', help='any of bitsandbytes.optim')
    options = parser.parse_args()

    config = LlamaConfig(use_cache=False, **SIZES[options.model])
    torch.set_default_dtype(torch.bfloat16)
    with torch.device('cuda' if options.bits == 16 else 'cpu'):
        model = LlamaForCausalLM(config)
    torch.set_default_dtype(torch.float32)
    if options.bits < 16:
        model = prepare_model_for_kbit_training(quantize(model, options.bits).cuda())
    lora = LoraConfig(r=16, lora_alpha=32, lora_dropout=0.05,
                      target_modules=['q_proj', 'k_proj', 'v_proj', 'o_proj'])
    model = get_peft_model(model.cuda(), lora)
    model.train()
    trained = [p for p in model.parameters() if p.requires_grad]
    optimizer = getattr(bnb.optim, options.optimizer)(trained, lr=2e-4)
    for _ in range(options.max_steps):
        tokens = torch.randint(config.vocab_size, (options.batch_size, options.seq)).cuda()
        with torch.autocast('cuda', dtype=torch.bfloat16):
            loss = model(input_ids=tokens, labels=tokens).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    peaks.report(bits=options.bits, trained=sum(p.numel() for p in trained))


main()
