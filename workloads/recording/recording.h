/* A recording: the allocations, frees and launches of a training program, as a function of its sizes.
 *
 * With PYTORCH_NO_CUDA_MEMORY_CACHING=1 each tensor's storage is one cudaMalloc of exactly its bytes. So a program that
 * ran on the virtual GPU at a few sizes (autotune/record) gives a stream of allocations and frees, which is played to
 * the caching allocator like those of the engine: play.h. One recording predicts the program's memory for every batch
 * and sequence length.
 *
 * A stream has the events before the steady step, and one steady step; all later steps repeat it. The sequence of
 * events is the same at all sizes; the bytes of each allocation are a function of batch b and sequence length s:
 *
 *     a polynomial  of degree 1 in b and 2 in s, or 3 in b alone (losses of all pairs, of all triplets), with integer
 *                   coefficients, in b alone divided by 2 or 6 (pairs of different samples): sizes of tensors are
 *                   products of their dimensions. It is exact at every recorded size, and at least one of these was
 *                   not needed to determine it. Instead of s it may depend on the number of chunks of s, with a power
 *                   of two as chunk size: for what a kernel stores per 256 tokens, rounded up.
 *     a table       of the recorded sizes, if there is no such polynomial (a library's workspace, rows of a data set,
 *                   a batch that is rounded up). Between them the next larger recorded size is used, beyond them the
 *                   last one, or a value proportional to the batch if the table grows with it: an estimate, which is
 *                   reported. 0 bytes mean no block: a workspace that the library's algorithm does not need there.
 *
 *     a rule        of PyTorch's: if several thread blocks share a sum (or another reduction), they have a buffer for
 *                   partial sums, and semaphores. Their sizes follow from the number of elements that are summed and
 *                   from the GPU's multiprocessors (devices/needs/needs.h); they may be 0 at all recorded sizes.
 *
 * The caching allocator separates the blocks of different CUDA streams, so a size includes the CUDA stream of its
 * blocks.
 *
 * Launches are described only by their cost (devices/cost.h): an operation that takes as long, and its numbers, which
 * are also functions of b and s. All launches between an allocation and the next one are the work of the first.
 *
 * A program whose command has {accumulation} has two streams: one for steps of one micro-step, and one for steps of two
 * or more. In the second, loops represent the micro-steps between the first and the last, which are all equal: walk.h.
 *
 * If the batch changes the sequence of events (a program that processes its samples one after another), each recorded
 * batch has streams of its own, and no other batch is covered.
 *
 * Options that change the sequence of events (precision, checkpointing, the optimizer) are axes with text values, and
 * each combination of values has a stream of its own. Not every combination needs to be recorded.
 *
 * The file, NAME.plim, is YAML of at most 32 MiB, so that it can be read without this program, compressed by xz to a
 * tenth or less (`xzcat NAME.plim` shows it; a reader accepts plain text too):
 *
 *     plimsoll_recording: 14              the version of the format; 13 had no cudnn, no graph, no compiled; 12 had no
 *                                         over; 11 had no rules, no b*b; 10 had no doubts;
 *                                         9 had no host_work; 8 had no CUDA streams, no f0; 7 had no
 *                                         combinations; 6 had no convolutions; 5 had no made_with; 4 had no
 *                                         batches, no @; 3 had no host_speed; 2 had no launches and no work,
 *                                         and therefore no time; 1 had no micro_steps, no 0 bytes
 *     name: train.py                      for reports
 *     command: [python, train.py, "{batch}"]
 *     made_by: plimsoll 0.1.0
 *     made_with: [torch 2.11.0, "train.py sha256 01..."]    packages, and scripts of the command; omitted
 *                                         if neither is known
 *     doubts: ["train.py:6 decides by a value ..."]  the recording depends on values that only a real GPU computes;
 *                                         omitted if it does not
 *     compiled: yes                       torch.compile compiled kernels for the program; omitted if it did not
 *     compute_capability: 80              of the GPU it was recorded on: others may use other kernels
 *     allocator: pytorch                  what divides segments into blocks: pytorch, direct (nothing: each
 *                                         allocation is a cudaMalloc) or unknown
 *     proof: "..."                        how that was verified, in one line
 *     host_speed: 1.4                     launch speed of the recording machine relative to the host of
 *                                         devices/sim/roofline.h; omitted if unknown
 *     batch: [1, 2, 4]                    recorded sizes, ascending
 *     seq: [128, 256, 512]                the same; [] if there is no sequence length
 *     axes: {precision: [bf16, fp32]}     at most 8, of at most 64 values in all combinations
 *     micro_steps: any                    any: any number per step; one: as recorded
 *     batches: each                       each recorded batch has streams of its own; together (the default):
 *                                         a stream holds for all batches from from_batch on
 *     combinations: [0, 2, 3]             those of the axes' values that are recorded, the last axis varying
 *                                         fastest; omitted if all are
 *     streams:                            one per combination, or per combination and batch (batches: each);
 *                                         with micro_steps any two each, that of one micro-step first
 *     - from_batch: 1                     the smallest sizes at which this sequence of events holds
 *       from_seq: 1
 *       host_work: [0, 1437000]           nanoseconds per micro-step, and additional ones per b*s, of the program's
 *                                         host work other than launching (preparing data), on a host of host_speed 1;
 *                                         omitted if 0
 *       sizes:
 *       - "24*b*s+8"                      terms: 1, b, s, b*s, s*s, b*s*s, b*b, b*b*b
 *       - "1*b*b-1*b over 2"              divided by 2 (3, 6): pairs and triplets
 *       - "512*b*s@256"                   s is the length in chunks of 256, rounded up
 *       - "table 1,128=8192 2,128=8448"   batch,seq=bytes
 *       - "stream 1: 4*b*s"               blocks for a CUDA stream other than the default one, 0
 *       - "partials 4,2 768 of 1*b*s"     of a reduction to 768 outputs, each of b*s inputs: 4 bytes per partial
 *                                         result, 2 outputs per thread
 *       - "semaphores 4,1 row 8 of 1*b*s" the same, if the threads of a block share an output
 *       launches:                         KIND[.TYPE]:N,N...: a kind of cost, its type and numbers,
 *       - "matmul.bf16:0,2,3,4,2,3"       which are sizes[N]; then "causal", and "autograd" for launches
 *       - "move:0 autograd"               by autograd's thread, and "graph" for those after the first
 *                                         launch of a CUDA graph, without the host
 *       work: ["0 1 1"]                   launches[N], in order
 *       before: ["a0 a1 f1", "3(a0 f1)"]  events: aN allocates sizes[N] bytes; fN frees the block of
 *       step: ["a1 a0w0 f2 f1"]           the N-th last allocation, f0 all that the allocator caches
 *                                         (empty_cache()); N(...) is its content N times; wN after an
 *                                         allocation is its work[N]; events between the lines micro(
 *                                         and ) are a loop
 *     checksum: 0123...                   SHA-256 of all bytes before this line
 *
 * Bytes are at most 1 EiB everywhere. A reader refuses what it does not know. */
