/* Where the CUDA driver places device memory: addresses determine which of two blocks of the same size PyTorch's
 * caching allocator uses (the lower one), and thereby how much it has to reserve.
 *
 * The driver reserves regions of the address space, multiples of 32 MiB, and places requests in them:
 *   1. in the newest region that has a gap for the request: its smallest such gap, the lower one of two equal ones;
 *   2. otherwise at the start of a new region, as small as possible. The region is placed as high as possible, in a
 *      hole that is larger than the region by at least 32 MiB minus a page (mmap from above, cut to its alignment).
 * A region that no longer contains anything is released.
 *
 * Source: 1,000 requests and releases of 2 MiB to 2 GiB in ten orders, in two processes, with driver 580.159.04 on an
 * H200 (tests/gpu/measured/h200-addresses.json): every address is the one computed here. In a real process host memory
 * is in the same address space, and regions reuse what it releases: that is not modelled. */
#ifndef PLIM_DEVICES_ADDRESS_SPACE_H
#define PLIM_DEVICES_ADDRESS_SPACE_H

#include "autotune/base/array.h"
#include "autotune/base/status.h"
#include <stdbool.h>
#include <stdint.h>

struct plim_address_space_region;

struct plim_address_space {
    uint64_t bottom, top;
    PLIM_ARRAY(struct plim_address_space_region *)
    by_age, by_address; /* the oldest first; the highest first */
    /* Cached results of searches: no region has a gap wider than `widest`; from the region at `full_from` upwards no
     * hole has room for `full_bytes` or more (0: unknown). */
    uint64_t widest, full_from, full_bytes;
};

/* Starts an address space that is empty except for the two regions of the CUDA context, which have 24 MiB and 2 MiB
 * left. `bottom` and `top` are multiples of 32 MiB. `space` is zeroed or in use; if in use, its regions are freed
 * first. PLIM_OK or PLIM_NOMEM. */
enum plim_status plim_address_space_begin(struct plim_address_space *space, uint64_t bottom,
                                          uint64_t top) PLIM_MUST_CHECK;

/* Places `bytes` (whole pages of 2 MiB). `alone`: in a separate region, in which nothing else is placed. PLIM_NOMEM: no
 * host memory; PLIM_OOM: no addresses left. */
enum plim_status plim_address_space_reserve(struct plim_address_space *space, uint64_t bytes,
                                            bool alone, uint64_t *at) PLIM_MUST_CHECK;

/* Releases what plim_address_space_reserve() placed at `at`. */
void plim_address_space_release(struct plim_address_space *space, uint64_t at);

/* Returns a hash of everything that determines where the next requests are placed. */
uint64_t plim_address_space_fingerprint(const struct plim_address_space *space);

/* Releases everything. */
void plim_address_space_clear(struct plim_address_space *space);

#endif
