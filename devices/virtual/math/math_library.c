#include "math_library.h"
#include <stdlib.h>

int plim_math_handle(size_t bytes, void **out)
{
    int failed = plim_self_use_current();
    struct plim_handle *made = failed ? NULL : calloc(1, bytes);
    if (failed) return failed;
    if (!made) return GPU_OUT_OF_MEMORY;
    made->device = plim_self_device();
    *out = made;
    return GPU_OK;
}

int plim_math_launch(void *stream, const char *what, const void *const *operands, size_t count, size_t written)
{
    const struct plim_work work = {
        .stream = stream, .what = what, .operands = operands, .read = count - written, .written = written};
    return plim_library_launch(&work);
}
