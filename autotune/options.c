#include "options.h"
#include "autotune/base/text.h"
#include "reports/writer.h"
#include <errno.h>

struct option;
typedef enum plim_status setter(struct plim_request *request, const struct option *option,
                                const char *value, struct plim_error *err);

struct option {
    const char *name;     /* with the dashes */
    const char *argument; /* NULL: a switch */
    unsigned verbs;
    setter *set;
    const char *key;      /* of the spec, for set_key */
    const char *help;     /* with the default and an example where they help */
};

/* --- setters ---------------------------------------------------------------------------------- */

static enum plim_status too_many(const struct option *option, int most, struct plim_error *err)
{
    return plim_fail(err, PLIM_INVALID, "%s is given too often, expected at most %d times",
                     option->name, most);
}

static enum plim_status add_setting(struct plim_request *request, const struct option *option,
                                    const char *key, size_t key_length, const char *value,
                                    struct plim_error *err)
{
    if (request->setting_count == PLIM_REQUEST_SETTINGS)
        return too_many(option, PLIM_REQUEST_SETTINGS, err);
    struct plim_request_setting *setting = &request->settings[request->setting_count++];
    setting->option = option->name;
    setting->value = value;
    snprintf(setting->key, sizeof(setting->key), "%.*s", (int)key_length, key);
    return PLIM_OK;
}

static enum plim_status set_key(struct plim_request *request, const struct option *option,
                                const char *value, struct plim_error *err)
{
    return add_setting(request, option, option->key, strlen(option->key), value, err);
}

static enum plim_status set_any_key(struct plim_request *request, const struct option *option,
                                    const char *value, struct plim_error *err)
{
    size_t length = strcspn(value, "=");
    if (!length || !value[length] || length >= sizeof(request->settings[0].key))
        return plim_fail(err, PLIM_INVALID,
                         "--set is '%s', expected KEY=VALUE such as train.clip=1.0", value);
    return add_setting(request, option, value, length, value + length + 1, err);
}

static enum plim_status set_device(struct plim_request *request, const struct option *option,
                                   const char *value, struct plim_error *err)
{
    if (request->device_count == PLIM_REQUEST_DEVICES)
        return too_many(option, PLIM_REQUEST_DEVICES, err);
    request->devices[request->device_count++] = value;
    return PLIM_OK;
}

static enum plim_status set_file(struct plim_request *request, const struct option *option,
                                 const char *value, struct plim_error *err)
{
    if (request->file_count == PLIM_REQUEST_FILES) return too_many(option, PLIM_REQUEST_FILES, err);
    request->files[request->file_count++] = value;
    return PLIM_OK;
}

static enum plim_status set_trace(struct plim_request *request, const struct option *option,
                                  const char *value, struct plim_error *err)
{
    (void)option;
    (void)err;
    request->trace = value;
    return PLIM_OK;
}

/* A number followed by one of `units`, which has a factor each; all of `text`. */
static bool parse_with_unit(const char *text, const char *const *units, const double *factors,
                            double *out)
{
    char *end;
    errno = 0;
    if (!strchr("0123456789.", text[0]) || !text[0] || strpbrk(text, "xXnN")) return false;
    *out = strtod(text, &end);
    if (end == text || errno) return false;
    for (size_t i = 0; units[i]; i++) {
        if (strcmp(units[i], end)) continue;
        *out *= factors[i];
        return true;
    }
    return false;
}

static enum plim_status set_margin(struct plim_request *request, const struct option *option,
                                   const char *value, struct plim_error *err)
{
    static const char *const units[] = {"%", " %", NULL};
    static const double factors[] = {0.01, 0.01};
    double share;
    struct plim_allowance *allowance = &request->allowance;
    if (parse_with_unit(value, units, factors, &share) && share <= 1) {
        allowance->margin_bytes = -1;
        allowance->margin_share = share;
        return PLIM_OK;
    }
    if (plim_parse_bytes(value, &allowance->margin_bytes, NULL) == PLIM_OK) return PLIM_OK;
    return plim_fail(err, PLIM_INVALID,
                     "%s is '%s', expected a share such as 5%% or a size such as 2GiB",
                     option->name, value);
}

