#!/usr/bin/env python3
"""Records the streams of launches of record_programs.py on a virtual GPU: record_streams.py VENV VIRTUAL [NAME...]

VENV has PyTorch; VIRTUAL is what shared/oracle/build.sh built for it. For each program NAME.txt is written here,
and names.txt gets the kernels' names. Lines of NAME.txt, in the order in which things happened:

    K S NAME HASH        symbol S is from here on a launch of kernel NAME (a line of names.txt, from 1), grid and block HASH
    L S OP HASH          symbol S is from here on a library's launch: OP is function and transposes, HASH says sizes too
    k S [P...]           a launch; the pointers that it writes through
    l S P... | P...      a library's launch; what it reads and writes
    c P                  a copy to the device
    m BYTES              device memory held
    s                    an optimizer step has ended
    = BACK COUNT         COUNT lines as those that begin BACK lines back (K and L lines are not counted; may overlap)
"""
import os
import subprocess
import sys
import tempfile
import zlib

HERE = os.path.dirname(os.path.abspath(__file__))


def load_names():
    path = os.path.join(HERE, 'names.txt')
    return open(path).read().split('\n')[:-1] if os.path.exists(path) else []


def run(venv, virtual, name, folder):
    shim, log = os.path.join(folder, 'libcuda.so.1'), os.path.join(folder, 'log')
    packages = os.path.join(venv, 'lib', f'python3.{sys.version_info[1]}', 'site-packages', 'nvidia')
    inner = os.path.join(folder, 'libinner.so.1')  # the virtual driver under another name: ours stands before it
    with open(os.path.join(virtual, 'libcuda.so.1'), 'rb') as source, open(inner, 'wb') as copy:
        copy.write(source.read().replace(b'libcuda.so.1\0', b'libinner.so\0\0'))
    subprocess.run(['gcc', '-O1', '-w', '-shared', '-fPIC', '-o', shim, os.path.join(HERE, 'record_shim.c'),
                    '-Wl,-soname,libcuda.so.1', '-Wl,--no-as-needed', inner, '-ldl', '-lpthread'], check=True)
    os.symlink(inner, os.path.join(folder, 'libinner.so'))
    os.path.exists(log) and os.remove(log)
    libraries = [folder, virtual] + [os.path.join(packages, p, 'lib') for p in ('cudnn', 'cu13')]
    preload = [shim] + [os.path.join(virtual, f) for f in ('libnccl.so.2', 'libcudart.so.13', 'libcublasLt.so.13',
                                                         'libcublas.so.13', 'libcudnn.so.9')]
    subprocess.run([os.path.join(venv, 'bin', 'python'), os.path.join(HERE, 'record_programs.py'), name], check=True,
                   env=os.environ | {'STEPS_LOG': log, 'LD_LIBRARY_PATH': ':'.join(libraries),
                                     'LD_PRELOAD': ':'.join(preload), 'TORCHINDUCTOR_CACHE_DIR': folder,
                                     'TOKENIZERS_PARALLELISM': 'false'},
                   stdout=subprocess.DEVNULL)
    return open(log).read().split('\n')[:-1]


def number(table, key):
    return table.setdefault(key, len(table) + 1)


def hashed(text):
    return f'{zlib.crc32(text.encode()):x}'


def compact(log, names):
    """The log's lines with small numbers; definitions as ('K', line)."""
    numbers, kernels, symbols, pointers, events = {n: i + 1 for i, n in enumerate(names)}, {}, {}, {}, []

    def symbol(kind, *key):
        if (kind, *key) not in symbols:
            events.append(f'{kind} {number(symbols, (kind, *key))} ' + ' '.join(map(str, key)))
        return symbols[(kind, *key)]

    def points(words):
        return ''.join(f' {number(pointers, p)}' for p in words)

    for line in log:
        kind, *words = line.split()
        if kind == 'N':
            kernels[words[0]] = words[1]
        elif kind == 'k':
            name = kernels[words[0]]
            if name not in numbers:
                names.append(name)
                numbers[name] = len(names)
            events.append(f'k {symbol("K", numbers[name], hashed(words[1] + words[2]))}{points(words[4:])}')
        elif kind == 'l':
            bar = words.index('|', 3)
            operation = symbol('L', hashed(words[0]), hashed(words[0] + words[1]))
            events.append(f'l {operation}{points(words[3:bar])} |{points(words[bar + 1:])}')
        elif kind == 'c':
            events.append(f'c{points(words[1:])}')
        elif kind == 'm':
            events.append(line)
        elif kind == 'S':
            events.append('s')
    return events


def squeeze(events):
    """Lempel and Ziv's: what was there before is referred to."""
    flat, out, at, pending = [e for e in events if e[0] not in 'KL'], [], {}, []
    definitions, i = {}, 0
    for event in events:  # definitions before the event that they stand before
        if event[0] in 'KL':
            definitions.setdefault(i, []).append(event)
        else:
            i += 1
    i = 0
    while i < len(flat):
        out += definitions.get(i, [])
        best, length = None, 3
        for j in at.get(tuple(flat[i:i + 4]), [])[-24:]:
            n = 0
            while i + n < len(flat) and flat[j + n] == flat[i + n] and n < 1 << 20:
                n += 1
            if n > length:
                best, length = j, n
        step = length if best is not None else 1
        out.append(f'= {i - best} {length}' if best is not None else flat[i])
        for k in range(i, i + step):
            at.setdefault(tuple(flat[k:k + 4]), []).append(k)
        i += step
    return out


def main(venv, virtual, wanted):
    listed = subprocess.run([os.path.join(venv, 'bin', 'python'), os.path.join(HERE, 'record_programs.py')],
                            stdout=subprocess.PIPE, check=True).stdout.decode().split()
    if not wanted:
        for old in os.listdir(HERE):
            if old.endswith('.txt'):
                os.remove(os.path.join(HERE, old))
    for name in wanted or listed:
        names = load_names()
        with tempfile.TemporaryDirectory() as folder:
            try:
                log = run(venv, virtual, name, folder)
            except subprocess.CalledProcessError:
                print(name, 'FAILED')
                continue
        events = compact(log, names)
        lines = squeeze(events)
        with open(os.path.join(HERE, name + '.txt'), 'w') as file:
            file.write('\n'.join(lines) + '\n')
        with open(os.path.join(HERE, 'names.txt'), 'w') as file:
            file.write('\n'.join(names) + '\n')
        print(name, len(events), 'events', events.count('s'), 'steps', os.path.getsize(os.path.join(HERE, name + '.txt')), 'bytes',
              flush=True)


if __name__ == '__main__':
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    main(os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2]), sys.argv[3:])
