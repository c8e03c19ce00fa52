/* The CUDA driver: copies and fills. */
#include "driver_context.h"
#include "devices/virtual/process/unsupported.h"
#include "devices/virtual/work/transfer.h"

static int copy(void *to, const void *from, size_t bytes, void *stream)
{
    int failed = plim_driver_enter();
    return failed ? failed : plim_transfer_plain(to, from, bytes, plim_stream_of(stream));
}

/* Functions are named by direction, but the addresses determine it anyway. */
#define COPY(function)                                                                             \
    ANSWER int function(void *to, const void *from, size_t bytes)                                  \
    {                                                                                              \
        return copy(to, from, bytes, NULL);                                                        \
    }                                                                                              \
    PER_THREAD(function, _ptds)
#define COPY_ASYNC(function)                                                                       \
    ANSWER int function(void *to, const void *from, size_t bytes, void *stream)                    \
    {                                                                                              \
        return copy(to, from, bytes, stream);                                                      \
    }                                                                                              \
    PER_THREAD(function, _ptsz)

COPY(cuMemcpy)
COPY(cuMemcpyHtoD_v2)
COPY(cuMemcpyDtoH_v2)
COPY(cuMemcpyDtoD_v2)
COPY_ASYNC(cuMemcpyAsync)
COPY_ASYNC(cuMemcpyHtoDAsync_v2)
COPY_ASYNC(cuMemcpyDtoHAsync_v2)
COPY_ASYNC(cuMemcpyDtoDAsync_v2)

ANSWER int cuMemcpyPeerAsync(void *to, void *to_context, const void *from, void *from_context,
                             size_t bytes, void *stream)
{
    (void)to_context;
    (void)from_context;
    return copy(to, from, bytes, stream);
}
PER_THREAD(cuMemcpyPeerAsync, _ptsz)

ANSWER int cuMemcpyPeer(void *to, void *to_context, const void *from, void *from_context,
                        size_t bytes)
{
    return cuMemcpyPeerAsync(to, to_context, from, from_context, bytes, NULL);
}
PER_THREAD(cuMemcpyPeer, _ptds)

/* --- two- and three-dimensional copies -------------------------------------------------------- */

enum { TYPE_HOST = 1, TYPE_ARRAY = 3 }; /* CUmemorytype */

struct side_2d {
    size_t x_bytes, y;
    int type;
    char *host, *device;
    void *array;
    size_t pitch;
};

struct copy_2d { /* CUDA_MEMCPY2D */
    struct side_2d from, to;
    size_t width_bytes, height;
};

struct side_3d {
    size_t x_bytes, y, z, level;
    int type;
    char *host, *device;
    void *array, *other; /* `other`: a context in copies between peers, otherwise NULL */
    size_t pitch, height;
};

struct copy_3d { /* CUDA_MEMCPY3D, CUDA_MEMCPY3D_PEER */
    struct side_3d from, to;
    size_t width_bytes, height, depth;
};

static char *corner_2d(const struct side_2d *side)
{
    char *base = side->type == TYPE_HOST ? side->host : side->device;
    return base + side->y * side->pitch + side->x_bytes;
}

/* A pitch of 0 means that rows have no gaps. */
static int copy_rectangle(const struct copy_2d *c, void *stream)
{
    int failed = plim_driver_enter();
    if (failed) return failed;
    if (c->from.type == TYPE_ARRAY || c->to.type == TYPE_ARRAY)
        return plim_unsupported(PLIM_CUDA, "cuMemcpy2D of an array");
    struct plim_transfer transfer = {
        .to = corner_2d(&c->to), .from = corner_2d(&c->from), .bytes = c->width_bytes,
        .to_pitch = c->to.pitch ? c->to.pitch : c->width_bytes,
        .from_pitch = c->from.pitch ? c->from.pitch : c->width_bytes, .rows = c->height};
    return plim_transfer(&transfer, plim_stream_of(stream));
}

