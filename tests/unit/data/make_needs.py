"""Measures on the virtual GPU what reductions, the embedding's and the layer norm's backward and matmuls ask for: writes needs.txt.

    python3 make_needs.py OUT/run VENV/bin/python > needs.txt      (a minute)
    plimsoll exec --device sim:GPU,memory=64TiB --repetitions 99999 --logs DIR -- VENV/bin/python make_needs.py CC [KIND]
                      one GPU (so argmax was measured), and of PyTorch 2.15: needs_2_15.txt has its rows of embedding and cublas; the others are those of 2.11, but that
                      2.15 folds "and" and "or" of floats in bytes

One call a line, its kind first, then the GPU: cc, multiprocessors, resident threads of a multiprocessor. EVENTS are those of the allocator, separated by commas:
+bytes is an allocation, bytes as requested; -n is the release of the n-th of them (from 0); what outlives the call is not released.

    reduce cc SMs threads  dtype result fold dims offset  shape stride  EVENTS        dims is a bit mask; offset, of element 0 in its block, and strides in elements
    argmax cc SMs threads  dtype shape  EVENTS                                        along the last dimension, contiguous
    embedding cc SMs threads  dtype tokens rows width padding  EVENTS                 the backward of torch.nn.functional.embedding
    layer_norm cc SMs threads  dtype rows width bias  EVENTS                          native_layer_norm_backward with all its gradients
    cumsum cc SMs threads  dtype rows length  EVENTS                                  along the last dimension
    cublas cc SMs threads  dtype  EVENTS                                              the first addmm with a bias, the first mm, a second addmm

CUB asks the runtime which of the compute capabilities that the wheel brings code for is run: where the virtual CUDA answers with the GPU's own (cudaFuncGetAttributes in
cudart.c), say 86 for 8.9. The wheel has no code for 7.0, so what uses CUB is not measured there.
"""
import os, random, subprocess, sys, time

CARDS = ((70, 80), (75, 72), (80, 108), (86, 28), (86, 82), (89, 142), (90, 132), (90, 114), (100, 148), (120, 170))  # compute capability, multiprocessors
FLOATS = ("fp32", "bf16", "fp16")

# --- reductions: (dtype, result, fold, dims, offset, shape, stride) ---------------------------------------------------------------------------------------

def contiguous(shape):
    stride, n = [], 1
    for size in reversed(shape): stride.insert(0, n); n *= size
    return tuple(stride)

def permuted(shape, order):
    """The view of this shape whose memory is laid out by `order`, slowest dimension first."""
    stride, n = [0] * len(shape), 1
    for dim in reversed(order): stride[dim] = n; n *= shape[dim]
    return tuple(stride)

