#include "math_library.h"
#include "devices/virtual/machine/version.h"
#include <stdlib.h>

int plim_math_create(void **out, const char *note)
{
    if (!out) return MATH_INVALID_VALUE;
    plim_self_note("%s", note);
    if (plim_self_use_current()) return MATH_NOT_INITIALIZED;
    struct plim_handle *made = calloc(1, sizeof(*made));
    if (!made) return MATH_ALLOC_FAILED;
    made->device = plim_self_device();
    *out = made;
    return MATH_OK;
}

int plim_math_destroy(struct plim_handle *handle)
{
    free(handle);
    return MATH_OK;
}

int plim_math_set_stream(struct plim_handle *handle, void *stream)
{
    if (!handle) return MATH_NOT_INITIALIZED;
    handle->stream = stream;
    return MATH_OK;
}

int plim_math_get_stream(const struct plim_handle *handle, void **stream)
{
    if (!handle) return MATH_NOT_INITIALIZED;
    *stream = handle->stream;
    return MATH_OK;
}

int plim_math_property(const char *library, const char *function, int property, int *value)
{
    static const int newest[] = {12, 0, 0};
    bool is_known = plim_version_property(library, function, newest, property, value);
    return is_known ? MATH_OK : MATH_INVALID_VALUE;
}

int plim_math_launch(void *stream, const char *what, const void *const *operands, size_t count, size_t written)
{
    const struct plim_work work = {
        .stream = stream, .what = what, .operands = operands, .read = count - written, .written = written};
    return plim_library_launch(&work);
}
