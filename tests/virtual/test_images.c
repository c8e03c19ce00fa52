/* Cubins and fat binaries that are cut or damaged: nothing outside of them is read, which the end of
 * a page without access behind each shows, and a whole one is understood. */
#define _DEFAULT_SOURCE
#include "devices/virtual/work/cubin.h"
#include "devices/virtual/work/fat_binary.h"
#include "devices/virtual/memory/readable.h"
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <elf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { ROUNDS = 20000, ROOM = 1 << 16 };
static const size_t HOLE = (size_t)1 << 41; /* offsets beyond 1 TiB are not followed (readable.c) */

/* --- images ----------------------------------------------------------------------------------- */

static const char names[] = "\0.shstrtab\0.symtab\0.text.add\0.nv.info.add\0add\0scale";
enum { NAMES = 1, SYMTAB = 11, TEXT = 19, INFO = 29, ADD = 42, SCALE = 46 };

/* Sections behind the header: names, symbols, code, and a kernel with two parameters, of which the
 * first is a pointer. */
static struct cubin {
    Elf64_Ehdr header;
    Elf64_Shdr sections[5];
    Elf64_Sym symbols[2];
    unsigned char info[2][16];
    char names[sizeof(names)];
} cubin;

static Elf64_Shdr section(uint32_t name, uint32_t type, const void *at, size_t bytes, uint32_t link)
{
    return (Elf64_Shdr){.sh_name = name, .sh_type = type, .sh_size = bytes, .sh_link = link,
                        .sh_offset = (uint64_t)((const char *)at - (const char *)&cubin)};
}

static void make_cubin(void)
{
    static const unsigned char info[2][16] = {
        {4, 0x17, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 8 << 2, 0},
        {4, 0x17, 12, 0, 0, 0, 0, 0, 1, 0, 8, 0, 0, 0, 4 << 2, 0}};
    cubin = (struct cubin){
        .header = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64}, .e_machine = 190, .e_shnum = 5,
                   .e_shentsize = sizeof(Elf64_Shdr), .e_shstrndx = 1,
                   .e_shoff = offsetof(struct cubin, sections)},
        .sections = {[1] = section(NAMES, SHT_STRTAB, cubin.names, sizeof(names), 0),
                     [2] = section(SYMTAB, SHT_SYMTAB, cubin.symbols, sizeof(cubin.symbols), 1),
                     [3] = section(TEXT, SHT_PROGBITS, cubin.info, 16, 0),
                     [4] = section(INFO, SHT_PROGBITS, cubin.info, sizeof(cubin.info), 0)},
        .symbols = {{.st_name = ADD, .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC)},
                    {.st_name = SCALE, .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT),
                     .st_size = 4096}}};
    memcpy(cubin.info, info, sizeof(info));
    memcpy(cubin.names, names, sizeof(names));
}

/* Two entries: machine code for 8.0 and PTX for 9.0. */
static unsigned char fat[16 + 2 * 64];

static void make_fat(void)
{
    static const unsigned char header[] = {0x50, 0xed, 0x55, 0xba, 1, 0, 16, 0, 128};
    memset(fat, 0, sizeof(fat));
    memcpy(fat, header, sizeof(header));
    for (int i = 0; i < 2; i++) {
        unsigned char *entry = fat + 16 + 64 * i;
        entry[0] = i ? 1 : 2;
        entry[4] = 48;
        entry[8] = 16;
        entry[28] = i ? 90 : 80;
    }
}

/* --- their ends -------------------------------------------------------------------------------- */

static unsigned char *wall; /* nothing beyond it may be read */

