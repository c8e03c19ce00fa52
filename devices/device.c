/* The wrappers of device.h, which check, count and remember for all devices. */
#include "device.h"

#include <stdio.h>
#include <stdlib.h>

/* Every call that can fail goes through here: a device that is lost once stays lost. */
static enum plim_status note_loss(struct plim_device *device, enum plim_status st)
{
    if (st == PLIM_LOST) device->lost = true;
    return st;
}

static enum plim_status usable(const struct plim_device *device, bool implemented)
{
    if (device->lost) return PLIM_LOST;
    return implemented ? PLIM_OK : PLIM_UNSUPPORTED;
}

static void count_memory(struct plim_device *device, int64_t bytes)
{
    device->segment_bytes += bytes;
    if (device->segment_bytes > device->segment_bytes_peak)
        device->segment_bytes_peak = device->segment_bytes;
}

void plim_device_close(struct plim_device **device)
{
    if (!device || !*device) return;
    (*device)->ops->close(*device);
    *device = NULL;
}

enum plim_status plim_device_segment_get(struct plim_device *device, int64_t bytes,
                                         uint64_t *address)
{
    *address = 0;
    enum plim_status st = usable(device, device->ops->segment_get);
    if (st != PLIM_OK) return st;
    if (bytes <= 0) return PLIM_INVALID;
    st = note_loss(device, device->ops->segment_get(device, bytes, address));
    if (st == PLIM_OK) count_memory(device, bytes);
    return st;
}

void plim_device_segment_return(struct plim_device *device, uint64_t address, int64_t bytes)
{
    count_memory(device, -bytes);
    if (!device->lost) device->ops->segment_return(device, address, bytes);
}

enum plim_status plim_device_range_reserve(struct plim_device *device, int64_t bytes,
                                           uint64_t *address)
{
    *address = 0;
    enum plim_status st = usable(device, device->ops->range_reserve);
    if (st != PLIM_OK) return st;
    if (bytes <= 0) return PLIM_INVALID;
    return note_loss(device, device->ops->range_reserve(device, bytes, address));
}

void plim_device_range_release(struct plim_device *device, uint64_t address, int64_t bytes)
{
    if (!device->lost) device->ops->range_release(device, address, bytes);
}

enum plim_status plim_device_range_map(struct plim_device *device, uint64_t address, int64_t bytes,
                                       int64_t page_bytes)
{
    enum plim_status st = usable(device, device->ops->range_map);
    if (st != PLIM_OK) return st;
    if (bytes <= 0 || page_bytes <= 0 || bytes % page_bytes) return PLIM_INVALID;
    st = note_loss(device, device->ops->range_map(device, address, bytes, page_bytes));
    if (st == PLIM_OK) count_memory(device, bytes);
    return st;
}

void plim_device_range_unmap(struct plim_device *device, uint64_t address, int64_t bytes)
{
    count_memory(device, -bytes);
    if (!device->lost) device->ops->range_unmap(device, address, bytes);
}

uint64_t plim_device_placement(struct plim_device *device)
{
    return device->ops->placement ? device->ops->placement(device) : 0;
}

void plim_device_limit(struct plim_device *device, int64_t bytes)
{
    if (!device->lost && device->ops->limit) device->ops->limit(device, bytes);
}

int64_t plim_device_free_bytes(struct plim_device *device)
{
    return device->lost ? 0 : device->ops->free_bytes(device);
}

static bool is_valid_op(const struct plim_op *op)
{
    return op && (unsigned)op->kind < PLIM_OP_KIND_COUNT && op->n_out <= PLIM_OP_MAX_OUT &&
           op->n_in <= PLIM_OP_MAX_IN && op->n_lists <= PLIM_OP_MAX_LISTS &&
           op->n_scratch <= PLIM_OP_MAX_SCRATCH;
}

enum plim_status plim_device_launch(struct plim_device *device, const struct plim_op *op)
{
    enum plim_status st = usable(device, device->ops->launch);
    if (st != PLIM_OK) return st;
    if (!is_valid_op(op)) return PLIM_INVALID;
    st = note_loss(device, device->ops->launch(device, op));
    if (st == PLIM_OK) device->launches++;
    return st;
}

bool plim_device_can_repeat(const struct plim_device *device)
{
    return device->ops->repeat != NULL;
}

void plim_device_begin_round(struct plim_device *device)
{
    if (plim_device_can_repeat(device)) device->ops->begin_round(device);
}

