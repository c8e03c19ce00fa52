#include "kernel.h"
#include "arithmetic.h"
#include "devices/virtual/memory/heap.h"
#include "devices/virtual/memory/shadow.h"
#include "devices/virtual/steps/steps.h"
#include "devices/virtual/machine/version.h"
#include "devices/virtual/steps/watch.h"
#include "autotune/base/array.h"
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

/* --- tables by the address of something on the host ------------------------------------------- */

struct symbol {
    const void *host;
    size_t bytes;
    uintptr_t at[PLIM_MACHINE_CARDS]; /* 0: not asked for yet */
};

static PLIM_ARRAY(struct symbol) symbols;

void plim_symbol_register(const void *host, size_t bytes)
{
    plim_self_lock();
    if (PLIM_ARRAY_PUSH(&symbols, ((struct symbol){.host = host, .bytes = bytes})) != PLIM_OK)
        plim_self_note("out of host memory");
    plim_self_unlock();
}

int plim_symbol_find(const void *host, uintptr_t *at, size_t *bytes)
{
    int device = plim_self_device(), failed = plim_self_use(device);
    for (size_t i = 0; !failed && i < symbols.count; i++) {
        struct symbol *symbol = &symbols.items[i];
        if (symbol->host != host) continue;
        struct heap_block block = {.bytes = symbol->bytes, .kind = HEAP_SYMBOL, .device = device};
        if (!symbol->at[device]) failed = plim_heap_add(&block, &symbol->at[device]);
        *at = symbol->at[device];
        *bytes = symbol->bytes;
        return failed;
    }
    return failed ? failed : GPU_INVALID_SYMBOL;
}

/* --- what a name tells ------------------------------------------------------------------------ */

/* The C++ library's own, where the program has one. Python loads it where RTLD_DEFAULT does not
 * look. */
static char *demangle(const char *name)
{
    typedef char *demangler(const char *, char *, size_t *, int *);
    static demangler *function;
    if (!function) {
        void *library = plim_version_library("libstdc++.so");
        void *found = dlsym(library ? library : RTLD_DEFAULT, "__cxa_demangle");
        memcpy(&function, &found, sizeof(function));
    }
    return function ? function(name, NULL, NULL, NULL) : NULL;
}

/* One parameter's type: is it a pointer to something not const? PyTorch's elementwise kernels take an
 * array of pointers, the output first. */
static bool is_written(const char *type, size_t length)
{
    static const char const_pointer[] = " const*", array[] = "rray<char*";
    while (length && type[length - 1] == ' ') length--;
    for (const char *c = type; c + sizeof(array) - 1 < type + length; c++)
        if (!strncmp(c, array, sizeof(array) - 1)) return true;
    if (!length || type[length - 1] != '*') return false;
    size_t ending = sizeof(const_pointer) - 1;
    return length < ending || strncmp(type + length - ending, const_pointer, ending) != 0;
}

/* Splits the parameter list at its outermost commas. */
static uint32_t read_parameters(const char *list, int *parameters)
{
    int depth = 0;
    uint32_t written = 0;
    const char *begin = list;
    for (const char *c = list;; c++) {
        if (strchr("(<[{", *c) && *c) depth++;
        bool ends = depth == 0 && (*c == ',' || *c == ')');
        if (strchr(")>]}", *c) && *c) depth--;
        if (!*c) return written;
        if (!ends) continue;
        if (*parameters < 32 && is_written(begin, (size_t)(c - begin)))
            written |= 1u << *parameters;
        *parameters += c > list;
        if (*c == ')') return written;
        begin = c + 1;
    }
}

/* The last "(" on the outermost level begins the parameters. */
static const char *find_parameters(const char *text)
{
    const char *found = NULL;
    int depth = 0;
    for (const char *c = text; *c; c++) {
        if (*c == '(' && depth == 0) found = c + 1;
        depth += (*c == '(' || *c == '<') - (*c == ')' || *c == '>');
    }
    return found;
}

uint32_t plim_kernel_written(const char *mangled, int *parameters)
{
    char *text = demangle(mangled);
    const char *list = text ? find_parameters(text) : NULL;
    *parameters = 0;
    uint32_t written = list ? read_parameters(list, parameters) : 0;
    free(text);
    return written;
}

