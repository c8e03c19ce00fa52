/* One answer for several GPUs of a job, with which every rank trains. */
#ifndef PLIM_AUTOTUNE_STORE_LEAST_H
#define PLIM_AUTOTUNE_STORE_LEAST_H

#include "reports/result.h"

/* Finds the setting for all of them. For every combination of values (precision, checkpointing, sequence
 * ...) that one of the GPUs chose and that fits on all, the micro-batch is the smallest of theirs.
 * Among several combinations the one wins whose slowest GPU is fastest or, if no times are known,
 * whose micro-batch is largest. `from` is the index of the GPU whose choice it is. PLIM_NOFIT:
 * no combination fits on all; the choice is not changed. */
enum plim_status plim_store_least(const struct plim_result *const *results, size_t count,
                                  struct plim_result_choice *choice, size_t *from,
                                  struct plim_error *err) PLIM_MUST_CHECK;

#endif
