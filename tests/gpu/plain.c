#include <criterion/criterion.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

static struct plain_suite *suites;
static struct plain_test *tests;

static jmp_buf end_of_test;
static int failures;
static char *message;
static size_t message_size;

void plain_add_suite(struct plain_suite *suite)
{
    suite->next = suites;
    suites = suite;
}

static bool comes_before(const struct plain_test *a, const struct plain_test *b)
{
    int suite = strcmp(a->suite, b->suite);
    return suite < 0 || (suite == 0 && strcmp(a->name, b->name) < 0);
}

void plain_add_test(struct plain_test *test)
{
    struct plain_test **at = &tests;
    while (*at && comes_before(*at, test)) at = &(*at)->next;
    test->next = *at;
    *at = test;
}

const struct plain_test *plain_tests(void)
{
    return tests;
}

void plain_failed(bool ends, const char *file, int line, const char *condition, const char *fmt,
                  ...)
{
    if (!message) { /* no test is running */
        fprintf(stderr, "%s:%d: failed: %s\n", file, line, condition);
        abort();
    }
    if (failures++ == 0) {
        int used = snprintf(message, message_size, "%s:%d: %.60s:", file, line, condition);
        va_list args;
        va_start(args, fmt);
        if (used > 0 && (size_t)used < message_size)
            vsnprintf(message + used, message_size - (size_t)used, fmt, args);
        va_end(args);
    }
    if (ends) longjmp(end_of_test, 1);
}

static const struct plain_suite *suite_of(const struct plain_test *test)
{
    const struct plain_suite *suite = suites;
    while (suite && strcmp(suite->name, test->suite) != 0) suite = suite->next;
    return suite;
}

/* Apart from what surrounds it, so that nothing of that is in registers when a test jumps out. */
static void run_until_it_fails(const struct plain_test *test)
{
    if (!setjmp(end_of_test)) test->run();
}

int plain_run(const struct plain_test *test, char *first, size_t size)
{
    const struct plain_suite *suite = suite_of(test);
    failures = 0;
    message = first;
    message_size = size;
    first[0] = '\0';
    if (suite && suite->init) suite->init();
    run_until_it_fails(test);
    if (suite && suite->fini) suite->fini();
    return failures;
}
