/* Lists of tensors, of which PyTorch's foreach functions and fused optimizers make one launch:
 * multi_tensor_apply_kernel (aten/src/ATen/native/cuda/MultiTensorApply.cuh, PyTorch 2.0 to 2.11).
 * Nothing is worked out, but it is known which tensors are written. The first argument is
 *
 *     TensorListMetadata<n>                  {addresses[n][most]; long numels[most]; u8
 * block_to_tensor[320]; ...} TensorListScalarListMetadata<T, n>     {addresses[n][most]; long
 * numels[most]; T scalars[most]; u8 block_to_tensor[320]; ...} FusedOptimizerTensorListMetadata<n>
 * {addresses[n][most]; long numels[most]; float *steps[most]; u8 block_to_tensor[320]; ...}
 *
 * and the functors of the first end with how many lists are read and which is written: <T, n, read,
 * written>. */
#include "devices/virtual/memory/block.h"
#include "devices/virtual/memory/heap.h"
#include "plan.h"
#include <stdlib.h>
#include <string.h>

enum {
    LISTS,
    MOST,
    BETWEEN_BYTES,
    WRITTEN,
    READ,
    IS_FUSED
}; /* BETWEEN_BYTES: of each tensor, before block_to_tensor */
enum { BLOCKS = 320, CHUNK = 65536, ALL = -1 }; /* CHUNK: elements of a tensor that are a block's */

static const int most_tensors[] = {110, 64, 48, 36, 30}, most_with_numbers[] = {96, 64, 48, 36, 30};

static int number_in(struct plim_name name)
{
    return name.at ? (int)strtol(name.at, NULL, 10) : -1;
}

static bool read_metadata(struct plim_name name, struct plim_plan *plan)
{
    static const char plain[] = "TensorListMetadata<", numbers[] = "TensorListScalarListMetadata<",
                      fused[] = "FusedOptimizerTensorListMetadata<";
    bool has_numbers = plim_name_begins(name, numbers), is_fused = plim_name_begins(name, fused);
    const char *list = plim_name_behind(name, "Metadata<");
    if (!list || (!has_numbers && !is_fused && !plim_name_begins(name, plain))) return false;
    int lists = number_in(plim_name_argument(list, has_numbers ? 1 : 0));
    if (lists < 1 || lists > 5) return false;
    plan->numbers[LISTS] = lists;
    plan->numbers[MOST] = has_numbers ? most_with_numbers[lists - 1] : most_tensors[lists - 1];
    plan->numbers[BETWEEN_BYTES] = plan->numbers[MOST] * 8;
    if (has_numbers) {
        enum plim_type type = plim_name_type(plim_name_argument(list, 0));
        if (type == PLIM_NO_TYPE) return false;
        plan->numbers[BETWEEN_BYTES] += plan->numbers[MOST] * (int64_t)plim_type_bytes(type);
    }
    if (is_fused) plan->numbers[BETWEEN_BYTES] += most_with_numbers[lists - 1] * 8;
    return true;
}

/* BinaryOpScalarFunctor<float, 2, 1, 1>: the second of two lists is written. Others may write all.
 */
static bool read(const char *list, struct plim_plan *plan)
{
    struct plim_name functor = plim_name_argument(list, 1);
    const char *arguments = plim_name_behind(functor, "<");
    plan->numbers[WRITTEN] = ALL;
    plan->numbers[IS_FUSED] = plim_name_begins(functor, "Fused");
    if (!read_metadata(plim_name_argument(list, 0), plan)) return false;
    if (arguments && !plim_name_begins(functor, "Fused")) {
        int lists = number_in(plim_name_argument(arguments, 1)),
            written = number_in(plim_name_argument(arguments, 3));
        bool is_plain =
            plim_name_behind(functor, "Functor<") && lists == plan->numbers[LISTS] && written >= 0;
        plan->numbers[READ] = number_in(plim_name_argument(arguments, 2));
        if (is_plain && written < lists) plan->numbers[WRITTEN] = written;
    }
    return true;
}

