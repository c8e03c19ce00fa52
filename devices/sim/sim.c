#include "sim.h"

#include "autotune/base/round.h"
#include "autotune/base/text.h"
#include "devices/address_space.h"
#include "devices/catalogue/architecture.h"
#include "devices/uri.h"
#include "clock.h"
#include "score.h"
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PLAIN_GPU "A100-SXM4-40GB"
/* Leaves enough addresses for the ranges of a GPU without limits (expandable.c), one per pool and stream. */
#define FIRST_ADDRESS (UINT64_C(1) << 40)
#define END_OF_ADDRESSES (UINT64_C(1) << 62)

struct sim {
    struct plim_device device; /* must be first: the start of every device */
    struct plim_gpu gpu;
    int64_t capacity_bytes, held_bytes;
    struct plim_address_space addresses;
    uint64_t next_address; /* if addresses are ascending */
    struct plim_sim_clock clock;
    struct plim_roofline roofline;
    struct plim_score_recorder *recorder; /* NULL: not recording */
};

static struct sim *sim_of(struct plim_device *device)
{
    return (struct sim *)device;
}

/* --- memory ----------------------------------------------------------------------------------- */

static int64_t whole_pages(int64_t bytes)
{
    return plim_round_up(bytes, PLIM_PAGE_BYTES);
}

static enum plim_status reserve_bytes(struct sim *sim, int64_t bytes)
{
    if (bytes > sim->capacity_bytes - sim->held_bytes) return PLIM_OOM;
    sim->held_bytes += bytes;
    return PLIM_OK;
}

/* `alone`: for an expandable range, in which nothing else is placed. */
static enum plim_status reserve_addresses(struct sim *sim, int64_t bytes, bool alone,
                                          uint64_t *address)
{
    uint64_t whole = (uint64_t)whole_pages(bytes);
    if (!sim->gpu.ascending) return plim_address_space_reserve(&sim->addresses, whole, alone, address);
    *address = sim->next_address;
    sim->next_address += whole;
    return PLIM_OK;
}

static void return_addresses(struct sim *sim, uint64_t address)
{
    if (!sim->gpu.ascending) plim_address_space_release(&sim->addresses, address);
}

static void record(struct sim *sim, enum plim_score_action action, uint32_t number, int64_t times)
{
    if (sim->recorder) plim_score_record(sim->recorder, action, number, times);
}

/* A refused request takes time as well. */
static enum plim_status reserve_memory(struct sim *sim, int64_t bytes)
{
    record(sim, PLIM_SCORE_TAKE_MEMORY, 0, 1);
    plim_sim_clock_drive(&sim->clock, PLIM_DRIVER_MEMORY_SECONDS, false);
    return reserve_bytes(sim, bytes);
}

static void return_memory(struct sim *sim, int64_t bytes)
{
    record(sim, PLIM_SCORE_RETURN_MEMORY, 0, 1);
    plim_sim_clock_drive(&sim->clock, PLIM_DRIVER_MEMORY_SECONDS, true);
    sim->held_bytes -= bytes;
}

static enum plim_status segment_get(struct plim_device *device, int64_t bytes, uint64_t *address)
{
    struct sim *sim = sim_of(device);
    enum plim_status st = reserve_memory(sim, whole_pages(bytes));
    if (st != PLIM_OK) return st;
    st = reserve_addresses(sim, bytes, false, address);
    if (st != PLIM_OK) sim->held_bytes -= whole_pages(bytes);
    return st;
}

static void segment_return(struct plim_device *device, uint64_t address, int64_t bytes)
{
    return_addresses(sim_of(device), address);
    return_memory(sim_of(device), whole_pages(bytes));
}

static enum plim_status range_reserve(struct plim_device *device, int64_t bytes, uint64_t *address)
{
    return reserve_addresses(sim_of(device), bytes, true, address);
}

static void range_release(struct plim_device *device, uint64_t address, int64_t bytes)
{
    (void)bytes;
    return_addresses(sim_of(device), address);
}

static uint64_t placement_number(struct plim_device *device)
{
    struct sim *sim = sim_of(device);
    return sim->gpu.ascending ? 0 : plim_address_space_fingerprint(&sim->addresses);
}

static enum plim_status range_map(struct plim_device *device, uint64_t address, int64_t bytes,
                                  int64_t page_bytes)
{
    (void)address, (void)page_bytes;
    return reserve_memory(sim_of(device), bytes);
}

static void range_unmap(struct plim_device *device, uint64_t address, int64_t bytes)
{
    (void)address;
    return_memory(sim_of(device), bytes);
}

static void limit(struct plim_device *device, int64_t bytes)
{
    sim_of(device)->capacity_bytes = bytes;
}

