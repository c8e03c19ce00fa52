/* The GPUs as NVML reports them; the library is tests/doubles/libnvidia_ml.c. */
#include "devices/nvml/nvml.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define STAND_IN PLIM_DOUBLES_FOLDER "/libnvidia-ml.so.1"
#define GIB ((int64_t)1 << 30)
#define FIRST_UUID "GPU-706c696d-736f-6c6c-2067-707520203000"

static void set(const char *name, const char *value)
{
    cr_assert(zero(int, setenv(name, value, 1)));
}

static struct plim_nvml *open_with(const char *oddities)
{
    struct plim_nvml *nvml;
    struct plim_error err = PLIM_ERROR_INIT;
    int code;
    set("PLIM_DOUBLE_NVML", oddities);
    cr_assert(eq(int, plim_nvml_open(STAND_IN, &nvml, &code, &err), PLIM_OK), "%s", err.text);
    return nvml;
}

static const struct plim_nvml_gpu *gpu_at(const struct plim_nvml *nvml, size_t index)
{
    size_t count;
    const struct plim_nvml_gpu *gpus = plim_nvml_gpus(nvml, &count);
    cr_assert(index < count);
    return &gpus[index];
}

static void expect_open_fails(const char *oddities, const char *library, enum plim_status expected,
                              int expected_code, const char *part)
{
    struct plim_nvml *nvml;
    struct plim_error err = PLIM_ERROR_INIT;
    int code;
    set("PLIM_DOUBLE_NVML", oddities);
    cr_expect(eq(int, plim_nvml_open(library, &nvml, &code, &err), expected));
    cr_expect(eq(int, code, expected_code));
    cr_expect(eq(ptr, nvml, NULL));
    cr_expect(strstr(err.text, part) != NULL, "'%s' is missing in: %s", part, err.text);
}

Test(nvml, a_gpu_tells_what_it_is)
{
    struct plim_nvml *nvml = open_with("");
    const struct plim_nvml_gpu *gpu = gpu_at(nvml, 0);
    cr_expect(eq(int, gpu->status, PLIM_OK));
    cr_expect(eq(str, (char *)gpu->name, (char *)"NVIDIA A100-SXM4-80GB"));
    cr_expect(eq(str, (char *)gpu->uuid, (char *)FIRST_UUID));
    cr_expect(eq(str, (char *)gpu->bus_id, (char *)"0000:01:00.0"));
    cr_expect(eq(int, gpu->compute_capability, 80));
    cr_expect(eq(int, gpu->cores, 108 * 64));
    cr_expect(eq(int, gpu->max_sm_mhz, 1410));
    cr_expect(eq(int, gpu->compute_mode, PLIM_COMPUTE_DEFAULT));
    cr_expect(gpu->persistence && !gpu->display_active && !gpu->mig);
    plim_nvml_close(&nvml);
    cr_expect(eq(ptr, nvml, NULL));
}

Test(nvml, the_driver_tells_its_versions)
{
    struct plim_nvml *nvml = open_with("driver=570.124.06,cuda=12080");
    cr_expect(eq(str, (char *)plim_nvml_driver_version(nvml), (char *)"570.124.06"));
    cr_expect(eq(int, plim_nvml_cuda_version(nvml), 12080));
    plim_nvml_close(&nvml);
}

Test(nvml, gpus_come_in_the_order_of_the_bus)
{
    set("PLIM_DOUBLE_GPU", "T4,H100-SXM5-80GB,RTX-4090");
    struct plim_nvml *nvml = open_with("");
    cr_expect(eq(str, (char *)gpu_at(nvml, 0)->name, (char *)"Tesla T4"));
    cr_expect(eq(str, (char *)gpu_at(nvml, 2)->name, (char *)"NVIDIA GeForce RTX 4090"));
    cr_expect(eq(int, gpu_at(nvml, 1)->index, 1));
    cr_expect(eq(str, (char *)gpu_at(nvml, 2)->bus_id, (char *)"0000:03:00.0"));
    plim_nvml_close(&nvml);
}

