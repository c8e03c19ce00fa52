/* Which devices CUDA shows, and what a user's choice means. */
#include "devices/nvml/visible.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <criterion/parameterized.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* By bus: 0 a small GPU; 1 and 2 two equal large ones, whose UUIDs begin alike; 3 one that is
 * lost; 4 a middling one. */
static struct plim_nvml_gpu gpus[5];

static void make_gpu(int index, const char *name, const char *uuid, int capability, int cores)
{
    struct plim_nvml_gpu *gpu = &gpus[index];
    *gpu = (struct plim_nvml_gpu){
        .index = index, .compute_capability = capability, .cores = cores, .max_sm_mhz = 1000};
    snprintf(gpu->name, sizeof(gpu->name), "%s", name);
    snprintf(gpu->uuid, sizeof(gpu->uuid), "%s", uuid);
}

static void make_instances(int index, size_t count)
{
    static const char *const uuids[] = {"MIG-aaaa1111", "MIG-aaaa2222"};
    gpus[index].mig = true;
    gpus[index].instance_count = count;
    for (size_t i = 0; i < count; i++) strcpy(gpus[index].instances[i].uuid, uuids[i]);
}

static void set_up(void)
{
    make_gpu(0, "Small", "GPU-01234567-89ab", 75, 2560);
    make_gpu(1, "Large", "GPU-beef0001-89ab", 90, 16896);
    make_gpu(2, "Large", "GPU-beef0002-89ab", 90, 16896);
    make_gpu(3, "Lost", "", 0, 0);
    gpus[3].status = PLIM_LOST;
    strcpy(gpus[3].problem, "the GPU fell off the bus");
    make_gpu(4, "Middling", "GPU-cafe0004-89ab", 86, 10496);
}

static struct plim_visible_world world_with(const char *visible_devices, const char *order)
{
    return (struct plim_visible_world){
        .gpus = gpus, .count = 5, .visible_devices = visible_devices, .device_order = order};
}

/* "1 2 4.0": indices, and ".instance". */
static void expect_list(const struct plim_visible_world *world, const char *expected)
{
    struct plim_visible list;
    char text[256] = "";
    plim_visible_list(world, &list);
    for (size_t i = 0; i < list.count; i++) {
        char one[32];
        snprintf(one, sizeof(one), list.devices[i].instance < 0 ? "%s%d" : "%s%d.%d", i ? " " : "",
                 list.devices[i].gpu, list.devices[i].instance);
        strcat(text, one);
    }
    cr_expect(eq(str, text, (char *)expected), "CUDA_VISIBLE_DEVICES=%s CUDA_DEVICE_ORDER=%s",
              world->visible_devices ? world->visible_devices : "(not set)",
              world->device_order ? world->device_order : "(not set)");
}

struct listing {
    char visible_devices[64], order[32], expected[32];
};
#define UNSET "-"

ParameterizedTestParameters(visible, list)
{
    static struct listing cases[] = {
        /* order */
        {UNSET, UNSET, "1 2 4 0"},
        {UNSET, "FASTEST_FIRST", "1 2 4 0"},
        {UNSET, "PCI_BUS_ID", "0 1 2 4"},
        {UNSET, "pci_bus_id", "1 2 4 0"}, /* no value that CUDA knows */
        /* ordinals, of GPUs that CUDA can use */
        {"", UNSET, ""},
        {"0", UNSET, "1"},
        {"0", "PCI_BUS_ID", "0"},
        {"3,0", "PCI_BUS_ID", "4 0"},
        {"2,1,0", UNSET, "4 2 1"},
        {"0,4,1", UNSET, "1"},
        {"4", UNSET, ""},
        {"0,2,-1,1", UNSET, "1 4"},
        {"-1", UNSET, ""},
        {"NoDevFiles", UNSET, ""}, /* as Slurm writes it for a job without GPUs */
        {"0,,1", UNSET, "1"},
        {",0", UNSET, ""},
        {"0,", UNSET, "1"},
        {" 1 , 0 ", UNSET, "2 1"},
        {"+1", UNSET, "2"},
        {"1gpu2,2ampere", UNSET, "2 4"},
        {"0x1", UNSET, "1"},
        {"99999999999999999999999", UNSET, ""},
        {"0,1,0", UNSET, ""},
        {"00,0", UNSET, ""},
        {"0,7,0", UNSET, "1"}, /* the list has ended before the second 0 */
        /* UUIDs */
        {"GPU-cafe0004-89ab", UNSET, "4"},
        {"GPU-cafe", UNSET, "4"},
        {"GPU-", UNSET, ""},
        {"GPU-beef", UNSET, ""},
        {"GPU-beef0002,GPU-0", "PCI_BUS_ID", "2 0"},
        {"GPU-cafe0004-89abc", UNSET, ""},
        {"GPU-CAFE", UNSET, ""},
        {"gpu-cafe", UNSET, ""},
        {"GPU-cafe, GPU-0", UNSET, "4"},
        {"GPU-cafe,GPU-cafe0004", UNSET, ""},
        {"GPU-cafe,0", UNSET, "4"},
        {"0,GPU-cafe", UNSET, "1"},
        {"MIG-aaaa", UNSET, ""},
    };
    return cr_make_param_array(struct listing, cases, sizeof(cases) / sizeof(cases[0]));
}

