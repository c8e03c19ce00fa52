#include "symbol_table.h"
#include <elf.h>
#include <string.h>

struct file {
    const unsigned char *start;
    size_t bytes;
};

/* Returns the address of a part of the file, or NULL if it is not completely in the file or not aligned. */
static const void *part(const struct file *file, uint64_t at, uint64_t bytes, size_t alignment)
{
    bool is_inside = at <= file->bytes && bytes <= file->bytes - at;
    return is_inside && at % alignment == 0 ? file->start + at : NULL;
}

bool plim_symbol_table_read(const void *start, size_t bytes, struct plim_symbol_table *table)
{
    struct file file = {start, bytes};
    const ElfW(Ehdr) *header = part(&file, 0, sizeof(*header), 1);
    const ElfW(Shdr) *sections;
    if (!header || memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 ||
        header->e_shentsize != sizeof(*sections))
        return false;
    sections = part(&file, header->e_shoff, (uint64_t)header->e_shnum * sizeof(*sections),
                    _Alignof(ElfW(Shdr)));
    if (!sections) return false;
    size_t i = 0;
    while (i < header->e_shnum && sections[i].sh_type != SHT_SYMTAB) i++;
    if (i == header->e_shnum || sections[i].sh_link >= header->e_shnum) return false;
    const ElfW(Shdr) *symbols = &sections[i], *names = &sections[symbols->sh_link];
    *table = (struct plim_symbol_table){
        .symbols = part(&file, symbols->sh_offset, symbols->sh_size, _Alignof(ElfW(Sym))),
        .count = symbols->sh_size / sizeof(*table->symbols),
        .names = part(&file, names->sh_offset, names->sh_size, 1),
        .names_bytes = names->sh_size};
    return table->symbols && table->names && table->names_bytes &&
           !table->names[table->names_bytes - 1];
}

const char *plim_symbol_table_function(const struct plim_symbol_table *table, size_t index)
{
    const ElfW(Sym) *symbol = &table->symbols[index];
    bool is_function = ELF64_ST_TYPE(symbol->st_info) == STT_FUNC && symbol->st_shndx != SHN_UNDEF;
    return is_function && symbol->st_name < table->names_bytes ? table->names + symbol->st_name
                                                               : NULL;
}
