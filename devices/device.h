/* The device interface: everything that the layers above know about a GPU.
 *
 * The engine runs on a `struct plim_device` and does not know which kind it is (open.h opens one). A device is a table
 * of functions (struct plim_device_ops); only device.c calls through the table. The wrappers declared here validate,
 * account and remember a lost device in one place for all devices.
 *
 * Memory. Raw memory is provided as segments (one cudaMalloc each) or as pages mapped into a reserved range (expandable
 * segments). The only caller is the caching allocator (allocator/allocator.h); tensors live in its blocks. An address
 * is a number: a real one on `host` and `cuda`, on `sim` merely unique.
 *
 * Work. plim_device_launch() enqueues one operation (op.h). The memory that an operation needs in addition to its
 * outputs is computed by needs.h from the operation and `struct plim_device_info`, in the same way for every device.
 *
 * Errors. PLIM_OOM is an answer, not a failure of the device. PLIM_LOST is sticky: after it every call returns
 * PLIM_LOST and only closing is allowed.
 *
 * Thread safety: one thread at a time per device. */
#ifndef PLIM_DEVICES_DEVICE_H
#define PLIM_DEVICES_DEVICE_H

#include "autotune/base/status.h"
#include "op.h"

/* Represents "no limit": more than any model needs, and small enough that the allocator's arithmetic does not
 * overflow. */
#define PLIM_UNLIMITED_BYTES (INT64_C(1) << 60)

/* cudaMalloc allocates whole pages of this size for a segment. */
#define PLIM_PAGE_BYTES (INT64_C(2) << 20)

/* The properties of the GPU. Set when it is opened and constant afterwards. */
struct plim_device_info {
    char name[64];          /* "A100-SXM4-80GB" */
    char uri[128];          /* with which it can be opened again: "sim:A100-SXM4-80GB,memory=24GiB" */
    bool simulated;         /* numbers come from a model of the GPU, not from the GPU */
    int compute_capability; /* 10 * major + minor: 80, 86, 90; 0 if unknown */
    int multiprocessors;    /* SMs; 0 if unknown */
    int threads_per_multiprocessor; /* resident threads an SM can hold: 2048, 1536, 1024 */
    int64_t total_bytes; /* total reported by CUDA, before other processes use part of it */
    const char *based_on; /* for a generic GPU: the catalogue's GPU on which it is based; otherwise NULL */
};

/* The engines that can compute attention on a real GPU, one bit each. All compute the same function. */
enum plim_sdpa_engine {
    PLIM_SDPA_BY_CUDNN = 1,
    PLIM_SDPA_BY_TENSOR_CORES = 2, /* our kernels on tensor cores */
    PLIM_SDPA_BY_FP32 = 4,    /* our kernels on fp32 units, where PyTorch uses fp32 units too */
    PLIM_SDPA_BY_FALLBACK = 8 /* our kernels on fp32 units where PyTorch uses tensor cores: the time differs from
                               * PyTorch's */
};

/* Formats "cuDNN", "cuDNN, fp32 units (fall-back)"; "" if there are none. Returns `out`. */
enum { PLIM_SDPA_ENGINES_TEXT = 64 }; /* room for all of them */
char *plim_sdpa_engines_text(unsigned engines, char out[PLIM_SDPA_ENGINES_TEXT]);

struct plim_device;

/* The kinds of work that keep a device busy. */
enum plim_device_task {
    PLIM_DEVICE_MATMUL,
    PLIM_DEVICE_ATTENTION, /* in one kernel */
    PLIM_DEVICE_OTHER,     /* kernels: element-wise ones, norms, sums, the optimizer */
    PLIM_DEVICE_LINK,      /* copies between host and device */
    PLIM_DEVICE_TASKS
};

/* The effect of a round of launches on the device's clock; only the device interprets it. */
struct plim_device_round {
    double seconds[4], launching_seconds, running_seconds[PLIM_DEVICE_TASKS];
    uint32_t number; /* number of rounds that had ended before it since the last reset */
};

/* How busy host and device were since the last reset. */
struct plim_device_load {
    double launching_seconds; /* the host launches */
    double launching_at_most_seconds; /* the same for the slowest host to expect, if this host was not measured */
    double running_seconds[PLIM_DEVICE_TASKS]; /* the device works */
    double driver_seconds;    /* the host is in the driver's cudaMalloc and cudaFree */
};

struct plim_device_ops {
    void (*close)(struct plim_device *device);

    /* Allocates a raw segment of exactly `bytes` (usually, but not always, a multiple of 2 MiB). PLIM_OOM if it does
     * not fit. */
    enum plim_status (*segment_get)(struct plim_device *device, int64_t bytes, uint64_t *address);
    void (*segment_return)(struct plim_device *device, uint64_t address, int64_t bytes);

    /* A range of addresses without memory, and memory for parts of it: whole pages, which can be unmapped one by
     * one. */
    enum plim_status (*range_reserve)(struct plim_device *device, int64_t bytes, uint64_t *address);
    void (*range_release)(struct plim_device *device, uint64_t address, int64_t bytes);
    enum plim_status (*range_map)(struct plim_device *device, uint64_t address, int64_t bytes,
                                  int64_t page_bytes);
    void (*range_unmap)(struct plim_device *device, uint64_t address, int64_t bytes);
    /* Returns a hash of everything that determines where the next segments are placed relative to those that are held;
     * NULL: each is placed above all earlier ones, or the placement is unknown. */
    uint64_t (*placement)(struct plim_device *device);

    /* From now on at most this many bytes may be held, including those already held; 0 or less: no limit. */
    void (*limit)(struct plim_device *device, int64_t bytes);
    /* Returns the bytes that the device itself reports as free, whoever uses the rest. The limit is not considered
     * except on `sim`, where it is the size of the memory. */
    int64_t (*free_bytes)(struct plim_device *device);
    enum plim_status (*launch)(struct plim_device *device, const struct plim_op *op);