Test(nvml, memory_is_reserved_held_or_free)
{
    set("PLIM_DOUBLE_OTHERS", "3GiB");
    struct plim_nvml *nvml = open_with("");
    struct plim_nvml_memory memory;
    cr_assert(eq(int, plim_nvml_memory(nvml, FIRST_UUID, &memory, NULL), PLIM_OK));
    cr_expect(eq(i64, memory.total_bytes, 80 * GIB));
    cr_expect(eq(i64, memory.reserved_bytes, 80 * GIB - ((int64_t)81051 << 20)));
    cr_expect(eq(i64, memory.held_bytes, 3 * GIB));
    cr_expect(eq(i64, memory.free_bytes, ((int64_t)81051 << 20) - 3 * GIB));
    cr_expect(eq(i64, gpu_at(nvml, 0)->memory.held_bytes, 3 * GIB));
    plim_nvml_close(&nvml);
}

Test(nvml, an_old_driver_counts_what_is_reserved_as_held)
{
    set("PLIM_DOUBLE_OTHERS", "3GiB");
    struct plim_nvml *nvml = open_with("old");
    const struct plim_nvml_memory *memory = &gpu_at(nvml, 0)->memory;
    cr_expect(eq(i64, memory->total_bytes, 80 * GIB));
    cr_expect(eq(i64, memory->reserved_bytes, -1));
    cr_expect(eq(i64, memory->held_bytes, 83 * GIB - ((int64_t)81051 << 20)));
    plim_nvml_close(&nvml);
}

Test(nvml, processes_are_listed_with_what_they_hold)
{
    set("PLIM_DOUBLE_OTHERS", "3GiB");
    struct plim_nvml *nvml = open_with("");
    struct plim_nvml_process processes[PLIM_NVML_PROCESSES];
    size_t count;
    cr_assert(eq(int, plim_nvml_processes(nvml, FIRST_UUID, processes, &count, NULL), PLIM_OK));
    cr_assert(eq(sz, count, 1));
    cr_expect(eq(i64, processes[0].held_bytes, 3 * GIB));
    plim_nvml_close(&nvml);
}

Test(nvml, what_a_process_holds_may_be_unknown)
{
    set("PLIM_DOUBLE_OTHERS", "3GiB");
    struct plim_nvml *nvml = open_with("hide-processes");
    struct plim_nvml_process processes[PLIM_NVML_PROCESSES];
    size_t count;
    cr_assert(eq(int, plim_nvml_processes(nvml, FIRST_UUID, processes, &count, NULL), PLIM_OK));
    cr_expect(eq(i64, processes[0].held_bytes, -1));
    plim_nvml_close(&nvml);
}

Test(nvml, more_processes_than_there_is_room_for_are_counted)
{
    struct plim_nvml *nvml = open_with("crowd=60");
    struct plim_nvml_process processes[PLIM_NVML_PROCESSES] = {{0}};
    size_t count;
    cr_assert(eq(int, plim_nvml_processes(nvml, FIRST_UUID, processes, &count, NULL), PLIM_OK));
    cr_expect(eq(sz, count, 60));
    cr_expect(eq(i64, processes[PLIM_NVML_PROCESSES - 1].pid, 100000 + PLIM_NVML_PROCESSES - 1));
    plim_nvml_close(&nvml);
}

Test(nvml, instances_have_a_uuid_memory_and_multiprocessors)
{
    struct plim_nvml *nvml = open_with("mig");
    const struct plim_nvml_gpu *gpu = gpu_at(nvml, 0);
    cr_assert(gpu->mig);
    cr_assert(eq(sz, gpu->instance_count, 2));
    cr_expect(eq(int, strncmp(gpu->instances[1].uuid, "MIG-", 4), 0));
    cr_expect(ne(str, (char *)gpu->instances[0].uuid, (char *)gpu->instances[1].uuid));
    cr_expect(eq(i64, gpu->instances[1].memory.total_bytes, 40 * GIB));
    cr_expect(eq(int, gpu->instances[1].multiprocessors, 54));
    struct plim_nvml_memory memory;
    cr_expect(eq(int, plim_nvml_memory(nvml, gpu->instances[1].uuid, &memory, NULL), PLIM_OK));
    cr_expect(eq(i64, memory.total_bytes, 40 * GIB));
    plim_nvml_close(&nvml);
}

