/* The functions that a program or library defines, from the symbol table of its ELF file.
 *
 * Nothing outside the file is read, whatever its tables say: a truncated, damaged or stripped file has no table. */
#ifndef PLIM_DEVICES_VIRTUAL_PROCESS_SYMBOL_TABLE_H
#define PLIM_DEVICES_VIRTUAL_PROCESS_SYMBOL_TABLE_H

#include <link.h>
#include <stdbool.h>
#include <stddef.h>

/* Points into the file, which the caller owns. */
struct plim_symbol_table {
    const ElfW(Sym) *symbols;
    size_t count;
    const char *names;
    size_t names_bytes; /* the last byte is null */
};

/* `file` must be aligned like a mapped file. Returns false if there is no complete table. */
bool plim_symbol_table_read(const void *file, size_t bytes, struct plim_symbol_table *table);

/* Returns the name of symbol `index` (less than `count`) if it is a function defined in the file, otherwise NULL. */
const char *plim_symbol_table_function(const struct plim_symbol_table *table, size_t index);

#endif
