/* plimsoll devices: what is here, without a driver and with a stand-in for NVML. */
#include "program.h"
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void set(const char *name, const char *value)
{
    cr_assert(zero(int, setenv(name, value, 1)));
}

static void use_stand_in(const char *gpus, const char *oddities)
{
    set("LD_LIBRARY_PATH", PLIM_DOUBLES_FOLDER);
    set("PLIM_DOUBLE_GPU", gpus);
    set("PLIM_DOUBLE_NVML", oddities);
    unsetenv("CUDA_VISIBLE_DEVICES");
    unsetenv("CUDA_DEVICE_ORDER");
}

static struct program run_well(const char *arguments)
{
    struct program p = program_run(arguments);
    cr_assert(eq(int, p.exit_code, 0), "%s", p.err);
    cr_expect(eq(str, p.err, (char *)""));
    return p;
}

static void expect_in_list(const char *part)
{
    struct program p = run_well("devices");
    cr_expect(strstr(p.out, part) != NULL, "'%s' is missing in:\n%.1500s", part, p.out);
    cr_expect(strstr(p.out, "RTX-4090") != NULL, "the catalogue is missing");
    for (const char *line = p.out; *line; line += strcspn(line, "\n") + 1)
        cr_expect(le(sz, strcspn(line, "\n"), 80), "%.120s", line);
    program_finish(&p);
}

Test(devices, a_machine_without_a_driver_says_what_was_looked_for)
{
    if (!access("/proc/driver/nvidia", F_OK) || !access("/dev/dxg", F_OK))
        cr_skip_test("this machine has a driver");
    unsetenv("LD_LIBRARY_PATH"); /* Meson sets it to the stand-ins */
    expect_in_list("NVIDIA");
    struct program p = run_well("devices --json");
    json_t *root = program_json(&p);
    cr_expect(lt(sz, 20, strlen(json_text_at(root, "machine.problem"))));
    cr_expect(eq(sz, json_array_size(json_at(root, "machine.gpus")), 0));
    cr_expect(json_at(root, "machine.driver") == NULL);
    cr_expect(lt(sz, 30, json_array_size(json_at(root, "devices"))));
    json_decref(root);
    program_finish(&p);
}

Test(devices, gpus_are_listed_with_cudas_numbers)
{
    use_stand_in("T4,A100-SXM4-80GB", "");
    set("PLIM_DOUBLE_OTHERS", "3GiB");
    expect_in_list("GPUs of this machine (driver 580.65.06, CUDA 13.0):");
    expect_in_list(
        "cuda:1    Tesla T4\n          15.0 GiB, of which 3.00 GiB are held, cc 7.5, T4");
    expect_in_list("cuda:0    NVIDIA A100-SXM4-80GB");
    expect_in_list("process 100000 holds 3.00 GiB");
    expect_in_list("CUDA_DEVICE_ORDER=PCI_BUS_ID");
    set("CUDA_VISIBLE_DEVICES", "0");
    expect_in_list("not shown Tesla T4");
}

Test(devices, json_has_memory_holders_and_the_catalogues_name)
{
    use_stand_in("T4,A100-SXM4-80GB", "");
    set("PLIM_DOUBLE_OTHERS", "3GiB");
    struct program p = run_well("devices --json");
    json_t *root = program_json(&p), *gpu = json_at(root, "machine.gpus.1");
    cr_expect(eq(str, (char *)json_text_at(root, "machine.driver"), (char *)"580.65.06"));
    cr_expect(eq(str, (char *)json_text_at(root, "machine.cuda"), (char *)"13.0"));
    cr_expect(eq(str, (char *)json_text_at(gpu, "catalogue"), (char *)"A100-SXM4-80GB"));
    cr_expect(eq(str, (char *)json_text_at(gpu, "uri"),
                 (char *)"cuda:GPU-706c696d-736f-6c6c-2067-707520203100"));
    cr_expect(eq(i64, json_int_at(gpu, "ordinal"), 0));
    cr_expect(eq(i64, json_int_at(gpu, "index"), 1));
    cr_expect(eq(i64, json_int_at(gpu, "memory_bytes"), INT64_C(80) << 30));
    cr_expect(eq(i64, json_int_at(gpu, "held_bytes"), INT64_C(3) << 30));
    cr_expect(eq(i64, json_int_at(gpu, "free_bytes"),
                 json_int_at(gpu, "memory_bytes") - json_int_at(gpu, "reserved_bytes") -
                     json_int_at(gpu, "held_bytes")));
    cr_expect(eq(i64, json_int_at(gpu, "processes.0.held_bytes"), INT64_C(3) << 30));
    cr_expect(eq(str, (char *)json_text_at(gpu, "compute_mode"), (char *)"default"));
    json_decref(root);
    program_finish(&p);
}

Test(devices, instances_are_listed_below_their_gpu)
{
    use_stand_in("A100-SXM4-80GB", "mig");
    expect_in_list("cuda:0    MIG-716c696d-736f-6c6c-2067-707520203000\n");
    expect_in_list("40.0 GiB, 54 SMs");
    struct program p = run_well("devices --json");
    json_t *root = program_json(&p), *gpu = json_at(root, "machine.gpus.0");
    cr_expect(ne(int, json_is_true(json_at(gpu, "mig")), 0));
    cr_expect(eq(sz, json_array_size(json_at(gpu, "instances")), 2));
    cr_expect(eq(i64, json_int_at(gpu, "instances.1.multiprocessors"), 54));
    cr_expect(json_at(gpu, "instances.1.ordinal") == NULL);
    json_decref(root);
    program_finish(&p);
}

Test(devices, what_is_wrong_with_a_gpu_is_said)
{
    use_stand_in("A100-SXM4-80GB,T4", "mig-empty");
    expect_in_list("in MIG mode without an instance");
    use_stand_in("A100-SXM4-80GB,T4", "bad@1=15");
    expect_in_list("GPU 1     the GPU fell off the bus");
    use_stand_in("A100-SXM4-80GB,T4", "prohibited");
    expect_in_list("compute mode: prohibited");
    use_stand_in("A100-SXM4-80GB", "error=18");
    expect_in_list("restart");
    use_stand_in("A100-SXM4-80GB", "name=NVIDIA R300 Ultra");
    expect_in_list("not in the catalogue");
}

Test(devices, why_no_gpu_can_be_used_is_said)
{
    use_stand_in("A100-SXM4-80GB", "no-gpus");
    expect_in_list("the driver knows of no GPU");
    use_stand_in("A100-SXM4-80GB", "driver=530.41,cuda=12010");
    expect_in_list("driver 530.41 runs CUDA up to 12.1");
}

/* Also in a build that has none of its own. */
Test(devices, a_program_brings_its_own_kernels)
{
    use_stand_in("T4", "");
    struct program p = program_run("exec --device cuda:0 --observe -- true");
    cr_expect(strstr(p.out, "did not use a GPU") != NULL, "%s%s", p.out, p.err);
    program_finish(&p);
}
