#define _GNU_SOURCE /* dlvsym */
#include "dlsym.h"
#include <dlfcn.h>
#include <string.h>

/* Supported only on architectures for which the tail call to the C library's dlsym() is written in assembly: RTLD_NEXT
 * depends on the return address, so it must see the caller's. */
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
        "    call plim_dlsym_choose\n"
        "    addq $8, %rsp\n"
        "    popq %rsi\n"
        "    popq %rdi\n"
        "    testq %rax, %rax\n"
        "    jne 1f\n"
        "    jmp *plim_dlsym_real(%rip)\n"
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
        "    bl plim_dlsym_choose\n"
        "    mov x9, x0\n"
        "    ldp x0, x1, [sp, #16]\n"
        "    ldp x29, x30, [sp], #32\n"
        "    cbnz x9, 1f\n"
        "    adrp x9, plim_dlsym_real\n"
        "    ldr x9, [x9, :lo12:plim_dlsym_real]\n"
        "    br x9\n"
        "1:  mov x0, x9\n"
        "    ret\n"
        ".size dlsym, .-dlsym\n");
#else /* a lookup by handle then finds the real library, which finds no GPU */
#define OLDEST_VERSION "GLIBC_2.17"
#endif

void *(*plim_dlsym_real)(void *, const char *);

void plim_dlsym_prepare(void)
{
    if (plim_dlsym_real) return;
    void *found = dlvsym(RTLD_NEXT, "dlsym", OLDEST_VERSION);
    memcpy(&plim_dlsym_real, &found, sizeof(found));
    if (!found) __builtin_trap(); /* no C library */
}