static void build_wall(void)
{
    /* Two holes around it keep what is damaged away from the rest of the process, which ASan guards. */
    unsigned char *memory = mmap(NULL, HOLE + ROOM + HOLE, PROT_NONE,
                                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    cr_assert(eq(int, memory == MAP_FAILED, 0));
    cr_assert(eq(int, munmap(memory, HOLE + ROOM + HOLE), 0));
    memory = mmap(memory + HOLE, ROOM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    wall = memory + ROOM;
    make_cubin();
    make_fat();
    srand(17);
}

TestSuite(images, .init = build_wall);

static unsigned char *before_the_wall(const void *image, size_t bytes)
{
    return memcpy(wall - bytes, image, bytes);
}

/* Everything that may be asked of it. */
static void ask_cubin(const void *image, size_t room)
{
    uint32_t pointers;
    size_t size, bytes = plim_cubin_bytes(image, room);
    if (room != PLIM_UNKNOWN_BYTES) cr_assert(le(sz, bytes, room));
    size_t known = bytes ? bytes : room == PLIM_UNKNOWN_BYTES ? 0 : room;
    (void)plim_cubin_kernel(image, known, "add", &pointers);
    (void)plim_cubin_kernel(image, known, "no", &pointers);
    (void)plim_cubin_variable(image, known, "scale", &size);
}

static void ask_fat(const void *image, size_t room)
{
    struct plim_fat_binary *binary = plim_fat_binary_read(image, room);
    cr_assert(ne(ptr, binary, NULL));
    (void)plim_fat_binary_code(binary, 80);
    free(binary);
}

static void damage(unsigned char *image, size_t bytes)
{
    static const unsigned char edges[] = {0, 1, 0x7f, 0x80, 0xff};
    for (int i = rand() % 4; i >= 0; i--) {
        size_t at = (size_t)rand() % bytes, length = 1 + (size_t)rand() % 8;
        for (size_t k = at; k < at + length && k < bytes; k++)
            image[k] = rand() % 2 ? edges[rand() % 5] : (unsigned char)rand();
    }
}

/* --- tests ------------------------------------------------------------------------------------- */

Test(images, a_whole_cubin_is_understood)
{
    uint32_t pointers;
    size_t size;
    cr_expect(eq(sz, plim_cubin_bytes(&cubin, sizeof(cubin)),
                 offsetof(struct cubin, names) + sizeof(names)));
    cr_expect(eq(sz, plim_cubin_bytes(&cubin, PLIM_UNKNOWN_BYTES), plim_cubin_bytes(&cubin, sizeof(cubin))));
    cr_expect(eq(int, plim_cubin_kernel(&cubin, sizeof(cubin), "add", &pointers), 2));
    cr_expect(eq(u32, pointers, 1));
    cr_expect(eq(int, plim_cubin_kernel(&cubin, sizeof(cubin), "no", &pointers), -1));
    cr_expect(eq(int, plim_cubin_variable(&cubin, sizeof(cubin), "scale", &size), 1));
    cr_expect(eq(sz, size, 4096));
}

Test(images, a_cut_cubin_is_none)
{
    size_t whole = plim_cubin_bytes(&cubin, sizeof(cubin));
    for (size_t bytes = 0; bytes < whole; bytes++) {
        unsigned char *image = before_the_wall(&cubin, bytes);
        cr_assert(eq(sz, plim_cubin_bytes(image, bytes), 0));
        cr_assert(eq(sz, plim_cubin_bytes(image, PLIM_UNKNOWN_BYTES), 0));
        ask_cubin(image, bytes);
    }
}

Test(images, a_damaged_cubin_is_survived)
{
    size_t whole = plim_cubin_bytes(&cubin, sizeof(cubin));
    for (int i = 0; i < ROUNDS; i++) {
        unsigned char *image = before_the_wall(&cubin, whole);
        damage(image, whole);
        ask_cubin(image, i % 2 ? whole : PLIM_UNKNOWN_BYTES);
    }
}

Test(images, a_whole_fat_binary_is_understood)
{
    struct plim_fat_binary *binary = plim_fat_binary_read(fat, sizeof(fat));
    cr_expect(eq(int, plim_fat_binary_code(binary, 86), 80));
    cr_expect(eq(int, plim_fat_binary_code(binary, 100), 100));
    cr_expect(eq(int, plim_fat_binary_code(binary, 75), 0));
    free(binary);
}

Test(images, a_cut_or_damaged_fat_binary_is_survived)
{
    for (size_t bytes = 0; bytes < sizeof(fat); bytes++) {
        ask_fat(before_the_wall(fat, bytes), bytes);
        ask_fat(before_the_wall(fat, bytes), PLIM_UNKNOWN_BYTES);
    }
    for (int i = 0; i < ROUNDS; i++) {
        unsigned char *image = before_the_wall(fat, sizeof(fat));
        damage(image, sizeof(fat));
        ask_fat(image, i % 2 ? sizeof(fat) : PLIM_UNKNOWN_BYTES);
    }
}