ParameterizedTest(struct listing *c, visible, list)
{
    set_up();
    struct plim_visible_world world =
        world_with(strcmp(c->visible_devices, UNSET) ? c->visible_devices : NULL,
                   strcmp(c->order, UNSET) ? c->order : NULL);
    expect_list(&world, c->expected);
}

ParameterizedTestParameters(visible, list_with_instances)
{
    static struct listing cases[] = {
        {UNSET, UNSET, "4.0"}, /* of a machine with an instance CUDA shows nothing else */
        {"0", UNSET, "1"},
        {"2", UNSET, "4.0"},
        {"0,2", UNSET, "4.0"},
        {"0,1", UNSET, "1 2"},
        {"GPU-cafe", UNSET, "4.0"},
        {"MIG-aaaa2222", UNSET, "4.1"},
        {"MIG-aaaa2", UNSET, "4.1"},
        {"MIG-aaaa", UNSET, ""},
        {"MIG-aaaa2222,MIG-aaaa1111", UNSET, "4.1"},
        {"MIG-aaaa2222,MIG-aaaa2", UNSET, ""},
    };
    return cr_make_param_array(struct listing, cases, sizeof(cases) / sizeof(cases[0]));
}

ParameterizedTest(struct listing *c, visible, list_with_instances)
{
    set_up();
    make_instances(4, 2);
    struct plim_visible_world world =
        world_with(strcmp(c->visible_devices, UNSET) ? c->visible_devices : NULL, NULL);
    expect_list(&world, c->expected);
}

Test(visible, a_gpu_in_mig_mode_without_an_instance_is_not_shown, .init = set_up)
{
    make_instances(1, 0);
    struct plim_visible_world world = world_with(NULL, NULL);
    expect_list(&world, "2 4 0");
}

static bool is_guessed(const char *visible_devices, const char *order, size_t count)
{
    struct plim_visible list;
    struct plim_visible_world world = world_with(visible_devices, order);
    world.count = count;
    plim_visible_list(&world, &list);
    return list.guessed;
}

Test(visible, only_the_speed_of_gpus_that_differ_is_guessed, .init = set_up)
{
    cr_expect(is_guessed(NULL, NULL, 5));
    cr_expect(is_guessed("0", NULL, 5));
    cr_expect(not(is_guessed(NULL, "PCI_BUS_ID", 5)));
    cr_expect(not(is_guessed("GPU-cafe", NULL, 5)));
    make_gpu(0, "Large", "GPU-beef0003", 90, 16896);
    cr_expect(not(is_guessed(NULL, NULL, 3)));
}

struct chosen {
    char choice[32], visible_devices[32];
    int gpu, instance;
};

ParameterizedTestParameters(visible, choice)
{
    static struct chosen cases[] = {
        {"", UNSET, 1, -1},
        {"0", UNSET, 1, -1},
        {"3", UNSET, 0, -1},
        {"1", "3,2", 4, -1}, /* counted among those that are visible */
        {"0", "GPU-cafe", 4, -1},
        {"GPU-cafe0004-89ab", UNSET, 4, -1},
        {"GPU-CAFE", UNSET, 4, -1},
        {"gpu-cafe", UNSET, 4, -1},
        {"GPU-beef0002", "0,1", 2, -1},
    };
    return cr_make_param_array(struct chosen, cases, sizeof(cases) / sizeof(cases[0]));
}

static void expect_chosen(const struct chosen *c)
{
    struct plim_visible_device device;
    struct plim_error err = PLIM_ERROR_INIT;
    struct plim_visible_world world =
        world_with(strcmp(c->visible_devices, UNSET) ? c->visible_devices : NULL, NULL);
    cr_expect(eq(int, plim_visible_choose(&world, c->choice, &device, &err), PLIM_OK),
              "cuda:%s: %s", c->choice, err.text);
    cr_expect(eq(int, device.gpu, c->gpu), "cuda:%s", c->choice);
    cr_expect(eq(int, device.instance, c->instance), "cuda:%s", c->choice);
}

ParameterizedTest(struct chosen *c, visible, choice)
{
    set_up();
    expect_chosen(c);
}

