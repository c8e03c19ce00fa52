/* As much of Criterion as the kernels' tests use, for machines that have none: every test in this
 * process, one after the other. A test ends at the first cr_assert() that fails.
 *
 * Found before the real headers where tests/gpu/plain comes first among the include folders.
 */
#ifndef PLIM_TESTS_GPU_PLAIN_CRITERION_H
#define PLIM_TESTS_GPU_PLAIN_CRITERION_H

#include "autotune/base/status.h"
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

struct plain_suite {
    const char *name;
    void (*init)(void);
    void (*fini)(void);
    struct plain_suite *next;
};

struct plain_test {
    const char *suite, *name;
    void (*run)(void);
    struct plain_test *next;
};

void plain_add_suite(struct plain_suite *suite);
void plain_add_test(struct plain_test *test);

/* In alphabetical order; NULL: there is none. */
const struct plain_test *plain_tests(void);

/* Runs one test with what its suite wants before and after. Returns how many checks failed; `first`
 * says which. */
int plain_run(const struct plain_test *test, char *first, size_t size);

void plain_failed(bool ends, const char *file, int line, const char *condition, const char *fmt,
                  ...) PLIM_PRINTF(5, 6);

#define TestSuite(suite, ...)                                                                      \
    static struct plain_suite suite##_suite = {.name = #suite, __VA_ARGS__};                       \
    __attribute__((constructor)) static void suite##_add(void)                                     \
    {                                                                                              \
        plain_add_suite(&suite##_suite);                                                           \
    }                                                                                              \
    static struct plain_suite suite##_suite

#define Test(suite, name)                                                                          \
    static void suite##_##name(void);                                                              \
    static struct plain_test suite##_##name##_test = {#suite, #name, suite##_##name, NULL};        \
    __attribute__((constructor)) static void suite##_##name##_add(void)                            \
    {                                                                                              \
        plain_add_test(&suite##_##name##_test);                                                    \
    }                                                                                              \
    static void suite##_##name(void)

#define plain_check(ends, condition, ...)                                                          \
    ((condition) ? (void)0 : plain_failed(ends, __FILE__, __LINE__, #condition, " " __VA_ARGS__))
#define cr_assert(...) plain_check(true, __VA_ARGS__)
#define cr_expect(...) plain_check(false, __VA_ARGS__)
#define cr_assert_fail(...) plain_failed(true, __FILE__, __LINE__, "", " " __VA_ARGS__)

/* Criterion's comparisons, whatever the type. */
#define eq(type, a, b) ((a) == (b))
#define lt(type, b, a) ((a) > (b))

#endif
