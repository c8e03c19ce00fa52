#include "answer_file.h"
#include "reports/report_reader.h"
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* By its URI, or by its name in the catalogue. */
static bool is_called(const struct plim_result_device *device, const char *name)
{
    return !strcasecmp(device->uri, name) || !strcasecmp(device->name, name);
}

static enum plim_status fail_listing(const struct plim_report *report, const char *path,
                                     const char *asked, struct plim_error *err)
{
    char names[200] = "";
    size_t used = 0;
    for (size_t i = 0; i < report->results.count && used < sizeof(names); i++)
        used += (size_t)snprintf(names + used, sizeof(names) - used, "%s%s", i ? ", " : "",
                                 report->results.items[i].device.name);
    if (used >= sizeof(names)) memcpy(names + sizeof(names) - 4, "...", 4);
    if (asked)
        return plim_fail(err, PLIM_INVALID,
                         "%s has no answer for the device %s; it has some for %s", path, asked,
                         names);
    return plim_fail(err, PLIM_INVALID,
                     "%s has the answers of %zu devices: expected --device with one of %s", path,
                     report->results.count, names);
}

static enum plim_status choose(const struct plim_request *request, const struct plim_report *report,
                               const struct plim_result **out, struct plim_error *err)
{
    const char *path = request->subject;
    const char *asked = request->devices.count ? request->devices.items[0] : NULL;
    if (request->devices.count > 1)
        return plim_fail(err, PLIM_INVALID, "--device names several devices, expected one");
    if (!asked && report->results.count > 1) return fail_listing(report, path, NULL, err);
    for (size_t i = 0; i < report->results.count && !*out; i++)
        if (!asked || is_called(&report->results.items[i].device, asked))
            *out = &report->results.items[i];
    if (asked && !*out) return fail_listing(report, path, asked, err);
    if (!*out || !(*out)->choice.present || (*out)->kind == PLIM_RESULT_EXPLANATION)
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
                         "%s is no result of plimsoll tune or plan: give one, or --micro-batch N",
                         request->subject);
    st = plim_report_read(&out->yaml, &out->report, err);
    return st ? st : choose(request, &out->report, &out->result, err);
}

void plim_answer_file_finish(struct plim_answer_file *file)
{
    plim_report_finish(&file->report);
    plim_yaml_finish(&file->yaml);
}
