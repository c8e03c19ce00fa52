#include "symbol.h"
#include "heap.h"
#include "autotune/base/array.h"

struct symbol {
    const void *host;
    size_t bytes;
    uintptr_t at[PLIM_MACHINE_GPUS]; /* 0: not allocated yet */
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
