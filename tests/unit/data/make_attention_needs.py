"""Measures scaled_dot_product_attention on the virtual GPU and writes attention_needs.txt.

    python3 make_attention_needs.py OUT/run VENV/bin/python > attention_needs.txt      (a minute)
    plimsoll exec --device sim:GPU,memory=64TiB --repetitions 99999 --logs DIR -- VENV/bin/python make_attention_needs.py CC
                      one GPU, of PyTorch 2.15: attention_needs_2_15.txt, and there some calls more for 9.0 and 10.0 (queries and keys of
                      other lengths around 128, heads of 256, large heads without training)
    the same of 2.11 with `values` behind CC: attention_needs_values.txt, whose values have heads of another size: head_size is d/e

The virtual CUDA of the oracle must know the GPUs in CARDS: where it knows fewer (7.0, 10.0 and 12.0 were not in it), add a line to GPU() in
cudart.c and to the properties in cudnn.c, with the figures below.

One call a line:

    cc SMs  dtype batch heads kv_heads q k head_size  mask_batch mask_heads  causal dropout training layout  kernel  forward  backward

layout      memory order of q, k, v. separate: three projections; packed: views of one; rope: q, k of their own, v a view of one projection;
            cat: q and k in (batch, heads, length, size) order, as torch.cat leaves them; repeat: so are k and v; heads: all three;
            latent: q and k as cat, v the end of each head of one projection (deepseek_v3); grad: as separate, and the gradient of the result in (batch, heads, length, size) order
kernel      flash, efficient, cudnn, math: the autograd node that was made
forward, backward   allocator events, separated by commas (- for none): ROLEbytes is an allocation, bytes as requested; a bare number is the release of
            that allocation (counted from 0 within the pass); !ROLE is the release of what the forward pass had saved.
            Roles: O result, L log-sum-exp, R random state, M padded mask, P padded q, k, v (saved), Q K V gradients, T all else.
            Events of the math path are not recorded (math is composed of other operations).
"""
import json, os, random, subprocess, sys, time

CARDS = {70: (80, 98304), 75: (72, 65536), 80: (108, 166912), 86: (82, 101376), 89: (142, 101376), 90: (132, 232448), 100: (148, 232448),
         120: (170, 101376)}  # multiprocessors, shared memory a block may have
KERNELS = dict(Flash="flash", Efficient="efficient", Cudnn="cudnn")
SAVED = dict(logsumexp="L", log_sumexp="L", rng_state="R", unused="R", philox_seed="R", philox_offset="R", attn_bias="M", query="P", key="P", value="P")

def call(**given):
    c = dict(dtype="bf16", b=2, h=8, kv=8, s=512, d=64, mask=None, causal=1, dropout=0, train=1, layout="separate"); c.update(given)
    c.setdefault("k", c["s"])
    if c["mask"] or c["k"] != c["s"] and "causal" not in given: c["causal"] = 0
    if "kv" not in given: c["kv"] = c["h"]
    c.setdefault("e", c["d"])
    return c

