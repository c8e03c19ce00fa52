/* The tables of a program or a library, which are looked through for CUDA's runtime. Every symbol
 * that they tell lies inside of the bytes that are there. */
#include "target.h"
#include "devices/virtual/process/symbol_table.h"
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct plim_symbol_table table;
    /* A mapped file is aligned, and so is what malloc() gives. */
    if (!plim_symbol_table_read(data, size, &table)) return 0;
    size_t length = 0;
    for (size_t i = 0; i < table.count; i++) {
        const char *name = plim_symbol_table_function(&table, i);
        if (name) length += strlen(name);
    }
    fuzz_expect(length <= size * (table.count + 1));
    return 0;
}
