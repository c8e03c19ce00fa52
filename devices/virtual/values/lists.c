/* Kernels over lists of tensors, with which PyTorch's foreach functions and fused optimizers process many tensors in
 * one launch: multi_tensor_apply_kernel (aten/src/ATen/native/cuda/MultiTensorApply.cuh, PyTorch 2.0 to 2.15). Their
 * results are not computed, but the tensors they write are known. The first argument is
 *
 *     TensorListMetadata<n>                {addresses[n][capacity]; long numels[capacity];
 *                                           index block_to_tensor[blocks]; ...}
 *     TensorListScalarListMetadata<T, n>   {addresses[n][capacity]; long numels[capacity]; T scalars[capacity];
 *                                           index block_to_tensor[blocks]; ...}
 *     FusedOptimizerTensorListMetadata<n>  {addresses[n][capacity]; long numels[capacity]; float *steps[capacity];
 *                                           index block_to_tensor[blocks]; ...}
 *
 * The template arguments of a functor are <T, n, number of lists read, index of the list written>. The capacity depends
 * on how large the parameters of a launch may be and is not part of any name: 4 KiB, or 32 KiB in builds with CUDA 13
 * from PyTorch 2.12 on.
 *
 * Norms are computed in parts, which are combined by one block per tensor:
 *
 *     lpnorm_cleanup<...>(const T *parts, TensorListAddresses {addresses[capacity]}, int capacity)
 *
 * Entries after the last tensor are left over from earlier launches. */
#include "devices/virtual/memory/block.h"
#include "devices/virtual/memory/heap.h"
#include "devices/virtual/memory/readable.h"
#include "plan.h"
#include <stdlib.h>
#include <string.h>

enum { LISTS, HAS_NUMBERS, BETWEEN_BYTES, WRITTEN, READ, IS_FUSED }; /* BETWEEN_BYTES: bytes per tensor between the
                                                                      * addresses and block_to_tensor */
enum { MOST_LISTS = 5, CHUNK = 65536, ALL = -1 }; /* CHUNK: elements of a tensor that one block processes */

/* The capacities, indexed by [has scalars][number of lists - 1]. */
static const struct room {
    uint16_t tensors[2][MOST_LISTS], blocks;
    uint8_t index_bytes;
} rooms[] = {{{{110, 64, 48, 36, 30}, {96, 64, 48, 36, 30}}, 320, sizeof(uint8_t)},
             {{{770, 448, 336, 252, 210}, {672, 448, 336, 252, 210}}, 2240, sizeof(uint16_t)}};

/* The metadata of a launch. */
struct metadata {
    const struct room *room;
    const unsigned char *at;
    size_t most, tensors, blocks; /* capacity for tensors; numbers of tensors and blocks in use */
};

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
    if (lists < 1 || lists > MOST_LISTS) return false;
    plan->numbers[LISTS] = lists;
    plan->numbers[HAS_NUMBERS] = has_numbers;
    plan->numbers[BETWEEN_BYTES] = sizeof(int64_t) + (is_fused ? sizeof(float *) : 0);
    if (!has_numbers) return true;
    enum plim_type type = plim_name_type(plim_name_argument(list, 0));
    plan->numbers[BETWEEN_BYTES] += (int64_t)plim_type_bytes(type);
    return type != PLIM_NO_TYPE;
}

/* BinaryOpScalarFunctor<float, 2, 1, 1>: of two lists, the second is written. Other kernels may write all lists. */
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

/* --- metadata --------------------------------------------------------------------------------- */

static size_t blocks_at(const struct plim_plan *plan, const struct metadata *m)
{
    return m->most * (size_t)(plan->numbers[LISTS] * (int64_t)sizeof(uintptr_t) + plan->numbers[BETWEEN_BYTES]);
}

static size_t tensor_of_block(const struct plim_plan *plan, const struct metadata *m, size_t block)
{
    const unsigned char *at = m->at + blocks_at(plan, m) + block * m->room->index_bytes;
    uint16_t wide;
    if (m->room->index_bytes == sizeof(*at)) return *at;
    memcpy(&wide, at, sizeof(wide));
    return wide;
}

static uintptr_t address_of(const struct metadata *m, size_t list, size_t tensor)
{
    uintptr_t at;
    memcpy(&at, m->at + (list * m->most + tensor) * sizeof(at), sizeof(at));
    return at;
}

static int64_t elements_of(const struct plim_plan *plan, const struct metadata *m, size_t tensor)
{
    return (int64_t)address_of(m, (size_t)plan->numbers[LISTS], tensor);
}

/* True if the blocks of each tensor are consecutive and each tensor has elements and lies in a block large enough for
 * them. */
static bool is_plausible(const struct plim_plan *plan, struct metadata *m)
{
    for (size_t i = 0; i < m->blocks; i++) {
        size_t tensor = tensor_of_block(plan, m, i);
        if (tensor > m->tensors || (tensor + 1 < m->tensors) || tensor >= m->most) return false;
        m->tensors = tensor + 1;
    }
    for (size_t t = 0; t < m->tensors; t++) {
        int64_t elements = elements_of(plan, m, t);
        uintptr_t at = address_of(m, 0, t);
        struct plim_block block = plim_heap_is_device(at) ? plim_block_find(at) : (struct plim_block){0};
        if (elements <= 0 || (uint64_t)elements > block.bytes) return false;
    }
    return true;
}

