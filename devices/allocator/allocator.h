/* PyTorch's caching allocator, as a policy over raw segments.
 *
 * The rules are those of c10/cuda/CUDACachingAllocator.cpp of PyTorch 2.11 (constants in c10/core/AllocatorConfig.h):
 * sizes rounded to 512 bytes; a small pool of 2 MiB segments and a large pool of 20 MiB segments or more; best fit by
 * (stream, size, address); splitting; merging on free; nothing returned to the device except by empty_cache, by garbage
 * collection, or when memory runs out (free cached segments, retry once, then fail).
 *
 * The same code runs on every device; the device only provides segments. Addresses are the device's.
 *
 * Memory of the allocator itself is kept between plim_allocator_reset() calls, so a search that replays thousands of
 * settings does not allocate.
 *
 * Thread safety: one thread at a time. */
#ifndef PLIM_DEVICES_ALLOCATOR_H
#define PLIM_DEVICES_ALLOCATOR_H

#include "devices/device.h"

/* PYTORCH_CUDA_ALLOC_CONF, parsed. Sizes in bytes; "unlimited" is INT64_MAX. */
struct plim_allocator_config {
    bool expandable_segments;
    int64_t large_segment_size;          /* segment for 1 to 10 MiB, large page; default 20 MiB */
    int64_t max_split_size;              /* blocks of this size or more are never split */
    int64_t max_non_split_rounding;      /* default: the large segment size */
    double garbage_collection_threshold; /* 0: off; active only with a memory fraction */
    double memory_fraction;              /* of the device's total; 0: not set */
    int64_t roundup_power2_divisions[16]; /* one per power of two from 1 MiB to 64 GiB; 0: off */
};

#define PLIM_ALLOCATOR_CONFIG_DEFAULT                                                              \
    (struct plim_allocator_config){.large_segment_size = 20971520,                                 \
                                   .max_split_size = INT64_MAX,                                    \
                                   .max_non_split_rounding = 20971520}

/* Returns the size of the segment that is requested from the device if no cached block has room for `size` bytes. */
int64_t plim_allocator_segment_bytes(const struct plim_allocator_config *config, int64_t size);

/* Parses PyTorch's syntax: "expandable_segments:True,max_split_size_mb:128",
 * "roundup_power2_divisions:[256:1,512:2,1024:4,>:8]", "per_process_memory_fraction:0.5". An unknown option fails with
 * a message that names the nearest known one; NULL or "" gives the defaults. */
enum plim_status plim_allocator_config_parse(const char *text,
                                             struct plim_allocator_config *config,
                                             struct plim_error *err) PLIM_MUST_CHECK;

/* Counters as in torch.cuda.memory_stats(), all in bytes. `allocated` sums block sizes, `requested` requested sizes,
 * `reserved` segments (or mapped pages). */
struct plim_allocator_stats {
    int64_t allocated, allocated_peak;
    int64_t reserved, reserved_peak;
    int64_t requested, requested_peak;
    int64_t retries; /* num_alloc_retries: number of times that cached segments had to be freed first */
    int64_t ooms;
};

struct plim_block; /* one allocation; opaque */
struct plim_allocator;

/* Called when the allocator requests or returns device memory, for tests and traces; `user` is passed through. `what`:
 * 'S' segment allocated, 's' segment returned, 'M' pages mapped, 'm' pages unmapped. */
typedef void (*plim_allocator_observer)(void *user, char what, int64_t bytes);

/* `config` NULL: the defaults. The caller owns the device, which must outlive the allocator. */
enum plim_status plim_allocator_create(struct plim_device *device,
                                       const struct plim_allocator_config *config,
                                       struct plim_allocator **out,
                                       struct plim_error *err) PLIM_MUST_CHECK;
void plim_allocator_destroy(struct plim_allocator **allocator);

/* Drops all blocks, returns all segments to the device, and zeroes the statistics. */
void plim_allocator_reset(struct plim_allocator *allocator);

/* Allocates a block of at least `bytes` (0 is allowed and gives a NULL block, as in PyTorch) on `stream` (0 is the
 * default stream; numbers are dense and below 4096). PLIM_OOM leaves everything unchanged except what the retry
 * freed. */
enum plim_status plim_allocator_malloc(struct plim_allocator *allocator, int64_t bytes, int stream,
                                       struct plim_block **block) PLIM_MUST_CHECK;
/* NULL is allowed. */
void plim_allocator_free(struct plim_allocator *allocator, struct plim_block *block);

/* The block is also used by work on `stream`: when freed it stays unavailable until that work is done. This is checked
 * by plim_allocator_process_events(), which every malloc calls first, as in PyTorch. On the present devices the work is
 * done by then (they run it in order), as on the oracle's virtual GPU. */
void plim_allocator_record_stream(struct plim_allocator *allocator, struct plim_block *block,
                                  int stream);
void plim_allocator_process_events(struct plim_allocator *allocator);

void plim_allocator_empty_cache(struct plim_allocator *allocator);

/* Returns a hash of everything that determines what the allocator will do: if two are equal, the same subsequent calls
 * get the same blocks (in the order of their addresses; the addresses may differ), the same segments, the same retries
 * and the same failures. This holds for a device that reports where it places segments (`placement` of its operations)
 * or places each above all others, and whose memory only this allocator uses: its free memory then follows from the
 * segments. Returns 0 only if host memory ran out. Takes time linear in the number of blocks. */
uint64_t plim_allocator_fingerprint(struct plim_allocator *allocator);
/* The same for only the pool of large blocks (above 1 MiB), which is independent of the small pool as long as memory
 * does not run out. Numbers blocks (plim_block_position()) like the function above. */
uint64_t plim_allocator_fingerprint_large(struct plim_allocator *allocator);

/* Returns the number, from 1, of an allocated block in the order in which the last fingerprint visited all allocated
 * blocks. After equal fingerprints, blocks with the same number correspond to each other. */
uint32_t plim_block_position(const struct plim_block *block);

uint64_t plim_block_address(const struct plim_block *block);
int64_t plim_block_bytes(const struct plim_block *block); /* as counted in `allocated` */

const struct plim_allocator_stats *
plim_allocator_statistics(const struct plim_allocator *allocator);
void plim_allocator_reset_peaks(struct plim_allocator *allocator);
void plim_allocator_observe(struct plim_allocator *allocator, plim_allocator_observer observer,
                            void *user);

#endif