Test(nvml, mig_mode_without_instances_is_told_from_no_mig)
{
    struct plim_nvml *nvml = open_with("mig-empty");
    cr_expect(gpu_at(nvml, 0)->mig);
    cr_expect(eq(sz, gpu_at(nvml, 0)->instance_count, 0));
    plim_nvml_close(&nvml);
    nvml = open_with("no-mig");
    cr_expect(not(gpu_at(nvml, 0)->mig));
    cr_expect(eq(int, gpu_at(nvml, 0)->status, PLIM_OK));
    plim_nvml_close(&nvml);
}

Test(nvml, a_gpu_that_keeps_its_memory_secret_can_be_used)
{
    struct plim_nvml *nvml = open_with("mig,no-memory");
    const struct plim_nvml_gpu *gpu = gpu_at(nvml, 0);
    cr_expect(eq(int, gpu->status, PLIM_OK));
    cr_expect(eq(i64, gpu->memory.total_bytes, -1));
    cr_expect(eq(i64, gpu->memory.held_bytes, -1));
    cr_expect(eq(i64, gpu->instances[0].memory.total_bytes, 40 * GIB));
    plim_nvml_close(&nvml);
}

Test(nvml, compute_modes_are_told)
{
    struct plim_nvml *nvml = open_with("exclusive");
    cr_expect(eq(int, gpu_at(nvml, 0)->compute_mode, PLIM_COMPUTE_EXCLUSIVE_PROCESS));
    plim_nvml_close(&nvml);
    nvml = open_with("prohibited");
    cr_expect(eq(int, gpu_at(nvml, 0)->compute_mode, PLIM_COMPUTE_PROHIBITED));
    plim_nvml_close(&nvml);
}

/* --- samples ---------------------------------------------------------------------------------- */

static struct plim_nvml_sample sample_of(const struct plim_nvml *nvml, const char *uuid)
{
    struct plim_nvml_sample sample;
    struct plim_error err = PLIM_ERROR_INIT;
    cr_assert(eq(int, plim_nvml_sample(nvml, uuid, &sample, &err), PLIM_OK), "%s", err.text);
    return sample;
}

Test(nvml, a_sample_has_clock_power_and_heat)
{
    struct plim_nvml *nvml = open_with("");
    struct plim_nvml_sample sample = sample_of(nvml, FIRST_UUID);
    cr_expect(eq(int, sample.sm_mhz, 1410));
    cr_expect(eq(int, sample.max_sm_mhz, 1410));
    cr_expect(eq(int, sample.celsius, 61));
    cr_expect(epsilon_eq(dbl, sample.power_watts, 360, 1e-6));
    cr_expect(epsilon_eq(dbl, sample.power_limit_watts, 400, 1e-6));
    cr_expect(eq(u64, sample.clock_reasons, PLIM_CLOCK_POWER_CAP));
    plim_nvml_close(&nvml);
}

Test(nvml, the_older_way_to_the_temperature_is_taken_where_there_is_no_other)
{
    struct plim_nvml *nvml = open_with("old");
    cr_expect(eq(int, sample_of(nvml, FIRST_UUID).celsius, 60));
    plim_nvml_close(&nvml);
}

Test(nvml, an_instance_has_the_clock_of_its_gpu)
{
    struct plim_nvml *nvml = open_with("mig");
    cr_expect(eq(int, sample_of(nvml, gpu_at(nvml, 0)->instances[0].uuid).sm_mhz, 1410));
    plim_nvml_close(&nvml);
}

