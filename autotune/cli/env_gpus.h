/* Finds the GPUs for which env answers: those of the job on this node, or those of --device. */
#ifndef PLIM_AUTOTUNE_CLI_ENV_GPUS_H
#define PLIM_AUTOTUNE_CLI_ENV_GPUS_H

#include "autotune/store/store_question.h"
#include "common.h"

enum { PLIM_ENV_GPUS = 64 };

struct plim_env_gpu {
    char uri[128];  /* "cuda:UUID" or "sim:..." */
    char twin[160]; /* URI of its simulated twin; for a simulated GPU its own URI */
    struct plim_store_gpu gpu, simulated;
};

/* Fills in `gpus`, with only one of several GPUs that have the same answer. GPUs are identified by their UUIDs, never
 * by an index alone. With --per-rank only the GPU of this rank is added (LOCAL_RANK, SLURM_LOCALID). `device`, of a
 * spec, is used if --device is not given; may be NULL. PLIM_NODEVICE: there is no GPU, or one cannot be identified. */
enum plim_status plim_env_gpus(const struct plim_request *request, const char *device,
                               const struct plim_allowance *allowance,
                               struct plim_env_gpu gpus[PLIM_ENV_GPUS], size_t *count,
                               struct plim_error *err) PLIM_MUST_CHECK;

#endif
