/* A spec, or a config.json, as text. What is accepted can be written, and says the same when it is
 * read again. */
#include "target.h"
#include "workloads/spec/spec.h"
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct plim_error err = PLIM_ERROR_INIT;
    static struct plim_spec spec, again;
    char *text = fuzz_text(data, size), *written = NULL, *twice = NULL;
    if (plim_spec_load_text("config.json", text, &spec, &err) == PLIM_OK) {
        fuzz_expect(plim_spec_write(&spec, &written, &err) == PLIM_OK);
        fuzz_expect(plim_spec_load_text("spec.yaml", written, &again, &err) == PLIM_OK);
        fuzz_expect(plim_spec_write(&again, &twice, &err) == PLIM_OK);
        fuzz_expect(!strcmp(written, twice));
    }
    free(written);
    free(twice);
    free(text);
    return 0;
}