Test(nvml, others_that_compute_are_counted)
{
    struct plim_nvml *nvml = open_with("");
    cr_expect(eq(sz, plim_nvml_computing(nvml, FIRST_UUID, 1), 1), "a display is none");
    cr_expect(eq(sz, plim_nvml_computing(nvml, "no such GPU", 1), 0));
    plim_nvml_close(&nvml);
    nvml = open_with("others-compute");
    cr_expect(eq(sz, plim_nvml_computing(nvml, FIRST_UUID, 1), 2));
    plim_nvml_close(&nvml);
    nvml = open_with("others-compute,mig");
    cr_expect(eq(sz, plim_nvml_computing(nvml, gpu_at(nvml, 0)->instances[0].uuid, 1), 0),
              "it does not tell");
    plim_nvml_close(&nvml);
}

Test(nvml, throttling_is_seen_when_it_begins)
{
    struct plim_nvml *nvml = open_with("throttle@3");
    cr_expect(eq(u64, plim_clock_reasons_spoiling(sample_of(nvml, FIRST_UUID).clock_reasons), 0));
    cr_expect(eq(u64, plim_clock_reasons_spoiling(sample_of(nvml, FIRST_UUID).clock_reasons), 0));
    cr_expect(eq(u64, plim_clock_reasons_spoiling(sample_of(nvml, FIRST_UUID).clock_reasons),
                 PLIM_CLOCK_HW_THERMAL | PLIM_CLOCK_HW_SLOWDOWN));
    plim_nvml_close(&nvml);
}

Test(nvml, heat_and_brakes_spoil_a_timing_and_the_power_cap_does_not)
{
    cr_expect(eq(u64, plim_clock_reasons_spoiling(0x1 | 0x2 | 0x4 | 0x10 | 0x100 | 0x200), 0));
    cr_expect(eq(u64, plim_clock_reasons_spoiling(0x3ff), 0x8 | 0x20 | 0x40 | 0x80));
}

Test(nvml, clock_reasons_have_names)
{
    char text[192];
    cr_expect(eq(str, plim_clock_reasons_text(0, text), (char *)"none"));
    cr_expect(eq(str, plim_clock_reasons_text(0x4 | 0x40, text),
                 (char *)"power cap, hardware thermal slowdown"));
    cr_expect(eq(str, plim_clock_reasons_text(0x1 | 0x200, text), (char *)"idle, 0x200"));
    plim_clock_reasons_text(UINT64_MAX, text);
    cr_expect(strstr(text, "display clocks, 0xfffffffffffffe00") != NULL, "%s", text);
}

/* --- what goes wrong -------------------------------------------------------------------------- */

Test(nvml, a_missing_library_is_told)
{
    expect_open_fails("", "/no/such/libnvidia-ml.so.1", PLIM_NODEVICE, 12,
                      "/no/such/libnvidia-ml.so.1: cannot open shared object file");
}

Test(nvml, a_library_that_is_something_else_is_refused)
{
    expect_open_fails("", "libm.so.6", PLIM_NODEVICE, 13, "driver is too old");
}

Test(nvml, a_driver_that_cannot_start_says_what_would_help)
{
    expect_open_fails("error=9", STAND_IN, PLIM_NODEVICE, 9, "modprobe nvidia");
    expect_open_fails("error=17", STAND_IN, PLIM_NODEVICE, 17, "cgroup");
    expect_open_fails("error=18", STAND_IN, PLIM_NODEVICE, 18, "restart the machine");
    expect_open_fails("error=4", STAND_IN, PLIM_NODEVICE, 4, "/dev/nvidia*");
    expect_open_fails("error=999", STAND_IN, PLIM_INTERNAL, 999, "NVML error 999");
}

