#include "fake_device.h"

#define ROUND ((int64_t)2 << 20)

static struct fake_device *self(struct plim_device *device)
{
    return (struct fake_device *)device; /* `base` is the first member */
}

static enum plim_status take(struct fake_device *d, int64_t bytes)
{
    if (d->lose_after == 0) return PLIM_LOST;
    if (bytes > d->base.info.total_bytes - d->used_bytes) return PLIM_OOM;
    if (d->lose_after > 0) d->lose_after--;
    d->used_bytes += bytes;
    return PLIM_OK;
}

static int64_t round_up(int64_t bytes)
{
    return (bytes + ROUND - 1) / ROUND * ROUND;
}

#define REMEMBER(list, extent_address, extent_bytes)                                               \
    if (PLIM_ARRAY_PUSH(list, ((struct fake_extent){extent_address, extent_bytes})) != PLIM_OK)    \
        abort()

/* Forgets an extent that was given exactly so; anything else is a misuse. */
#define FORGET(d, list, extent_address, extent_bytes)                                              \
    do {                                                                                           \
        size_t i_ = 0;                                                                             \
        while (i_ < (list)->count && ((list)->items[i_].address != (extent_address) ||             \
                                      (list)->items[i_].bytes != (extent_bytes)))                  \
            i_++;                                                                                  \
        if (i_ == (list)->count) (d)->misuses++;                                                   \
        else (list)->items[i_] = (list)->items[--(list)->count];                                   \
    } while (0)

static enum plim_status segment_get(struct plim_device *device, int64_t bytes, uint64_t *address)
{
    struct fake_device *d = self(device);
    enum plim_status st = take(d, round_up(bytes));
    if (st != PLIM_OK) return st;
    *address = d->next_address;
    d->next_address += (uint64_t)round_up(bytes);
    REMEMBER(&d->segments, *address, bytes);
    return PLIM_OK;
}

static void segment_return(struct plim_device *device, uint64_t address, int64_t bytes)
{
    struct fake_device *d = self(device);
    d->used_bytes -= round_up(bytes);
    FORGET(d, &d->segments, address, bytes);
}

static enum plim_status range_reserve(struct plim_device *device, int64_t bytes, uint64_t *address)
{
    struct fake_device *d = self(device);
    *address = d->next_address;
    d->next_address += (uint64_t)round_up(bytes) + ((uint64_t)1 << 30);
    REMEMBER(&d->ranges, *address, bytes);
    return PLIM_OK;
}

static void range_release(struct plim_device *device, uint64_t address, int64_t bytes)
{
    struct fake_device *d = self(device);
    for (size_t i = 0; i < d->pages.count; i++) {
        uint64_t page = d->pages.items[i].address;
        if (page >= address && page < address + (uint64_t)bytes) d->misuses++;
    }
    FORGET(d, &d->ranges, address, bytes);
}

static bool is_in_a_range(const struct fake_device *d, uint64_t address, int64_t bytes)
{
    for (size_t i = 0; i < d->ranges.count; i++) {
        const struct fake_extent *range = &d->ranges.items[i];
        if (address >= range->address &&
            address + (uint64_t)bytes <= range->address + (uint64_t)range->bytes)
            return true;
    }
    return false;
}

static bool overlaps(const struct fake_extent *e, uint64_t address, int64_t bytes)
{
    return address < e->address + (uint64_t)e->bytes && e->address < address + (uint64_t)bytes;
}

static enum plim_status range_map(struct plim_device *device, uint64_t address, int64_t bytes,
                                  int64_t page_bytes)
{
    (void)page_bytes;
    struct fake_device *d = self(device);
    struct fake_extent *before = NULL;
    enum plim_status st = take(d, bytes);
    if (st != PLIM_OK) return st;
    if (!is_in_a_range(d, address, bytes)) d->misuses++;
    for (size_t i = 0; i < d->pages.count; i++) {
        struct fake_extent *e = &d->pages.items[i];
        if (overlaps(e, address, bytes)) d->misuses++;
        if (e->address + (uint64_t)e->bytes == address) before = e;
    }
    if (before) before->bytes += bytes;
    else REMEMBER(&d->pages, address, bytes);
    return PLIM_OK;
}

/* Pages need not go back as they came: what was one extent may be cut, and extents that touch are
 * unmapped together. */
static void range_unmap(struct plim_device *device, uint64_t address, int64_t bytes)
{
    struct fake_device *d = self(device);
    uint64_t end = address + (uint64_t)bytes;
    int64_t found = 0;
    d->used_bytes -= bytes;
    for (size_t i = 0; i < d->pages.count;) {
        struct fake_extent e = d->pages.items[i];
        uint64_t e_end = e.address + (uint64_t)e.bytes;
        if (!overlaps(&e, address, bytes)) {
            i++;
            continue;
        }
        d->pages.items[i] = d->pages.items[--d->pages.count];
        found += e.bytes;
        if (e.address < address) {
            found -= (int64_t)(address - e.address);
            REMEMBER(&d->pages, e.address, (int64_t)(address - e.address));
        }
        if (e_end > end) {
            found -= (int64_t)(e_end - end);
            REMEMBER(&d->pages, end, (int64_t)(e_end - end));
        }
    }
    if (found != bytes) d->misuses++;
}

static int64_t free_bytes(struct plim_device *device)
{
    return device->info.total_bytes - self(device)->used_bytes;
}

static enum plim_status reset(struct plim_device *device)
{
    struct fake_device *d = self(device);
    d->used_bytes = 0;
    d->segments.count = d->ranges.count = d->pages.count = 0;
    return PLIM_OK;
}

static void close_device(struct plim_device *device)
{
    fake_device_finish(self(device));
}

void fake_device_init(struct fake_device *device, int64_t capacity_bytes)
{
    static const struct plim_device_ops ops = {
        .close = close_device,
        .segment_get = segment_get,
        .segment_return = segment_return,
        .range_reserve = range_reserve,
        .range_release = range_release,
        .range_map = range_map,
        .range_unmap = range_unmap,
        .free_bytes = free_bytes,
        .reset = reset,
    };
    *device = (struct fake_device){.next_address = (uint64_t)3 << 44, .lose_after = -1};
    device->base.ops = &ops;
    device->base.info.total_bytes = capacity_bytes;
}

void fake_device_finish(struct fake_device *device)
{
    PLIM_ARRAY_FINISH(&device->segments);
    PLIM_ARRAY_FINISH(&device->ranges);
    PLIM_ARRAY_FINISH(&device->pages);
}

bool fake_device_is_clean(const struct fake_device *device)
{
    return device->used_bytes == 0 && device->segments.count == 0 && device->ranges.count == 0 &&
           device->pages.count == 0 && device->misuses == 0;
}
