#include "arithmetic.h"
#include "devices/virtual/memory/heap.h"
#include "devices/virtual/memory/shadow.h"
#include <stdlib.h>
#include <string.h>

enum { MOST_ELEMENTS = 4096 };

static bool is_device(const void *pointer) { return plim_heap_is_device((uintptr_t)pointer); }

/* --- names ------------------------------------------------------------------------------------ */

/* Over contiguous tensors without conversion. */
static enum plim_arithmetic elementwise(const char *name)
{
    bool is_plain = strstr(name, "29vectorized_elementwise_kernelI") ||
                    (strstr(name, "27unrolled_elementwise_kernelI") && strstr(name, "WithoutCast"));
    bool is_of_two = strstr(name, "arrayIPcLm2EE") || strstr(name, "ArrayIPcLi2EE");
    bool is_of_three = strstr(name, "arrayIPcLm3EE") || strstr(name, "ArrayIPcLi3EE");
    if (!is_plain) return PLIM_ARITHMETIC_NONE;
    if (is_of_three && strstr(name, "14CompareFunctorIlE")) return PLIM_ARITHMETIC_COMPARE;
    if (is_of_three && strstr(name, "15CUDAFunctor_addIlE")) return PLIM_ARITHMETIC_ADD;
    if (is_of_two && strstr(name, "21CUDAFunctorOnSelf_addIlE")) return PLIM_ARITHMETIC_ADD_NUMBER;
    return PLIM_ARITHMETIC_NONE;
}

enum plim_arithmetic plim_arithmetic_of(const char *name)
{
    if (strncmp(name, "_ZN2at6native", 13) != 0) return PLIM_ARITHMETIC_NONE;
    if (strstr(name, "CatArrayBatchedCopy") &&
        (strstr(name, "_contigI") || strstr(name, "_vectorizedI")))
        return PLIM_ARITHMETIC_CAT;
    if (strstr(name, "13reduce_kernelI") && strstr(name, "8ReduceOpIl") &&
        strstr(name, "11sum_functorIlllE"))
        return PLIM_ARITHMETIC_SUM;
    return elementwise(name);
}

/* The number behind the first `label`, or 0. */
static size_t number_after(const char *name, const char *label)
{
    const char *found = strstr(name, label);
    return found ? strtoul(found + strlen(label), NULL, 10) : 0;
}

/* --- cat -------------------------------------------------------------------------------------- */

/* What the kernel knows of its inputs, of which there may be `most`:
 *     pointers[most], and of 32 bits: offsets[most], sizes[most], elements[most], ... */
static bool cat(const char *name, const struct gpu_dim3 *grid, void *const *arguments)
{
    size_t width = number_after(name, "10OpaqueTypeILj");
    size_t dimensions = number_after(name, "EEjLi"), count = grid->y, most = 0;
    const char *second = strstr(name, "EEjLi1ELi");
    if (second) most = strtoul(second + strlen("EEjLi1ELi"), NULL, 10);
    if (!width || dimensions != 1 || !count || count > most || most > 1024) return false;
    const char *inputs = arguments[1];
    const uint32_t *offsets = (const uint32_t *)(const void *)(inputs + most * sizeof(void *));
    const uint32_t *sizes = offsets + most, *elements = sizes + most;
    const char *pointers[1024], *out;
    memcpy(&out, arguments[0], sizeof(out));
    memcpy(pointers, inputs, count * sizeof(*pointers));
    for (size_t i = 0; i < count; i++) {
        bool follows = i == 0 || offsets[i] == offsets[i - 1] + sizes[i - 1];
        if (!follows || sizes[i] != elements[i] || !is_device(pointers[i])) return false;
    }
    if (!is_device(out)) return false;
    for (size_t i = 0; i < count; i++)
        plim_shadow_copy((uintptr_t)out + offsets[i] * width, (uintptr_t)pointers[i],
                         sizes[i] * width);
    return true;
}

/* --- sum -------------------------------------------------------------------------------------- */

/* at::native::ReduceOp of int64, its configuration and its two offset calculators inside. */
struct reduction {
    uint64_t function, identity;
    int32_t element_bytes, inputs, outputs, configuration[13];
    int32_t dimensions;
    struct { uint32_t size, magic, shift; } sizes[25];
    uint32_t strides[25];
    uint32_t output_calculator[126];
    uint32_t padding;
    const void *from;
    void *to;
};

