/* The device interface: everything that the layers above know of a GPU.
 *
 * The engine runs on a `struct plim_device` and cannot tell which one it has (open.h opens one). A
 * device is a table of functions (struct plim_device_ops); only device.c calls through the
 * table. The wrappers declared here validate, account and remember a lost device once for all
 * devices.
 *
 * Memory. Raw memory comes in segments (one cudaMalloc each) or as pages mapped into a reserved
 * range (expandable segments). The only caller is the caching allocator (allocator/allocator.h);
 * tensors live in its blocks. An address is a number: a real one on `host` and `cuda`, on `sim`
 * merely unique.
 *
 * Work. plim_device_launch() enqueues one operation (op.h). What an operation asks for besides
 * its outputs is said by needs.h from the operation and from `struct plim_device_info`, the same
 * for every device.
 *
 * Errors. PLIM_OOM is an answer, not a failure of the device. PLIM_LOST is sticky: after it every
 * call returns PLIM_LOST and only closing is allowed.
 *
 * Thread safety: one thread at a time per device.
 */
#ifndef PLIM_DEVICES_DEVICE_H
#define PLIM_DEVICES_DEVICE_H

#include "autotune/base/status.h"
#include "op.h"

/* A limit that is none: more than any model needs, and far from overflowing where the allocator
 * computes with it. */
#define PLIM_UNLIMITED_BYTES (INT64_C(1) << 60)

/* What cudaMalloc takes for a segment: whole pages of this size. */
#define PLIM_PAGE_BYTES (INT64_C(2) << 20)

/* What is known of the GPU. Filled at open and constant afterwards. */
struct plim_device_info {
    char name[64];          /* "A100-SXM4-80GB" */
    char uri[128];          /* as it can be asked for again: "sim:A100-SXM4-80GB,memory=24GiB" */
    bool simulated;         /* numbers come from a model of the GPU, not from the GPU */
    int compute_capability; /* 10 * major + minor: 80, 86, 90; 0 where unknown */
    int multiprocessors;    /* SMs; 0 where unknown */
    int threads_per_multiprocessor; /* resident threads an SM can hold: 2048, 1536, 1024 */
    int64_t total_bytes; /* what CUDA reports as total, before other processes take theirs */
    const char *based_on; /* the GPU of the catalogue that a generic one is like, but for its
                               memory; NULL: none */
};

/* What computes attention on a real GPU, a bit each. Every one computes the same. */
enum plim_sdpa_engine {
    PLIM_SDPA_BY_CUDNN = 1,
    PLIM_SDPA_BY_TENSOR_CORES = 2, /* our kernels on tensor cores */
    PLIM_SDPA_BY_FP32 = 4,    /* our kernels on fp32 units, where PyTorch's run on them too */
    PLIM_SDPA_BY_FALLBACK = 8 /* the same where PyTorch's run on tensor cores: their time is not
                                 PyTorch's */
};

/* "cuDNN", "cuDNN, fp32 units (fall-back)"; "": none. Returns `out`. */
enum { PLIM_SDPA_ENGINES_TEXT = 64 }; /* all of them have room */
char *plim_sdpa_engines_text(unsigned engines, char out[PLIM_SDPA_ENGINES_TEXT]);

struct plim_device;

/* What keeps a device busy. */
enum plim_device_task {
    PLIM_DEVICE_MATMUL,
    PLIM_DEVICE_ATTENTION, /* in one kernel */
    PLIM_DEVICE_OTHER,     /* kernels: element-wise ones, norms, sums, the optimizer */
    PLIM_DEVICE_LINK,      /* copies between host and device */
    PLIM_DEVICE_TASKS
};

/* What a round of launches did to the device's clock, for the device alone to read. */
struct plim_device_round {
    double seconds[4], launching_seconds, running_seconds[PLIM_DEVICE_TASKS];
    uint32_t number; /* of rounds that had ended before it since the last reset */
};

/* How busy host and device were since the last reset. */
struct plim_device_load {
    double launching_seconds; /* of the host */
    double launching_at_most_seconds; /* the same on the slowest host that this one may be */
    double running_seconds[PLIM_DEVICE_TASKS]; /* of the device */
    double driver_seconds;    /* of the host, in the driver's cudaMalloc and cudaFree */
};

