/* The shape of the virtual GPU's library: it answers every name of NVIDIA's libraries that the
 * lists in devices/virtual/names have, in one of the ways that they say, and shows nothing else.
 *
 * The library is loaded as programs load it. */
#define _GNU_SOURCE /* RTLD_DEFAULT */
#include "devices/virtual/process/unsupported.h"
#include "machine_fixture.h"
#include <criterion/hooks.h>
#include <criterion/new/assert.h>
#include <dlfcn.h>
#include <elf.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- the lists -------------------------------------------------------------------------------- */

enum how { UNSUPPORTED, COMPUTE, BY_HAND };

/* The codes are those of the headers: cudaErrorNotSupported, CUBLAS_STATUS_NOT_SUPPORTED and
 * CUBLAS_STATUS_NOT_INITIALIZED, ...; NCCL has none for it but ncclInternalError. */
static const struct library {
    const char *list;
    int not_supported, no_handle;
} libraries[] = {
    {"cudart", 801, 400},   {"cuda", 801, 400}, {"cublas", 15, 1}, {"cublaslt", 15, 1},
    {"cudnn", 3000, 1001}, {"nccl", 3, 4},     {"nvml", 3, 2},
    {"cufft", 16, 1}, {"cusparse", 10, 1}, {"cusolver", 9, 1},
};
enum { LIBRARIES = sizeof(libraries) / sizeof(libraries[0]), NAMES = 6000 };

static struct name {
    char text[96];
    int library;
    enum how how;
} names[NAMES];
static size_t name_count;

static void read_line(char *line, int library)
{
    line[strcspn(line, "#\n")] = '\0';
    char *name = strtok(line, " "), *how = strtok(NULL, " ");
    if (!name) return;
    cr_assert(lt(sz, name_count, NAMES));
    struct name *new = &names[name_count++];
    snprintf(new->text, sizeof(new->text), "%s", name);
    new->library = library;
    new->how = how ? COMPUTE : UNSUPPORTED;
}

static void read_list(int library)
{
    char path[4096], line[256];
    snprintf(path, sizeof(path), "%s/%s.txt", PLIM_VIRTUAL_NAMES, libraries[library].list);
    FILE *file = fopen(path, "r");
    cr_assert(file != NULL, "%s", path);
    while (fgets(line, sizeof(line), file)) read_line(line, library);
    fclose(file);
}

static int by_text(const void *a, const void *b)
{
    return strcmp(((const struct name *)a)->text, ((const struct name *)b)->text);
}

static struct name *find_name(const char *text)
{
    struct name key;
    snprintf(key.text, sizeof(key.text), "%s", text);
    return bsearch(&key, names, name_count, sizeof(names[0]), by_text);
}

/* --- the library's file ----------------------------------------------------------------------- */

static struct elf {
    unsigned char *bytes;
    const Elf64_Sym *symbols;
    size_t symbol_count;
    const Elf64_Dyn *dynamic;
    const char *symbol_text, *dynamic_text;
} elf;

static void read_elf(void)
{
    FILE *file = fopen(PLIM_VIRTUAL_GPU, "rb");
    cr_assert(file != NULL, "%s", PLIM_VIRTUAL_GPU);
    struct stat about;
    fstat(fileno(file), &about);
    size_t bytes = (size_t)about.st_size;
    elf.bytes = malloc(bytes);
    cr_assert(eq(sz, fread(elf.bytes, 1, bytes, file), bytes));
    fclose(file);
    const Elf64_Ehdr *head = (const void *)elf.bytes;
    const Elf64_Shdr *sections = (const void *)(elf.bytes + head->e_shoff);
    for (size_t i = 0; i < head->e_shnum; i++) {
        const Elf64_Shdr *section = &sections[i];
        const void *content = elf.bytes + section->sh_offset;
        if (section->sh_type == SHT_DYNAMIC) elf.dynamic = content;
        if (section->sh_type != SHT_DYNSYM) continue;
        elf.symbols = content;
        elf.symbol_count = section->sh_size / sizeof(Elf64_Sym);
        elf.symbol_text = (const char *)elf.bytes + sections[section->sh_link].sh_offset;
    }
    cr_assert(elf.symbols && elf.dynamic);
    elf.dynamic_text = elf.symbol_text; /* .dynstr is that of both */
}

static bool is_export(const Elf64_Sym *symbol)
{
    return symbol->st_shndx != SHN_UNDEF && ELF64_ST_BIND(symbol->st_info) != STB_LOCAL &&
           ELF64_ST_VISIBILITY(symbol->st_other) != STV_HIDDEN;
}