static void read_name(struct plim_kernel *kernel)
{
    kernel->written = plim_kernel_written(kernel->name, &kernel->parameters);
    kernel->arithmetic = (int)plim_arithmetic_of(kernel->name);
    plim_kernel_name(kernel);
}

int plim_kernel_class(struct plim_kernel *kernel)
{
    if (kernel && !kernel->is_read) read_name(kernel);
    return kernel ? kernel->steps_class : PLIM_STEPS_PLAIN;
}

/* --- launching -------------------------------------------------------------------------------- */

/* Where a launch is known to write: what its arguments of pointer type hold. */
static size_t find_writes(const struct plim_kernel *kernel, void **arguments, uintptr_t written[32])
{
    size_t count = 0;
    for (int i = 0; arguments && kernel && i < kernel->parameters && i < 32; i++) {
        if (!(kernel->written >> i & 1)) continue;
        memcpy(&written[count], arguments[i], sizeof(written[count]));
        count += plim_heap_is_device(written[count]);
    }
    return count;
}

int plim_kernel_launch(struct plim_kernel *kernel, const struct plim_launch *launch)
{
    uintptr_t written[32];
    struct plim_stream *stream = plim_stream_of(launch->stream);
    int failed = plim_self_use_current();
    if (failed) return failed;
    int steps_class = plim_kernel_class(kernel);
    int capability = plim_self_card(plim_self_device())->compute_capability;
    if (kernel && !plim_module_code(kernel->module, capability)) {
        plim_self_note("%.100s has no code for compute capability %d.%d", kernel->name,
                       capability / 10, capability % 10);
        return GPU_NO_BINARY;
    }
    plim_self_goes_on();
    if (plim_capture_take(stream, PLIM_NODE_KERNEL)) {
        plim_capture_note(stream, steps_class, false);
        return GPU_OK;
    }
    size_t count = find_writes(kernel, launch->arguments, written);
    bool is_done = kernel && launch->arguments &&
                   plim_arithmetic_run((enum plim_arithmetic)kernel->arithmetic, kernel->name, launch);
    plim_self_process()->launches++;
    plim_shadow_launched(written, is_done ? 0 : count);
    plim_watch_kernel(kernel, launch, written, count);
    return GPU_OK;
}

int plim_library_launch(const struct plim_work *work)
{
    struct plim_stream *stream = plim_stream_of(work->stream);
    int failed = plim_self_use_current();
    if (failed) return failed;
    plim_self_goes_on();
    if (plim_capture_take(stream, PLIM_NODE_KERNEL)) {
        plim_capture_note(stream, PLIM_STEPS_WORK, true);
        return GPU_OK;
    }
    plim_self_process()->launches++;
    plim_shadow_launched((const uintptr_t *)work->operands + work->read, work->written);
    plim_watch_work(work);
    return GPU_OK;
}

int plim_graph_launch(const struct plim_graph *graph, void *stream)
{
    int failed = plim_self_use_current();
    if (failed) return failed;
    plim_self_goes_on();
    if (plim_capture_take_graph(plim_stream_of(stream), graph)) return GPU_OK;
    struct plim_graph_sum sum = plim_graph_sum(graph);
    plim_self_process()->launches += (int64_t)sum.kernels;
    plim_shadow_launched(NULL, 0);
    plim_watch_graph(graph, &sum);
    return GPU_OK;
}

int plim_occupancy(int device, int block_threads, size_t shared_bytes)
{
    const struct plim_machine_card *card = plim_self_card(device);
    if (!card || block_threads <= 0 || block_threads > 1024) return 0;
    int warps = (block_threads + 31) / 32;
    int blocks = card->threads_per_multiprocessor / (warps * 32);
    if (blocks > card->blocks_per_multiprocessor) blocks = card->blocks_per_multiprocessor;
    if (shared_bytes > 0) {
        int by_shared = card->shared_per_multiprocessor / (int)(shared_bytes + 1024);
        if (blocks > by_shared) blocks = by_shared;
    }
    return blocks;
}