ANSWER int cuMemcpy2D_v2(const struct copy_2d *c) { return copy_rectangle(c, NULL); }
PER_THREAD(cuMemcpy2D_v2, _ptds)
ANSWER int cuMemcpy2DUnaligned_v2(const struct copy_2d *c) { return copy_rectangle(c, NULL); }
PER_THREAD(cuMemcpy2DUnaligned_v2, _ptds)
ANSWER int cuMemcpy2DAsync_v2(const struct copy_2d *c, void *stream)
{
    return copy_rectangle(c, stream);
}
PER_THREAD(cuMemcpy2DAsync_v2, _ptsz)

/* Returns one layer of a box, as a side of a two-dimensional copy. The address of the other memory type may be NULL. */
static struct side_2d layer_of(const struct side_3d *side, size_t layer)
{
    struct side_2d part = {.x_bytes = side->x_bytes, .y = side->y, .type = side->type,
                           .host = side->host, .device = side->device, .pitch = side->pitch};
    *(side->type == TYPE_HOST ? &part.host : &part.device) +=
        (side->z + layer) * side->height * side->pitch;
    return part;
}

static int copy_box(const struct copy_3d *c, void *stream)
{
    int failed = GPU_OK;
    for (size_t i = 0; i < c->depth && !failed; i++)
        failed = copy_rectangle(&(struct copy_2d){layer_of(&c->from, i), layer_of(&c->to, i),
                                                  c->width_bytes, c->height},
                                stream);
    return failed;
}

ANSWER int cuMemcpy3D_v2(const struct copy_3d *c) { return copy_box(c, NULL); }
PER_THREAD(cuMemcpy3D_v2, _ptds)
ANSWER int cuMemcpy3DAsync_v2(const struct copy_3d *c, void *stream) { return copy_box(c, stream); }
PER_THREAD(cuMemcpy3DAsync_v2, _ptsz)
ANSWER int cuMemcpy3DPeer(const struct copy_3d *c) { return copy_box(c, NULL); }
PER_THREAD(cuMemcpy3DPeer, _ptds)
ANSWER int cuMemcpy3DPeerAsync(const struct copy_3d *c, void *stream)
{
    return copy_box(c, stream);
}
PER_THREAD(cuMemcpy3DPeerAsync, _ptsz)

/* --- fills ------------------------------------------------------------------------------------ */

static int fill(void *to, uint32_t value, size_t element_bytes, size_t count, void *stream)
{
    int failed = plim_driver_enter();
    return failed ? failed : plim_fill(to, value, element_bytes, count, plim_stream_of(stream));
}

static int fill_rows(char *to, size_t pitch, uint32_t value, size_t element_bytes, size_t width,
                     size_t height, void *stream)
{
    int failed = GPU_OK;
    for (size_t row = 0; row < height && !failed; row++)
        failed = fill(to + row * pitch, value, element_bytes, width, stream);
    return failed;
}

#define FILL(bits)                                                                                 \
    ANSWER int cuMemsetD##bits##_v2(void *to, uint##bits##_t value, size_t count)                  \
    {                                                                                              \
        return fill(to, value, bits / 8, count, NULL);                                             \
    }                                                                                              \
    PER_THREAD(cuMemsetD##bits##_v2, _ptds)                                                        \
    ANSWER int cuMemsetD##bits##Async(void *to, uint##bits##_t value, size_t count, void *stream)  \
    {                                                                                              \
        return fill(to, value, bits / 8, count, stream);                                           \
    }                                                                                              \
    PER_THREAD(cuMemsetD##bits##Async, _ptsz)                                                      \
    ANSWER int cuMemsetD2D##bits##_v2(void *to, size_t pitch, uint##bits##_t value, size_t width,  \
                                      size_t height)                                               \
    {                                                                                              \
        return fill_rows(to, pitch, value, bits / 8, width, height, NULL);                         \
    }                                                                                              \
    PER_THREAD(cuMemsetD2D##bits##_v2, _ptds)                                                      \
    ANSWER int cuMemsetD2D##bits##Async(void *to, size_t pitch, uint##bits##_t value,              \
                                        size_t width, size_t height, void *stream)                 \
    {                                                                                              \
        return fill_rows(to, pitch, value, bits / 8, width, height, stream);                       \
    }                                                                                              \
    PER_THREAD(cuMemsetD2D##bits##Async, _ptsz)

FILL(8)
FILL(16)
FILL(32)
