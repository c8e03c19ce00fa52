#include "common.h"
#include "autotune/base/clock.h"
#include "autotune/base/outfile.h"
#include "autotune/trace/allocator_options.h"
#include "devices/open.h"
#include "emit.h"
#include "reports/writer.h"
#include <errno.h>
#include <sys/ioctl.h>

extern char **environ;

/* --- the spec --------------------------------------------------------------------------------- */

/* An error names the option that was typed, not the key that it stands for. */
enum plim_status plim_common_setting(const struct plim_request_setting *setting,
                                     struct plim_spec *spec, struct plim_error *err)
{
    struct plim_error inner = PLIM_ERROR_INIT;
    enum plim_status st = plim_spec_set(spec, setting->key, setting->value, &inner);
    if (st) return plim_fail(err, st, "%s: %s", setting->option, inner.text);
    return PLIM_OK;
}

enum plim_status plim_common_insert(struct plim_request *request, size_t *at, const char *option, const char *key,
                                    const char *value, struct plim_error *err)
{
    if (request->setting_count == PLIM_REQUEST_SETTINGS || strlen(key) >= sizeof(request->settings[0].key))
        return plim_fail(err, PLIM_INVALID, "%s: more settings than expected", option);
    struct plim_request_setting *place = &request->settings[*at];
    memmove(place + 1, place, (request->setting_count - *at) * sizeof(*place));
    *place = (struct plim_request_setting){.option = option, .value = value};
    snprintf(place->key, sizeof(place->key), "%s", key);
    request->setting_count++;
    ++*at;
    return PLIM_OK;
}

enum plim_status plim_common_spec(const struct plim_request *request, const struct plim_log *log,
                                  struct plim_spec *spec, struct plim_error *err)
{
    enum plim_status st = PLIM_OK;
    if (!request->subject)
        return plim_fail(err, PLIM_INVALID,
                         "no SPEC was given, expected a YAML spec, a config.json, a directory with "
                         "one, a trainer's config, or a name such as gpt2-124m");
    PLIM_TRY(plim_spec_load(request->subject, spec, err));
    if (plim_spec_source_hides(request->subject))
        plim_log(log, PLIM_LOG_WARNING,
                 "%s is the model of the zoo; for the file or folder of that name here "
                 "say ./%s",
                 request->subject, request->subject);
    for (size_t i = 0; i < request->setting_count; i++)
        PLIM_TRY(plim_common_setting(&request->settings[i], spec, err));
    PLIM_TRY(plim_spec_resolve(spec, err));
out:
    return st;
}

/* --- notes ------------------------------------------------------------------------------------ */

struct plim_log plim_common_log(const struct plim_request *request, const struct plim_io *io)
{
    if (request->quiet) return (struct plim_log){0};
    return (struct plim_log){.level = PLIM_LOG_INFO, .write = plim_log_write_file, .user = io->err};
}

struct plim_allowance plim_common_allowance(const struct plim_request *request,
                                            const struct plim_log *log)
{
    struct plim_allowance allowance = request->allowance;
    const char *variable;
    if (allowance.alloc_conf) return allowance;
    allowance.alloc_conf = plim_allocator_options(environ, &variable);
    if (allowance.alloc_conf)
        plim_log(log, PLIM_LOG_INFO, "allocator options from %s: %s", variable, allowance.alloc_conf);
    return allowance;
}

/* --- devices ---------------------------------------------------------------------------------- */

#define DEFAULT_DEVICE "sim:A100-SXM4-80GB"

const char *plim_common_auto_device(const struct plim_spec *spec, const struct plim_log *log,
                                    struct plim_target *target)
{
    struct plim_error err = PLIM_ERROR_INIT;
    bool given = spec->device[0] && strcmp(spec->device, "auto");
    if (!target && (!given || plim_uri_scheme(spec->device) != PLIM_SCHEME_SIM)) {
        plim_log(log, PLIM_LOG_INFO, "simulating %s (the default; --device chooses another)",
                 DEFAULT_DEVICE);
        return DEFAULT_DEVICE;
    }
    if (given) {
        plim_log(log, PLIM_LOG_INFO, "the spec's device: %s", spec->device);
        return spec->device;
    }
    bool found = plim_target_resolve("auto", target, &err) == PLIM_OK && !target->simulate;
    if (found) {
        plim_log(log, PLIM_LOG_INFO, "using %s (%s)", target->name, target->uri);
        return target->uri;
    }
    const char *why = err.text[0] ? err.text : target->note;
    plim_log(log, PLIM_LOG_INFO, "simulating %s (--device chooses another): %s", DEFAULT_DEVICE,
             why);
    return DEFAULT_DEVICE;
}

enum plim_status plim_common_device(const struct plim_request *request,
                                    const struct plim_spec *spec, const struct plim_log *log,
                                    struct plim_target *target, const char **uri,
                                    struct plim_error *err)
{
    *uri = request->devices.count ? request->devices.items[0] : "auto";
    if (request->devices.count > 1 || !strcmp(*uri, "all"))
        return plim_fail(err, PLIM_INVALID,
                         "--device names several devices, expected one (plan takes several)");
    if (!strcmp(*uri, "auto")) *uri = plim_common_auto_device(spec, log, target);
    return PLIM_OK;
}

/* --- reports ---------------------------------------------------------------------------------- */

enum plim_status plim_common_check_files(const struct plim_request *request, struct plim_error *err)
{
    const struct plim_writer *writer;
    enum plim_status st = plim_emit_check(request, err);
    for (size_t i = 0; i < request->files.count && !st; i++)
        st = plim_writer_for_path(request->files.items[i], &writer, err);
    return st;
}