struct plim_device_ops {
    void (*close)(struct plim_device *device);

    /* One raw segment of exactly `bytes` (a multiple of 2 MiB is what the allocator asks for, but
     * not always). PLIM_OOM when it does not fit. */
    enum plim_status (*segment_get)(struct plim_device *device, int64_t bytes, uint64_t *address);
    void (*segment_return)(struct plim_device *device, uint64_t address, int64_t bytes);

    /* A range of addresses without memory, and memory for parts of it: whole pages, which can be
     * unmapped one by one. */
    enum plim_status (*range_reserve)(struct plim_device *device, int64_t bytes, uint64_t *address);
    void (*range_release)(struct plim_device *device, uint64_t address, int64_t bytes);
    enum plim_status (*range_map)(struct plim_device *device, uint64_t address, int64_t bytes,
                                  int64_t page_bytes);
    void (*range_unmap)(struct plim_device *device, uint64_t address, int64_t bytes);
    /* A number for all that decides which addresses the next segments get relative to those that are held;
     * NULL: each lies above all before it, or nothing is known of that. */
    uint64_t (*placement)(struct plim_device *device);

    /* From now on no more than so many bytes are given out, held ones included; 0 or less: none. */
    void (*limit)(struct plim_device *device, int64_t bytes);
    /* What the device itself says is free now, whoever takes the rest; a limit does not count but on
     * `sim`, where it is the memory. */
    int64_t (*free_bytes)(struct plim_device *device);
    enum plim_status (*launch)(struct plim_device *device, const struct plim_op *op);

    /* Of a device that models time and computes nothing, all; NULL elsewhere: see the wrappers. */
    void (*begin_round)(struct plim_device *device);
    void (*end_round)(struct plim_device *device, struct plim_device_round *round);
    void (*repeat)(struct plim_device *device, const struct plim_device_round *round,
                   int64_t times);

    /* The host is in the driver for so long. NULL elsewhere as well. */
    void (*spend)(struct plim_device *device, double driver_seconds);
    /* The host does something of its own for so long; so many bytes go from the host to the device. NULL elsewhere as
     * well. */
    void (*host_work)(struct plim_device *device, double seconds);
    void (*link)(struct plim_device *device, int64_t bytes, bool is_pageable);

    void (*load)(const struct plim_device *device, struct plim_device_load *load);

    /* Seconds of device time since open, after all that was launched. */
    enum plim_status (*now)(struct plim_device *device, double *seconds);
    enum plim_status (*read)(struct plim_device *device, uint64_t address, void *to, size_t bytes);
    enum plim_status (*write)(struct plim_device *device, uint64_t address, const void *from,
                              size_t bytes);

    /* Give everything back; start as after open. */
    enum plim_status (*reset)(struct plim_device *device);

    /* What a device that can fail knows of it: see the wrappers. NULL: nothing ever. */
    const char *(*message)(const struct plim_device *device);
    bool (*is_suspect)(const struct plim_device *device);
    bool (*has_refused)(const struct plim_device *device);

    /* Of a device with libraries that work something out for each shape: see the wrapper. */
    void (*remember)(struct plim_device *device, int fd);
};

/* The head of every device; a device's own state follows it in memory. */
struct plim_device {
    const struct plim_device_ops *ops;
    struct plim_device_info info;
    bool lost;
    bool in_autograd; /* what is launched comes from autograd's own thread: the engine says so */
    bool in_graph;    /* or from a CUDA graph that is launched already: a recording says so */
    /* accounting by the wrappers */
    int64_t segment_bytes; /* held now, segments and mapped pages */
    int64_t segment_bytes_peak;
    int64_t launches;
    unsigned sdpa_engines; /* that computed attention: bits of enum plim_sdpa_engine */
    bool groups_one_by_one; /* MATMUL_GROUPED: where PyTorch has one kernel for all of them */
    bool delta_on_fp32; /* DELTA_*: on fp32 units, where flash-linear-attention's kernels take tensor cores */
};

void plim_device_close(struct plim_device **device); /* NULL is fine; clears the pointer */

