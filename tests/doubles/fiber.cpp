#include "doubles/fiber.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#if defined __SANITIZE_ADDRESS__
#define FIBER_ASAN 1
#elif defined __has_feature
#if __has_feature(address_sanitizer)
#define FIBER_ASAN 1
#endif
#endif
#ifdef FIBER_ASAN
#include <sanitizer/common_interface_defs.h>
#endif
#ifndef __x86_64__
#include <ucontext.h>
#endif

namespace
{

/* Pages that are never touched cost nothing; the lowest one catches an overflow. */
constexpr size_t STACK_BYTES = 256 * 1024, GUARD_BYTES = 4096;

#ifdef __x86_64__
using context = void *;
#else
using context = ucontext_t;
#endif

context outside;
#ifdef FIBER_ASAN
void *outside_fake_stack;
const void *outside_stack;
size_t outside_stack_bytes;
#endif

} // namespace

struct fiber {
    context at;
    char *stack;
    void (*body)();
    void *fake_stack;
};

static struct fiber *entered; /* for the first steps of a new fiber */

#ifdef __x86_64__
/* Keeps what the System V ABI says a call preserves on the stack that is left. */
extern "C" void fiber_switch(void **from, void *to);
asm(".text\n"
    ".globl fiber_switch\n"
    ".type fiber_switch, @function\n"
    "fiber_switch:\n"
    "    pushq %rbp\n"
    "    pushq %rbx\n"
    "    pushq %r12\n"
    "    pushq %r13\n"
    "    pushq %r14\n"
    "    pushq %r15\n"
    "    movq %rsp, (%rdi)\n"
    "    movq %rsi, %rsp\n"
    "    popq %r15\n"
    "    popq %r14\n"
    "    popq %r13\n"
    "    popq %r12\n"
    "    popq %rbx\n"
    "    popq %rbp\n"
    "    ret\n"
    ".size fiber_switch, .-fiber_switch\n");
#else
static void fiber_switch(context *from, context &to)
{
    swapcontext(from, &to);
}
#endif

static void arrive_in_fiber(struct fiber *fiber)
{
#ifdef FIBER_ASAN
    __sanitizer_finish_switch_fiber(fiber->fake_stack, &outside_stack, &outside_stack_bytes);
#else
    (void)fiber;
#endif
}

static void fiber_main()
{
    arrive_in_fiber(entered);
    entered->body();
    abort(); /* bodies do not return */
}

static void prepare(struct fiber *fiber)
{
#ifdef __x86_64__
    /* What fiber_switch() pops: six registers and an address to return to, after which the stack
     * is aligned as at the entry of a function. */
    void **top = reinterpret_cast<void **>(fiber->stack + STACK_BYTES) - 2;
    *top = reinterpret_cast<void *>(fiber_main);
    fiber->at = top - 6;
#else
    getcontext(&fiber->at);
    fiber->at.uc_stack.ss_sp = fiber->stack;
    fiber->at.uc_stack.ss_size = STACK_BYTES;
    fiber->at.uc_link = nullptr;
    makecontext(&fiber->at, fiber_main, 0);
#endif
}

struct fiber *fiber_create(void (*body)())
{
    struct fiber *fiber = static_cast<struct fiber *>(calloc(1, sizeof *fiber));
    void *memory = mmap(nullptr, GUARD_BYTES + STACK_BYTES, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (!fiber || memory == MAP_FAILED || mprotect(memory, GUARD_BYTES, PROT_NONE) != 0) {
        fprintf(stderr, "emulator: no memory for a fiber\n");
        abort();
    }
    fiber->stack = static_cast<char *>(memory) + GUARD_BYTES;
    fiber->body = body;
    prepare(fiber);
    return fiber;
}

void fiber_enter(struct fiber *fiber)
{
    entered = fiber;
#ifdef FIBER_ASAN
    __sanitizer_start_switch_fiber(&outside_fake_stack, fiber->stack, STACK_BYTES);
#endif
    fiber_switch(&outside, fiber->at);
#ifdef FIBER_ASAN
    __sanitizer_finish_switch_fiber(outside_fake_stack, nullptr, nullptr);
#endif
}

void fiber_leave(struct fiber *fiber)
{
#ifdef FIBER_ASAN
    __sanitizer_start_switch_fiber(&fiber->fake_stack, outside_stack, outside_stack_bytes);
#endif
    fiber_switch(&fiber->at, outside);
    arrive_in_fiber(fiber);
}
