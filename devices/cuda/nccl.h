/* NCCL, by dlopen: times the all-reduce among the GPUs of this machine. */
#ifndef PLIM_DEVICES_CUDA_NCCL_H
#define PLIM_DEVICES_CUDA_NCCL_H

#include "devices/all_reduce.h"

/* plim_all_reduce_measure() in builds with CUDA.
 *
 * One thread drives all GPUs. Training programs use a process for each GPU, which changes how GPUs access each other's
 * memory but not the bandwidth of their links. The thread launches on one GPU after another, so GPUs that start earlier
 * wait for the last one, which does not wait. Therefore the shortest time measured by any GPU is used, and untimed
 * launches beforehand keep all of them busy meanwhile. */
enum plim_status plim_nccl_measure(int gpus, struct plim_all_reduce *out,
                                   struct plim_error *err) PLIM_MUST_CHECK;

#endif
