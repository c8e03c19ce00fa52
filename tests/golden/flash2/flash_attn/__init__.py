"""A stand-in for flash-attention-2's package: what flash_attn_func and flash_attn_varlen_func allocate, in their order, and
nothing computed.

The package needs hours of nvcc to build. For memory only its allocations count; they are read in
csrc/flash_attn/flash_api.cpp (mha_fwd, mha_bwd and their varlen kin) and flash_attn/flash_attn_interface.py of
Dao-AILab/flash-attention.
"""
import torch

__version__ = "2.8.3"


def up(n, to):
    return -(-n // to) * to


def rounded(head):
    return up(head, 32 if head <= 128 else 64)


def contiguous_heads(*tensors):
    return [t if t.stride(-1) == 1 else t.contiguous() for t in tensors]


def splits_of(q, k, dropout):
    """How many parts of the keys run side by side, to fill a GPU with small problems."""
    if dropout:
        return 1
    batch, length, heads, head = q.shape
    slots = 2 * torch.cuda.get_device_properties(q.device).multi_processor_count
    key_blocks = -(-k.shape[1] // (256 if head <= 64 else 128 if head <= 128 else 64))
    blocks = batch * heads * -(-length // 64)
    if blocks >= 0.8 * slots:
        return 1
    filling = {}
    for n in range(1, min(128, slots, key_blocks) + 1):
        if n == 1 or -(-key_blocks // n) != -(-key_blocks // (n - 1)):
            filling[n] = blocks * n / slots / -(-blocks * n // slots)
    return min(n for n, part in filling.items() if part >= 0.85 * max(filling.values()))


def forward(q, k, v, dropout):
    q, k, v = contiguous_heads(q, k, v)
    batch, length, heads, head = q.shape
    out = torch.empty_like(q)
    lse = q.new_empty((batch, heads, length), dtype=torch.float32)
    splits = splits_of(q, k, dropout)
    parts = []
    if splits > 1:
        parts.append(q.new_empty((splits, batch, heads, length), dtype=torch.float32))
        parts.append(q.new_empty((splits, batch, heads, length, rounded(head)), dtype=torch.float32))
    state = q.new_empty((2,), dtype=torch.int64)
    return out, lse, state


def backward(dout, q, k, v, out, dk, dv):
    dout, q, k, v, out = contiguous_heads(dout, q, k, v, out)
    batch, length, heads, head = q.shape
    keys, kv_heads = k.shape[1:3]
    row_sums = q.new_empty((batch, heads, up(length, 128)), dtype=torch.float32)
    dq_sums = q.new_empty((batch, up(length, 128), heads, rounded(head)), dtype=torch.float32)
    if heads != kv_heads:
        every_dk, every_dv = (q.new_empty((batch, keys, heads, head)) for _ in range(2))
        for each, total in ((every_dk, dk), (every_dv, dv)):
            torch.sum(each.view(batch, keys, kv_heads, heads // kv_heads, head), dim=3, out=total)


class FlashAttention(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q, k, v, dropout):
        head = q.shape[-1]
        if head % 8:
            q, k, v = (torch.nn.functional.pad(t, [0, 8 - head % 8]) for t in (q, k, v))
        out, lse, state = forward(q, k, v, dropout)
        ctx.save_for_backward(q, k, v, out, lse, state)
        return out[..., :head]

    @staticmethod
    def backward(ctx, dout):
        q, k, v, out, lse, state = ctx.saved_tensors
        grads = [torch.empty_like(t) for t in (q, k, v)]
        head = dout.shape[-1]
        padded = torch.nn.functional.pad(dout, [0, 8 - head % 8]) if head % 8 else dout
        backward(padded, q, k, v, out, *grads[1:])
        return *(g[..., :head] for g in grads), None


class FlashAttentionOfLengths(torch.autograd.Function):
    """Rows behind one another, (tokens, heads, size), which end where `ends` says."""

    @staticmethod
    def forward(ctx, q, k, v, ends):
        head = q.shape[-1]
        if head % 8:
            q, k, v = (torch.nn.functional.pad(t, [0, 8 - head % 8]) for t in (q, k, v))
        q, k, v = contiguous_heads(q, k, v)
        out = torch.empty_like(q)
        lse = q.new_empty(q.shape[1::-1], dtype=torch.float32)
        state = q.new_empty((2,), dtype=torch.int64)
        ctx.save_for_backward(q, k, v, out, lse, ends, ends, state)
        return out[..., :head]

    @staticmethod
    def backward(ctx, dout):
        q, k, v, out, lse, ends, _, state = ctx.saved_tensors
        grads = [torch.empty_like(t) for t in (q, k, v)]
        given = dout.shape[-1]
        padded = torch.nn.functional.pad(dout, [0, 8 - given % 8]) if given % 8 else dout
        padded, = contiguous_heads(padded)
        tokens, heads, head = q.shape
        keys, kv_heads = k.shape[:2]
        rows = tokens + 128 * (len(ends) - 1)
        row_sums = q.new_empty((heads, rows), dtype=torch.float32)
        dq_sums = q.new_empty((rows, heads, rounded(head)), dtype=torch.float32)
        if heads != kv_heads:
            every_dk, every_dv = (q.new_empty((keys, heads, head)) for _ in range(2))
            for each, total in ((every_dk, grads[1]), (every_dv, grads[2])):
                torch.sum(each.view(keys, kv_heads, heads // kv_heads, head), dim=2, out=total)
        return *(g[..., :given] for g in grads), None


def flash_attn_func(q, k, v, dropout_p=0.0, softmax_scale=None, causal=False, window_size=(-1, -1), softcap=0.0,
                    alibi_slopes=None, deterministic=False, return_attn_probs=False):
    if q.dtype not in (torch.float16, torch.bfloat16):
        raise RuntimeError("FlashAttention takes fp16 and bf16 only")
    return FlashAttention.apply(q, k, v, dropout_p)


def flash_attn_varlen_func(q, k, v, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k, dropout_p=0.0,
                           softmax_scale=None, causal=False, window_size=(-1, -1), softcap=0.0, alibi_slopes=None,
                           deterministic=False, return_attn_probs=False, block_table=None):
    if q.dtype not in (torch.float16, torch.bfloat16):
        raise RuntimeError("FlashAttention takes fp16 and bf16 only")
    return FlashAttentionOfLengths.apply(q, k, v, cu_seqlens_q)


def flash_attn_with_kvcache(*args, **kwargs):
    raise NotImplementedError("the stand-in is for training")
