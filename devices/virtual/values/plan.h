/* Shared by all families. */
#ifndef PLIM_DEVICES_VIRTUAL_VALUES_PLAN_H
#define PLIM_DEVICES_VIRTUAL_VALUES_PLAN_H

#include "devices/cost.h"
#include "devices/reduce_launch.h"
#include "devices/virtual/machine/cuda_abi.h"
#include "functor.h"

/* The most elements of one launch that are computed; beyond that the results are unknown. Masks and labels, by which
 * pixels are counted and selected, may have more: large arrays of floats are images, activations or weights, and
 * decisions hardly ever depend on them. */
enum { PLIM_MOST_ELEMENTS = 1 << 20, PLIM_MOST_OF_MASK = 1 << 25, PLIM_DIMENSIONS = 25 };

struct plim_launch {
    const char *kernel; /* its name, recorded with what it writes */
    const struct gpu_dim3 *grid;
    void *const *arguments;
};

struct plim_row;

struct plim_plan {
    const struct plim_row *row;
    struct plim_functor functor;
    enum plim_type types[3]; /* of the operands, as the family orders them */
    int64_t numbers[6];      /* numbers among the template arguments */
};

/* A row of a family: a template, by the beginning of its name, without namespace and with "<" or
 * "(" at the end. */
struct plim_row {
    const char *name;
    /* Reads the template's arguments; `list` is the text after the name. False: not understood.
     * NULL: there is nothing to read. */
    bool (*read)(const char *list, struct plim_plan *plan);
    bool (*run)(const struct plim_plan *plan, const struct plim_launch *launch);
};

/* The rows of a family, in the family's file; they end with a row without a name. */
extern const struct plim_row plim_rows_elementwise[], plim_rows_range[], plim_rows_reduce[],
    plim_rows_scan[], plim_rows_cub[], plim_rows_cat[], plim_rows_index[], plim_rows_select[], plim_rows_scatter[],
    plim_rows_sort[], plim_rows_radix[], plim_rows_shape[], plim_rows_count[], plim_rows_lists[],
    plim_rows_resize[], plim_rows_amp[], plim_rows_nonzero[],
    plim_rows_thrust[], plim_rows_random[], plim_rows_segments[], plim_rows_mode[],
    plim_rows_prepare[], plim_rows_kth[], plim_rows_pooling[], plim_rows_distance[];

/* The cost of a launch in the families whose operand sizes are known; false: not known for this one. */
bool plim_elementwise_cost(const struct plim_plan *plan, const struct plim_launch *launch,
                           struct plim_cost *out);
/* As plim_family_jumps(). */
int64_t plim_elementwise_jumps(const struct plim_plan *plan, const struct plim_launch *launch);
bool plim_reduce_cost(const struct plim_plan *plan, const struct plim_launch *launch,
                      struct plim_cost *out);
bool plim_lists_cost(const struct plim_plan *plan, const struct plim_launch *launch,
                     struct plim_cost *out);

/* As plim_family_reduce(). */
bool plim_reduce_launch_of(const struct plim_plan *plan, const struct plim_launch *launch,
                           struct plim_reduce_launch *out, bool *shares);

/* How many bytes of the metadata may contain addresses; 0: not understood. */
size_t plim_lists_bytes(const struct plim_plan *plan, const struct plim_launch *launch);

/* --- arguments -------------------------------------------------------------------------------- */

/* The 8 or 4 bytes of argument i. */
uintptr_t plim_launch_address(const struct plim_launch *launch, int i);
/* An address in a structure that is passed by value, `at` bytes from its beginning. */
uintptr_t plim_launch_pointer(const struct plim_launch *launch, int i, size_t at);
int64_t plim_launch_long(const struct plim_launch *launch, int i);
int32_t plim_launch_int(const struct plim_launch *launch, int i);

/* at::OffsetCalculator (aten/src/ATen/cuda/detail/OffsetCalculator.cuh): dimensions, the innermost
 * first; each size is a divider of three words; strides in bytes or elements, for each dimension
 * the strides of all operands. */
struct plim_offsets {
    int32_t dimensions;
    uint32_t sizes[PLIM_DIMENSIONS][3];
    uint32_t strides[];
};

/* False: not a valid calculator, or not for that many elements. */
bool plim_offsets_check(const struct plim_offsets *offsets, size_t elements);
size_t plim_offsets_bytes(int operands); /* of the structure */
/* Where element `index` of an operand lies. */
size_t plim_offsets_of(const struct plim_offsets *offsets, size_t index, int operand, int operands);
/* The same for `count` elements from `first` on. */
void plim_offsets_row(const struct plim_offsets *offsets, size_t first, size_t count, int operand,
                      int operands, size_t *out);
/* The last element's offset, which is the largest. */
size_t plim_offsets_last(const struct plim_offsets *offsets, int operand, int operands);

/* at::cuda::detail::TensorInfo<T, I> (TensorInfo.cuh), of indices of 4 or 8 bytes. In elements. */
struct plim_tensor {
    uintptr_t at;
    int dimensions;
    int64_t sizes[PLIM_DIMENSIONS], strides[PLIM_DIMENSIONS];
};

bool plim_tensor_read(const void *argument, size_t index_bytes, struct plim_tensor *out);
/* The number of elements in memory from the first to the last. */
size_t plim_tensor_span(const struct plim_tensor *tensor);
/* The offset of the element with a row-major index. */
size_t plim_tensor_offset(const struct plim_tensor *tensor, size_t index);

/* Argument i begins with the address of the flag that a check for infinities raises: learned
 * gradients are finite, so it stays as it is. */
void plim_launch_check(const struct plim_launch *launch, int i);

/* Marks what a launch wrote as unknown: `bytes` bytes, or the whole block that contains an
 * address. */
void plim_launch_spoil(const struct plim_launch *launch, uintptr_t at, size_t bytes);
void plim_launch_spoil_block(const struct plim_launch *launch, uintptr_t at);

#endif
