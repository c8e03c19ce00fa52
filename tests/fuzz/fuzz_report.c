/* A report that is given back. What is accepted is written in every format. */
#include "target.h"
#include "reports/report_reader.h"
#include "reports/writer.h"
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const names[] = {"x.json", "x.yaml", "x.txt", "x.md", "x.csv", "x.html"};
    struct plim_error err = PLIM_ERROR_INIT;
    struct plim_yaml yaml;
    char *text = fuzz_text(data, size);
    if (plim_yaml_read_string("report.json", text, size, &yaml, &err) == PLIM_OK) {
        struct plim_report report = {0};
        enum plim_status st = plim_report_read(&yaml, &report, &err);
        for (size_t i = 0; i < sizeof(names) / sizeof(*names) && !st; i++) {
            const struct plim_writer *writer;
            char *written = NULL;
            fuzz_expect(plim_writer_for_path(names[i], &writer, &err) == PLIM_OK);
            st = writer->write(&report, NULL, &written, &err);
            fuzz_expect(st != PLIM_INTERNAL);
            free(written);
        }
        plim_report_finish(&report);
        plim_yaml_finish(&yaml);
    }
    free(text);
    return 0;
}
