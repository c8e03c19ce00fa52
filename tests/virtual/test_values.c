/* Kernels of PyTorch and CUB on values that are known: launches as they were recorded, with the
 * names of PyTorch 2.11 for CUDA 13 and arguments laid out as there. Those that move them are in
 * test_values_moving.c. */
#include "devices/virtual/work/writes.h"
#include "values_fixture.h"
#include <math.h>

#define ELEMENTWISE "_ZN2at6native29vectorized_elementwise_kernelILi4E"
#define ARRAY(n) "St5arrayIPcLm" #n "EEEEviT0_T1_"

/* --- element by element ----------------------------------------------------------------------- */

Test(elementwise, fills)
{
    int count = 5;
    bool number = true;
    begin();
    uintptr_t data[1] = {memory};
    cr_assert(LAUNCH(ELEMENTWISE "NS0_11FillFunctorIbEE" ARRAY(1), &count, &number, data));
    expect_numbers(memory, PLIM_BOOL, 6, "1 1 1 1 1 ?");
}

Test(elementwise, compares_with_a_number)
{
    static const char name[] =
        ELEMENTWISE "ZNS0_21compare_scalar_kernelIlEEvRNS_18TensorIteratorBaseENS0_50_GLOBAL__N__"
                    "e50ef81d_17_CompareKernels_cu_8f1b29aa6OpTypeET_EUllE_" ARRAY(2);
    struct {
        int operation;
        int64_t number;
    } state = {1 /* greater */, 2};
    int count = 4;
    begin();
    uintptr_t data[2] = {memory, PUT(512, int64_t, 1, 2, 3, 4)};
    plim_shadow_spoil(memory + 512 + 24, 8, "other");
    cr_assert(LAUNCH(name, &count, &state, data));
    expect_numbers(memory, PLIM_BOOL, 4, "0 0 1 ?");
}

/* One side is enough to know what an "or" gives. */
Test(elementwise, knows_more_than_its_arguments)
{
    static const char name[] =
        ELEMENTWISE "NS0_13BinaryFunctorIbbbNS0_16BitwiseOrFunctorIbEEEE" ARRAY(3);
    int count = 3;
    char state = 0;
    begin();
    uintptr_t data[3] = {memory, PUT(512, bool, 1, 0, 1), memory + 1024};
    plim_shadow_spoil(memory + 1024, 3, "other");
    cr_assert(LAUNCH(name, &count, &state, data));
    expect_numbers(memory, PLIM_BOOL, 3, "1 ? 1");
}

Test(elementwise, chooses_and_converts)
{
    static const char name[] =
        "_ZN2at6native27unrolled_elementwise_kernelIZZZNS0_49_GLOBAL__N__d2ba64fb_16_TensorCompare_"
        "cu_71e06f4e17where_kernel_implERNS_"
        "14TensorIteratorEENKUlvE_clEvENKUlvE6_clEvEUlbllE_"
        "St5arrayIPcLm4EELi4E23TrivialOffsetCalculatorILi3EjESB_ILi1EjENS0_6memory"
        "12LoadWithCastILi3EEENSE_13StoreWithCastILi1EEEEEviT_T0_T2_T3_T4_T5_";
    int count = 3;
    char nothing = 0;
    const int8_t loads[3] = {PLIM_BOOL, PLIM_INT32, PLIM_INT64}, stores[1] = {PLIM_FLOAT};
    begin();
    uintptr_t data[4] = {memory, PUT(512, bool, 1, 0, 1), PUT(1024, int32_t, -1, -2, -3),
                         PUT(1536, int64_t, 10, 20, 30)};
    plim_shadow_spoil(memory + 512 + 2, 1, "other");
    cr_assert(
        LAUNCH(name, &count, &nothing, data, &nothing, &nothing, (void *)loads, (void *)stores));
    expect_numbers(memory, PLIM_FLOAT, 3, "-1 20 ?");
}

struct strided {
    int32_t dimensions;
    uint32_t sizes[25][3], strides[25][3];
    uintptr_t data[3];
    int64_t alpha;
};

