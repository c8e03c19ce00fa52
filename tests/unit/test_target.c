/* The meaning of --device on a machine, with the stand-in for NVML. */
#include "autotune/run/target.h"
#include "devices/cuda/minimum.h"

#include "support/fake_root.h"
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define STAND_IN PLIM_DOUBLES_FOLDER "/libnvidia-ml.so.1"
#define GIB ((int64_t)1 << 30)
#define A100_BYTES ((int64_t)81051 << 20) /* the catalogue's, as CUDA reports it */
#define UUID(gpu) "GPU-706c696d-736f-6c6c-2067-70752020" gpu "00"

static struct fake_root root;
static struct plim_target_place place;

static void set(const char *name, const char *value)
{
    cr_assert(zero(int, setenv(name, value, 1)));
}

/* A machine with a stand-in for NVML and nothing else. */
static void set_up(void)
{
    root = fake_root_create();
    place = (struct plim_target_place){.library = STAND_IN,
                                       .driver = "/no/such/libcuda.so.1",
                                       .root = root.path,
                                       .has_cuda = true};
}

static void tear_down(void)
{
    fake_root_remove(&root);
}

TestSuite(target, .init = set_up, .fini = tear_down);

static struct plim_target resolve(const char *uri)
{
    struct plim_target target;
    struct plim_error err = PLIM_ERROR_INIT;
    cr_assert(eq(int, plim_target_resolve_at(&place, uri, &target, &err), PLIM_OK), "%s: %s", uri,
              err.text);
    return target;
}

static void expect_refused(const char *uri, enum plim_status expected, const char *part)
{
    struct plim_target target;
    struct plim_error err = PLIM_ERROR_INIT;
    cr_expect(eq(int, plim_target_resolve_at(&place, uri, &target, &err), expected), "%s", uri);
    cr_expect(strstr(err.text, part) != NULL, "%s: '%s' is missing in: %s", uri, part, err.text);
}

Test(target, a_gpu_is_described)
{
    set("PLIM_DOUBLE_OTHERS", "3GiB");
    struct plim_target t = resolve("cuda");
    cr_expect(not(t.simulate));
    cr_expect(eq(str, t.uuid, (char *)UUID("30")));
    cr_expect(eq(str, t.uri, (char *)"cuda:" UUID("30")));
    cr_expect(eq(str, t.name, (char *)"NVIDIA A100-SXM4-80GB"));
    cr_assert(ne(ptr, (void *)t.gpu, NULL));
    cr_expect(eq(str, (char *)t.gpu->name, (char *)"A100-SXM4-80GB"));
    cr_expect(eq(i64, t.total_bytes, A100_BYTES));
    cr_expect(t.memory_is_reported);
    cr_expect(eq(i64, t.held_bytes, 3 * GIB));
    cr_expect(eq(i64, t.memory_cap_bytes, 0));
    cr_expect(eq(int, t.compute_capability, 80));
    cr_expect(eq(int, t.multiprocessors, 108));
    cr_expect(eq(str, t.driver_version, (char *)"580.65.06"));
    cr_expect(eq(int, t.cuda_version, 13000));
    cr_expect(eq(str, t.note, (char *)""));
}

Test(target, an_old_driver_gives_the_same_memory)
{
    set("PLIM_DOUBLE_OTHERS", "3GiB");
    set("PLIM_DOUBLE_NVML", "old");
    struct plim_target t = resolve("cuda");
    cr_expect(eq(i64, t.total_bytes, A100_BYTES));
    cr_expect(eq(i64, t.held_bytes, 3 * GIB));
}

Test(target, a_number_counts_as_cuda_counts)
{
    set("PLIM_DOUBLE_GPU", "T4,A100-SXM4-80GB,L4");
    cr_expect(eq(str, resolve("cuda:0").name, (char *)"NVIDIA L4"));
    cr_expect(eq(str, resolve("cuda:2").name, (char *)"Tesla T4"));
    place.device_order = "PCI_BUS_ID";
    cr_expect(eq(str, resolve("cuda:0").name, (char *)"Tesla T4"));
    place.visible_devices = "2,0";
    cr_expect(eq(str, resolve("cuda:0").name, (char *)"NVIDIA L4"));
    cr_expect(eq(str, resolve("cuda").name, (char *)"NVIDIA L4"));
    expect_refused("cuda:2", PLIM_NODEVICE, "there is: cuda:0 is NVIDIA L4");
}

Test(target, a_guessed_order_is_noted_where_a_number_was_given)
{
    set("PLIM_DOUBLE_GPU", "T4,A100-SXM4-80GB");
    cr_expect(strstr(resolve("cuda:1").note, "Tesla T4 is taken for cuda:1") != NULL);
    cr_expect(eq(str, resolve("cuda:" UUID("31")).note, (char *)""));
    place.device_order = "PCI_BUS_ID";
    cr_expect(eq(str, resolve("cuda:1").note, (char *)""));
}

