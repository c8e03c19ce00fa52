/* What the driver's results mean. The list comes from <cuda.h> (list_cuda_results.py). */
#include "devices/cuda/driver.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

/* Every result in the header, and whether its comment says that the process must end. */
static const struct {
    CUresult result;
    const char *name;
    bool has_to_end;
} results[] = {
#include "cuda_results.inc"
};

enum { COUNT = sizeof(results) / sizeof(results[0]) };

Test(cuda_results, every_result_is_classified_on_purpose)
{
    cr_assert(lt(int, 90, (int)COUNT)); /* 12.4 has 97 */
    for (size_t i = 0; i < COUNT; i++)
        cr_expect(
            eq(int, (int)plim_cuda_meaning_of(results[i].result)->result, (int)results[i].result),
            "%s", results[i].name);
}

Test(cuda_results, only_success_is_fine)
{
    for (size_t i = 0; i < COUNT; i++)
        cr_expect(eq(int, plim_cuda_meaning_of(results[i].result)->status == PLIM_OK,
                     results[i].result == CUDA_SUCCESS),
                  "%s", results[i].name);
}

Test(cuda_results, what_the_header_calls_the_end_of_the_process_is_lost)
{
    size_t seen = 0;
    for (size_t i = 0; i < COUNT; i++) {
        if (!results[i].has_to_end) continue;
        seen++;
        cr_expect(eq(int, plim_cuda_meaning_of(results[i].result)->status, PLIM_LOST), "%s",
                  results[i].name);
    }
    cr_expect(ge(sz, seen, 10));
}

Test(cuda_results, an_unknown_result_is_an_error)
{
    cr_expect(eq(int, plim_cuda_meaning_of((CUresult)12345)->status, PLIM_INTERNAL));
}
