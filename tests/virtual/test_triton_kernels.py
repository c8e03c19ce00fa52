#!/usr/bin/env python3
"""What a kernel of torch.compile's moves is read from its source: test_triton_kernels.py plimsoll_triton.py

The sources are in the form of TorchInductor's of PyTorch 2.11, with what is not looked at left out.
"""
import importlib.util
import sys
import tempfile

sys.dont_write_bytecode = True  # nothing is left in the tree
MUCH = 1 << 50


def load(path):
    spec = importlib.util.spec_from_file_location('plimsoll_triton', path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


POINTWISE = """
@triton_heuristics.pointwise(size_hints={{'x': 4194304}}, filename=__file__)
@triton.jit
def triton_poi_fused_0({arguments}, xnumel, XBLOCK: tl.constexpr):
    xnumel = {numel}
    xoffset = tl.program_id(0) * XBLOCK
    xindex = xoffset + tl.arange(0, XBLOCK)[:]
    xmask = xindex < xnumel
{body}
"""

REDUCTION = """
@triton.jit
def _triton_helper_fn_add0(arg0_0, arg1_0):
    return arg0_0 + arg1_0

@triton_heuristics.reduction(size_hints={{'x': 8192, 'r0_': 65536}}, filename=__file__)
@triton.jit
def triton_red_fused_0({arguments}, xnumel, r0_numel, XBLOCK: tl.constexpr, R0_BLOCK: tl.constexpr):
    xnumel = {numel}
    r0_numel = {row}
    rnumel = r0_numel
    xoffset = tl.program_id(0) * XBLOCK
    xindex = xoffset + tl.arange(0, XBLOCK)[:, None]
    r0_base = tl.arange(0, R0_BLOCK)[None, :]
    rbase = r0_base
    x0 = xindex
{body}
"""

TWICE = """
    _tmp2 = tl.full([XBLOCK, R0_BLOCK], 0, tl.float32)
    for r0_offset in tl.range(0, r0_numel, R0_BLOCK):
        r0_index = r0_offset + r0_base
        r0_mask = r0_index < r0_numel
        rindex = r0_index
        r0_1 = r0_index
        tmp0 = tl.load(in_ptr0 + (r0_1 + {row}*x0), r0_mask, eviction_policy='evict_last', other=0.0).to(tl.float32)
        tmp1 = tl.broadcast_to(tmp0, [XBLOCK, R0_BLOCK])
        _tmp2 = _tmp2 + tmp1
    tmp2 = tl.sum(_tmp2, 1)[:, None]
    for r0_offset in tl.range(0, r0_numel, R0_BLOCK):
        r0_index = r0_offset + r0_base
        r0_1 = r0_index
        tmp3 = tl.load(in_ptr0 + (r0_1 + {row}*x0), r0_mask, other=0.0).to(tl.float32)
        tl.store(out_ptr1 + (r0_1 + {row}*x0), tmp3 - tmp2, r0_mask)
"""

MIXED = """
    accum0 = tl.full([R0_BLOCK], 0, tl.float32)[None, :]
    r0_index = tl.arange(0, R0_BLOCK)[None, :]
    rindex = r0_index
    r0_1 = r0_index
    for _ in tl.range(0, RSPLIT_SIZE, XBLOCK, num_stages=NUM_STAGES):
        x0 = xindex
        xindex += XBLOCK
        tmp0 = tl.load(in_ptr0 + (r0_1 + 768*x0), None, other=0.0)
        accum0 = accum0 + tl.sum(tmp0, 0)
    tl.store(ws_ptr + (tl.program_id(0) + 0 * tl.num_programs(0)) * r0_numel + r0_index, accum0, None)
"""


def pointwise(numel, body, arguments='in_ptr0, out_ptr0'):
    return POINTWISE.format(numel=numel, body=''.join(f'    {line}\n' for line in body), arguments=arguments)


def reduction(numel, row, body, arguments='in_ptr0, out_ptr1'):
    return REDUCTION.format(numel=numel, row=row, body=body.format(row=row), arguments=arguments)


# What it is, source, numbers, (bytes of an element, of all) of each pointer, bytes that are moved.
CASES = [
    ('reads and writes each element', pointwise(6000, ['x0 = xindex', 'tmp0 = tl.load(in_ptr0 + (x0), xmask)',
                                                      'tl.store(out_ptr0 + (x0), tmp0, xmask)']),
     {}, {'in_ptr0': (4, MUCH), 'out_ptr0': (2, MUCH)}, 6000 * 6),
    ('works in place', pointwise(6000, ['x0 = xindex', 'tmp0 = tl.load(in_out_ptr0 + (x0), xmask)',
                                        'tl.store(in_out_ptr0 + (x0), tmp0, xmask)'], 'in_out_ptr0'),
     {}, {'in_out_ptr0': (4, MUCH)}, 6000 * 8),
    ('reads a row for all rows', pointwise(768 * 50, ['x0 = xindex % 768', 'x2 = xindex',
                                                      'tmp0 = tl.load(in_ptr0 + (x0), xmask)',
                                                      'tl.store(out_ptr0 + (x2), tmp0, xmask)']),
     {}, {'in_ptr0': (4, MUCH), 'out_ptr0': (4, MUCH)}, 4 * 768 + 4 * 768 * 50),
    ('reads a number of each row', pointwise(768 * 50, ['x1 = xindex // 768', 'x2 = xindex',
                                                        'tmp0 = tl.load(in_ptr0 + (x1), xmask)',
                                                        'tl.store(out_ptr0 + (x2), tmp0, xmask)']),
     {}, {'in_ptr0': (4, MUCH), 'out_ptr0': (4, MUCH)}, 4 * 50 + 4 * 768 * 50),
    ('reads a third of packed rows', pointwise(64 * 12 * 100, [
        'x0 = (xindex % 64)', 'x1 = ((xindex // 64) % 12)', 'x2 = xindex // 768', 'x3 = xindex',
        'tmp0 = tl.load(in_ptr0 + (768 + x0 + 64*x1 + 2304*x2), None)', 'tl.store(out_ptr0 + (x3), tmp0, None)']),
     {}, {'in_ptr0': (2, 2304 * 2 * 100), 'out_ptr0': (2, MUCH)}, 2 * 2 * 76800),
    ('gathers rows of a table', pointwise(768 * 50, [
        'x1 = xindex // 768', 'x0 = xindex % 768', 'x2 = xindex', 'tmp0 = tl.load(in_ptr0 + (x1), None)',
        'tmp1 = tmp0 + 50257', 'tmp2 = tl.where(tmp0 < 0, tmp1, tmp0)',
        'tmp3 = tl.load(in_ptr1 + (x0 + 768*tmp2), None)', 'tl.store(out_ptr0 + (x2), tmp3, None)'],
        'in_ptr0, in_ptr1, out_ptr0'),
     {}, {'in_ptr0': (8, MUCH), 'in_ptr1': (4, MUCH), 'out_ptr0': (4, MUCH)}, 8 * 50 + 2 * 4 * 768 * 50),
    ('reads no more than there is', pointwise(768 * 50, [
        'x1 = xindex // 768', 'x0 = xindex % 768', 'tmp0 = tl.load(in_ptr0 + (x1), None)',
        'tmp3 = tl.load(in_ptr1 + (x0 + 768*tmp0), None)'], 'in_ptr0, in_ptr1'),
     {}, {'in_ptr0': (8, MUCH), 'in_ptr1': (4, 4 * 768 * 7)}, 8 * 50 + 4 * 768 * 7),
    ('adds atomically: reads and writes', pointwise(6000, [
        'x0 = xindex', "tl.atomic_add(out_ptr0 + (tl.broadcast_to(x0, [XBLOCK])), tmp0, None, sem='relaxed')"],
        'out_ptr0'),
     {}, {'out_ptr0': (4, MUCH)}, 6000 * 8),
    ('reads short rows twice: once from memory', reduction(1000, 3072, TWICE),
     {}, {'in_ptr0': (2, MUCH), 'out_ptr1': (4, MUCH)}, 1000 * 3072 * (2 + 4)),
    ('reads long rows twice', reduction(1000, 50257, TWICE),
     {}, {'in_ptr0': (2, MUCH), 'out_ptr1': (4, MUCH)}, 1000 * 50257 * (2 * 2 + 4)),
    ('sums both ways', reduction(1000, 768, MIXED, 'in_ptr0, ws_ptr'),
     {}, {'in_ptr0': (4, MUCH), 'ws_ptr': (4, 132 * 768 * 4)}, (1000 + 132) * 768 * 4),
    ('has sizes that it is given', pointwise('xnumel', [
        'x1 = xindex // ks0', 'x2 = xindex', 'tmp0 = tl.load(in_ptr0 + (x1), xmask)',
        'tl.store(out_ptr0 + (x2), tmp0, xmask)'], 'in_ptr0, out_ptr0, ks0'),
     {'xnumel': 5120, 'ks0': 512}, {'in_ptr0': (4, MUCH), 'out_ptr0': (4, MUCH)}, 4 * 10 + 4 * 5120),
]

# Another kind of kernel than is understood: its tensors count as wholes.
REFUSED = [pointwise(6000, ['tmp0 = tl.load(desc.load([0]), None)']),
           pointwise(6000, ['while True:', '    pass']), pointwise('numel', [])]


class Tensor:
    """As PyTorch's, of so many elements of 4 bytes."""

    def __init__(self, elements):
        self.elements = elements

    def untyped_storage(self):
        return self

    def nbytes(self):
        return 4 * self.elements

    def element_size(self):
        return 4


def told_of_launches(triton):
    """What is told around launches of a kernel whose source is there, and of one of which nothing is known."""
    told = []

    class Library:
        @staticmethod
        def plimsoll_kernel_moves(name, number):
            told.append((name, number.value))

    class Heuristics:
        class CachingAutotuner:
            def run(self, *_, stream):
                told.append(stream)

    def triton_poi_fused_0():
        pass

    triton.watch_kernels(Library, Heuristics)
    with tempfile.NamedTemporaryFile('w', suffix='.py') as file:
        file.write(pointwise(6000, ['x0 = xindex', 'tmp0 = tl.load(in_ptr0 + (x0), xmask)',
                                    'tl.store(out_ptr0 + (x0), tmp0, xmask)']))
        file.flush()
        kernel, unknown = Heuristics.CachingAutotuner(), Heuristics.CachingAutotuner()
        kernel.fn, kernel.filename = triton_poi_fused_0, file.name
        kernel.run(Tensor(6000), Tensor(6000), 6000, stream='known')
        kernel.run(Tensor(100), Tensor(6000), 6000, stream='smaller')
        unknown.run(stream='unknown')
    return told


TOLD = [(b'triton_poi_fused_0', 48000), 'known', (None, 0), (b'triton_poi_fused_0', 24400), 'smaller', (None, 0),
        'unknown']


def main():
    triton, failed = load(sys.argv[1]), 0
    if told_of_launches(triton) != TOLD:
        print(f'told: {told_of_launches(triton)}')
        failed += 1
    for what, source, numbers, tensors, expected in CASES:
        got = triton.Kernel(triton.function_of(source), numbers).moved_bytes(tensors)
        if got != expected:
            print(f'{what}: {got} bytes, expected {expected}')
            failed += 1
    for source in REFUSED:
        try:
            triton.Kernel(triton.function_of(source), {})
            print(f'this was not refused: {source}')
            failed += 1
        except triton.Unknown:
            pass
    return failed > 0


sys.exit(main())