static enum plim_status set_overhead(struct plim_request *request, const struct option *option,
                                     const char *value, struct plim_error *err)
{
    struct plim_allowance *allowance = &request->allowance;
    allowance->overhead_given = strcmp(value, "auto") != 0;
    if (!allowance->overhead_given) return PLIM_OK;
    if (plim_parse_bytes(value, &allowance->overhead_bytes, NULL) == PLIM_OK) return PLIM_OK;
    return plim_fail(err, PLIM_INVALID, "%s is '%s', expected auto or a size such as 600MiB",
                     option->name, value);
}

static enum plim_status set_alloc_conf(struct plim_request *request, const struct option *option,
                                       const char *value, struct plim_error *err)
{
    if (strlen(value) >= sizeof(((struct plim_result_limit *)0)->alloc_conf))
        return plim_fail(err, PLIM_INVALID, "%s is longer than expected", option->name);
    request->allowance.alloc_conf = value;
    return PLIM_OK;
}

static enum plim_status set_objective(struct plim_request *request, const struct option *option,
                                      const char *value, struct plim_error *err)
{
    for (int i = 0; i < PLIM_OBJECTIVE_COUNT; i++) {
        if (strcmp(plim_objective_names[i], value)) continue;
        request->objective = (enum plim_objective)i;
        return PLIM_OK;
    }
    return plim_fail(err, PLIM_INVALID,
                     "%s is '%s', expected throughput, longest-sequence, least-memory or "
                     "largest-batch",
                     option->name, value);
}

static enum plim_status set_seconds(const struct option *option, const char *value, double *out,
                                    struct plim_error *err)
{
    static const char *const units[] = {"s", "", "ms", "m", "min", "h", NULL};
    static const double factors[] = {1, 1, 1e-3, 60, 60, 3600};
    if (parse_with_unit(value, units, factors, out) && *out > 0) return PLIM_OK;
    return plim_fail(err, PLIM_INVALID, "%s is '%s', expected a time such as 60s, 500ms or 5m",
                     option->name, value);
}

static enum plim_status set_budget(struct plim_request *request, const struct option *option,
                                   const char *value, struct plim_error *err)
{
    return set_seconds(option, value, &request->budget_seconds, err);
}

/* --- of exec ---------------------------------------------------------------------------------- */

static enum plim_status set_program_seconds(struct plim_request *request,
                                            const struct option *option, const char *value,
                                            struct plim_error *err)
{
    bool limit = !strcmp(option->name, "--timeout");
    double *place = limit ? &request->program.limit_seconds : &request->program.run_seconds;
    return set_seconds(option, value, place, err);
}

static enum plim_status set_program_text(struct plim_request *request, const struct option *option,
                                         const char *value, struct plim_error *err)
{
    struct plim_request_program *program = &request->program;
    (void)err;
    if (!strcmp(option->name, "--batch")) program->batch = value;
    else if (!strcmp(option->name, "--seq")) program->seq = value;
    else program->logs = value;
    return PLIM_OK;
}

static enum plim_status set_program_list(struct plim_request *request, const struct option *option,
                                         const char *value, struct plim_error *err)
{
    struct plim_request_program *program = &request->program;
    const struct {
        const char *name;
        size_t *count;
        const char **list;
        int most;
    } lists[] = {{"--axis", &program->axis_count, program->axes, PLIM_PROGRAM_AXES},
                 {"--env", &program->variable_count, program->variables, PLIM_PROGRAM_VARIABLES},
                 {"--file", &program->file_count, program->files, PLIM_PROGRAM_FILES}};
    size_t i = 0;
    while (strcmp(lists[i].name, option->name)) i++;
    if (value[0] == '=' || !strchr(value, '='))
        return plim_fail(err, PLIM_INVALID, "%s is '%s', expected %s", option->name, value,
                         option->argument);
    if (*lists[i].count == (size_t)lists[i].most) return too_many(option, lists[i].most, err);
    lists[i].list[(*lists[i].count)++] = value;
    return PLIM_OK;
}

