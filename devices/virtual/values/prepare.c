/* Kernels of CUB and Thrust that initialise the state of other kernels: counters, and the status by which blocks
 * communicate. They write only to buffers that their arguments point to (CUDA 11.8 to 13).
 *
 *     DeviceCompactInitKernel<state, int *>(state, int tiles, int *number), DeviceScanInitKernel<state>(state, tiles)
 *     _kernel_agent<InitAgent<...>, ...>(the same)
 *     _kernel_agent<DrainAgent<...>, ...>(queue, count)
 *     DeviceRadixSortHistogramKernel<...>(bins, keys, ...)
 *     DeviceRadixSortUpsweepKernel<...>(keys, sums, ...), RadixSortScanBinsKernel<policy, T>(T *sums, int count) */
#include "devices/virtual/memory/heap.h"
#include "plan.h"

enum { NUMBER, SUM_BYTES = 0 }; /* NUMBER: the argument that points to the number of selected elements; 0: none */

/* A ScanTileState starts with an address; its other addresses lie in the same block. */
static bool read_state(struct plim_name state, struct plim_name number, struct plim_plan *plan)
{
    plan->numbers[NUMBER] = plim_name_behind(number, "*") ? 2 : 0;
    return plim_name_behind(state, "ScanTileState<");
}

static bool read_begin(const char *list, struct plim_plan *plan)
{
    return read_state(plim_name_argument(list, 0), plim_name_argument(list, 1), plan);
}

static bool read_agent(const char *list, struct plim_plan *plan)
{
    struct plim_name agent = plim_name_argument(list, 0);
    if (plim_name_behind(agent, "::DrainAgent<")) return plim_name_behind(plim_name_argument(list, 1), "GridQueue<");
    return plim_name_behind(agent, "::InitAgent<") &&
           read_state(plim_name_argument(list, 1), plim_name_argument(list, 3), plan);
}

static bool run(const struct plim_plan *plan, const struct plim_launch *launch)
{
    uintptr_t at = plim_launch_address(launch, 0);
    int number = (int)plan->numbers[NUMBER];
    if (!plim_heap_is_device(at)) return false;
    plim_launch_spoil_block(launch, at);
    if (number) plim_launch_spoil(launch, plim_launch_address(launch, number), sizeof(int64_t));
    return true;
}

static bool read_sums(const char *list, struct plim_plan *plan)
{
    struct plim_name type = plim_name_argument(list, 1);
    plan->numbers[SUM_BYTES] = plim_name_begins(type, "unsigned long") ? 8 : plim_name_behind(type, "int") ? 4 : 0;
    return plan->numbers[SUM_BYTES] > 0;
}

/* Runs before each pass of a sort. The sums lie beside the numbers that the previous pass sorted, so only the sums
 * become unknown. */
static bool run_sums(const struct plim_plan *plan, const struct plim_launch *launch)
{
    int64_t count = plim_launch_int(launch, 1);
    uintptr_t at = plim_launch_address(launch, 0);
    if (count <= 0 || !plim_heap_is_device(at)) return false;
    plim_launch_spoil(launch, at, (size_t)(count * plan->numbers[SUM_BYTES]));
    return true;
}

/* Writes only the sums that RadixSortScanBinsKernel adds up next. */
static bool run_nothing(const struct plim_plan *plan, const struct plim_launch *launch)
{
    (void)plan;
    (void)launch;
    return true;
}

const struct plim_row plim_rows_prepare[] = {{"DeviceCompactInitKernel<", read_begin, run},
                                             {"DeviceScanInitKernel<", read_begin, run},
                                             {"_kernel_agent<", read_agent, run},
                                             {"DeviceRadixSortHistogramKernel<", NULL, run},
                                             {"DeviceRadixSortUpsweepKernel<", NULL, run_nothing},
                                             {"RadixSortScanBinsKernel<", read_sums, run_sums},
                                             {0}};