#ifndef PLIM_WORKLOADS_RECORDING_H
#define PLIM_WORKLOADS_RECORDING_H

#include "autotune/base/array.h"
#include "autotune/base/text.h"
#include "devices/cost.h"
#include "devices/needs/needs.h"
#include <stddef.h>

enum {
    PLIM_RECORDING_VERSION = 14,
    PLIM_RECORDED_BYTES = 32 << 20, /* maximum of a file, and of its text */
    PLIM_RECORDED_OUTSIDE = 2,      /* micro-steps of a step that are outside of its loop */
    PLIM_RECORDED_EVENTS = 1 << 23, /* maximum of all streams together */
    PLIM_RECORDED_SIZES = 1 << 16,  /* maximum of a stream */
    PLIM_RECORDED_POINTS = 64,      /* maximum of recorded sizes: batches times lengths */
    PLIM_RECORDED_AXES = 8,
    PLIM_RECORDED_PARTS = 64,        /* maximum of made_with, and of doubts */
    PLIM_RECORDED_COMBINATIONS = 64, /* of the axes' values */
    PLIM_RECORDED_TERMS = 8,
    PLIM_RECORDED_NUMBERS = PLIM_RECORDED_TERMS + 1,
    PLIM_RECORDED_CHUNK = 4096, /* maximum; a power of two */
    PLIM_RECORDED_CUDA_STREAMS = 256,
};

