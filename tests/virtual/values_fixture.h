/* The machine of a GPU with a MiB of memory, for tests of kernels on values that are known. */
#ifndef PLIM_TESTS_VIRTUAL_VALUES_FIXTURE_H
#define PLIM_TESTS_VIRTUAL_VALUES_FIXTURE_H

#include "devices/virtual/memory/block.h"
#include "devices/virtual/memory/heap.h"
#include "devices/virtual/memory/shadow.h"
#include "devices/virtual/values/family.h"
#include "devices/virtual/values/plan.h"
#include "devices/virtual/values/type.h"
#include "devices/virtual/work/signature.h"
#include "machine_fixture.h"
#include <criterion/new/assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const int64_t MIB = 1 << 20;

static uintptr_t memory; /* a MiB of the GPU's */

static void begin(void)
{
    make_machine("A100-SXM4-80GB", 1, 10 * MIB);
    cr_assert(eq(int, plim_self_use(0), GPU_OK));
    cr_assert(eq(int, plim_heap_allocate(0, (size_t)MIB, &memory), GPU_OK));
}

static uintptr_t put(size_t at, const void *values, size_t bytes)
{
    plim_shadow_write(memory + at, values, bytes);
    return memory + at;
}
#define PUT(at, type, ...) put(at, (type[]){__VA_ARGS__}, sizeof((type[]){__VA_ARGS__}))

/* at::cuda::detail::TensorInfo with indices of 4 bytes. */
struct tensor {
    uintptr_t at;
    uint32_t sizes[25], strides[25];
    int32_t dimensions;
};

/* What the memory at `address` holds: numbers, ? for those not known. */
static void expect_numbers(uintptr_t address, enum plim_type type, size_t count,
                           const char *expected)
{
    char text[512] = "";
    for (size_t i = 0; i < count; i++) {
        unsigned char bytes[8];
        size_t width = plim_type_bytes(type), used = strlen(text);
        unsigned known = plim_shadow_load(address + i * width, bytes, NULL, width);
        struct plim_number n = plim_number_load(bytes, type);
        const char *blank = i ? " " : "", *mark = known & PLIM_ASSUMED ? "!" : "";
        if (known & PLIM_SOME_UNKNOWN)
            snprintf(text + used, sizeof(text) - used, "%s?", blank);
        else if (n.is_float)
            snprintf(text + used, sizeof(text) - used, "%s%g%s", blank, n.f, mark);
        else
            snprintf(text + used, sizeof(text) - used, "%s%lld%s", blank, (long long)n.i, mark);
    }
    cr_expect(eq(str, text, (char *)expected));
}

/* False: the kernel is not understood. */
static bool launch_grid(const char *name, unsigned grid_y, void **arguments)
{
    char *text = plim_signature_text(name);
    cr_assert(text != NULL, "%s", name);
    struct plim_plan *plan = plim_family_plan(name, text);
    bool is_done = plim_family_run(plan, name, &(struct gpu_dim3){1, grid_y, 1}, arguments);
    free(plan);
    free(text);
    return is_done;
}
#define LAUNCH(name, ...) launch_grid(name, 1, (void *[]){__VA_ARGS__})

#endif