Test(target, a_uri_finds_the_same_gpu_again)
{
    set("PLIM_DOUBLE_GPU", "A100-SXM4-80GB,A100-SXM4-80GB");
    struct plim_target first = resolve("cuda:1,memory=24GiB"), again = resolve(first.uri);
    cr_expect(eq(str, again.uuid, (char *)UUID("31")));
    cr_expect(eq(i64, first.memory_cap_bytes, 24 * GIB));
    cr_expect(eq(i64, again.memory_cap_bytes, 24 * GIB));
    expect_refused("cuda:GPU-706c", PLIM_INVALID, "fits 2 devices");
}

Test(target, an_instance_is_a_target)
{
    set("PLIM_DOUBLE_NVML", "mig");
    struct plim_target t = resolve("cuda:MIG-72");
    cr_expect(t.mig);
    cr_expect(eq(int, strncmp(t.uuid, "MIG-726c", 8), 0));
    cr_expect(eq(i64, t.total_bytes, A100_BYTES / 2));
    cr_expect(eq(int, t.multiprocessors, 54));
    cr_expect(eq(int, strncmp(resolve("cuda:0").uuid, "MIG-716c", 8), 0));
}

Test(target, a_gpu_of_another_size_is_not_the_catalogues)
{
    set("PLIM_DOUBLE_GPU", "RTX-3060-12GB");
    set("PLIM_DOUBLE_MEMORY", "7.7GiB");
    cr_expect(eq(ptr, (void *)resolve("cuda").gpu, NULL));
    set("PLIM_DOUBLE_NVML", "wrong-memory");
    cr_expect(eq(ptr, (void *)resolve("cuda").gpu, NULL));
}

Test(target, without_nvmls_memory_the_catalogue_has_to_do)
{
    set("PLIM_DOUBLE_NVML", "no-memory");
    struct plim_target t = resolve("cuda,memory=24GiB");
    cr_expect(eq(i64, t.total_bytes, A100_BYTES));
    cr_expect(not(t.memory_is_reported));
    cr_expect(eq(i64, t.held_bytes, 0));
    set("PLIM_DOUBLE_NVML", "no-memory,name=NVIDIA R300 Ultra");
    t = resolve("cuda,memory=24GiB");
    cr_expect(eq(i64, t.total_bytes, 0));
    cr_expect(eq(i64, t.memory_cap_bytes, 24 * GIB));
    set("PLIM_DOUBLE_NVML", "no-memory,mig");
    cr_expect(eq(i64, resolve("cuda").total_bytes, A100_BYTES / 2));
}

Test(target, a_gpu_unknown_to_the_catalogue_is_a_target)
{
    set("PLIM_DOUBLE_NVML", "name=NVIDIA R300 Ultra");
    struct plim_target t = resolve("cuda");
    cr_expect(eq(ptr, (void *)t.gpu, NULL));
    cr_expect(eq(int, t.multiprocessors, 0));
    cr_expect(eq(i64, t.total_bytes, A100_BYTES));
}

/* --- what cannot be used ---------------------------------------------------------------------- */

Test(target, a_build_without_kernels_refuses_and_auto_simulates)
{
    place.has_cuda = false;
    expect_refused("cuda:0", PLIM_UNSUPPORTED, "built without GPU kernels");
    struct plim_target t = resolve("auto");
    cr_expect(t.simulate);
    cr_expect(strstr(t.note, "built without GPU kernels") != NULL, "%s", t.note);
}

Test(target, without_kernels_and_without_a_gpu_auto_says_that_there_is_no_gpu)
{
    place.has_cuda = false;
    place.library = "/no/such/libnvidia-ml.so.1";
    expect_refused("cuda:0", PLIM_UNSUPPORTED, "-Dgpu_archs=native");
    struct plim_target t = resolve("auto");
    cr_expect(t.simulate);
    cr_expect(strstr(t.note, "no NVIDIA GPU") != NULL, "%s", t.note);
}

Test(target, a_machine_without_a_driver_refuses_and_auto_simulates)
{
    place.library = "/no/such/libnvidia-ml.so.1";
    expect_refused("cuda", PLIM_NODEVICE, "no NVIDIA GPU");
    struct plim_target t = resolve("auto,memory=24GiB");
    cr_expect(t.simulate);
    cr_expect(strstr(t.note, "no NVIDIA GPU") != NULL, "%s", t.note);
    cr_expect(eq(i64, t.memory_cap_bytes, 24 * GIB));
    cr_expect(eq(str, t.uuid, (char *)""));
    fake_root_gpu(&root, "0000:01:00.0", NULL);
    expect_refused("cuda", PLIM_NODEVICE, "modprobe nvidia");
}

