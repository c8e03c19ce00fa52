#define ZLIB_CONST
#include "gzip.h"
#include <stdlib.h>
#include <zlib.h>

enum {
    GZIP_WINDOW = 16 + MAX_WBITS, /* zlib's way to ask for gzip's header and checksum */
    MOST_MEMORY = 9,              /* of deflate: 256 KiB */
    FIRST_ROOM = 1 << 16,         /* to unpack into */
};

enum plim_status plim_gzip_pack(const char *text, size_t length, char **packed,
                                size_t *packed_bytes, struct plim_error *err)
{
    z_stream z = {.next_in = (const Bytef *)text, .avail_in = (uInt)length};
    *packed = NULL;
    if (deflateInit2(&z, Z_BEST_COMPRESSION, Z_DEFLATED, GZIP_WINDOW, MOST_MEMORY,
                     Z_DEFAULT_STRATEGY) != Z_OK)
        return plim_no_memory(err);
    size_t most = deflateBound(&z, (uLong)length);
    *packed = malloc(most);
    if (*packed) {
        z.next_out = (Bytef *)*packed;
        z.avail_out = (uInt)most;
        (void)deflate(&z, Z_FINISH); /* there is room for all of it */
        *packed_bytes = z.total_out;
    }
    (void)deflateEnd(&z);
    return *packed ? PLIM_OK : plim_no_memory(err);
}

bool plim_gzip_is(const char *bytes, size_t count)
{
    return count >= 2 && bytes[0] == '\x1f' && bytes[1] == '\x8b';
}

/* What inflate() returned, and what it left, as a status. */
static enum plim_status judge(const char *source_name, const z_stream *z, int returned,
                              size_t max_bytes, struct plim_error *err)
{
    if (returned == Z_MEM_ERROR) return plim_no_memory(err);
    if (returned == Z_STREAM_END && !z->avail_in) return PLIM_OK;
    if (returned == Z_BUF_ERROR && !z->avail_out)
        return plim_fail(err, PLIM_SPEC, "%s: it unpacks to more than %zu bytes", source_name,
                         max_bytes);
    return plim_fail(err, PLIM_SPEC, "%s: %s", source_name,
                     returned == Z_STREAM_END  ? "more follows behind the gzip data"
                     : returned == Z_BUF_ERROR ? "the gzip data is cut off"
                                               : "the gzip data is damaged");
}

/* Into a block that grows with what comes out, with room for a NUL. */
static enum plim_status inflate_all(const char *source_name, z_stream *z, size_t max_bytes,
                                    char **out, struct plim_error *err)
{
    size_t room = 0;
    int returned;
    do {
        room = room ? 4 * room : FIRST_ROOM;
        if (room > max_bytes) room = max_bytes;
        char *larger = realloc(*out, room + 1);
        if (!larger) return plim_no_memory(err);
        *out = larger;
        z->next_out = (Bytef *)larger + z->total_out;
        z->avail_out = (uInt)(room - z->total_out);
        returned = inflate(z, Z_FINISH);
    } while (returned == Z_BUF_ERROR && !z->avail_out && room < max_bytes);
    return judge(source_name, z, returned, max_bytes, err);
}

enum plim_status plim_gzip_unpack(const char *source_name, const char *packed, size_t packed_bytes,
                                  size_t max_bytes, char **text, size_t *length,
                                  struct plim_error *err)
{
    z_stream z = {.next_in = (const Bytef *)packed, .avail_in = (uInt)packed_bytes};
    char *out = NULL;
    *text = NULL;
    if (inflateInit2(&z, GZIP_WINDOW) != Z_OK) return plim_no_memory(err);
    enum plim_status st = inflate_all(source_name, &z, max_bytes, &out, err);
    (void)inflateEnd(&z);
    if (st) {
        free(out);
        return st;
    }
    *length = z.total_out;
    out[*length] = '\0';
    *text = out;
    return PLIM_OK;
}
