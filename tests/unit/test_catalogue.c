#include "devices/catalogue/catalogue.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <criterion/parameterized.h>
#include <string.h>

#define MIB ((int64_t)1 << 20)

static const struct plim_gpu *find(const char *name)
{
    const struct plim_gpu *gpu;
    struct plim_error err = PLIM_ERROR_INIT;
    enum plim_status st = plim_catalogue_find(name, &gpu, &err);
    cr_assert(eq(int, st, PLIM_OK), "%s: %s", name, err.text);
    return gpu;
}

static void expect_refused(const char *name, const char *part_of_message)
{
    const struct plim_gpu *gpu = plim_catalogue_at(0);
    struct plim_error err = PLIM_ERROR_INIT;
    cr_expect(eq(int, plim_catalogue_find(name, &gpu, &err), PLIM_NODEVICE));
    cr_expect(eq(ptr, (void *)gpu, NULL));
    cr_expect(strstr(err.text, part_of_message) != NULL, "%s", err.text);
}

Test(catalogue, has_every_gpu_that_was_promised)
{
    static const char *const names[] = {
        "V100-SXM2-16GB", "V100-SXM2-32GB", "V100-PCIE-16GB", "T4", "Quadro-RTX-6000",
        "RTX-2080-Ti", "A100-SXM4-40GB", "A100-PCIE-40GB", "A100-SXM4-80GB", "A100-PCIE-80GB",
        "A30", "A10", "A10G", "A40", "RTX-A6000", "RTX-3090", "RTX-3080", "RTX-3070",
        "RTX-3060-12GB", "L4", "L40S", "L40", "RTX-6000-Ada", "RTX-4090", "RTX-4080",
        "RTX-4060-Ti-16GB", "H100-SXM5-80GB", "H100-PCIE-80GB", "H100-NVL-94GB",
        "H200-SXM-141GB", "H200-NVL-141GB", "GH200-96GB", "B200-SXM-180GB", "GB200",
        "B300-SXM-288GB", "RTX-5090", "RTX-5080", "RTX-PRO-6000-Blackwell",
        "RTX-PRO-5000-Blackwell",
    };
    size_t count = sizeof(names) / sizeof(names[0]);
    cr_assert(eq(sz, plim_catalogue_count(), count));
    for (size_t i = 0; i < count; i++)
        cr_expect(eq(str, (char *)find(names[i])->name, (char *)names[i]));
}

Test(catalogue, every_gpu_is_possible)
{
    for (size_t i = 0; i < plim_catalogue_count(); i++) {
        const struct plim_gpu *g = plim_catalogue_at(i);
        cr_expect(strchr(g->name, ' ') == NULL && g->name[0] && g->match[0], "%s", g->name);
        cr_expect(g->compute_capability >= 70 && g->compute_capability <= 120, "%s", g->name);
        cr_expect(g->multiprocessors >= 20 && g->multiprocessors <= 200, "%s", g->name);
        cr_expect(g->total_bytes > 7 * 1024 * MIB && g->total_bytes <= 288 * 1024 * MIB, "%s",
                  g->name);
        cr_expect(g->bandwidth >= 250e9 && g->bandwidth <= 8e12, "%s", g->name);
        cr_expect(g->boost_mhz > 1300 && g->boost_mhz < 3000, "%s", g->name);
        cr_expect(g->l2_bytes >= 3 * MIB && g->l2_bytes <= 128 * MIB, "%s", g->name);
        cr_expect(g->fp32 > 5e12 && g->fp16 >= g->fp32 && g->fp16 <= 2.5e15, "%s", g->name);
        cr_expect(g->matmul_bf16_seen <= 1.2 * g->bf16, "%s", g->name);
        cr_expect(g->matmul_fp16_seen <= 1.2 * g->fp16, "%s", g->name);
        cr_expect(g->matmul_fp32_seen <= g->fp32, "%s", g->name);
    }
}

Test(catalogue, tensor_rates_follow_from_multiprocessors_and_clock)
{
    /* fused multiply-adds of an SM in a clock are a power of two from 256 to 4096 */
    for (size_t i = 0; i < plim_catalogue_count(); i++) {
        const struct plim_gpu *g = plim_catalogue_at(i);
        double per_clock = g->fp16 / (2.0 * g->multiprocessors * g->boost_mhz * 1e6);
        double nearest = 256;
        while (nearest < per_clock / 1.4) nearest *= 2;
        cr_expect(per_clock > 0.97 * nearest && per_clock < 1.03 * nearest, "%s: %f", g->name,
                  per_clock);
    }
}

Test(catalogue, names_are_unique)
{
    for (size_t i = 0; i < plim_catalogue_count(); i++)
        for (size_t j = 0; j < i; j++) {
            const struct plim_gpu *a = plim_catalogue_at(i), *b = plim_catalogue_at(j);
            cr_expect(strcmp(a->name, b->name) != 0, "%s twice", a->name);
            cr_expect(strcmp(a->match, b->match) != 0, "%s twice", a->match);
        }
}

Test(catalogue, what_is_not_known_is_absent)
{
    cr_expect(eq(dbl, find("V100-SXM2-16GB")->bf16, 0));
    cr_expect(eq(dbl, find("T4")->tf32, 0));
    cr_expect(eq(dbl, find("A100-SXM4-80GB")->fp8, 0));
    cr_expect(eq(dbl, find("RTX-3060-12GB")->matmul_bf16_seen, 0));
    cr_expect(eq(dbl, find("L4")->nvlink_bandwidth, 0));
}

