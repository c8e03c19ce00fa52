#include "open.h"

#include "config.h"
#if PLIM_WITH_CUDA
#include "devices/cuda/cuda.h"
#include "devices/cuda/nccl.h"
#endif
#include "devices/host/host.h"
#include "devices/sim/sim.h"
#include <string.h>

static const struct kind {
    enum plim_device_scheme scheme;
    const char *prefix;
    enum plim_status (*open)(const char *uri_tail, struct plim_device **out,
                             struct plim_error *err); /* NULL: not in this build */
} kinds[] = {
    {PLIM_SCHEME_SIM, "sim:", plim_sim_open},
    {PLIM_SCHEME_HOST, "host", plim_host_open},
#if PLIM_WITH_CUDA
    {PLIM_SCHEME_CUDA, "cuda", plim_cuda_open},
#else
    {PLIM_SCHEME_CUDA, "cuda", NULL},
#endif
};

/* If the prefix has no ':', the name may stand alone: it is followed by an option or nothing. */
static bool is_named(const char *uri, const char *prefix)
{
    size_t length = strlen(prefix);
    if (strncmp(uri, prefix, length) != 0) return false;
    return prefix[length - 1] == ':' || strchr(":,", uri[length]);
}

static const struct kind *kind_of(const char *uri)
{
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        if (is_named(uri, kinds[i].prefix)) return &kinds[i];
    return NULL;
}

enum plim_device_scheme plim_uri_scheme(const char *uri)
{
    const struct kind *kind = kind_of(uri);
    return kind ? kind->scheme : PLIM_SCHEME_NONE;
}

enum plim_status plim_device_open(const char *uri, struct plim_device **out, struct plim_error *err)
{
    const struct kind *kind = kind_of(uri);
    *out = NULL;
    if (!kind || !kind->open)
        return plim_fail(err, PLIM_UNSUPPORTED, "%s: this plimsoll is built without that device",
                         uri);
    return kind->open(uri + strlen(kind->prefix), out, err);
}

enum plim_status plim_all_reduce_measure(int gpus, struct plim_all_reduce *out,
                                         struct plim_error *err)
{
    *out = (struct plim_all_reduce){0};
#if PLIM_WITH_CUDA
    return plim_nccl_measure(gpus, out, err);
#else
    (void)gpus;
    return plim_fail(err, PLIM_UNSUPPORTED, "this plimsoll is built without CUDA");
#endif
}