/* The allocator of the recorded program. */
enum plim_recorded_allocator {
    PLIM_RECORDED_PYTORCH,
    PLIM_RECORDED_DIRECT, /* every allocation is a cudaMalloc by the program */
    PLIM_RECORDED_UNKNOWN, /* another allocator: only trials show what fits */
    PLIM_RECORDED_ALLOCATORS
};
extern const char *const plim_recorded_allocator_names[PLIM_RECORDED_ALLOCATORS];

/* Batch and sequence length at which a program ran. seq is 1 if there is no sequence length. */
struct plim_recorded_point {
    int64_t batch, seq;
};

/* The scratch memory of a launch of reduce_kernel. */
enum plim_recorded_scratch {
    PLIM_RECORDED_NO_SCRATCH,
    PLIM_RECORDED_PARTIALS,
    PLIM_RECORDED_SEMAPHORES,
    PLIM_RECORDED_SCRATCHES
};
extern const char *const plim_recorded_scratch_names[PLIM_RECORDED_SCRATCHES];

/* Bytes as a function of batch and sequence length. */
struct plim_recorded_size {
    bool is_table;
    /* For scratch of a reduction: unless there is a table, the bytes follow from the rule for this launch, whose inputs
     * are `terms`. */
    enum plim_recorded_scratch scratch;
    struct plim_reduce_launch launch; /* without outputs and inputs */
    int64_t outputs[PLIM_RECORDED_NUMBERS];
    int cuda_stream; /* CUDA stream for which the block is allocated; 0: the default one */
    int64_t chunk; /* s counts chunks of this many tokens, rounded up; 0: single tokens */
    /* Coefficients of 1, b, s, b*s, s*s, b*s*s, b*b, b*b*b; then the divisor of the sum (rounded up), 0: none. */
    int64_t terms[PLIM_RECORDED_NUMBERS];
    size_t count;                       /* number of a table's entries, in the order of the points */
    struct plim_recorded_entry {
        struct plim_recorded_point point;
        int64_t bytes;
    } *entries;
};

/* Returns the bytes, up to 1 EiB; 0: there is no such block at this point (tables and rules only); -1: larger, or not
 * positive. `gpu` is for rules; NULL: a GPU without multiprocessors. */
int64_t plim_recorded_size_at(const struct plim_recorded_size *size,
                              struct plim_recorded_point point, const struct plim_device_info *gpu);

/* Returns 0 if the size is exact at this point. Otherwise the size is an estimate from a table without this point, and
 * the result is the largest value of the table, or the estimate if that is larger. */
int64_t plim_recorded_size_guessed(const struct plim_recorded_size *size,
                                   struct plim_recorded_point point);

/* Fits a function to these values: the polynomial of lowest degree that is confirmed by at least one point more than it
 * needs, otherwise a table. It is exact in any case. Fails only with PLIM_NOMEM. */
enum plim_status plim_recorded_size_fit(const struct plim_recorded_point *points,
                                        const int64_t *bytes, size_t count,
                                        struct plim_recorded_size *out) PLIM_MUST_CHECK;

/* Fits a rule to these launches of one reduction, which allocated `bytes` on this GPU. Returns false if there is
 * none. */
