"""A transformer in JAX: XLA compiles a whole step, and its graphs are put together node by node.

    XLA_PYTHON_CLIENT_PREALLOCATE=false python jax_train.py --batch-size 8

Without that setting JAX takes three quarters of the GPU at its start, whatever it needs.
"""
import argparse
import functools
import json

import jax
import jax.numpy as jnp

VOCABULARY, HEADS = 8192, 8


def make(key, width, layers):
    def normal(index, *shape):
        return 0.02 * jax.random.normal(jax.random.fold_in(key, index), shape)
    return {'tokens': normal(0, VOCABULARY, width),
            'qkv': normal(1, layers, width, 3 * width), 'out': normal(2, layers, width, width),
            'up': normal(3, layers, width, 4 * width), 'down': normal(4, layers, 4 * width, width)}


def norm(x):
    return (x - x.mean(-1, keepdims=True)) / jnp.sqrt(x.var(-1, keepdims=True) + 1e-5)


def block(x, layer):
    batch, seq, width = x.shape
    q, k, v = jnp.split((norm(x) @ layer['qkv']).reshape(batch, seq, HEADS, -1), 3, axis=-1)
    x += jax.nn.dot_product_attention(q, k, v, is_causal=True).reshape(batch, seq, width) \
        @ layer['out']
    return x + jax.nn.gelu(norm(x) @ layer['up']) @ layer['down'], None


def loss_of(weights, tokens):
    layers = {name: weights[name].astype(jnp.bfloat16) for name in ('qkv', 'out', 'up', 'down')}
    x = weights['tokens'][tokens[:, :-1]].astype(jnp.bfloat16)
    x, _ = jax.lax.scan(block, x, layers)
    logits = (norm(x) @ weights['tokens'].T.astype(jnp.bfloat16)).astype(jnp.float32)
    chosen = jnp.take_along_axis(jax.nn.log_softmax(logits), tokens[:, 1:, None], axis=-1)
    return -chosen.mean()


@functools.partial(jax.jit, donate_argnums=(0, 1, 2))
def step(weights, first, second, tokens):
    """Adam, without its corrections."""
    loss, gradients = jax.value_and_grad(loss_of)(weights, tokens)
    first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, first, gradients)
    second = jax.tree.map(lambda v, g: 0.99 * v + 0.01 * g * g, second, gradients)
    weights = jax.tree.map(lambda w, m, v: w - 1e-4 * m / (jnp.sqrt(v) + 1e-8), weights, first,
                           second)
    return weights, first, second, loss


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--batch-size', type=int, default=8)
    parser.add_argument('--seq', type=int, default=256)
    parser.add_argument('--width', type=int, default=512)
    parser.add_argument('--layers', type=int, default=4)
    parser.add_argument('--steps', type=int, default=4)
    options = parser.parse_args()
    key = jax.random.key(0)
    weights = make(key, options.width, options.layers)
    first, second = (jax.tree.map(jnp.zeros_like, weights) for _ in range(2))
    for i in range(options.steps):
        tokens = jax.random.randint(jax.random.fold_in(key, i),
                                    (options.batch_size, options.seq + 1), 0, VOCABULARY)
        weights, first, second, loss = step(weights, first, second, tokens)
        loss.block_until_ready()
    stats = jax.devices('gpu')[0].memory_stats()
    print(json.dumps({'peak_allocated': stats['peak_bytes_in_use'],
                      'peak_reserved': stats['peak_pool_bytes'],
                      'end_allocated': stats['bytes_in_use']}))


main()
