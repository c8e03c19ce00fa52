#include "store_question.h"
#include "devices/cuda/library.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* --- the GPU ---------------------------------------------------------------------------------- */

/* Memory of other small programs (a desktop, a monitor), which comes and goes, is not counted up to this size. */
static const int64_t SMALL_BYTES = INT64_C(64) << 20;

bool plim_store_gpu_of_target(const struct plim_target *target, bool counts_others,
                              struct plim_store_gpu *out)
{
    *out = (struct plim_store_gpu){.compute_capability = target->compute_capability,
                                   .total_bytes = target->total_bytes,
                                   .usable_bytes = target->total_bytes,
                                   .power_limit_watts = target->power_limit_watts,
                                   .max_sm_mhz = target->max_sm_mhz};
    snprintf(out->name, sizeof(out->name), "%s", target->name);
    snprintf(out->driver, sizeof(out->driver), "%s", target->driver_version);
    snprintf(out->mig_profile, sizeof(out->mig_profile), "%s", target->mig_profile);
    if (target->mps.active)
        snprintf(out->mps, sizeof(out->mps), "on%s%s", target->mps.limits[0] ? ", " : "",
                 target->mps.limits);
    if (target->mig || target->cores <= 0) /* the name of the profile or GPU determines the number */
        snprintf(out->processors, sizeof(out->processors), "those of %.80s",
                 target->mig ? target->mig_profile : target->name);
    else
        snprintf(out->processors, sizeof(out->processors), "%d cores", target->cores);
    if (counts_others && target->held_bytes > SMALL_BYTES) out->usable_bytes -= target->held_bytes;
    if (target->memory_cap_bytes && target->memory_cap_bytes < out->usable_bytes)
        out->usable_bytes = target->memory_cap_bytes;
    bool knows_instance = !target->mig || target->mig_profile[0];
    return !target->simulate && !target->without_nvml && target->memory_is_reported && knows_instance &&
           out->compute_capability > 0;
}

bool plim_store_gpu_equal(const struct plim_store_gpu *a, const struct plim_store_gpu *b)
{
    return a->simulated == b->simulated && !strcmp(a->name, b->name) &&
           !strcmp(a->mig_profile, b->mig_profile) && !strcmp(a->mps, b->mps) &&
           !strcmp(a->driver, b->driver) &&
           !strcmp(a->processors, b->processors) && a->compute_capability == b->compute_capability &&
           a->usable_bytes == b->usable_bytes && a->total_bytes == b->total_bytes &&
           a->power_limit_watts == b->power_limit_watts && a->max_sm_mhz == b->max_sm_mhz;
}

/* Adds a fact from the driver. A driver that does not report it never does, so "not reported" is a known value. */
static void add_reported(struct plim_facts *facts, const char *name, double value)
{
    if (value > 0)
        plim_facts_format(facts, name, "%.15g", value);
    else
        plim_facts_add(facts, name, "not reported");
}

/* Adds the libraries that the real device uses. Without cuDNN, attention runs plimsoll's own kernels. */
static void add_libraries(struct plim_facts *fits)
{
    char blas[128], dnn[128];
    plim_cuda_library_file(&plim_cuda_library_cublaslt, blas, sizeof(blas));
    plim_cuda_library_file(&plim_cuda_library_cudnn, dnn, sizeof(dnn));
    if (blas[0])
        plim_facts_format(fits, "libraries", "%s, %s", blas, dnn[0] ? dnn : "no cuDNN");
    else
        plim_facts_add(fits, "libraries", NULL);
}

void plim_store_question_gpu(const struct plim_store_gpu *gpu, struct plim_store_question *question)
{
    question->simulated = gpu->simulated;
    struct plim_facts *key = &question->key, *fits = &question->fits, *fast = &question->fast;
    plim_facts_add(key, "kind", gpu->simulated ? "simulated" : "measured");
    plim_facts_format(key, "compute_capability", "%d.%d", gpu->compute_capability / 10,
                      gpu->compute_capability % 10);
    plim_facts_format(key, "usable_bytes", "%" PRId64, gpu->usable_bytes);
    plim_facts_add(key, "mig_profile", gpu->mig_profile[0] ? gpu->mig_profile : "none");
    if (gpu->mps[0]) plim_facts_add(key, "mps", gpu->mps);
    plim_facts_format(fits, "compute_capability", "%d.%d", gpu->compute_capability / 10,
                      gpu->compute_capability % 10);
    plim_facts_format(fits, "total_bytes", "%" PRId64, gpu->total_bytes);
    plim_facts_add(fits, "processors", gpu->processors);
    plim_facts_add(fast, "name", gpu->name);
    if (gpu->simulated) return;
    if (!*plim_facts_get(key, "program")) add_libraries(fits); /* a program has its own libraries */
    plim_facts_add(fast, "driver", gpu->driver);
    add_reported(fast, "power_limit_watts", gpu->power_limit_watts);
    add_reported(fast, "max_sm_mhz", gpu->max_sm_mhz);
}

/* --- a spec ----------------------------------------------------------------------------------- */

void plim_store_question_asked(const struct plim_store_asked *asked, struct plim_facts *key)
{
    const struct plim_allowance *a = asked->allowance;
    plim_facts_add(key, "objective", asked->objective);
    if (asked->waterfall) plim_facts_add(key, "waterfall", asked->waterfall);
    if (a->margin_bytes >= 0)
        plim_facts_format(key, "margin", "%" PRId64, a->margin_bytes);
    else
        plim_facts_format(key, "margin", "%.12g %%", 100 * a->margin_share);
    if (a->overhead_given)
        plim_facts_format(key, "overhead", "%" PRId64, a->overhead_bytes);
    else
        plim_facts_add(key, "overhead", "auto");
    plim_facts_add(key, "alloc_conf", a->alloc_conf && *a->alloc_conf ? a->alloc_conf : "none");
}

void plim_store_question_spec(const struct plim_spec *spec, const struct plim_store_asked *asked,
                              struct plim_store_question *question)
{
    char *text = NULL;
    if (plim_spec_content(spec, &text, NULL) != PLIM_OK) question->key.failed = true;
    plim_facts_add(&question->key, "spec", text);
    free(text);
    plim_store_question_asked(asked, &question->key);
    plim_facts_add(&question->fits, "plimsoll", asked->version);
}