static bool sum(void *const *arguments)
{
    const struct reduction *r = arguments[0];
    int64_t values[MOST_ELEMENTS];
    uint64_t result = 0;
    bool is_plain = r->element_bytes == sizeof(*values) && r->outputs == 1 && r->dimensions == 1 &&
                    r->inputs > 0 && r->inputs <= MOST_ELEMENTS &&
                    r->sizes[0].size == (uint32_t)r->inputs && r->strides[0] == sizeof(*values);
    if (r->element_bytes != sizeof(*values) || !is_device(r->from) || !is_device(r->to))
        return false;
    if (!is_plain ||
        !plim_shadow_read((uintptr_t)r->from, values, (size_t)r->inputs * sizeof(*values))) {
        plim_shadow_forget((uintptr_t)r->to, sizeof(result));
        return true;
    }
    for (int32_t i = 0; i < r->inputs; i++) result += (uint64_t)values[i];
    plim_shadow_write((uintptr_t)r->to, &result, sizeof(result));
    return true;
}

/* --- two numbers ------------------------------------------------------------------------------ */

enum { GREATER_OR_EQUAL, GREATER, LESS_OR_EQUAL, LESS, COMPARISONS }; /* PyTorch's OpType */

static bool holds(int operation, int64_t a, int64_t b)
{
    switch (operation) {
    case GREATER_OR_EQUAL: return a >= b;
    case GREATER: return a > b;
    case LESS_OR_EQUAL: return a <= b;
    default: return a < b;
    }
}

static uint64_t add(int64_t a, int64_t factor, int64_t b)
{
    return (uint64_t)a + (uint64_t)factor * (uint64_t)b; /* wraps around */
}

/* int64 to int64, or to bool. The second argument holds what the function knows: a comparison's
 * kind, the factor of what is added, or the number that is added and its factor. */
static bool calculate(enum plim_arithmetic what, void *const *arguments)
{
    bool compares = what == PLIM_ARITHMETIC_COMPARE;
    bool adds_number = what == PLIM_ARITHMETIC_ADD_NUMBER;
    int count, operation;
    int64_t numbers[2] = {0}, a[MOST_ELEMENTS], b[MOST_ELEMENTS], out[MOST_ELEMENTS];
    struct { void *out; const void *a, *b; } data = {0};
    memcpy(&count, arguments[0], sizeof(count));
    memcpy(&operation, arguments[1], sizeof(operation));
    if (!compares) memcpy(numbers, arguments[1], sizeof(*numbers) * (adds_number ? 2 : 1));
    memcpy(&data, arguments[2], adds_number ? 2 * sizeof(void *) : sizeof(data));
    if (count < 1 || count > MOST_ELEMENTS || !is_device(data.out) || !is_device(data.a) ||
        (!adds_number && !is_device(data.b)) ||
        (compares && (operation < 0 || operation >= COMPARISONS)))
        return false;
    size_t bytes = (size_t)count * sizeof(*a), out_bytes = compares ? (size_t)count : bytes;
    bool known = plim_shadow_read((uintptr_t)data.a, a, bytes) &&
                 (adds_number || plim_shadow_read((uintptr_t)data.b, b, bytes));
    if (!known) {
        plim_shadow_forget((uintptr_t)data.out, out_bytes);
        return true;
    }
    for (int i = 0; i < count; i++) {
        if (compares) ((unsigned char *)out)[i] = holds(operation, a[i], b[i]);
        else if (adds_number) out[i] = (int64_t)add(a[i], numbers[1], numbers[0]);
        else out[i] = (int64_t)add(a[i], numbers[0], b[i]);
    }
    plim_shadow_write((uintptr_t)data.out, out, out_bytes);
    return true;
}

bool plim_arithmetic_run(enum plim_arithmetic what, const char *name, const struct gpu_dim3 *grid,
                         void *const *arguments)
{
    if (what == PLIM_ARITHMETIC_NONE || !arguments) return false;
    if (what == PLIM_ARITHMETIC_CAT) return cat(name, grid, arguments);
    return what == PLIM_ARITHMETIC_SUM ? sum(arguments) : calculate(what, arguments);
}