/* A column and a row: every sum. */
Test(elementwise, adds_with_strides)
{
    static const char name[] = "_ZN2at6native18elementwise_kernelILi128ELi2EZNS0_22gpu_kernel_impl_"
                               "nocastINS0_15CUDAFunctor_addIlEEEEvRNS_"
                               "18TensorIteratorBaseERKT_EUliE_EEviT1_";
    int count = 6;
    begin();
    struct strided closure = {
        .dimensions = 2,
        .sizes = {{3}, {2}},
        .strides = {{8, 8, 0}, {24, 0, 8}},
        .alpha = 10,
        .data = {memory, PUT(512, int64_t, 1, 2, 3), PUT(1024, int64_t, 4, 5)}};
    cr_assert(LAUNCH(name, &count, &closure));
    expect_numbers(memory, PLIM_INT64, 6, "41 42 43 51 52 53");
    closure.sizes[0][0] = 4; /* so many elements are not asked for */
    cr_expect(not(LAUNCH(name, &count, &closure)));
}

/* Of a transposed operand each element has a sector of its own; of rows, and of one number for all, none has. */
Test(elementwise, jumps_where_neighbours_lie_apart)
{
    static const char name[] = "_ZN2at6native18elementwise_kernelILi128ELi2EZNS0_22gpu_kernel_impl_"
                               "nocastINS0_15CUDAFunctor_addIlEEEEvRNS_"
                               "18TensorIteratorBaseERKT_EUliE_EEviT1_";
    const struct gpu_dim3 grid = {1, 1, 1};
    int count = 60;
    begin();
    struct strided closure = {.dimensions = 2,
                              .sizes = {{6}, {10}},
                              .strides = {{8, 8, 0}, {48, 56, 0}},
                              .data = {memory, memory + 1024, memory + 2048}};
    void *arguments[] = {&count, &closure};
    char *text = plim_signature_text(name);
    struct plim_plan *plan = plim_family_plan(name, text);
    cr_expect(eq(i64, plim_family_jumps(plan, &grid, arguments), 0));
    closure.strides[0][1] = 80, closure.strides[1][1] = 8;
    cr_expect(eq(i64, plim_family_jumps(plan, &grid, arguments), 60 * 32));
    free(plan);
    free(text);
}

/* Which types are converted stands behind a function that is not known: all of the output's block is spoilt, and none
 * of those whose addresses are left over behind the dimensions that there are. */
Test(elementwise, of_what_is_left_over_nothing_is_spoilt)
{
    static const char name[] =
        "_ZN2at6native18elementwise_kernelILi128ELi4EZNS0_15gpu_kernel_implIZZZNS0_51_GLOBAL__N__b1108092_12_PowKernel_"
        "cu_ef1a7132_2138424pow_tensor_tensor_kernelERNS_18TensorIteratorBaseEENKUlvE_clEvENKUlvE5_clEvEUlffE_EEvS5_"
        "RKT_EUliE_EEviT1_";
    int count = 2;
    begin();
    for (size_t i = 0; i < 4; i++) plim_block_allocated(memory + i * 512, 512);
    struct strided closure = {
        .dimensions = 1,
        .sizes = {{2}},
        .strides = {{4, 4, 0}},
        .data = {PUT(0, float, 7, 7), PUT(512, float, 1, 2), PUT(1024, float, 3)}};
    uintptr_t other = PUT(1536, float, 5);
    memcpy(closure.strides[20], &other, sizeof(other));
    cr_assert(LAUNCH(name, &count, &closure));
    expect_numbers(memory, PLIM_FLOAT, 2, "? ?");
    expect_numbers(memory + 512, PLIM_FLOAT, 2, "1 2");
    expect_numbers(other, PLIM_FLOAT, 1, "5");
}