/* As in a container without the capability `utility`. */
Test(target, a_driver_without_nvml_is_left_to_the_worker)
{
    place.library = "/no/such/libnvidia-ml.so.1";
    place.driver = STAND_IN; /* it is only looked whether it loads */
    struct plim_target t = resolve("cuda:1,memory=24GiB");
    cr_expect(t.without_nvml && !t.simulate);
    cr_expect(eq(int, t.ordinal, 1));
    cr_expect(eq(str, t.uuid, (char *)""));
    cr_expect(eq(str, t.uri, (char *)"cuda:1,memory=25769803776"));
    cr_expect(eq(i64, t.memory_cap_bytes, 24 * GIB));
    cr_expect(strstr(t.note, "there is no NVML") != NULL, "%s", t.note);
    cr_expect(eq(int, resolve("cuda").ordinal, 0));
    t = resolve("cuda:GPU-706c");
    cr_expect(t.without_nvml);
    cr_expect(eq(str, t.uuid, (char *)"GPU-706c"));
    expect_refused("cuda:first", PLIM_INVALID, "expected cuda:N");
    expect_refused("cuda:GPU706c", PLIM_INVALID, "expected cuda:N");
    expect_refused("cuda:MIG706c", PLIM_INVALID, "expected cuda:N");
    expect_refused("cuda:1st", PLIM_INVALID, "expected cuda:N");
    cr_expect(eq(int, resolve("cuda:0").ordinal, 0));
    cr_expect(eq(int, resolve("cuda:1023").ordinal, 1023));
    expect_refused("cuda:1024", PLIM_INVALID, "expected cuda:N");
    expect_refused("cuda:-1", PLIM_INVALID, "expected cuda:N");
}

Test(target, auto_takes_nothing_that_nvml_does_not_show)
{
    place.library = "/no/such/libnvidia-ml.so.1";
    place.driver = STAND_IN;
    cr_expect(resolve("auto").simulate);
}

Test(target, an_nvml_that_fails_is_no_missing_one)
{
    place.driver = STAND_IN;
    set("PLIM_DOUBLE_NVML", "error=18");
    expect_refused("cuda", PLIM_NODEVICE, "restart the machine");
}

Test(target, a_driver_too_old_says_which_is_needed)
{
    char needed[64];
    snprintf(needed, sizeof(needed), "driver %d or newer", plim_cuda_minimum.driver);
    set("PLIM_DOUBLE_NVML", "driver=530.41,cuda=12010");
    expect_refused("cuda", PLIM_NODEVICE, "driver 530.41 runs CUDA up to 12.1");
    expect_refused("cuda", PLIM_NODEVICE, needed);
    cr_expect(resolve("auto").simulate);
}

/* Toolkits 12 make code for drivers of 12.x, those of 13 do not. */
Test(target, a_driver_of_the_toolkits_major_version_will_do)
{
    set("PLIM_DOUBLE_NVML", "driver=535.54,cuda=12020");
    if (OF_TOOLKIT_12)
        cr_expect(not(resolve("cuda").simulate));
    else
        expect_refused("cuda", PLIM_NODEVICE, "driver 580 or newer");
}

/* Toolkits 12 know Volta, those of 13 do not. */
Test(target, a_gpu_too_old_is_not_supported)
{
    set("PLIM_DOUBLE_GPU", "V100-SXM2-16GB");
    if (OF_TOOLKIT_12) {
        cr_expect(not(resolve("auto").simulate));
        return;
    }
    expect_refused("cuda", PLIM_UNSUPPORTED, "compute capability 7.0");
    cr_expect(resolve("auto").simulate);
}

Test(target, an_exclusive_gpu_is_busy_only_while_a_process_has_it)
{
    set("PLIM_DOUBLE_NVML", "exclusive");
    cr_expect(not(resolve("cuda").simulate));
    set("PLIM_DOUBLE_NVML", "exclusive,crowd=1");
    expect_refused("cuda", PLIM_NODEVICE, "process 100000 has it");
}

/* A pipe where the control daemon of MPS has its socket. */
static void start_mps(void)
{
    char path[512];
    snprintf(path, sizeof(path), "%s/tmp", root.path);
    if (mkdir(path, 0700)) cr_assert(eq(int, errno, EEXIST));
    snprintf(path, sizeof(path), "%s/tmp/nvidia-mps", root.path);
    cr_assert(zero(int, mkdir(path, 0700)));
    snprintf(path, sizeof(path), "%s/tmp/nvidia-mps/control", root.path);
    cr_assert(zero(int, mkfifo(path, 0600)));
}

