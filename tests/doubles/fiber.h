/* Fibers: stacks of their own that one host thread switches between. Every fiber runs `body`
 * forever; it leaves by fiber_leave() and goes on there at the next fiber_enter(). Switching is a
 * few instructions on x86-64, ucontext elsewhere; AddressSanitizer is told. */
#ifndef PLIM_TESTS_DOUBLES_FIBER_H
#define PLIM_TESTS_DOUBLES_FIBER_H

struct fiber;

struct fiber *fiber_create(void (*body)());

/* From outside of all fibers: runs `fiber` until it leaves. */
void fiber_enter(struct fiber *fiber);

/* From within the fiber that runs: goes on after its fiber_enter(). */
void fiber_leave(struct fiber *fiber);

#endif