bool plim_common_draws(const struct plim_request *request)
{
    const struct plim_writer *writer;
    bool draws = request->timeline;
    for (size_t i = 0; i < request->files.count && !draws; i++)
        draws = !plim_writer_for_path(request->files.items[i], &writer, NULL) && writer->draws;
    return draws;
}

static enum plim_status emit_file(const char *path, const struct plim_report *report,
                                  const struct plim_style *style,
                                  struct plim_error *err)
{
    const struct plim_writer *writer;
    struct plim_outfile file;
    char *text = NULL;
    size_t size = 0;
    enum plim_status st = PLIM_OK;
    PLIM_TRY(plim_writer_for_path(path, &writer, err));
    if (writer->draw) PLIM_TRY(writer->draw(report, &text, &size, err));
    else PLIM_TRY(writer->write(report, style, &text, err));
    if (text && !size) size = strlen(text);
    PLIM_TRY(plim_outfile_open(path, &file, err));
    fwrite(text, 1, size, file.stream); /* commit reports errors */
    PLIM_TRY(plim_outfile_commit(&file, err));
out:
    free(text);
    return st;
}

/* Returns the style of a report in a file. */
static struct plim_style style_of(const struct plim_request *request)
{
    return (struct plim_style){.price_count = request->price_count,
                               .prices = request->prices,
                               .compares = request->compare};
}

/* Returns the width of the terminal; COLUMNS, which users may set, takes precedence. 0: not known. */
static int terminal_width(FILE *out)
{
    const char *text = getenv("COLUMNS");
    struct winsize size;
    int columns = text ? atoi(text) : 0;
    if (columns > 0) return columns;
    return ioctl(fileno(out), TIOCGWINSZ, &size) ? 0 : size.ws_col;
}

/* Writes the report to stdout, or with --emit the answer in a framework's format. If nothing fits, the report goes to
 * stderr with --emit, so that a script does not read it as a config. */
static enum plim_status emit_result(const struct plim_request *request, const struct plim_io *io,
                                    const struct plim_report *report, struct plim_error *err)
{
    FILE *out = request->emit.name ? io->err : io->out;
    if (request->emit.name && report->results.items[0].choice.present)
        return plim_emit_result(request, io, &report->results.items[0], err);
    const struct plim_writer *writer = request->json ? &plim_writer_json : &plim_writer_text;
    const char *no_color = getenv("NO_COLOR");
    bool terminal = io->out_is_terminal;
    struct plim_style style = style_of(request);
    style.color =
        terminal && !io->is_dumb && !request->no_color && !(no_color && *no_color);
    style.width = terminal ? terminal_width(io->out) : 0;
    char *text = NULL;
    enum plim_status st = writer->write(report, &style, &text, err);
    bool hung_up = io->signalled && *io->signalled == SIGHUP;
    if (!st && (fputs(text, out) < 0 || fflush(out)) && !hung_up)
        st = plim_fail(err, PLIM_INTERNAL, "the report cannot be written: %s", strerror(errno));
    free(text);
    return st;
}

enum plim_status plim_common_add_options(const struct plim_request *request,
                                         struct plim_result *result, struct plim_error *err)
{
    for (size_t i = 0; i < request->setting_count; i++)
        if (plim_result_option(result, request->settings[i].key, request->settings[i].value))
            return plim_no_memory(err);
    if (request->config) snprintf(result->spec.config, sizeof(result->spec.config), "%s", request->config);
    if (request->unplanned) snprintf(result->spec.unplanned, sizeof(result->spec.unplanned), "%s", request->unplanned);
    return PLIM_OK;
}

enum plim_status plim_common_waterfall(const struct plim_request *request,
                                       struct plim_question *question, struct plim_error *err)
{
    if (!request->waterfall) return PLIM_OK;
    if (plim_objectives[question->objective].wants_longest)
        return plim_fail(err, PLIM_INVALID,
                         "--waterfall has an order of its own for sequences, expected it without "
                         "--objective %s",
                         plim_objectives[question->objective].name);
    return plim_axes_waterfall(&question->axes, request->waterfall, err);
}

size_t plim_common_rounds(const struct plim_request *request)
{
    return request->tiers ? PLIM_TIERS : 1;
}

void plim_common_round_allowance(const struct plim_request *request, size_t round,
                                 struct plim_allowance *allowance)
{
    if (request->tiers) allowance->margin_share = plim_tiers[round].margin_share;
}

void plim_common_record_question(const struct plim_request *request, size_t round,
                                 struct plim_result *result)
{
    result->tier = request->tiers ? plim_tiers[round].name : NULL;
    if (request->waterfall)
        snprintf(result->waterfall, sizeof(result->waterfall), "%s", request->waterfall);
    result->profile = request->profile ? request->profile->name : NULL;
}

enum plim_status plim_common_emit(const struct plim_request *request, const struct plim_io *io,
                                  struct plim_report *report, struct plim_error *err)
{
    const struct plim_style style = style_of(request);
    enum plim_status st = PLIM_OK;
    report->version = io->version;
    if (plim_report_sort(report, request->order) != PLIM_OK) st = plim_no_memory(err);
    if (!st) st = emit_result(request, io, report, err);
    for (size_t i = 0; i < request->files.count; i++) {
        enum plim_status saved = emit_file(request->files.items[i], report, &style, err);
        if (!st) st = saved;
    }
    return st;
}

struct plim_stop plim_common_stop(const struct plim_request *request, const struct plim_io *io)
{
    double deadline =
        request->budget_seconds > 0 ? plim_clock_seconds() + request->budget_seconds : 0;
    return (struct plim_stop){.signalled = io->signalled, .deadline_seconds = deadline};
}
