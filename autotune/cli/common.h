/* Shared by the commands that take a SPEC. */
#ifndef PLIM_AUTOTUNE_CLI_COMMON_H
#define PLIM_AUTOTUNE_CLI_COMMON_H

#include "autotune/base/log.h"
#include "autotune/base/stop.h"
#include "autotune/run/target.h"
#include "autotune/search/question.h"
#include "command.h"
#include "reports/result.h"
#include "workloads/spec/spec.h"

/* Inserts a setting at index `*at`, which is incremented: settings of the command line come after it and override
 * it. `option` (for messages) and `value` stay the caller's. PLIM_INVALID: there is no room. */
enum plim_status plim_common_insert(struct plim_request *request, size_t *at, const char *option, const char *key,
                                    const char *value, struct plim_error *err) PLIM_MUST_CHECK;

/* Loads the subject of the request and applies its settings. */
enum plim_status plim_common_spec(const struct plim_request *request, const struct plim_log *log,
                                  struct plim_spec *spec, struct plim_error *err) PLIM_MUST_CHECK;

/* Applies one setting of the command line. */
enum plim_status plim_common_setting(const struct plim_request_setting *setting,
                                     struct plim_spec *spec,
                                     struct plim_error *err) PLIM_MUST_CHECK;

/* The log for notes to the user; drops everything with --quiet. */
struct plim_log plim_common_log(const struct plim_request *request, const struct plim_io *io);

/* How much of the GPU may be used: from the options, and from PyTorch's environment variable where no
 * option is given. */
struct plim_allowance plim_common_allowance(const struct plim_request *request,
                                            const struct plim_log *log);

/* The one device of the request; "auto" is the spec's device, or the first GPU of this machine (`target` holds
 * its URI; NULL: only simulated ones), or a simulated one, which is then logged. */
enum plim_status plim_common_device(const struct plim_request *request,
                                    const struct plim_spec *spec, const struct plim_log *log,
                                    struct plim_target *target, const char **uri,
                                    struct plim_error *err) PLIM_MUST_CHECK;
const char *plim_common_auto_device(const struct plim_spec *spec, const struct plim_log *log,
                                    struct plim_target *target);

/* Do all --out names have a known format? To be checked before a long search. */
enum plim_status plim_common_check_files(const struct plim_request *request,
                                         struct plim_error *err) PLIM_MUST_CHECK;

/* Is a timeline wanted, for a chart in an --out, or with --timeline? */
bool plim_common_draws(const struct plim_request *request);

/* Applies the request's waterfall to the axes of a question. */
enum plim_status plim_common_waterfall(const struct plim_request *request,
                                       struct plim_question *question,
                                       struct plim_error *err) PLIM_MUST_CHECK;

/* How often the question is asked, each time with another margin: once for each tier, or just once. */
size_t plim_common_rounds(const struct plim_request *request);
void plim_common_round_allowance(const struct plim_request *request, size_t round,
                                 struct plim_allowance *allowance);

/* Records in a result how its question was asked: waterfall, profile and tier. */
void plim_common_tell_asked(const struct plim_request *request, size_t round,
                            struct plim_result *result);

/* Adds the settings of the command line to a result, so that the question can be repeated. */
enum plim_status plim_common_add_options(const struct plim_request *request,
                                         struct plim_result *result,
                                         struct plim_error *err) PLIM_MUST_CHECK;

/* Orders the report as requested on the command line, sets its version, and writes it to stdout and to
 * every --out. */
enum plim_status plim_common_emit(const struct plim_request *request, const struct plim_io *io,
                                  struct plim_report *report,
                                  struct plim_error *err) PLIM_MUST_CHECK;

struct plim_stop plim_common_stop(const struct plim_request *request, const struct plim_io *io);

#endif
