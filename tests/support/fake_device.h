/* A device that has memory and nothing else: what the caching allocator needs for its tests.
 *
 * It counts like the virtual GPU that made the traces: a segment takes its size rounded up to
 * 2 MiB, mapped pages take what they are, addresses only grow. It remembers what it gave, so that
 * a wrong return is seen.
 */
#ifndef PLIM_TESTS_FAKE_DEVICE_H
#define PLIM_TESTS_FAKE_DEVICE_H

#include "autotune/base/array.h"
#include "devices/device.h"

struct fake_extent {
    uint64_t address;
    int64_t bytes;
};

struct fake_device {
    struct plim_device base;
    int64_t used_bytes;
    uint64_t next_address;
    int misuses;       /* returns of what was not given, pages mapped twice or outside a range */
    int lose_after;    /* so many more gets or maps succeed, then the device is lost; -1: never */
    PLIM_ARRAY(struct fake_extent) segments, ranges, pages;
};

/* Ready to use through &device->base; info.total_bytes is the capacity. */
void fake_device_init(struct fake_device *device, int64_t capacity_bytes);
void fake_device_finish(struct fake_device *device);

/* Whether nothing is held: no segment, no range, no page, no misuse. */
bool fake_device_is_clean(const struct fake_device *device);

#endif
