/* The CUDA runtime linked statically into a program.
 *
 * nvcc links it statically by default; then there is no name left that the dynamic linker could bind to the virtual
 * GPU. What remains is the program's symbol table: if it contains the runtime, each entry point (also those of cuBLAS
 * and others, if they are linked in) is overwritten with a jump to the implementation here, before the program's own
 * code runs. If a program is stripped, or loads such a library later, all that can be reported is that it has a runtime
 * of its own (driver/driver_lookup.c). */
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

/* --- symbols ---------------------------------------------------------------------------------- */

/* A loaded program or library. */
struct image {
    uintptr_t base; /* added to the addresses in the file */
    struct plim_symbol_table table;
    const ElfW(Phdr) *segments;
    size_t segment_count;
};

/* Returns the address of a function, or NULL if the table gives a place outside the code. */
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

/* Returns the address of a function by name, or NULL if there is none. */
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

/* Overwrites the function at `at` with a jump to `target`. */
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

/* --- at program start ------------------------------------------------------------------------- */

static const char REGISTERS[] = "__cudaRegisterFatBinary"; /* part of every runtime */

/* Sets plim_version_linked. A runtime of CUDA 11 is not called, as it would look for a driver first; runtimes from 12.0
 * on have cudaGetKernel. */
static void query_version(const struct image *image)
{
    typedef int query(int *);
    void *found = find_function(image, "cudaRuntimeGetVersion");
    query *function;
    memcpy(&function, &found, sizeof(function));
    plim_version_linked = PLIM_VERSION_OLDEST;
    if (!find_function(image, "cudaGetKernel") || !function) return;
    if (function(&plim_version_linked)) plim_version_linked = PLIM_VERSION_DRIVER;
}

static void inspect_image(struct image *image, const void *file, size_t bytes)
{
    struct plim_symbol_table *table = &image->table;
    bool may_have = plim_symbol_table_read(file, bytes, table) &&
                    memmem(table->names, table->names_bytes, REGISTERS, sizeof(REGISTERS));
    if (!may_have || !find_function(image, REGISTERS)) return;
    query_version(image);
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
    if (plim_lookup_is_nvidias((const void *)info->dlpi_phdr)) return 0; /* or this library */
    int fd = open(info->dlpi_name[0] ? info->dlpi_name : "/proc/self/exe", O_RDONLY | O_CLOEXEC);
    if (fd < 0) return 0; /* the kernel's vDSO has no file */
    if (!fstat(fd, &status) && status.st_size > 0) {
        size_t bytes = (size_t)status.st_size;
        void *file = mmap(NULL, bytes, PROT_READ, MAP_PRIVATE, fd, 0);
        if (file != MAP_FAILED) {
            inspect_image(&image, file, bytes);
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
