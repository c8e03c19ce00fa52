/* Kernels of PyTorch that move values: launches as they were recorded, with the names of PyTorch 2.11 for CUDA 13
 * and arguments laid out as there. */
#include "autotune/base/clock.h"
#include "values_fixture.h"

struct metadata {
    uintptr_t at[128];
    uint32_t offset[128], size[128], elements[128];
    bool is_contiguous[128];
    uint32_t strides[8];
};

/* In vectors of two. */
Test(cat, joins)
{
    static const char name[] =
        "_ZN2at6native40_GLOBAL__N__0f1a8107_8_Shape_cu_49f7391c30CatArrayBatchedCopy_"
        "vectorizedINS1_10OpaqueTypeILj8EEEjLi2E"
        "Li128ELi1ELi16ELi2EEEvPcNS1_25CatArrInputTensorMetadataIT_T0_XT2_EXT3_EEENS1_"
        "16TensorSizeStrideIS8_Lj4EEEiS8_";
    int along = 1;
    uint32_t stride = 1, out_layout[8] = {2, 2, 0, 0, 2, 1, 0, 0};
    begin();
    struct metadata inputs = {.at = {PUT(512, int64_t, 1, 2, 3, 4), PUT(1024, int64_t, 5, 6, 7, 8)},
                              .offset = {0, 2},
                              .size = {2, 2},
                              .elements = {4, 4}};
    uintptr_t to = memory;
    plim_shadow_spoil(memory + 1024, 8, "other");
    cr_assert(launch_grid(name, 2, (void *[]){&to, &inputs, out_layout, &along, &stride}));
    expect_numbers(memory, PLIM_INT64, 8, "1 2 ? 6 3 4 7 8");
}

struct indexing {
    int32_t dimensions;
    uint32_t sizes[25][3], strides[25][3];
    uintptr_t out, in;
    int64_t count;
    uintptr_t indices[25];
    int64_t index_sizes[25], index_strides[25];
};

#define INDEX                                                                                      \
    "_ZN2at6native24index_elementwise_kernelILi128ELi4EZNS0_16gpu_index_kernelIZNS0_17index_"      \
    "kernel_implINS0_10OpaqueTypeILi8EEEEEvRNS_"                                                   \
    "18TensorIteratorBaseEN3c108ArrayRefIlEESA_EUlPcPKclE_EEvS7_SA_SA_RKT_bEUliE_EEvlT1_"

/* Three numbers of three, by as many indices. */
static struct indexing three_of_three(uintptr_t out, uintptr_t in, uintptr_t indices)
{
    return (struct indexing){.dimensions = 1,
                             .sizes = {{3}},
                             .strides = {{8, 0, 8}},
                             .out = out,
                             .in = in,
                             .count = 1,
                             .indices = {indices},
                             .index_sizes = {3},
                             .index_strides = {8}};
}

Test(index, takes_rows)
{
    int64_t count = 3;
    begin();
    struct indexing closure = three_of_three(memory, PUT(512, int64_t, 10, 20, 30), PUT(1024, int64_t, 2, -3, 1));
    plim_shadow_spoil(memory + 1024 + 16, 8, "other");
    cr_assert(LAUNCH(INDEX, &count, &closure));
    expect_numbers(memory, PLIM_INT64, 3, "30 10 ?");
}

/* Two of three columns of each row, in the order of the indices. */
Test(index, goes_through_dimensions)
{
    int64_t count = 6;
    begin();
    struct indexing closure = {.dimensions = 2,
                               .sizes = {{2}, {3}},
                               .strides = {{8, 8, 0}, {16, 0, 8}},
                               .out = memory,
                               .count = 1,
                               .in = PUT(512, int64_t, 10, 11, 12, 20, 21, 22, 30, 31, 32),
                               .indices = {PUT(1024, int64_t, 2, 0, 1)},
                               .index_sizes = {3},
                               .index_strides = {24}};
    cr_assert(LAUNCH(INDEX, &count, &closure));
    expect_numbers(memory, PLIM_INT64, 6, "30 31 10 11 20 21");
}

