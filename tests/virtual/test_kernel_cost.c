/* What launches cost, from names of PyTorch 2.11 and arguments laid out as there. */
#include "devices/virtual/blas/blas.h"
#include "devices/virtual/memory/heap.h"
#include "devices/virtual/work/kernel_cost.h"
#include "machine_fixture.h"
#include <criterion/new/assert.h>
#include <stdlib.h>
#include <string.h>

enum { KIB = 1 << 10, MIB = 1 << 20 };

/* Blocks of 1, 2, 4 and 8 KiB, as a recorded program's tensors are. */
static uintptr_t block[4];

static void begin(void)
{
    make_machine("A100-SXM4-80GB", 1, 64 * (int64_t)MIB);
    cr_assert(eq(int, plim_self_use(0), GPU_OK));
    for (int i = 0; i < 4; i++)
        cr_assert(eq(int, plim_heap_allocate(0, (size_t)KIB << i, &block[i]), GPU_OK));
}

TestSuite(kernel_cost, .init = begin);

/* Is it a launch of its own? */
static bool cost_of_grid(const char *name, struct gpu_dim3 grid, void **arguments,
                         struct plim_cost *out)
{
    char *text = plim_signature_text(name);
    cr_assert(text != NULL, "%s", name);
    struct plim_plan *plan = plim_family_plan(name, text);
    const struct plim_kernel kernel = {
        .name = name, .plan = plan, .signature = plim_signature_of(name)};
    const struct plim_launch_config launch = {.grid = grid, .arguments = arguments};
    bool is_own = plim_kernel_cost(&kernel, &launch, out);
    free(plan);
    free(text);
    return is_own;
}

static bool cost_of(const char *name, void **arguments, struct plim_cost *out)
{
    return cost_of_grid(name, (struct gpu_dim3){1, 1, 1}, arguments, out);
}

static void expect_numbers(const struct plim_cost *cost, const int64_t expected[6])
{
    for (int i = 0; i < 6; i++) cr_expect(eq(i64, cost->number[i], expected[i]), "%d", i);
}

#define OR_OF_BOOLS                                                                                \
    "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_13BinaryFunctorIbbbNS0_16BitwiseOr"      \
    "FunctorIbEEEESt5arrayIPcLm3EEEEviT0_T1_"

Test(kernel_cost, each_operand_of_an_element_wise_kernel_counts_as_often_as_it_is_given)
{
    int count = 100;
    char state = 0;
    struct plim_cost cost;
    uintptr_t others[3] = {block[3], block[2], block[1]}, in_place[3] = {block[3], block[3], block[1]};
    cr_assert(cost_of(OR_OF_BOOLS, (void *[]){&count, &state, others}, &cost));
    cr_expect(eq(int, cost.kind, PLIM_COST_MOVE));
    cr_expect(eq(i64, cost.number[0], 300)); /* and not all of their blocks */
    cr_assert(cost_of(OR_OF_BOOLS, (void *[]){&count, &state, in_place}, &cost));
    cr_expect(eq(i64, cost.number[0], 300));
}

Test(kernel_cost, of_a_kernel_that_is_not_known_all_blocks_count_once)
{
    const void *read = (void *)block[3];
    void *written = (void *)(block[1] + 64), *again = (void *)block[1];
    int64_t number = (int64_t)block[2]; /* not a pointer, whatever its value is */
    struct plim_cost cost;
    /* void kernel(float const *, float *, float *, long) */
    cr_assert(cost_of("_Z6kernelPKfPfS1_l", (void *[]){&read, &written, &again, &number}, &cost));
    cr_expect(eq(int, cost.kind, PLIM_COST_MOVE));
    cr_expect(eq(i64, cost.number[0], 10 * KIB));
}

Test(kernel_cost, of_a_table_only_the_rows_count_that_are_asked_for)
{
    void *out = (void *)block[1], *table = (void *)block[3], *indices = (void *)block[0];
    struct plim_cost cost;
    cr_assert(cost_of("_ZN2at6native24vectorized_gather_kernelILi16ElEEvPcS2_PT0_illllb",
                      (void *[]){&out, &table, &indices}, &cost));
    cr_expect(eq(i64, cost.number[0], 2 * 2 * KIB + KIB));
}

