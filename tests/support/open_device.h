/* What tests of the devices share: a device of one kind that opens or is refused, and its memory. */
#ifndef PLIM_TESTS_SUPPORT_OPEN_DEVICE_H
#define PLIM_TESTS_SUPPORT_OPEN_DEVICE_H

#include "devices/device.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <string.h>

/* plim_cuda_open, plim_host_open, plim_sim_open */
typedef enum plim_status open_device_function(const char *tail, struct plim_device **out,
                                              struct plim_error *err);

static inline struct plim_device *open_device(open_device_function *open, const char *tail)
{
    struct plim_device *device;
    struct plim_error err = PLIM_ERROR_INIT;
    enum plim_status st = open(tail, &device, &err);
    cr_assert(eq(int, st, PLIM_OK), "%s: %s", tail, err.text);
    return device;
}

static inline void expect_device_refused(open_device_function *open, const char *tail,
                                         enum plim_status status, const char *part_of_message)
{
    struct plim_device *device;
    struct plim_error err = PLIM_ERROR_INIT;
    cr_expect(eq(int, open(tail, &device, &err), status), "%s: %s", tail, err.text);
    cr_expect(eq(ptr, device, NULL));
    cr_expect(err.text[0] != '\0');
    cr_expect(strstr(err.text, part_of_message) != NULL, "'%s' is missing in: %s", part_of_message,
              err.text);
}

static inline uint64_t device_segment(struct plim_device *device, int64_t bytes)
{
    uint64_t address;
    cr_assert(eq(int, plim_device_segment_get(device, bytes, &address), PLIM_OK));
    return address;
}

#endif
