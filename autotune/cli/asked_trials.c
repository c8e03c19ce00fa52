#include "asked_trials.h"

static const double LIMIT_SECONDS = 600;
enum plim_status plim_asked_trials_assume(const struct plim_request_program *asked,
                                          struct plim_execution_options *options,
                                          struct plim_error *err)
{
    const struct plim_request_list *list = &asked->assumes;
    for (size_t i = 0; i < list->count; i++)
        if (!plim_machine_given_parse(list->items[i], &options->given[options->given_count++]))
            return plim_fail(err, PLIM_INVALID,
                             "--assume %s: expected FILE:LINE=VALUE, VALUE a number, true or false, or several in "
                             "turn: true*12,false",
                             list->items[i]);
    return PLIM_OK;
}

int plim_asked_repetitions(const struct plim_request_program *asked)
{
    if (asked->repetitions) return (int)asked->repetitions;
    bool has_an_end = asked->steps || asked->run_seconds > 0 || asked->observe;
    return has_an_end ? 0 : PLIM_EXECUTION_REPETITIONS;
}

enum plim_status plim_asked_trials_read(const struct plim_request_program *asked,
                                        struct plim_asked_trials *out, struct plim_error *err)
{
    *out = (struct plim_asked_trials){.asked = asked, .workspace.keeper = -1}; /* so that it can be finished */
    struct plim_execution_options *options = &out->options;
    options->hold = -1;
    options->run_seconds = asked->run_seconds;
    options->limit_seconds = asked->limit_seconds > 0 ? asked->limit_seconds : LIMIT_SECONDS;
    options->steps = (int)asked->steps;
    options->repetitions = plim_asked_repetitions(asked);
    options->epoch_steps = (int)asked->epoch_steps;
    if (asked->observe && asked->limit_seconds <= 0) options->limit_seconds = 0;
    return plim_asked_trials_assume(asked, options, err);
}

enum plim_status plim_asked_trials_create_workspace(struct plim_asked_trials *t, bool is_real,
                                                    struct plim_error *err)
{
    enum plim_status st =
        plim_workspace_create(&t->workspace, is_real ? PLIM_PRELOAD_OBSERVER : PLIM_PRELOAD_VIRTUAL_GPU,
                              t->asked->logs, err);
    t->options.library = t->workspace.library;
    t->options.folder = t->workspace.folder;
    t->options.logs = t->workspace.logs;
    t->options.hold = t->workspace.keeper;
    return st;
}

void plim_asked_trials_finish(struct plim_asked_trials *trials)
{
    if (trials) plim_workspace_finish(&trials->workspace);
}
