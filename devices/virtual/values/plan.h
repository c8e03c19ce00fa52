/* Declarations shared by all families. */
#ifndef PLIM_DEVICES_VIRTUAL_VALUES_PLAN_H
#define PLIM_DEVICES_VIRTUAL_VALUES_PLAN_H

#include "devices/cost.h"
#include "devices/reduce_launch.h"
#include "devices/virtual/machine/cuda_abi.h"
#include "functor.h"

/* The largest number of elements of a launch whose results are computed; results of larger launches are unknown. Masks
 * and labels, by which a program counts and selects pixels, may be larger: large float arrays are images, activations
 * or weights, on which a program's decisions hardly ever depend. */
enum { PLIM_MOST_ELEMENTS = 1 << 20, PLIM_MOST_OF_MASK = 1 << 25, PLIM_DIMENSIONS = 25 };

struct plim_launch {
    const char *kernel; /* its name, recorded with the values it writes */
    const struct gpu_dim3 *grid;
    void *const *arguments;
};

struct plim_row;

struct plim_plan {
    const struct plim_row *row;
    struct plim_functor functor;
    enum plim_type types[3]; /* of the operands, in the family's order */
    int64_t numbers[6];      /* numbers from the template arguments; their meaning is the family's */
};

/* One kernel template of a family. `name` is a prefix of the kernel's name without namespace, ending in "<" or "(". */
struct plim_row {
    const char *name;
    /* Reads the template arguments into `plan`; `list` is the text after `name`. Returns false if they are not
     * supported. NULL if there is nothing to read. */
    bool (*read)(const char *list, struct plim_plan *plan);
    bool (*run)(const struct plim_plan *plan, const struct plim_launch *launch);
};

/* The rows of each family, defined in the family's file and terminated by a row without a name. */
extern const struct plim_row plim_rows_elementwise[], plim_rows_range[], plim_rows_reduce[],
    plim_rows_scan[], plim_rows_cub[], plim_rows_cat[], plim_rows_index[], plim_rows_select[], plim_rows_scatter[],
    plim_rows_sort[], plim_rows_radix[], plim_rows_shape[], plim_rows_count[], plim_rows_lists[],
    plim_rows_resize[], plim_rows_amp[], plim_rows_nonzero[],
    plim_rows_thrust[], plim_rows_random[], plim_rows_segments[], plim_rows_mode[],
    plim_rows_prepare[], plim_rows_kth[], plim_rows_pooling[], plim_rows_distance[];

/* The cost of a launch, in the families that can tell the sizes of their operands. Return false if this launch's are
 * unknown. */
bool plim_elementwise_cost(const struct plim_plan *plan, const struct plim_launch *launch,
                           struct plim_cost *out);
/* See plim_family_jumps(). */
int64_t plim_elementwise_jumps(const struct plim_plan *plan, const struct plim_launch *launch);
bool plim_reduce_cost(const struct plim_plan *plan, const struct plim_launch *launch,
                      struct plim_cost *out);
bool plim_lists_cost(const struct plim_plan *plan, const struct plim_launch *launch,
                     struct plim_cost *out);

/* See plim_family_reduce(). */
bool plim_reduce_launch_of(const struct plim_plan *plan, const struct plim_launch *launch,
                           struct plim_reduce_launch *out, bool *shares);

/* Returns how many bytes of the metadata may hold addresses; 0 if the launch is not understood. */
size_t plim_lists_bytes(const struct plim_plan *plan, const struct plim_launch *launch);

/* --- launch arguments ------------------------------------------------------------------------- */

/* Return argument i: 8 bytes as an address or a long, or 4 bytes as an int. */
uintptr_t plim_launch_address(const struct plim_launch *launch, int i);
/* Returns the address at byte offset `at` of argument i, a structure passed by value. */
uintptr_t plim_launch_pointer(const struct plim_launch *launch, int i, size_t at);
int64_t plim_launch_long(const struct plim_launch *launch, int i);
int32_t plim_launch_int(const struct plim_launch *launch, int i);

/* at::OffsetCalculator (aten/src/ATen/cuda/detail/OffsetCalculator.cuh): dimensions, innermost first; each size is an
 * IntDivider of three words; strides, in bytes or elements, are stored per dimension for all operands. */
struct plim_offsets {
    int32_t dimensions;
    uint32_t sizes[PLIM_DIMENSIONS][3];
    uint32_t strides[];
};

/* Returns false if this is not a valid calculator, or not one for `elements` elements. */
bool plim_offsets_check(const struct plim_offsets *offsets, size_t elements);
size_t plim_offsets_bytes(int operands); /* size of the structure */
/* Returns the offset of element `index` of an operand. */
size_t plim_offsets_of(const struct plim_offsets *offsets, size_t index, int operand, int operands);
/* Stores the offsets of `count` consecutive elements, starting at element `first`. */
void plim_offsets_row(const struct plim_offsets *offsets, size_t first, size_t count, int operand,
                      int operands, size_t *out);
/* Returns the offset of the last element, which is the largest. */
size_t plim_offsets_last(const struct plim_offsets *offsets, int operand, int operands);

/* at::cuda::detail::TensorInfo<T, I> (TensorInfo.cuh) with indices of 4 or 8 bytes. Sizes and strides are in
 * elements. */
struct plim_tensor {
    uintptr_t at;
    int dimensions;
    int64_t sizes[PLIM_DIMENSIONS], strides[PLIM_DIMENSIONS];
};

bool plim_tensor_read(const void *argument, size_t index_bytes, struct plim_tensor *out);
/* Returns the distance in memory from the first to the last element, both included, in elements. */
size_t plim_tensor_span(const struct plim_tensor *tensor);
/* Returns the offset, in elements, of the element with the given row-major index. */
size_t plim_tensor_offset(const struct plim_tensor *tensor, size_t index);

/* Handles the flag of a check for infinities and NaNs, whose address is argument i. Gradients are assumed finite, so
 * the flag keeps its value. */
void plim_launch_check(const struct plim_launch *launch, int i);

/* Mark memory written by a launch as unknown: `bytes` bytes at `at`, or the whole block that contains `at`. */
void plim_launch_spoil(const struct plim_launch *launch, uintptr_t at, size_t bytes);
void plim_launch_spoil_block(const struct plim_launch *launch, uintptr_t at);

#endif