static enum plim_status set_program_number(struct plim_request *request,
                                           const struct option *option, const char *value,
                                           struct plim_error *err)
{
    struct plim_request_program *program = &request->program;
    const struct {
        const char *name;
        int64_t *place, most;
    } numbers[] = {{"--gpus", &program->gpus, PLIM_PROGRAM_GPUS},
                   {"--jobs", &program->jobs, 64},
                   {"--steps", &program->steps, 1000000},
                   {"--repetitions", &program->repetitions, 1000000}};
    size_t i = 0;
    char *end;
    while (strcmp(numbers[i].name, option->name)) i++;
    errno = 0;
    long long number = value[0] >= '0' && value[0] <= '9' ? strtoll(value, &end, 10) : 0;
    if (number < 1 || number > numbers[i].most || errno || *end)
        return plim_fail(err, PLIM_INVALID, "%s is '%s', expected a number from 1 to %lld",
                         option->name, value, (long long)numbers[i].most);
    *numbers[i].place = number;
    return PLIM_OK;
}

/* `key` names the switch. */
static enum plim_status set_switch(struct plim_request *request, const struct option *option,
                                   const char *value, struct plim_error *err)
{
    const struct {
        const char *name;
        bool *place;
    } switches[] = {{"--json", &request->json},
                    {"--quiet", &request->quiet},
                    {"--no-color", &request->no_color},
                    {"--dry-run", &request->program.dry_run},
                    {"--observe", &request->program.observe},
                    {"--help", &request->help}};
    (void)value;
    for (size_t i = 0; i < sizeof(switches) / sizeof(switches[0]); i++) {
        if (strcmp(switches[i].name, option->name)) continue;
        *switches[i].place = true;
        return PLIM_OK;
    }
    return plim_fail(err, PLIM_INTERNAL, "the switch %s has no place", option->name);
}

/* --- the table -------------------------------------------------------------------------------- */

enum {
    T = PLIM_VERB_TUNE,
    P = PLIM_VERB_PLAN,
    E = PLIM_VERB_EXPLAIN,
    D = PLIM_VERB_DEVICES,
    I = PLIM_VERB_IMPORT,
    X = PLIM_VERB_EXEC
};

