/* What is a leak of a worker process, and what it has only loaded. */
#include "autotune/run/worker/leaks.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

enum { MAY_LEAK = 16, MAY_LOAD = 1000 };

static struct plim_leaks leaks;

static void setup(void)
{
    leaks = (struct plim_leaks){.may_leak_bytes = MAY_LEAK, .may_load_bytes = MAY_LOAD};
}

static void finish(void)
{
    plim_leaks_finish(&leaks);
}

TestSuite(leaks, .init = setup, .fini = finish);

/* Is the process suspect after a run of this micro-batch that so many bytes are missing after? */
static bool is_suspect_after(int64_t micro_batch, int64_t missing_bytes)
{
    struct plim_setting setting = {.micro_batch = micro_batch, .accumulation = 1};
    cr_assert(eq(int, plim_leaks_add(&leaks, &setting, missing_bytes), PLIM_OK));
    return plim_leaks_are_too_many(&leaks);
}

Test(leaks, what_every_new_setting_loads_is_none)
{
    for (int64_t batch = 1; batch <= 10; batch++)
        cr_expect(eq(int, is_suspect_after(batch, MAY_LOAD / 10), false), "batch %d", (int)batch);
    cr_expect(is_suspect_after(11, 1), "more than any library loads");
}

Test(leaks, what_is_missing_after_a_setting_that_had_run_is_one)
{
    cr_expect(eq(int, is_suspect_after(1, 500), false));
    cr_expect(eq(int, is_suspect_after(1, MAY_LEAK), false));
    cr_expect(eq(int, is_suspect_after(2, 100), false), "another setting loads its own");
    cr_expect(is_suspect_after(1, 1));
}

Test(leaks, memory_that_comes_back_is_taken_off)
{
    cr_expect(eq(int, is_suspect_after(1, 0), false));
    cr_expect(is_suspect_after(1, MAY_LEAK + 1));
    cr_expect(eq(int, is_suspect_after(1, -1), false));
}
