#!/usr/bin/env python3
"""Writes the answers to all entry points that are not answered by hand (process/unsupported.h).

make_answers.py OUT.c NAMES.txt...   each named like its library in LIBRARIES

A line of a names file is an entry point and, after a blank, how it is answered:
    (nothing)   it is not supported
    compute     it is a launch on the stream of its first argument, a handle
"""
import os
import sys

LIBRARIES = {'cudart': 'PLIM_CUDART', 'cuda': 'PLIM_CUDA', 'cublas': 'PLIM_CUBLAS',
             'cublaslt': 'PLIM_CUBLASLT', 'cudnn': 'PLIM_CUDNN', 'nccl': 'PLIM_NCCL',
             'nvml': 'PLIM_NVML', 'cufft': 'PLIM_CUFFT', 'cusparse': 'PLIM_CUSPARSE', 'cusolver': 'PLIM_CUSOLVER'}

MACROS = {'': 'UNSUPPORTED', 'compute': 'COMPUTED'}

# Programs call these with whatever arguments the real ones have; where they are passed in
# registers, a callee that declares fewer does no harm. `long` fills the register that a status, a
# size or a pointer comes back in.
PREAMBLE = '''/* Made by make_answers.py. */
#include "devices/virtual/process/unsupported.h"

#define WEAK ANSWER __attribute__((weak))
#define UNSUPPORTED(library, name)                                                                \\
    WEAK long name(void);                                                                         \\
    WEAK long name(void) { return plim_unsupported(library, #name); }
#define COMPUTED(library, name)                                                                   \\
    WEAK long name(const void *handle);                                                           \\
    WEAK long name(const void *handle) { return plim_compute(library, #name, handle); }
'''


def answers(path):
    library = LIBRARIES[os.path.splitext(os.path.basename(path))[0]]
    yield '\n/* ' + os.path.basename(path) + ' */\n'
    with open(path, encoding='ascii') as lines:
        for number, line in enumerate(lines, 1):
            name, _, how = line.split('#')[0].strip().partition(' ')
            if not name:
                continue
            if not name.isidentifier() or how not in MACROS:
                sys.exit(f'{path}:{number}: expected a name, or a name and: compute')
            yield f'{MACROS[how]}({library}, {name})\n'


def main():
    if len(sys.argv) < 3:
        sys.exit('usage: make_answers.py OUT.c NAMES.txt...')
    text = PREAMBLE + ''.join(line for path in sys.argv[2:] for line in answers(path))
    with open(sys.argv[1], 'w', encoding='ascii') as out:
        out.write(text)


main()
