/* Functions that the commands share. */
#ifndef PLIM_AUTOTUNE_CLI_COMMON_H
#define PLIM_AUTOTUNE_CLI_COMMON_H

#include "autotune/base/log.h"
#include "autotune/base/stop.h"
#include "autotune/run/target.h"
#include "autotune/search/question.h"
#include "command.h"
#include "reports/result.h"
#include "workloads/spec/spec.h"

/* Inserts a setting at index *at, which is incremented: settings of the command line come after it and override it.
 * `option` (for error messages) and `value` are owned by the caller. PLIM_INVALID: there is no room. */
enum plim_status plim_common_insert(struct plim_request *request, size_t *at, const char *option, const char *key,
                                    const char *value, struct plim_error *err) PLIM_MUST_CHECK;

/* Loads the subject of the request and applies its settings. */
enum plim_status plim_common_spec(const struct plim_request *request, const struct plim_log *log,
                                  struct plim_spec *spec, struct plim_error *err) PLIM_MUST_CHECK;

/* Applies one setting of the command line. */
enum plim_status plim_common_setting(const struct plim_request_setting *setting,
                                     struct plim_spec *spec,
                                     struct plim_error *err) PLIM_MUST_CHECK;

/* Returns the log for notes to the user, which drops them with --quiet. */
struct plim_log plim_common_log(const struct plim_request *request, const struct plim_io *io);

/* Returns how much of the GPU may be used: from the options, and allocator options from PyTorch's environment variable
 * if no option is given. */
struct plim_allowance plim_common_allowance(const struct plim_request *request,
                                            const struct plim_log *log);

/* Finds the URI of the request's single device. "auto" is the spec's device, the first GPU of this machine (`target`
 * then owns the URI; NULL: only simulated devices), or a simulated GPU, which is logged. */
enum plim_status plim_common_device(const struct plim_request *request,
                                    const struct plim_spec *spec, const struct plim_log *log,
                                    struct plim_target *target, const char **uri,
                                    struct plim_error *err) PLIM_MUST_CHECK;
const char *plim_common_auto_device(const struct plim_spec *spec, const struct plim_log *log,
                                    struct plim_target *target);

/* Checks that all files of --out have a known format. To be called before a long search. */
enum plim_status plim_common_check_files(const struct plim_request *request,
                                         struct plim_error *err) PLIM_MUST_CHECK;

/* True if a timeline is wanted, for a chart in a file of --out or with --timeline. */
bool plim_common_draws(const struct plim_request *request);

/* Applies the request's waterfall to the axes of a question. */
enum plim_status plim_common_waterfall(const struct plim_request *request,
                                       struct plim_question *question,
                                       struct plim_error *err) PLIM_MUST_CHECK;

/* Returns the number of rounds: with --tiers the question is answered once for each tier, with its margin. */
size_t plim_common_rounds(const struct plim_request *request);
void plim_common_round_allowance(const struct plim_request *request, size_t round,
                                 struct plim_allowance *allowance);

/* Records waterfall, profile and tier of the question in a result. */
void plim_common_record_question(const struct plim_request *request, size_t round,
                                 struct plim_result *result);

/* Adds the settings of the command line to a result, so that the question can be repeated. */
enum plim_status plim_common_add_options(const struct plim_request *request,
                                         struct plim_result *result,
                                         struct plim_error *err) PLIM_MUST_CHECK;

/* Orders the report as requested on the command line, sets its version, and writes it to stdout and to all files of
 * --out. */
enum plim_status plim_common_emit(const struct plim_request *request, const struct plim_io *io,
                                  struct plim_report *report,
                                  struct plim_error *err) PLIM_MUST_CHECK;

/* Returns a stop with the signals and the request's time budget, which starts now. */
struct plim_stop plim_common_stop(const struct plim_request *request, const struct plim_io *io);

#endif