void plim_device_end_round(struct plim_device *device, struct plim_device_round *round)
{
    *round = (struct plim_device_round){0};
    if (plim_device_can_repeat(device)) device->ops->end_round(device, round);
}

void plim_device_repeat(struct plim_device *device, const struct plim_device_round *round,
                        int64_t times)
{
    if (plim_device_can_repeat(device)) device->ops->repeat(device, round, times);
}

void plim_device_spend(struct plim_device *device, double driver_seconds)
{
    if (device->ops->spend && driver_seconds > 0) device->ops->spend(device, driver_seconds);
}

void plim_device_host_work(struct plim_device *device, double seconds)
{
    if (device->ops->host_work && seconds > 0) device->ops->host_work(device, seconds);
}

void plim_device_link(struct plim_device *device, int64_t bytes, bool is_pageable)
{
    if (device->ops->link && bytes > 0) device->ops->link(device, bytes, is_pageable);
}

double plim_device_running_seconds(const struct plim_device_load *load)
{
    double all = 0;
    for (int i = 0; i < PLIM_DEVICE_TASKS; i++) all += load->running_seconds[i];
    return all;
}

struct plim_device_load plim_device_load_between(const struct plim_device_load *before,
                                                 const struct plim_device_load *after)
{
    struct plim_device_load load = {
        .launching_seconds = after->launching_seconds - before->launching_seconds,
        .launching_at_most_seconds = after->launching_at_most_seconds - before->launching_at_most_seconds,
        .driver_seconds = after->driver_seconds - before->driver_seconds};
    for (int i = 0; i < PLIM_DEVICE_TASKS; i++)
        load.running_seconds[i] = after->running_seconds[i] - before->running_seconds[i];
    return load;
}

void plim_device_load(const struct plim_device *device, struct plim_device_load *load)
{
    *load = (struct plim_device_load){0};
    if (device->ops->load) device->ops->load(device, load);
}

enum plim_status plim_device_now(struct plim_device *device, double *seconds)
{
    *seconds = 0;
    enum plim_status st = usable(device, device->ops->now);
    return st == PLIM_OK ? note_loss(device, device->ops->now(device, seconds)) : st;
}

enum plim_status plim_device_read(struct plim_device *device, uint64_t address, void *to,
                                  size_t bytes)
{
    enum plim_status st = usable(device, device->ops->read);
    return st == PLIM_OK ? note_loss(device, device->ops->read(device, address, to, bytes)) : st;
}

enum plim_status plim_device_write(struct plim_device *device, uint64_t address, const void *from,
                                   size_t bytes)
{
    enum plim_status st = usable(device, device->ops->write);
    return st == PLIM_OK ? note_loss(device, device->ops->write(device, address, from, bytes)) : st;
}

enum plim_status plim_device_reset(struct plim_device *device)
{
    enum plim_status st = usable(device, device->ops->reset);
    if (st == PLIM_OK) st = note_loss(device, device->ops->reset(device));
    if (st == PLIM_OK) {
        device->segment_bytes = 0;
        device->segment_bytes_peak = 0;
        device->launches = 0;
        device->sdpa_engines = 0;
        device->groups_one_by_one = false;
        device->delta_on_fp32 = false;
    }
    return st;
}

char *plim_sdpa_engines_text(unsigned engines, char out[PLIM_SDPA_ENGINES_TEXT])
{
    static const struct {
        enum plim_sdpa_engine engine;
        const char *text;
    } names[] = {{PLIM_SDPA_BY_CUDNN, "cuDNN"},
                 {PLIM_SDPA_BY_TENSOR_CORES, "tensor cores"},
                 {PLIM_SDPA_BY_FP32, "fp32 units"},
                 {PLIM_SDPA_BY_FALLBACK, "fp32 units (fall-back)"}};
    size_t length = 0;
    out[0] = '\0';
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (engines & names[i].engine)
            length += (size_t)snprintf(out + length, PLIM_SDPA_ENGINES_TEXT - length, "%s%s",
                                       length ? ", " : "", names[i].text);
    return out;
}

const char *plim_device_message(const struct plim_device *device)
{
    return device->ops->message ? device->ops->message(device) : "";
}

void plim_device_remember(struct plim_device *device, int fd)
{
    if (device->ops->remember) device->ops->remember(device, fd);
}

bool plim_device_is_suspect(const struct plim_device *device)
{
    return device->ops->is_suspect && device->ops->is_suspect(device);
}

bool plim_device_has_refused(const struct plim_device *device)
{
    return device->ops->has_refused && device->ops->has_refused(device);
}
