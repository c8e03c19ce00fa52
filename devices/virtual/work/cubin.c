#include "cubin.h"
#include "devices/virtual/memory/readable.h"
#include <elf.h>
#include <string.h>

/* Headers and table entries are copied, since an image need not be aligned. */
struct file {
    const unsigned char *image;
    size_t bytes; /* or PLIM_UNKNOWN_BYTES */
    Elf64_Ehdr header;
};

enum { MACHINE_CUDA = 190, POINTER_BYTES = 8 };
static const size_t MOST_BYTES = (size_t)1 << 40;

static bool open_file(struct file *file, const void *image, size_t bytes)
{
    const Elf64_Ehdr *header = &file->header;
    *file = (struct file){.image = image, .bytes = bytes};
    if (!plim_is_readable(image, bytes, 0, sizeof(*header))) return false;
    memcpy(&file->header, image, sizeof(*header));
    return !memcmp(header->e_ident, ELFMAG, SELFMAG) &&
           header->e_ident[EI_CLASS] == ELFCLASS64 && header->e_machine == MACHINE_CUDA &&
           header->e_shoff && header->e_shentsize == sizeof(Elf64_Shdr) &&
           plim_is_readable(image, bytes, header->e_shoff, header->e_shnum * sizeof(Elf64_Shdr));
}

/* `index` must be less than e_shnum. */
static Elf64_Shdr section_at(const struct file *file, size_t index)
{
    Elf64_Shdr section;
    memcpy(&section, file->image + file->header.e_shoff + index * sizeof(section), sizeof(section));
    return section;
}

/* Extends `end` to the end of this part of the file. Returns false if it is larger than any file. */
static bool reach(uint64_t from, uint64_t count, size_t *end)
{
    if (from > MOST_BYTES || count > MOST_BYTES) return false;
    if (from + count > *end) *end = from + count;
    return true;
}

size_t plim_cubin_bytes(const void *image, size_t room)
{
    struct file file;
    size_t end = 0;
    if (!open_file(&file, image, room)) return 0;
    const Elf64_Ehdr *header = &file.header;
    bool is_sane = reach(header->e_shoff, header->e_shnum * sizeof(Elf64_Shdr), &end);
    if (header->e_phoff)
        is_sane &= reach(header->e_phoff, (uint64_t)header->e_phnum * header->e_phentsize, &end);
    for (size_t i = 0; i < header->e_shnum && is_sane; i++) {
        Elf64_Shdr section = section_at(&file, i);
        if (section.sh_type != SHT_NOBITS)
            is_sane = reach(section.sh_offset, section.sh_size, &end);
    }
    return is_sane && plim_is_readable(image, room, 0, end) ? end : 0;
}

/* Returns the contents of a section, which are sh_size bytes; NULL if they are not completely in the file. */
static const void *content_of(const struct file *file, const Elf64_Shdr *section)
{
    bool is_there =
        section->sh_type != SHT_NOBITS &&
        plim_is_readable(file->image, file->bytes, section->sh_offset, section->sh_size);
    return is_there ? file->image + section->sh_offset : NULL;
}

/* Returns a string table, which ends with a null byte, or NULL if there is none. */
static const char *names_of(const struct file *file, size_t index, size_t *size)
{
    if (index >= file->header.e_shnum) return NULL;
    Elf64_Shdr section = section_at(file, index);
    const char *names = content_of(file, &section);
    *size = section.sh_size;
    return names && *size && !names[*size - 1] ? names : NULL;
}

static bool find_section(const struct file *file, const char *prefix, const char *name,
                         Elf64_Shdr *out)
{
    size_t length = strlen(prefix), size;
    const char *names = names_of(file, file->header.e_shstrndx, &size);
    for (size_t i = 0; names && i < file->header.e_shnum; i++) {
        *out = section_at(file, i);
        const char *its = out->sh_name < size ? names + out->sh_name : "";
        if (!strncmp(its, prefix, length) && !strcmp(its + length, name)) return true;
    }
    return false;
}

/* Attributes follow each other: a byte with the format, a byte with the kind, and 16 bits that hold the value or, in
 * the sized format, the size of the data that follows. */
enum { FORMAT_SIZED = 4, KIND_PARAMETER = 0x17, PARAMETER_BYTES = 12 };

/* Reads a parameter: index (4 bytes), ordinal (2), offset (2), and a word with its size in the upper 14 bits. */
static void read_parameter(const unsigned char *at, int *count, uint32_t *pointers)
{
    uint16_t ordinal;
    uint32_t word;
    memcpy(&ordinal, at + 4, sizeof(ordinal));
    memcpy(&word, at + 8, sizeof(word));
    if (ordinal >= *count) *count = ordinal + 1;
    if (ordinal < 32 && word >> 18 == POINTER_BYTES) *pointers |= (uint32_t)1 << ordinal;
}

int plim_cubin_kernel(const void *image, size_t bytes, const char *name, uint32_t *pointers)
{
    struct file file;
    Elf64_Shdr code, info;
    int count = 0;
    *pointers = 0;
    if (!open_file(&file, image, bytes) || !find_section(&file, ".text.", name, &code)) return -1;
    if (!find_section(&file, ".nv.info.", name, &info)) return 0;
    const unsigned char *at = content_of(&file, &info), *end = at ? at + info.sh_size : NULL;
    while (end - at >= 4) {
        uint16_t size;
        memcpy(&size, at + 2, sizeof(size));
        bool is_sized = at[0] == FORMAT_SIZED;
        if (is_sized && size > end - at - 4) break;
        if (is_sized && at[1] == KIND_PARAMETER && size >= PARAMETER_BYTES)
            read_parameter(at + 4, &count, pointers);
        at += is_sized ? 4 + size : 4;
    }
    return count;
}

bool plim_cubin_variable(const void *image, size_t bytes, const char *name, size_t *size)
{
    struct file file;
    Elf64_Shdr table;
    size_t names_bytes;
    if (!open_file(&file, image, bytes) || !find_section(&file, ".symtab", "", &table)) return false;
    const unsigned char *symbols = content_of(&file, &table);
    const char *names = names_of(&file, table.sh_link, &names_bytes);
    for (size_t i = 0; symbols && names && i < table.sh_size / sizeof(Elf64_Sym); i++) {
        Elf64_Sym symbol;
        memcpy(&symbol, symbols + i * sizeof(symbol), sizeof(symbol));
        bool is_it = ELF64_ST_TYPE(symbol.st_info) == STT_OBJECT && symbol.st_name < names_bytes &&
                     !strcmp(names + symbol.st_name, name);
        if (is_it) *size = symbol.st_size;
        if (is_it) return symbol.st_size <= MOST_BYTES;
    }
    return false;
}
