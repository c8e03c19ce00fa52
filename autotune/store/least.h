/* A common answer for several GPUs of a job, with which all ranks train. */
#ifndef PLIM_AUTOTUNE_STORE_LEAST_H
#define PLIM_AUTOTUNE_STORE_LEAST_H

#include "reports/result.h"

/* Finds the setting for all GPUs. The combinations of values (precision, checkpointing, sequence length and so on) that
 * one of the GPUs chose and that fit on all are compared; the micro-batch of each is the smallest of all GPUs. The
 * combination wins whose slowest GPU is fastest or, if times are not known, whose micro-batch is largest. *from is the
 * index of the GPU from which the choice is. PLIM_NOFIT: no combination fits on all; *choice is not changed. */
enum plim_status plim_store_least(const struct plim_result *const *results, size_t count,
                                  struct plim_result_choice *choice, size_t *from,
                                  struct plim_error *err) PLIM_MUST_CHECK;

#endif