/* isneginf gives booleans, which its name does not say: no more is spoilt than the block has. */
Test(elementwise, of_an_unknown_type_no_more_is_spoilt_than_the_block)
{
    static const char name[] = ELEMENTWISE
        "ZZZNS0_49_GLOBAL__N__d2ba64fb_16_TensorCompare_cu_71e06f4e20isneginf_kernel_implERNS_"
        "18TensorIteratorBaseEENKUlvE_clEvENKUlvE0_clEvEUlfE_" ARRAY(2);
    int count = 512;
    char nothing = 0;
    begin();
    for (size_t i = 0; i < 2; i++) plim_block_allocated(memory + i * 512, 512);
    plim_block_allocated(memory + 4096, 2048);
    uintptr_t data[2] = {PUT(0, bool, true, true), memory + 4096}, other = PUT(512, float, 5);
    cr_assert(LAUNCH(name, &count, &nothing, data));
    expect_numbers(memory, PLIM_BOOL, 2, "? ?");
    expect_numbers(other, PLIM_FLOAT, 1, "5");
}

/* x == x of learned numbers. */
Test(elementwise, learned_numbers_are_taken_to_be_finite)
{
    static const char name[] =
        ELEMENTWISE "NS0_13BinaryFunctorIffbNS0_51_GLOBAL__N__28ce311f_18_CompareEQKernel_cu_"
                    "d8008c9616CompareEqFunctorIfEEEE" ARRAY(3);
    int count = 3, equal = 0;
    begin();
    plim_shadow_spoil(memory + 512, 8, "learns");
    uintptr_t data[3] = {memory, memory + 512, memory + 512};
    cr_assert(LAUNCH(name, &count, &equal, data));
    expect_numbers(memory, PLIM_BOOL, 3, "1! 1! ?");
}

/* A function that is not known: its output is. */
Test(elementwise, what_is_not_worked_out_is_unknown)
{
    static const char name[] = ELEMENTWISE
        "ZZZNS0_15exp_kernel_cudaERNS_18TensorIteratorBaseEENKUlvE0_clEvENKUlvE0_clEvEUlfE_" ARRAY(
            2);
    int count = 2;
    char nothing = 0;
    begin();
    uintptr_t data[2] = {PUT(0, float, 7, 7, 7), PUT(512, float, 0, 1)};
    cr_assert(LAUNCH(name, &count, &nothing, data));
    expect_numbers(memory, PLIM_FLOAT, 3, "? ? 7");
}

Test(range, counts)
{
    static const char name[] =
        "_ZN50_GLOBAL__N__fa15d16e_17_RangeFactories_cu_38772b0829elementwise_kernel_with_"
        "indexIiZZZN2at6native15arange_cuda_outERKN3c10"
        "6ScalarES6_S6_RNS1_6TensorEENKUlvE_clEvENKUlvE2_clEvEUllE_EEvT_T0_PN15function_traitsISD_"
        "E11result_typeE";
    int count = 4;
    int64_t state[2] = {3, 2};
    begin();
    cr_assert(LAUNCH(name, &count, state, &memory));
    expect_numbers(memory, PLIM_INT64, 5, "3 5 7 9 ?");
}

/* --- many to one ------------------------------------------------------------------------------ */

struct reduction {
    uint64_t operation, identity;
    int32_t element_bytes, inputs, outputs, configuration[13];
    struct {
        int32_t dimensions;
        uint32_t sizes[25][3], strides[25];
    } in;
    struct {
        int32_t dimensions;
        uint32_t sizes[25][3], strides[25][2];
    } out;
    uintptr_t from, to[2], buffers[3];
    int64_t base;
    bool accumulates, is_final;
    int32_t outputs_more;
};

#define SUM                                                                                        \
    "_ZN2at6native13reduce_kernelILi128ELi4ENS0_8ReduceOpIlNS0_14func_wrapper_tIlZNS0_11sum_"      \
    "functorIlllEclERNS_14TensorIteratorEEUlllE_EEjlLi4ELi4EEEEEvT1_"