static int64_t free_bytes(struct plim_device *device)
{
    const struct sim *sim = sim_of(device);
    return sim->capacity_bytes > sim->held_bytes ? sim->capacity_bytes - sim->held_bytes : 0;
}

/* --- work and time ---------------------------------------------------------------------------- */

static void do_work(struct sim *sim, const struct plim_work *work)
{
    if (sim->recorder) plim_score_launch(sim->recorder, work);
    plim_sim_clock_launch(&sim->clock, work->host_seconds * sim->roofline.host_share, plim_work_task(work),
                          plim_roofline_seconds(&sim->roofline, work), work->waits);
}

static enum plim_status launch(struct plim_device *device, const struct plim_op *op)
{
    struct plim_work work = plim_work_of(op, device->in_autograd);
    if (device->in_graph) work.host_seconds = 0;
    do_work(sim_of(device), &work);
    return PLIM_OK;
}

static void host_work(struct plim_device *device, double seconds)
{
    const struct plim_work work = {.kind = PLIM_WORK_HOST, .host_seconds = seconds};
    do_work(sim_of(device), &work);
}

/* The host launches a copy like a kernel. */
static void pass_link(struct plim_device *device, int64_t bytes, bool is_pageable)
{
    const struct plim_work work = {.kind = PLIM_WORK_LINK,
                                   .waits = is_pageable,
                                   .bytes =
                                       (double)bytes * (is_pageable ? PLIM_PAGEABLE_SLOWDOWN : 1),
                                   .host_seconds = PLIM_HOST_SECONDS};
    do_work(sim_of(device), &work);
}

static void begin_round(struct plim_device *device)
{
    struct sim *sim = sim_of(device);
    record(sim, PLIM_SCORE_BEGIN_ROUND, 0, 1);
    plim_sim_clock_begin_round(&sim->clock);
}

static void end_round(struct plim_device *device, struct plim_device_round *round)
{
    struct sim *sim = sim_of(device);
    record(sim, PLIM_SCORE_END_ROUND, 0, 1);
    plim_sim_clock_end_round(&sim->clock, round);
}

static void repeat(struct plim_device *device, const struct plim_device_round *round, int64_t times)
{
    struct sim *sim = sim_of(device);
    record(sim, PLIM_SCORE_REPEAT, round->number, times);
    plim_sim_clock_repeat(&sim->clock, round, times);
}

/* A run that spends driver time reaches its limit again and again, so other devices cannot share its score. */
static void spend(struct plim_device *device, double driver_seconds)
{
    struct sim *sim = sim_of(device);
    if (sim->recorder) sim->recorder->broken = true;
    plim_sim_clock_drive(&sim->clock, driver_seconds, true);
}

static void load(const struct plim_device *device, struct plim_device_load *out)
{
    const struct sim *sim = (const struct sim *)device;
    *out = sim->clock.load;
    out->launching_at_most_seconds = out->launching_seconds * sim->roofline.host_doubt;
}

static enum plim_status now(struct plim_device *device, double *seconds)
{
    struct sim *sim = sim_of(device);
    record(sim, PLIM_SCORE_READ, 0, 1);
    *seconds = sim->clock.line.device;
    return PLIM_OK;
}

static enum plim_status read_zeros(struct plim_device *device, uint64_t address, void *to,
                                   size_t bytes)
{
    (void)device, (void)address;
    memset(to, 0, bytes);
    return PLIM_OK;
}

static enum plim_status write_nothing(struct plim_device *device, uint64_t address,
                                      const void *from, size_t bytes)
{
    (void)device, (void)address, (void)from, (void)bytes;
    return PLIM_OK;
}

static enum plim_status reset(struct plim_device *device)
{
    struct sim *sim = sim_of(device);
    sim->held_bytes = 0;
    sim->next_address = FIRST_ADDRESS;
    enum plim_status st =
        plim_address_space_begin(&sim->addresses, FIRST_ADDRESS, END_OF_ADDRESSES);
    sim->clock = (struct plim_sim_clock){0};
    if (sim->recorder) plim_score_rewind(sim->recorder);
    return st;
}

static void close_sim(struct plim_device *device)
{
    plim_address_space_clear(&sim_of(device)->addresses);
    free(sim_of(device));
}

static const struct plim_device_ops sim_ops = {
    .close = close_sim,
    .segment_get = segment_get,
    .segment_return = segment_return,
    .range_reserve = range_reserve,
    .range_release = range_release,
    .range_map = range_map,
    .range_unmap = range_unmap,
    .placement = placement_number,
    .limit = limit,
    .free_bytes = free_bytes,
    .launch = launch,
    .begin_round = begin_round,
    .end_round = end_round,
    .repeat = repeat,
    .spend = spend,
    .host_work = host_work,
    .link = pass_link,
    .load = load,
    .now = now,
    .read = read_zeros,
    .write = write_nothing,
    .reset = reset,
};