Test(nvml, every_number_of_nvmls_has_a_meaning)
{
    static const int lost[] = {10, 11, 14, 15, 16, 29}, lacking[] = {3, 21, 25, 26};
    for (int code = 0; code < 30; code++) {
        if (code == 5 || code == 22 || code == 24) continue; /* of calls that are not made here */
        cr_expect(strstr(plim_nvml_status_text(code), "without a name") == NULL, "%d", code);
    }
    for (size_t i = 0; i < sizeof(lost) / sizeof(lost[0]); i++)
        cr_expect(eq(int, plim_nvml_status(lost[i]), PLIM_LOST), "%d", lost[i]);
    for (size_t i = 0; i < sizeof(lacking) / sizeof(lacking[0]); i++)
        cr_expect(eq(int, plim_nvml_status(lacking[i]), PLIM_UNSUPPORTED), "%d", lacking[i]);
    cr_expect(eq(int, plim_nvml_status(0), PLIM_OK));
    cr_expect(eq(int, plim_nvml_status(-7), PLIM_INTERNAL));
}

Test(nvml, a_machine_without_gpus_opens)
{
    size_t count;
    struct plim_nvml *nvml = open_with("no-gpus");
    plim_nvml_gpus(nvml, &count);
    cr_expect(eq(sz, count, 0));
    plim_nvml_close(&nvml);
}

Test(nvml, one_bad_gpu_does_not_hide_the_others)
{
    set("PLIM_DOUBLE_GPU", "T4,L4");
    struct plim_nvml *nvml = open_with("bad@0=15");
    cr_expect(eq(int, gpu_at(nvml, 0)->status, PLIM_LOST));
    cr_expect(strstr(gpu_at(nvml, 0)->problem, "fell off the bus") != NULL);
    cr_expect(eq(int, gpu_at(nvml, 1)->status, PLIM_OK));
    cr_expect(eq(str, (char *)gpu_at(nvml, 1)->name, (char *)"NVIDIA L4"));
    plim_nvml_close(&nvml);
}

Test(nvml, a_gpu_behind_a_cgroup_is_there_but_cannot_be_used)
{
    struct plim_nvml *nvml = open_with("bad@0=17");
    cr_expect(eq(int, gpu_at(nvml, 0)->status, PLIM_NODEVICE));
    cr_expect(strstr(gpu_at(nvml, 0)->problem, "cgroup") != NULL);
    plim_nvml_close(&nvml);
}

Test(nvml, an_unknown_uuid_is_no_device)
{
    struct plim_nvml *nvml = open_with("");
    struct plim_nvml_process processes[PLIM_NVML_PROCESSES];
    struct plim_nvml_memory memory;
    struct plim_nvml_sample sample;
    size_t count;
    cr_expect(eq(int, plim_nvml_memory(nvml, "GPU-706c", &memory, NULL), PLIM_NODEVICE));
    cr_expect(eq(int, plim_nvml_sample(nvml, "", &sample, NULL), PLIM_NODEVICE));
    cr_expect(eq(int, plim_nvml_processes(nvml, "", processes, &count, NULL), PLIM_NODEVICE));
    plim_nvml_close(&nvml);
}

Test(nvml, a_gpu_that_is_lost_later_is_lost)
{
    struct plim_nvml *nvml = open_with("");
    struct plim_nvml_process processes[PLIM_NVML_PROCESSES];
    struct plim_nvml_memory memory;
    struct plim_nvml_sample sample;
    struct plim_error err = PLIM_ERROR_INIT;
    size_t count;
    set("PLIM_DOUBLE_NVML", "bad@0=15"); /* the stand-in reads it at every call */
    cr_expect(eq(int, plim_nvml_sample(nvml, FIRST_UUID, &sample, &err), PLIM_LOST));
    cr_expect(strstr(err.text, "fell off the bus") != NULL, "%s", err.text);
    cr_expect(eq(int, plim_nvml_memory(nvml, FIRST_UUID, &memory, NULL), PLIM_LOST));
    cr_expect(eq(int, plim_nvml_processes(nvml, FIRST_UUID, processes, &count, NULL), PLIM_LOST));
    plim_nvml_close(&nvml);
}

Test(nvml, closing_nothing_is_fine)
{
    struct plim_nvml *nvml = NULL;
    plim_nvml_close(NULL);
    plim_nvml_close(&nvml);
    cr_expect(eq(ptr, nvml, NULL));
}