#define ALL                                                                                        \
    "_ZN2at6native13reduce_kernelILi512ELi1ENS0_8ReduceOpIbNS0_14func_wrapper_tIbZZZNS0_15and_"    \
    "kernel_cudaERNS_14TensorIteratorEENKUlvE_clEvENKUlvE10_clEvEUlbbE_EEjbLi4ELi4EEEEEvT1_"

/* The rows of a matrix of 2 x 3, whose elements have so many bytes. */
static struct reduction rows_of(uintptr_t to, uintptr_t from, uint32_t bytes)
{
    return (struct reduction){.element_bytes = (int32_t)bytes,
                              .inputs = 3,
                              .outputs = 2,
                              .in = {1, {{3}}, {bytes}},
                              .out = {1, {{2}}, {{bytes, 3 * bytes}}},
                              .from = from,
                              .to = {to},
                              .is_final = true};
}

Test(reduce, sums_rows)
{
    begin();
    struct reduction r = rows_of(memory, PUT(512, int64_t, 1, 2, 3, 4, 5, 6), 8);
    cr_assert(LAUNCH(SUM, &r));
    expect_numbers(memory, PLIM_INT64, 2, "6 15");
    plim_shadow_spoil(memory + 512, 8, "other");
    cr_assert(LAUNCH(SUM, &r));
    expect_numbers(memory, PLIM_INT64, 2, "? 15");
    r.accumulates = true; /* one part of several */
    cr_assert(LAUNCH(SUM, &r));
    expect_numbers(memory, PLIM_INT64, 2, "? ?");
}

/* One that is false is enough. The identity of a bool is a byte, behind an operation without data.
 */
Test(reduce, all_of_some_unknown)
{
    char argument[sizeof(struct reduction)];
    begin();
    struct reduction r = rows_of(memory, PUT(512, bool, 1, 1, 0, 1, 1, 1), 1);
    plim_shadow_spoil(memory + 512, 1, "other");
    plim_shadow_spoil(memory + 515, 1, "other");
    size_t calculators =
        offsetof(struct reduction, from) - 4 - offsetof(struct reduction, element_bytes);
    memset(argument, 0, sizeof(argument));
    memcpy(argument + 4, &r.element_bytes, calculators);
    memcpy(argument + 4 + (calculators + 3) / 8 * 8 + 4, &r.from,
           sizeof(r) - offsetof(struct reduction, from));
    cr_assert(LAUNCH(ALL, argument));
    expect_numbers(memory, PLIM_BOOL, 2, "0 ?");
}

Test(scan, sums_on_along_rows)
{
    static const char name[] =
        "_ZN2at6native32tensor_kernel_scan_innermost_dimIlSt4plusIlEEEvPT_PKS4_jjjS4_T0_";
    uint32_t rows = 2, length = 3, bits = 0;
    int64_t initial = 0;
    begin();
    uintptr_t to = memory, from = PUT(512, int64_t, 1, 2, 3, 4, 5, 6);
    plim_shadow_spoil(from + 8, 8, "other");
    cr_assert(LAUNCH(name, &to, &from, &rows, &length, &bits, &initial, &initial));
    expect_numbers(memory, PLIM_INT64, 6, "1 ? ? 4 9 15");
}

/* --- counting and selecting: nonzero ---------------------------------------------------------- */

#define NONZERO "IN2at6native43_GLOBAL__N__e625f313_10_Nonzero_cu_cba1aaa09NonZeroOpIbEE"

Test(cub, counts_what_is_not_zero)
{
    static const char name[] =
        "_ZN14at_cuda_detail3cub6detail6reduce28DeviceReduceSingleTileKernelINS2_10policy_"
        "hubIiyN4cuda3std3__44plusIvEEE10Policy1000EN6"
        "thrust45THRUST_300001_SM_750_800_860_900_1000_1200_NS18transform_iterator" NONZERO
        "PKbNSD_11use_defaultESM_EEPiyS9_iiNS7_10__"
        "identityEEEvT0_T1_T2_T3_T4_T6_";
    uint64_t count = 4;
    char nothing[16] = {0};
    begin();
    uintptr_t from[2] = {PUT(512, bool, 1, 0, 1, 1), 0}, to = memory;
    cr_assert(LAUNCH(name, from, &to, &count, nothing, nothing, nothing));
    expect_numbers(memory, PLIM_INT32, 1, "3");
}