static const struct option options[] = {
    {"--device", "URI", T | P | E | X, set_device, NULL,
     "sim:NAME, sim:24GiB, or auto (default); \",memory=24GiB\" may follow. plan takes several, or "
     "all"},
    {"--batch", "N", T | P | E, set_key, "train.micro_batch",
     "micro-batch, samples: 8, or a list 4,8; default: searched"},
    {"--seq", "N", T | P | E, set_key, "data.seq",
     "sequence length, tokens: 2048, 512,1024 or 512:4096:512"},
    {"--batch", "LIST", X, set_program_text, NULL,
     "what {batch} may be: 1:512 (the largest that fits is searched), a list 8,16,32, or 1:512:x2; "
     "default: any"},
    {"--seq", "LIST", X, set_program_text, NULL,
     "what {seq} may be: 512,1024 or 256:1024:256; the best batch is found for each"},
    {"--axis", "NAME=LIST", X, set_program_list, NULL,
     "what {NAME} may be: words, numbers or a range; repeatable"},
    {"--env", "NAME=VALUE", X, set_program_list, NULL,
     "a variable of the program's environment, with placeholders; repeatable"},
    {"--file", "TEMPLATE=PATH", X, set_program_list, NULL,
     "write TEMPLATE, its placeholders filled in, to PATH for each trial ({dir}/train.yaml)"},
    {"--gpus", "N", X, set_program_number, NULL,
     "simulated cards that the program sees; default: 1"},
    {"--effective-batch", "N", T | P | E | X, set_key, "train.effective_batch",
     "samples an optimizer step, to be kept"},
    {"--effective-batch-tolerance", "SHARE", T | P | E | X, set_key, "train.effective_batch_tolerance",
     "how far it may be missed, such as 2%; default: 0"},
    {"--accumulation", "N", T | P | E | X, set_key, "train.accumulation",
     "micro-steps an optimizer step; default: follows, or 1"},
    {"--world", "N", T | P | E | X, set_key, "train.world", "data-parallel GPUs; default: 1"},
    {"--precision", "NAME", T | P | E | X, set_key, "train.precision",
     "fp32, tf32, bf16-mixed, fp16-mixed, bf16, fp16, or a list; mixed is autocast"},
    {"--optimizer", "NAME", T | P | E, set_key, "train.optimizer",
     "adamw, adamw-fused, sgd, adafactor, adamw-8bit, or a list"},
    {"--checkpointing", "NAME", T | P | E, set_key, "train.checkpointing",
     "none, full, or a list; default: none,full"},
    {"--attention", "NAME", T | P | E, set_key, "train.attention", "sdpa, eager, or a list; default: sdpa (bloom: eager)"},
    {"--sharding", "NAME", T | P | E, set_key, "train.sharding", "none"},
    {"--packing", "NAME", T | P | E, set_key, "data.packing",
     "several documents in a row: auto, yes, no"},
    {"--clip", "NORM", T | P | E, set_key, "train.clip",
     "clip_grad_norm_ to this norm, such as 1.0; default: no clipping"},
    {"--dropout", "P", T | P | E, set_key, "train.dropout",
     "every dropout of the model, such as 0; default: the model's own"},
    {"--lora", "LIST", T | P | E, set_key, "train.lora",
     "r=16,targets=q_proj+v_proj,dropout=0; default: all parameters"},
    {"--set", "KEY=VALUE", T | P | E | I, set_any_key, NULL,
     "any key of the spec, such as train.clip=1.0"},
    {"--margin", "SIZE", T | P | E | X, set_margin, NULL,
     "memory to leave free: a share such as 5% (default) or 2GiB"},
    {"--overhead", "SIZE", T | P | E | X, set_overhead, NULL,
     "what the framework takes beside tensors: auto (default, an estimate) or 600MiB"},
    {"--alloc-conf", "CONF", T | P | E, set_alloc_conf, NULL,
     "allocator options as PyTorch's, such as expandable_segments:True; default: "
     "PYTORCH_CUDA_ALLOC_CONF"},
    {"--objective", "NAME", T | P, set_objective, NULL,
     "throughput (default), longest-sequence, least-memory, largest-batch"},
    {"--budget", "TIME", T | P | X, set_budget, NULL,
     "end the search after 60s, 500ms, 5m with the best so far"},
    {"--out", "FILE", T | P | E | I | X, set_file, NULL,
     "write the report there too: .json, .yaml or .txt; repeatable"},
    {"--for", "TIME", X, set_program_seconds, NULL, "a trial has gone well after 60s, 5m"},
    {"--steps", "N", X, set_program_number, NULL, "a trial has gone well after N training steps"},
    {"--repetitions", "N", X, set_program_number, NULL,
     "a trial has gone well when its peak has not grown for N steps; default: 5"},
    {"--timeout", "TIME", X, set_program_seconds, NULL,
     "a trial that takes longer has failed; default: 10m"},
    {"--jobs", "N", X, set_program_number, NULL,
     "trials at once; default: 1; on a real card always 1"},
    {"--logs", "DIR", X, set_program_text, NULL,
     "keep the output of every trial there; default: nothing is kept"},
    {"--dry-run", NULL, X, set_switch, NULL, "print the command of a trial, and run nothing"},
    {"--observe", NULL, X, set_switch, NULL,
     "run the command once, as it is, and tell what memory it takes"},
    {"--trace", "FILE", E, set_trace, NULL,
     "write every allocation and free there, to hold beside PyTorch's (scripts/compare-traces)"},
    {"--json", NULL, T | P | E | D | X, set_switch, NULL, "the report as JSON"},
    {"--quiet", NULL, T | P | E | D | I | X, set_switch, NULL, "no progress and no warnings"},
    {"--no-color", NULL, T | P | E | D | X, set_switch, NULL, "no escapes, as with NO_COLOR"},
    {"--help", NULL, T | P | E | D | I | X, set_switch, NULL, "this text"},
};

enum { OPTION_COUNT = sizeof(options) / sizeof(options[0]) };

/* --- parsing ---------------------------------------------------------------------------------- */