/* --- opening ---------------------------------------------------------------------------------- */

static void describe(struct plim_device_info *info, const struct plim_gpu *gpu,
                     int64_t memory_bytes)
{
    char memory[32];
    snprintf(info->name, sizeof(info->name), "%s", gpu->name);
    info->simulated = true;
    info->compute_capability = gpu->compute_capability;
    info->multiprocessors = gpu->multiprocessors;
    info->threads_per_multiprocessor = plim_architecture_of(gpu->compute_capability)->threads;
    info->total_bytes = memory_bytes > 0 ? memory_bytes : gpu->total_bytes;
    plim_uri_format_bytes(info->total_bytes, memory, sizeof(memory));
    const char *placement = gpu->ascending ? ",placement=ascending" : "";
    if (info->total_bytes == gpu->total_bytes)
        snprintf(info->uri, sizeof(info->uri), "sim:%s%s", gpu->name, placement);
    else
        snprintf(info->uri, sizeof(info->uri), "sim:%s,memory=%s%s", gpu->name, memory, placement);
}

enum plim_status plim_sim_open_gpu(const struct plim_gpu *gpu, int64_t memory_bytes,
                                   struct plim_device **out, struct plim_error *err)
{
    *out = NULL;
    if (memory_bytes < 0) return plim_fail(err, PLIM_INVALID, "a GPU has no negative memory");
    struct sim *sim = calloc(1, sizeof(*sim));
    if (!sim) return plim_fail(err, PLIM_NOMEM, "no memory for a simulated device");
    sim->device.ops = &sim_ops;
    sim->gpu = *gpu;
    describe(&sim->device.info, gpu, memory_bytes);
    sim->capacity_bytes = sim->device.info.total_bytes;
    plim_roofline_init(&sim->roofline, &sim->gpu);
    enum plim_status st = reset(&sim->device);
    if (st == PLIM_OK)
        *out = &sim->device;
    else
        close_sim(&sim->device);
    return st;
}

/* "24GiB", but not "4090", which is a GPU. */
static bool is_size(const char *text, int64_t *bytes)
{
    return isdigit((unsigned char)text[0]) && !isdigit((unsigned char)text[strlen(text) - 1]) &&
           plim_parse_bytes(text, bytes, NULL) == PLIM_OK && *bytes > 0;
}

static enum plim_status open_plain(int64_t bytes, const struct plim_uri_options *options,
                                   struct plim_device **out, struct plim_error *err)
{
    const struct plim_gpu *known;
    enum plim_status st = plim_catalogue_find(PLAIN_GPU, &known, err);
    if (st != PLIM_OK) return st;
    struct plim_gpu plain = *known;
    plim_uri_format_bytes(bytes, plain.name, sizeof(plain.name));
    plain.match[0] = '\0';
    plain.total_bytes = bytes;
    plain.ascending = options->ascending;
    st = plim_sim_open_gpu(&plain, options->memory_bytes, out, err);
    if (!st) (*out)->info.based_on = known->name;
    return st;
}

enum plim_status plim_sim_open(const char *uri_tail, struct plim_device **out,
                               struct plim_error *err)
{
    const struct plim_gpu *gpu;
    char name[80];
    struct plim_uri_options options;
    int64_t plain_bytes;

    *out = NULL;
    size_t length = strcspn(uri_tail, ",");
    snprintf(name, sizeof(name), "%.*s", (int)(length < sizeof(name) ? length : sizeof(name) - 1),
             uri_tail);
    enum plim_status st = plim_uri_read(uri_tail + length, &options, err);
    if (st != PLIM_OK) return st;
    if (is_size(name, &plain_bytes)) return open_plain(plain_bytes, &options, out, err);
    st = plim_catalogue_find(name, &gpu, err);
    if (st != PLIM_OK) return st;
    struct plim_gpu chosen = *gpu;
    chosen.ascending = options.ascending;
    return plim_sim_open_gpu(&chosen, options.memory_bytes, out, err);
}

const struct plim_gpu *plim_sim_gpu(const struct plim_device *device)
{
    return &((const struct sim *)device)->gpu;
}

void plim_sim_host(struct plim_device *device, double share, bool is_known)
{
    plim_roofline_host(&sim_of(device)->roofline, share, is_known);
}

void plim_sim_record(struct plim_device *device, struct plim_score_recorder *recorder)
{
    sim_of(device)->recorder = recorder;
}

size_t plim_sim_play(struct plim_device *device, const struct plim_score *score,
                     struct plim_score_reading readings[PLIM_SCORE_READINGS])
{
    return plim_score_play(score, &sim_of(device)->roofline, readings);
}
