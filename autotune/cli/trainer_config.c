#include "trainer_config.h"
#include "autotune/base/trust.h"
#include "common.h"
#include "workloads/recording/recording.h"
#include <inttypes.h>
#include <sys/stat.h>

/* --- sizes and settings ----------------------------------------------------------------------- */

static const char *value_of(const struct plim_request *request, const char *key)
{
    const char *value = NULL;
    for (size_t i = 0; i < request->setting_count; i++)
        if (!strcmp(request->settings[i].key, key)) value = request->settings[i].value;
    return value;
}

static const char *write_number(char text[24], int64_t number)
{
    snprintf(text, 24, "%" PRId64, number);
    return text;
}

/* Inserts the sizes of the job: those that a search keeps, or those that are explained. */
static enum plim_status insert_sizes(struct plim_request *request, size_t *at, bool explains,
                                     struct plim_trainer_config *config, struct plim_error *err)
{
    const struct plim_config_job *job = &config->job;
    const char *place = job->plan.files[0].path, *world = value_of(request, "train.world");
    enum plim_status st = PLIM_OK;
    int64_t gpus = world ? strtoll(world, NULL, 10) : job->world ? job->world : 1;
    if (!world && job->world)
        PLIM_TRY(plim_common_insert(request, at, place, "train.world", write_number(config->world, job->world),
                        err));
    if (!job->micro || !(job->accumulation || job->effective) || gpus < 1) goto out;
    bool asked = value_of(request, "train.effective_batch") ||
                 value_of(request, "train.accumulation") ||
                 value_of(request, "train.accumulation_schedule");
    if (explains && !value_of(request, "train.micro_batch"))
        PLIM_TRY(plim_common_insert(request, at, place, "train.micro_batch",
                        write_number(config->micro_batch, job->micro), err));
    if (asked) goto out;
    int64_t samples = job->effective, accumulation = job->accumulation, at_once = 0;
    bool is_too_large = __builtin_mul_overflow(job->micro, gpus, &at_once) ||
                        (!samples && __builtin_mul_overflow(at_once, accumulation, &samples));
    if (!is_too_large && !accumulation) accumulation = samples / at_once; /* rounded down, as by the script */
    if (is_too_large)
        st = plim_fail_at(err, PLIM_SPEC, place, 0, 0, "more samples in an optimizer step than can be counted");
    else if (explains)
        st = plim_common_insert(request, at, place, "train.accumulation",
                                write_number(config->accumulation, accumulation ? accumulation : 1), err);
    else
        st = plim_common_insert(request, at, place, "train.effective_batch",
                                write_number(config->effective_batch, samples), err);
out:
    return st;
}

static void drop_setting(struct plim_request *request, const struct plim_config_job_key *key)
{
    for (size_t i = request->setting_count; i-- > 0;) {
        struct plim_request_setting *setting = &request->settings[i];
        if (setting->value != key->value || setting->option != key->place) continue;
        memmove(setting, setting + 1, (--request->setting_count - i) * sizeof(*setting));
    }
}

/* If the keys together are not a valid spec, drops those that jobs.yaml marks as mild. *experts is set if the key that
 * says how experts are loaded is one of them. */
static enum plim_status drop_mild(struct plim_request *request, const struct plim_config_job *job,
                                  bool *experts, struct plim_error *err)
{
    struct plim_error ignored = PLIM_ERROR_INIT;
    *experts = false;
    bool is_any = false;
    for (size_t i = 0; i < job->key_count; i++) is_any |= job->keys[i].mild;
    if (!is_any) return PLIM_OK;
    struct plim_spec *spec = calloc(1, sizeof(*spec));
    if (!spec) return plim_no_memory(err);
    enum plim_status st = plim_common_spec(request, NULL, spec, &ignored);
    *experts = st == PLIM_SPEC && plim_spec_is_refused_for_experts(spec);
    free(spec);
    for (size_t i = 0; st == PLIM_SPEC && i < job->key_count; i++)
        if (job->keys[i].mild) drop_setting(request, &job->keys[i]);
    return PLIM_OK;
}

