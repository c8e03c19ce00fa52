/* The functions that a program or a library defines, from the symbol table of its ELF file.
 *
 * Nothing outside of the file is read, whatever its tables say: a truncated, damaged or stripped file
 * has no table.
 */
#ifndef PLIM_DEVICES_VIRTUAL_PROCESS_SYMBOL_TABLE_H
#define PLIM_DEVICES_VIRTUAL_PROCESS_SYMBOL_TABLE_H

#include <link.h>
#include <stdbool.h>
#include <stddef.h>

/* Points into the file, which stays the caller's. */
struct plim_symbol_table {
    const ElfW(Sym) *symbols;
    size_t count;
    const char *names;
    size_t names_bytes; /* ends with a 0 byte */
};

/* `file` is aligned like a mapped file. False: there is no complete table. */
bool plim_symbol_table_read(const void *file, size_t bytes, struct plim_symbol_table *table);

/* The name of symbol `index` (less than `count`) if it is a function that the file itself defines;
 * NULL: it is something else. */
const char *plim_symbol_table_function(const struct plim_symbol_table *table, size_t index);

#endif