static const unsigned char *block_to_tensor_of(const struct plim_plan *plan,
                                               const struct plim_launch *launch)
{
    size_t addresses = (size_t)(plan->numbers[LISTS] * plan->numbers[MOST]);
    return (const unsigned char *)launch->arguments[0] + addresses * sizeof(uintptr_t) +
           plan->numbers[BETWEEN_BYTES];
}

/* How many tensors each list has; 0: that is not known. */
static size_t count_tensors(const struct plim_plan *plan, const struct plim_launch *launch)
{
    size_t most = (size_t)plan->numbers[MOST], tensors = 0;
    const unsigned char *block_to_tensor = block_to_tensor_of(plan, launch);
    if (launch->grid->x > BLOCKS) return 0;
    for (unsigned i = 0; i < launch->grid->x; i++)
        if (block_to_tensor[i] >= tensors) tensors = block_to_tensor[i] + (size_t)1;
    return tensors > most ? 0 : tensors;
}

static uintptr_t address_of(const struct plim_plan *plan, const struct plim_launch *launch,
                            size_t list, size_t tensor)
{
    uintptr_t at;
    const char *metadata = launch->arguments[0];
    memcpy(&at, metadata + (list * (size_t)plan->numbers[MOST] + tensor) * sizeof(at), sizeof(at));
    return at;
}

static bool run(const struct plim_plan *plan, const struct plim_launch *launch)
{
    size_t lists = (size_t)plan->numbers[LISTS], tensors = count_tensors(plan, launch);
    if (!tensors) return false;
    for (size_t l = 0; l < lists; l++)
        for (size_t t = 0;
             t < tensors && (plan->numbers[WRITTEN] == ALL || (size_t)plan->numbers[WRITTEN] == l);
             t++) {
            uintptr_t at = address_of(plan, launch, l, t);
            if (plim_heap_is_device(at)) plim_launch_spoil_block(launch, at);
        }
    if (strstr(launch->kernel, "_amp_foreach_non_finite_check")) plim_launch_check(launch, 2);
    return true;
}

/* What is updated is read and written: parameters and moments of a fused optimizer, whose second
 * list are the gradients; else what the functor says. Norms are read. */
static int64_t times_moved(const struct plim_plan *plan, size_t list)
{
    if (plan->numbers[IS_FUSED]) return list == 1 ? 1 : 2;
    if (plan->numbers[WRITTEN] == ALL) return 1;
    return (size_t)plan->numbers[WRITTEN] == list && list < (size_t)plan->numbers[READ] ? 2 : 1;
}

/* Of a tensor's elements the share that this launch does: the rest is another one's. */
static double share_of(const struct plim_plan *plan, const struct plim_launch *launch, size_t tensor)
{
    const unsigned char *block_to_tensor = block_to_tensor_of(plan, launch);
    int64_t elements, done = 0;
    size_t addresses = (size_t)(plan->numbers[LISTS] * plan->numbers[MOST]);
    memcpy(&elements, (const char *)launch->arguments[0] + (addresses + tensor) * sizeof(elements),
           sizeof(elements));
    for (unsigned i = 0; i < launch->grid->x; i++)
        done += block_to_tensor[i] == tensor ? CHUNK : 0;
    return elements > done ? (double)done / (double)elements : 1;
}

bool plim_lists_cost(const struct plim_plan *plan, const struct plim_launch *launch,
                     struct plim_cost *out)
{
    size_t lists = (size_t)plan->numbers[LISTS], tensors = count_tensors(plan, launch);
    if (!tensors) return false;
    out->kind = PLIM_COST_LISTS;
    out->number[1] = (int64_t)tensors;
    for (size_t t = 0; t < tensors; t++) {
        int64_t bytes = 0;
        for (size_t l = 0; l < lists; l++)
            bytes += times_moved(plan, l) *
                     (int64_t)plim_block_find(address_of(plan, launch, l, t)).bytes;
        out->number[0] += (int64_t)((double)bytes * share_of(plan, launch, t));
    }
    return true;
}

const struct plim_row plim_rows_lists[] = {{"multi_tensor_apply_kernel<", read, run}, {0}};
