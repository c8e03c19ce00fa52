/* Checks of the programs that run on the virtual GPU, C and C++: one line each, of which the first that
 * fails ends the program. */
#ifndef PLIM_TESTS_VIRTUAL_CHECK_H
#define PLIM_TESTS_VIRTUAL_CHECK_H

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static inline void check(int holds, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    printf("%s: ", holds ? "ok" : "FAILED");
    vprintf(fmt, args);
    printf("\n");
    fflush(stdout);
    va_end(args);
    if (!holds) exit(1);
}

static inline void expect_number(long long value, long long expected, const char *what)
{
    if (value == expected) check(1, "%s is %lld", what, value);
    else check(0, "%s: expected %lld, was %lld", what, expected, value);
}
#define EQUAL(value, expected) expect_number((long long)(value), (long long)(expected), #value)

#endif
