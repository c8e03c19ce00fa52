"""Writes a libcuda.so.1 that does nothing, in C: every function that the toolkit's stub has, and each
succeeds. There is no GPU in it, but the compilers of cuDNN's plans, which want a driver, run.

    make_libcuda.py STUB OUTPUT
"""
import subprocess
import sys

BY_HAND = '''#define _GNU_SOURCE
#include <dlfcn.h>

int cuDriverGetVersion(int *version) { return *version = 13000, 0; }
int cuDeviceGetCount(int *count) { return *count = 0; }
int cuGetErrorName(int error, const char **name) { return (void)error, *name = "an error", 0; }
int cuGetErrorString(int error, const char **text) { return (void)error, *text = "an error", 0; }
int cuGetExportTable(void) { return 500; } /* not found */

int cuGetProcAddress_v2(const char *name, void **function, int version, unsigned long long flags,
                        int *status)
{
    (void)version, (void)flags;
    *function = dlsym(RTLD_DEFAULT, name);
    if (status) *status = !*function;
    return 0;
}
'''


def main(stub, output):
    listed = subprocess.run(['nm', '-D', '--defined-only', stub], check=True, capture_output=True, text=True)
    names = {line.split()[-1] for line in listed.stdout.splitlines() if ' T cu' in line}
    with open(output, 'w', encoding='ascii') as out:
        out.write(BY_HAND)
        for name in sorted(names):
            if f' {name}(' not in BY_HAND:
                out.write(f'int {name}(void) {{ return 0; }}\n')


main(*sys.argv[1:])