def calls(cc):
    """The calls measured on one GPU: each length, head size, head count and switch by itself, then seeded mixtures."""
    dtypes = ("fp32", "bf16", "fp16")
    for t in dtypes:
        for s in (1, 64, 777, 1024):
            yield call(dtype=t, s=s); yield call(dtype=t, s=s, mask=(2, 1))
        for d in (16, 37, 60, 72, 80, 96, 100, 128, 160, 192, 208, 256):
            yield call(dtype=t, d=d); yield call(dtype=t, d=d, mask=(2, 1))
        yield call(dtype=t, kv=2); yield call(dtype=t, kv=2, mask=(1, 1)); yield call(dtype=t, d=96, dropout=1, mask=(2, 1)); yield call(dtype=t, dropout=1)
    for s in (128, 512, 1000, 2048, 4096):
        for b, h, kv in ((1, 1, 1), (1, 4, 1), (4, 32, 4), (16, 12, 12)): yield call(s=s, b=b, h=h, kv=kv, d=128 if h == 32 else 64)
    for layout in ("packed", "rope", "cat", "repeat", "heads", "grad"):
        yield call(layout=layout); yield call(layout=layout, mask=(2, 1)); yield call(layout=layout, dtype="fp32"); yield call(layout=layout, d=80, s=1)
    for train in (0, 1):
        for more in (dict(), dict(dropout=1), dict(mask=(1, 1), s=777), dict(s=40, d=160), dict(mask=(2, 8), d=256), dict(dtype="fp32", mask=(2, 1), s=1000)):
            yield call(train=train, **more)
    for s, k in ((1, 512), (512, 1), (100, 777), (1024, 512)):
        for more in (dict(), dict(kv=2), dict(causal=1), dict(mask=(1, 1)), dict(dropout=1)): yield call(s=s, k=k, **more)
    for more in (dict(h=5, kv=1, s=5, d=8, b=1), dict(h=9, kv=1, s=943, d=160), dict(b=64, h=20, kv=1, s=8192, d=128), dict(d=60, train=0), dict(d=60, train=0, dropout=1),
                 dict(d=100, s=300, mask=(1, 1)), dict(d=37, kv=2, s=777)): yield call(**more)
    for d in (200, 224, 232, 256): yield call(d=d, dropout=1); yield call(d=d, train=0)
    rng = random.Random(cc)
    for _ in range(50):
        h = rng.choice((1, 2, 3, 6, 8, 12, 16, 25, 32, 64)); kv = rng.choice([x for x in (1, 2, 4, 8, h) if h % x == 0 and x <= h] + [h, h])
        yield call(dtype=rng.choice(dtypes), b=rng.choice((1, 2, 3, 4, 8, 16)), h=h, kv=kv, s=rng.choice((33, 64, 128, 200, 333, 512, 777, 1000, 1024, 2048, 4096)),
                   d=rng.choice((32, 64, 64, 80, 88, 96, 112, 128, 128, 256)), mask=rng.choice((None, None, (1, 1), "batch")), dropout=rng.choice((0, 0, 1)),
                   layout=rng.choice(("separate", "packed", "rope", "cat")))

def calls_of_values(cc):
    """Heads of values smaller or larger than those of queries and keys, as multi-head latent attention has them"""
    for t in ("fp32", "bf16", "fp16"):
        for d, e in ((192, 128), (256, 256), (96, 64), (48, 32), (24, 16), (40, 64), (40, 136), (64, 128), (128, 192), (136, 128), (20, 12), (30, 20)):
            for more in (dict(), dict(mask=(2, 1)), dict(mask=(1, 1), s=77), dict(dropout=1), dict(train=0), dict(s=1000, h=6)):
                yield call(dtype=t, d=d, e=e, layout="latent", **more)
    rng = random.Random(cc)
    for _ in range(40):
        yield call(dtype=rng.choice(("fp32", "bf16", "bf16")), b=rng.choice((1, 2, 3, 8)), h=rng.choice((1, 2, 3, 6, 16, 128)), layout="latent",
                   s=rng.choice((33, 64, 100, 128, 129, 333, 777, 2048)), d=rng.choice((24, 48, 96, 192)), e=rng.choice((16, 32, 64, 128)),
                   mask=rng.choice((None, None, (1, 1), "batch")), dropout=rng.choice((0, 0, 1)))