#define FLASH(causal)                                                                              \
    "_ZN13pytorch_flash16flash_fwd_kernelI23Flash_fwd_kernel_traitsILi128ELi128ELi32ELi4ELb0ELb0EN" \
    "7cutlass10bfloat16_tE19Flash_kernel_traitsILi128ELi128ELi32ELi4ES3_EELb0E" causal              \
    "Lb0ELb0ELb0ELb0ELb0ELb0EEEvNS_16Flash_fwd_paramsE"

Test(kernel_cost, flash_attention_says_its_sizes)
{
    static const int64_t expected[] = {3, 32, 4, 1000, 1024, 128};
    struct {
        void *qkv[3];
        int64_t strides[9];
        int32_t heads, key_heads, ratio, unused;
        void *out, *accumulated;
        int64_t out_strides[3];
        void *more[3];
        int32_t batch, queries, keys, new_keys, head;
    } parameters = {.heads = 32, .key_heads = 4, .batch = 3, .queries = 1000, .keys = 1024, .head = 128};
    struct plim_cost cost;
    for (int causal = 0; causal < 2; causal++) {
        cr_assert(cost_of(causal ? FLASH("Lb1E") : FLASH("Lb0E"), (void *[]){&parameters}, &cost));
        cr_expect(eq(int, cost.kind, PLIM_COST_FLASH));
        cr_expect(eq(int, cost.type, PLIM_COST_BF16));
        cr_expect(eq(int, cost.causal, causal));
        expect_numbers(&cost, expected);
    }
}

static const char efficient[] =
    "_Z39fmha_cutlassF_f32_aligned_64x64_rf_sm80N22PyTorchMemEffAttention15AttentionKernel"
    "IfN7cutlass4arch4Sm80ELb1ELi64ELi64ELi64ELb1ELb1EE6ParamsE";

/* `heads`: their number, and the parameters next to it. */
#define FORWARD_PARAMETERS(heads)                                                                  \
    struct {                                                                                       \
        void *operands[7];                                                                         \
        uint32_t offset;                                                                           \
        void *results[3];                                                                          \
        int32_t window;                                                                            \
        float scale;                                                                               \
        int32_t head, value_head, queries, keys, all_keys;                                         \
        uint8_t mask;                                                                              \
        int32_t row_strides[8];                                                                    \
        int64_t strides[5];                                                                        \
        int32_t batch;                                                                             \
        heads char more[4096]; /* which is what a launch may have */                               \
    }

static void expect_efficient(struct gpu_dim3 grid, void *parameters, const int64_t expected[6])
{
    struct plim_cost cost;
    cr_assert(cost_of_grid(efficient, grid, (void *[]){parameters}, &cost));
    cr_expect(eq(int, cost.kind, PLIM_COST_EFFICIENT));
    cr_expect(eq(int, cost.type, PLIM_COST_FP32));
    cr_expect(cost.causal);
    expect_numbers(&cost, expected);
}

Test(kernel_cost, efficient_attention_says_its_sizes)
{
    static const int64_t expected[] = {3, 12, 12, 1000, 1024, 64};
    FORWARD_PARAMETERS(int32_t heads;) parameters = {
        .head = 64, .queries = 1000, .keys = 1024, .mask = 1, .heads = 12};
    struct plim_cost cost;
    expect_efficient((struct gpu_dim3){16, 12, 3}, &parameters, expected);
    const struct gpu_dim3 other = {16, 11, 3};
    cr_assert(cost_of_grid(efficient, other, (void *[]){&parameters}, &cost)); /* another layout */
    cr_expect(eq(int, cost.kind, PLIM_COST_MOVE));
}

/* From PyTorch 2.15 on heads may share keys and values, in forward behind two offsets. */
Test(kernel_cost, efficient_attention_of_groups_says_its_sizes)
{
    static const int64_t expected[] = {3, 12, 4, 1000, 1024, 64};
    FORWARD_PARAMETERS(int32_t first_batch; int32_t first_head; int32_t heads; int32_t group;) parameters = {
        .head = 64, .queries = 1000, .keys = 1024, .mask = 1, .heads = 12, .group = 3};
    expect_efficient((struct gpu_dim3){16, 12, 3}, &parameters, expected);
}

