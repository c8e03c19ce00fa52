#include "cubin.h"
#include <elf.h>
#include <string.h>

struct file {
    const unsigned char *image;
    const Elf64_Shdr *sections;
    size_t count;
    const char *names;
};

enum { MACHINE_CUDA = 190, POINTER_BYTES = 8 };

static bool open_file(struct file *file, const void *image)
{
    const Elf64_Ehdr *header = image;
    if (memcmp(image, ELFMAG, SELFMAG) != 0 || header->e_ident[EI_CLASS] != ELFCLASS64 ||
        header->e_machine != MACHINE_CUDA || !header->e_shoff)
        return false;
    file->image = image;
    file->sections = (const Elf64_Shdr *)(file->image + header->e_shoff);
    file->count = header->e_shnum;
    if (header->e_shstrndx >= file->count) return false;
    file->names = (const char *)file->image + file->sections[header->e_shstrndx].sh_offset;
    return true;
}

size_t plim_cubin_bytes(const void *image)
{
    struct file file;
    if (!open_file(&file, image)) return 0;
    const Elf64_Ehdr *header = image;
    size_t end = header->e_shoff + file.count * sizeof(Elf64_Shdr);
    size_t segments = header->e_phoff + (size_t)header->e_phnum * header->e_phentsize;
    if (header->e_phoff && segments > end) end = segments;
    for (size_t i = 0; i < file.count; i++) {
        const Elf64_Shdr *section = &file.sections[i];
        if (section->sh_type != SHT_NOBITS && section->sh_offset + section->sh_size > end)
            end = section->sh_offset + section->sh_size;
    }
    return end;
}

static const Elf64_Shdr *find_section(const struct file *file, const char *prefix, const char *name)
{
    size_t length = strlen(prefix);
    for (size_t i = 0; i < file->count; i++) {
        const char *its = file->names + file->sections[i].sh_name;
        if (!strncmp(its, prefix, length) && !strcmp(its + length, name)) return &file->sections[i];
    }
    return NULL;
}

/* Attributes one after the other: a format, a kind, and a half word that is the value or, in the
 * last format, the size of what follows. */
enum { FORMAT_SIZED = 4, KIND_PARAMETER = 0x17, PARAMETER_BYTES = 12 };

/* A parameter: index 4, ordinal 2, offset 2, and a word with its size in the upper 14 bits. */
static void read_parameter(const unsigned char *at, int *count, uint32_t *pointers)
{
    uint16_t ordinal;
    uint32_t word;
    memcpy(&ordinal, at + 4, sizeof(ordinal));
    memcpy(&word, at + 8, sizeof(word));
    if (ordinal >= *count) *count = ordinal + 1;
    if (ordinal < 32 && word >> 18 == POINTER_BYTES) *pointers |= (uint32_t)1 << ordinal;
}

int plim_cubin_kernel(const void *image, const char *name, uint32_t *pointers)
{
    struct file file;
    int count = 0;
    *pointers = 0;
    if (!open_file(&file, image) || !find_section(&file, ".text.", name)) return -1;
    const Elf64_Shdr *info = find_section(&file, ".nv.info.", name);
    if (!info) return 0;
    const unsigned char *at = file.image + info->sh_offset, *end = at + info->sh_size;
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

bool plim_cubin_variable(const void *image, const char *name, size_t *bytes)
{
    struct file file;
    const Elf64_Shdr *table = open_file(&file, image) ? find_section(&file, ".symtab", "") : NULL;
    if (!table || table->sh_link >= file.count) return false;
    const Elf64_Sym *symbols = (const Elf64_Sym *)(file.image + table->sh_offset);
    const char *names = (const char *)file.image + file.sections[table->sh_link].sh_offset;
    for (size_t i = 0; i < table->sh_size / sizeof(*symbols); i++) {
        bool is_it = ELF64_ST_TYPE(symbols[i].st_info) == STT_OBJECT &&
                     !strcmp(names + symbols[i].st_name, name);
        if (is_it) *bytes = symbols[i].st_size;
        if (is_it) return true;
    }
    return false;
}