def measure(cc, calls):
    """In the process that PyTorch runs in: reads nothing, writes the lines of one GPU."""
    import torch, warnings
    warnings.filterwarnings("ignore")
    from torch.nn.functional import scaled_dot_product_attention
    memory, types = torch.cuda.memory, dict(fp32=torch.float32, bf16=torch.bfloat16, fp16=torch.float16)
    properties = torch.cuda.get_device_properties(0)
    assert properties.major * 10 + properties.minor == cc and properties.multi_processor_count == CARDS[cc][0] and properties.shared_memory_per_block_optin == CARDS[cc][1], properties

    def inputs(c):
        b, h, kv, s, k, d, e = (c[n] for n in ("b", "h", "kv", "s", "k", "d", "e"))
        new = lambda *shape: torch.empty(*shape, dtype=types[c["dtype"]], device="cuda", requires_grad=bool(c["train"]))
        inside, first = (lambda n, heads: new(b, n, heads, d).transpose(1, 2)), (lambda n, heads: new(b, heads, n, d))
        split = lambda: [x.view(b, s, -1, d).transpose(1, 2) for x in new(b, s, (h + 2 * kv) * d).split([h * d, kv * d, kv * d], dim=2)]
        layout = c["layout"]
        if layout == "packed" and s == k: return split()
        if layout == "latent": return [first(s, h), first(k, kv), new(b, k, kv, d + e)[..., d:].transpose(1, 2)]
        if layout == "rope" and s == k: return [inside(s, h), inside(k, kv), split()[2]]
        return [(first if layout in ("cat", "heads") else inside)(s, h), (first if layout in ("cat", "heads", "repeat") else inside)(k, kv),
                (first if layout in ("heads", "repeat") else inside)(k, kv)]

    def events(work):
        memory._record_memory_history(enabled="all", context=None, max_entries=1 << 40, clear_history=True)
        result = work(); time.sleep(0.002)  # the autograd thread lets go of its own references a little later
        trace = memory._snapshot()["device_traces"][0]
        memory._record_memory_history(enabled=None)
        return result, [(e["action"] == "alloc", e["addr"], e["size"]) for e in trace if e["action"] in ("alloc", "free_completed")]

    def text(trace, roles, saved):
        """roles: of the blocks that outlive the pass, by address; saved: of the blocks from before it."""
        out, live, n = [], {}, 0
        last = {a: i for i, (is_new, a, _) in enumerate(trace) if is_new}  # an address may be used twice
        for i, (is_new, a, size) in enumerate(trace):
            if is_new: out.append(f"{roles.get(a, 'T') if last[a] == i else 'T'}{size}"); live[a] = n; n += 1
            elif a in live: out.append(str(live.pop(a)))
            elif a in saved: out.append("!" + saved.pop(a))
        return ",".join(out) or "-"

    block = lambda t: t.untyped_storage().data_ptr()
    for c in calls(cc):
        qkv = inputs(c); q, k, v = qkv
        if c["mask"] == "batch": c["mask"] = (c["b"], 1)
        mask = torch.empty(*c["mask"], c["s"], c["k"], dtype=types[c["dtype"]], device="cuda") if c["mask"] else None
        out, trace = events(lambda: scaled_dot_product_attention(q, k, v, attn_mask=mask, dropout_p=0.1 * c["dropout"], is_causal=bool(c["causal"]), enable_gqa=c["kv"] != c["h"]))
        node = out.grad_fn
        if node and "Slice" in node.name(): node = node.next_functions[0][0]
        kernel = next((KERNELS[n] for n in KERNELS if node and f"DotProduct{n}" in node.name()), "math" if node else None)
        if not kernel:  # without autograd there is no node to tell: ask for the choice
            kernel = {0: "math", 1: "flash", 2: "efficient", 3: "cudnn"}[torch._fused_sdp_choice(q, k, v, attn_mask=mask, dropout_p=0.1 * c["dropout"], is_causal=bool(c["causal"]), enable_gqa=c["kv"] != c["h"])]
        given = {block(t) for t in qkv + ([mask] if mask is not None else [])}
        saved = {block(out): "O"}
        for name, role in SAVED.items():
            t = getattr(node, "_saved_" + name, None) if node and kernel != "math" else None
            if t is not None and t.is_cuda and t.numel() and block(t) not in given: saved[block(t)] = role
        t = None
        forward, backward = text(trace, saved, {}), "-"
        if c["train"]:
            shape = (c["b"], c["h"], c["s"], c["e"])
            g = torch.empty(*(shape if c["layout"] == "grad" else (shape[0], shape[2], shape[1], shape[3])), dtype=types[c["dtype"]], device="cuda")
            if c["layout"] != "grad": g = g.transpose(1, 2)
            saved.pop(block(out))
            grads, trace = events(lambda: torch.autograd.grad(out, qkv, g))
            backward = text(trace, {block(t): r for t, r in zip(grads, "QKV")}, saved); grads = g = t = None
        if kernel == "math": forward = backward = "-"
        print(cc, CARDS[cc][0], c["dtype"], *(c[n] for n in ("b", "h", "kv", "s", "k")), c["d"] if c["e"] == c["d"] else f'{c["d"]}/{c["e"]}', *(c["mask"] or (0, 0)), c["causal"], c["dropout"], c["train"], c["layout"], kernel, forward, backward, flush=True)
        node = out = q = k = v = qkv = mask = trace = None; time.sleep(0.001)

if __name__ == "__main__":
    if sys.argv[1].isdigit():
        measure(int(sys.argv[1]), calls_of_values if sys.argv[2:] == ["values"] else calls)
        sys.exit()
    run, python = sys.argv[1:]
    for cc in CARDS:
        sys.stdout.flush()
        subprocess.run([run, python, __file__, str(cc)], check=True, env=dict(os.environ, VGPU_SM=str(cc), VGPU_MEM=str(1 << 46)))
