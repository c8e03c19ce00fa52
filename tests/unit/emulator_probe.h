/* Kernels for the emulator's own tests (emulator_probe.cpp). */
#ifndef PLIM_TESTS_UNIT_EMULATOR_PROBE_H
#define PLIM_TESTS_UNIT_EMULATOR_PROBE_H

#include <stdint.h>

struct probe_args {
    int64_t *out;
    int64_t n;
    int64_t parameter;
};

#endif
