#include "devices/nvml/nvml.h"
#include "devices/open.h"
#include "run_device_internal.h"
#include "worker/remote.h"

static enum plim_status no_such_device(const char *uri, struct plim_error *err)
{
    const struct plim_gpu *gpu;
    if (plim_catalogue_find(uri, &gpu, NULL) == PLIM_OK)
        return plim_fail(err, PLIM_NODEVICE, "%s: no such device, did you mean sim:%s?", uri,
                         gpu->name);
    return plim_fail(err, PLIM_NODEVICE,
                     "%s: no such device, expected cuda:N, host or sim:NAME (see plimsoll devices)",
                     uri);
}

/* Opens only the simulated twin of a GPU; the GPU itself is for a user's program. */
static enum plim_status open_twin(struct plim_run_device *d, struct plim_error *err)
{
    const struct plim_allocator_config allocator = d->allocator;
    enum plim_status st = plim_run_device_open_for_program(d, d->options, err);
    d->allocator = allocator;
    if (!st) d->planner = plim_run_simulator(d);
    return st;
}

enum plim_status plim_run_device_open(struct plim_run_device *d,
                                      const struct plim_run_options *options,
                                      struct plim_error *err)
{
    *d = (struct plim_run_device){.options = options};
    enum plim_status st =
        plim_allocator_config_parse(options->allowance->alloc_conf, &d->allocator, err);
    if (st) return st;
    if (options->question && options->question->recording &&
        plim_uri_scheme(options->uri) != PLIM_SCHEME_SIM)
        return plim_fail(err, PLIM_UNSUPPORTED,
                         "--device %s: a recording is played on simulated GPUs, expected sim:NAME "
                         "(exec runs the program itself on a GPU)",
                         options->uri);
    switch (plim_uri_scheme(options->uri)) {
    case PLIM_SCHEME_SIM: return plim_run_open_simulated(d, err);
    case PLIM_SCHEME_CUDA:
        return options->runs_program ? open_twin(d, err) : plim_run_open_cuda(d, err);
    case PLIM_SCHEME_HOST: return plim_run_open_host(d, err);
    case PLIM_SCHEME_NONE: break;
    }
    return no_such_device(options->uri, err);
}

void plim_run_device_close(struct plim_run_device *d)
{
    if (!d) return;
    plim_remote_destroy(&d->remote);
    plim_nvml_close(&d->nvml);
    plim_run_close_simulated(d);
}

bool plim_run_device_same_class(const struct plim_run_device *a, const struct plim_run_device *b)
{
    if (!a->info.simulated || !b->info.simulated) return false;
    return a->info.compute_capability == b->info.compute_capability &&
           a->info.multiprocessors == b->info.multiprocessors &&
           a->info.threads_per_multiprocessor == b->info.threads_per_multiprocessor;
}
