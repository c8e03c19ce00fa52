/* Devices of all kinds by their URIs. What follows the scheme is tested with each kind. */
#include "config.h"
#include "devices/open.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <string.h>

Test(open, the_scheme_is_what_stands_before_a_colon_or_a_comma)
{
    static const struct {
        const char *uri;
        enum plim_device_scheme scheme;
    } cases[] = {
        {"sim:A100-SXM4-80GB", PLIM_SCHEME_SIM},
        {"sim:24GiB,memory=20GiB", PLIM_SCHEME_SIM},
        {"sim:", PLIM_SCHEME_SIM},
        {"host", PLIM_SCHEME_HOST},
        {"host,memory=2GiB", PLIM_SCHEME_HOST},
        {"cuda", PLIM_SCHEME_CUDA},
        {"cuda:1", PLIM_SCHEME_CUDA},
        {"cuda:GPU-8f3c", PLIM_SCHEME_CUDA},
        {"cuda,memory=24GiB", PLIM_SCHEME_CUDA},
        {"sim", PLIM_SCHEME_NONE},
        {"simulated:A100", PLIM_SCHEME_NONE},
        {"cuda0", PLIM_SCHEME_NONE},
        {"hostess", PLIM_SCHEME_NONE},
        {"CUDA:0", PLIM_SCHEME_NONE},
        {"A100-SXM4-80GB", PLIM_SCHEME_NONE},
        {"", PLIM_SCHEME_NONE},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        cr_expect(eq(int, (int)plim_uri_scheme(cases[i].uri), (int)cases[i].scheme), "%s",
                  cases[i].uri);
}

static void expect_opened(const char *uri, const char *as, bool simulated)
{
    struct plim_device *device;
    struct plim_error err = PLIM_ERROR_INIT;
    cr_assert(eq(int, plim_device_open(uri, &device, &err), PLIM_OK), "%s", err.text);
    cr_expect(eq(str, device->info.uri, (char *)as));
    cr_expect(eq(int, device->info.simulated, simulated));
    plim_device_close(&device);
}

Test(open, each_kind_reads_its_own_part)
{
    expect_opened("sim:RTX-4090,memory=20GiB", "sim:RTX-4090,memory=20GiB", true);
    expect_opened("host", "host", false);
    expect_opened("host,memory=64MiB", "host,memory=64MiB", false);
}

static void expect_refused(const char *uri, enum plim_status status, const char *message)
{
    struct plim_device *device;
    struct plim_error err = PLIM_ERROR_INIT;
    cr_expect(eq(int, plim_device_open(uri, &device, &err), status), "%s: %s", uri, err.text);
    cr_expect(eq(ptr, device, NULL));
    cr_expect(eq(str, err.text, (char *)message));
}

Test(open, what_is_no_device_is_said_to_be_none)
{
    expect_refused("cuda0", PLIM_UNSUPPORTED,
                   "cuda0: this plimsoll is built without that device");
    expect_refused("host,speed=2", PLIM_INVALID,
                   "',speed=2' is no device option, expected one such as ,memory=24GiB");
}

#if !PLIM_WITH_CUDA
Test(open, a_build_without_cuda_says_so)
{
    expect_refused("cuda:0", PLIM_UNSUPPORTED,
                   "cuda:0: this plimsoll is built without that device");
}
#endif
