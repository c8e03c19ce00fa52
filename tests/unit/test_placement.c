#include "devices/cuda/placement.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

/* Nothing is read or written there. */
static struct plim_array block(uint64_t address, int64_t bytes)
{
    return (struct plim_array){
        .data = address, .shape = {bytes}, .stride = {1}, .ndim = 1, .dtype = PLIM_U8};
}

Test(placement, pieces_share_a_block_by_alignment)
{
    struct plim_array space = block(0x10000, 1024);
    struct plim_op op = {.n_scratch = 1, .scratch = {&space}};
    struct plim_piece p[3] = {{.bytes = 96, .alignment = 16},
                              {.bytes = 256, .alignment = 256},
                              {.bytes = 672, .alignment = 16}};
    cr_assert(plim_place(&op, p, 3));
    cr_expect(eq(u64, p[1].address, space.data));
    cr_expect(eq(u64, p[0].address, space.data + 256));
    cr_expect(eq(u64, p[2].address, space.data + 352));
    p[0].bytes = 97;
    cr_expect(not(plim_place(&op, p, 3)));
}

Test(placement, each_takes_the_block_that_it_fills_best)
{
    struct plim_array blocks[3] = {block(0x10000, 512), block(0x20000, 4096), block(0x30000, 1024)};
    struct plim_op op = {.n_scratch = 3, .scratch = {&blocks[0], &blocks[1], &blocks[2]}};
    struct plim_piece p[3] = {{.bytes = 512, .alignment = 16},
                              {.bytes = 1000, .alignment = 16},
                              {.bytes = 0, .alignment = 16}};
    cr_assert(plim_place(&op, p, 3));
    cr_expect(eq(u64, p[0].address, blocks[0].data));
    cr_expect(eq(u64, p[1].address, blocks[2].data));
    cr_expect(eq(u64, p[2].address, 0), "nothing takes no place");
}