Test(cub, selects_the_places)
{
    static const char name[] =
        "_ZN14at_cuda_detail3cub6detail6select23DeviceSelectSweepKernelINS2_10policy_"
        "hubIlbiLb0ELNS0_10SelectImplE0EE10Policy1000EN6"
        "thrust45THRUST_300001_SM_750_800_860_900_1000_1200_NS17counting_iteratorIlNS9_11use_"
        "defaultESB_SB_EENS9_18transform_iterator" NONZERO
        "PKbSB_SB_EEPlPiNS0_13ScanTileStateIiLb1EEENS0_8NullTypeESQ_iNS2_19streaming_context_"
        "tIlLb1EEELS5_0EEEvT0_T1_T2_T3_T4_T5_"
        "T6_T7_iT8_NS1_7vsmem_tE";
    static const char split[] = "_ZN2at6native43_GLOBAL__N__e625f313_10_Nonzero_cu_cba1aaa013write_"
                                "indicesIlEEvPlNS1_10TensorDimsIT_EEiS5_S3_l";
    int64_t first = 0, selected = 3, sizes[16] = {2, 3}, fill = -1;
    int count = 6, dimensions = 2;
    char nothing[16] = {0};
    begin();
    uintptr_t flags[2] = {PUT(512, bool, 0, 1, 0, 1, 0, 1), 0}, out = memory,
              number = memory + 1024, none = 0;
    cr_assert(LAUNCH(name, &first, flags, &out, &number, nothing, nothing, nothing, &count, nothing,
                     nothing, nothing));
    expect_numbers(memory, PLIM_INT64, 3, "1 3 5");
    expect_numbers(number, PLIM_INT32, 1, "3");
    cr_assert(LAUNCH(split, &out, sizes, &dimensions, &selected, &none, &fill));
    expect_numbers(memory, PLIM_INT64, 6, "0 1 1 1 0 2");
    /* Of nothing: an empty tensor has no address. */
    flags[0] = PUT(512, bool, 0, 0, 0, 0, 0, 0);
    cr_assert(LAUNCH(name, &first, flags, &none, &number, nothing, nothing, nothing, &count, nothing,
                     nothing, nothing));
    expect_numbers(number, PLIM_INT32, 1, "0");
    expect_numbers(flags[0], PLIM_BOOL, 6, "0 0 0 0 0 0");
    /* Of too many to look at: the places are not known, what they are selected by still is. */
    count = PLIM_MOST_OF_MASK + 1;
    out = PUT(2048, int64_t, 7);
    plim_block_allocated(out, 512);
    cr_assert(LAUNCH(name, &first, flags, &out, &number, nothing, nothing, nothing, &count, nothing,
                     nothing, nothing));
    expect_numbers(out, PLIM_INT64, 1, "?");
    /* So are their indices, two of each: more bytes than are kept of one write. */
    out = PUT(2048, int64_t, 7);
    selected = SHADOW_BYTES / 16 + 1;
    cr_assert(LAUNCH(split, &out, sizes, &dimensions, &selected, &none, &fill));
    expect_numbers(out, PLIM_INT64, 1, "?");
    expect_numbers(flags[0], PLIM_BOOL, 6, "0 0 0 0 0 0");
}

/* --- the largest, and routing ----------------------------------------------------------------- */

/* The places of the largest 2 of 4 in each of 3 rows. */
static void largest(uintptr_t from)
{
    static const char name[] =
        "_ZN2at6native6sbtopk10gatherTopKIfjLi1ELb0EEEvNS_4cuda6detail10TensorInfoIKT_T0_EES8_S8_"
        "bS8_S8_NS5_IS6_S8_EES8_NS5_IlS8_EES8_PS6_";
    uint32_t size = 4, count = 2, slices = 3, one = 1;
    bool is_largest = true;
    uintptr_t none = 0;
    struct tensor in = {from, {3, 1}, {4, 1}, 2}, values = {memory, {3, 1}, {2, 1}, 2},
                  places = {memory + 512, {3, 1}, {2, 1}, 2};
    cr_assert(LAUNCH(name, &in, &size, &count, &is_largest, &slices, &one, &values, &one, &places,
                     &one, &none));
}