    /* From here to `load`: only on a device that models time and computes nothing, otherwise NULL; see the wrappers. */
    void (*begin_round)(struct plim_device *device);
    void (*end_round)(struct plim_device *device, struct plim_device_round *round);
    void (*repeat)(struct plim_device *device, const struct plim_device_round *round,
                   int64_t times);

    /* The host spends this time in the driver. */
    void (*spend)(struct plim_device *device, double driver_seconds);
    /* The host does other work for this time; `bytes` are copied between host and device. */
    void (*host_work)(struct plim_device *device, double seconds);
    void (*link)(struct plim_device *device, int64_t bytes, bool is_pageable);

    void (*load)(const struct plim_device *device, struct plim_device_load *load);

    /* Returns the seconds of device time since open, after everything launched so far. */
    enum plim_status (*now)(struct plim_device *device, double *seconds);
    enum plim_status (*read)(struct plim_device *device, uint64_t address, void *to, size_t bytes);
    enum plim_status (*write)(struct plim_device *device, uint64_t address, const void *from,
                              size_t bytes);

    /* Frees everything and returns to the state after open. */
    enum plim_status (*reset)(struct plim_device *device);

    /* For devices that can fail; see the wrappers. NULL: never fails. */
    const char *(*message)(const struct plim_device *device);
    bool (*is_suspect)(const struct plim_device *device);
    bool (*has_refused)(const struct plim_device *device);

    /* For devices whose libraries compute choices or plans for each shape; see the wrapper. */
    void (*remember)(struct plim_device *device, int fd);
};

/* The start of every device; its own state follows in memory. */
struct plim_device {
    const struct plim_device_ops *ops;
    struct plim_device_info info;
    bool lost;
    bool in_autograd; /* launches come from autograd's own thread; set by the engine */
    bool in_graph;    /* launches come from a CUDA graph that is already running; set when a recording is played */
    /* accounting by the wrappers */
    int64_t segment_bytes; /* held now, segments and mapped pages */
    int64_t segment_bytes_peak;
    int64_t launches;
    unsigned sdpa_engines; /* the engines that computed attention: bits of enum plim_sdpa_engine */
    bool groups_one_by_one; /* MATMUL_GROUPED ran group by group, PyTorch's in one kernel */
    bool delta_on_fp32; /* DELTA_* ran on fp32 units, although flash-linear-attention's kernels use tensor cores */
};

void plim_device_close(struct plim_device **device); /* NULL is allowed; clears the pointer */

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
/* On a device that computes nothing, repeated work need not be launched again: begin a round, launch its operations,
 * end the round; `repeat` then advances the clock as if they had been launched `times` more times, now or at any time
 * until the device is closed. A round may contain other rounds and repeats, PLIM_DEVICE_ROUNDS deep. `can_repeat` is
 * true for such a device; on others the functions do nothing. The driver's time for memory is not part of a round:
 * memory that was requested once is still there when the round repeats. If it is requested each time, `spend` adds that
 * time. */
enum { PLIM_DEVICE_ROUNDS = 2 };
bool plim_device_can_repeat(const struct plim_device *device);
void plim_device_begin_round(struct plim_device *device);
void plim_device_end_round(struct plim_device *device, struct plim_device_round *round);
void plim_device_repeat(struct plim_device *device, const struct plim_device_round *round,
                        int64_t times);
void plim_device_spend(struct plim_device *device, double driver_seconds);
/* The host is busy for this time and launches nothing, for example while it prepares data; measured on a host as fast
 * as the device assumes its host to be. Part of rounds, like launches. */
void plim_device_host_work(struct plim_device *device, double seconds);
/* `bytes` are copied between host and device. `is_pageable`: the host memory is not pinned, so the driver copies it
 * first and the host waits. Also part of rounds. */
void plim_device_link(struct plim_device *device, int64_t bytes, bool is_pageable);
/* All zero on a device that does not model time. */
void plim_device_load(const struct plim_device *device, struct plim_device_load *load);
double plim_device_running_seconds(const struct plim_device_load *load); /* of all tasks */
struct plim_device_load plim_device_load_between(const struct plim_device_load *before,
                                                 const struct plim_device_load *after);
enum plim_status plim_device_now(struct plim_device *device, double *seconds) PLIM_MUST_CHECK;
/* Copies between host and device memory, after everything launched so far; the host waits. `sim` reads zeros. */
enum plim_status plim_device_read(struct plim_device *device, uint64_t address, void *to,
                                  size_t bytes) PLIM_MUST_CHECK;
enum plim_status plim_device_write(struct plim_device *device, uint64_t address, const void *from,
                                   size_t bytes) PLIM_MUST_CHECK;
enum plim_status plim_device_reset(struct plim_device *device) PLIM_MUST_CHECK;

/* From now on, what libraries compute for a shape (choices, compiled plans) is stored in a file and looked up there
 * first: pass the same file, empty at first, to processes that follow one another on a GPU. The caller keeps ownership.
 * Does nothing on devices without such libraries. */
void plim_device_remember(struct plim_device *device, int fd);

/* Returns the device's message about the last failure; "" if there was none. Valid until the next call. */
const char *plim_device_message(const struct plim_device *device);

/* True if the next result should be computed in a new process: after an error that was interpreted as out of memory
 * although it was ambiguous, and after memory that could not be freed. */
bool plim_device_is_suspect(const struct plim_device *device);

/* True if the device itself has run out of memory since the last reset although the limit was not reached. Other
 * processes may have used it, or something leaked. */
bool plim_device_has_refused(const struct plim_device *device);

#endif
