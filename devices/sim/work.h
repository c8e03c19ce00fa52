/* The work of an operation on any GPU: the sizes that determine its time.
 *
 * It is derived from the operation alone, so GPUs on which a program runs the same operations differ only in the time
 * they take (roofline.h). Two operations of equal work take equally long. */
#ifndef PLIM_DEVICES_SIM_WORK_H
#define PLIM_DEVICES_SIM_WORK_H

#include "devices/device.h"

/* Rates at which a GPU multiplies. */
enum { PLIM_RATE_FP32, PLIM_RATE_TF32, PLIM_RATE_FP16, PLIM_RATE_BF16, PLIM_RATE_COUNT };

enum plim_work_kind {
    PLIM_WORK_MOVE,      /* memory traffic only */
    PLIM_WORK_STRIDED,   /* the same, with differing layouts */
    PLIM_WORK_PRODUCT,   /* `batch` products (m, k) by (k, n), `times` launches of them */
    PLIM_WORK_ATTENTION, /* m queries, n keys, head size k, `batch` heads of all samples */
    PLIM_WORK_LINK,      /* bytes between host and GPU */
    PLIM_WORK_HOST       /* work only on the host */
};

/* Fields that do not apply are zero; there is no padding, so two can be compared as bytes. */
struct plim_work {
    uint8_t kind;      /* enum plim_work_kind */
    uint8_t rate;      /* PLIM_RATE_*: of PRODUCT and ATTENTION */
    uint8_t alignment; /* PRODUCT: alignment of the operands' rows, log2 of bytes up to 16 */
    uint8_t sdpa;      /* ATTENTION: enum plim_sdpa */
    bool causal, backward;
    bool waits;        /* the host continues when it is finished */
    uint8_t result_alignment; /* PRODUCT: the same for the result's rows; 0: unknown */
    int64_t m, n, k, batch, times;
    int64_t window;      /* ATTENTION: as in struct plim_op */
    double flops;        /* MOVE: flops of products in it, shared by `batch` thread blocks; 0: none */
    double bytes;        /* read and written by one launch */
    double host_seconds; /* the host's time for all launches */
};

/* Returns the work of an operation. `in_autograd`: launched from autograd's thread. */
struct plim_work plim_work_of(const struct plim_op *op, bool in_autograd);

/* Returns the kind of task that this work is. */
enum plim_device_task plim_work_task(const struct plim_work *work);

#endif
