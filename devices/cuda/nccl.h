/* NCCL, by dlopen: the all-reduce among GPUs of this machine, timed. */
#ifndef PLIM_DEVICES_CUDA_NCCL_H
#define PLIM_DEVICES_CUDA_NCCL_H

#include "devices/all_reduce.h"

/* plim_all_reduce_measure() where there is CUDA.
 *
 * All GPUs are driven by this thread. The programs that train have a process for each, which changes how
 * GPUs reach each other's memory and not what their links carry. A thread launches on one GPU after the
 * other: those that began earlier wait for the last, which waits for none. So each time is the least that
 * a GPU saw, and what is launched before the timed one keeps all of them busy meanwhile. */
enum plim_status plim_nccl_measure(int gpus, struct plim_all_reduce *out,
                                   struct plim_error *err) PLIM_MUST_CHECK;

#endif
