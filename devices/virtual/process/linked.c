/* The CUDA runtime where it is linked into a program.
 *
 * nvcc links it so unless it is told otherwise, and then there is no name left that the dynamic
 * linker could bind to the virtual GPU. What is left is the program's table of symbols: where it has
 * the runtime, each entry point (of cuBLAS and the others too, if they are linked in) gets a jump to
 * the answer here as its first instruction, before the program's own code runs. Of what is stripped,
 * or loaded later, no more can be said than that it has a runtime of its own (driver/driver_lookup.c).
 */
#define _GNU_SOURCE /* dl_iterate_phdr, memmem */
#include "lookup.h"
#include "symbol_table.h"
#include "devices/virtual/machine/self.h"
#include "devices/virtual/machine/version.h"
#include <fcntl.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#if defined(__x86_64__)
static const unsigned char JUMP[] = {0xff, 0x25, 0, 0, 0, 0}; /* jmp *0(%rip) */
#elif defined(__aarch64__)
static const unsigned char JUMP[] = {0x50, 0, 0, 0x58, 0, 2, 0x1f, 0xd6}; /* ldr x16, 8; br x16 */
#else
static const unsigned char JUMP[] = {0};
#define NO_JUMPS
#endif
enum { JUMP_BYTES = sizeof(JUMP) + sizeof(void *), FUNCTION_ALIGNMENT = 16 };

/* --- its symbols ------------------------------------------------------------------------------ */

/* A file that is mapped as a program or a library. */
struct image {
    uintptr_t base; /* what its addresses count from */
    struct plim_symbol_table table;
    const ElfW(Phdr) *segments;
    size_t segment_count;
};

/* Where it is loaded; NULL: the table says a place outside of the code. */
static void *function_at(const struct image *image, const ElfW(Sym) *symbol)
{
    for (size_t i = 0; i < image->segment_count; i++) {
        const ElfW(Phdr) *segment = &image->segments[i];
        uint64_t offset = symbol->st_value - segment->p_vaddr;
        bool is_code = segment->p_type == PT_LOAD && (segment->p_flags & PF_X);
        if (is_code && symbol->st_value >= segment->p_vaddr && JUMP_BYTES <= segment->p_filesz &&
            offset <= segment->p_filesz - JUMP_BYTES)
            return (void *)(image->base + symbol->st_value);
    }
    return NULL;
}

/* NULL: it has none of this name. */
static void *find_function(const struct image *image, const char *wanted)
{
    for (size_t i = 0; i < image->table.count; i++) {
        const char *name = plim_symbol_table_function(&image->table, i);
        if (name && !strcmp(name, wanted)) return function_at(image, &image->table.symbols[i]);
    }
    return NULL;
}

/* --- jumps ------------------------------------------------------------------------------------ */

static bool protect(void *at, int protection)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), first = (uintptr_t)at & ~(page - 1);
    return !mprotect((void *)first, (uintptr_t)at + JUMP_BYTES - first, protection);
}

/* From now on the function `at` is `target`. */
static bool write_jump(void *at, const void *target)
{
    if (!protect(at, PROT_READ | PROT_WRITE)) return false;
    memcpy(at, JUMP, sizeof(JUMP));
    memcpy((char *)at + sizeof(JUMP), &target, sizeof(target));
    __builtin___clear_cache((char *)at, (char *)at + JUMP_BYTES);
    return protect(at, PROT_READ | PROT_EXEC);
}

static void replace_functions(const struct image *image)
{
    for (size_t i = 0; i < image->table.count; i++) {
        const ElfW(Sym) *symbol = &image->table.symbols[i];
        const char *name = plim_symbol_table_function(&image->table, i);
        const void *ours = name ? plim_lookup_own(name) : NULL;
        size_t room = (symbol->st_size + FUNCTION_ALIGNMENT - 1) & ~(size_t)(FUNCTION_ALIGNMENT - 1);
        void *at = ours ? function_at(image, symbol) : NULL;
        if (ours && (!at || room < JUMP_BYTES || !write_jump(at, ours)))
            plim_self_note("the program's own %s cannot be replaced", name);
    }
}

/* --- at the start ----------------------------------------------------------------------------- */

static const char REGISTERS[] = "__cudaRegisterFatBinary"; /* every runtime has it */

/* A runtime of 11 is not asked: it looks for a driver first. Those from 12.0 on have cudaGetKernel. */
static void ask_version(const struct image *image)
{
    typedef int query(int *);
    void *found = find_function(image, "cudaRuntimeGetVersion");
    query *function;
    memcpy(&function, &found, sizeof(function));
    plim_version_linked = PLIM_VERSION_OLDEST;
    if (!find_function(image, "cudaGetKernel") || !function) return;
    if (function(&plim_version_linked)) plim_version_linked = PLIM_VERSION_DRIVER;
}

static void look_into(struct image *image, const void *file, size_t bytes)
{
    struct plim_symbol_table *table = &image->table;
    bool may_have = plim_symbol_table_read(file, bytes, table) &&
                    memmem(table->names, table->names_bytes, REGISTERS, sizeof(REGISTERS));
    if (!may_have || !find_function(image, REGISTERS)) return;
    ask_version(image);
    replace_functions(image);
}

static int visit(struct dl_phdr_info *info, size_t size, void *user)
{
    (void)size;
    (void)user;
    struct stat status;
    struct image image = {.base = info->dlpi_addr,
                          .segments = info->dlpi_phdr,
                          .segment_count = info->dlpi_phnum};
    if (plim_lookup_is_nvidias((const void *)info->dlpi_phdr)) return 0; /* or ours */
    int fd = open(info->dlpi_name[0] ? info->dlpi_name : "/proc/self/exe", O_RDONLY | O_CLOEXEC);
    if (fd < 0) return 0; /* the kernel's own has no file */
    if (!fstat(fd, &status) && status.st_size > 0) {
        size_t bytes = (size_t)status.st_size;
        void *file = mmap(NULL, bytes, PROT_READ, MAP_PRIVATE, fd, 0);
        if (file != MAP_FAILED) {
            look_into(&image, file, bytes);
            munmap(file, bytes);
        }
    }
    close(fd);
    return 0;
}

__attribute__((constructor)) static void replace_linked_runtimes(void)
{
#ifndef NO_JUMPS
    if (getenv(PLIM_MACHINE_VARIABLE)) dl_iterate_phdr(visit, NULL);
#endif
}
