/* What an operation asks of any GPU: the sizes that its time follows from.
 *
 * It is made of the operation alone, so that GPUs for which a program does the same differ in nothing
 * but in how long they take for it (roofline.h). Two operations of equal work take equally long.
 */
#ifndef PLIM_DEVICES_SIM_WORK_H
#define PLIM_DEVICES_SIM_WORK_H

#include "devices/device.h"

/* Rates at which a GPU multiplies. */
enum { PLIM_RATE_FP32, PLIM_RATE_TF32, PLIM_RATE_FP16, PLIM_RATE_BF16, PLIM_RATE_COUNT };

enum plim_work_kind {
    PLIM_WORK_MOVE,      /* bytes alone */
    PLIM_WORK_STRIDED,   /* the same, over differing layouts */
    PLIM_WORK_PRODUCT,   /* `batch` products (m, k) by (k, n), `times` launches of them */
    PLIM_WORK_ATTENTION, /* m queries, n keys, head size k, `batch` heads of all samples */
    PLIM_WORK_LINK,      /* bytes between host and GPU */
    PLIM_WORK_HOST       /* the host's alone */
};

/* Zeroed where it does not apply; has no padding, so that bytes tell whether two are equal. */
struct plim_work {
    uint8_t kind;      /* enum plim_work_kind */
    uint8_t rate;      /* PLIM_RATE_*: of PRODUCT and ATTENTION */
    uint8_t alignment; /* PRODUCT: of its operands' rows, log2 of bytes up to 16 */
    uint8_t sdpa;      /* ATTENTION: enum plim_sdpa */
    bool causal, backward;
    bool waits;        /* the host goes on when it is done */
    uint8_t result_alignment; /* of its result's rows; 0: not known */
    int64_t m, n, k, batch, times;
    int64_t window;      /* ATTENTION: as of struct plim_op */
    double flops;        /* MOVE: of products in it, which `batch` blocks of threads share; 0: there are none */
    double bytes;        /* read and written by a launch */
    double host_seconds; /* that the host is busy with launching all of it */
};

/* `in_autograd`: launched from autograd's thread. */
struct plim_work plim_work_of(const struct plim_op *op, bool in_autograd);

/* What keeps the device busy with it. */
enum plim_device_task plim_work_task(const struct plim_work *work);

#endif
