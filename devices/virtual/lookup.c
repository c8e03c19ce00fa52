#define _GNU_SOURCE /* dladdr, dlvsym */
#include "lookup.h"
#include "abi.h"
#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* Only where the jump to the C library's dlsym() is written: it has to see the caller's return
 * address, RTLD_NEXT depends on it. */
#if defined(__x86_64__)
#define OLDEST_VERSION "GLIBC_2.2.5"
__asm__(".text\n"
        ".globl dlsym\n"
        ".type dlsym, @function\n"
        "dlsym:\n"
        "    endbr64\n"
        "    pushq %rdi\n"
        "    pushq %rsi\n"
        "    subq $8, %rsp\n"
        "    movq 24(%rsp), %rdx\n"
        "    call plim_lookup_choose\n"
        "    addq $8, %rsp\n"
        "    popq %rsi\n"
        "    popq %rdi\n"
        "    testq %rax, %rax\n"
        "    jne 1f\n"
        "    jmp *plim_lookup_real(%rip)\n"
        "1:  ret\n"
        ".size dlsym, .-dlsym\n");
#elif defined(__aarch64__)
#define OLDEST_VERSION "GLIBC_2.17"
__asm__(".text\n"
        ".globl dlsym\n"
        ".type dlsym, %function\n"
        "dlsym:\n"
        "    hint #34\n" /* bti c */
        "    stp x29, x30, [sp, #-32]!\n"
        "    stp x0, x1, [sp, #16]\n"
        "    mov x29, sp\n"
        "    mov x2, x30\n"
        "    bl plim_lookup_choose\n"
        "    mov x9, x0\n"
        "    ldp x0, x1, [sp, #16]\n"
        "    ldp x29, x30, [sp], #32\n"
        "    cbnz x9, 1f\n"
        "    adrp x9, plim_lookup_real\n"
        "    ldr x9, [x9, :lo12:plim_lookup_real]\n"
        "    br x9\n"
        "1:  mov x0, x9\n"
        "    ret\n"
        ".size dlsym, .-dlsym\n");
#else /* elsewhere a lookup by handle finds the real library, which then finds no GPU */
#define OLDEST_VERSION "GLIBC_2.17"
#endif

typedef void *lookup_function(void *, const char *);
extern lookup_function *plim_lookup_real; /* for the code above */
lookup_function *plim_lookup_real;

/* Beginnings of the names of NVIDIA's libraries, which are told apart so; all of cuDNN's parts are
 * one. */
static const char *const libraries[] = {"libcudart.so", "libcublas.so", "libcublasLt.so",
                                        "libcudnn", "libnccl.so", "libnvidia-ml.so"};
enum { LIBRARIES = sizeof(libraries) / sizeof(libraries[0]), NO_LIBRARY = -1, OURSELVES = -2 };

/* Which of them has this address. */
static int library_at(const void *address)
{
    Dl_info info, self;
    if (!dladdr(address, &info) || !info.dli_fname) return NO_LIBRARY;
    if (dladdr((const void *)&plim_lookup_real, &self) && self.dli_fbase == info.dli_fbase)
        return OURSELVES;
    const char *slash = strrchr(info.dli_fname, '/');
    const char *file = slash ? slash + 1 : info.dli_fname;
    for (int i = 0; i < LIBRARIES; i++)
        if (!strncmp(file, libraries[i], strlen(libraries[i]))) return i;
    return NO_LIBRARY;
}

static void *self_handle(void)
{
    static void *handle;
    Dl_info self;
    if (!handle && dladdr((const void *)&plim_lookup_real, &self))
        handle = dlopen(self.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
    return handle;
}

static bool find_real(void)
{
    if (!plim_lookup_real) {
        void *found = dlvsym(RTLD_NEXT, "dlsym", OLDEST_VERSION);
        memcpy(&plim_lookup_real, &found, sizeof(found));
    }
    return plim_lookup_real;
}

static bool is_nvidias(const char *name)
{
    static const char *const prefixes[] = {"cuda", "cublas", "cudnn", "nccl", "nvml", "__cuda"};
    for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++)
        if (!strncmp(name, prefixes[i], strlen(prefixes[i]))) return true;
    return false;
}

void *plim_lookup_choose(void *handle, const char *name, const void *caller)
{
    if (!find_real()) __builtin_trap(); /* there is no C library */
    if (handle == RTLD_DEFAULT || handle == RTLD_NEXT || !name || !is_nvidias(name)) return NULL;
    int asking = library_at(caller);
    if (asking == OURSELVES) return NULL;
    void *theirs = plim_lookup_real(handle, name);
    int asked = theirs ? library_at(theirs) : NO_LIBRARY;
    if (asked < 0 || asked == asking) return NULL;
    void *self = self_handle();
    void *ours = self ? plim_lookup_real(self, name) : NULL;
    return ours && library_at(ours) == OURSELVES ? ours : NULL;
}
