#include "answer_file.h"
#include "reports/report_reader.h"
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* True if the result is for this device, by URI or name in the catalogue, and this tier; NULL: any. */
static bool is_called(const struct plim_result *result, const char *device, const char *tier)
{
    bool is_device = !device || !strcasecmp(result->device.uri, device) || !strcasecmp(result->device.name, device);
    return is_device && (!tier || (result->tier && !strcasecmp(result->tier, tier)));
}

/* Lists the answers of a report: "T4, L4"; "24GiB --tier safe, 24GiB --tier max". */
static void list_answers(const struct plim_report *report, char *out, size_t size)
{
    size_t used = 0;
    out[0] = '\0';
    for (size_t i = 0; i < report->results.count && used < size; i++) {
        const struct plim_result *result = &report->results.items[i];
        used += (size_t)snprintf(out + used, size - used, "%s%s%s%s", i ? ", " : "", result->device.name,
                                 result->tier ? " --tier " : "", result->tier ? result->tier : "");
    }
    if (used >= size) memcpy(out + size - 4, "...", 4);
}

static enum plim_status choose(const struct plim_request *request, const struct plim_report *report,
                               const struct plim_result **out, struct plim_error *err)
{
    const char *path = request->subject, *tier = request->apply.tier;
    const char *device = request->devices.count ? request->devices.items[0] : NULL;
    char answers[200];
    size_t matches = 0;
    if (request->devices.count > 1)
        return plim_fail(err, PLIM_INVALID, "--device names several devices, expected one");
    list_answers(report, answers, sizeof(answers));
    for (size_t i = 0; i < report->results.count; i++)
        if (is_called(&report->results.items[i], device, tier) && !matches++) *out = &report->results.items[i];
    if (!matches)
        return plim_fail(err, PLIM_INVALID, "%s has no answer for the %s %s%s%s; it has some for %s", path,
                         device ? "device" : "tier", device ? device : tier,
                         device && tier ? " and the tier " : "", device && tier ? tier : "", answers);
    if (matches > 1)
        return plim_fail(err, PLIM_INVALID, "%s has %zu answers: expected --device with one of %s", path,
                         matches, answers);
    if ((*out)->kind == PLIM_RESULT_EXPLANATION)
        return plim_fail(err, PLIM_INVALID,
                         "%s explains a setting and chooses none: give a result of plimsoll tune or plan, or "
                         "--micro-batch N", path);
    if (!(*out)->choice.present)
        return plim_fail(err, PLIM_NOFIT,
                         "%s: nothing fits in this result, so there is nothing to write", path);
    return PLIM_OK;
}

enum plim_status plim_answer_file_read(const struct plim_request *request,
                                       struct plim_answer_file *out, struct plim_error *err)
{
    *out = (struct plim_answer_file){0};
    enum plim_status st = plim_yaml_read_file(request->subject, &out->yaml, err);
    if (st) return st;
    if (!plim_report_is(out->yaml.root))
        return plim_fail(err, PLIM_INVALID,
                         "%s is not a result of plimsoll tune or plan: give one, or --micro-batch N",
                         request->subject);
    st = plim_report_read(&out->yaml, &out->report, err);
    return st ? st : choose(request, &out->report, &out->result, err);
}

void plim_answer_file_finish(struct plim_answer_file *file)
{
    plim_report_finish(&file->report);
    plim_yaml_finish(&file->yaml);
}