enum plim_status plim_device_segment_get(struct plim_device *device, int64_t bytes,
                                         uint64_t *address) PLIM_MUST_CHECK;
void plim_device_segment_return(struct plim_device *device, uint64_t address, int64_t bytes);
enum plim_status plim_device_range_reserve(struct plim_device *device, int64_t bytes,
                                           uint64_t *address) PLIM_MUST_CHECK;
void plim_device_range_release(struct plim_device *device, uint64_t address, int64_t bytes);
enum plim_status plim_device_range_map(struct plim_device *device, uint64_t address, int64_t bytes,
                                       int64_t page_bytes) PLIM_MUST_CHECK;
void plim_device_range_unmap(struct plim_device *device, uint64_t address, int64_t bytes);
uint64_t plim_device_placement(struct plim_device *device);
void plim_device_limit(struct plim_device *device, int64_t bytes);
int64_t plim_device_free_bytes(struct plim_device *device);
enum plim_status plim_device_launch(struct plim_device *device,
                                    const struct plim_op *op) PLIM_MUST_CHECK;
/* Work that repeats need not be launched again where nothing is computed: a round begins, its
 * operations are launched, it ends, and `repeat` lets the clock go on as if they were launched
 * `times` times more, now or at any time until the device is closed. A round may hold others and
 * what is repeated, PLIM_DEVICE_ROUNDS deep. `can_repeat`: is this such a device? On others the
 * four do nothing. What memory takes of the driver's time is no part of a round: memory that was asked
 * for once is there when the round comes again. Where it is asked for each time, `spend` says how long
 * that takes. */
enum { PLIM_DEVICE_ROUNDS = 2 };
bool plim_device_can_repeat(const struct plim_device *device);
void plim_device_begin_round(struct plim_device *device);
void plim_device_end_round(struct plim_device *device, struct plim_device_round *round);
void plim_device_repeat(struct plim_device *device, const struct plim_device_round *round,
                        int64_t times);
void plim_device_spend(struct plim_device *device, double driver_seconds);
/* The program makes its data, say: a host as fast as the device takes its own to be is busy for so long, and launches
 * nothing. Part of rounds as launches are. */
void plim_device_host_work(struct plim_device *device, double seconds);
/* So many bytes pass between host and device; of pageable memory, which the driver copies first, and which the host
 * waits for. Part of rounds as well. */
void plim_device_link(struct plim_device *device, int64_t bytes, bool is_pageable);
/* Zeros on a device that is no such. */
void plim_device_load(const struct plim_device *device, struct plim_device_load *load);
double plim_device_running_seconds(const struct plim_device_load *load); /* of all tasks */
struct plim_device_load plim_device_load_between(const struct plim_device_load *before,
                                                 const struct plim_device_load *after);
enum plim_status plim_device_now(struct plim_device *device, double *seconds) PLIM_MUST_CHECK;
/* Between host and device memory, after all that was launched; the host waits. `sim` reads zeros. */
enum plim_status plim_device_read(struct plim_device *device, uint64_t address, void *to,
                                  size_t bytes) PLIM_MUST_CHECK;
enum plim_status plim_device_write(struct plim_device *device, uint64_t address, const void *from,
                                   size_t bytes) PLIM_MUST_CHECK;
enum plim_status plim_device_reset(struct plim_device *device) PLIM_MUST_CHECK;

/* What libraries work out for a shape (choices, compiled plans) is kept in a file from now on, and
 * looked for there before they are asked: processes that follow one another on a GPU are handed the
 * same file, empty at first. It stays the caller's. Other devices do nothing. */
void plim_device_remember(struct plim_device *device, int fd);

/* The last failure as the device put it; "" when there was none. Valid until the next call. */
const char *plim_device_message(const struct plim_device *device);

/* Something happened after which the next result should come from a new process: an error that was
 * taken for "out of memory" though it did not say so, memory that could not be given back. */
bool plim_device_is_suspect(const struct plim_device *device);

/* Since the last reset the device itself had no memory for something, though the limit was not
 * reached: others may have taken it, or something leaked. */
bool plim_device_has_refused(const struct plim_device *device);

#endif