def reductions(cc):
    rng = random.Random(cc)
    def over(shape, dims, stride=None, dtype="fp32", result=None, fold="add", offset=0):
        return dtype, result or dtype, fold, sum(1 << d for d in dims), offset, shape, stride or contiguous(shape)
    for t in FLOATS:
        for rows in (1, 7, 64, 512, 777, 4096, 8192, 65536):
            for width in (64, 768, 2304, 50257): yield over((rows, width), (0,), dtype=t)
        for shape in ((8, 1024, 768), (1, 64, 4096), (3, 777, 11008)): yield over(shape, (0, 1), dtype=t); yield over(shape, (2,), dtype=t); yield over(shape, (0, 1, 2), dtype=t)
        for rows, width in ((8192, 4096), (1, 4096), (512, 65), (3, 131072), (2, 1000003)): yield over((rows, width), (1,), dtype=t)
        for n in (1, 1000, 131072, 1048577, 1 << 24, (1 << 28) + 3): yield over((n,), (0,), dtype=t); yield over((n,), (0,), dtype=t, result="fp32")
        for b, kv, rep, s, d in ((2, 4, 8, 1024, 64), (1, 1, 32, 777, 128), (4, 8, 4, 64, 80)):
            shape = b, kv, rep, s, d
            yield over(shape, (2,), dtype=t); yield over(shape, (2,), permuted(shape, (0, 3, 1, 2, 4)), dtype=t)
        for b, s, heads, d in ((2, 1024, 12, 64), (1, 333, 5, 80)):
            shape = b, heads, s, d
            for dims in ((0, 2), (3,), (0, 1, 2), (0,), (1,)): yield over(shape, dims, permuted(shape, (0, 2, 1, 3)), dtype=t)
        yield over((64, 8, 4096, 32), (0, 1, 2), (1, 0, 2048, 64), dtype=t)
        for offset in (1, 2, 3, 4, 768): yield over((4096, 768), (0,), (2304, 1), dtype=t, offset=offset)
        yield over((4096, 766), (0,), (2302, 1), dtype=t); yield over((4096, 768), (0,), (1, 4096), dtype=t); yield over((4096, 768), (1,), (1, 4096), dtype=t)
        yield over((4096, 768), (0,), (0, 1), dtype=t); yield over((4096, 768), (0,), (1, 0), dtype=t); yield over((4096, 768), (0, 1), (0, 0), dtype=t)
        for fold in ("max", "min", "and", "or"):
            result = "bool" if fold in ("and", "or") else t
            for shape, dims in (((8192, 768), (0,)), ((8192, 768), (1,)), ((1 << 20,), (0,)), ((70000, 31), (0, 1))): yield over(shape, dims, dtype=t, fold=fold, result=result)
        for fold in ("mean", "norm"):
            for shape, dims in (((8192, 768), (0,)), ((8192, 768), (1,)), ((8, 1024, 4096), (2,)), ((3, 131072), (1,)), ((1 << 24,), (0,)), ((50257, 768), (0, 1)), ((40, 8192, 8192), (1,)), ((1 << 31,), (0,))): yield over(shape, dims, dtype=t, fold=fold)
        # more than 2 GiB
        for shape, dims in (((3, 4096, 128256), (2,)), ((3, 4096, 128256), (0, 1)), ((3, 4096, 128256), (0, 1, 2)), ((1 << 20, 4096), (0,)), ((65536, 50257), (0,)), ((40, 8192, 8192), (1,))):
            yield over(shape, dims, dtype=t); yield over(shape, dims, dtype=t, result="fp32")
        yield over((1 << 20, 4096), (0,), dtype=t, fold="max"); yield over((4, 1 << 20, 2048), (0, 1), dtype=t, offset=3, stride=(1 << 31, 2048, 1))
    for t in ("int64", "int32", "uint8", "bool"):
        for shape, dims in (((8192, 768), (0,)), ((8192, 768), (1,)), ((1 << 20,), (0,)), ((70000, 31), (0, 1)), ((1 << 16, 1 << 16), (1,))):
            if t == "int64": yield over(shape, dims, dtype=t)
            if t != "bool": yield over(shape, dims, dtype=t, fold="max")
            yield over(shape, dims, dtype=t, fold="or", result="uint8" if t == "uint8" else "bool"); yield over(shape, dims, dtype=t, fold="and", result="uint8" if t == "uint8" else "bool")
    # found among 31,000 random calls: each is the one that tells a rule from its neighbour (equal strides, ties of extents, a grid just full, extents of 1, odd halves)
    yield over((2, 1, 131072, 17), (1, 2, 3), (1, 2, 0, 2), dtype="bf16", result="fp32"); yield over((1 << 31, 6), (0, 1), (0, 1), dtype="bf16", offset=4)
    yield over((2048, 1, 1024, 3, 288), (2, 3), (884736, 884736, 864, 288, 1), dtype="int64", fold="max"); yield over((75096, 1, 4), (0, 1), (0, 4, 1), dtype="fp16", fold="mean")
    yield over((3, 134217728, 4), (1, 2), dtype="bf16", result="fp32"); yield over((16384, 131087), (0,), (4, 1)); yield over((10, 8192, 72), (0, 1), dtype="bf16"); yield over((5361208, 8, 7), (0, 2), (1, 5361208, 42889664), dtype="int64")
    for _ in range(80):
        ndim = rng.randint(1, 5)
        shape = tuple(int(2 ** rng.uniform(0, 24 / ndim)) * rng.choice((1, 1, 1, 2, 8)) for _ in range(ndim))
        order = rng.sample(range(ndim), ndim) if rng.random() < 0.6 else range(ndim)
        stride = [0 if rng.random() < 0.08 else n for n in permuted(shape, order)]
        if rng.random() < 0.3: stride = [n * rng.choice((1, 2, 3)) for n in stride]
        t = rng.choice(FLOATS)
        yield over(shape, [d for d in range(ndim) if rng.random() < 0.5] or [rng.randrange(ndim)], tuple(stride), dtype=t, result=rng.choice((t, t, "fp32")), offset=rng.choice((0, 0, 0, 1, 2, 4)))

