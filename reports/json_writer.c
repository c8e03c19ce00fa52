#include "tree.h"
#include "writer.h"

static enum plim_status write_json(const struct plim_report *report, const struct plim_style *style,
                                   char **text, struct plim_error *err)
{
    (void)style;
    struct plim_json json = {0};
    plim_report_tree(report, &json);
    enum plim_status st = plim_json_write(&json, text, err);
    plim_json_finish(&json);
    return st;
}

const struct plim_writer plim_writer_json = {
    .name = "json", .extensions = {"json"}, .write = write_json};