Test(largest, of_known_numbers)
{
    begin();
    largest(PUT(1024, float, 1, 4, 3, 2, 9, 8, 7, 6, 1, 1, 2, 5));
    expect_numbers(memory + 512, PLIM_INT64, 6, "1 2 0 1 2 3");
    expect_numbers(memory, PLIM_FLOAT, 6, "4 3 9 8 2 5");
}

Test(largest, of_learned_numbers_is_spread_evenly)
{
    begin();
    plim_shadow_spoil(memory + 1024, 48, "router");
    largest(memory + 1024);
    expect_numbers(memory + 512, PLIM_INT64, 6, "0! 1! 2! 3! 0! 1!");
    expect_numbers(memory, PLIM_FLOAT, 6, "? ? ? ? ? ?");
}

/* --- what is not understood ------------------------------------------------------------------- */

struct lists {
    uintptr_t addresses[2][64];
    int64_t numels[64];
    unsigned char block_to_tensor[320];
    int32_t block_to_chunk[320], start;
};

static const char add_to_lists[] =
    "_ZN2at6native57_GLOBAL__N__e658eeb9_24_ForeachBinaryOpScalar_cu_86b9896c25multi_tensor_"
    "apply_kernelINS1_18TensorListMetadataILi2EEENS1_"
    "21BinaryOpScalarFunctorIfLi2ELi1ELi1EEEJSt4plusIfEfEEEvT_T0_DpT1_";

Test(lists, only_what_is_written_is_spoilt)
{
    char nothing[8] = {0};
    begin();
    struct plim_block parts[] = {{memory, 512}, {memory + 512, 512}, {memory + 1024, 512}};
    for (size_t i = 0; i < 3; i++) plim_block_allocated(parts[i].at, parts[i].bytes);
    PUT(0, float, 1);
    PUT(512, float, 2);
    PUT(1024, float, 3);
    struct lists metadata = {
        .addresses = {{memory}, {memory + 512, memory + 1024 /* left over on the stack */}},
        .numels = {1}};
    cr_assert(LAUNCH(add_to_lists, &metadata, nothing, nothing, nothing));
    expect_numbers(memory, PLIM_FLOAT, 1, "1");
    expect_numbers(memory + 512, PLIM_FLOAT, 1, "?");
    expect_numbers(memory + 1024, PLIM_FLOAT, 1, "3");
}

/* As PyTorch 2.15 passes them with CUDA 13. Behind the first list's addresses others are left over, as if there
 * were two lists of the smaller kind. */
struct many_lists {
    uintptr_t addresses[2][448];
    int64_t numels[448];
    uint16_t block_to_tensor[2240];
    int32_t block_to_chunk[2240], start;
};

Test(lists, of_32_KiB_are_read_too)
{
    static struct many_lists metadata;
    char nothing[8] = {0};
    begin();
    for (size_t i = 0; i < 301; i++) {
        plim_block_allocated(memory + i * 8, 8);
        metadata.addresses[0][i] = memory;
        metadata.addresses[1][i] = memory + i * 8;
        metadata.numels[i] = 1;
        metadata.block_to_tensor[i] = (uint16_t)i;
        PUT(i * 8, float, 1);
    }
    const struct gpu_dim3 grid = {300, 1, 1};
    void *arguments[] = {&metadata, nothing, nothing, nothing};
    char *text = plim_signature_text(add_to_lists);
    struct plim_plan *plan = plim_family_plan(add_to_lists, text);
    cr_assert(plim_family_run(plan, add_to_lists, &grid, arguments));
    expect_numbers(memory + 299 * 8, PLIM_FLOAT, 1, "?");
    expect_numbers(memory + 300 * 8, PLIM_FLOAT, 1, "1");
    cr_expect(eq(sz, plim_family_bytes(plan, &grid, arguments), sizeof(metadata.addresses) + sizeof(metadata.numels)));
    metadata.numels[7] = 3; /* in blocks of 8 bytes there are not 3 elements of 4, but there may be of 1 */
    cr_expect(lt(sz, 0, plim_family_bytes(plan, &grid, arguments)));
    metadata.numels[7] = 9;
    cr_expect(eq(sz, plim_family_bytes(plan, &grid, arguments), 0));
    free(plan);
    free(text);
}