def run_reduction(torch, call):
    dtype, result, fold, dims, offset, shape, stride = call
    size = offset + 1 + sum((n - 1) * k for n, k in zip(shape, stride))
    x = torch.empty(size, dtype=getattr(torch, TYPES[dtype]), device="cuda").as_strided(shape, stride, offset)
    over, out = [d for d in range(len(shape)) if dims >> d & 1], getattr(torch, TYPES[result])
    work = dict(add=lambda: x.sum(over, dtype=out), mean=lambda: x.mean(over, dtype=out), norm=lambda: torch.linalg.vector_norm(x, dim=over, dtype=out),
                max=lambda: x.amax(over), min=lambda: x.amin(over), **{"and": lambda: x.all(over), "or": lambda: x.any(over)})[fold]
    return work, (dtype, result, fold, dims, offset, ",".join(map(str, shape)), ",".join(map(str, stride)))

# --- argmax: (dtype, shape) ---

def argmaxes(cc):
    rng = random.Random(cc)
    for t in FLOATS:
        for width in (1, 2, 10, 127, 500, 1000, 8192, 32000, 50257, 128256, 151936):
            for rows in (1, 2, 3, 4, 7, 16, 64): yield t, (rows, width)
            for batch, length in ((1, 1), (1, 64), (1, 512), (4, 64), (8, 1024)): yield t, (batch, length, width)
        for shape in ((3, 4096, 128256), (4, 1 << 13, 32000), (1, 1 << 15, 151936), (1 << 20, 4096)): yield t, shape
    for _ in range(80): yield rng.choice(FLOATS), (rng.choice((1, 1, 2, 3, 8)), int(2 ** rng.uniform(0, 9)), int(2 ** rng.uniform(1, 18)))

def run_argmax(torch, call):
    dtype, shape = call
    x = torch.empty(*shape, dtype=getattr(torch, TYPES[dtype]), device="cuda")
    return lambda: x.argmax(dim=-1), (dtype, ",".join(map(str, shape)))

# --- embedding, layer norm, matmul ------------------------------------------------------------------------------------------------------------------

def embeddings(cc):
    if cc == 70: return
    rng = random.Random(cc)
    for t in FLOATS:
        for tokens in (1, 777, 3072, 3073, 4096, 8192, 200000): yield t, tokens, 50257, 768, -1
    for tokens in (3584, 3840, 3841, 7681, 16384, 25000, 65536, 131072, 1000003, 1 << 24):
        for rows in (1000, 32000, 262144): yield "fp32", tokens, rows, 64, rng.choice((-1, 0))
    yield "bf16", (1 << 28) + 12345, 128256, 16, -1
    yield "bf16", (1 << 24) + 77, 1 << 23, 16, -1
    for _ in range(40): yield rng.choice(FLOATS), int(2 ** rng.uniform(8, 18)), rng.choice((1000, 32000, 50257, 151936, 256000, 262144)), rng.choice((64, 768, 1600, 4096, 8192)), rng.choice((-1, -1, 0))
    if cc in (80, 90): yield from few_rows(rng)

def few_rows(rng):
    for t in FLOATS:
        for tokens in (3073, 16384): yield t, tokens, 2, 768, -1
    for _ in range(40): yield rng.choice(FLOATS), int(2 ** rng.uniform(11.5, 17)), int(2 ** rng.uniform(0, 11)), rng.choice((33, 160, 768, 1024, 1025, 2048, 4096)), rng.choice((-1, 0))