bool plim_recorded_size_fit_scratch(const struct plim_recorded_point *points,
                                    const struct plim_reduce_launch *launches, const int64_t *bytes,
                                    size_t count, enum plim_recorded_scratch scratch,
                                    const struct plim_device_info *gpu,
                                    struct plim_recorded_size *out);

struct plim_recorded_event {
    bool frees;
    uint8_t memory_class; /* of an allocation: enum plim_memory_class (classes.h), if it is classified */
    /* Index of the size; of a free: the N-th last allocation, from 1; 0: the allocator's cache. */
    uint32_t value;
    uint32_t work;  /* of an allocation in the step: index of the work + 1; 0: none */
};

/* True if PyTorch's allocator frees its cache (empty_cache()). */
static inline bool plim_recorded_empties_cache(const struct plim_recorded_event *event)
{
    return event->frees && !event->value;
}

/* Returns the change in the number of held blocks: 1, 0 or -1. */
static inline int plim_recorded_change(const struct plim_recorded_event *event)
{
    return !event->frees ? 1 : event->value ? -1 : 0;
}

/* Launches between two allocations: a range of the stream's `launched`. */
struct plim_recorded_work {
    size_t first, count;
};

/* Events of a micro-step between the first and the last. They free as many blocks as they allocate. */
struct plim_recorded_loop {
    size_t first, count;
};

struct plim_recorded_stream {
    struct plim_recorded_point from; /* the smallest point at which the stream holds */
    int64_t host_work[2]; /* nanoseconds per micro-step: a constant, and a term per b*s */
    PLIM_ARRAY(struct plim_recorded_loop) loops; /* in order; for a step of several micro-steps */
    PLIM_ARRAY(struct plim_recorded_size) sizes;
    PLIM_ARRAY(struct plim_cost) launches; /* their `number`s are indices of sizes */
    PLIM_ARRAY(uint32_t) launched;         /* indices of launches, one work after another */
    PLIM_ARRAY(struct plim_recorded_work) works;
    PLIM_ARRAY(struct plim_recorded_event) events; /* those before the step, followed by those of the step */
    size_t before;                                 /* number of events before the step */
    bool is_classified;                            /* by classes.h, when the stream is read */
    size_t longest; /* how far back it refers: the largest N of a free, or the allocations of a loop */
};

/* A growable array (array.h). Owns the texts. */
struct plim_recorded_texts {
    char **items;
    size_t count, capacity;
};

struct plim_recorded_axis {
    char name[32];
    struct plim_recorded_texts values;
};

struct plim_recording {
    char name[64];
    struct plim_recorded_texts command;
    struct plim_recorded_texts made_with; /* at most PLIM_RECORDED_PARTS */
    struct plim_recorded_texts
        doubts; /* decisions that depend on values that only a real GPU computes; at most PLIM_RECORDED_PARTS */
    char made_by[64];
    char proof[256];
    int compute_capability;
    double host_speed; /* 0: unknown */
    enum plim_recorded_allocator allocator;
    PLIM_ARRAY(int64_t) batches; /* ascending */
    PLIM_ARRAY(int64_t) seqs;    /* ascending; empty: there is no sequence length */
    bool is_compiled; /* torch.compile compiled kernels for it */
    bool each_batch;  /* each recorded batch has streams of its own; other batches have none */
    bool accumulates; /* a step may have any number of micro-steps; otherwise as recorded */
    size_t axis_count;
    struct plim_recorded_axis axes[PLIM_RECORDED_AXES];
    PLIM_ARRAY(size_t) combinations; /* those that are recorded, ascending; empty: all */
    PLIM_ARRAY(struct plim_recorded_stream) streams; /* see plim_recording_stream() */
    uint64_t hash;                                   /* of the file; 0: not read from a file */
};

/* Appends a copy. Fails only with PLIM_NOMEM. */
enum plim_status plim_recorded_texts_add(struct plim_recorded_texts *texts,
                                         const char *text) PLIM_MUST_CHECK;