/* Finds the layout that the metadata has. Returns false if it has none of the known ones. */
static bool read_launch(const struct plim_plan *plan, const struct plim_launch *launch, struct metadata *out)
{
    for (size_t i = 0; i < sizeof(rooms) / sizeof(rooms[0]); i++) {
        const struct room *room = &rooms[i];
        *out = (struct metadata){.room = room,
                                 .at = launch->arguments[0],
                                 .most = room->tensors[plan->numbers[HAS_NUMBERS]][plan->numbers[LISTS] - 1],
                                 .blocks = launch->grid->x};
        size_t bytes = blocks_at(plan, out) + out->blocks * room->index_bytes;
        if (out->blocks && out->blocks <= room->blocks &&
            plim_is_readable(out->at, PLIM_UNKNOWN_BYTES, 0, bytes) && is_plausible(plan, out))
            return true;
    }
    return false;
}

/* --- launches --------------------------------------------------------------------------------- */

static bool run(const struct plim_plan *plan, const struct plim_launch *launch)
{
    struct metadata m;
    size_t lists = (size_t)plan->numbers[LISTS];
    if (!read_launch(plan, launch, &m)) return false;
    for (size_t l = 0; l < lists; l++)
        for (size_t t = 0;
             t < m.tensors && (plan->numbers[WRITTEN] == ALL || (size_t)plan->numbers[WRITTEN] == l);
             t++) {
            uintptr_t at = address_of(&m, l, t);
            if (plim_heap_is_device(at)) plim_launch_spoil_block(launch, at);
        }
    if (strstr(launch->kernel, "_amp_foreach_non_finite_check")) plim_launch_check(launch, 2);
    return true;
}

static bool read_norms(const char *list, struct plim_plan *plan)
{
    (void)plan;
    return strstr(list, "TensorListAddresses") != NULL;
}

static bool run_norms(const struct plim_plan *plan, const struct plim_launch *launch)
{
    const unsigned char *addresses = launch->arguments[1];
    size_t count = launch->grid->x;
    (void)plan;
    if (!plim_is_readable(addresses, PLIM_UNKNOWN_BYTES, 0, count * sizeof(uintptr_t))) return false;
    for (size_t i = 0; i < count; i++) {
        uintptr_t at;
        memcpy(&at, addresses + i * sizeof(at), sizeof(at));
        if (plim_heap_is_device(at)) plim_launch_spoil_block(launch, at);
    }
    return true;
}

/* Returns how often a list is transferred. A list that is updated is read and written: parameters and moments of a
 * fused optimizer (its second list are the gradients, which are read), otherwise as the functor's template arguments
 * say. Inputs of norms are read. */
static int64_t times_moved(const struct plim_plan *plan, size_t list)
{
    if (plan->numbers[IS_FUSED]) return list == 1 ? 1 : 2;
    if (plan->numbers[WRITTEN] == ALL) return 1;
    return (size_t)plan->numbers[WRITTEN] == list && list < (size_t)plan->numbers[READ] ? 2 : 1;
}

/* Returns the share of a tensor's elements that this launch processes; other launches process the rest. */
static double share_of(const struct plim_plan *plan, const struct metadata *m, size_t tensor)
{
    int64_t elements = elements_of(plan, m, tensor), done = 0;
    for (size_t i = 0; i < m->blocks; i++)
        done += tensor_of_block(plan, m, i) == tensor ? CHUNK : 0;
    return elements > done ? (double)done / (double)elements : 1;
}

bool plim_lists_cost(const struct plim_plan *plan, const struct plim_launch *launch,
                     struct plim_cost *out)
{
    struct metadata m;
    if (plan->row->run == run_norms) {
        out->kind = PLIM_COST_MOVE;
        out->number[0] = (int64_t)(launch->grid->x * sizeof(double));
        return true;
    }
    if (!read_launch(plan, launch, &m)) return false;
    out->kind = PLIM_COST_LISTS;
    out->number[1] = (int64_t)m.tensors;
    for (size_t t = 0; t < m.tensors; t++) {
        int64_t bytes = 0;
        for (size_t l = 0; l < (size_t)plan->numbers[LISTS]; l++)
            bytes += times_moved(plan, l) * (int64_t)plim_block_find(address_of(&m, l, t)).bytes;
        out->number[0] += (int64_t)((double)bytes * share_of(plan, &m, t));
    }
    return true;
}

size_t plim_lists_bytes(const struct plim_plan *plan, const struct plim_launch *launch)
{
    struct metadata m;
    return read_launch(plan, launch, &m) ? blocks_at(plan, &m) : 0;
}

const struct plim_row plim_rows_lists[] = {{"multi_tensor_apply_kernel<", read, run},
                                           {"lpnorm_cleanup<", read_norms, run_norms},
                                           {0}};