static enum plim_status unknown_option(const char *text, size_t length, enum plim_verb verb,
                                       struct plim_error *err)
{
    const char *names[OPTION_COUNT];
    char word[64];
    size_t count = 0;
    snprintf(word, sizeof(word), "%.*s", (int)(length < sizeof(word) ? length : sizeof(word) - 1),
             text);
    for (size_t i = 0; i < OPTION_COUNT; i++)
        if (options[i].verbs & verb) names[count++] = options[i].name;
    int near = plim_nearest(word, names, count);
    if (near < 0)
        return plim_fail(err, PLIM_INVALID, "%s: unknown option (--help lists them)", word);
    return plim_fail(err, PLIM_INVALID, "%s: unknown option, did you mean %s?", word, names[near]);
}

static enum plim_status find_option(const char *text, size_t length, enum plim_verb verb,
                                    const struct option **out, struct plim_error *err)
{
    const struct option *other = NULL; /* of other verbs */
    if (!strcmp(text, "-h")) text = "--help", length = strlen(text);
    for (size_t i = 0; i < OPTION_COUNT; i++) {
        *out = &options[i];
        if (strlen(options[i].name) != length || strncmp(options[i].name, text, length)) continue;
        if (options[i].verbs & verb) return PLIM_OK;
        other = &options[i];
    }
    if (other)
        return plim_fail(err, PLIM_INVALID,
                         "%s does not go with this verb (--help lists what does)", other->name);
    return unknown_option(text, length, verb, err);
}

static enum plim_status set_subject(struct plim_request *request, const char *text,
                                    struct plim_error *err)
{
    if (request->subject)
        return plim_fail(err, PLIM_INVALID, "'%s' is one too many after '%s', expected one", text,
                         request->subject);
    request->subject = text;
    return PLIM_OK;
}

enum plim_status plim_options_parse(int argc, char **argv, enum plim_verb verb,
                                    struct plim_request *request, struct plim_error *err)
{
    bool options_end = false;
    enum plim_status st = PLIM_OK;
    *request = (struct plim_request){.allowance = PLIM_ALLOWANCE_DEFAULT};
    for (int i = 0; i < argc && !st; i++) {
        const char *text = argv[i];
        if (options_end || text[0] != '-' || !text[1]) {
            st = set_subject(request, text, err);
        } else if (!strcmp(text, "--")) {
            options_end = true;
            if (verb == PLIM_VERB_EXEC) {
                request->program.command = argv + i + 1;
                break;
            }
        } else {
            const struct option *option;
            size_t length = strcspn(text, "=");
            bool joined = text[length] == '=';
            st = find_option(text, length, verb, &option, err);
            if (st) break;
            if (joined && !option->argument)
                return plim_fail(err, PLIM_INVALID, "%s takes no value", option->name);
            if (!joined && option->argument && ++i == argc)
                return plim_fail(err, PLIM_INVALID, "%s needs a value, expected %s %s",
                                 option->name, option->name, option->argument);
            st = option->set(request, option, joined ? text + length + 1 : argv[i], err);
        }
    }
    return st;
}

/* --- help ------------------------------------------------------------------------------------- */

enum { HELP_COLUMN = 22, HELP_END = 80 };

/* Text at HELP_COLUMN, broken at blanks. */
static void print_wrapped(FILE *out, int column, const char *text)
{
    if (column >= HELP_COLUMN) fprintf(out, "\n"), column = 0;
    while (*text) {
        size_t room = HELP_END - HELP_COLUMN, length = strlen(text);
        if (length > room)
            for (length = room; length > 1 && text[length] != ' ';) length--;
        fprintf(out, "%*s%.*s\n", HELP_COLUMN - column, "", (int)length, text);
        text += length + (text[length] == ' ');
        column = 0;
    }
}

void plim_options_help(enum plim_verb verb, FILE *out)
{
    for (size_t i = 0; i < OPTION_COUNT; i++) {
        if (!(options[i].verbs & verb)) continue;
        int column = fprintf(out, "  %s%s%s", options[i].name, options[i].argument ? " " : "",
                             options[i].argument ? options[i].argument : "");
        print_wrapped(out, column, options[i].help);
    }
}
