/* The same tree as the JSON. */
#include "autotune/base/yaml_write.h"
#include "tree.h"
#include "writer.h"

static enum plim_status write_yaml(const struct plim_report *report, const struct plim_style *style,
                                   char **text, struct plim_error *err)
{
    (void)style;
    struct plim_json json = {0};
    plim_report_tree(report, &json);
    enum plim_status st = plim_yaml_write(&json, text, err);
    plim_json_finish(&json);
    return st;
}

const struct plim_writer plim_writer_yaml = {
    .name = "yaml", .extensions = {"yaml", "yml"}, .write = write_yaml};