Test(catalogue, total_is_what_cuda_reports_where_that_is_known)
{
    cr_expect(eq(i64, find("RTX-4090")->total_bytes, 24081 * MIB));
    cr_expect(eq(i64, find("A100-SXM4-80GB")->total_bytes, 81051 * MIB));
    cr_expect(
        eq(i64, find("B300-SXM-288GB")->total_bytes, 288 * 1024 * MIB)); /* only the box is known */
}

Test(catalogue, units_are_base_units)
{
    const struct plim_gpu *g = find("A100-SXM4-80GB");
    cr_expect(eq(int, g->compute_capability, 80));
    cr_expect(eq(int, g->multiprocessors, 108));
    cr_expect(epsilon_eq(dbl, g->bandwidth, 2039e9, 1));
    cr_expect(epsilon_eq(dbl, g->bf16, 312e12, 1));
    cr_expect(epsilon_eq(dbl, g->matmul_bf16_seen, 271e12, 1));
    cr_expect(epsilon_eq(dbl, g->nvlink_bandwidth, 600e9, 1));
    cr_expect(eq(i64, g->l2_bytes, 40 * MIB));
    cr_expect(eq(int, g->tdp_watts, 400));
}

/* One direction of NVLink, of the slot where there is none. */
Test(catalogue, gradients_go_over_the_fastest_link)
{
    cr_expect(epsilon_eq(dbl, plim_gpu_link_bandwidth(find("A100-SXM4-80GB")), 0.8 * 300e9, 1));
    cr_expect(epsilon_eq(dbl, plim_gpu_link_bandwidth(find("L4")), 0.8 * 32e9, 1));
    for (size_t i = 0; i < plim_catalogue_count(); i++)
        cr_expect(lt(dbl, 0, plim_gpu_link_bandwidth(plim_catalogue_at(i))), "%s",
                  plim_catalogue_at(i)->name);
}

struct spelling {
    char asked[32], name[32];
};

ParameterizedTestParameters(catalogue, finds)
{
    static struct spelling cases[] = {
        {"RTX-4090", "RTX-4090"},
        {"rtx 4090", "RTX-4090"},
        {"Rtx_4090", "RTX-4090"},
        {"4090", "RTX-4090"},
        {"rtx4090", "RTX-4090"},
        {"NVIDIA GeForce RTX 4090", "RTX-4090"},
        {"GeForce-RTX-4090", "RTX-4090"},
        {"NVIDIA H100 80GB HBM3", "H100-SXM5-80GB"},
        {"NVIDIA H200", "H200-SXM-141GB"},
        {"NVIDIA A100 80GB PCIe", "A100-PCIE-80GB"},
        {"H100-SXM", "H100-SXM5-80GB"},
        {"A100-SXM-80GB", "A100-SXM4-80GB"},
        {"H200-NVL", "H200-NVL-141GB"},
        {"B200", "B200-SXM-180GB"},
        {"gh200", "GH200-96GB"},
        {"Tesla T4", "T4"},
        {"A6000", "RTX-A6000"},
        {"3060", "RTX-3060-12GB"},
        {"RTX PRO 6000", "RTX-PRO-6000-Blackwell"},
        {"l40", "L40"},
        {"L4", "L4"},
    };
    return cr_make_param_array(struct spelling, cases, sizeof(cases) / sizeof(cases[0]));
}

ParameterizedTest(struct spelling *c, catalogue, finds)
{
    cr_expect(eq(str, (char *)find(c->asked)->name, c->name));
}

Test(catalogue, a_short_form_of_several_gpus_names_them)
{
    expect_refused("A100", "A100-SXM4-40GB, A100-PCIE-40GB, A100-SXM4-80GB, A100-PCIE-80GB");
    expect_refused("H200", "H200-SXM-141GB, H200-NVL-141GB");
    expect_refused("V100-16GB", "V100-SXM2-16GB, V100-PCIE-16GB");
}

Test(catalogue, a_short_form_never_means_another_gpu)
{
    expect_refused("RTX-2080", "RTX-2080-Ti"); /* as the nearest, not as the answer */
    expect_refused("4060", "nearest: RTX-4060-Ti-16GB");
    expect_refused("RTX-6000", "nearest: Quadro-RTX-6000, RTX-6000-Ada");
    expect_refused("RTX-4090-Ti", "RTX-4090");
    expect_refused("RTX", "nearest");
}

Test(catalogue, an_unknown_name_gives_the_nearest)
{
    expect_refused("RTX-4190", "RTX-4090");
    expect_refused("A1000-SXM4-80GB", "A100-SXM4-80GB");
    expect_refused("quantum-abacus", "plimsoll devices");
    expect_refused("", "plimsoll devices");
}

Test(catalogue, a_long_name_is_refused)
{
    char name[5000];
    memset(name, 'A', sizeof(name));
    name[sizeof(name) - 1] = '\0';
    expect_refused(name, "no GPU 'AAAA");
}

Test(catalogue, an_index_behind_the_end_is_null)
{
    cr_expect(eq(ptr, (void *)plim_catalogue_at(plim_catalogue_count()), NULL));
}