Test(visible, an_instance_is_chosen_by_its_own_uuid_or_its_gpus, .init = set_up)
{
    make_instances(4, 2);
    expect_chosen(&(struct chosen){"MIG-aaaa2222", UNSET, 4, 1});
    expect_chosen(&(struct chosen){"mig-AAAA2", "2", 4, 1});
    expect_chosen(&(struct chosen){"MIG-aaaa2", "MIG-aaaa2222", 4, 1});
    expect_chosen(&(struct chosen){"GPU-cafe", UNSET, 4, 0});
    expect_chosen(&(struct chosen){"0", UNSET, 4, 0});
    expect_chosen(&(struct chosen){"GPU-beef0001", UNSET, 1, -1});
}

Test(visible, the_uuid_of_a_device_is_its_own, .init = set_up)
{
    make_instances(4, 2);
    struct plim_visible_world world = world_with(NULL, NULL);
    cr_expect(eq(str, (char *)plim_visible_uuid(&world, &(struct plim_visible_device){4, 1}),
                 (char *)"MIG-aaaa2222"));
    cr_expect(eq(str, (char *)plim_visible_uuid(&world, &(struct plim_visible_device){4, -1}),
                 (char *)"GPU-cafe0004-89ab"));
}

static void expect_refused(const char *choice, const char *visible_devices,
                           enum plim_status expected, const char *part)
{
    struct plim_visible_device device;
    struct plim_error err = PLIM_ERROR_INIT;
    struct plim_visible_world world = world_with(visible_devices, NULL);
    cr_expect(eq(int, plim_visible_choose(&world, choice, &device, &err), expected), "cuda:%s",
              choice);
    cr_expect(strstr(err.text, part) != NULL, "'%s' is missing in: %s", part, err.text);
}

Test(visible, a_refusal_says_what_there_is, .init = set_up)
{
    expect_refused("4", NULL, PLIM_NODEVICE, "cuda:3 is Small (GPU-01234567)");
    expect_refused("4", NULL, PLIM_NODEVICE, "GPU 3: the GPU fell off the bus");
    expect_refused("1", "0", PLIM_NODEVICE, "there is: cuda:0 is Large");
    expect_refused("0", "", PLIM_NODEVICE, "CUDA_VISIBLE_DEVICES= hides all 4 GPUs");
    expect_refused("GPU-dead", NULL, PLIM_NODEVICE, "there is: cuda:0 is Large");
    expect_refused("GPU-cafe", "0,1", PLIM_NODEVICE, "CUDA_VISIBLE_DEVICES=0,1 hides");
    expect_refused("MIG-aaaa", NULL, PLIM_NODEVICE, "no such GPU");
    expect_refused("99999999999999999999", NULL, PLIM_NODEVICE, "no such GPU");
}

Test(visible, what_is_no_choice_is_refused_as_such, .init = set_up)
{
    expect_refused("GPU-beef", NULL, PLIM_INVALID, "fits 2 devices");
    expect_refused("1x", NULL, PLIM_INVALID, "expected cuda:N, cuda:GPU-uuid");
    expect_refused("-1", NULL, PLIM_INVALID, "expected cuda:N");
    expect_refused("RTX-4090", NULL, PLIM_INVALID, "expected cuda:N");
}

Test(visible, a_hidden_instance_is_refused, .init = set_up)
{
    make_instances(4, 2);
    expect_refused("MIG-aaaa1111", "MIG-aaaa2222", PLIM_NODEVICE, "hides");
    expect_refused("MIG-aaaa1111", "0", PLIM_NODEVICE, "hides");
    expect_refused("MIG-aaaa", NULL, PLIM_INVALID, "fits 2 devices");
}

Test(visible, mig_mode_without_an_instance_says_how_to_make_one, .init = set_up)
{
    make_instances(1, 0);
    gpus[2].status = gpus[4].status = gpus[0].status = PLIM_LOST;
    expect_refused("0", NULL, PLIM_NODEVICE, "nvidia-smi mig -cgi");
    expect_refused("GPU-beef0001", NULL, PLIM_NODEVICE, "nvidia-smi mig -cgi");
}

Test(visible, lost_gpus_say_so_where_there_are_no_others, .init = set_up)
{
    struct plim_visible_device device;
    struct plim_error err = PLIM_ERROR_INIT;
    struct plim_visible_world world = {.gpus = &gpus[3], .count = 1};
    cr_expect(eq(int, plim_visible_choose(&world, "", &device, &err), PLIM_NODEVICE));
    cr_expect(strstr(err.text, "GPU 3: the GPU fell off the bus") != NULL, "%s", err.text);
    world.count = 0;
    err = (struct plim_error)PLIM_ERROR_INIT;
    cr_expect(eq(int, plim_visible_choose(&world, "", &device, &err), PLIM_NODEVICE));
    cr_expect(strstr(err.text, "the driver knows of no GPU") != NULL, "%s", err.text);
}
