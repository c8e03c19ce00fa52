/* Where the CUDA driver places device memory: addresses decide which of two blocks of one size PyTorch's
 * caching allocator takes (the lower one), and so how far it has to reserve.
 *
 * The driver sets aside regions of the address space, multiples of 32 MiB, and places requests in them:
 *   1. in the newest region that has a gap for the request: its smallest such gap, the lower one of two equal ones;
 *   2. else at the start of a new region, as small as possible. The region lies as high as possible, in a hole
 *      that is larger than the region by 32 MiB less a page or more (mmap from above, cut to its alignment).
 * A region that no longer holds anything is given back.
 *
 * Source: 1,000 requests and releases of 2 MiB to 2 GiB in ten orders, in two processes, with driver 580.159.04
 * on an H200 (tests/gpu/measured/h200-addresses.json): every address is the one computed here. In a real process the
 * host's own memory lies in the same address space, and what it gives back is used again for regions: that is not
 * modelled.
 */
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
    /* Remembered results of searches: no region has a gap wider than `widest`; from the region
     * at `full_from` upwards no hole has room for `full_bytes` or more (0: not known). */
    uint64_t widest, full_from, full_bytes;
};

/* Starts an address space that is empty but for the two regions of the CUDA context, which have 24 MiB and 2 MiB
 * left. `bottom` and `top` are multiples of 32 MiB. `space` is zeroed or in use; then its regions are freed first.
 * PLIM_OK or PLIM_NOMEM. */
enum plim_status plim_address_space_begin(struct plim_address_space *space, uint64_t bottom,
                                          uint64_t top) PLIM_MUST_CHECK;

/* Places `bytes` (whole pages of 2 MiB). `alone`: in a region of its own, in which nothing else is placed.
 * PLIM_NOMEM: no host memory; PLIM_OOM: no addresses left. */
enum plim_status plim_address_space_take(struct plim_address_space *space, uint64_t bytes,
                                         bool alone, uint64_t *at) PLIM_MUST_CHECK;

/* Gives back what plim_address_space_take() placed at `at`. */
void plim_address_space_give(struct plim_address_space *space, uint64_t at);

/* A hash of everything that decides where the next requests are placed. */
uint64_t plim_address_space_fingerprint(const struct plim_address_space *space);

/* Gives everything back. */
void plim_address_space_clear(struct plim_address_space *space);

#endif