/* The same for a text that is not in the list yet, as long as there are fewer than `most`. */
enum plim_status plim_recorded_texts_add_once(struct plim_recorded_texts *texts, const char *text,
                                              size_t most) PLIM_MUST_CHECK;
/* Returns the index of a text; texts->count if it is not in the list. */
size_t plim_recorded_texts_find(const struct plim_recorded_texts *texts, const char *text);

void plim_recording_finish(struct plim_recording *recording); /* NULL and zeroed are allowed */
void plim_recorded_stream_finish(struct plim_recorded_stream *stream);

/* Returns the stream for a combination of values (the last axis varies fastest), for steps of `accumulation`
 * micro-steps. NULL: the combination is not recorded, or each batch has its own streams and this one has none. */
const struct plim_recorded_stream *plim_recording_stream(const struct plim_recording *recording,
                                                         size_t combination, int64_t batch,
                                                         int64_t accumulation);

/* Returns how many streams a combination has. */
size_t plim_recording_streams_each(const struct plim_recording *recording);

/* True if the recording covers this batch. The lower limit is the streams' `from`. */
bool plim_recording_has_batch(const struct plim_recording *recording, int64_t batch);

/* Returns how many combinations the axes have; 0: more than PLIM_RECORDED_COMBINATIONS. */
size_t plim_recording_combinations(const struct plim_recording *recording);

/* Convert the indices of the values on each axis to the number of a combination, and back. */
size_t plim_recording_combination(const struct plim_recording *recording,
                                  const size_t values[PLIM_RECORDED_AXES]);
void plim_recording_values(const struct plim_recording *recording, size_t combination,
                           size_t values[PLIM_RECORDED_AXES]);

/* Return how many of them are recorded, and whether this one is. */
size_t plim_recording_recorded(const struct plim_recording *recording);
bool plim_recording_has(const struct plim_recording *recording, size_t combination);

/* True if it has launches. Otherwise its steps have no seconds. */
bool plim_recording_is_timed(const struct plim_recording *recording);

/* Returns the seconds of a micro-step's host work other than launching, at this point, on a host of host_speed 1. */
double plim_recorded_host_work(const struct plim_recorded_stream *stream,
                               struct plim_recorded_point point);

/* Returns how many launches its step has, with one micro-step for each loop. */
size_t plim_recorded_stream_launches(const struct plim_recorded_stream *stream);

/* Returns how many of a stream's allocations have a table of bytes. */
size_t plim_recorded_stream_tables(const struct plim_recorded_stream *stream);

/* Reads and checks a whole file, so that it can be played at any point. Memory is bounded for any file. PLIM_SPEC with
 * file and position, in one line; PLIM_IO: the file cannot be read. Finish the zeroed `out` in any case. */
enum plim_status plim_recording_read(const char *path, struct plim_recording *out,
                                     struct plim_error *err) PLIM_MUST_CHECK;
/* The same for its text, terminated; `source_name` is its name in errors. */
enum plim_status plim_recording_read_text(const char *source_name, const char *text, size_t length,
                                          struct plim_recording *out, struct plim_error *err) PLIM_MUST_CHECK;

/* Returns the file's text, allocated with malloc(); the caller frees it. PLIM_UNSUPPORTED: it would have more than
 * PLIM_RECORDED_BYTES, or PLIM_RECORDED_EVENTS. */
enum plim_status plim_recording_write(const struct plim_recording *recording, char **text,
                                      struct plim_error *err) PLIM_MUST_CHECK;

/* Writes the file, completely or not at all, and stores its size in `file_bytes`. Fails like plim_recording_write(), or
 * with PLIM_IO, or PLIM_SPEC: the file could not be read again. */
enum plim_status plim_recording_save(const struct plim_recording *recording, const char *path,
                                     size_t *file_bytes, struct plim_error *err) PLIM_MUST_CHECK;

/* True if it is the name of a recording ("job.plim"). */
bool plim_recording_is_name(const char *path);

/* True if it is a recording by its name, or a file that starts like one. */
bool plim_recording_is(const char *path);

#endif