/* Finds the model: a path relative to the file that names it, otherwise the name itself. */
static void find_model(struct plim_trainer_config *config)
{
    const struct plim_config_job *job = &config->job;
    const char *slash = strrchr(job->model_file, '/');
    struct stat info;
    size_t size = sizeof(config->model);
    int length = snprintf(config->model, size, "%.*s%s",
                          slash && job->model[0] != '/' ? (int)(slash - job->model_file) + 1 : 0,
                          job->model_file, job->model);
    if (length < 0 || (size_t)length >= size || stat(config->model, &info) != 0)
        snprintf(config->model, size, "%s", job->model);
}

static void log_config(const struct plim_request *request, const struct plim_io *io,
                       const struct plim_config_job *job, const char *path, bool experts)
{
    const struct plim_log log = plim_common_log(request, io);
    plim_log(&log, PLIM_LOG_INFO, "%s is a config of %s: the plan is of its job with %s", path,
             job->title, request->subject);
    for (size_t i = 0; i < job->note_count; i++)
        plim_log(&log, PLIM_LOG_WARNING, "%s", job->notes[i]);
    if (experts)
        plim_log(&log, PLIM_LOG_WARNING,
                 "the loading of the experts is not in the plan: from_pretrained joins them on the GPU while its "
                 "threads load others");
}

/* --- reading the config ----------------------------------------------------------------------- */

static bool takes_config(enum plim_command_id id)
{
    return id == PLIM_COMMAND_TUNE || id == PLIM_COMMAND_PLAN || id == PLIM_COMMAND_EXPLAIN ||
           id == PLIM_COMMAND_ENV || id == PLIM_COMMAND_IMPORT;
}

static bool may_be_config(const struct plim_request *request)
{
    struct stat info;
    const char *path = request->subject;
    if (!path || stat(path, &info) != 0 || !S_ISREG(info.st_mode) || plim_recording_is(path))
        return false;
    return !request->store.root_owned ||
           plim_trust_only_root(path); /* else env refuses the path itself */
}

enum plim_status plim_trainer_config_apply(struct plim_request *request,
                                           enum plim_command_id command, const struct plim_io *io,
                                           struct plim_trainer_config *config,
                                           struct plim_error *err)
{
    const char *given[PLIM_REQUEST_SETTINGS], *path = request->subject;
    struct plim_config_job_ask ask = {.given = given, .model_given = request->model != NULL};
    const struct plim_config_job *job = &config->job;
    size_t at = 0;
    bool experts = false;
    enum plim_status st = PLIM_OK;
    if (!takes_config(command) || !may_be_config(request)) goto out;
    for (; ask.given_count < request->setting_count; ask.given_count++)
        given[ask.given_count] = request->settings[ask.given_count].key;
    PLIM_TRY(plim_config_job_read(path, &ask, &config->job, err));
    if (job->other)
        st = plim_fail_at(err, PLIM_SPEC, path, 0, 0,
                          "a config of %s, whose jobs cannot be planned (plimsoll exec runs the program)",
                          job->other->title);
    else if (job->is_jobless)
        st = plim_fail_at(err, PLIM_SPEC, path, 0, 0, "no training job that is known was found in this %s",
                          job->is_script ? "script (plimsoll exec runs it; what it names may be a job's config)"
                                         : "config, expected per_device_train_batch_size or micro_batch_size in it");
    if (st || !job->framework) goto out;
    if (job->model) find_model(config);
    request->subject = request->model ? request->model : config->model;
    for (size_t i = 0; i < job->key_count; i++)
        PLIM_TRY(
            plim_common_insert(request, &at, job->keys[i].place, job->keys[i].key, job->keys[i].value, err));
    PLIM_TRY(insert_sizes(request, &at, command == PLIM_COMMAND_EXPLAIN, config, err));
    PLIM_TRY(drop_mild(request, job, &experts, err));
    snprintf(config->config, sizeof(config->config), "%.240s (%s)", path, job->title);
    request->config = config->config;
    request->unplanned = job->unplanned[0] ? job->unplanned : NULL;
    log_config(request, io, job, path, experts);
    request->model = NULL;
out:
    if (!st && request->model)
        st = plim_fail(err, PLIM_INVALID, "--model is for a trainer's config, which %s is not",
                       path ? path : "nothing");
    return st;
}

void plim_trainer_config_finish(struct plim_trainer_config *config)
{
    if (config) plim_config_job_finish(&config->job);
}