/* --- both together ---------------------------------------------------------------------------- */

static void *library;

/* What is not weak was written by hand. */
static void find_hand_written(void)
{
    for (size_t i = 0; i < elf.symbol_count; i++) {
        if (!is_export(&elf.symbols[i])) continue;
        struct name *name = find_name(elf.symbol_text + elf.symbols[i].st_name);
        if (name && ELF64_ST_BIND(elf.symbols[i].st_info) != STB_WEAK) name->how = BY_HAND;
    }
}

static void read_names(void)
{
    for (int i = 0; i < LIBRARIES; i++) read_list(i);
    qsort(names, name_count, sizeof(names[0]), by_text);
    read_elf();
    find_hand_written();
}

static void set_up(void)
{
    make_machine("A100-SXM4-80GB", 1, 1 << 30);
    read_names();
    library = dlopen(PLIM_VIRTUAL_GPU, RTLD_NOW | RTLD_LOCAL);
    cr_assert(library != NULL, "%s", dlerror());
}

static void tear_down(void)
{
    free(elf.bytes);
    plim_machine_destroy(machine, machine_fd);
}

TestSuite(names, .init = set_up, .fini = tear_down);

typedef long answer(const void *);

static long call(const struct name *name, const void *argument)
{
    void *found = dlsym(library, name->text);
    answer *function;
    memcpy(&function, &found, sizeof(function));
    return function(argument);
}

static const struct name *first(int of_library, enum how how)
{
    for (size_t i = 0; i < name_count; i++)
        if (names[i].library == of_library && names[i].how == how) return &names[i];
    return NULL;
}

/* --- what is there ---------------------------------------------------------------------------- */

Test(names, all_resolve_and_are_listed_once)
{
    for (size_t i = 0; i < name_count; i++) {
        cr_expect(dlsym(library, names[i].text) != NULL, "there is no %s", names[i].text);
        if (i) cr_expect(by_text(&names[i - 1], &names[i]) != 0, "twice: %s", names[i].text);
    }
}

Test(names, nothing_else_is_shown)
{
    /* Of the C library, of CUPTI and of PyTorch, and our own: lookup.c, device_files.c, runtime_device.c,
     * torch_blocks.c, known.c, watch.c. */
    static const char *const others[] = {"dlsym",
                                         "access",
                                         "stat",
                                         "stat64",
                                         "__xstat",
                                         "__xstat64",
                                         "cuptiGetVersion",
                                         "plimsoll_known",
                                         "plimsoll_optimizer_stepped",
                                         "plimsoll_optimizer_made",
                                         "plimsoll_epoch_steps",
                                         "plimsoll_out_of_memory",
                                         "plimsoll_cache_emptied",
                                         "plimsoll_kernel_moves",
                                         "plimsoll_is_recording",
                                         "_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE",
                                         "_ZN3c1027reportMemoryUsageToProfilerEPvlllNS_6DeviceE"};
    size_t count = sizeof(others) / sizeof(others[0]), seen = 0;
    for (size_t i = 0; i < elf.symbol_count; i++) {
        const char *name = elf.symbol_text + elf.symbols[i].st_name;
        if (!is_export(&elf.symbols[i]) || find_name(name)) continue;
        size_t k = 0;
        while (k < count && strcmp(name, others[k]) != 0) k++;
        cr_expect(lt(sz, k, count), "%s is of no library", name);
        seen++;
    }
    cr_expect(eq(sz, seen, count), "each of the others is there");
}

static bool is_libc(const char *needed)
{
    static const char *const parts[] = {"libc.so.", "libm.so.", "libdl.so.", "libpthread.so.", "ld-linux"};
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
        if (!strncmp(needed, parts[i], strlen(parts[i]))) return true;
    return false;
}

Test(names, are_without_versions_and_need_only_the_c_library)
{
    for (const Elf64_Dyn *entry = elf.dynamic; entry->d_tag != DT_NULL; entry++) {
        cr_expect(ne(i64, entry->d_tag, DT_VERDEF));
        if (entry->d_tag != DT_NEEDED) continue;
        const char *needed = elf.dynamic_text + entry->d_un.d_val;
        cr_expect(is_libc(needed), "needs %s", needed);
    }
}

static size_t count_of(int of_library, enum how how)
{
    size_t count = 0;
    for (size_t i = 0; i < name_count; i++)
        count += names[i].library == of_library && names[i].how == how;
    return count;
}

Test(names, of_every_library_some_are_answered_by_hand)
{
    for (int i = 0; i < LIBRARIES; i++)
        cr_expect(lt(sz, 0, count_of(i, BY_HAND)), "%s", libraries[i].list);
}