def run_embedding(torch, call):
    dtype, tokens, rows, width, padding = call
    new = lambda *shape: torch.empty(*shape, dtype=getattr(torch, TYPES[dtype]), device="cuda")
    grad, indices = new(tokens, width), torch.empty(tokens, dtype=torch.int64, device="cuda")
    return lambda: torch.ops.aten.embedding_dense_backward(grad, indices, rows, padding, False), (dtype, tokens, rows, width, int(padding >= 0))

def layer_norms(cc):
    rng = random.Random(cc)
    for t in FLOATS:
        for rows in (1, 127, 1024, 65536, 65537, 131072, 262144, 1000003):
            for width in (64, 768, 1024, 4096): yield t, rows, width, 1
        yield t, 131072, 768, 0; yield t, 4096, 768, 0
    for _ in range(30): yield rng.choice(FLOATS), int(2 ** rng.uniform(15, 20)), rng.choice((32, 100, 512, 777, 1152, 1280, 1600, 1727, 1728, 2080, 2112, 2272)), rng.choice((0, 1))

def run_layer_norm(torch, call):
    dtype, rows, width, bias = call
    new = lambda *shape: torch.empty(*shape, dtype=getattr(torch, TYPES[dtype]), device="cuda")
    x, weight, mean = new(rows, width), new(width), torch.empty(rows, 1, device="cuda")
    return lambda: torch.ops.aten.native_layer_norm_backward(x, x, [width], mean, mean, weight, weight if bias else None, [True, True, bool(bias)]), call

def run_cumsum(torch, call):
    dtype, rows, length = call
    x = torch.empty(rows, length, dtype=getattr(torch, TYPES[dtype]), device="cuda")
    return lambda: x.cumsum(-1), call

def run_cublas(torch, call):
    new = lambda *shape: torch.empty(*shape, dtype=getattr(torch, TYPES[call]), device="cuda")
    a, bias = new(64, 64), new(64)
    torch._C._cuda_clearCublasWorkspaces()
    return lambda: [torch.addmm(bias, a, a), torch.mm(a, a), torch.addmm(bias, a, a)], (call,)

# --- the measuring -------------------------------------------------------------------------------------------------------------------------------------

TYPES = dict(fp32="float32", bf16="bfloat16", fp16="float16", int64="int64", int32="int32", uint8="uint8", bool="bool")
KINDS = dict(reduce=(reductions, run_reduction), argmax=(argmaxes, run_argmax), embedding=(embeddings, run_embedding), layer_norm=(layer_norms, run_layer_norm),
             cumsum=(lambda cc: [(t, rows, n) for t in ("int64", "fp32") for rows in (1, 2) for n in (1, 777, 13441, 16384, 131072, 1 << 20, 1 << 23) if cc != 70], run_cumsum), cublas=(lambda cc: FLOATS, run_cublas))

def events(torch, work):
    memory = torch.cuda.memory
    memory._record_memory_history(enabled="all", context=None, max_entries=1 << 40, clear_history=True)
    result = work()
    trace = memory._snapshot()["device_traces"][0]
    memory._record_memory_history(enabled=None)
    out, live, n = [], {}, 0
    for e in trace:
        if e["action"] == "alloc": out.append(f"+{e['size']}"); live[e["addr"]] = n; n += 1
        elif e["action"] == "free_completed" and e["addr"] in live: out.append(f"-{live.pop(e['addr'])}")
    return ",".join(out) or "-"

def measure(cc, *kinds):
    import torch, warnings
    warnings.filterwarnings("ignore")
    p = torch.cuda.get_device_properties(0)
    for kind, (calls, prepare) in KINDS.items():
        if kinds and kind not in kinds: continue
        for call in dict.fromkeys(calls(cc)):
            work, fields = prepare(torch, call)
            print(kind, cc, p.multi_processor_count, p.max_threads_per_multi_processor, *fields, events(torch, work), flush=True)

if __name__ == "__main__":
    if sys.argv[1].isdigit(): measure(int(sys.argv[1]), *sys.argv[2:]); sys.exit()
    run, python = sys.argv[1:]
    for cc, multiprocessors in CARDS:
        sys.stdout.flush()
        subprocess.run([run, python, __file__, str(cc)], check=True, env=dict(os.environ, VGPU_SM=str(cc), VGPU_SMS=str(multiprocessors), VGPU_MEM=str(1 << 46)))