/* `group` has the parameters between the heads and the mask: none, or the heads that share keys. */
#define BACKWARD_PARAMETERS(group)                                                                 \
    struct {                                                                                       \
        void *operands[17];                                                                        \
        int32_t window;                                                                            \
        float scale;                                                                               \
        int32_t head, value_head, queries, keys, heads;                                            \
        group uint8_t mask;                                                                        \
        int64_t strides[6];                                                                        \
        int8_t times;                                                                              \
        char more[4096];                                                                           \
    }

/* A mask of none is none, although a group of one head stands where the mask did. */
Test(kernel_cost, backward_of_groups_is_told_from_that_without)
{
    static const char name[] =
        "_Z41fmha_cutlassB_bf16_aligned_64x64_k64_sm80N22PyTorchMemEffAttention23AttentionBackwardKernel"
        "IN7cutlass4arch4Sm80ENS1_10bfloat16_tELb1ELb0ELb1ELi64ELi64ELi64ELb0EE6ParamsE";
    BACKWARD_PARAMETERS() plain = {.head = 64, .queries = 96, .keys = 100, .heads = 8, .mask = 1,
                                  .strides = {512, 512, 512, 0, 512, -1}, .times = 1};
    BACKWARD_PARAMETERS(int32_t group;) grouped = {.head = 64, .queries = 96, .keys = 100, .heads = 8, .group = 1,
                                           .strides = {512, 512, 512, 0, 512, -1}, .times = 1};
    static const int64_t expected[] = {5, 8, 8, 96, 100, 64}, of_pairs[] = {5, 8, 4, 96, 100, 64};
    const struct gpu_dim3 grid = {1, 8, 5};
    struct plim_cost cost;
    cr_assert(cost_of_grid(name, grid, (void *[]){&plain}, &cost));
    cr_expect(eq(int, cost.kind, PLIM_COST_EFFICIENT_BACKWARD));
    cr_expect(cost.causal);
    expect_numbers(&cost, expected);
    cr_assert(cost_of_grid(name, grid, (void *[]){&grouped}, &cost));
    cr_expect(not(cost.causal));
    expect_numbers(&cost, expected);
    grouped.group = 2;
    cr_assert(cost_of_grid(name, grid, (void *[]){&grouped}, &cost));
    expect_numbers(&cost, of_pairs);
}

/* A program's column-major product is the transposed one in rows. */
Test(kernel_cost, products_are_in_rows)
{
    static const int64_t expected[] = {200, 100, 300, 7, 606, 204};
    const struct blas_product product = {.m = 100, .n = 200, .k = 300, .batch = 7, .a_leading = 102,
                                         .b_leading = 303, .type = BLAS_BF16, .tf32 = true};
    const struct plim_cost cost = plim_blas_cost(&product);
    cr_expect(eq(int, cost.kind, PLIM_COST_MATMUL));
    cr_expect(eq(int, cost.type, PLIM_COST_BF16));
    expect_numbers(&cost, expected);
}

/* plimsoll's module in the program knows what a kernel of torch.compile's loads and stores. */
Test(kernel_cost, what_is_told_of_a_kernel_goes_before_its_blocks)
{
    static const char *const names[] = {"triton_red_fused_nll_loss_2", "triton_red_fused_nll_loss_3"};
    const struct plim_launch_config launch = {.grid = {1, 1, 1}, .arguments = (void *[]){&block[3]}};
    struct plim_kernel kernel = {.name = names[0], .signature = {.is_read = true, .parameters = 1, .written = 1}};
    struct plim_cost cost;
    plimsoll_kernel_moves(names[0], 96);
    cr_assert(plim_kernel_cost(&kernel, &launch, &cost));
    cr_expect(eq(int, cost.kind, PLIM_COST_MOVE));
    cr_expect(eq(i64, cost.number[0], 96));
    kernel.name = names[1]; /* another one */
    cr_assert(plim_kernel_cost(&kernel, &launch, &cost));
    cr_expect(eq(i64, cost.number[0], 8 * KIB));
    kernel.name = names[0];
    plimsoll_kernel_moves(NULL, 0);
    cr_assert(plim_kernel_cost(&kernel, &launch, &cost));
    cr_expect(eq(i64, cost.number[0], 8 * KIB));
}