/* A block writes one norm; the memory after the last address has old values. */
Test(lists, norms_are_written_one_by_one)
{
    static const char name[] =
        "_ZN2at6native14lpnorm_cleanupIfLNS0_8NormTypeE1EfLb1EfEEvPKT3_NS0_19TensorListAddressesEi";
    static uintptr_t addresses[4096];
    const struct gpu_dim3 grid = {2, 1, 1};
    begin();
    for (size_t i = 0; i < 4; i++) {
        plim_block_allocated(memory + i * 512, 512);
        addresses[i] = PUT(i * 512, float, 1);
    }
    uintptr_t parts = addresses[3];
    int most = 1;
    void *arguments[] = {&parts, addresses, &most};
    char *text = plim_signature_text(name);
    struct plim_plan *plan = plim_family_plan(name, text);
    struct plim_cost cost;
    cr_assert(plim_family_run(plan, name, &grid, arguments));
    expect_numbers(addresses[0], PLIM_FLOAT, 1, "?");
    expect_numbers(addresses[1], PLIM_FLOAT, 1, "?");
    expect_numbers(addresses[2], PLIM_FLOAT, 1, "1");
    expect_numbers(parts, PLIM_FLOAT, 1, "1");
    cr_expect(plim_family_cost(plan, &grid, arguments, &cost));
    cr_expect(eq(int, (int)cost.kind, PLIM_COST_MOVE));
    cr_expect(lt(i64, cost.number[0], 100));
    free(plan);
    free(text);
}

/* An address in a structure, and one through which is only read. */
Test(writes, of_a_kernel_that_nobody_knows)
{
    static struct {
        int64_t size;
        uintptr_t at;
        char rest[4096]; /* how large it is cannot be seen: no parameter is larger */
    } state;
    uintptr_t written[PLIM_WRITES], in;
    begin();
    struct plim_kernel kernel = {.name = "_Z1f5StateIlEPKl",
                                 .signature = plim_signature_of("_Z1f5StateIlEPKl")};
    state.size = 3;
    state.at = memory + 64;
    in = memory + 1024;
    void *arguments[2] = {&state, &in};
    arguments[1] = &in;
    size_t count = plim_writes_find(&kernel, &(struct gpu_dim3){1, 1, 1}, arguments, written);
    bool found = false;
    for (size_t i = 0; i < count; i++) found |= written[i] == memory + 64;
    cr_expect(found);
    PUT(64, int64_t, 1);
    plim_writes_spoil(written, count, kernel.name);
    expect_numbers(memory + 64, PLIM_INT64, 1, "?");
}

Test(type, halves_round_as_the_gpu_does)
{
    static const struct {
        double number;
        enum plim_type type;
        double rounded;
    } cases[] = {{1.0009765625, PLIM_HALF, 1.0009765625},
                 {1.00048828125, PLIM_HALF, 1},
                 {65519, PLIM_HALF, 65504},
                 {65520, PLIM_HALF, INFINITY},
                 {6e-8, PLIM_HALF, 5.9604644775390625e-08},
                 {1.00390625, PLIM_BFLOAT16, 1},
                 {1.01171875, PLIM_BFLOAT16, 1.015625},
                 {-2.5, PLIM_BFLOAT16, -2.5}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        cr_expect(eq(dbl, plim_number_round(cases[i].number, cases[i].type), cases[i].rounded),
                  "%zu", i);
}
