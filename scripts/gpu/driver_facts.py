"""What the driver of a real GPU says and does that the virtual GPU has to say and do: JSON on stdout.

  attributes   CUdevice_attribute: value
  addresses    of requests and releases as the driver placed them, in several orders; [bytes, address] of a
               request, [-bytes, address] of a release
  maps         of the process, lines of /proc/self/maps that the driver made
"""
import ctypes
import json
import random

import driver_costs as driver
from driver_costs import MiB


def attributes():
    device, value, found = ctypes.c_int(), ctypes.c_int(), {}
    driver.check(driver.cuda.cuDeviceGet(ctypes.byref(device), 0), 'cuDeviceGet')
    for attribute in range(1, 170):
        if not driver.cuda.cuDeviceGetAttribute(ctypes.byref(value), attribute, device):
            found[attribute] = value.value
    return found


def drawn_bytes(random_, kind):
    if kind == 'mixed':
        kind = random_.choice(('small', 'medium', 'large', 'huge'))
    return {'small': 2, 'medium': 20, 'large': 2 * random_.randint(5, 64), 'huge': 2 * random_.randint(64, 1000)}[kind] * MiB


def placed(kind, seed, count, releases):
    random_, held, said = random.Random(seed), [], []
    for _ in range(count):
        if held and random_.random() < releases:
            size, at = held.pop(random_.randrange(len(held)))
            driver.give(ctypes.c_uint64(at))
            said.append([-size, at])
        else:
            size = drawn_bytes(random_, kind)
            at = driver.take(size).value
            held.append((size, at))
            said.append([size, at])
    for _, at in held:
        driver.give(ctypes.c_uint64(at))
    return said


def maps():
    with open('/proc/self/maps', encoding='utf-8') as file:
        return [line.strip() for line in file if '/dev/' in line or ' 00:00 0' in line]


def main():
    driver.start()
    before = maps()
    found = {'attributes': attributes(), 'addresses': {}}
    for kind in ('small', 'medium', 'large', 'huge', 'mixed'):
        for seed, count, releases in ((1, 40, 0), (2, 150, 0.4)):
            if kind != 'huge' or not releases:
                found['addresses'][f'{kind} {releases}'] = placed(kind, seed, count, releases)
    found['addresses']['again 0.3'] = placed('mixed', 3, 200, 0.45)
    for size in (512, 4096, 65536, MiB // 2, MiB, MiB + 512, 3 * MiB // 2, 2 * MiB, 2 * MiB + 512, 3 * MiB, 5 * MiB):
        blocks = [driver.take(size) for _ in range(12)]
        found['addresses'][f'of {size}'] = [[size, block.value] for block in blocks]
        for block in blocks:
            driver.give(block)
    found['maps'] = {'before': before, 'after': maps()}
    print(json.dumps(found))


main()