/* Values that were known become unknown where they are overwritten, and stay known next to it. */
Test(index, of_unknown_rows_nothing_is_known)
{
    int64_t count = 3;
    begin();
    struct indexing closure =
        three_of_three(PUT(0, int64_t, 1, 2, 3, 4), memory + 512, PUT(1024, int64_t, 2, 0, 1));
    plim_shadow_spoil(memory + 512, 24, "other");
    cr_assert(LAUNCH(INDEX, &count, &closure));
    expect_numbers(memory, PLIM_INT64, 4, "? ? ? 4");
}

struct scattering {
    int32_t dimensions;
    uint32_t sizes[25][3], strides[25][2];
    uintptr_t indices;
    int64_t size;
    uintptr_t reference, self;
    int64_t stride, numbers, number;
};

#define SCATTER                                                                                    \
    "_ZN2at6native34_scatter_gather_elementwise_kernelILi128ELi8EZNS0_34_cuda_scatter_fill_"       \
    "internal_kernelINS0_10OpaqueTypeILi8EEElEclINS0_12TensorAssignEEEvRNS_14TensorIteratorES4_"   \
    "lllRKT_EUliE_EEviT1_"

Test(scatter, puts_a_number_where_indices_say)
{
    int count = 2;
    begin();
    struct scattering closure = {.dimensions = 1,
                                 .sizes = {{2}},
                                 .strides = {{0, 8}},
                                 .indices = PUT(1024, int64_t, 2, 0),
                                 .size = 3,
                                 .self = PUT(0, int64_t, 0, 0, 0),
                                 .stride = 1,
                                 .numbers = 3,
                                 .number = 5};
    cr_assert(LAUNCH(SCATTER, &count, &closure));
    expect_numbers(memory, PLIM_INT64, 3, "5 0 5");
    plim_shadow_spoil(memory + 1024, 8, "other");
    cr_assert(LAUNCH(SCATTER, &count, &closure));
    expect_numbers(memory, PLIM_INT64, 3, "? ? ?"); /* it may have been any of them */
}

#define GATHER "_ZN2at6native24vectorized_gather_kernelILi16EiEEvPcS2_PT0_illllb"

Test(gather, takes_rows_by_indices)
{
    int count = 4;
    int64_t slice = 8, size = 3, stride = 8;
    bool wraps = true;
    begin();
    uintptr_t to = memory, from = PUT(512, int64_t, 7, 8, 9), indices = PUT(1024, int, 2, -3, 5, 1);
    cr_assert(LAUNCH(GATHER, &to, &from, &indices, &count, &slice, &size, &stride, &stride, &wraps));
    expect_numbers(memory, PLIM_INT64, 4, "9 7 ? 8");
    plim_shadow_spoil(memory + 1024, 4, "other");
    cr_assert(LAUNCH(GATHER, &to, &from, &indices, &count, &slice, &size, &stride, &stride, &wraps));
    expect_numbers(memory, PLIM_INT64, 4, "? 7 ? 8");
}

/* As an anchor of a detector takes its box: a range of known memory for each took minutes. */
Test(gather, many_rows_are_one_write)
{
    enum { ROWS = 60000 };
    static int rows[ROWS];
    int count = ROWS;
    int64_t slice = 8, size = 2, stride = 8;
    bool wraps = true;
    begin();
    for (int i = 0; i < ROWS; i++) rows[i] = i % 2;
    uintptr_t to = memory, from = PUT(900 << 10, int64_t, 7, 8),
              indices = put(512 << 10, rows, sizeof(rows));
    double start = plim_clock_seconds();
    for (int i = 0; i < 2; i++)
        cr_assert(
            LAUNCH(GATHER, &to, &from, &indices, &count, &slice, &size, &stride, &stride, &wraps));
    cr_expect(lt(dbl, plim_clock_seconds() - start, 5.0));
    expect_numbers(memory + (ROWS - 2) * 8, PLIM_INT64, 2, "7 8");
}

Test(shape, rolls)
{
    int64_t count = 4, dimension = 0, start = 3, size = 4, stride = 1, dimensions = 1;
    begin();
    uintptr_t to = memory, from = PUT(512, int64_t, 1, 2, 3, 4);
    cr_assert(LAUNCH("_ZN2at6native16roll_cuda_kernelIlEEvPKT_PS2_llllll", &from, &to, &count,
                     &dimension, &start, &size, &stride, &dimensions));
    expect_numbers(memory, PLIM_INT64, 4, "4 1 2 3");
}
