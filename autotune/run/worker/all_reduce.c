#include "all_reduce.h"
#include "dialogue.h"

/* Asks the worker to time the all-reduce. The reply is REDUCED or FAILED. */
static enum plim_dialogue_outcome request_all_reduce(struct plim_dialogue *dialogue, int gpus,
                                                     struct plim_message *reply, struct plim_worker_death *death,
                                                     struct plim_error *err)
{
    const struct plim_message request = {.kind = PLIM_MESSAGE_REDUCE, .reduce = {.gpus = gpus}};
    const struct plim_expectation expectation = {.phase = PLIM_PHASE_STARTING};
    enum plim_dialogue_outcome outcome = plim_dialogue_hello(dialogue, death, err);
    if (outcome != PLIM_DIALOGUE_REPLIED) return outcome;
    return plim_dialogue_request(dialogue, &request, PLIM_MESSAGE_REDUCED, &expectation, reply, death,
                                 err);
}

static enum plim_status check_reply(const struct plim_message *reply, int gpus,
                                    struct plim_all_reduce *out, struct plim_error *err)
{
    if (reply->kind == PLIM_MESSAGE_FAILED)
        return plim_fail(err, reply->failed.status, "%s", reply->failed.text);
    if (reply->reduced.gpus != gpus)
        return plim_fail(err, PLIM_CRASHED, "the worker sent what is no answer");
    *out = reply->reduced;
    return PLIM_OK;
}

enum plim_status plim_worker_all_reduce(const struct plim_all_reduce_request *request,
                                        struct plim_all_reduce *out, struct plim_error *err)
{
    const struct plim_variable variables[] = {{"CUDA_VISIBLE_DEVICES", request->visible_gpus},
                                              {"CUDA_DEVICE_ORDER", "PCI_BUS_ID"},
                                              {"CUDA_MODULE_LOADING", "LAZY"}};
    const struct plim_deadline deadlines[PLIM_PHASE_COUNT] = {
        [PLIM_PHASE_STARTING] = {request->seconds, 0},
        [PLIM_PHASE_REDUCING] = {request->seconds, 0}};
    struct plim_dialogue dialogue = PLIM_DIALOGUE_INIT;
    struct plim_worker_death death = {0};
    struct plim_message reply;
    *out = (struct plim_all_reduce){0};
    dialogue.stop = request->stop;
    dialogue.log = request->log;
    dialogue.deadlines = deadlines;
    dialogue.reap_seconds = request->reap_seconds;
    enum plim_status st =
        plim_dialogue_start(&dialogue, request->program ? request->program : "/proc/self/exe",
                            variables, sizeof(variables) / sizeof(variables[0]), err);
    if (st) return st;
    switch (request_all_reduce(&dialogue, request->gpus, &reply, &death, err)) {
    case PLIM_DIALOGUE_REPLIED:
        st = check_reply(&reply, request->gpus, out, err);
        plim_dialogue_shut_down(&dialogue);
        break;
    case PLIM_DIALOGUE_DIED:
        st = plim_fail(err, death.verdict, "%s", death.why);
        break;
    case PLIM_DIALOGUE_STOPPED:
        st = plim_stop_check(request->stop, NULL);
        break;
    }
    plim_dialogue_finish(&dialogue);
    return st;
}
