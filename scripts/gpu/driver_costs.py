"""What memory costs a process, asked of the driver: one JSON object on stdout. Nothing else may use the GPU.

  context_bytes   of a bare context
  small           bytes taken by 64 requests of each of these sizes
  milliseconds    of cuMemAlloc and cuMemFree, the median of 100, by size
  mapped          the same of cuMemCreate with cuMemMap and cuMemSetAccess, of 2 MiB
"""
import ctypes
import json
import statistics
import time

cuda = ctypes.CDLL('libcuda.so.1')
U64, SIZE = ctypes.c_uint64, ctypes.c_size_t
MiB = 1 << 20


def check(code, what):
    if code:
        raise SystemExit(f'{what}: CUDA error {code}')


def taken():
    free, total = SIZE(), SIZE()
    check(cuda.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total)), 'cuMemGetInfo')
    return total.value - free.value


def take(count):
    at = U64()
    check(cuda.cuMemAlloc_v2(ctypes.byref(at), SIZE(count)), f'cuMemAlloc of {count}')
    return at


def give(at):
    check(cuda.cuMemFree_v2(at), 'cuMemFree')


def clocked(function, *arguments):
    begin = time.perf_counter()
    result = function(*arguments)
    return result, 1e3 * (time.perf_counter() - begin)


def small(count):
    before = taken()
    blocks = [take(count) for _ in range(64)]
    held = taken() - before
    for block in blocks:
        give(block)
    return {'held': held, 'left': taken() - before}


def milliseconds(count):
    takes, gives = [], []
    for _ in range(100):
        block, seconds = clocked(take, count)
        takes.append(seconds)
        gives.append(clocked(give, block)[1])
    return {'take': statistics.median(takes), 'give': statistics.median(gives)}


class Location(ctypes.Structure):
    _fields_ = [('type', ctypes.c_int), ('id', ctypes.c_int)]


class Properties(ctypes.Structure):  # CUmemAllocationProp
    _fields_ = [('type', ctypes.c_int), ('handles', ctypes.c_int), ('location', Location),
                ('windows', ctypes.c_void_p), ('flags', ctypes.c_ubyte * 8)]


class Access(ctypes.Structure):
    _fields_ = [('location', Location), ('flags', ctypes.c_int)]


def mapped(count=2 * MiB, times=100):
    start, seconds = U64(), []
    check(cuda.cuMemAddressReserve(ctypes.byref(start), SIZE(count * times), SIZE(0), U64(0), U64(0)), 'reserve')
    properties = Properties(type=1, location=Location(1, 0))
    access = Access(Location(1, 0), 3)

    def one(at):
        handle = U64()
        check(cuda.cuMemCreate(ctypes.byref(handle), SIZE(count), ctypes.byref(properties), U64(0)), 'cuMemCreate')
        check(cuda.cuMemMap(U64(at), SIZE(count), SIZE(0), handle, U64(0)), 'cuMemMap')
        check(cuda.cuMemSetAccess(U64(at), SIZE(count), ctypes.byref(access), SIZE(1)), 'cuMemSetAccess')

    for i in range(times):
        seconds.append(clocked(one, start.value + i * count)[1])
    return statistics.median(seconds)


def start():
    """Milliseconds of making a context."""
    check(cuda.cuInit(0), 'cuInit')
    device, context = ctypes.c_int(), ctypes.c_void_p()
    check(cuda.cuDeviceGet(ctypes.byref(device), 0), 'cuDeviceGet')
    _, milliseconds_ = clocked(cuda.cuDevicePrimaryCtxRetain, ctypes.byref(context), device)
    check(cuda.cuCtxSetCurrent(context), 'cuCtxSetCurrent')
    return milliseconds_


def main():
    context_ms = start()
    found = {'context_bytes': taken(), 'context_milliseconds': context_ms,
             'small': {size: small(size) for size in (1, 512, 4096, 65536, MiB // 2, MiB - 1, MiB, MiB + 1, 3 * MiB // 2,
                                                      2 * MiB, 3 * MiB)},
             'milliseconds': {size // MiB: milliseconds(size) for size in (2 * MiB, 20 * MiB, 256 * MiB, 2048 * MiB)},
             'mapped': mapped()}
    print(json.dumps(found))


if __name__ == '__main__':
    main()
