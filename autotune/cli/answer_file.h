/* Reads the answer from a file that tune, plan or exec wrote, for the commands apply and emit. */
#ifndef PLIM_AUTOTUNE_CLI_ANSWER_FILE_H
#define PLIM_AUTOTUNE_CLI_ANSWER_FILE_H

#include "autotune/base/yaml.h"
#include "options.h"
#include "reports/result.h"

struct plim_answer_file {
    struct plim_yaml yaml;
    struct plim_report report;
    const struct plim_result *result; /* a result of the report that has a choice */
};

/* Reads the file that request->subject names. From a plan for several GPUs it takes the result for the one that
 * --device names (T4, sim:T4, cuda:0). The caller finishes `out` in any case. PLIM_INVALID: there is no such file or no
 * result, or the GPU is ambiguous; PLIM_NOFIT: the answer is that nothing fits. */
enum plim_status plim_answer_file_read(const struct plim_request *request,
                                       struct plim_answer_file *out,
                                       struct plim_error *err) PLIM_MUST_CHECK;
void plim_answer_file_finish(struct plim_answer_file *file);

#endif