/* What a person wants to know. */
ReportHook(POST_ALL)(struct criterion_global_stats *stats)
{
    (void)stats;
    read_names();
    for (int i = 0; i < LIBRARIES; i++) {
        size_t by_hand = count_of(i, BY_HAND), computed = count_of(i, COMPUTE),
               unsupported = count_of(i, UNSUPPORTED);
        fprintf(stderr, "%s: %zu names, %zu answered by hand, %zu computed, %zu unsupported\n",
                libraries[i].list, by_hand + computed + unsupported, by_hand, computed,
                unsupported);
    }
    free(elf.bytes);
}

/* --- how they answer -------------------------------------------------------------------------- */

Test(names, unsupported_ones_give_the_code_of_their_library_and_are_noted_once)
{
    for (int i = 0; i < LIBRARIES; i++) {
        const struct name *name = first(i, UNSUPPORTED);
        uint32_t before = machine->note_count;
        cr_assert(name != NULL, "%s has no unsupported name", libraries[i].list);
        cr_expect(eq(i64, call(name, NULL), libraries[i].not_supported), "%s", name->text);
        cr_expect(eq(i64, call(name, NULL), libraries[i].not_supported), "%s", name->text);
        cr_assert(eq(u32, machine->note_count, before + 1), "%s", name->text);
        cr_expect(strstr(machine->notes[before], name->text) != NULL, "%s", machine->notes[before]);
    }
}

Test(names, an_unsupported_one_of_the_runtime_is_its_last_error)
{
    const struct name *last_error = find_name("cudaGetLastError");
    cr_expect(eq(i64, call(last_error, NULL), 0));
    call(first(0, UNSUPPORTED), NULL);
    cr_expect(eq(i64, call(last_error, NULL), 801));
    cr_expect(eq(i64, call(last_error, NULL), 0));
    call(first(1, UNSUPPORTED), NULL);
    cr_expect(eq(i64, call(last_error, NULL), 0), "the driver has none");
}

static int64_t launches(void)
{
    for (int i = 0; i < PLIM_MACHINE_PROCESSES; i++)
        if (machine->processes[i].pid == getpid()) return machine->processes[i].launches;
    return 0;
}

Test(names, what_computes_is_a_launch_with_a_handle)
{
    const struct plim_handle handle = {0};
    size_t count = 0;
    for (size_t i = 0; i < name_count; i++) {
        if (names[i].how != COMPUTE) continue;
        int64_t before = launches();
        cr_expect(eq(i64, call(&names[i], &handle), 0), "%s", names[i].text);
        cr_expect(eq(i64, launches(), before + 1), "%s", names[i].text);
        cr_expect(eq(i64, call(&names[i], NULL), libraries[names[i].library].no_handle), "%s",
                  names[i].text);
        cr_expect(eq(i64, launches(), before + 1), "%s without a handle", names[i].text);
        count++;
    }
    cr_expect(lt(sz, 0, count));
}

/* --- the generator ---------------------------------------------------------------------------- */

/* Runs make_answers.py on a list of this text; what it says goes to `said`. */
static int generate(const char *list, char *said, size_t size)
{
    char folder[] = "/tmp/plimsoll-names-XXXXXX", path[64], command[4096];
    cr_assert(mkdtemp(folder) != NULL);
    snprintf(path, sizeof(path), "%s/cuda.txt", folder);
    FILE *file = fopen(path, "w");
    fputs(list, file);
    fclose(file);
    snprintf(command, sizeof(command), "cd %s && '%s' '%s' out.c cuda.txt 2>&1", folder,
             PLIM_PYTHON, PLIM_MAKE_ANSWERS);
    FILE *process = popen(command, "r");
    said[fread(said, 1, size - 1, process)] = '\0';
    int status = pclose(process);
    snprintf(command, sizeof(command), "rm -r %s", folder);
    return system(command) ? -1 : status;
}

Test(generator, says_where_a_list_is_wrong)
{
    char said[4096];
    cr_expect(eq(int, generate("# one\ncuFoo\ncuBar compute\n", said, sizeof(said)), 0));
    cr_expect(ne(int, generate("# one\ncuFoo\ncuBar frobnicate\n", said, sizeof(said)), 0));
    cr_expect(strstr(said, "cuda.txt:3: ") != NULL, "%s", said);
    cr_expect(ne(int, generate("cuFoo-Bar\n", said, sizeof(said)), 0));
    cr_expect(strstr(said, "cuda.txt:1: ") != NULL, "%s", said);
}
