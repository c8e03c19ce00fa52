/* What choosing by a mask asks for, as PyTorch 2.11 asked its allocator for it on the virtual GPU: x[mask] and
 * masked_scatter() of ones. */
#include "devices/needs/needs.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#define GPU(capability, count, threads) \
    {.compute_capability = (capability), .multiprocessors = (count), .threads_per_multiprocessor = (threads)}
static const struct plim_device_info t4 = GPU(75, 40, 1024), a100 = GPU(80, 108, 2048), a10g = GPU(86, 80, 1536),
                                     ada = GPU(89, 128, 1536), h100 = GPU(90, 132, 2048), b200 = GPU(100, 148, 2048),
                                     rtx5090 = GPU(120, 170, 1536);

Test(needs_mask, places_are_counted_and_written_with_temporaries_of_cub)
{
    static const struct {
        const struct plim_device_info *gpu;
        int64_t items, sum, select;
    } measured[] = {
        {&a100, 126, 1, 1023},           {&a100, 4096, 1, 1023},          {&a100, 4097, 17663, 1023},
        {&a100, 65504, 17663, 1023},     {&a100, 131008, 17663, 1279},    {&a100, 300000, 17663, 2047},
        {&a100, 524288, 17663, 2815},    {&a100, 2097152, 17663, 8191},   {&t4, 4097, 3583, 1023},
        {&t4, 300000, 3583, 4607},       {&t4, 1048576, 3583, 14079},     {&a10g, 4097, 9983, 1023},
        {&a10g, 300000, 9983, 4607},     {&ada, 4097, 15615, 1023},       {&ada, 1048576, 15615, 14079},
        {&h100, 4097, 21503, 1023},      {&h100, 300000, 21503, 1535},    {&h100, 1048576, 21503, 2815},
        {&h100, 100000000, 21503, 190207}, {&b200, 4097, 24063, 1023},    {&b200, 1048576, 24063, 3327},
        {&b200, 100000000, 24063, 228095}, {&rtx5090, 4097, 20735, 1023}, {&rtx5090, 12582912, 20735, 29439},
    };
    for (size_t i = 0; i < sizeof(measured) / sizeof(measured[0]); i++) {
        struct plim_need needs[PLIM_NONZERO_NEEDS];
        plim_nonzero_needs(measured[i].gpu, measured[i].items, measured[i].items, 2, needs);
        cr_expect(eq(i64, needs[0].bytes, 4));
        cr_expect(eq(i64, needs[1].bytes, measured[i].sum), "%zu", i);
        cr_expect(eq(i64, needs[PLIM_NONZERO_PLACES].bytes, 16 * measured[i].items));
        cr_expect(eq(i64, needs[3].bytes, measured[i].select), "%zu", i);
    }
}

Test(needs_mask, what_is_scattered_is_counted_by_a_scan)
{
    static const struct {
        int64_t items, scan;
    } measured[] = {{126, 1279}, {8188, 1279}, {16376, 1535}, {131008, 3583}, {524288, 10495}, {2097152, 38655}};
    for (size_t i = 0; i < sizeof(measured) / sizeof(measured[0]); i++) {
        struct plim_need needs[PLIM_MASKED_SCATTER_NEEDS];
        plim_masked_scatter_needs(measured[i].items, needs);
        cr_expect(eq(i64, needs[0].bytes, 8 * measured[i].items));
        cr_expect(eq(i64, needs[1].bytes, measured[i].scan));
    }
}
