/* The training configs that `apply` edits, and the jobs that are read from them; the first byte chooses the format by
 * its extension. PLIM_INTERNAL is allowed of an edit: it is the plan's own check of what it would write, the last net
 * under texts that are no Python, shell or gin, and are taken for it by their words. */
#include "target.h"
#include "reports/configs/job.h"
#include <string.h>

static void read_job(const char *path)
{
    static const struct plim_config_job_ask ask = {.given = NULL};
    static struct plim_config_job job;
    struct plim_error err = PLIM_ERROR_INIT;
    memset(&job, 0, sizeof(job));
    enum plim_status st = plim_config_job_read(path, &ask, &job, &err);
    fuzz_expect(st == PLIM_OK || st == PLIM_SPEC || st == PLIM_NOMEM);
    fuzz_expect(!st == !err.text[0]);
    fuzz_expect(st || !job.framework || job.model);
    plim_config_job_finish(&job);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const names[] = {"a.yaml", "a.json", "a.jsonc", "a.toml", "a.ini",
                                        "a.sh",   "a.py",   "a.gin",   "a",      "a.sbatch", "a.ipynb"};
    struct plim_config_ask ask = {.sizes = {.micro = 4, .accumulation = 8}};
    struct plim_error err = PLIM_ERROR_INIT;
    static struct plim_config_plan plan;
    if (!size) return 0;
    const char *name = names[data[0] % (sizeof(names) / sizeof(*names))];
    const char *path = fuzz_file(name, data + 1, size - 1);
    memset(&plan, 0, sizeof(plan));
    enum plim_status st = plim_config_plan_make(&ask, &path, 1, &plan, &err);
    fuzz_expect(st == PLIM_OK || st == PLIM_SPEC || st == PLIM_NOMEM ||
                st == PLIM_INTERNAL);
    fuzz_expect(!st == !err.text[0]);
    plim_config_plan_finish(&plan);
    read_job(path);
    return 0;
}