Test(target, through_mps_an_exclusive_gpu_is_shared)
{
    set("PLIM_DOUBLE_NVML", "exclusive,crowd=1");
    start_mps();
    struct plim_target t = resolve("cuda");
    cr_expect(t.mps.active);
    cr_expect(eq(str, t.mps.limits, (char *)""));
    cr_expect(strstr(t.note, "through MPS here: ") != NULL, "%s", t.note);
    place.mps.pipe_directory = "/tmp/another";
    expect_refused("cuda", PLIM_NODEVICE, "process 100000 has it");
}

Test(target, limits_of_an_mps_client_are_said_where_there_is_mps)
{
    place.mps = (struct plim_mps_variables){.active_thread_percentage = "50", .memory_limit = "0=8G"};
    cr_expect(eq(str, resolve("cuda").mps.limits, (char *)""));
    start_mps();
    place.mps.pipe_directory = "/tmp/nvidia-mps";
    cr_expect(eq(str, resolve("cuda").mps.limits,
                 (char *)"CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=50, "
                         "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=8G"));
    cr_expect(strstr(resolve("cuda").note, "THREAD_PERCENTAGE=50") != NULL);
}

Test(target, a_prohibited_gpu_says_how_to_allow_it)
{
    set("PLIM_DOUBLE_NVML", "prohibited");
    expect_refused("cuda", PLIM_NODEVICE, "nvidia-smi -i 0 -c 0");
}

Test(target, mig_mode_without_an_instance_is_no_device)
{
    set("PLIM_DOUBLE_NVML", "mig-empty");
    expect_refused("cuda", PLIM_NODEVICE, "nvidia-smi mig -cgi");
    cr_expect(strstr(resolve("auto").note, "in MIG mode") != NULL);
}

Test(target, a_lost_gpu_is_no_device)
{
    set("PLIM_DOUBLE_NVML", "bad@0=15");
    expect_refused("cuda", PLIM_NODEVICE, "fell off the bus");
    set("PLIM_DOUBLE_NVML", "error=15");
    expect_refused("cuda", PLIM_NODEVICE, "fell off the bus");
    cr_expect(resolve("auto").simulate);
}

Test(target, hidden_gpus_are_no_devices)
{
    place.visible_devices = "";
    expect_refused("cuda", PLIM_NODEVICE, "CUDA_VISIBLE_DEVICES= hides all 1 GPUs");
    expect_refused("cuda:GPU-706c", PLIM_NODEVICE, "hides this GPU");
    cr_expect(resolve("auto").simulate);
}

Test(target, a_library_that_does_not_fit_the_driver_asks_for_a_restart)
{
    set("PLIM_DOUBLE_NVML", "error=18");
    expect_refused("cuda", PLIM_NODEVICE, "restart the machine");
}

Test(target, auto_passes_over_a_gpu_that_cannot_be_used)
{
    if (OF_TOOLKIT_12) cr_skip_test("this build can use every GPU of the catalogue");
    set("PLIM_DOUBLE_GPU", "V100-SXM2-16GB,T4");
    place.device_order = "PCI_BUS_ID";
    struct plim_target t = resolve("auto");
    cr_expect(not(t.simulate));
    cr_expect(eq(str, t.name, (char *)"Tesla T4"));
    cr_expect(strstr(t.note, "compute capability 7.0") != NULL, "%s", t.note);
}

Test(target, what_is_no_uri_is_refused_as_such)
{
    expect_refused("cuda:", PLIM_INVALID, "expected auto, cuda, cuda:N");
    expect_refused("cudax", PLIM_INVALID, "expected auto, cuda, cuda:N");
    expect_refused("cudax0", PLIM_INVALID, "expected auto, cuda, cuda:N");
    expect_refused("sim:T4", PLIM_INVALID, "expected auto, cuda, cuda:N");
    expect_refused("", PLIM_INVALID, "expected auto, cuda, cuda:N");
    expect_refused("cuda:first", PLIM_INVALID, "expected cuda:N");
    expect_refused("cuda,memroy=24GiB", PLIM_INVALID, "expected one such as ,memory=24GiB");
    expect_refused("cuda,memory=lots", PLIM_INVALID, "lots");
    expect_refused("cuda,memory=0", PLIM_INVALID, "more than that");
    expect_refused("auto,memory=lots", PLIM_INVALID, "lots");
    expect_refused("cuda:0,memory=90GiB", PLIM_INVALID, "has only 79.2 GiB");
    expect_refused("auto,memory=90GiB", PLIM_INVALID, "has only 79.2 GiB");
}

Test(target, the_environment_is_this_machines)
{
    set("CUDA_VISIBLE_DEVICES", "1");
    set("CUDA_DEVICE_ORDER", "PCI_BUS_ID");
    struct plim_target_place here = plim_target_local();
    cr_expect(eq(str, (char *)here.visible_devices, (char *)"1"));
    cr_expect(eq(str, (char *)here.device_order, (char *)"PCI_BUS_ID"));
    cr_expect(eq(str, (char *)here.root, (char *)""));
}
